/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bw_run.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/sys.h"
#include "rtt/bw_pace.h"

enum {
	BLOCK = 1 << 20,
	TURNS_A_SECOND = 100, /* the load goes in so many parts, if not in more */
	BURSTS_A_SECOND = 10,
};
/* For what is still in the kernels when the time is over. */
static const uint64_t grace_ns = 10 * TAKT_NS_PER_S;
/* Clocks of two machines run so unequally at the most, in a minute. */
static const uint64_t slack_ns = 100 * TAKT_NS_PER_MS;

struct load {
	const struct takt_bw_link *link;
	const struct takt_bw_watch *watch;
	struct takt_bw_result *result;
	struct takt_bw_pace pace;
	struct takt_mono start, next_look, until;
	bool over;
	uint8_t *block; /* BLOCK bytes */
};

static struct takt_mono now_mono(void)
{
	return takt_mono_now(takt_sys_real());
}

static void begin(struct load *load, uint64_t burst_bytes, uint64_t more_ns)
{
	load->start = now_mono();
	load->next_look = takt_mono_add(load->start, TAKT_NS_PER_S);
	load->until = takt_mono_add(load->start, load->link->seconds * TAKT_NS_PER_S + more_ns);
	load->pace = (struct takt_bw_pace){load->link->cap_bits_per_s / 8, burst_bytes, 0};
	load->result->begun = true;
}

static void end_by(struct load *load, enum takt_bw_end end, bool there)
{
	load->over = true;
	load->result->end = end;
	load->result->there = there;
	load->result->elapsed_ns = takt_mono_elapsed_ns(now_mono(), load->start);
}

/* What the look of this second says; 0 within it. */
static enum takt_bw_end look(struct load *load, struct takt_mono now)
{
	if (now.ns < load->next_look.ns)
		return 0;
	load->next_look = takt_mono_add(now, TAKT_NS_PER_S);
	load->watch->tell(load->watch->ctx, load->pace.used_bytes,
			  takt_mono_elapsed_ns(now, load->start));
	return load->watch->look(load->watch->ctx);
}

/* Waits for a turn at the most: for `always`, and for `load_event` if the cap leaves something to
 * pass. Returns how much that is, 0 when the socket is not ready for it. */
static size_t take_turn(struct load *load, struct takt_mono now, short always, short load_event,
			bool *ret_always)
{
	uint64_t left = takt_bw_pace_allow(&load->pace, takt_mono_elapsed_ns(now, load->start));
	uint64_t turn = load->pace.bytes_per_s / TURNS_A_SECOND;
	bool may = left >= (turn < BLOCK ? turn : BLOCK);
	short events = (short)(always | (may ? load_event : 0));
	struct pollfd one = {events ? load->link->fd : -1, events, 0};

	(void)poll(&one, 1, 1000 / TURNS_A_SECOND);
	*ret_always = one.revents & (always | POLLERR | POLLHUP);
	if (!may || !(one.revents & (load_event | POLLERR | POLLHUP)))
		return 0;
	return left < BLOCK ? (size_t)left : BLOCK;
}

static int broken(struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_UNAVAILABLE, "the connection broke");
}

static int hear_stop(struct load *load, struct takt_err *err)
{
	struct takt_bw_note note;
	int rc = takt_bw_hear(load->link, takt_mono_add(now_mono(), grace_ns), &note, err);

	if (rc == 0 && note.kind != TAKT_BW_STOP)
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "the listener says nothing of use");
	if (rc == 0)
		end_by(load, note.end, true);
	return rc;
}

static int send_turn(struct load *load, struct takt_err *err)
{
	struct takt_mono now = now_mono();
	enum takt_bw_end end = look(load, now);
	bool heard = false;
	size_t size;
	ssize_t n;

	if (end || now.ns >= load->until.ns) {
		end_by(load, end ? end : TAKT_BW_TIME, false);
		return 0;
	}
	size = take_turn(load, now, POLLIN, POLLOUT, &heard);
	if (heard)
		return hear_stop(load, err);
	if (size == 0)
		return 0;
	n = send(load->link->fd, load->block, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : broken(err);
	load->pace.used_bytes += (uint64_t)n;
	load->result->sent_bytes += (uint64_t)n;
	return 0;
}

/* A stop may have been under way when the time was over. */
static int hear_done(struct load *load, struct takt_err *err)
{
	struct takt_mono end = takt_mono_add(now_mono(), 2 * grace_ns);
	struct takt_bw_note note;
	int rc;

	(void)shutdown(load->link->fd, SHUT_WR);
	do
		rc = takt_bw_hear(load->link, end, &note, err);
	while (rc == 0 && note.kind == TAKT_BW_STOP);
	if (rc < 0)
		return takt_err_wrap(err, rc, "how much arrived is not known");
	load->result->received_bytes = note.bytes;
	load->result->elapsed_ns = takt_mono_elapsed_ns(now_mono(), load->start);
	return 0;
}

static int call(struct load *load, struct takt_err *err)
{
	struct takt_bw_note note;
	int rc = takt_bw_hear(load->link, takt_mono_add(now_mono(), grace_ns), &note, err);

	if (rc < 0)
		return rc;
	begin(load, load->link->cap_bits_per_s / 8 / BURSTS_A_SECOND, 0);
	if (note.kind != TAKT_BW_READY) {
		load->result->begun = false;
		end_by(load, note.end, true);
		return 0;
	}
	load->watch->tell(load->watch->ctx, 0, 0);
	while (rc == 0 && !load->over)
		rc = send_turn(load, err);
	return rc < 0 ? rc : hear_done(load, err);
}

static int stop_caller(struct load *load, enum takt_bw_end end, struct takt_err *err)
{
	const struct takt_bw_note stop = {TAKT_BW_STOP, end, load->result->received_bytes};

	if (load->result->end)
		return 0;
	load->result->end = end;
	load->until = takt_mono_add(now_mono(), grace_ns);
	return takt_bw_tell(load->link, &stop, err);
}

/* The caller has closed its half. */
static void hear_end(struct load *load)
{
	uint64_t elapsed_ns = takt_mono_elapsed_ns(now_mono(), load->start);
	bool whole = elapsed_ns + slack_ns >= load->link->seconds * TAKT_NS_PER_S;

	if (load->result->end)
		end_by(load, load->result->end, false);
	else
		end_by(load, whole ? TAKT_BW_TIME : TAKT_BW_PEER, !whole);
}

static int take_load(struct load *load, size_t size, struct takt_err *err)
{
	uint64_t limit = load->pace.bytes_per_s * load->link->seconds;
	ssize_t n = recv(load->link->fd, load->block, size, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : broken(err);
	if (n == 0)
		hear_end(load);
	load->pace.used_bytes += (uint64_t)n;
	load->result->received_bytes += (uint64_t)n;
	if (load->result->received_bytes > limit)
		return takt_err_set(err, -TAKT_E_LIMIT, "it sent more than was agreed");
	return 0;
}

static int receive_turn(struct load *load, struct takt_err *err)
{
	struct takt_mono now = now_mono();
	enum takt_bw_end end = look(load, now);
	int rc = end ? stop_caller(load, end, err) : 0;
	bool unused;
	size_t size;

	if (rc < 0)
		return rc;
	if (now.ns >= load->until.ns)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "it did not end in time");
	size = take_turn(load, now, 0, POLLIN, &unused);
	return size ? take_load(load, size, err) : 0;
}

static int serve(struct load *load, struct takt_err *err)
{
	struct takt_bw_note note = {TAKT_BW_READY, TAKT_BW_TIME, 0};
	enum takt_bw_end end = load->watch->look(load->watch->ctx);
	int rc;

	begin(load, UINT64_MAX, grace_ns);
	if (end) {
		load->result->begun = false;
		return stop_caller(load, end, err);
	}
	rc = takt_bw_tell(load->link, &note, err);
	if (rc == 0)
		load->watch->tell(load->watch->ctx, 0, 0);
	while (rc == 0 && !load->over)
		rc = receive_turn(load, err);
	if (rc < 0)
		return rc;
	note = (struct takt_bw_note){TAKT_BW_DONE, load->result->end, load->result->received_bytes};
	return takt_bw_tell(load->link, &note, err);
}

static int with_block(const struct takt_bw_link *link, const struct takt_bw_watch *watch,
		      int (*run)(struct load *load, struct takt_err *err),
		      struct takt_bw_result *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) uint8_t *block = takt_zalloc(BLOCK);
	struct load load = {.link = link, .watch = watch, .result = ret, .block = block};

	*ret = (struct takt_bw_result){.begun = false};
	return block ? run(&load, err) : takt_err_set(err, -ENOMEM, "the load");
}

int takt_bw_call(const struct takt_bw_link *link, const struct takt_bw_watch *watch,
		 struct takt_bw_result *ret, struct takt_err *err)
{
	return with_block(link, watch, call, ret, err);
}

int takt_bw_serve(const struct takt_bw_link *link, const struct takt_bw_watch *watch,
		  struct takt_bw_result *ret, struct takt_err *err)
{
	return with_block(link, watch, serve, ret, err);
}
