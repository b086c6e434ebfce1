/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The right to change GPUs. Actuator and guard are two processes that both can; at any moment at
 * most one of them may.
 *
 * The right is an exclusive lock on a file, which the kernel frees when its holder is gone with all
 * his threads (one that hangs inside the driver keeps it: his call may still take effect), and an
 * epoch in the journal that each new holder raises. The lock keeps two from starting; the epoch
 * stops one who believes to hold a lock whose file was removed or replaced under him. It is checked
 * before each setter, on the thread that calls the driver.
 */
#ifndef TAKT_ACTUATE_MANDATE_H
#define TAKT_ACTUATE_MANDATE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "actuate/journal.h"
#include "base/err.h"
#include "base/sys.h"

struct takt_mandate {
	const struct takt_sys *sys;   /* borrowed until the end */
	struct takt_journal *journal; /* borrowed until the end */
	char lock_path[PATH_MAX];
	pthread_mutex_t
		mutex; /* over what follows and the journal's file, never across a driver call */
	int lock_fd;   /* -1: not locked */
	bool held;
	struct takt_journal_holder mine;
};

/* Holds nothing yet. lock_path too long: -ENAMETOOLONG. */
int takt_mandate_init(struct takt_mandate *mandate, const struct takt_sys *sys,
		      const char *lock_path, struct takt_err *err);

/* Takes the lock; never waits: -TAKT_E_BUSY when somebody else holds it. The journal is to be
 * opened after that, since whoever held the lock before may have written to it. */
int takt_mandate_lock(struct takt_mandate *mandate, struct takt_err *err);

/* Raises the epoch under the name of this process ("actuator", "guard"); from here on
 * takt_mandate_check agrees. On failure the lock is released. */
int takt_mandate_begin(struct takt_mandate *mandate, struct takt_journal *journal, const char *name,
		       struct takt_err *err);

/* 0 while this process may set, -TAKT_E_STALE once it may not any more. A gate of device_set.h:
 * takes a struct takt_mandate *, may be called on any thread. */
int takt_mandate_check(void *mandate);

/* Gives the right back; setters that have not begun yet will not. Nothing held is fine. */
void takt_mandate_release(struct takt_mandate *mandate);
void takt_mandate_fini(struct takt_mandate *mandate); /* releases too; no worker may ask any more */

#endif
