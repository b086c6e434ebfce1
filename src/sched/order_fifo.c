/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First in, first out: every job the same key, so that submit_seq decides.
 */
#include "sched/order.h"

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	(void)config, (void)job, (void)now_ns, (void)ret;
}

const struct takt_order takt_order_fifo = {
	.name = "fifo",
	.summary = "first in, first out",
	.key = key,
};
