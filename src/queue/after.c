/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that come after others. The rule: a job whose dependency can never be met is ended,
 * cancelled, with a message that names the other one; so a chain behind a failure ends as a whole
 * and nothing waits for ever. A dependency that is over when the job is handed in is decided then.
 *
 * Dependencies were accepted before the job: one walk in the order of acceptance ends a chain.
 */
#include <errno.h>
#include <stdio.h>

#include "queue/queue_impl.h"

/* How a job that the queue does not have ended; *ret_state untouched when history does not know it
 * (any more). */
static int ended_state(struct takt_queue *queue, uint64_t job_id, enum takt_job_state *ret_state,
		       struct takt_err *err)
{
	struct takt_job row = {0};
	int rc = takt_store_get(queue->config.store, job_id, &row, err);

	if (rc == 0)
		*ret_state = row.state;
	takt_job_fini(&row);
	return rc;
}

static int check_one(struct takt_queue *queue, const struct takt_spec_after *after,
		     struct takt_err *err)
{
	enum takt_job_state state = TAKT_JOB_DONE;
	int rc;

	if (takt_queue_job_find(queue, after->job))
		return 0;
	rc = ended_state(queue, after->job, &state, err);
	if (rc == -TAKT_E_NOT_FOUND)
		return takt_err_set(err, rc, "there is no job %llu to come after",
				    (unsigned long long)after->job);
	if (rc == 0 && !after->any && state != TAKT_JOB_DONE)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "comes after job %llu, which has ended: %s; '%llu:any' comes "
				    "after it however it ended",
				    (unsigned long long)after->job, takt_job_state_name(state),
				    (unsigned long long)after->job);
	return rc;
}

int takt_queue_check_after(struct takt_queue *queue, const struct takt_jobspec *spec,
			   struct takt_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < spec->after_count; i++)
		rc = check_one(queue, &spec->after[i], err);
	return rc;
}

uint32_t takt_queue_sched_after(const struct takt_queue_job *job, struct takt_sched_after *ret)
{
	for (uint32_t i = 0; i < job->spec.after_count; i++)
		ret[i] = (struct takt_sched_after){.job_id = job->spec.after[i].job,
						   .any = job->spec.after[i].any};
	return job->spec.after_count;
}

void takt_queue_note_bad_end(struct takt_queue *queue, const struct takt_queue_job *job)
{
	/* Without memory for it the scheduler still never starts what comes after; the next start
	 * of the daemon ends it. */
	(void)takt_map_u64_put(&queue->ended_badly, job->row.id,
			       (union takt_map_value){.u64 = job->row.state});
}

int takt_queue_load_after(struct takt_queue *queue, const struct takt_queue_job *job,
			  struct takt_err *err)
{
	for (uint32_t i = 0; job->row.attempt == 0 && i < job->spec.after_count; i++) {
		enum takt_job_state state = TAKT_JOB_DONE;
		uint64_t id = job->spec.after[i].job;
		int rc = takt_queue_job_find(queue, id) ? 0 : ended_state(queue, id, &state, err);

		/* What history has let go of ended well: else this one would be over. */
		if (rc < 0 && rc != -TAKT_E_NOT_FOUND)
			return rc;
		if (state != TAKT_JOB_DONE &&
		    takt_map_u64_put(&queue->ended_badly, id,
				     (union takt_map_value){.u64 = state}) < 0)
			return takt_err_set(err, -ENOMEM, "dependencies of job %llu",
					    (unsigned long long)job->row.id);
	}
	return 0;
}

/* The dependency that can never be met, or NULL. */
static const struct takt_spec_after *unmet(const struct takt_queue *queue,
					   const struct takt_queue_job *job)
{
	for (uint32_t i = 0; i < job->spec.after_count; i++)
		if (!job->spec.after[i].any &&
		    takt_map_u64_get(&queue->ended_badly, job->spec.after[i].job))
			return &job->spec.after[i];
	return NULL;
}

static void end_one(struct takt_queue *queue, struct takt_queue_job *job,
		    const struct takt_spec_after *after)
{
	enum takt_job_state state =
		(enum takt_job_state)takt_map_u64_get(&queue->ended_badly, after->job)->u64;
	char text[120];

	snprintf(text, sizeof(text), "never starts: it comes after job %llu, which ended: %s",
		 (unsigned long long)after->job, takt_job_state_name(state));
	takt_queue_say(job, text);
	takt_queue_note_cause(job, TAKT_CAUSE_DEPENDENCY);
	job->row.cancel_wanted = true; /* ACCEPTING: ends when it is accepted */
	if (job->phase == TAKT_PHASE_WAITING)
		takt_queue_end(queue, job, TAKT_JOB_CANCELLED);
	else
		takt_queue_note_bad_end(queue, job);
}

void takt_queue_end_dependants(struct takt_queue *queue)
{
	if (queue->ended_badly.len == 0)
		return;
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;
		const struct takt_spec_after *after = job->phase <= TAKT_PHASE_WAITING &&
								      job->row.attempt == 0 &&
								      !job->row.cancel_wanted
							      ? unmet(queue, job)
							      : NULL;

		if (after)
			end_one(queue, job, after);
	}
	takt_map_clear(&queue->ended_badly);
}
