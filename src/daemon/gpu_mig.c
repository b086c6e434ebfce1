/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gpu_mig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuate/actuate.h"
#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "daemon/gpu_orders.h"
#include "daemon/log.h"

static const uint64_t look_ns = 5 * TAKT_NS_PER_S;
/* To the queue, of an instance that is gone and still held, or that it could not take. */
static const struct takt_pace tellings = {100 * TAKT_NS_PER_MS, 2 * TAKT_NS_PER_S};
/* At the start, for the actuator to say which instances are to go; where none does, they are given
 * out as they are. */
static const uint64_t grace_ns = 30 * TAKT_NS_PER_S;
static const uint64_t answer_ns = 60 * TAKT_NS_PER_S;

struct order {
	struct takt_pending *pending; /* NULL = nobody waits any more */
	struct takt_peer peer;	      /* who does */
	bool under_way;
	bool unsent; /* the actuator is about to be there */
	char layout[TAKT_MIG_TEXT];
	uint64_t seq; /* of the actuator's reply that is awaited; 0 = then the driver's */
	struct takt_boot deadline;
};

struct takt_mig {
	struct takt_daemon *daemon;
	struct takt_boot begun;
	struct gpu {
		bool heard;	   /* the actuator has said what follows, however long ago */
		uint32_t state;	   /* enum takt_actuate_mig_state */
		bool cut;	   /* was in MIG mode when takt started */
		bool switched;	   /* it is otherwise now */
		bool held;	   /* a job holds an instance that is gone */
		bool untold;	   /* the queue could not take the last that it was told */
		uint32_t tellings; /* in a row that left it held or untold */
		struct takt_boot tell_at;
		bool in_change, unseen; /* as the actuator says; nobody has looked since */
		struct takt_boot look_at;
		/* What the queue was told. */
		uint32_t count;
		struct takt_gpu_instance told[TAKT_DEVICE_MAX_INSTANCES];
		struct order order;
	} gpu[TAKT_DEVICE_MAX_GPUS];
};

static const struct takt_gpu_facts *facts_of(const struct takt_daemon *daemon, uint32_t gpu)
{
	return takt_machine_facts(daemon->machine, gpu);
}

static bool is_cut(const struct takt_gpu_facts *facts)
{
	return (facts->has & TAKT_FACT_MIG) && facts->mig_enabled;
}

static uint32_t list_gpu(const struct takt_gpu_facts *facts, uint32_t gpu,
			 struct takt_queue_instance *ret)
{
	for (uint32_t i = 0; i < facts->instance_count; i++) {
		const struct takt_gpu_instance *from = &facts->instances[i];

		ret[i] = (struct takt_queue_instance){
			.gpu = gpu,
			.slices = from->slices,
			.mem_mib = (uint32_t)(from->memory_bytes >> 20),
		};
		takt_strcpy(ret[i].uuid, sizeof(ret[i].uuid), from->uuid);
		takt_strcpy(ret[i].profile, sizeof(ret[i].profile), from->profile);
	}
	return facts->instance_count;
}

uint32_t takt_mig_list(const struct takt_daemon *daemon, struct takt_queue_instance *ret,
		       uint64_t *ret_cut)
{
	uint32_t count = 0;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		if (!is_cut(facts_of(daemon, gpu)))
			continue;
		*ret_cut |= 1ull << gpu;
		count += list_gpu(facts_of(daemon, gpu), gpu, &ret[count]);
	}
	return count;
}

uint32_t takt_mig_kinds(const struct takt_daemon *daemon, struct takt_queue_instance *ret)
{
	uint32_t count = 0;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = facts_of(daemon, gpu);

		for (uint32_t i = 0; is_cut(facts) && i < facts->kind_count; i++, count++) {
			ret[count] = (struct takt_queue_instance){
				.slices = facts->kinds[i].slices,
				.mem_mib = facts->kinds[i].memory_mib,
			};
			takt_strcpy(ret[count].profile, sizeof(ret[count].profile),
				    facts->kinds[i].name);
		}
	}
	return count;
}

static void note_told(struct takt_mig *mig, uint32_t gpu)
{
	const struct takt_gpu_facts *facts = facts_of(mig->daemon, gpu);

	mig->gpu[gpu].count = facts->instance_count;
	memcpy(mig->gpu[gpu].told, facts->instances, sizeof(facts->instances));
}

int takt_mig_new(struct takt_daemon *daemon, struct takt_mig **ret, struct takt_err *err)
{
	struct takt_mig *mig = takt_zalloc(sizeof(*mig));

	if (!mig)
		return takt_err_set(err, -ENOMEM, "the MIG instances");
	mig->daemon = daemon;
	mig->begun = takt_boot_now(daemon->sys);
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		mig->gpu[gpu].cut = is_cut(facts_of(daemon, gpu));
		note_told(mig, gpu);
	}
	*ret = mig;
	return 0;
}

void takt_mig_free(struct takt_mig *mig)
{
	takt_free(mig);
}

/* The driver's order of instances says nothing. */
static bool is_told(const struct gpu *gpu, const struct takt_gpu_facts *facts)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < facts->instance_count; i++)
		for (uint32_t k = 0; k < gpu->count; k++)
			same += strcmp(facts->instances[i].uuid, gpu->told[k].uuid) == 0 &&
				strcmp(facts->instances[i].profile, gpu->told[k].profile) == 0;
	return same == gpu->count && same == facts->instance_count;
}

static void tell_queue(struct takt_mig *mig, uint32_t gpu)
{
	struct takt_queue_instance now[TAKT_DEVICE_MAX_INSTANCES];
	uint32_t count = list_gpu(facts_of(mig->daemon, gpu), gpu, now);
	bool was_held = mig->gpu[gpu].held, was_untold = mig->gpu[gpu].untold;
	struct takt_err err;
	int rc = takt_queue_mig_change(mig->daemon->queue, gpu, now, count, &mig->gpu[gpu].held,
				       &err);

	mig->gpu[gpu].untold = rc < 0 && rc != -TAKT_E_LIMIT;
	if (rc < 0 && !was_held && !was_untold)
		takt_log(TAKT_LOG_WARNING, "GPU %u: %s", gpu, err.msg);
	if (!mig->gpu[gpu].untold && !was_held)
		takt_log(TAKT_LOG_NOTICE, "GPU %u is cut into %u MIG instances now", gpu, count);
	if (mig->gpu[gpu].held && !was_held)
		takt_log(TAKT_LOG_WARNING, "GPU %u: a MIG instance is gone that a job holds", gpu);
	note_told(mig, gpu);
}

/* As long as it is not as it should be, again and again. */
static void tell_again(struct takt_mig *mig, uint32_t index, struct takt_boot now)
{
	struct gpu *gpu = &mig->gpu[index];

	tell_queue(mig, index);
	if (!gpu->held && !gpu->untold)
		gpu->tellings = 0;
	else
		gpu->tell_at = takt_boot_add(now, takt_pace_ns(&tellings, gpu->tellings++));
}

static void finish(struct takt_mig *mig, struct order *order, const struct takt_err *err)
{
	struct takt_pending *pending = order->pending;
	const struct takt_peer peer = order->peer;

	*order = (struct order){0};
	if (pending && err)
		takt_pending_error(pending, err);
	else if (pending)
		takt_orders_answer(mig->daemon->orders, &peer, pending);
}

static void look(struct takt_mig *mig, uint32_t gpu, struct takt_boot now)
{
	mig->gpu[gpu].look_at = takt_boot_add(now, look_ns);
	takt_machine_look_at_mig(mig->daemon->machine, gpu);
}

/* The actuator puts it back now, or as soon as it can. What is set goes when that one dies. */
static bool is_to_go(const struct takt_mig *mig, uint32_t gpu)
{
	const struct gpu *at = &mig->gpu[gpu];
	struct takt_lease_state lease;

	if (!mig->daemon->manages)
		return false; /* whoever manages it knows */
	if (!at->heard)
		return takt_boot_elapsed_ns(takt_boot_now(mig->daemon->sys), mig->begun) < grace_ns;
	takt_leases_state(mig->daemon->leases, gpu, &lease);
	return at->state >= TAKT_MIG_TO_BE_PUT_BACK ||
	       (at->state == TAKT_MIG_IS_SET && strcmp(lease.state, "unknown") == 0);
}

static bool is_in_change(const struct takt_mig *mig, uint32_t gpu)
{
	return mig->gpu[gpu].order.under_way || is_to_go(mig, gpu) ||
	       takt_clock_admin_cuts(mig->daemon->clock_admin, gpu);
}

/* The queue is told what there is before anybody gets anything of it again. */
static void note_change(struct takt_mig *mig, uint32_t index, struct takt_boot now)
{
	struct gpu *gpu = &mig->gpu[index];
	bool was = gpu->in_change;

	gpu->in_change = is_in_change(mig, index);
	gpu->unseen = gpu->unseen || gpu->in_change;
	if (was && !gpu->in_change)
		look(mig, index, now);
}

/* To the actuator, as soon as it is there: it starts beside takt serve, and again when it died. */
static void send_order(struct takt_mig *mig, uint32_t gpu)
{
	struct takt_actuate_request ask = {.op = TAKT_ACTUATE_MIG};
	struct order *order = &mig->gpu[gpu].order;

	takt_strcpy(ask.uuid, sizeof(ask.uuid), facts_of(mig->daemon, gpu)->uuid);
	takt_strcpy(ask.mig, sizeof(ask.mig), order->layout);
	order->seq = takt_leases_send(mig->daemon->leases, ask);
	order->unsent = order->seq == 0;
}

/* Somebody has switched MIG mode meanwhile. The scheduler knows the GPU as the other kind for as
 * long as takt runs, so nobody gets anything of it. */
static void note_mode(struct takt_mig *mig, uint32_t index)
{
	struct gpu *gpu = &mig->gpu[index];
	bool now = is_cut(facts_of(mig->daemon, index));

	if ((now != gpu->cut) == gpu->switched)
		return;
	gpu->switched = now != gpu->cut;
	if (gpu->switched)
		takt_log(TAKT_LOG_WARNING, "GPU %u: %s", index, takt_mig_note(mig, index));
	else
		takt_log(TAKT_LOG_NOTICE, "GPU %u: MIG mode is %s again, as at the start", index,
			 now ? "on" : "off");
}

/* One that was not in MIG mode: whether it is now. */
static void watch_mode(struct takt_mig *mig, uint32_t index, struct takt_boot now)
{
	if (!(facts_of(mig->daemon, index)->has & TAKT_FACT_MIG))
		return;
	if (takt_machine_seen_mig(mig->daemon->machine, index))
		note_mode(mig, index);
	if (mig->gpu[index].look_at.ns <= now.ns)
		look(mig, index, now);
}

static void tick_gpu(struct takt_mig *mig, uint32_t index, struct takt_boot now)
{
	struct gpu *gpu = &mig->gpu[index];
	struct order *order = &gpu->order;
	bool seen = takt_machine_seen_mig(mig->daemon->machine, index);
	struct takt_err err;

	if (seen)
		note_mode(mig, index);
	if (((gpu->held || gpu->untold) && gpu->tell_at.ns <= now.ns) ||
	    (seen && !is_told(gpu, facts_of(mig->daemon, index))))
		tell_again(mig, index, now);
	gpu->unseen = gpu->unseen && !(seen && !gpu->in_change);
	if (order->unsent)
		send_order(mig, index);
	else if (seen && order->under_way && order->seq == 0)
		finish(mig, order, NULL);
	if (order->under_way && order->deadline.ns <= now.ns) {
		takt_err_set(&err, -ETIMEDOUT,
			     "the GPU has not answered: see 'takt gpu' for what becomes of it");
		finish(mig, order, &err);
	}
	note_change(mig, index, now);
	if (gpu->look_at.ns <= now.ns)
		look(mig, index, now);
}

void takt_mig_close(struct takt_mig *mig)
{
	uint64_t closed = 0;

	for (uint32_t gpu = 0; gpu < mig->daemon->gpu_count; gpu++) {
		if (mig->gpu[gpu].cut)
			note_change(mig, gpu, takt_boot_now(mig->daemon->sys));
		closed |= (uint64_t)(mig->gpu[gpu].unseen || mig->gpu[gpu].switched) << gpu;
	}
	takt_queue_mig_close(mig->daemon->queue, closed);
}

void takt_mig_tick(struct takt_mig *mig, struct takt_boot now)
{
	for (uint32_t gpu = 0; gpu < mig->daemon->gpu_count; gpu++)
		if (mig->gpu[gpu].cut)
			tick_gpu(mig, gpu, now);
		else
			watch_mode(mig, gpu, now);
	takt_mig_close(mig);
}

bool takt_mig_waits(const struct takt_mig *mig, uint32_t gpu)
{
	return mig->gpu[gpu].unseen || mig->gpu[gpu].held || mig->gpu[gpu].switched;
}

const char *takt_mig_note(const struct takt_mig *mig, uint32_t gpu)
{
	if (!mig || !mig->gpu[gpu].switched)
		return "";
	return mig->gpu[gpu].cut ? "MIG mode was switched off after takt had started: start takt "
				   "again to have its whole GPU given out"
				 : "MIG mode was switched on after takt had started: start takt "
				   "again to have its instances given out";
}

/* Nobody has anything on it. */
static int check_empty(const struct takt_daemon *daemon, uint32_t gpu, struct takt_err *err)
{
	const struct takt_gpu_reading *reading;
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count; i++)
		if (holdings[i].gpu == gpu)
			return takt_err_set(err, -TAKT_E_BUSY,
					    "job %llu is on GPU %u; wait until it has ended",
					    (unsigned long long)holdings[i].job_id, gpu);
	if (takt_telemetry_latest(daemon->telemetry, gpu, takt_mono_now(daemon->sys), &reading) <
		    0 ||
	    !(reading->has & TAKT_HAS_PROCS))
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "which processes are on GPU %u is not known now", gpu);
	if (reading->proc_count > 0)
		return takt_err_set(err, -TAKT_E_BUSY, "process %d is on GPU %u",
				    reading->procs[0].pid, gpu);
	return 0;
}

int takt_mig_check(const struct takt_mig *mig, uint32_t gpu, struct takt_err *err)
{
	const struct takt_daemon *daemon = mig->daemon;
	const char *state = takt_orders_state(daemon->orders, gpu, takt_wall_now(daemon->sys));

	if (!mig->gpu[gpu].cut)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "GPU %u was not in MIG mode when takt started; an "
				    "administrator would run 'nvidia-smi -i %.48s -mig 1' and "
				    "start takt again",
				    gpu, facts_of(daemon, gpu)->uuid);
	if (mig->gpu[gpu].count > 0 && (!state || strcmp(state, "drained") != 0))
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "GPU %u is not drained: 'takt gpu drain %u --reason TEXT' "
				    "first, 'takt gpu resume %u' after",
				    gpu, gpu, gpu);
	if (mig->gpu[gpu].order.under_way)
		return takt_err_set(err, -TAKT_E_BUSY, "GPU %u is being cut", gpu);
	return check_empty(daemon, gpu, err);
}

static void forget(void *order)
{
	((struct order *)order)->pending = NULL;
}

int takt_mig_order(struct takt_mig *mig, const struct takt_gpu_request *request,
		   const struct takt_peer *peer, struct takt_pending *pending, struct takt_err *err)
{
	uint32_t gpu = (uint32_t)__builtin_ctzll(request->gpu_mask);
	struct order *order = &mig->gpu[gpu].order;
	int rc = takt_mig_check(mig, gpu, err);
	char by[33];

	if (rc < 0)
		return rc;
	takt_user_name(peer->uid, by, sizeof(by));
	*order = (struct order){
		.pending = pending,
		.peer = *peer,
		.under_way = true,
		.deadline = takt_boot_add(takt_boot_now(mig->daemon->sys), answer_ns),
	};
	takt_strcpy(order->layout, sizeof(order->layout), request->layout);
	send_order(mig, gpu);
	takt_log(TAKT_LOG_NOTICE, "%s has GPU %u cut %s", by, gpu,
		 request->layout[0] ? request->layout : "as declared or found");
	takt_pending_set_cancel(pending, forget, order);
	takt_mig_close(mig);
	return 0;
}

static void take_answer(struct takt_mig *mig, uint32_t gpu, const struct takt_actuate_reply *reply)
{
	struct order *order = &mig->gpu[gpu].order;
	struct takt_err err;

	if (!order->under_way || order->seq == 0 || order->seq != reply->seq)
		return;
	order->seq = 0;
	if (reply->rc < 0) {
		takt_err_set(&err, reply->rc, "GPU %u: %s", gpu, reply->message);
		finish(mig, order, &err);
	}
	look(mig, gpu, takt_boot_now(mig->daemon->sys));
}

void takt_mig_heard(struct takt_mig *mig, const struct takt_actuate_reply *reply)
{
	if (!mig || (reply->op != TAKT_ACTUATE_STATUS && reply->op != TAKT_ACTUATE_MIG))
		return;
	for (uint32_t gpu = 0; gpu < mig->daemon->gpu_count; gpu++) {
		if (reply->uuid[0] && strcmp(facts_of(mig->daemon, gpu)->uuid, reply->uuid) == 0) {
			mig->gpu[gpu].heard = true;
			mig->gpu[gpu].state = reply->mig_state;
		}
		if (reply->op == TAKT_ACTUATE_MIG)
			take_answer(mig, gpu, reply);
	}
}

static const char *state_name(const struct takt_mig *mig, uint32_t gpu)
{
	static const char *const names[] = {
		[TAKT_MIG_AS_FOUND] = "",
		[TAKT_MIG_IS_SET] = "set",
		[TAKT_MIG_TO_BE_PUT_BACK] = "changed",
		[TAKT_MIG_AT_WORK] = "busy",
	};
	uint32_t state = mig->gpu[gpu].state;

	return state < TAKT_ARRAY_LEN(names) ? names[state] : "";
}

void takt_mig_view(const struct takt_mig *mig, struct takt_orders_view *ret)
{
	struct takt_lease_state lease;

	ret->mig_count = 0;
	for (uint32_t gpu = 0; gpu < mig->daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = facts_of(mig->daemon, gpu);
		struct takt_gpu_mig *to = &ret->mig[ret->mig_count];

		if (!mig->gpu[gpu].cut)
			continue;
		ret->mig_count++;
		*to = (struct takt_gpu_mig){.index = gpu, .instance_count = facts->instance_count};
		takt_leases_state(mig->daemon->leases, gpu, &lease);
		takt_strcpy(to->state, sizeof(to->state), state_name(mig, gpu));
		takt_strcpy(to->layout, sizeof(to->layout), facts->mig_layout);
		if (mig->gpu[gpu].state == TAKT_MIG_TO_BE_PUT_BACK)
			takt_strcpy(to->note, sizeof(to->note), lease.note);
		else if (mig->gpu[gpu].held)
			takt_strcpy(to->note, sizeof(to->note),
				    "a job holds an instance that is gone; nothing new starts here "
				    "until it has ended");
		for (uint32_t i = 0; i < facts->instance_count; i++) {
			takt_strcpy(to->instances[i].uuid, sizeof(to->instances[i].uuid),
				    facts->instances[i].uuid);
			takt_strcpy(to->instances[i].profile, sizeof(to->instances[i].profile),
				    facts->instances[i].profile);
		}
	}
}
