/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets. */
#include "net/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

enum {
	BACKLOG = 1024,
	MAX_ADDRESS = 256,
};

static int unix_address(const char *path, struct sockaddr_un *ret, struct takt_err *err)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!path[0])
		return takt_err_set(err, -EINVAL, "the path of the socket is empty");
	if (!takt_strcpy(ret->sun_path, sizeof(ret->sun_path), path))
		return takt_err_set(
			err, -ENAMETOOLONG,
			"socket '%.60s...' has %zu bytes, the kernel takes at most %zu; choose "
			"a shorter directory",
			path, strlen(path), sizeof(ret->sun_path) - 1);
	return 0;
}

static int unix_socket(int *ret_fd, struct takt_err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return takt_err_set(err, -errno, "make a Unix socket");
	*ret_fd = fd;
	return 0;
}

bool takt_net_is_loopback(int fd)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {.any = {.ss_family = AF_UNSPEC}};
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return false;
	if (address.any.ss_family == AF_INET)
		return ntohl(address.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address.any.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
}

int takt_net_connect_unix(const char *path, int *ret_fd, struct takt_err *err)
{
	struct sockaddr_un address;
	int fd = -1, rc = unix_address(path, &address, err);

	if (rc == 0)
		rc = unix_socket(&fd, err);
	if (rc < 0)
		return rc;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		rc = takt_err_set(err, -errno, "connect to '%s'", path);
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/* Somebody answers, or his queue is so full that he must be there. */
static int refuse_live(const char *path, int fd, struct takt_err *err)
{
	struct ucred peer = {.pid = 0};
	socklen_t size = sizeof(peer);

	if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0)
		return takt_err_set(err, -TAKT_E_BUSY, "'%s': already running (pid %d)", path,
				    (int)peer.pid);
	return takt_err_set(err, -TAKT_E_BUSY, "'%s': already running", path);
}

/* Makes room for our socket, if what is there is a dead one. */
static int clear_path(const char *path, struct takt_err *err)
{
	struct stat st;
	int fd = -1, rc;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : takt_err_set(err, -errno, "look at '%s'", path);
	if (!S_ISSOCK(st.st_mode))
		return takt_err_set(err, -EEXIST, "'%s' is there and is not a socket", path);
	rc = takt_net_connect_unix(path, &fd, err);
	if (rc == 0 || rc == -EAGAIN) {
		rc = refuse_live(path, fd, err);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	if (rc != -ECONNREFUSED)
		return rc;
	if (unlink(path) < 0 && errno != ENOENT)
		return takt_err_set(err, -errno, "remove the dead socket '%s'", path);
	return 0;
}

int takt_net_listen_unix(const char *path, mode_t mode, int *ret_fd, struct takt_err *err)
{
	struct sockaddr_un address;
	int fd = -1, rc = unix_address(path, &address, err);

	if (rc == 0)
		rc = clear_path(path, err);
	if (rc == 0)
		rc = unix_socket(&fd, err);
	if (rc < 0)
		return rc;
	/* Until listen() nobody gets in, so the mode may follow the bind. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		rc = takt_err_set(err, errno == EADDRINUSE ? -TAKT_E_BUSY : -errno, "bind '%s'",
				  path);
	else if (chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0)
		rc = takt_err_set(err, -errno, "listen on '%s'", path);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/* "[::1]:80" into "::1" and "80". */
static int split_address(const char *address, char host[MAX_ADDRESS], const char **ret_port,
			 struct takt_err *err)
{
	const char *colon = strrchr(address, ':');
	unsigned long long port;
	size_t len;

	if (!colon || takt_parse_u64(colon + 1, 0, 65535, &port) < 0)
		return takt_err_set(err, -EINVAL,
				    "address '%s' must end in a colon and a port from 0 to 65535",
				    address);
	len = (size_t)(colon - address);
	if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
		address++;
		len -= 2;
	} else if (memchr(address, ':', len)) {
		return takt_err_set(err, -EINVAL, "address '%s': write IPv6 as [::1]:PORT",
				    address);
	}
	if (len >= MAX_ADDRESS)
		return takt_err_set(err, -ENAMETOOLONG, "address '%.40s...' is too long", address);
	memcpy(host, address, len);
	host[len] = '\0';
	*ret_port = colon + 1;
	return 0;
}

static int listen_at(const struct addrinfo *info)
{
	int on = 1, rc;
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static unsigned port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	char port[8] = "0";
	unsigned long long value = 0;

	if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
		(void)getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof(port),
				  NI_NUMERICSERV);
	(void)takt_parse_u64(port, 0, 65535, &value);
	return (unsigned)value;
}

int takt_net_listen_tcp(const char *address, int *ret_fd, unsigned *ret_port, struct takt_err *err)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	struct addrinfo *list = NULL;
	char host[MAX_ADDRESS];
	const char *port = NULL;
	int fd, rc = split_address(address, host, &port, err);

	if (rc < 0)
		return rc;
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
	if (rc != 0)
		return takt_err_set(err, -EADDRNOTAVAIL, "address '%s': %s", address,
				    gai_strerror(rc));
	fd = listen_at(list);
	freeaddrinfo(list);
	if (fd < 0)
		return takt_err_set(
			err, fd == -EADDRINUSE ? -TAKT_E_BUSY : fd, "listen on %s: %s", address,
			fd == -EADDRINUSE ? "another program has the port" : takt_err_sentence(fd));
	*ret_fd = fd;
	if (ret_port)
		*ret_port = port_of(fd);
	return 0;
}
