/* SPDX-License-Identifier: Apache-2.0 */
/* A line at the terminal that says, while a job waits, how many are before it and when it is to
 * start. */
#ifndef TAKT_CLI_WAIT_LINE_H
#define TAKT_CLI_WAIT_LINE_H

#include <stdint.h>

#include "client/client.h"

struct takt_wait_line {
	struct takt_client *client;
	uint64_t job_id;
	int wake_fd;		 /* readable: `woken` is called */
	int (*woken)(void *ctx); /* negative ends the waiting */
	void *ctx;
};

/* Until the job waits no longer, or the daemon does not answer: whoever follows the job sees why.
 * The line is taken away again. Where standard error is no terminal it returns at once. What
 * `woken` returned, or 0. */
int takt_wait_line_show(const struct takt_wait_line *line);

#endif
