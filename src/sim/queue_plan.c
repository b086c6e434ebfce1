/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's part of a plan: evictions and moves first, then, with a plan that has none, starts.
 */
#include "sim/queue_state.h"

#include <errno.h>

#include "base/mem.h"

enum {
	MAX_ROUNDS = 10000, /* plans at one instant */
};

/* Job of an id that the scheduler named; -EINVAL when it is not in that state. */
static int find_job(struct queue_sim *sim, uint64_t id, enum queue_job_state state, uint32_t *ret,
		    struct takt_err *err)
{
	if (id == 0 || id > sim->config->job_count || sim->jobs[id - 1].state != state)
		return takt_err_set(err, -EINVAL, "the plan names job %llu, which does not %s",
				    (unsigned long long)id,
				    state == QUEUE_WAITING ? "wait" : "run");
	*ret = (uint32_t)(id - 1);
	return 0;
}

static int evict(struct queue_sim *sim, const struct takt_plan_eviction *eviction,
		 struct takt_err *err)
{
	uint32_t index = 0;
	int rc = find_job(sim, eviction->job_id, QUEUE_RUNNING, &index, err);

	if (rc < 0)
		return rc;
	if (eviction->why == TAKT_EVICT_FAILURE) {
		sim->result.failures++;
	} else {
		sim->jobs[index].preemptions++;
		sim->result.preemptions++;
	}
	return queue_requeue(sim, index, err);
}

static int disturb(struct queue_sim *sim, struct takt_err *err)
{
	const struct takt_plan *plan = &sim->plan;
	int rc = 0;

	for (size_t i = 0; i < plan->eviction_count && rc == 0; i++)
		rc = evict(sim, &plan->evictions[i], err);
	for (size_t i = 0; i < plan->migration_count && rc == 0; i++) {
		const struct takt_plan_migration *migration = &plan->migrations[i];
		uint32_t index = 0;

		rc = find_job(sim, migration->job_id, QUEUE_RUNNING, &index, err);
		if (rc == 0)
			rc = queue_move(sim, index, migration->task, &migration->to, err);
	}
	return rc;
}

/* All tasks of one job, which stand together from `at`; one task of whole GPUs is told by its mask.
 */
static int place(struct queue_sim *sim, size_t at, uint32_t tasks, struct takt_err *err)
{
	const struct takt_plan_placement *first = &sim->plan.placements[at];
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_PLACED,
					 .job_id = first->job_id,
					 .node_id = first->node_id,
					 .gpu_mask = first->gpu_mask,
					 .at_ns = sim->now_ns};
	struct queue_job *job;
	uint32_t index = 0;
	int rc = find_job(sim, first->job_id, QUEUE_WAITING, &index, err);

	if (rc < 0)
		return rc;
	job = &sim->jobs[index];
	job->slots = takt_calloc(tasks, sizeof(*job->slots));
	if (!job->slots)
		return takt_err_set(err, -ENOMEM, "no memory for the places of a job");
	job->slot_count = tasks;
	for (uint32_t i = 0; i < tasks; i++)
		job->slots[i] = (struct takt_sched_slot){.node_id = first[i].node_id,
							 .milli = (uint16_t)first[i].milli,
							 .mig_start = (uint8_t)first[i].mig_start,
							 .gpu_mask = first[i].gpu_mask};
	if (tasks > 1 || (first->milli > 0 && first->milli < 1000)) {
		event.slots = job->slots;
		event.slot_count = tasks;
	}
	rc = takt_sched_update(sim->sched, &event, err);
	return rc < 0 ? rc : queue_start(sim, index, err);
}

static int start_all(struct queue_sim *sim, struct takt_err *err)
{
	size_t at = 0;

	while (at < sim->plan.placement_count) {
		uint32_t tasks = sim->plan.placements[at].tasks;
		int rc = place(sim, at, tasks ? tasks : 1, err);

		if (rc < 0)
			return rc;
		at += tasks ? tasks : 1;
	}
	return 0;
}

static int schedule_wake(struct queue_sim *sim, struct takt_err *err)
{
	uint64_t at = sim->plan.next_wakeup_ns;
	int rc = 0;

	if (at > sim->now_ns)
		rc = queue_schedule(sim, &sim->wake, at);
	else
		queue_unschedule(sim, &sim->wake);
	return rc < 0 ? takt_err_set(err, rc, "no memory for an event") : 0;
}

int queue_plan(struct queue_sim *sim, struct takt_err *err)
{
	int rc = 0;

	for (int round = 0; sim->plan_needed && rc == 0; round++) {
		if (round == MAX_ROUNDS)
			return takt_err_set(err, -EINVAL,
					    "%d plans at one instant: the scheduler comes to no "
					    "rest",
					    MAX_ROUNDS);
		rc = takt_sched_run(sim->sched, sim->now_ns, sim->config->seed, &sim->plan, err);
		if (rc < 0)
			return rc;
		sim->result.plans++;
		if (sim->plan.eviction_count + sim->plan.migration_count > 0) {
			rc = disturb(sim, err);
			continue;
		}
		rc = start_all(sim, err);
		sim->plan_needed = false;
	}
	return rc < 0 ? rc : schedule_wake(sim, err);
}
