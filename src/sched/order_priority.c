/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Larger priority first, then first in, first out: band = -priority. This is what the daemon has
 * always done. Preempts only where the planner is told to, and then a lower priority for a higher.
 */
#include "sched/order.h"

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	(void)config, (void)now_ns;
	ret->band = -(int64_t)job->priority;
}

const struct takt_order takt_order_priority = {
	.name = "priority",
	.summary = "larger priority first, then first in, first out",
	.reads = TAKT_ORDER_PRIORITY,
	.preempts = true,
	.key = key,
};
