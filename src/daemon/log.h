/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takt's processes say to whoever looks after the machine: a line each on standard error.
 * Where that is the journal the line begins with its level as sd-daemon(3) has it ("<4>"), else
 * with the program's name. Single-threaded.
 */
#ifndef TAKT_DAEMON_LOG_H
#define TAKT_DAEMON_LOG_H

#include "base/compiler.h"

enum takt_log_level {
	TAKT_LOG_ERROR = 3,   /* takt cannot do what it is for */
	TAKT_LOG_WARNING = 4, /* something is to be looked at */
	TAKT_LOG_NOTICE = 5,  /* what an administrator has changed, or takt of the clocks */
	TAKT_LOG_INFO = 6,    /* starts and ends of takt itself */
};
TAKT_PRINTF(2, 3) void takt_log(enum takt_log_level level, const char *fmt, ...);

/* The program's name, "takt serve" before the first call. Borrowed for good. */
void takt_log_as(const char *program);

#endif
