/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plan says of jobs that wait, for those who look: in which order, why, from when on. With
 * a long queue a plan says it of the first ones only; whoever looks further has it made once more,
 * for the same instant, and only those words are taken from it.
 */
#include <errno.h>

#include "queue/queue_impl.h"

int takt_queue_index_waits(struct takt_queue *queue)
{
	int rc = 0;

	takt_map_clear(&queue->waits);
	for (size_t i = 0; rc == 0 && i < queue->plan.wait_count; i++)
		rc = takt_map_u64_put(&queue->waits, queue->plan.waits[i].job_id,
				      (union takt_map_value){.u64 = i});
	return rc;
}

#define SWAP(type, a, b)            \
	do {                        \
		type swapped = (a); \
		(a) = (b);          \
		(b) = swapped;      \
	} while (0)

void takt_queue_explain(struct takt_queue *queue, uint32_t most)
{
	struct takt_plan *plan = &queue->plan, fuller = {0};

	if (!plan->waits_cut || plan->wait_count >= most ||
	    takt_sched_run_briefly(queue->sched, queue->planned_ns, most, &fuller, NULL) < 0)
		return;
	SWAP(struct takt_plan_wait *, plan->waits, fuller.waits);
	SWAP(size_t, plan->wait_count, fuller.wait_count);
	SWAP(struct takt_plan_fit *, plan->fits, fuller.fits);
	SWAP(size_t, plan->fit_count, fuller.fit_count);
	plan->waits_cut = fuller.waits_cut;
	takt_plan_fini(&fuller);
	(void)takt_queue_index_waits(queue); /* what has no room there has no reason told */
}

/* 0 running, 1 waiting: the order in which people look. */
static int group_of(const struct takt_queue_job *job)
{
	return job->phase == TAKT_PHASE_WAITING || job->phase == TAKT_PHASE_ACCEPTING;
}

static int each_running(const struct takt_queue *queue,
			int (*each)(void *ctx, const struct takt_queue_job *job), void *ctx)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		int rc = group_of(entry->value.ptr) == 0 ? each(ctx, entry->value.ptr) : 0;

		if (rc < 0)
			return rc;
	}
	return 0;
}

int takt_queue_each(struct takt_queue *queue, uint32_t most,
		    int (*each)(void *ctx, const struct takt_queue_job *job), void *ctx)
{
	int rc;

	takt_queue_explain(queue, most);
	rc = each_running(queue, each, ctx);

	/* The plan lists waiting jobs in queue order; those it has not seen yet follow. */
	for (size_t i = 0; rc >= 0 && i < queue->plan.wait_count; i++) {
		const struct takt_queue_job *job =
			takt_queue_find(queue, queue->plan.waits[i].job_id);

		if (job && group_of(job) == 1)
			rc = each(ctx, job);
	}
	TAKT_MAP_EACH(entry, &queue->jobs)
	if (rc >= 0 && group_of(entry->value.ptr) == 1 &&
	    !takt_map_u64_get(&queue->waits, entry->key))
		rc = each(ctx, entry->value.ptr);
	return rc < 0 ? rc : 0;
}

const struct takt_plan_wait *takt_queue_why(const struct takt_queue *queue, uint64_t job_id,
					    uint32_t *ret_ahead)
{
	const union takt_map_value *at = takt_map_u64_get(&queue->waits, job_id);

	if (!at)
		return NULL;
	*ret_ahead = (uint32_t)at->u64;
	return &queue->plan.waits[at->u64];
}

void takt_queue_counts(const struct takt_queue *queue, uint32_t *ret_waiting, uint32_t *ret_running)
{
	uint32_t waiting = 0, running = 0;

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		if (group_of(entry->value.ptr))
			waiting++;
		else
			running++;
	}
	*ret_waiting = waiting;
	*ret_running = running;
}
