/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its answer over the daemon's Unix socket. While an answer is awaited a signal's
 * descriptor is watched, too. A connection is kept for the next question; what changes something
 * goes over a new one, so that nobody has to guess whether it arrived before an old one ended.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/pace.h"
#include "base/sys.h"
#include "client/client_impl.h"
#include "client/http_answer.h"

enum {
	ANSWER_MS = 60000, /* without any waiting that was asked for */
	CONNECT_MS = 10000,
	READ_BYTES = 16384,
	MAX_HEAD = 1024,
};

/* To a socket that many wait at. */
static const struct takt_pace crowd = {10 * TAKT_NS_PER_MS, 100 * TAKT_NS_PER_MS};

static struct takt_mono in_ms(uint64_t ms)
{
	return takt_mono_add(takt_mono_now(takt_sys_real()), ms * TAKT_NS_PER_MS);
}

/* -1 is no descriptor. */
static void hang_up(struct takt_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

/* Until `events` of `fd` (-1 = until max_ms is over); -ETIMEDOUT at the deadline, -ECANCELED when
 * woken() says so. */
static int wait_for(struct takt_client *client, int fd, short events, uint64_t max_ms,
		    struct takt_mono deadline)
{
	struct pollfd fds[] = {{fd, events, 0}, {client->wake_fd, POLLIN, 0}};
	struct takt_mono now = takt_mono_now(takt_sys_real());
	uint64_t left_ms = deadline.ns > now.ns ? (deadline.ns - now.ns) / TAKT_NS_PER_MS + 1 : 0;

	if (left_ms == 0)
		return -ETIMEDOUT;
	if (poll(fds, 2, (int)(left_ms < max_ms ? left_ms : max_ms)) < 0 && errno != EINTR)
		return -errno;
	return (fds[1].revents & POLLIN) && client->woken(client->wake_ctx) < 0 ? -ECANCELED : 0;
}

static int wait_in_crowd(struct takt_client *client, uint32_t tries, struct takt_mono deadline)
{
	return wait_for(client, -1, 0, takt_pace_ns(&crowd, tries) / TAKT_NS_PER_MS, deadline);
}

/* An error of connect is told from others by being -ECONNREFUSED. */
static int connect_anew(struct takt_client *client)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct takt_mono deadline = in_ms(CONNECT_MS);
	uint32_t tries = 0;
	int rc = 0;

	hang_up(client);
	takt_strcpy(address.sun_path, sizeof(address.sun_path), client->socket);
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (client->fd < 0)
		return -errno;
	while (rc == 0 && connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		rc = errno == EAGAIN ? wait_in_crowd(client, tries++, deadline) : -ECONNREFUSED;
	return rc;
}

/* One that waits for a question; the other end may have ended it, or said something unasked. */
static bool is_kept(const struct takt_client *client)
{
	struct pollfd seen = {client->fd, POLLIN, 0};

	return client->fd >= 0 && poll(&seen, 1, 0) == 0;
}

/* Who does not want all of it may have answered already. */
static int send_all(struct takt_client *client, const char *bytes, size_t len,
		    struct takt_mono deadline)
{
	int rc = 0;

	while (rc == 0 && len > 0) {
		ssize_t n = send(client->fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			break;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
		if (n < 0)
			rc = wait_for(client, client->fd, POLLOUT, ANSWER_MS, deadline);
	}
	return rc;
}

static void do_meanwhile(struct takt_client *client)
{
	void (*meanwhile)(void) = client->meanwhile;

	client->meanwhile = NULL;
	if (meanwhile)
		meanwhile();
}

static int receive(struct takt_client *client, struct takt_mono deadline, bool *ret_silent)
{
	char bytes[READ_BYTES];
	int rc = 0;

	*ret_silent = true;
	while (rc == 0 && !client->answer.whole) {
		ssize_t n = recv(client->fd, bytes, sizeof(bytes), 0);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0)
			rc = wait_for(client, client->fd, POLLIN, ANSWER_MS, deadline);
		else
			rc = takt_answer_take(&client->answer, bytes, (size_t)n);
		*ret_silent &= n <= 0;
	}
	return rc;
}

static int write_request(const char *path, const char *body, struct takt_str *out)
{
	takt_str_addf(out, "%s %s HTTP/1.1\r\nHost: takt\r\n", body ? "POST" : "GET", path);
	if (body)
		takt_str_addf(out,
			      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			      strlen(body), body);
	else
		takt_str_add(out, "\r\n");
	return out->rc;
}

/* *ret_again: the connection was an old one, and nobody heard the question. */
static int try_once(struct takt_client *client, const struct takt_str *request, uint32_t wait_ms,
		    bool kept, bool *ret_again)
{
	struct takt_mono deadline = in_ms((uint64_t)ANSWER_MS + wait_ms);
	bool silent = false;
	int rc = kept ? 0 : connect_anew(client);

	takt_answer_init(&client->answer, &client->body);
	if (rc == 0)
		rc = send_all(client, request->s, request->len, deadline);
	if (rc == 0) {
		do_meanwhile(client);
		rc = receive(client, deadline, &silent);
	}
	if (rc < 0 || !http_should_keep_alive(&client->answer.parser))
		hang_up(client);
	*ret_again = kept && silent && rc < 0 && rc != -ECANCELED && rc != -ETIMEDOUT;
	return rc;
}

static int transfer(struct takt_client *client, const char *path, const char *body,
		    uint32_t wait_ms)
{
	TAKT_CLEANUP(strp) struct takt_str request = TAKT_STR(TAKT_VIEW_MAX_BYTES + MAX_HEAD);
	int rc = write_request(path, body, &request);
	bool again;

	if (rc < 0)
		return rc;
	rc = try_once(client, &request, wait_ms, !body && is_kept(client), &again);
	if (again)
		rc = try_once(client, &request, wait_ms, false, &again);
	return rc;
}

static int explain_failure(const struct takt_client *client, int rc, struct takt_err *err)
{
	switch (rc) {
	case -ECANCELED:
		return takt_err_set(err, rc, "interrupted");
	case -ENOMEM:
		return takt_err_set(err, rc, "no memory for the answer of takt");
	case -TAKT_E_LIMIT:
		return takt_err_set(err, rc, "the answer of takt is over %d bytes",
				    TAKT_VIEW_MAX_BYTES);
	case -ECONNREFUSED:
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "no takt answers on '%s'; 'takt serve' starts one",
				    client->socket);
	case -ETIMEDOUT:
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "takt on '%s' does not answer",
				    client->socket);
	default:
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "lost the connection to takt on '%s': %s", client->socket,
				    takt_err_sentence(rc));
	}
}

/* What the daemon said, or that it is no takt that answers. */
static int check_status(struct takt_client *client, unsigned status, struct takt_err *err)
{
	struct takt_err said;

	if (status >= 200 && status < 300)
		return 0;
	if (takt_error_from_json(takt_str_text(&client->body), client->body.len, &said) < 0)
		return takt_err_set(err, -EPROTO,
				    "what answers on '%s' is no takt (HTTP status %u)",
				    client->socket, status);
	if (err)
		*err = said;
	return said.rc;
}

int takt_client_exchange(struct takt_client *client, const char *path, const char *body,
			 uint32_t wait_ms, struct takt_err *err)
{
	int rc;

	takt_str_reset(&client->body);
	rc = transfer(client, path, body, wait_ms);
	return rc == 0 ? check_status(client, client->answer.parser.status_code, err)
		       : explain_failure(client, rc, err);
}
