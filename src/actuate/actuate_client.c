/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of the actuator's socket: one message a call, never waiting. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "actuate/actuate.h"
#include "base/mem.h"
#include "base/str.h"

struct takt_actuate_client {
	int fd;
};

const char *takt_actuate_gpu_state_name(enum takt_actuate_gpu_state state)
{
	static const char *const names[] = {
		[TAKT_ACTUATE_CLEAN] = "clean",	    [TAKT_ACTUATE_LEASED] = "leased",
		[TAKT_ACTUATE_CHANGED] = "changed", [TAKT_ACTUATE_ADVISE] = "advise",
		[TAKT_ACTUATE_UNKNOWN] = "unknown", [TAKT_ACTUATE_FOREIGN] = "foreign",
		[TAKT_ACTUATE_WAITING] = "waiting", [TAKT_ACTUATE_INEFFECTIVE] = "ineffective",
	};

	return (size_t)state < TAKT_ARRAY_LEN(names) ? names[state] : "unknown";
}

int takt_actuate_connect(const char *socket_path, struct takt_actuate_client **ret,
			 struct takt_err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct takt_actuate_client *client;
	int fd, rc;

	if (!takt_strcpy(address.sun_path, sizeof(address.sun_path), socket_path))
		return takt_err_set(err, -ENAMETOOLONG, "socket '%.64s...'", socket_path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return takt_err_set(err, -errno, "make a socket");
	client = takt_alloc(sizeof(*client));
	rc = client ? 0 : -ENOMEM;
	if (rc == 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		rc = -errno;
	if (rc < 0) {
		takt_free(client);
		close(fd);
		return takt_err_set(err, rc, "connect to the actuator at '%s'", socket_path);
	}
	client->fd = fd;
	*ret = client;
	return 0;
}

int takt_actuate_fd(const struct takt_actuate_client *client)
{
	return client->fd;
}

int takt_actuate_send(struct takt_actuate_client *client, struct takt_actuate_request request,
		      struct takt_err *err)
{
	request.version = TAKT_ACTUATE_VERSION;
	if (send(client->fd, &request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request))
		return 0;
	if (errno == ECONNRESET || errno == ENOTCONN)
		errno = EPIPE;
	return takt_err_set(err, -errno, "ask the actuator");
}

int takt_actuate_recv(struct takt_actuate_client *client, struct takt_actuate_reply *ret,
		      struct takt_err *err)
{
	struct takt_actuate_reply reply;
	ssize_t got;

	do {
		got = recv(client->fd, &reply, sizeof(reply), MSG_TRUNC);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return takt_err_set(err, -EPIPE, "the actuator is gone");
	if (got < 0)
		return takt_err_set(err, -errno, "hear from the actuator");
	if (got != (ssize_t)sizeof(reply) || reply.version != TAKT_ACTUATE_VERSION)
		return takt_err_set(err, -TAKT_E_VERSION,
				    "the actuator answered %zd bytes, not version %d", got,
				    TAKT_ACTUATE_VERSION);
	reply.uuid[sizeof(reply.uuid) - 1] = '\0';
	reply.message[sizeof(reply.message) - 1] = '\0';
	*ret = reply;
	return 1;
}

void takt_actuate_client_free(struct takt_actuate_client *client)
{
	if (!client)
		return;
	close(client->fd);
	takt_free(client);
}
