/* SPDX-License-Identifier: Apache-2.0 */
/* Running the command line from a test. */
#include "cli_run.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	MAX_ARGS = 80,
	PATIENCE_MS = 120000,
};

/* The program is named by $TAKT_CLI: the PATH is the test's to change. */
static void become(const char *line, int out_fd, int err_fd)
{
	static char words[8192]; /* longer than any path */
	char *argv[MAX_ARGS] = {(char[]){"takt"}};
	int argc = 1;
	char *rest;

	snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok_r(words, " ", &rest); word && argc < MAX_ARGS - 1;
	     word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	/* A pipe that another thread's child inherits would never be seen to end. */
	if (dup2(out_fd, STDOUT_FILENO) < 0 || dup2(err_fd, STDERR_FILENO) < 0 ||
	    close_range(3, ~0u, 0) < 0)
		_exit(99);
	execv(getenv("TAKT_CLI"), argv);
	_exit(98);
}

void cli_start(const char *line, struct cli_child *ret)
{
	int out[2], err[2];

	if (pipe(out) < 0 || pipe(err) < 0)
		abort();
	ret->pid = fork();
	if (ret->pid == 0) {
		close(out[0]);
		close(err[0]);
		become(line, out[1], err[1]);
	}
	close(out[1]);
	close(err[1]);
	ret->out_fd = out[0];
	ret->err_fd = err[0];
	ret->err_len = 0;
}

void cli_wait_said(struct cli_child *child, const char *text)
{
	struct pollfd fd = {.fd = child->err_fd, .events = POLLIN};
	ssize_t n = 1;

	for (;;) {
		child->err[child->err_len] = '\0';
		if (strstr(child->err, text))
			return;
		if (n > 0 && poll(&fd, 1, PATIENCE_MS) == 1)
			n = read(fd.fd, child->err + child->err_len,
				 sizeof(child->err) - 1 - child->err_len);
		else
			n = 0;
		if (n <= 0)
			fail_msg("'%s' was not said, but: %s", text, child->err);
		child->err_len += (size_t)n;
	}
}

/* Both until both are at their end, so that neither pipe fills up. */
static void drain(struct cli_child *child, struct cli_result *ret)
{
	struct pollfd fds[2] = {{.fd = child->out_fd, .events = POLLIN},
				{.fd = child->err_fd, .events = POLLIN}};
	size_t used[2] = {0, child->err_len}, room[2] = {sizeof(ret->out), sizeof(ret->err)};
	char *into[2] = {ret->out, ret->err};

	memcpy(ret->err, child->err, child->err_len);
	while ((fds[0].fd >= 0 || fds[1].fd >= 0) && poll(fds, 2, -1) > 0) {
		for (int i = 0; i < 2; i++) {
			ssize_t n;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			n = read(fds[i].fd, into[i] + used[i], room[i] - 1 - used[i]);
			used[i] += n > 0 ? (size_t)n : 0;
			if (n <= 0)
				fds[i].fd = -1;
		}
	}
	ret->out[used[0]] = '\0';
	ret->err[used[1]] = '\0';
	ret->out_len = used[0];
	close(child->out_fd);
	close(child->err_fd);
}

void cli_finish(struct cli_child *child, struct cli_result *ret)
{
	int status;

	drain(child, ret);
	if (waitpid(child->pid, &status, 0) != child->pid)
		abort();
	ret->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void cli_run(const char *line, struct cli_result *ret)
{
	struct cli_child child;

	cli_start(line, &child);
	cli_finish(&child, ret);
}
