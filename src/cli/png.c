/* SPDX-License-Identifier: Apache-2.0 */
/* Starts rsvg-convert and hands it the chart. */
#include "cli/png.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/whole_file.h"

static int no_converter(struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_UNSUPPORTED,
			    "'--png' needs rsvg-convert (Debian: librsvg2-bin); '--svg' does not");
}

int takt_cli_check_png(struct takt_err *err)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path; path += *path == ':') {
		size_t len = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s%srsvg-convert", (int)len, path, len ? "/" : "");
		if (access(file, X_OK) == 0)
			return 0;
		path += len;
	}
	return no_converter(err);
}

/* A reader that has ended is seen by its exit status, not by a signal. */
static void hand_over(int fd, const struct takt_str *svg)
{
	void (*was)(int) = signal(SIGPIPE, SIG_IGN);

	for (size_t at = 0; at < svg->len;) {
		ssize_t n = write(fd, svg->s + at, svg->len - at);

		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? (size_t)n : 0;
	}
	(void)signal(SIGPIPE, was);
}

/* The picture goes to `out`. */
static int convert(const struct takt_str *svg, int out, struct takt_err *err)
{
	int in[2], status = 0, pid;

	if (pipe2(in, O_CLOEXEC) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	pid = fork();
	if (pid == 0) {
		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(out, STDOUT_FILENO);
		execlp("rsvg-convert", "rsvg-convert", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	if (pid > 0)
		hand_over(in[1], svg);
	close(in[1]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return takt_err_set(err, -errno, "start rsvg-convert");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return no_converter(err);
	return status == 0 ? 0 : takt_err_set(err, -EIO, "rsvg-convert could not write the chart");
}

int takt_cli_write_png(const struct takt_str *svg, const char *path, struct takt_err *err)
{
	struct takt_whole_file file;
	int rc;

	if (svg->rc < 0)
		return takt_err_set(err, svg->rc, "no memory for the chart");
	rc = takt_whole_file_open(path, &file, err);
	if (rc < 0)
		return rc;
	rc = convert(svg, file.fd, err);
	return takt_whole_file_close(&file, rc, err);
}
