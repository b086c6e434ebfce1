/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is looked at before places are trusted that others may write, too. The daemon asks, and so
 * do verbs that act without one; apart from all the daemon's files, so that `takt` links none of
 * them.
 */
#ifndef TAKT_DAEMON_SHARED_PLACES_H
#define TAKT_DAEMON_SHARED_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A runtime directory that another user made (in /tmp, say) is a trap: our sockets would be his. */
int takt_runtime_dir_check(const char *path, struct takt_err *err);

/* Whether a process holds the lock of this file now, and what it has written there ("another takt"
 * when nothing). A holder tries for a moment, so a look does not disturb it. */
bool takt_lock_is_held(const char *path, char *ret_owner, size_t size);
/* What the holder has written into its lock file, as above. */
void takt_lock_owner(int fd, char *ret, size_t size);

#endif
