/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of a machine whose root is "" (this one's) or a folder: a copy, a mounted disk, a
 * test. Nothing here reports an error: what cannot be read is not known. */
#ifndef TAKT_HEALTH_ROOTED_H
#define TAKT_HEALTH_ROOTED_H

#include <stdbool.h>
#include <stddef.h>

/* Up to size - 1 bytes, terminated. False when there is no such file. */
bool takt_rooted_text(const char *root, const char *path, char *ret, size_t size);
/* Its first line. */
bool takt_rooted_line(const char *root, const char *path, char *ret, size_t size);
/* The file itself, not what a link leads to. */
bool takt_rooted_exists(const char *root, const char *path);
/* What the link says. */
bool takt_rooted_link(const char *root, const char *path, char *ret, size_t size);
/* Bytes read; 0 = none. */
size_t takt_rooted_bytes(const char *root, const char *path, void *ret, size_t size);

/* Each path that matches the pattern, ascending, without the root before it. */
typedef void takt_rooted_each(void *ctx, const char *path);
void takt_rooted_glob(const char *root, const char *pattern, takt_rooted_each *each, void *ctx);

/* What follows the last slash. */
const char *takt_path_name(const char *path);

#endif
