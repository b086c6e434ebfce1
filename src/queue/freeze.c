/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running job's owner says of it: that its work so far is safe (a checkpoint), and that all
 * its processes are to stand still for a while. A job that stands still keeps its GPUs and their
 * memory, and its time limit goes on; to end it wakes it first.
 */
#include <signal.h>

#include "queue/queue_impl.h"

static int find_running(const struct takt_queue *queue, uint64_t job_id,
			struct takt_queue_job **ret, struct takt_err *err)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, job_id);

	if (!job || job->phase != TAKT_PHASE_RUNNING)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu is not running",
				    (unsigned long long)job_id);
	*ret = job;
	return 0;
}

int takt_queue_checkpointed(struct takt_queue *queue, uint64_t job_id, struct takt_wall now,
			    struct takt_err *err)
{
	struct takt_queue_job *job = NULL;
	int rc = find_running(queue, job_id, &job, err);

	if (rc < 0)
		return rc;
	job->row.checkpoint_at = now;
	rc = takt_queue_tell(queue, TAKT_SCHED_JOB_CHECKPOINT, job, err);
	if (rc == 0)
		rc = takt_queue_post(queue, job, TICKET_NOTE, err);
	takt_queue_changed(queue, job);
	return rc;
}

int takt_queue_freeze(struct takt_queue *queue, uint64_t job_id, bool frozen, struct takt_err *err)
{
	struct takt_queue_job *job = NULL;
	int rc = find_running(queue, job_id, &job, err);

	if (rc < 0)
		return rc;
	if (job->row.state == TAKT_JOB_STOPPING)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu is being stopped",
				    (unsigned long long)job_id);
	rc = takt_queue_signal(queue, job_id, frozen ? SIGSTOP : SIGCONT, err);
	if (rc < 0)
		return rc;
	job->row.frozen = frozen;
	rc = takt_queue_post(queue, job, TICKET_NOTE, err);
	takt_queue_changed(queue, job);
	return rc;
}
