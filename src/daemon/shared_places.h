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
#include "config/config.h"

/* A directory that another user made (in /tmp, say) or may write is a trap: our sockets and locks
 * would be his. `setting` names it: "runtime_dir". */
int takt_own_dir_check(const char *setting, const char *path, struct takt_err *err);

/* As above, for root's verbs: the directory may also be an account's for which root has made it.
 * What is written there replaces names and follows no link. */
int takt_service_dir_check(const char *setting, const char *path, struct takt_err *err);

/* Whether a process holds the lock of this file now, and which, as below, where there is room for
 * it. A holder tries for a moment, so a look does not disturb it. */
bool takt_lock_is_held(const char *path, char *ret_owner, size_t size);
/* Who holds the flock of this file, by the kernel's word: "takt (pid 812, user alice)"; "another
 * process" where it does not say (one of another PID namespace). */
void takt_lock_owner(int fd, char *ret, size_t size);
/* Whether another takt manages the GPU, and which: one that root runs, or one that has the lock in
 * lock_dir. */
bool takt_gpu_is_locked(const struct takt_config *config, const char *uuid, char *ret_owner,
			size_t size);
/* Whether that one is root's. */
bool takt_gpu_is_roots(const struct takt_config *config, const char *uuid, char *ret_owner,
		       size_t size);

#endif
