/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a file that somebody has named: its folder, held open, and its name in it. What other
 * users put into the folders on the way changes nothing afterwards, and no link of theirs is
 * followed where they can put one: this is what the kernel's protected_symlinks does in folders
 * such as /tmp, in every folder that others may write.
 */
#ifndef TAKT_BASE_WAY_H
#define TAKT_BASE_WAY_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"

struct takt_way {
	int dirfd; /* O_PATH */
	char name[NAME_MAX + 1];
	bool ours; /* none but root and the caller can put anything there, or in its way */
};

/*
 * The last part need not be there; a link is followed there only if `follow`, and those of /proc
 * are left to the kernel. -EPERM with *err for a link of another user's in a folder that others may
 * write; -errno, with *err as it was, for the rest. The caller closes it.
 */
int takt_way_open(const char *path, bool follow, struct takt_way *ret, struct takt_err *err);
void takt_way_close(struct takt_way *way);

/* Whether it is root's or the caller's; root is whose "/" is, also where his number is another. */
bool takt_way_is_trusted(const struct stat *st);
/* Whether other users may make and replace files in this folder; with `sticky_too`, may make any.
 */
bool takt_way_is_open(const struct stat *folder, bool sticky_too);

#endif
