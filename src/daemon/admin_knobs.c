/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an administrator turns that no job asks for: the ceiling of the CPUs. It has a connection to
 * the actuator of its own, while there is something to say. A wish is renewed for as long as takt
 * serves, and asked for again when the actuator was away.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuate/actuate.h"
#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "daemon/daemon.h"

static const uint64_t ttl_ns = 30 * TAKT_NS_PER_S;
static const uint64_t renew_ns = 8 * TAKT_NS_PER_S;
/* To an actuator that is away, or has no guard. */
static const struct takt_pace tries = {TAKT_NS_PER_S / 5, TAKT_NS_PER_S};
static const uint64_t begin_ns = 20 * TAKT_NS_PER_S; /* the actuator's, after a death too */
static const uint64_t answer_ns = 10 * TAKT_NS_PER_S;

enum {
	MAX_WAITING = 8
};

/* A request of the API and the message that it waits for. */
struct waiting {
	struct takt_pending *pending; /* NULL: a free place */
	uint64_t seq;		      /* 0: not sent, the actuator is about to be there */
	struct takt_boot deadline;
};

struct takt_admin_knobs {
	struct takt_daemon *daemon;
	struct takt_actuate_client *client; /* NULL = not connected */
	uint64_t last_seq;
	uint32_t cpu_mhz;	       /* wished; 0 = as found */
	uint32_t sent_mhz;	       /* the newest wish that the actuator was told */
	struct takt_boot renew_at;     /* cpu_mhz: to be said again */
	uint32_t failures;	       /* to have it done, in a row */
	struct takt_actuate_reply cpu; /* the newest that was said of CPUs */
	struct waiting waiting[MAX_WAITING];
};

int takt_knobs_new(struct takt_daemon *daemon, struct takt_admin_knobs **ret, struct takt_err *err)
{
	struct takt_admin_knobs *knobs = takt_zalloc(sizeof(*knobs));

	if (!knobs)
		return takt_err_set(err, -ENOMEM, "an administrator's knobs");
	knobs->daemon = daemon;
	*ret = knobs;
	return 0;
}

void takt_knobs_free(struct takt_admin_knobs *knobs)
{
	if (!knobs)
		return;
	takt_actuate_client_free(knobs->client);
	takt_free(knobs);
}

int takt_knobs_fd(const struct takt_admin_knobs *knobs)
{
	return knobs->client ? takt_actuate_fd(knobs->client) : -1;
}

static void disconnect(struct takt_admin_knobs *knobs)
{
	takt_actuate_client_free(knobs->client);
	knobs->client = NULL;
}

static int send_op(struct takt_admin_knobs *knobs, struct takt_actuate_request request)
{
	int rc = 0;

	request.version = TAKT_ACTUATE_VERSION;
	request.seq = ++knobs->last_seq;
	if (!knobs->client)
		rc = takt_actuate_connect(knobs->daemon->actuate.socket_path, &knobs->client, NULL);
	if (rc < 0) {
		knobs->client = NULL;
		return rc;
	}
	rc = takt_actuate_send(knobs->client, request, NULL);
	if (rc < 0)
		disconnect(knobs);
	return rc;
}

static bool anybody_waits(const struct takt_admin_knobs *knobs)
{
	for (size_t i = 0; i < MAX_WAITING; i++)
		if (knobs->waiting[i].pending)
			return true;
	return false;
}

/* The newest answers all. */
static void note_sent(struct takt_admin_knobs *knobs, struct takt_boot now)
{
	knobs->sent_mhz = knobs->cpu_mhz;
	knobs->renew_at = takt_boot_add(now, renew_ns);
	for (size_t i = 0; i < MAX_WAITING; i++) {
		if (knobs->waiting[i].seq == 0)
			knobs->waiting[i].deadline = takt_boot_add(now, answer_ns);
		knobs->waiting[i].seq = knobs->last_seq;
	}
}

static void try_later(struct takt_admin_knobs *knobs, struct takt_boot now)
{
	knobs->renew_at = takt_boot_add(now, takt_pace_ns(&tries, knobs->failures++));
}

static void note_unsent(struct takt_admin_knobs *knobs, struct takt_boot now)
{
	try_later(knobs, now);
	for (size_t i = 0; i < MAX_WAITING; i++)
		knobs->waiting[i].seq = 0;
}

static void send_cpu(struct takt_admin_knobs *knobs, struct takt_boot now)
{
	const struct takt_actuate_request request = {
		.op = TAKT_ACTUATE_CPU, .max_mhz = knobs->cpu_mhz, .ttl_ns = ttl_ns};

	if (send_op(knobs, request) < 0)
		note_unsent(knobs, now);
	else
		note_sent(knobs, now);
}

static void finish(struct takt_admin_knobs *knobs, struct waiting *waiting,
		   const struct takt_err *err)
{
	struct takt_pending *pending = waiting->pending;

	waiting->pending = NULL;
	if (err)
		takt_pending_error(pending, err);
	else
		takt_leases_answer(knobs->daemon->leases, pending);
}

static void take(struct takt_admin_knobs *knobs, const struct takt_actuate_reply *reply)
{
	struct takt_err err;

	if (reply->rc == -TAKT_E_UNAVAILABLE) { /* its guard is about to be there */
		try_later(knobs, takt_boot_now(knobs->daemon->sys));
		return;
	}
	knobs->failures = 0;
	if (reply->op == TAKT_ACTUATE_CPU) {
		knobs->cpu = *reply;
		if (reply->rc < 0) /* it was put back; nobody asks until told to */
			knobs->cpu_mhz = knobs->sent_mhz = 0;
	}
	if (reply->rc < 0)
		takt_err_set(&err, reply->rc, "%s", reply->message);
	for (size_t i = 0; i < MAX_WAITING; i++)
		if (knobs->waiting[i].pending && knobs->waiting[i].seq == reply->seq)
			finish(knobs, &knobs->waiting[i], reply->rc < 0 ? &err : NULL);
}

static bool receive(struct takt_admin_knobs *knobs)
{
	struct takt_actuate_reply reply;
	int rc = 1;

	while (knobs->client && (rc = takt_actuate_recv(knobs->client, &reply, NULL)) > 0)
		take(knobs, &reply);
	return rc >= 0;
}

static bool is_unsent(const struct takt_admin_knobs *knobs)
{
	for (size_t i = 0; i < MAX_WAITING; i++)
		if (knobs->waiting[i].pending && knobs->waiting[i].seq == 0)
			return true;
	return false;
}

static void give_up_one(struct takt_admin_knobs *knobs, struct waiting *waiting, int rc)
{
	bool unsent = waiting->seq == 0;
	struct takt_err err;

	takt_err_set(&err, unsent ? -TAKT_E_UNAVAILABLE : rc, "%s",
		     unsent ? "the actuator does not answer; try again"
			    : "the actuator did not answer: ask for the state with 'takt clock'");
	finish(knobs, waiting, &err);
}

/* Those whom nobody answers any more. */
static void give_up(struct takt_admin_knobs *knobs, struct takt_boot now, bool all)
{
	for (size_t i = 0; i < MAX_WAITING; i++)
		if (knobs->waiting[i].pending && (all || knobs->waiting[i].deadline.ns <= now.ns))
			give_up_one(knobs, &knobs->waiting[i],
				    all ? -TAKT_E_UNAVAILABLE : -ETIMEDOUT);
}

static bool is_to_say(const struct takt_admin_knobs *knobs)
{
	return knobs->cpu_mhz || is_unsent(knobs);
}

void takt_knobs_pump(struct takt_admin_knobs *knobs, struct takt_boot now, uint64_t *ret_next_ns)
{
	if (!receive(knobs)) {
		disconnect(knobs);
		give_up(knobs, now, true);
		try_later(knobs, now);
	}
	give_up(knobs, now, false);
	if (!is_unsent(knobs)) /* nobody waits for another one any more, or it was told */
		knobs->cpu_mhz = knobs->sent_mhz;
	if (is_to_say(knobs) && knobs->renew_at.ns <= now.ns)
		send_cpu(knobs, now);
	if (!knobs->cpu_mhz && !anybody_waits(knobs))
		disconnect(knobs);
	*ret_next_ns = is_to_say(knobs) ? knobs->renew_at.ns : 0;
	for (size_t i = 0; i < MAX_WAITING; i++)
		if (knobs->waiting[i].pending &&
		    (*ret_next_ns == 0 || knobs->waiting[i].deadline.ns < *ret_next_ns))
			*ret_next_ns = knobs->waiting[i].deadline.ns;
}

static void forget(void *place)
{
	((struct waiting *)place)->pending = NULL;
}

/* NULL: too many wait. */
static struct waiting *free_place(struct takt_admin_knobs *knobs)
{
	for (size_t i = 0; i < MAX_WAITING; i++)
		if (!knobs->waiting[i].pending)
			return &knobs->waiting[i];
	return NULL;
}

int takt_knobs_cpu(struct takt_admin_knobs *knobs, uint32_t max_mhz, struct takt_pending *pending,
		   struct takt_err *err)
{
	struct takt_boot now = takt_boot_now(knobs->daemon->sys);
	struct waiting *place = free_place(knobs);

	if (!knobs->daemon->manages)
		return takt_err_set(err, -EPERM, "this takt only observes and changes nothing");
	if (!place)
		return takt_err_set(err, -TAKT_E_BUSY, "%d such requests are under way; ask again",
				    MAX_WAITING);
	*place = (struct waiting){pending, 0, takt_boot_add(now, begin_ns)};
	takt_pending_set_cancel(pending, forget, place);
	knobs->cpu_mhz = max_mhz;
	send_cpu(knobs, now);
	return 0;
}

void takt_knobs_cpu_state(const struct takt_admin_knobs *knobs, struct takt_cpu_clock *ret)
{
	ret->max_mhz = knobs->cpu.applied_max_mhz;
	ret->changed = knobs->cpu.op && knobs->cpu.gpu_state == TAKT_ACTUATE_CHANGED;
	takt_strcpy(ret->note, sizeof(ret->note), ret->changed ? knobs->cpu.message : "");
}
