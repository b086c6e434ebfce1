/* SPDX-License-Identifier: Apache-2.0 */
/* SIGNAL and STOP: kept until their attempt has a shim to send them to, and until the launcher has
 * answered. */
#include <errno.h>

#include <signal.h>

#include "engine/local/local_private.h"

enum {
	OVER_GRACE_MS = 120000, /* for the shim to kill what is left and to clean up */
};

static const struct takt_pace kills = {10 * TAKT_NS_PER_S, 60 * TAKT_NS_PER_S};

static struct local_run *run_of(struct local_engine *local, const struct takt_action *action)
{
	struct local_run *run =
		takt_map_u64_ptr(&local->runs, local_key(action->job_id, action->attempt));

	return run && run->attempt == action->attempt ? run : NULL;
}

static void settle(struct local_engine *local, size_t i, enum takt_outcome outcome,
		   const char *message)
{
	struct takt_action action = local->orders.at[i].action;

	takt_vec_remove(&local->orders, i);
	local_outcome(local, action.id, outcome, action.job_id, action.attempt, message);
}

bool local_orders_stop(const struct local_engine *local, const struct local_run *run)
{
	TAKT_VEC_EACH (order, &local->orders)
		if (order->action.kind == TAKT_ACTION_STOP && order->action.job_id == run->job_id &&
		    order->action.attempt == run->attempt)
			return true;
	return false;
}

void local_order_take(struct local_engine *local, const struct takt_action *action)
{
	struct local_run *run = run_of(local, action);

	if (!run) {
		local_outcome(local, action->id, TAKT_OUTCOME_CONFLICT, action->job_id,
			      action->attempt, "the attempt is not alive");
		return;
	}
	if (takt_vec_push(&local->orders, (struct local_order){.action = *action}) < 0) {
		local_outcome(local, action->id, TAKT_OUTCOME_FAILED, action->job_id,
			      action->attempt, "too many signals are waiting");
		return;
	}
	if (action->kind != TAKT_ACTION_STOP)
		return;
	if (local_stage_waits(run))
		run->stage = LOCAL_OFF;
	(void)local_run_call_off(local, run);
}

/* False when it cannot be sent now. Losing the link meanwhile may take orders out of the array. */
static bool send_one(struct local_engine *local, size_t i, const struct local_run *run)
{
	const struct takt_action *action = &local->orders.at[i].action;
	bool stop = action->kind == TAKT_ACTION_STOP;
	struct takt_launch_request request = {
		.op = stop ? TAKT_LAUNCH_STOP : TAKT_LAUNCH_SIGNAL,
		.job_id = run->job_id,
		.attempt = run->attempt,
		.uid = run->uid,
		.gid = run->gid,
		.signal = action->signal,
		.target = run->shim,
	};
	uint64_t seq = local_link_send(local, request, 0);

	if (seq != 0)
		local->orders.at[i].seq = seq;
	return seq != 0;
}

/* Orders for one attempt go out in the order in which they came. */
void local_orders_send(struct local_engine *local)
{
	struct local_run *run;

	for (size_t i = 0; i < local->orders.len; i++) {
		if (local->orders.at[i].seq != 0)
			continue;
		run = run_of(local, &local->orders.at[i].action);
		if (!run || run->state != LOCAL_WATCHED)
			continue;
		if (!send_one(local, i, run))
			return; /* the pump comes back */
	}
}

/* Without room for it the shim is trusted to end its job. */
static void watch_stop(struct local_engine *local, const struct takt_action *action)
{
	struct local_stop stop = {.job_id = action->job_id,
				  .attempt = action->attempt,
				  .due_ns = local->now_ns +
					    ((uint64_t)action->grace_ms + OVER_GRACE_MS) *
						    TAKT_NS_PER_MS};

	(void)takt_vec_push(&local->stops, stop);
}

void local_orders_overdue(struct local_engine *local)
{
	for (size_t i = 0; i < local->stops.len;) {
		struct local_stop *stop = &local->stops.at[i];
		struct takt_action action = {.job_id = stop->job_id, .attempt = stop->attempt};
		const struct local_run *run = run_of(local, &action);

		if (!run) {
			takt_vec_remove(&local->stops, i);
			continue;
		}
		i++;
		if (stop->due_ns > local->now_ns)
			continue;
		stop->due_ns = local->now_ns + takt_pace_ns(&kills, stop->tries++);
		if (run->state == LOCAL_WATCHED)
			(void)local_link_send(local,
					      (struct takt_launch_request){.op = TAKT_LAUNCH_STOP,
									   .job_id = run->job_id,
									   .attempt = run->attempt,
									   .uid = run->uid,
									   .gid = run->gid,
									   .signal = SIGKILL,
									   .target = run->shim},
					      0);
	}
}

uint64_t local_orders_next_ns(const struct local_engine *local)
{
	uint64_t next_ns = UINT64_MAX;

	TAKT_VEC_EACH (stop, &local->stops)
		next_ns = stop->due_ns < next_ns ? stop->due_ns : next_ns;
	return next_ns;
}

void local_orders_reply(struct local_engine *local, const struct takt_launch_reply *reply)
{
	bool stop, done;
	size_t i = 0;

	while (i < local->orders.len && local->orders.at[i].seq != reply->seq)
		i++;
	if (i == local->orders.len)
		return;
	stop = local->orders.at[i].action.kind == TAKT_ACTION_STOP;
	done = reply->rc >= 0 || (stop && reply->rc == -ESRCH);
	if (stop && reply->rc >= 0)
		watch_stop(local, &local->orders.at[i].action);
	settle(local, i, done ? TAKT_OUTCOME_ACCEPTED : TAKT_OUTCOME_FAILED,
	       done ? "" : reply->message);
}

/* A STOP twice is one; a signal twice is not. */
void local_orders_link_lost(struct local_engine *local)
{
	for (size_t i = 0; i < local->orders.len;) {
		if (local->orders.at[i].seq == 0) {
			i++;
		} else if (local->orders.at[i].action.kind == TAKT_ACTION_STOP) {
			local->orders.at[i++].seq = 0;
		} else {
			settle(local, i, TAKT_OUTCOME_UNKNOWN, "the launcher vanished meanwhile");
		}
	}
}

void local_orders_settle(struct local_engine *local, uint64_t job_id, uint32_t attempt)
{
	for (size_t i = 0; i < local->orders.len;) {
		const struct takt_action *action = &local->orders.at[i].action;

		if (action->job_id != job_id || action->attempt != attempt)
			i++;
		else if (action->kind == TAKT_ACTION_STOP)
			settle(local, i, TAKT_OUTCOME_ACCEPTED, "");
		else
			settle(local, i, TAKT_OUTCOME_CONFLICT, "the attempt is over");
	}
}
