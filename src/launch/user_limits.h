/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a user's processes (setrlimit(2)). A job of another user's has those that he would have
 * by logging in, and nothing of the limits of the unit that started it. Root finds out which they
 * are; the process that becomes the user takes them, since a shim has to go on when its job may not
 * write, compute or open any more. Private to this room and to takt-shim.
 */
#ifndef TAKT_LAUNCH_USER_LIMITS_H
#define TAKT_LAUNCH_USER_LIMITS_H

#include <stdbool.h>
#include <sys/resource.h>

#include "base/err.h"

enum {
	TAKT_USER_LIMITS_TEXT = RLIM_NLIMITS * 42, /* bytes, with the NUL */
};

struct takt_user_limits {
	bool known; /* else what the process has stays */
	struct rlimit of[RLIM_NLIMITS];
};

/*
 * Those of a log-in that no file says anything of: the first process's, from whom log-ins have
 * theirs, but for the three that systemd raises for itself. Of these what it gives to services:
 * 1024 to 524288 open files, 8 MiB of locked memory, no core dump unless asked for.
 */
void takt_user_limits_default(struct takt_user_limits *ret);

/* This process's. */
int takt_user_limits_read(struct takt_user_limits *ret, struct takt_err *err);

/* Take them, hard ones too; one that may not be raised so far as far as it may. Without known ones
 * nothing is done. */
int takt_user_limits_take(const struct takt_user_limits *limits, struct takt_err *err);

/* Raise the hard limits of this process, as far as it may, to where its children can take these
 * without a right to it. What applies to the process itself stays. */
void takt_user_limits_make_room(const struct takt_user_limits *limits);

/* "SOFT:HARD,..." in the order of the kernel's numbers, "-" where there is none; "" for no known
 * ones. ret[TAKT_USER_LIMITS_TEXT]. parse: -EINVAL for anything else. */
void takt_user_limits_format(const struct takt_user_limits *limits, char *ret);
int takt_user_limits_parse(const char *text, struct takt_user_limits *ret, struct takt_err *err);

#endif
