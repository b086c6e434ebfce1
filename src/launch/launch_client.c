/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's end of the launcher's socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "launch/launch.h"
#include "launch/launch_socket.h"
#include "launch/launch_wire.h"

struct takt_launch_client {
	int fd; /* owned */
};

int takt_launch_connect(const char *socket_path, struct takt_launch_client **ret,
			struct takt_err *err)
{
	struct takt_launch_client *client;
	struct sockaddr_un addr;
	int fd, rc;

	rc = takt_launch_address(socket_path, &addr, err);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return takt_err_set(err, -errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		rc = takt_err_set(err, -errno, "connect to the launcher at '%s'", socket_path);
		close(fd);
		return rc;
	}
	client = takt_alloc(sizeof(*client));
	if (!client) {
		close(fd);
		return takt_err_set(err, -ENOMEM, "connect to the launcher");
	}
	client->fd = fd;
	*ret = client;
	return 0;
}

int takt_launch_fd(const struct takt_launch_client *client)
{
	return client->fd;
}

int takt_launch_send(struct takt_launch_client *client, struct takt_launch_request request,
		     struct takt_err *err)
{
	ssize_t put;

	request.version = TAKT_LAUNCH_VERSION;
	do {
		put = send(client->fd, &request, sizeof(request), MSG_NOSIGNAL);
	} while (put < 0 && errno == EINTR);
	if (put == (ssize_t)sizeof(request))
		return 0;
	if (put < 0 && errno == ECONNRESET)
		errno = EPIPE;
	return takt_err_set(err, put < 0 ? -errno : -EIO, "ask the launcher");
}

int takt_launch_recv(struct takt_launch_client *client, struct takt_launch_reply *ret,
		     struct takt_err *err)
{
	unsigned char bytes[sizeof(struct takt_launch_reply)];
	ssize_t got;
	int rc;

	do {
		got = recv(client->fd, bytes, sizeof(bytes), MSG_TRUNC);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return takt_err_set(err, -EPIPE, "the launcher is gone");
	if (got < 0)
		return takt_err_set(err, -errno, "hear the launcher");
	rc = takt_launch_read_reply(bytes, (size_t)got, ret, err);
	return rc < 0 ? rc : 1;
}

void takt_launch_client_free(struct takt_launch_client *client)
{
	if (!client)
		return;
	close(client->fd);
	takt_free(client);
}
