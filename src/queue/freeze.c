/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running job's owner says of it: that its work so far is safe (a checkpoint), and that all
 * its processes are to stand still for a while. A job that stands still keeps its GPUs and their
 * memory, and its time limit goes on; to end it wakes it first. How long it stood is not learned as
 * time that such jobs take; that is kept in memory until the job's end, which has it on disk.
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

bool takt_queue_rested(const struct takt_queue *queue, const struct takt_queue_job *job,
		       uint64_t *ret_ns)
{
	*ret_ns = job->rested_ns;
	if (job->row.frozen)
		*ret_ns += queue->now.ns - job->rests_since.ns;
	return !job->rest_unknown && !(job->row.frozen && job->rests_since.ns == 0);
}

static void note_rest(struct takt_queue *queue, struct takt_queue_job *job, bool frozen)
{
	uint64_t rested_ns;

	if (frozen == job->row.frozen)
		return;
	job->rest_unknown = !takt_queue_rested(queue, job, &rested_ns);
	job->rested_ns = job->rest_unknown ? 0 : rested_ns;
	job->rests_since = queue->now;
	job->row.frozen = frozen;
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
	note_rest(queue, job, frozen);
	takt_queue_note_event(job, frozen ? TAKT_EVENT_FROZEN : TAKT_EVENT_THAWED);
	rc = takt_queue_post(queue, job, TICKET_NOTE, err);
	takt_queue_changed(queue, job);
	return rc;
}
