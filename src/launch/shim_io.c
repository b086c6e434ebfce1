/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for signals and descriptors at once. Signals are blocked: a signal descriptor wakes, and
 * the shim's loop takes them as ever. */
#include "launch/shim_io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	EVENTS_AT_ONCE = 16
};

void takt_shim_log(const struct takt_shim *shim, const char *text, size_t len)
{
	ssize_t put;

	while (len > 0) {
		put = write(shim->logfd, text, len);
		if (put < 0 && errno != EINTR)
			return;
		if (put > 0) {
			text += put;
			len -= (size_t)put;
		}
	}
}

int takt_shim_watch(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(shim->io->epollfd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void takt_shim_watch_for(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	(void)epoll_ctl(shim->io->epollfd, EPOLL_CTL_MOD, source->fd, &event);
}

void takt_shim_drop(struct takt_shim *shim, struct takt_shim_source *source)
{
	if (source->fd < 0)
		return;
	(void)epoll_ctl(shim->io->epollfd, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	source->fd = -1;
}

static void ready_signal(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events)
{
	(void)shim;
	(void)source;
	(void)events;
}

static int open_waiting(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_shim_io *io = shim->io;
	sigset_t all;

	sigfillset(&all);
	io->signal.ready = ready_signal;
	io->signal.fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	io->epollfd = epoll_create1(EPOLL_CLOEXEC);
	if (io->signal.fd < 0 || io->epollfd < 0 || takt_shim_watch(shim, &io->signal, EPOLLIN) < 0)
		return takt_err_set(err, -errno, "make descriptors to wait for");
	return 0;
}

int takt_shim_io_open(struct takt_shim *shim, struct takt_err *err)
{
	bool lines = shim->spec.ranks && shim->spec.rank_prefix;
	int rc;

	if (!lines && !shim->spec.pty)
		return 0;
	shim->io = takt_zalloc(sizeof(*shim->io));
	if (!shim->io)
		return takt_err_set(err, -ENOMEM, "no memory for the job's output");
	shim->io->epollfd = shim->io->signal.fd = -1;
	rc = open_waiting(shim, err);
	if (rc == 0 && shim->spec.pty)
		rc = takt_shim_pty_open(shim, err);
	else if (rc == 0)
		rc = takt_shim_lines_open(shim, err);
	return rc;
}

static int take_null(struct takt_err *err)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0)
		return takt_err_set(err, -errno, "open '/dev/null'");
	return dup2(null, STDIN_FILENO) < 0 ? takt_err_set(err, -errno, "standard input") : 0;
}

int takt_shim_io_take(const struct takt_shim *shim, uint32_t rank, struct takt_err *err)
{
	int rc;

	if (!shim->io)
		return takt_shim_log_take(shim, err);
	if (shim->io->pty)
		return takt_shim_pty_take(shim, err);
	rc = take_null(err);
	return rc < 0 ? rc : takt_shim_lines_take(shim, rank, err);
}

int takt_shim_log_take(const struct takt_shim *shim, struct takt_err *err)
{
	int rc = take_null(err);

	if (rc == 0 &&
	    (dup2(shim->logfd, STDOUT_FILENO) < 0 || dup2(shim->logfd, STDERR_FILENO) < 0))
		rc = takt_err_set(err, -errno, "standard descriptors");
	return rc;
}

static int sooner_ms(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

void takt_shim_io_wait(struct takt_shim *shim, int limit_ms)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int n;

	if (shim->io->pty)
		limit_ms = sooner_ms(limit_ms, takt_shim_pty_due_ms(shim));
	n = epoll_wait(shim->io->epollfd, events, EVENTS_AT_ONCE, limit_ms);
	for (int i = 0; i < n; i++) {
		struct takt_shim_source *source = events[i].data.ptr;

		if (source->fd >= 0) /* one before it in this round may have dropped it */
			source->ready(shim, source, events[i].events);
	}
}

void takt_shim_io_finish(struct takt_shim *shim)
{
	struct takt_shim_io *io = shim->io;

	if (!io)
		return;
	takt_shim_lines_finish(shim);
	takt_shim_pty_finish(shim);
	if (io->signal.fd >= 0)
		close(io->signal.fd);
	if (io->epollfd >= 0)
		close(io->epollfd);
	takt_free(io);
	shim->io = NULL;
}
