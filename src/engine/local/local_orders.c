/* SPDX-License-Identifier: Apache-2.0 */
/* SIGNAL and STOP: kept until their attempt has a shim to send them to, and until the launcher has
 * answered. */
#include <errno.h>

#include "engine/local/local_private.h"

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
