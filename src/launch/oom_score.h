/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the kernel ends first when memory is short: a job, not its shim. Private to this room. */
#ifndef TAKT_LAUNCH_OOM_SCORE_H
#define TAKT_LAUNCH_OOM_SCORE_H

enum {
	TAKT_OOM_SCORE_MAX = 1000
};

/* What a job has that is started from here: our own score, but not less than 0. A service has less
 * where it is not to be ended, and that is not for its jobs. */
int takt_oom_score_of_jobs(void);

/* Of the calling process. With CAP_SYS_RESOURCE nobody below it can have less without that right.
 * Best effort. */
void takt_oom_score_take(int score);

/*
 * As root: the calling process is never ended for want of memory, and its children can take back
 * what takt_oom_score_take() gave it just before, without a right to. Best effort: the one way to
 * this is the older of the kernel's two files, and where that is gone nothing changes.
 */
void takt_oom_score_spare(void);

#endif
