/* SPDX-License-Identifier: Apache-2.0 */
/* Files that belong to a user: each may be a link, a pipe, another file system or somebody else's.
 */
#ifndef TAKT_TELEMETRY_WARY_OPEN_H
#define TAKT_TELEMETRY_WARY_OPEN_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Opens for reading without following links or crossing mounts below the folder, and without
 * waiting. A descriptor of a regular file of `owner`'s, or lent to him
 * by root (base/file_whose.h), which the caller closes, and its stat;
 * -ENOENT: there is none; -TAKT_E_CORRUPT: it is something else.
 */
int takt_wary_open(int dirfd, const char *path, uid_t owner, struct stat *ret_stat);

#endif
