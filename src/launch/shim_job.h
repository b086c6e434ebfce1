/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a shim, beginning a job and seeing it through; private to this room. */
#ifndef TAKT_LAUNCH_SHIM_JOB_H
#define TAKT_LAUNCH_SHIM_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "launch/attempt.h"

struct takt_shim {
	const struct takt_sys *sys;    /* borrowed */
	int dirfd;		       /* borrowed */
	int lockfd;		       /* owned; -1 = not held */
	int logfd;		       /* owned; -1 = none */
	struct takt_attempt_spec spec; /* owned; released once the job runs, but for numbers */
	pid_t job;		       /* first process; 0 = none was forked */
	int report;	/* owned; where the first process says why it could not exec; -1 = none */
	bool in_cgroup; /* spec.cgroup exists */
	struct takt_boot began;
	struct takt_attempt_status end; /* what `exit` will say */
};

/* Fork the job's first process, record `started`, let it become the job's program. Negative:
 * nothing ran, nothing is recorded. */
int takt_shim_begin(struct takt_shim *shim, struct takt_err *err);

/* To be asked once the first process has ended: true when it could not be executed, which is then
 * in end. */
bool takt_shim_hear_report(struct takt_shim *shim);

/* Pass signals on until no process of the job is left; fills end. All signals must be blocked. */
void takt_shim_see_through(struct takt_shim *shim);

/* A line of the shim's own in the job's log; best effort. */
void takt_shim_note(const struct takt_shim *shim, const char *fmt, ...) TAKT_PRINTF(2, 3);

/* In the forked process: wait for the word on `go`, then become the job's program. On failure
 * writes a struct takt_err to `report`. Does not return. */
_Noreturn void takt_shim_become_job(const struct takt_shim *shim, pid_t parent, int go, int report);

#endif
