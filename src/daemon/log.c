/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *log_program = "takt serve";

void takt_log_as(const char *program)
{
	log_program = program;
}

/* The journal's word for its own stream, and whether standard error still is that. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(ours, sizeof(ours), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return strcmp(stream, ours) == 0;
}

void takt_log(enum takt_log_level level, const char *fmt, ...)
{
	char text[600], line[640];
	va_list args;
	int n;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (is_journal())
		n = snprintf(line, sizeof(line), "<%d>%s\n", (int)level, text);
	else
		n = snprintf(line, sizeof(line), "%s: %s\n", log_program, text);
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody listens */
}
