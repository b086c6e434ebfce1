/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round robin over tenants: a job's turn is the number of jobs that its tenant runs or has waiting
 * before it, value = tenant_ahead. Every tenant's first job goes before any tenant's second one,
 * whoever submitted how many when (the plain form of start-time fair queueing, Goyal, Vin and
 * Cheng, SIGCOMM 1996, with every job counting the same).
 */
#include "sched/order.h"

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	(void)config, (void)now_ns;
	ret->value = job->tenant_ahead;
}

const struct takt_order takt_order_round_robin = {
	.name = "round_robin",
	.summary = "tenants take turns, one job each",
	.reads = TAKT_ORDER_TENANT_AHEAD,
	.key = key,
};
