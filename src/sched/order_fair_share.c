/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted hierarchical fair share with decayed usage: value = tenant_rank, the place of the job's
 * tenant when the tree of tenants is walked with the one that is owed most first among siblings
 * (Slurm's Fair Tree walks it the same way). Siblings are compared by decayed usage over weight;
 * tenant.h has the formulas. Within a tenant first in, first out.
 */
#include "sched/order.h"

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	(void)config, (void)now_ns;
	ret->value = job->tenant_rank;
}

const struct takt_order takt_order_fair_share = {
	.name = "fair_share",
	.summary = "the tenant with the least decayed usage for its weight first",
	.reads = TAKT_ORDER_TENANT_RANK,
	.key = key,
};
