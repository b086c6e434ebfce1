/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would become of a job: it is told to the scheduler, looked at in a plan that nobody carries
 * out, and taken back. The next pump plans anew.
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

int takt_queue_try(struct takt_queue *queue, uid_t uid, struct takt_jobspec *spec,
		   struct takt_wall now, struct takt_queue_trial *ret, struct takt_err *err)
{
	struct takt_queue_job job = {.spec = *spec};
	struct takt_queue_trial trial = {.starts = false};
	struct takt_plan plan = {0};
	int rc = takt_queue_check_possible(queue, spec, err);

	if (rc < 0)
		return rc;
	job.row.id = queue->next_id;
	job.row.submit_seq = queue->next_seq;
	job.row.uid = uid;
	job.row.submitted = now;
	job.row.priority = spec->priority;
	job.row.held = spec->held ? TAKT_HOLD_OWNER : TAKT_HOLD_NONE;
	rc = takt_queue_find_tenant(queue, &job, true, err);
	if (rc == 0)
		rc = takt_queue_estimate(queue, &job, err);
	if (rc == 0)
		rc = takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, &job, err);
	if (rc < 0)
		return rc;
	rc = takt_sched_run(queue->sched, takt_queue_sched_ns(queue, now), 0, &plan, err);
	if (rc == 0)
		read_plan(queue, &plan, job.row.id, &trial);
	takt_plan_fini(&plan);
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ENDED, &job, NULL);
	trial.estimate = job.estimate;
	if (rc == 0)
		*ret = trial;
	return rc;
}
