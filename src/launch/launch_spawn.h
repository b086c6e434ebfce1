/* SPDX-License-Identifier: Apache-2.0 */
/* Starting one shim; private to this room. */
#ifndef TAKT_LAUNCH_LAUNCH_SPAWN_H
#define TAKT_LAUNCH_LAUNCH_SPAWN_H

#include "launch/attempt.h"
#include "launch/launch.h"

/* What is told of a process that was forked and came to nothing. */
struct takt_spawn_failed {
	struct takt_err err;
	enum takt_refusal refusal;
};

struct takt_spawn {
	const struct takt_launch_server_config *config; /* borrowed */
	const struct takt_sys *sys;			/* borrowed */
	int jobs_dirfd;					/* borrowed */
	struct takt_job_cgroups cgroups;
};

/* May this user run jobs here? 0 or -EPERM with the reason. */
int takt_spawn_allowed(const struct takt_launch_server_config *config, uid_t uid,
		       struct takt_err *err);

/*
 * Fork a process that takes the attempt over and execs the shim. On success *ret_shim names it and
 * *ret_report is a descriptor (the caller's) from which a struct takt_spawn_failed can be read
 * when it failed before the exec, or end of file once the shim runs.
 */
int takt_spawn_shim(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		    struct takt_proc_id *ret_shim, int *ret_report, struct takt_err *err);

/*
 * Fork a process that runs the clean-up of a user's dead attempt as him, in the attempt's cgroup,
 * for no longer than TAKT_CLEANUP_LIMIT_MS. *ret_report as above: end of file when that has
 * succeeded or its time was up. One that fails takes a second to say so, so that it is not tried
 * all the time.
 */
int takt_spawn_cleanup(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		       const struct takt_attempt_spec *spec, int attempt_dirfd, int *ret_report,
		       struct takt_err *err);

#endif
