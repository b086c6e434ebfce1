/* SPDX-License-Identifier: Apache-2.0 */
/* One terminal joined with another: bytes both ways, the size one way, until somebody leaves. */
#include "cli/job_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "base/terminal.h"

enum {
	POLL_KEYS,
	POLL_SOCKET,
	POLL_SIGNAL,
	POLL_COUNT
};

struct sitting {
	int fd; /* owned: the socket */
	int signal_fd;
	int key;
	struct termios was; /* of our terminal */
	sigset_t mask_was;
	bool over;
	enum takt_terminal_end end;
};

int takt_terminal_key(const char *text, int *ret, struct takt_err *err)
{
	*ret = -1;
	if (strcmp(text, "none") == 0)
		return 0;
	if (text[0] != '^' || text[1] < '@' || text[1] > '_' || text[2])
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--detach-key' must be ^A to ^_ such as ^], or none, not "
				    "'%.20s'",
				    text);
	*ret = text[1] & 0x1f;
	return 0;
}

int takt_terminal_check(struct takt_err *err)
{
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "standard input and output must be a terminal to join with the job's");
}

/* The shim is root's where the attempt's directory is, else the user's. */
static bool is_shims(int fd, int dirfd, uint32_t uid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       fstat(dirfd, &st) == 0 && peer.uid == st.st_uid &&
	       (st.st_uid == 0 || st.st_uid == uid);
}

/* By way of its directory, since a path of any length would not fit into an address. */
static int connect_to(const char *path, uint32_t uid, struct takt_err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *name = strrchr(path, '/');
	char dir[4096];
	int dirfd, fd, rc = 0;

	snprintf(dir, sizeof(dir), "%.*s", (int)(name - path), path);
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return takt_err_set(err, -errno, "the job's terminal, '%s'", path);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d%s", dirfd, name);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		rc = takt_err_set(err, -errno, "the job's terminal, '%s'", path);
	else if (!is_shims(fd, dirfd, uid))
		rc = takt_err_set(err, -EPERM, "'%s' is not a terminal of this job", path);
	close(dirfd);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

static void tell_size(const struct sitting *sitting)
{
	struct winsize size;
	struct takt_terminal_size ours;
	char message[1 + sizeof(ours)] = {TAKT_TERMINAL_SIZE};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		return;
	ours = (struct takt_terminal_size){.rows = size.ws_row, .columns = size.ws_col};
	memcpy(message + 1, &ours, sizeof(ours));
	(void)send(sitting->fd, message, sizeof(message), MSG_NOSIGNAL);
}

static void leave(struct sitting *sitting, enum takt_terminal_end end)
{
	sitting->over = true;
	sitting->end = end;
}

/* What stands before the key still goes to the job. */
static void take_keys(struct sitting *sitting)
{
	char message[1 + TAKT_TERMINAL_MAX] = {TAKT_TERMINAL_DATA};
	ssize_t got = read(STDIN_FILENO, message + 1, TAKT_TERMINAL_MAX);
	const char *key = NULL;

	if (got < 0 && errno == EINTR)
		return;
	if (got > 0 && sitting->key >= 0)
		key = memchr(message + 1, sitting->key, (size_t)got);
	if (got <= 0 || key)
		leave(sitting, TAKT_TERMINAL_DETACHED);
	if (key)
		got = key - message - 1;
	if (got > 0)
		(void)send(sitting->fd, message, 1 + (size_t)got, MSG_NOSIGNAL);
}

static void show(const char *text, size_t len)
{
	struct takt_err err;

	(void)takt_cli_write(text, len, &err);
}

static void take_message(struct sitting *sitting)
{
	char message[1 + TAKT_TERMINAL_MAX];
	ssize_t got = recv(sitting->fd, message, sizeof(message), 0);

	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0) {
		leave(sitting, TAKT_TERMINAL_LOST);
		return;
	}
	switch (message[0]) {
	case TAKT_TERMINAL_DATA:
		show(message + 1, (size_t)got - 1);
		break;
	case TAKT_TERMINAL_NOTICE:
		fprintf(stderr, "\r\ntakt: %.*s\r\n", (int)got - 1, message + 1);
		break;
	case TAKT_TERMINAL_TAKEN:
		leave(sitting, TAKT_TERMINAL_TAKEN_OVER);
		break;
	case TAKT_TERMINAL_OVER:
		leave(sitting, TAKT_TERMINAL_ENDED);
		break;
	default:
		break;
	}
}

static void take_signal(struct sitting *sitting)
{
	struct signalfd_siginfo info;

	if (read(sitting->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		tell_size(sitting);
	else
		leave(sitting, TAKT_TERMINAL_DETACHED);
}

static void join(struct sitting *sitting)
{
	struct pollfd fds[POLL_COUNT] = {
		[POLL_KEYS] = {.fd = STDIN_FILENO, .events = POLLIN},
		[POLL_SOCKET] = {.fd = sitting->fd, .events = POLLIN},
		[POLL_SIGNAL] = {.fd = sitting->signal_fd, .events = POLLIN},
	};

	tell_size(sitting);
	while (!sitting->over) {
		if (poll(fds, POLL_COUNT, -1) < 0)
			continue;
		if (fds[POLL_SIGNAL].revents)
			take_signal(sitting);
		if (fds[POLL_SOCKET].revents && !sitting->over)
			take_message(sitting);
		if (fds[POLL_KEYS].revents && !sitting->over)
			take_keys(sitting);
	}
}

/* Signals that end us must not leave the terminal raw. */
static int prepare(struct sitting *sitting, struct takt_err *err)
{
	static const int watched[] = {SIGWINCH, SIGHUP, SIGTERM, SIGINT, SIGQUIT};
	struct termios raw;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(watched); i++)
		sigaddset(&set, watched[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &sitting->mask_was);
	sitting->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sitting->signal_fd < 0 || tcgetattr(STDIN_FILENO, &sitting->was) < 0)
		return takt_err_set(err, -errno, "take this terminal");
	raw = sitting->was;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return takt_err_set(err, -errno, "take this terminal");
	return 0;
}

int takt_terminal_sit(const char *path, uint32_t uid, int key, enum takt_terminal_end *ret,
		      struct takt_err *err)
{
	struct sitting sitting = {.signal_fd = -1, .key = key};
	int rc;

	sitting.fd = connect_to(path, uid, err);
	if (sitting.fd < 0)
		return sitting.fd;
	rc = prepare(&sitting, err);
	if (rc == 0) {
		join(&sitting);
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &sitting.was);
		*ret = sitting.end;
	}
	if (sitting.signal_fd >= 0)
		close(sitting.signal_fd);
	(void)sigprocmask(SIG_SETMASK, &sitting.mask_was, NULL);
	close(sitting.fd);
	return rc;
}
