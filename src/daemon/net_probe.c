/* SPDX-License-Identifier: Apache-2.0 */
/* The thread has the socket; what it counts lies behind a mutex that is held for microseconds. */
#include "daemon/net_probe.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/worker.h"
#include "rtt/rtt.h"

static const uint64_t every_ns = TAKT_NS_PER_S;

enum {
	SILENT_AFTER = 3, /* lost in a row */
	AT_ONCE = 64,	  /* datagrams read before the clock is looked at again */
};

struct takt_net_probe {
	int fd, stop_fd;
	pthread_t thread;
	struct takt_rtt_peers peers;
	pthread_mutex_t lock;
	struct takt_rtt rtt;
};

static struct takt_mono now_mono(void)
{
	return takt_mono_now(takt_sys_real());
}

static uint32_t peer_at(const struct takt_rtt_peers *peers, const union takt_rtt_address *from)
{
	for (uint32_t i = 0; i < peers->count; i++)
		if (takt_rtt_same_address(&peers->peer[i].address, from))
			return i;
	return UINT32_MAX;
}

/* What cannot be sent is lost like what was sent and not answered. */
static void send_to(struct takt_net_probe *probe, uint32_t peer, const uint8_t *bytes)
{
	const union takt_rtt_address *to = &probe->peers.peer[peer].address;

	(void)!sendto(probe->fd, bytes, TAKT_RTT_BYTES, 0, &to->any, takt_rtt_address_size(to));
}

static void ask(struct takt_net_probe *probe, uint32_t peer)
{
	uint8_t bytes[TAKT_RTT_BYTES];

	pthread_mutex_lock(&probe->lock);
	takt_rtt_ask(&probe->rtt, peer, now_mono(), bytes);
	pthread_mutex_unlock(&probe->lock);
	send_to(probe, peer, bytes);
}

/* Whether there was a datagram. */
static bool hear_one(struct takt_net_probe *probe)
{
	uint8_t bytes[TAKT_RTT_BYTES + 1], back[TAKT_RTT_BYTES];
	union takt_rtt_address from;
	socklen_t size = sizeof(from);
	ssize_t n = recvfrom(probe->fd, bytes, sizeof(bytes), 0, &from.any, &size);
	struct takt_mono now = now_mono();
	uint32_t peer;
	bool has_reply;

	if (n < 0)
		return false;
	peer = peer_at(&probe->peers, &from);
	pthread_mutex_lock(&probe->lock);
	has_reply = takt_rtt_hear(&probe->rtt, peer, bytes, (size_t)n, now, back);
	pthread_mutex_unlock(&probe->lock);
	if (has_reply)
		send_to(probe, peer, back);
	return true;
}

/* Until the next peer is due, or to the end; false: it has come. */
static bool wait_until(const struct takt_net_probe *probe, struct takt_mono due)
{
	struct pollfd fds[] = {{probe->fd, POLLIN, 0}, {probe->stop_fd, POLLIN, 0}};
	uint64_t left = takt_mono_elapsed_ns(due, now_mono());
	struct timespec limit = {(time_t)(left / TAKT_NS_PER_S), (long)(left % TAKT_NS_PER_S)};

	(void)ppoll(fds, TAKT_ARRAY_LEN(fds), probe->peers.count ? &limit : NULL, NULL);
	return fds[1].revents == 0;
}

/* Peers take turns through the second, so that no probe waits for another's answer to be read. */
static void *probe_main(void *opaque)
{
	struct takt_net_probe *probe = opaque;
	uint64_t step_ns = probe->peers.count ? every_ns / probe->peers.count : every_ns;
	struct takt_mono due = now_mono();
	uint32_t next = 0;

	while (wait_until(probe, due)) {
		for (int i = 0; i < AT_ONCE && hear_one(probe); i++)
			;
		if (probe->peers.count == 0 || now_mono().ns < due.ns)
			continue;
		ask(probe, next);
		next = (next + 1) % probe->peers.count;
		due = takt_mono_add(now_mono(), step_ns);
	}
	return NULL;
}

static int open_socket(struct takt_net_probe *probe, const union takt_rtt_address *at,
		       const char *text, struct takt_err *err)
{
	int on = 1;

	probe->fd = socket(at->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe->fd < 0)
		return takt_err_set(err, -errno, "net_listen: make a socket");
	if (at->any.sa_family == AF_INET6)
		(void)setsockopt(probe->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(probe->fd, &at->any, takt_rtt_address_size(at)) < 0)
		return takt_err_set(err, errno == EADDRINUSE ? -TAKT_E_BUSY : -errno,
				    "net_listen: %s", text);
	probe->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return probe->stop_fd < 0 ? takt_err_set(err, -errno, "eventfd") : 0;
}

static int init_rtt(struct takt_net_probe *probe, const char *key_file, struct takt_err *err)
{
	uint8_t secret[TAKT_RTT_SECRET];
	struct takt_rtt_key key;
	int rc;

	if (!key_file[0])
		return takt_err_set(err, -TAKT_E_USAGE,
				    "net_listen needs net_key_file, a file that each peer has");
	rc = takt_rtt_key_read(key_file, &key, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "net_key_file");
	if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return takt_err_set(err, -errno, "random bytes");
	takt_rtt_init(&probe->rtt, probe->peers.count, &key, secret);
	return 0;
}

static int open_parts(struct takt_net_probe *probe, const struct takt_config *config,
		      struct takt_err *err)
{
	union takt_rtt_address at;
	int rc = takt_rtt_address_parse(config->net_listen, &at, err);

	if (rc < 0)
		return takt_err_wrap(err, rc, "net_listen");
	rc = takt_rtt_peers_parse(config->net_peers, at.any.sa_family, &probe->peers, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "net_peers");
	rc = init_rtt(probe, config->net_key_file, err);
	return rc < 0 ? rc : open_socket(probe, &at, config->net_listen, err);
}

static void free_probe(struct takt_net_probe *probe)
{
	if (probe->fd >= 0)
		close(probe->fd);
	if (probe->stop_fd >= 0)
		close(probe->stop_fd);
	pthread_mutex_destroy(&probe->lock);
	takt_free(probe);
}

int takt_net_probe_open(struct takt_daemon *daemon, struct takt_err *err)
{
	struct takt_net_probe *probe;
	int rc;

	if (strcmp(daemon->config.net_listen, "off") == 0)
		return 0;
	probe = takt_zalloc(sizeof(*probe));
	if (!probe)
		return takt_err_set(err, -ENOMEM, "round trips");
	probe->fd = probe->stop_fd = -1;
	pthread_mutex_init(&probe->lock, NULL);
	rc = open_parts(probe, &daemon->config, err);
	if (rc == 0) {
		rc = takt_worker_thread(&probe->thread, "round-trips", probe_main, probe);
		if (rc < 0)
			takt_err_set(err, rc, "the thread of round trips");
	}
	if (rc < 0)
		free_probe(probe);
	else
		daemon->net_probe = probe;
	return rc;
}

void takt_net_probe_close(struct takt_net_probe *probe)
{
	const uint64_t one = 1;

	if (!probe)
		return;
	(void)!write(probe->stop_fd, &one, sizeof(one));
	pthread_join(probe->thread, NULL);
	free_probe(probe);
}

void takt_net_probe_update_page(struct takt_daemon *daemon)
{
	struct takt_trips *trips = takt_telemetry_trips(daemon->telemetry);
	struct takt_net_probe *probe = daemon->net_probe;

	if (!probe)
		return;
	pthread_mutex_lock(&probe->lock);
	trips->peer_count = probe->peers.count;
	for (uint32_t i = 0; i < probe->peers.count; i++) {
		takt_strcpy(trips->peer[i].name, sizeof(trips->peer[i].name),
			    probe->peers.peer[i].name);
		trips->peer[i].lost = probe->rtt.peer[i].lost;
		trips->peer[i].rtt = probe->rtt.peer[i].bins;
	}
	trips->refused_count = TAKT_RTT_REFUSALS;
	for (uint32_t i = 0; i < TAKT_RTT_REFUSALS; i++)
		trips->refused[i] = (struct takt_trips_refused){takt_rtt_refusal_name(i),
								probe->rtt.refused[i]};
	pthread_mutex_unlock(&probe->lock);
}

static const char *state_of(const struct takt_rtt_peer *peer)
{
	if (peer->bins.count == 0 && peer->lost == 0)
		return "unknown";
	return peer->bins.count == 0 || peer->lost_in_a_row >= SILENT_AFTER ? "silent" : "answers";
}

static void fill_peer(const struct takt_rtt_listed *listed, const struct takt_rtt_peer *peer,
		      struct takt_net_peer_view *ret)
{
	uint64_t below = takt_latency_below_ns(&peer->bins, 990);

	takt_strcpy(ret->name, sizeof(ret->name), listed->name);
	takt_strcpy(ret->address, sizeof(ret->address), listed->text);
	takt_strcpy(ret->state, sizeof(ret->state), state_of(peer));
	ret->answered = peer->bins.count;
	ret->lost = peer->lost;
	ret->last_ns = peer->last_ns;
	ret->least_ns = peer->least_ns;
	ret->mean_ns = peer->bins.count ? peer->bins.sum_ns / peer->bins.count : 0;
	ret->most_ns = peer->most_ns;
	ret->p99_below_ns = below == UINT64_MAX ? 0 : below;
}

int takt_api_net(void *ctx, struct takt_net_view *ret, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct takt_net_probe *probe = daemon->net_probe;

	(void)err;
	if (!probe)
		return 0;
	takt_strcpy(ret->listen, sizeof(ret->listen), daemon->config.net_listen);
	pthread_mutex_lock(&probe->lock);
	for (uint32_t i = 0; i < probe->peers.count; i++)
		fill_peer(&probe->peers.peer[i], &probe->rtt.peer[i],
			  &ret->peers[ret->peer_count++]);
	for (uint32_t i = 0; i < TAKT_RTT_REFUSALS; i++) {
		struct takt_net_refused_view *refused = &ret->refused[ret->refused_count++];

		takt_strcpy(refused->reason, sizeof(refused->reason), takt_rtt_refusal_name(i));
		refused->count = probe->rtt.refused[i];
	}
	pthread_mutex_unlock(&probe->lock);
	return 0;
}
