/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of takt-actuate and takt-guard: one table, since the one starts the other with them. */
#ifndef TAKT_DAEMON_ACTUATE_FLAGS_H
#define TAKT_DAEMON_ACTUATE_FLAGS_H

#include <stdbool.h>

#include "actuate/actuate.h"

struct takt_actuate_flags {
	struct takt_actuate_config config; /* listen_fd, stop_fd -1 when not given */
	const char *socket_path;
	int watch_fd; /* -1: not given */
	bool help;
};

/* Texts are borrowed from argv. -TAKT_E_USAGE names the flag. */
int takt_actuate_flags_parse(int argc, char **argv, struct takt_actuate_flags *ret,
			     struct takt_err *err);

/* Both processes, before anything else: calls that the kernel refuses are told (confine/confine.h).
 * Then, of their calls and root's rights, they keep those that the actuator or its guard needs;
 * with `any_call` every call. */
void takt_actuate_tell_refusals(const char *program);
int takt_actuate_confine(const struct takt_actuate_flags *flags, bool guard, struct takt_err *err);

#endif
