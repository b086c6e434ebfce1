/* SPDX-License-Identifier: Apache-2.0 */
/* A job's log to standard output, over restarts of the daemon. */
#ifndef TAKT_CLI_LOG_STREAM_H
#define TAKT_CLI_LOG_STREAM_H

#include "cli/verb.h"

/* Waits out a daemon that is away: said once when it begins and once when it is over. */
struct takt_patience {
	bool away;
	unsigned failures; /* to reach it, in a row */
	int wake_fd;	   /* readable ends the waiting early; -1 = none */
};
#define TAKT_PATIENCE ((struct takt_patience){.wake_fd = -1})

/* True: the call failed because the daemon is away, and it is time to try again. */
bool takt_patience_retry(struct takt_patience *patience, int rc, const struct takt_err *err);

/* Writes what there is and, with follow, what comes until the job is over. Returns 0 when done; 1
 * when the daemon was away or started anew (with follow only): call again; or a failure, -ECANCELED
 * when the client was woken and its callback said so. */
int takt_log_stream(struct takt_cli *cli, uint64_t job_id, bool follow,
		    struct takt_patience *patience, struct takt_log_place *place,
		    struct takt_err *err);

#endif
