/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what a decision was made of: the scheduler's snapshot and the plan that came of it, for
 * every plan that places or pushes out something, so that a report from the field can be replayed.
 * Bounded in time as well as in the store: a snapshot of n bytes is followed by a pause of n /
 * BYTES_A_SECOND, so that a long queue with short jobs does not turn the database into a log of
 * itself.
 */
#include <errno.h>

#include "base/str.h"
#include "codec/snapshot.h"
#include "queue/queue_impl.h"

enum {
	BYTES_A_SECOND = 256 * 1024
};

void takt_queue_keep_decision(struct takt_queue *queue)
{
	struct takt_str snapshot = TAKT_STR(TAKT_STORE_MAX_DECISION),
			plan = TAKT_STR(TAKT_STORE_MAX_DECISION);
	int rc;

	if ((queue->plan.placement_count == 0 && queue->plan.eviction_count == 0) ||
	    queue->now.ns < queue->next_decision_ns)
		return;
	takt_queue_explain(queue, UINT32_MAX);
	rc = queue->plan.waits_cut
		     ? -ENOMEM
		     : takt_decision_to_json(queue->sched, queue->planned_ns,
					     &queue->config.settings, &snapshot, NULL);
	if (rc == 0)
		rc = takt_plan_to_json(&queue->plan, &plan, NULL);
	/* Best effort, as the store says: a decision that cannot be kept is made all the same. */
	if (rc == 0)
		(void)takt_store_decision(queue->config.store, queue->plan.version,
					  takt_str_text(&snapshot), takt_str_text(&plan), NULL);
	queue->next_decision_ns =
		queue->now.ns + (snapshot.len + plan.len) * TAKT_NS_PER_S / BYTES_A_SECOND;
	takt_str_fini(&snapshot);
	takt_str_fini(&plan);
}
