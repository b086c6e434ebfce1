/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job waits: the first reason that applies, and the counts of the node where it is nearest to
 * running. "Nearest" is the node with the most GPUs that pass the reason's own test.
 */
#include <string.h>

#include "sched/plan_state.h"

bool takt_plan_is_plain(const struct takt_sched_entry *entry)
{
	static const struct takt_request nothing;
	struct takt_request rest = entry->job.task;

	rest.devices = 0;
	if (rest.milli == TAKT_REQUEST_WHOLE)
		rest.milli = 0;
	return takt_sched_tasks(&entry->job) == 1 && !entry->job.near_group &&
	       !entry->job.apart_group && !entry->job.workload &&
	       memcmp(&rest, &nothing, sizeof(rest)) == 0;
}

static uint32_t healthy(const struct takt_sched_host *host)
{
	return takt_sched_count(takt_sched_host_eligible(host, TAKT_JOB_USE_OUTSIDE));
}

static uint32_t eligible(const struct takt_sched_host *host, uint32_t flags)
{
	return takt_sched_count(takt_sched_host_eligible(host, flags));
}

/* A job that asks for nothing but GPUs can stand no taint. */
static bool is_tainted(const struct takt_sched_host *host)
{
	return host->facts.taint_count > 0;
}

enum takt_why takt_sched_ungoverned(const struct takt_sched *sched, uint32_t need, uint32_t flags)
{
	enum takt_why why = TAKT_WHY_IMPOSSIBLE;

	TAKT_VEC_EACH (it, &sched->hosts) {
		const struct takt_sched_host *host = *it;

		if (host->removed || host->gpu_count < need)
			continue;
		if (is_tainted(host))
			why = why == TAKT_WHY_IMPOSSIBLE ? TAKT_WHY_SELECTOR : why;
		else if (eligible(host, flags) >= need)
			return TAKT_WHY_NONE;
		else if (healthy(host) >= need)
			why = TAKT_WHY_OUTSIDE;
		else if (why != TAKT_WHY_OUTSIDE)
			why = TAKT_WHY_UNHEALTHY;
	}
	return why;
}

/* How many GPUs of a node count towards the job, and whether the node is a candidate at all. */
static bool nearness(const struct takt_sched_host *host, const struct takt_sched_job *job,
		     enum takt_why why, uint32_t *ret)
{
	uint64_t free_gpus = takt_sched_host_free_gpus(host, job->flags);

	if (is_tainted(host) && why != TAKT_WHY_IMPOSSIBLE && why != TAKT_WHY_SELECTOR)
		return false;
	switch (why) {
	case TAKT_WHY_IMPOSSIBLE:
		*ret = host->gpu_count;
		return true;
	case TAKT_WHY_SELECTOR:
		*ret = host->gpu_count;
		return host->gpu_count >= job->gpus;
	case TAKT_WHY_UNHEALTHY:
		*ret = healthy(host);
		return host->gpu_count >= job->gpus;
	case TAKT_WHY_OUTSIDE:
		*ret = eligible(host, job->flags);
		return healthy(host) >= job->gpus;
	case TAKT_WHY_ORDER:
		*ret = takt_sched_count(free_gpus);
		return *ret >= job->gpus;
	default:
		*ret = takt_sched_count(free_gpus & ~host->reserved);
		return eligible(host, job->flags) >= job->gpus;
	}
}

struct takt_sched_host *takt_sched_nearest(const struct takt_sched *sched,
					   const struct takt_sched_job *job, enum takt_why why)
{
	struct takt_sched_host *best = NULL;
	uint32_t most = 0;

	TAKT_VEC_EACH (host, &sched->hosts) {
		uint32_t count;

		if ((*host)->removed || !nearness(*host, job, why, &count))
			continue;
		if (!best || count > most) {
			best = *host;
			most = count;
		}
	}
	return best;
}

static bool fits_but_for_order(const struct takt_sched *sched, const struct takt_sched_job *job)
{
	TAKT_VEC_EACH (host, &sched->hosts)
		if (!(*host)->removed && !is_tainted(*host) &&
		    takt_sched_count(takt_sched_host_free_gpus(*host, job->flags)) >= job->gpus)
			return true;
	return false;
}

static enum takt_why reason(const struct takt_sched *sched, const struct takt_sched_job *job)
{
	enum takt_why why = takt_sched_ungoverned(sched, job->gpus, job->flags);

	if (why != TAKT_WHY_NONE)
		return why;
	return fits_but_for_order(sched, job) ? TAKT_WHY_ORDER : TAKT_WHY_GPUS;
}

/* Each GPU once, in the first class that applies. */
static void count_gpus(const struct takt_sched_host *host, uint32_t flags,
		       struct takt_plan_wait *ret)
{
	uint64_t all = takt_sched_low_bits(host->gpu_count);
	uint64_t left = takt_sched_host_eligible(host, flags);
	uint64_t held = host->assigned | host->running;

	ret->total = host->gpu_count;
	ret->unhealthy = takt_sched_count(
		host->cordoned || host->resting ? all : host->quarantined | host->lost);
	ret->outside = takt_sched_count(all & ~left) - ret->unhealthy;
	ret->running = takt_sched_count(left & held);
	ret->draining = takt_sched_count(left & host->draining);
	left &= ~(held | host->draining);
	ret->promised = takt_sched_count(left & (host->taken | host->reserved));
	ret->free = takt_sched_count(left & ~(host->taken | host->reserved));
}

void takt_sched_explain(const struct takt_sched *sched, const struct takt_sched_job *job,
			struct takt_plan_wait *ret)
{
	enum takt_why why = reason(sched, job);
	const struct takt_sched_host *host = takt_sched_nearest(sched, job, why);

	*ret = (struct takt_plan_wait){.why = why, .need = job->gpus};
	if (host)
		count_gpus(host, job->flags, ret);
	if (why == TAKT_WHY_GPUS)
		ret->must_end = job->gpus - ret->free;
}
