/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the command line in a child process and catches what it says. */
#ifndef TAKT_TESTS_CLI_RUN_H
#define TAKT_TESTS_CLI_RUN_H

#include <stddef.h>
#include <sys/types.h>

struct cli_result {
	int status; /* of wait(2) turned into a shell's: 128+N when killed */
	size_t out_len;
	char out[1 << 16];
	char err[1 << 14];
};

/* `line` is split at spaces; "takt" is put before it. Settings of width and colour come from the
 * environment. */
void cli_run(const char *line, struct cli_result *ret);

/* The same without waiting. */
struct cli_child {
	pid_t pid;
	int out_fd, err_fd;
	size_t err_len;
	char err[1 << 14]; /* what it has said so far */
};
void cli_start(const char *line, struct cli_child *ret);

/* Waits until it has said so on standard error. */
void cli_wait_said(struct cli_child *child, const char *text);
void cli_finish(struct cli_child *child, struct cli_result *ret);

#endif
