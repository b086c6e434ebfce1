/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done once no process of an attempt is left: by its shim, or for a dead one by the
 * launcher. Private to this room. */
#ifndef TAKT_LAUNCH_CLEANUP_H
#define TAKT_LAUNCH_CLEANUP_H

#include "launch/attempt.h"
#include "launch/job_user.h"

enum {
	/* A runtime of containers takes a few seconds to remove one. */
	TAKT_CLEANUP_LIMIT_MS = 30 * 1000,
	/* For the launcher, to have SIGKILL end what hangs in the kernel. */
	TAKT_CLEANUP_KILL_LIMIT_MS = 10 * 1000,
};

struct takt_cleanup {
	const struct takt_attempt_spec *spec; /* borrowed, like all here */
	const struct takt_job_user *user;
	const char *leaf;	/* the cgroup that it runs in; "" = ours */
	int logfd;		/* where its words go; -1 = nowhere */
	uint32_t limit_ms;	/* what it may take */
	uint32_t kill_limit_ms; /* for what is left of it to end once it is killed; 0 = any time */
};

/*
 * Runs spec->cleanup as the user, in the job's environment, as one more process of the job: it is
 * the user's program, whatever it is called. It and all that it started is ended before this
 * returns, when it has ended or its time is up. For a process that is a child subreaper and has no
 * other children. 0 when it succeeded or there is nothing to do; -ETIMEDOUT; -EAGAIN: it failed.
 */
int takt_cleanup_run(const struct takt_cleanup *cleanup, struct takt_err *err);

#endif
