/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is changed about a job that waits: held or not, its priority. A change counts at once, since
 * a plan that is made while it is on its way to disk would start what somebody wants to hold. There
 * is one at a time a job, so that one which the disk refuses can be undone exactly.
 */
#include <errno.h>

#include "queue/queue_impl.h"

static int tell_change(struct takt_queue *queue, const struct takt_queue_job *job,
		       struct takt_err *err)
{
	return takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, err);
}

static int may_change(const struct takt_queue_job *job, struct takt_err *err)
{
	if (job->phase != TAKT_PHASE_WAITING || job->row.cancel_wanted)
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "job %llu is %s; only waiting jobs can be changed",
				    (unsigned long long)job->row.id,
				    job->row.cancel_wanted ? "being cancelled"
							   : takt_job_state_name(job->row.state));
	if (job->changing)
		return takt_err_set(err, -TAKT_E_BUSY,
				    "another change of job %llu is being written; try again",
				    (unsigned long long)job->row.id);
	return 0;
}

static void restore(struct takt_queue *queue, struct takt_queue_job *job,
		    const struct pending_change *was)
{
	job->row.held = was->was_held;
	job->row.priority = was->was_priority;
	if (job->phase == TAKT_PHASE_WAITING)
		(void)tell_change(queue, job, NULL);
}

int takt_queue_change(struct takt_queue *queue, uint64_t job_id,
		      const struct takt_queue_change *change, void *token, struct takt_err *err)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, job_id);
	struct pending_change was;
	int rc;

	if (!job)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu has ended",
				    (unsigned long long)job_id);
	rc = may_change(job, err);
	if (rc < 0)
		return rc;
	was = (struct pending_change){job_id, token, job->row.held, job->row.priority};
	if (takt_vec_push(&queue->changes, was) < 0)
		return takt_err_set(err, -ENOMEM, "the change of job %llu",
				    (unsigned long long)job_id);
	if (change->set_held)
		job->row.held = change->held;
	if (change->set_priority)
		job->row.priority = change->priority;
	rc = tell_change(queue, job, err);
	if (rc == 0)
		rc = takt_queue_post(queue, job, TICKET_CHANGE, err);
	if (rc < 0) {
		restore(queue, job, &was);
		queue->changes.len--;
		return rc;
	}
	job->changing = true;
	return 0;
}

void takt_queue_change_done(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused)
{
	size_t i = 0;

	while (i < queue->changes.len && queue->changes.at[i].job_id != job->row.id)
		i++;
	if (i == queue->changes.len)
		return;
	job->changing = false;
	if (refused)
		restore(queue, job, &queue->changes.at[i]);
	if (queue->changes.at[i].token)
		queue->config.hooks->noted(queue->config.hooks_ctx, queue->changes.at[i].token, job,
					   refused);
	takt_vec_remove(&queue->changes, i);
}
