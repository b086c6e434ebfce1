/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is changed about a job that waits: held or not, its priority; and of one that runs, too,
 * its time limit, what was promised of its clocks, or that it is to begin anew. A change counts at
 * once, since a plan that is made while it is on its way to disk would start what somebody wants to
 * hold. There is one at a time a job, so that one which the disk refuses can be undone exactly.
 */
#include <errno.h>

#include "base/timetext.h"
#include "queue/queue_impl.h"

static int tell_change(struct takt_queue *queue, const struct takt_queue_job *job,
		       struct takt_err *err)
{
	return takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, err);
}

static bool is_of_running(const struct takt_queue_job *job, const struct takt_queue_change *change)
{
	return job->phase == TAKT_PHASE_RUNNING && !change->set_held && !change->set_priority;
}

/* What is ended already, or stands still for another one, has no attempt to be ended. */
static int may_begin_anew(const struct takt_queue_job *job, struct takt_err *err)
{
	if (job->phase != TAKT_PHASE_RUNNING || job->row.state != TAKT_JOB_RUNNING)
		return takt_err_set(
			err, -TAKT_E_CONFLICT, "job %llu is %s; only running jobs can be requeued",
			(unsigned long long)job->row.id, takt_job_state_name(job->row.state));
	if (job->evict.step >= TAKT_EVICT_STILLING)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu is frozen for job %llu",
				    (unsigned long long)job->row.id,
				    (unsigned long long)job->row.evict_for);
	return 0;
}

/* Of one that runs it has to be longer than that: what has been ended cannot be undone where the
 * disk refuses the change. */
static int may_limit(const struct takt_queue *queue, const struct takt_queue_job *job,
		     uint64_t limit_ms, struct takt_err *err)
{
	uint64_t ran_ns = takt_queue_ran_ns(queue, job);
	char ran[TAKT_DURATION_TEXT];

	if (job->row.timed_out)
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "job %llu is being stopped: its time limit was over",
				    (unsigned long long)job->row.id);
	if (limit_ms > 0 && limit_ms * TAKT_NS_PER_MS <= ran_ns)
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "job %llu has run for %s already: give a longer limit, or "
				    "cancel it",
				    (unsigned long long)job->row.id,
				    takt_duration_text(ran_ns, ran));
	return 0;
}

static int may_change(const struct takt_queue *queue, const struct takt_queue_job *job,
		      const struct takt_queue_change *change, struct takt_err *err)
{
	int rc = change->begin_anew ? may_begin_anew(job, err) : 0;

	if (rc < 0)
		return rc;
	if ((job->phase != TAKT_PHASE_WAITING && !is_of_running(job, change)) ||
	    job->row.cancel_wanted)
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "job %llu is %s; only waiting jobs can be changed",
				    (unsigned long long)job->row.id,
				    job->row.cancel_wanted ? "being cancelled"
							   : takt_job_state_name(job->row.state));
	if (job->changing)
		return takt_err_set(err, -TAKT_E_BUSY,
				    "another change of job %llu is being written; try again",
				    (unsigned long long)job->row.id);
	return change->set_time_limit && job->phase == TAKT_PHASE_RUNNING
		       ? may_limit(queue, job, change->time_limit_ms, err)
		       : 0;
}

void takt_queue_keep_changes(const struct takt_job *row, struct takt_jobspec *spec)
{
	if (row->limit.changed)
		spec->time_limit_ms = row->limit.time_ms;
	if (!row->promise.changed)
		return;
	spec->max_slowdown_permille = row->promise.max_slowdown_permille;
	takt_strcpy(spec->clock_policy, sizeof(spec->clock_policy), row->promise.clock_policy);
}

/* Of a job that lives: what is expected of its run depends on its limit. */
static void keep_changes(struct takt_queue *queue, struct takt_queue_job *job)
{
	uint64_t was_ms = job->spec.time_limit_ms;

	takt_queue_keep_changes(&job->row, &job->spec);
	if (job->spec.time_limit_ms != was_ms)
		takt_queue_estimate_anew(queue, job);
}

static struct takt_job_promise promise_of(const struct takt_jobspec *spec)
{
	struct takt_job_promise promise = {
		.changed = true,
		.max_slowdown_permille = spec->max_slowdown_permille,
	};

	takt_strcpy(promise.clock_policy, sizeof(promise.clock_policy), spec->clock_policy);
	return promise;
}

static void restore(struct takt_queue *queue, struct takt_queue_job *job,
		    const struct pending_change *was)
{
	job->row.held = was->was_held;
	job->row.priority = was->was_priority;
	job->row.promise = was->was_said;
	job->row.limit = (struct takt_job_limit){true, was->was_limit_ms};
	keep_changes(queue, job);
	job->row.promise = was->was_promise;
	job->row.limit = was->was_limit;
	if (job->evict.step == TAKT_EVICT_ASKED)
		takt_queue_drop_eviction(queue, job);
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
	rc = may_change(queue, job, change, err);
	if (rc < 0)
		return rc;
	was = (struct pending_change){.job_id = job_id,
				      .token = token,
				      .was_held = job->row.held,
				      .was_priority = job->row.priority,
				      .was_promise = job->row.promise,
				      .was_said = promise_of(&job->spec),
				      .was_limit = job->row.limit,
				      .was_limit_ms = job->spec.time_limit_ms};
	if (takt_vec_push(&queue->changes, was) < 0)
		return takt_err_set(err, -ENOMEM, "the change of job %llu",
				    (unsigned long long)job_id);
	if (change->set_held)
		job->row.held = change->held;
	if (change->set_priority)
		job->row.priority = change->priority;
	if (change->set_promise)
		job->row.promise = change->promise;
	if (change->set_time_limit)
		job->row.limit = (struct takt_job_limit){true, change->time_limit_ms};
	if (change->begin_anew)
		takt_queue_ask_to_go(queue, job);
	keep_changes(queue, job);
	rc = job->phase == TAKT_PHASE_WAITING ? tell_change(queue, job, err) : 0;
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
	else if (job->evict.step == TAKT_EVICT_ASKED)
		takt_queue_asking_noted(queue, job);
	else if (job->phase == TAKT_PHASE_RUNNING)
		takt_queue_changed(queue, job);
	takt_queue_limit_anew(queue, job);
	if (queue->changes.at[i].token)
		queue->config.hooks->noted(queue->config.hooks_ctx, queue->changes.at[i].token, job,
					   refused);
	takt_vec_remove(&queue->changes, i);
}
