/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least attained service in two dimensions, discretised (Tiresias, Gu et al., NSDI 2019, section
 * 3.3: 2D-LAS).
 *
 *	service = GPUs x time that the job has run so far
 *	band    = the number of limits that its service has reached (its queue)
 *	within a queue first in, first out
 *
 * A job of a lower queue pushes out one of a higher queue, never one of its own. A job sinks when
 * its service reaches the queue's limit. Against starvation it is raised to the first queue when
 * its waits come to las_promote times its run time (the paper's promote knob). The paper then sets
 * its service back to 0. This policy remembers nothing and compares all waits with all runs: a
 * raised job keeps the first queue until it has run twice as long as when it was raised. (With one
 * limit for rising and sinking it would be pushed out as soon as it starts.)
 *
 * Run times are neither known nor predicted.
 */
#include "sched/order.h"

static bool is_promoted(const struct takt_order_config *config, const struct takt_order_job *job,
			uint64_t now_ns)
{
	uint64_t ran_ns = takt_order_ran_ns(job, now_ns);
	uint64_t limit_ns = takt_order_waited_ns(job, now_ns) / config->las_promote;

	return config->las_promote != UINT32_MAX && ran_ns != 0 &&
	       limit_ns >= (job->running ? ran_ns / 2 : ran_ns);
}

static uint32_t queue_of(const struct takt_order_config *config, uint64_t attained_gpu_ms)
{
	uint32_t queue = 0;

	while (queue < config->las_limits && attained_gpu_ms >= config->las_limit_gpu_ms[queue])
		queue++;
	return queue;
}

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	if (!is_promoted(config, job, now_ns))
		ret->band = queue_of(config, takt_order_attained_gpu_ms(job, now_ns));
}

/* A waiting job is raised when its waits reach the knob times its run time. */
static uint64_t promoted_at(const struct takt_order_config *config,
			    const struct takt_order_job *job, uint64_t now_ns)
{
	__extension__ unsigned __int128 due = job->ran_ns;
	uint64_t waited_ns = takt_order_waited_ns(job, now_ns);

	if (config->las_promote == UINT32_MAX || job->ran_ns == 0 ||
	    queue_of(config, job->attained_gpu_ms) == 0)
		return TAKT_ORDER_NEVER;
	due *= config->las_promote;
	if (due <= waited_ns || due > UINT64_MAX)
		return TAKT_ORDER_NEVER;
	return takt_order_later(now_ns, (uint64_t)due - waited_ns);
}

/* The instant at which a running job that now lacks `gpu_ms` will have them. */
static uint64_t reached_at(const struct takt_order_job *job, uint64_t gpu_ms)
{
	__extension__ unsigned __int128 span_ns = gpu_ms;

	if (job->gpu_milli == 0)
		return TAKT_ORDER_NEVER;
	span_ns = (span_ns * 1000000000 + job->gpu_milli - 1) / job->gpu_milli;
	return span_ns > UINT64_MAX ? TAKT_ORDER_NEVER
				    : takt_order_later(job->since_ns, (uint64_t)span_ns);
}

/* When a raised job that runs has run twice as long as when it could be raised. */
static uint64_t demoted_at(const struct takt_order_config *config, const struct takt_order_job *job)
{
	uint64_t ran_ns = 2 * (job->waited_ns / config->las_promote + 1);

	return takt_order_later(job->since_ns, ran_ns - job->ran_ns);
}

/* A running job sinks at the next limit; a raised one from the first queue to where its service has
 * it by then. */
static uint64_t sinks_at(const struct takt_order_config *config, const struct takt_order_job *job,
			 uint64_t now_ns)
{
	uint64_t attained_gpu_ms = takt_order_attained_gpu_ms(job, now_ns);
	bool promoted = is_promoted(config, job, now_ns);
	uint32_t queue = promoted ? 0 : queue_of(config, attained_gpu_ms);
	uint64_t demoted_ns = promoted ? demoted_at(config, job) : 0;
	uint64_t limit_ns = job->since_ns;

	if (queue == config->las_limits)
		return TAKT_ORDER_NEVER;
	if (config->las_limit_gpu_ms[queue] > job->attained_gpu_ms)
		limit_ns = reached_at(job, config->las_limit_gpu_ms[queue] - job->attained_gpu_ms);
	return demoted_ns > limit_ns ? demoted_ns : limit_ns;
}

static uint64_t next_change_ns(const struct takt_order_config *config,
			       const struct takt_order_job *job, uint64_t now_ns)
{
	return job->running ? sinks_at(config, job, now_ns) : promoted_at(config, job, now_ns);
}

const struct takt_order takt_order_las = {
	.name = "las",
	.summary = "least attained GPU time first, in queues (Tiresias 2D-LAS)",
	.reads = TAKT_ORDER_SERVICE | TAKT_ORDER_TIME,
	.preempts = true,
	.key = key,
	.next_change_ns = next_change_ns,
};
