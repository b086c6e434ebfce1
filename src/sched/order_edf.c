/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Earliest deadline first (Liu and Layland, JACM 1973): value = deadline. Jobs without a deadline
 * come after all that have one, first in, first out. A job whose deadline has passed keeps its
 * place: late is no reason to become later.
 */
#include "sched/order.h"

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	(void)config, (void)now_ns;
	ret->band = !job->has_deadline;
	if (job->has_deadline)
		ret->value = job->deadline_ns < INT64_MAX ? (int64_t)job->deadline_ns : INT64_MAX;
}

const struct takt_order takt_order_edf = {
	.name = "edf",
	.summary = "earliest deadline first",
	.reads = TAKT_ORDER_DEADLINE,
	.key = key,
};
