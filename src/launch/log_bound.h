/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds on a job's log and on its progress file; private to this room and its tests. */
#ifndef TAKT_LAUNCH_LOG_BOUND_H
#define TAKT_LAUNCH_LOG_BOUND_H

#include "launch/attempt.h"

/*
 * Holds a log to `limit` bytes on the disk. Of a longer one the first quarter of the limit and the
 * newest rest stay, and what lies between goes back to the file system: the file has a hole there,
 * so that offsets stay true for those who read along. Where files cannot have holes the log is cut
 * off after the first quarter, and goes on from there. What is written into the hole goes back,
 * too, and so does room behind the log's end, once that is more than a file system sets aside by
 * itself. *cut is what went at earlier looks, all 0 at first. 1: more has gone, and *cut says so;
 * 0: there was nothing to do, as with a log that is no regular file; -errno.
 */
int takt_log_bound(const struct takt_sys *sys, int logfd, uint64_t limit,
		   struct takt_output_cut *cut);

enum {
	TAKT_PROGRESS_BYTES = 4096 /* of all the ranks that takt/progress.h knows */
};

/* Holds the file of TAKT_PROGRESS to what takt/progress.h puts there. 0, or -errno. */
int takt_progress_bound(const struct takt_sys *sys, int fd);

#endif
