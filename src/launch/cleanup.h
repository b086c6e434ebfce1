/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done once no process of an attempt is left: by its shim, or for a dead one by the
 * launcher. Private to this room. */
#ifndef TAKT_LAUNCH_CLEANUP_H
#define TAKT_LAUNCH_CLEANUP_H

#include "launch/attempt.h"
#include "launch/job_user.h"

/*
 * Runs spec->cleanup as the user, in the job's environment, but for TAKT_ATTEMPT: it is not of the
 * attempt, and whoever looks for what is left of that must not find it. Its words go to logfd (-1 =
 * nowhere). Waits for it: 0 when it succeeded or there is nothing to do.
 */
int takt_cleanup_run(const struct takt_attempt_spec *spec, const struct takt_job_user *user,
		     int logfd, struct takt_err *err);

#endif
