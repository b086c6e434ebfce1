/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of our own in folders of the kernel's, for one process tree: in a mount namespace that ends
 * with it. A folder is covered with an empty one in memory, all that it held is mounted into that
 * again, and there is room for more. The machine sees nothing of it.
 *
 * On failure the namespace is half-made: the caller must end, not go on.
 */
#ifndef TAKT_TWIN_PLANT_H
#define TAKT_TWIN_PLANT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Moves this process to a mount namespace of its own. Needs root. */
int twin_plant_begin(struct takt_err *err);

/* Covers `folder`, which must exist; everything in it stays there. */
int twin_plant_cover(const char *folder, struct takt_err *err);

/* These make one entry in a covered folder, in place of what has that name. */
int twin_plant_folder(const char *path, struct takt_err *err);
int twin_plant_link(const char *path, const char *target, struct takt_err *err);
int twin_plant_node(const char *path, uint32_t major, uint32_t minor, struct takt_err *err);
int twin_plant_file(const char *path, const void *data, size_t size, struct takt_err *err);

/* Puts the file `from` of a covered folder over the existing file `path`; it leaves the folder. */
int twin_plant_over(const char *path, const char *from, struct takt_err *err);

#endif
