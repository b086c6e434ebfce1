/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon says to whoever looks after the machine: a line each on standard error. Where
 * that is the journal the line begins with its level as sd-daemon(3) has it ("<4>"), else with
 * "takt serve: ". Single-threaded.
 */
#ifndef TAKT_DAEMON_LOG_H
#define TAKT_DAEMON_LOG_H

#include "base/compiler.h"

enum takt_log_level {
	TAKT_LOG_ERROR = 3,   /* takt cannot do what it is for */
	TAKT_LOG_WARNING = 4, /* something is to be looked at */
	TAKT_LOG_NOTICE = 5,  /* what an administrator has changed */
	TAKT_LOG_INFO = 6,    /* starts and ends of takt itself */
};
TAKT_PRINTF(2, 3) void takt_log(enum takt_log_level level, const char *fmt, ...);

#endif
