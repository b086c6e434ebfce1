/* SPDX-License-Identifier: Apache-2.0 */
/* The bound on a job's log; private to this room and its tests. */
#ifndef TAKT_LAUNCH_LOG_BOUND_H
#define TAKT_LAUNCH_LOG_BOUND_H

#include "launch/attempt.h"

/*
 * Holds a log to `limit` bytes. Of a longer one the first quarter of the limit and the newest rest
 * stay, and what lies between goes back to the file system: the file has a hole there, so that
 * offsets stay true for those who read along. Where files cannot have holes the log is cut off
 * after the first quarter, and goes on from there.
 * *cut is what went at earlier looks, all 0 at first. 1: more has gone, and *cut says so; 0: there
 * was nothing to do, as with a log that is no regular file; -errno.
 */
int takt_log_bound(const struct takt_sys *sys, int logfd, uint64_t limit,
		   struct takt_output_cut *cut);

#endif
