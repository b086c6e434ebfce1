/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bw_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"

/* The listener's is shorter: who waits behind a silent one is served. */
static const uint64_t caller_waits_ns = 10 * TAKT_NS_PER_S, listener_waits_ns = 3 * TAKT_NS_PER_S;

static int wait_for(int fd, short events, struct takt_mono end, struct takt_err *err)
{
	struct pollfd one = {fd, events, 0};

	for (;;) {
		uint64_t left =
			takt_mono_elapsed_ns(end, takt_mono_now(takt_sys_real())) / TAKT_NS_PER_MS;
		int n = poll(&one, 1, (int)left);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return takt_err_set(err, -errno, "poll");
		if (left == 0)
			return takt_err_set(err, -TAKT_E_UNAVAILABLE,
					    "no answer in time; a listener serves one at a time");
	}
}

static bool is_to_wait(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static int receive(int fd, uint8_t *ret, size_t len, struct takt_mono end, struct takt_err *err)
{
	while (len > 0) {
		ssize_t n = recv(fd, ret, len, MSG_DONTWAIT);
		int rc = is_to_wait(n) ? wait_for(fd, POLLIN, end, err) : 0;

		if (rc < 0)
			return rc;
		if (n == 0 || (n < 0 && !is_to_wait(n)))
			return takt_err_set(err, -TAKT_E_UNAVAILABLE, "the connection was closed");
		ret += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int send_all(int fd, const uint8_t *bytes, size_t len, struct takt_mono end,
		    struct takt_err *err)
{
	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		int rc = is_to_wait(n) ? wait_for(fd, POLLOUT, end, err) : 0;

		if (rc < 0)
			return rc;
		if (n < 0 && !is_to_wait(n))
			return takt_err_set(err, -TAKT_E_UNAVAILABLE, "the connection was closed");
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int finish_connect(int fd, struct takt_err *err)
{
	struct takt_mono end = takt_mono_add(takt_mono_now(takt_sys_real()), caller_waits_ns);
	int failure = 0, rc = wait_for(fd, POLLOUT, end, err);
	socklen_t size = sizeof(failure);

	if (rc == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure)
		rc = takt_err_set(err, -TAKT_E_UNAVAILABLE, "%s", takt_err_sentence(-failure));
	return rc;
}

int takt_bw_connect(const union takt_rtt_address *to, const char *text, struct takt_err *err)
{
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;

	if (fd < 0)
		return takt_err_set(err, -errno, "make a socket");
	if (connect(fd, &to->any, takt_rtt_address_size(to)) < 0)
		rc = errno == EINPROGRESS ? finish_connect(fd, err)
					  : takt_err_set(err, -TAKT_E_UNAVAILABLE, "%s",
							 takt_err_sentence(-errno));
	if (rc == 0)
		return fd;
	close(fd);
	return takt_err_wrap(err, rc, "connect to %s", text);
}

int takt_bw_listen(const union takt_rtt_address *at, const char *text, struct takt_err *err)
{
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, rc;

	if (fd < 0)
		return takt_err_set(err, -errno, "make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &at->any, takt_rtt_address_size(at)) == 0 && listen(fd, 4) == 0)
		return fd;
	rc = errno == EADDRINUSE ? -TAKT_E_BUSY : -errno;
	close(fd);
	return takt_err_set(err, rc, "listen at %s%s", text,
			    rc == -TAKT_E_BUSY ? ": somebody does already" : "");
}

static int exchange_hellos(int fd, enum takt_bw_side side, const struct takt_rtt_key *key,
			   struct takt_mono end, struct takt_bw_link *ret, struct takt_err *err)
{
	struct takt_bw_hello own = {ret->cap_bits_per_s, ret->seconds, {0}}, other;
	uint8_t mine[TAKT_BW_HELLO_BYTES], theirs[TAKT_BW_HELLO_BYTES];
	int rc;

	if (getrandom(own.nonce, sizeof(own.nonce), 0) != (ssize_t)sizeof(own.nonce))
		return takt_err_set(err, -errno, "random bytes");
	takt_bw_hello_pack(&own, mine);
	rc = send_all(fd, mine, sizeof(mine), end, err);
	rc = rc < 0 ? rc : receive(fd, theirs, sizeof(theirs), end, err);
	if (rc < 0)
		return rc;
	rc = takt_bw_hello_unpack(theirs, &other);
	if (rc < 0)
		return takt_err_set(err, rc, "there is no takt net bw of this version");
	if (other.cap_bits_per_s < ret->cap_bits_per_s)
		ret->cap_bits_per_s = other.cap_bits_per_s;
	if (other.seconds < ret->seconds)
		ret->seconds = other.seconds;
	if (side == TAKT_BW_CALLER)
		takt_bw_session(key, mine, theirs, &ret->session);
	else
		takt_bw_session(key, theirs, mine, &ret->session);
	return 0;
}

static int send_proof(const struct takt_bw_link *link, enum takt_bw_side side, struct takt_mono end,
		      struct takt_err *err)
{
	uint8_t mac[TAKT_RTT_MAC];

	takt_bw_prove(&link->session, side, mac);
	return send_all(link->fd, mac, sizeof(mac), end, err);
}

static int check_proof(const struct takt_bw_link *link, enum takt_bw_side side,
		       struct takt_mono end, struct takt_err *err)
{
	uint8_t mac[TAKT_RTT_MAC];
	int rc = receive(link->fd, mac, sizeof(mac), end, err);

	if (rc < 0)
		return takt_err_wrap(err, side == TAKT_BW_LISTENER ? -EPERM : rc,
				     "no proof of the key; is it the same there?");
	return takt_bw_is_proof(&link->session, side, mac)
		       ? 0
		       : takt_err_set(err, -EPERM, "the key there is another");
}

/* Who calls proves first: a listener says nothing under the key to strangers. */
int takt_bw_meet(int fd, enum takt_bw_side side, const struct takt_rtt_key *key,
		 uint64_t cap_bits_per_s, uint32_t seconds, struct takt_bw_link *ret,
		 struct takt_err *err)
{
	bool calls = side == TAKT_BW_CALLER;
	struct takt_mono end = takt_mono_add(takt_mono_now(takt_sys_real()),
					     calls ? caller_waits_ns : listener_waits_ns);
	struct takt_bw_link link = {.fd = fd, .cap_bits_per_s = cap_bits_per_s, .seconds = seconds};
	int rc = exchange_hellos(fd, side, key, end, &link, err);

	if (rc == 0 && calls)
		rc = send_proof(&link, side, end, err);
	if (rc == 0)
		rc = check_proof(&link, calls ? TAKT_BW_LISTENER : TAKT_BW_CALLER, end, err);
	if (rc == 0 && !calls)
		rc = send_proof(&link, side, end, err);
	if (rc == 0)
		*ret = link;
	return rc;
}

int takt_bw_tell(const struct takt_bw_link *link, const struct takt_bw_note *note,
		 struct takt_err *err)
{
	uint8_t bytes[TAKT_BW_NOTE_BYTES];
	struct takt_mono end = takt_mono_add(takt_mono_now(takt_sys_real()), listener_waits_ns);

	takt_bw_note_pack(note, &link->session, bytes);
	return send_all(link->fd, bytes, sizeof(bytes), end, err);
}

int takt_bw_hear(const struct takt_bw_link *link, struct takt_mono end, struct takt_bw_note *ret,
		 struct takt_err *err)
{
	uint8_t bytes[TAKT_BW_NOTE_BYTES];
	int rc = receive(link->fd, bytes, sizeof(bytes), end, err);

	if (rc < 0)
		return rc;
	rc = takt_bw_note_unpack(bytes, &link->session, ret);
	return rc < 0 ? takt_err_set(err, rc, "what came is not the listener's word") : 0;
}
