/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of ranks with a prefix: each writes into a pipe of its own, and the log gets whole lines
 * that begin with "[rank] ". A carriage return ends a line too, so that progress bars move.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"
#include "launch/shim_io.h"

enum {
	LINE_MAX_BYTES = 4096, /* a longer one is cut into several */
	PREFIX_MAX = 16,
};

struct line {
	struct takt_shim_source source; /* first; fd owned: where the rank's output comes from */
	int into;			/* owned: what the rank writes into */
	bool returned;			/* the last line ended with '\r': a '\n' may follow */
	size_t prefix, len;
	char text[PREFIX_MAX + LINE_MAX_BYTES];
};

struct takt_shim_lines {
	uint32_t count;
	struct line line[];
};

static void put_line(struct takt_shim *shim, struct line *line)
{
	if (line->len > line->prefix)
		takt_shim_log(shim, line->text, line->len);
	line->len = line->prefix;
}

static void take_byte(struct takt_shim *shim, struct line *line, char c)
{
	bool second = c == '\n' && line->returned;

	line->returned = c == '\r';
	if (second) {
		takt_shim_log(shim, "\n", 1);
		return;
	}
	line->text[line->len++] = c;
	if (c == '\n' || c == '\r') {
		put_line(shim, line);
	} else if (line->len == sizeof(line->text) - 1) {
		line->text[line->len++] = '\n';
		put_line(shim, line);
	}
}

/* What there is, at most a piece: 0 at the end of it, -errno. */
static ssize_t move_some(struct takt_shim *shim, struct line *line)
{
	char bytes[LINE_MAX_BYTES];
	ssize_t got;

	do
		got = read(line->source.fd, bytes, sizeof(bytes));
	while (got < 0 && errno == EINTR);
	for (ssize_t i = 0; i < got; i++)
		take_byte(shim, line, bytes[i]);
	return got < 0 ? -errno : got;
}

static void ready(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events)
{
	ssize_t got = move_some(shim, (struct line *)source);

	(void)events;
	if (got <= 0 && got != -EAGAIN)
		takt_shim_drop(shim, source);
}

static int open_line(struct takt_shim *shim, struct line *line, uint32_t rank)
{
	int ends[2];

	line->source = (struct takt_shim_source){.fd = -1, .ready = ready};
	line->into = -1;
	line->prefix = line->len = (size_t)snprintf(line->text, PREFIX_MAX, "[%u] ", rank);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	line->source.fd = ends[0];
	line->into = ends[1];
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return takt_shim_watch(shim, &line->source, EPOLLIN);
}

int takt_shim_lines_open(struct takt_shim *shim, struct takt_err *err)
{
	uint32_t ranks = shim->spec.ranks;
	struct takt_shim_lines *lines =
		takt_zalloc(sizeof(*lines) + ranks * sizeof(lines->line[0]));
	int rc = lines ? 0 : -ENOMEM;

	shim->io->lines = lines;
	while (rc == 0 && lines->count < ranks) {
		rc = open_line(shim, &lines->line[lines->count], lines->count);
		lines->count++;
	}
	return rc < 0 ? takt_err_set(err, rc, "make pipes for the output of ranks") : 0;
}

int takt_shim_lines_take(const struct takt_shim *shim, uint32_t rank, struct takt_err *err)
{
	int into = shim->io->lines->line[rank].into;

	if (dup2(into, STDOUT_FILENO) < 0 || dup2(into, STDERR_FILENO) < 0)
		return takt_err_set(err, -errno, "standard descriptors");
	return 0;
}

/* What the pipe holds and no more: who opened it by its name may go on writing. */
static void finish_line(struct takt_shim *shim, struct line *line)
{
	ssize_t left = line->source.fd >= 0 ? fcntl(line->source.fd, F_GETPIPE_SZ) : 0;

	if (line->into >= 0)
		close(line->into);
	for (ssize_t got = 1; line->source.fd >= 0 && got > 0 && left > 0; left -= got) {
		got = move_some(shim, line);
		got = got < 0 ? 0 : got;
	}
	takt_shim_drop(shim, &line->source);
	if (line->len > line->prefix)
		line->text[line->len++] = '\n';
	put_line(shim, line);
}

void takt_shim_lines_finish(struct takt_shim *shim)
{
	struct takt_shim_lines *lines = shim->io->lines;

	for (uint32_t i = 0; lines && i < lines->count; i++)
		finish_line(shim, &lines->line[i]);
	takt_free(lines);
	shim->io->lines = NULL;
}
