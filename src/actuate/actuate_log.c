/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a log line and hands it on. */
#include "actuate/actuate_log.h"

#include <stdarg.h>
#include <stdio.h>

void takt_actuate_say(const struct takt_actuate_log *log, const char *fmt, ...)
{
	char line[512];
	va_list args;

	if (!log->line)
		return;
	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	log->line(log->ctx, line);
}
