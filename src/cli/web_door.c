/* SPDX-License-Identifier: Apache-2.0 */
/* See web_door.h. */
#include "cli/web_door.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	NONCE_BYTES = 16,
	LOOK_MS = 100,	   /* for the child that opens the browser */
	REQUEST_MS = 1000, /* a browser may open connections on which it asks nothing */
	MAX_REQUEST = 4096,
	MAX_ANSWER = 1024,
};

static int listen_here(struct takt_err *err)
{
	const struct sockaddr_in here = {.sin_family = AF_INET,
					 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return takt_err_set(err, -errno, "make a socket for the browser");
	if (bind(fd, (const struct sockaddr *)&here, sizeof(here)) == 0 && listen(fd, 8) == 0)
		return fd;
	takt_err_set(err, -errno, "listen for the browser");
	close(fd);
	return err ? err->rc : -EIO;
}

int takt_web_door_open(struct takt_web_door *ret, struct takt_err *err)
{
	uint8_t random[NONCE_BYTES];
	char nonce[2 * NONCE_BYTES + 1];
	struct sockaddr_in here;
	socklen_t size = sizeof(here);
	int fd;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return takt_err_set(err, -EIO, "the kernel gives no random bytes");
	fd = listen_here(err);
	if (fd < 0)
		return fd;
	if (getsockname(fd, (struct sockaddr *)&here, &size) < 0) {
		close(fd);
		return takt_err_set(err, -EIO, "the socket for the browser has no port");
	}
	takt_hex_encode(random, sizeof(random), nonce);
	ret->fd = fd;
	snprintf(ret->address, sizeof(ret->address), "http://127.0.0.1:%u/%s",
		 (unsigned)ntohs(here.sin_port), nonce);
	return 0;
}

void takt_web_door_close(struct takt_web_door *door)
{
	close(door->fd);
}

/* Of a line of /proc/net/tcp: the user of the end at `theirs` whose other end is at `ours`. */
static bool is_line_of(const char *line, const struct sockaddr_in *theirs,
		       const struct sockaddr_in *ours, unsigned *ret_uid)
{
	unsigned local, local_port, far, far_port;

	return sscanf(line, "%*d: %8x:%4x %8x:%4x %*x %*x:%*x %*x:%*x %*x %u", &local, &local_port,
		      &far, &far_port, ret_uid) == 5 &&
	       local == theirs->sin_addr.s_addr && local_port == ntohs(theirs->sin_port) &&
	       far == ours->sin_addr.s_addr && far_port == ntohs(ours->sin_port);
}

static bool is_ours(int fd, const struct sockaddr_in *theirs)
{
	struct sockaddr_in ours;
	socklen_t size = sizeof(ours);
	bool found = false;
	unsigned uid = 0;
	char line[512];
	FILE *table = fopen("/proc/net/tcp", "re");

	if (!table)
		return false;
	if (getsockname(fd, (struct sockaddr *)&ours, &size) == 0)
		while (!found && fgets(line, sizeof(line), table))
			found = is_line_of(line, theirs, &ours, &uid);
	fclose(table);
	return found && uid == getuid();
}

/* The first line of what is asked for; false when it is not there in time. */
static bool read_request(int fd, char ret[MAX_REQUEST])
{
	struct pollfd there = {.fd = fd, .events = POLLIN};
	size_t len = 0;

	while (len + 1 < MAX_REQUEST) {
		ssize_t n = poll(&there, 1, REQUEST_MS) == 1
				    ? recv(fd, ret + len, MAX_REQUEST - len - 1, 0)
				    : -1;

		if (n <= 0)
			return false;
		len += (size_t)n;
		ret[len] = '\0';
		if (strstr(ret, "\r\n\r\n"))
			return true;
	}
	return false;
}

static bool asks_for(const struct takt_web_door *door, const char *request)
{
	const char *path = strchr(door->address + strlen("http://"), '/');
	size_t len = strlen(path);

	return strncmp(request, "GET ", 4) == 0 && strncmp(request + 4, path, len) == 0 &&
	       request[4 + len] == ' ';
}

static bool answer(int fd, const char *to)
{
	char text[MAX_ANSWER];
	int len = snprintf(text, sizeof(text),
			   "HTTP/1.1 %s\r\n%s%s%sCache-Control: no-store\r\n"
			   "Referrer-Policy: no-referrer\r\nContent-Length: 0\r\n"
			   "Connection: close\r\n\r\n",
			   to ? "303 See Other" : "404 Not Found", to ? "Location: " : "",
			   to ? to : "", to ? "\r\n" : "");

	return send(fd, text, (size_t)len, MSG_NOSIGNAL) == len;
}

static bool receive(const struct takt_web_door *door, const char *to)
{
	struct sockaddr_in theirs;
	socklen_t size = sizeof(theirs);
	int fd = accept4(door->fd, (struct sockaddr *)&theirs, &size, SOCK_CLOEXEC);
	char request[MAX_REQUEST];
	bool led = false;

	if (fd < 0)
		return false;
	if (is_ours(fd, &theirs) && read_request(fd, request)) {
		bool right = asks_for(door, request);

		led = answer(fd, right ? to : NULL) && right;
	}
	close(fd);
	return led;
}

/* Whether the child has ended, and how; one that goes on may be the browser itself. */
static bool has_failed(pid_t *opener)
{
	int status = 0;

	if (*opener <= 0 || waitpid(*opener, &status, WNOHANG) != *opener)
		return false;
	*opener = 0;
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

bool takt_web_door_lead(struct takt_web_door *door, const char *to, uint64_t limit_ms, pid_t opener)
{
	const struct takt_sys *sys = takt_sys_real();
	uint64_t end_ns = takt_mono_now(sys).ns + limit_ms * TAKT_NS_PER_MS;
	struct pollfd there = {.fd = door->fd, .events = POLLIN};

	while (takt_mono_now(sys).ns < end_ns) {
		if (poll(&there, 1, LOOK_MS) == 1 && receive(door, to))
			return true;
		if (has_failed(&opener))
			return false;
	}
	return false;
}
