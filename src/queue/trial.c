/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would become of jobs: they are told to the scheduler, looked at in a plan that nobody
 * carries out, and taken back. The next pump plans anew.
 */
#include <errno.h>

#include "base/str.h"
#include "queue/queue_impl.h"

static void read_wait(const struct takt_queue *queue, const struct takt_plan_wait *wait,
		      struct takt_queue_trial *ret)
{
	struct takt_str text = TAKT_STR(sizeof(ret->text) - 1);

	ret->why = wait->why;
	ret->ahead = wait->ahead;
	if (takt_why_text(wait, &text) == 0)
		takt_strcpy(ret->text, sizeof(ret->text), takt_str_text(&text));
	takt_str_fini(&text);
	if (wait->how != TAKT_START_UNKNOWN)
		ret->starts_at.ns = queue->config.epoch.ns + (int64_t)wait->start_ns;
}

static void read_plan(const struct takt_queue *queue, const struct takt_plan *plan, uint64_t job_id,
		      struct takt_queue_trial *ret)
{
	for (size_t i = 0; i < plan->placement_count; i++)
		if (plan->placements[i].job_id == job_id) {
			ret->starts = true;
			ret->gpu_mask |= plan->placements[i].gpu_mask;
		}
	for (size_t i = 0; i < plan->wait_count; i++)
		if (plan->waits[i].job_id == job_id)
			read_wait(queue, &plan->waits[i], ret);
}

/* Those of an array are looked at as one job. */
static struct takt_queue_job as_job(const struct takt_queue *queue, uid_t uid,
				    const struct takt_jobspec *spec, uint32_t index)
{
	struct takt_queue_job job = {.spec = *spec};

	job.row.id = queue->next_id + index;
	job.row.submit_seq = queue->next_seq + index;
	job.row.uid = uid;
	job.row.priority = spec->priority;
	job.row.held = spec->held ? TAKT_HOLD_OWNER : TAKT_HOLD_NONE;
	return job;
}

static int tell_one(struct takt_queue *queue, uid_t uid, const struct takt_jobspec *spec,
		    uint32_t index, struct takt_wall now, struct takt_queue_trial *ret,
		    struct takt_err *err)
{
	struct takt_queue_job job = as_job(queue, uid, spec, index);
	int rc;

	job.row.submitted = now;
	rc = takt_queue_find_tenant(queue, &job, true, err);
	if (rc == 0)
		rc = takt_queue_estimate(queue, &job, err);
	if (rc == 0)
		rc = takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, &job, err);
	ret->estimate = job.estimate;
	return rc;
}

/* The first so many are taken back, those that come after others first. */
static void take_back(struct takt_queue *queue, uid_t uid, const struct takt_jobspecs *specs,
		      uint32_t count)
{
	while (count-- > 0) {
		struct takt_queue_job job = as_job(queue, uid, &specs->jobs[count], count);

		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ENDED, &job, NULL);
	}
}

static int look(struct takt_queue *queue, const struct takt_jobspecs *specs, struct takt_wall now,
		struct takt_queue_trial *ret, struct takt_err *err)
{
	struct takt_plan plan = {0};
	int rc = takt_sched_run(queue->sched, takt_queue_sched_ns(queue, now), 0, &plan, err);

	for (uint32_t i = 0; rc == 0 && i < specs->count; i++)
		read_plan(queue, &plan, queue->next_id + i, &ret[i]);
	takt_plan_fini(&plan);
	return rc;
}

int takt_queue_try(struct takt_queue *queue, uid_t uid, struct takt_jobspecs *specs,
		   struct takt_wall now, struct takt_queue_trial *ret, struct takt_err *err)
{
	int rc = takt_queue_check_all(queue, specs, err);
	uint32_t told = 0;

	for (uint32_t i = 0; i < specs->count; i++) {
		ret[i] = (struct takt_queue_trial){.starts = false};
		specs->jobs[i].has_array = false;
	}
	if (rc == 0)
		rc = takt_queue_resolve_names(specs, queue->next_id, err);
	while (rc == 0 && told < specs->count) {
		rc = tell_one(queue, uid, &specs->jobs[told], told, now, &ret[told], err);
		told += rc == 0;
	}
	if (rc == 0)
		rc = look(queue, specs, now, ret, err);
	take_back(queue, uid, specs, told);
	return rc;
}
