/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of a job, for shells and whatever wants one. The shim owns its master side, so that
 * it outlives whoever sits at it; what the job writes goes to the log and to him. Nobody waits for
 * a client that does not read: after a while he has to come again, and finds the rest in the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/terminal.h"
#include "launch/shim_io.h"

enum {
	FIRST_ROWS = 24, /* until somebody comes who knows better */
	FIRST_COLUMNS = 80,
	SLOW_MS = 5000,
	PATIENCE_MS = 1000,
	TERMINAL_HOLDS = 64 * 1024, /* at least what the kernel keeps of one, in bytes */
	TOUCH_MS = 1000,
	NAME_MAX_BYTES = 64,
};

struct takt_shim_pty {
	struct takt_shim_source master; /* fds owned */
	struct takt_shim_source door;	/* where clients come in */
	struct takt_shim_source client; /* who sits here; -1 = nobody */
	int slave;			/* owned: keeps the master free of hang-ups; -1 = none */
	char name[NAME_MAX_BYTES];	/* of the slave */
	size_t out_len;			/* a message that the client has not taken yet */
	char out[1 + TAKT_TERMINAL_MAX];
	struct takt_boot slow_since;
	bool patient;	      /* sending waits for him: the job is over */
	size_t in_at, in_len; /* what the job has not taken yet */
	char in[1 + TAKT_TERMINAL_MAX];
	struct takt_boot touched; /* when the log was last marked as used */
};

static struct takt_shim_pty *pty_of(const struct takt_shim *shim)
{
	return shim->io ? shim->io->pty : NULL;
}

/* A client that has not taken its last message holds up the output, and nobody the input. */
static void set_waits(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);
	bool in = pty->in_at < pty->in_len;

	takt_shim_watch_for(shim, &pty->master, (pty->out_len ? 0 : EPOLLIN) | (in ? EPOLLOUT : 0));
	if (pty->client.fd >= 0)
		takt_shim_watch_for(shim, &pty->client,
				    (in ? 0 : EPOLLIN) | (pty->out_len ? EPOLLOUT : 0));
}

static void drop_client(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);

	takt_shim_drop(shim, &pty->client);
	pty->out_len = 0;
	set_waits(shim);
}

static void send_out(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);
	ssize_t put;

	do
		put = send(pty->client.fd, pty->out, pty->out_len,
			   MSG_NOSIGNAL | (pty->patient ? 0 : MSG_DONTWAIT));
	while (put < 0 && errno == EINTR);
	if (put >= 0)
		pty->out_len = 0;
	else if (errno != EAGAIN && errno != ENOBUFS)
		drop_client(shim);
	set_waits(shim);
}

/* One message to the client, or into the room for one. */
static void tell(struct takt_shim *shim, char what, const char *text, size_t len)
{
	struct takt_shim_pty *pty = pty_of(shim);

	if (pty->client.fd < 0 || pty->out_len)
		return;
	pty->out[0] = what;
	memcpy(pty->out + 1, text, len);
	pty->out_len = len + 1;
	pty->slow_since = takt_boot_now(shim->sys);
	send_out(shim);
}

/* How much was moved. */
static size_t move_output(struct takt_shim *shim)
{
	char bytes[TAKT_TERMINAL_MAX];
	ssize_t got;

	do
		got = read(pty_of(shim)->master.fd, bytes, sizeof(bytes));
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return 0;
	takt_shim_log(shim, bytes, (size_t)got);
	tell(shim, TAKT_TERMINAL_DATA, bytes, (size_t)got);
	return (size_t)got;
}

static void move_input(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);
	ssize_t put = 0;

	while (pty->in_at < pty->in_len && put >= 0) {
		put = write(pty->master.fd, pty->in + pty->in_at, pty->in_len - pty->in_at);
		if (put > 0)
			pty->in_at += (size_t)put;
	}
	if (put < 0 && errno != EAGAIN && errno != EINTR)
		pty->in_at = pty->in_len;
	set_waits(shim);
}

static void ready_master(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events)
{
	(void)source;
	if (events & EPOLLOUT)
		move_input(shim);
	if (events & EPOLLIN)
		(void)move_output(shim);
}

/* Whether a job is idle is told by its log; typing counts, also where it is not echoed. */
static void touch(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);
	struct takt_boot now = takt_boot_now(shim->sys);

	if (takt_boot_elapsed_ns(now, pty->touched) < TOUCH_MS * TAKT_NS_PER_MS)
		return;
	pty->touched = now;
	(void)futimens(shim->logfd, NULL);
}

/* One of the same size still has the program draw its picture again. */
static void set_size(struct takt_shim *shim, const struct takt_terminal_size *wanted)
{
	struct winsize size, was = {0};
	int master = pty_of(shim)->master.fd;
	pid_t group = tcgetpgrp(master);

	size = (struct winsize){.ws_row = wanted->rows, .ws_col = wanted->columns};
	(void)ioctl(master, TIOCGWINSZ, &was);
	(void)ioctl(master, TIOCSWINSZ, &size);
	if (was.ws_row == size.ws_row && was.ws_col == size.ws_col && group > 0)
		(void)kill(-group, SIGWINCH);
}

static void take_message(struct takt_shim *shim, size_t len)
{
	struct takt_shim_pty *pty = pty_of(shim);
	struct takt_terminal_size size;

	pty->in_at = pty->in_len = 0;
	if (pty->in[0] == TAKT_TERMINAL_DATA) {
		pty->in_at = 1;
		pty->in_len = len;
		touch(shim);
		move_input(shim);
	} else if (pty->in[0] == TAKT_TERMINAL_SIZE && len == 1 + sizeof(size)) {
		memcpy(&size, pty->in + 1, sizeof(size));
		set_size(shim, &size);
	}
}

static void ready_client(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events)
{
	struct takt_shim_pty *pty = pty_of(shim);
	ssize_t got;

	if (events & EPOLLOUT && pty->out_len)
		send_out(shim);
	if (source->fd < 0 || (!(events & EPOLLIN) && !(events & (EPOLLHUP | EPOLLERR))))
		return;
	got = events & EPOLLIN ? recv(source->fd, pty->in, sizeof(pty->in), MSG_DONTWAIT) : 0;
	if (got > 0)
		take_message(shim, (size_t)got);
	else if (got == 0 || errno != EAGAIN)
		drop_client(shim);
}

/* The end of what was written so far, from the start of a line. */
static void show_past(struct takt_shim *shim)
{
	char text[TAKT_TERMINAL_MAX], *from = text;
	int fd = openat(shim->dirfd, "log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	off_t start = size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0;
	ssize_t got = size > 0 ? pread(fd, text, sizeof(text), start) : 0;

	if (start > 0 && got > 0)
		from = memchr(text, '\n', (size_t)got);
	if (got > 0 && from)
		tell(shim, TAKT_TERMINAL_DATA, from, (size_t)(text + got - from));
	if (fd >= 0)
		close(fd);
}

/* The job's user and root; the socket's mode says the same. */
static bool may_sit(const struct takt_shim *shim, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == (shim->user->other ? shim->user->uid : geteuid()) || peer.uid == 0);
}

static void ready_door(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events)
{
	struct takt_shim_pty *pty = pty_of(shim);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	if (!may_sit(shim, fd)) {
		close(fd);
		return;
	}
	tell(shim, TAKT_TERMINAL_TAKEN, "", 0);
	drop_client(shim);
	pty->client.fd = fd;
	if (takt_shim_watch(shim, &pty->client, EPOLLIN) < 0) {
		drop_client(shim);
		return;
	}
	show_past(shim);
}

static int open_pair(struct takt_shim_pty *pty, struct takt_err *err)
{
	struct winsize size = {.ws_row = FIRST_ROWS, .ws_col = FIRST_COLUMNS};
	int master = pty->master.fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
	    ptsname_r(master, pty->name, sizeof(pty->name)) != 0 ||
	    ioctl(master, TIOCSWINSZ, &size) < 0)
		return takt_err_set(err, -errno, "make a terminal");
	pty->slave = open(pty->name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return pty->slave < 0 ? takt_err_set(err, -errno, "open terminal '%s'", pty->name) : 0;
}

/* By way of the descriptor, since a path of any length would not fit into an address. */
static void name_socket(const struct takt_shim *shim, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" TAKT_TERMINAL_SOCKET,
		 shim->dirfd);
}

static int open_door(struct takt_shim *shim, struct takt_err *err)
{
	struct sockaddr_un address;
	mode_t mask = umask(0177);
	int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = 0;

	pty_of(shim)->door.fd = door;
	name_socket(shim, &address);
	(void)unlinkat(shim->dirfd, TAKT_TERMINAL_SOCKET, 0);
	if (door < 0 || bind(door, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(door, 4) < 0)
		rc = -errno;
	(void)umask(mask);
	return rc < 0 ? takt_err_set(err, rc, "listen for whoever sits at the terminal") : 0;
}

int takt_shim_pty_open(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_shim_pty *pty = takt_zalloc(sizeof(*pty));
	int rc;

	if (!pty)
		return takt_err_set(err, -ENOMEM, "no memory for a terminal");
	shim->io->pty = pty;
	pty->slave = -1;
	pty->master = (struct takt_shim_source){.fd = -1, .ready = ready_master};
	pty->door = (struct takt_shim_source){.fd = -1, .ready = ready_door};
	pty->client = (struct takt_shim_source){.fd = -1, .ready = ready_client};
	rc = open_pair(pty, err);
	if (rc == 0)
		rc = open_door(shim, err);
	if (rc == 0 && (takt_shim_watch(shim, &pty->master, EPOLLIN) < 0 ||
			takt_shim_watch(shim, &pty->door, EPOLLIN) < 0))
		rc = takt_err_set(err, -errno, "wait for a terminal");
	return rc;
}

int takt_shim_pty_take(const struct takt_shim *shim, struct takt_err *err)
{
	const struct takt_shim_pty *pty = pty_of(shim);
	int slave = open(pty->name, O_RDWR | O_CLOEXEC); /* ours: we lead a session without one */

	if (slave < 0)
		return takt_err_set(err, -errno, "open terminal '%s'", pty->name);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(slave, fd) < 0)
			return takt_err_set(err, -errno, "standard descriptors");
	return 0;
}

int takt_shim_pty_due_ms(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);
	uint64_t waits_ms;

	if (pty->out_len == 0)
		return -1;
	waits_ms = takt_boot_elapsed_ns(takt_boot_now(shim->sys), pty->slow_since) / TAKT_NS_PER_MS;
	if (waits_ms < SLOW_MS)
		return (int)(SLOW_MS - waits_ms);
	drop_client(shim);
	return -1;
}

/* Whether a job is idle is told by when its log was last written to: not by us. */
static void note_unseen(const struct takt_shim *shim, const char *text)
{
	struct stat st;

	if (fstat(shim->logfd, &st) < 0)
		return;
	takt_shim_note(shim, "%s", text);
	(void)futimens(shim->logfd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, st.st_mtim});
}

void takt_shim_notice_idle(struct takt_shim *shim, uint32_t seconds)
{
	char text[120];
	int len = snprintf(text, sizeof(text),
			   "nothing is done here: the job is ended in %u s unless it is used",
			   seconds);

	note_unseen(shim, text);
	if (pty_of(shim))
		tell(shim, TAKT_TERMINAL_NOTICE, text, (size_t)len);
}

/* The last words wait a moment for a client that is behind. */
static void be_patient(struct takt_shim_pty *pty)
{
	struct timeval patience = {.tv_usec = PATIENCE_MS * 1000 / 2};

	pty->patient = true;
	if (pty->client.fd < 0)
		return;
	(void)fcntl(pty->client.fd, F_SETFL, 0);
	(void)setsockopt(pty->client.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* What the terminal holds and no more: who opened it by its name may go on writing. */
static void finish_output(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);
	struct takt_boot began = takt_boot_now(shim->sys);
	size_t got = 1, moved = 0;

	be_patient(pty);
	while (got > 0 && moved < TERMINAL_HOLDS) {
		if (pty->out_len)
			send_out(shim);
		if (pty->out_len || takt_boot_elapsed_ns(takt_boot_now(shim->sys), began) >=
					    PATIENCE_MS * TAKT_NS_PER_MS)
			drop_client(shim);
		got = pty->master.fd >= 0 ? move_output(shim) : 0;
		moved += got;
	}
	tell(shim, TAKT_TERMINAL_OVER, "", 0);
}

void takt_shim_pty_finish(struct takt_shim *shim)
{
	struct takt_shim_pty *pty = pty_of(shim);

	if (!pty)
		return;
	finish_output(shim);
	takt_shim_drop(shim, &pty->client);
	takt_shim_drop(shim, &pty->door);
	takt_shim_drop(shim, &pty->master);
	if (pty->slave >= 0)
		close(pty->slave);
	(void)unlinkat(shim->dirfd, TAKT_TERMINAL_SOCKET, 0);
	takt_free(pty);
	shim->io->pty = NULL;
}
