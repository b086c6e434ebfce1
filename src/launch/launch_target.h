/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to shims and to what is left of attempts, from the launcher; private to this room. */
#ifndef TAKT_LAUNCH_LAUNCH_TARGET_H
#define TAKT_LAUNCH_LAUNCH_TARGET_H

#include "launch/launch_spawn.h"

/* TAKT_LAUNCH_SIGNAL, TAKT_LAUNCH_STOP and TAKT_LAUNCH_LOOK. */
int takt_target_signal(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		       struct takt_err *err);

/* TAKT_LAUNCH_WHOSE. */
int takt_target_whose(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		      char ret[TAKT_ATTEMPT_ID_MAX], struct takt_err *err);

/* TAKT_LAUNCH_REAP. *ret_report: -1, or as takt_spawn_cleanup() has it, where nothing is left but a
 * clean-up that is under way. */
int takt_target_reap(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		     int *ret_report, struct takt_err *err);

#endif
