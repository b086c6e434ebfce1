/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortest remaining GPU time first, knowing every run time beforehand: what no real scheduler can
 * do, as a mark to measure others by.
 *
 *	value = (predicted run time - run time so far) x GPUs
 *
 * given perfect predictions. A waiting job pushes out a running one when its value, with what the
 * eviction throws away and costs, is still the smaller.
 */
#include "sched/compare/compare_order.h"

static uint64_t left_gpu_ms(const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t ran_ns = takt_order_ran_ns(job, now_ns);
	uint64_t gpu_ms =
		takt_order_gpu_ms(job->gpu_milli, takt_order_span_ns(ran_ns, job->predicted_ns));

	return gpu_ms < INT64_MAX ? gpu_ms : INT64_MAX;
}

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	(void)config;
	ret->band = !job->has_prediction;
	ret->value = (int64_t)left_gpu_ms(job, now_ns);
}

static bool may_evict(const struct takt_order_config *config, const struct takt_order_job *waiting,
		      const struct takt_order_job *running, uint64_t now_ns)
{
	return left_gpu_ms(waiting, now_ns) + takt_order_loss_gpu_ms(running, now_ns) +
		       takt_order_gpu_ms(running->gpu_milli, config->evict_cost_ns) <
	       left_gpu_ms(running, now_ns);
}

const struct takt_order takt_compare_srpt = {
	.name = "srpt",
	.summary = "shortest remaining GPU time first, all run times known beforehand",
	.reads = TAKT_ORDER_SERVICE | TAKT_ORDER_PREDICTION | TAKT_ORDER_TIME,
	.preempts = true,
	.key = key,
	.may_evict = may_evict,
};
