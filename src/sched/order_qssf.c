/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quasi-shortest service first: value = predicted run time x GPUs, not preemptive (Hu et al.,
 * "Characterization and prediction of deep learning workloads in large-scale GPU datacenters",
 * SC 2021, section 4.2: jobs sorted by the product of GPU number and predicted duration). A job
 * without a prediction counts as unknown_ns long. The prediction itself is src/model's.
 */
#include "sched/order.h"

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	uint64_t span_ns = job->has_prediction ? job->predicted_ns : config->unknown_ns;
	uint64_t gpu_ms = takt_order_gpu_ms(job->gpu_milli, span_ns);

	(void)now_ns;
	ret->value = gpu_ms < INT64_MAX ? (int64_t)gpu_ms : INT64_MAX;
}

const struct takt_order takt_order_qssf = {
	.name = "qssf",
	.summary = "smallest predicted GPU time first",
	.reads = TAKT_ORDER_PREDICTION,
	.key = key,
};
