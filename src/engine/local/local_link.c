/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to the launcher, kept up even while there is nothing to send: a launcher without
 * a client may end. When it breaks, every request
 * on its way has an unknown outcome; its run or order finds out.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "base/pace.h"
#include "engine/local/local_private.h"

/* To a launcher that is not there, or takes nothing. */
static const struct takt_pace tries = {2 * TAKT_NS_PER_MS, 500 * TAKT_NS_PER_MS};

static void wait_longer(struct local_engine *local)
{
	if (local->connect_ns <= local->now_ns) /* else it was counted in this pump */
		local->connect_ns = local->now_ns + takt_pace_ns(&tries, local->failures++);
}

static bool connected(struct local_engine *local)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = UINT64_MAX};

	if (local->client)
		return true;
	if (local->now_ns < local->connect_ns)
		return false;
	if (takt_launch_connect(local->launch_socket, &local->client, &local->link_err) < 0) {
		wait_longer(local);
		return false;
	}
	if (epoll_ctl(local->epollfd, EPOLL_CTL_ADD, takt_launch_fd(local->client), &event) < 0) {
		takt_launch_client_free(local->client);
		local->client = NULL;
		wait_longer(local);
		return false;
	}
	return true;
}

static void close_link(struct local_engine *local)
{
	takt_launch_client_free(local->client);
	local->client = NULL;
	wait_longer(local);
	takt_vec_clear(&local->sent);
	takt_vec_clear(&local->questions);
	TAKT_MAP_EACH(entry, &local->runs)
	local_run_link_lost(local, entry->value.ptr);
	local_orders_link_lost(local);
}

void local_link_keep(struct local_engine *local)
{
	(void)connected(local);
}

uint64_t local_link_send(struct local_engine *local, struct takt_launch_request request,
			 uint64_t run)
{
	uint64_t seq = local->next_seq;
	int rc;

	if (!connected(local))
		return 0;
	if (local->sent.len >= LOCAL_MAX_SENT || takt_vec_reserve(&local->sent, 1) < 0) {
		wait_longer(local);
		return 0;
	}
	request.seq = seq;
	rc = takt_launch_send(local->client, request, &local->link_err);
	if (rc < 0) {
		if (rc == -EAGAIN || rc == -ENOBUFS)
			wait_longer(local);
		else
			close_link(local);
		return 0;
	}
	local->next_seq++;
	(void)takt_vec_push(&local->sent, (struct local_sent){seq, run});
	takt_crash_point("engine.after_send");
	return seq;
}

uint32_t local_link_retry_ms(const struct local_engine *local)
{
	uint64_t wait = local->connect_ns > local->now_ns ? local->connect_ns - local->now_ns : 0;

	return (uint32_t)(wait / TAKT_NS_PER_MS) + 1;
}

/* Hands a reply to whoever asked; one that nobody asked for is dropped. */
static void dispatch(struct local_engine *local, const struct takt_launch_reply *reply)
{
	struct local_run *run;
	struct local_sent sent;
	size_t i = 0;

	while (i < local->sent.len && local->sent.at[i].seq != reply->seq)
		i++;
	if (i == local->sent.len)
		return;
	sent = local->sent.at[i];
	takt_vec_remove_swap(&local->sent, i);
	takt_crash_point("engine.after_reply");
	if (sent.run == 0) {
		if (!local_whose_reply(local, reply))
			local_orders_reply(local, reply);
		return;
	}
	run = takt_map_u64_ptr(&local->runs, sent.run);
	if (run)
		local_run_reply(local, run, reply);
}

void local_link_receive(struct local_engine *local)
{
	struct takt_launch_reply reply;
	int rc = 1;

	for (int i = 0; rc > 0 && local->client && i < LOCAL_MAX_SENT; i++) {
		rc = takt_launch_recv(local->client, &reply, &local->link_err);
		if (rc > 0) {
			local->failures = 0;
			local->link_err = (struct takt_err){0};
			dispatch(local, &reply);
		}
	}
	if (rc < 0)
		close_link(local);
}
