/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and files: jobs that are accepted together or not at all. Each is a job of its own from
 * then on. None starts before all are on disk. When the disk refuses one, those that it took are
 * ended; a crash before the answer may leave the first ones, which then run like any job whose
 * submitter did not live to see the answer.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

void takt_queue_batch_leave(struct takt_queue_job *job)
{
	struct takt_queue_batch *batch = job->batch;

	job->batch = NULL;
	if (batch && --batch->members == 0 && !batch->posting)
		takt_free(batch);
}

/* It waits from now on, or ends at once. */
static void settle(struct takt_queue *queue, struct takt_queue_job *job, bool failed)
{
	job->phase = TAKT_PHASE_WAITING;
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, job, NULL);
	if (failed)
		takt_queue_say(
			job,
			"the jobs that it was handed in with could not all be written to disk");
	if (failed || job->row.cancel_wanted)
		takt_queue_end(queue, job, TAKT_JOB_CANCELLED);
}

static void finish(struct takt_queue *queue, struct takt_queue_batch *batch)
{
	struct takt_queue_job *first = NULL;
	struct takt_err why = batch->why;
	void *token = batch->token;

	batch->posting = true; /* ours until the end of this function */
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->batch != batch)
			continue;
		takt_queue_batch_leave(job);
		settle(queue, job, why.rc < 0);
		first = first ? first : job;
	}
	takt_free(batch);
	if (token)
		queue->config.hooks->accepted(queue->config.hooks_ctx, token, first,
					      why.rc < 0 ? &why : NULL);
}

void takt_queue_batch_inserted(struct takt_queue *queue, struct takt_queue_job *job,
			       const struct takt_err *refused)
{
	struct takt_queue_batch *batch = job->batch;

	batch->left--;
	if (refused && batch->why.rc == 0)
		batch->why = *refused;
	if (batch->left == 0 && !refused) {
		finish(queue, batch);
		return;
	}
	if (!refused)
		return;
	batch->posting = true; /* keep it while its job goes */
	takt_queue_job_drop(queue, job);
	batch->posting = false;
	if (batch->left == 0)
		finish(queue, batch);
}

static int join(struct takt_queue *queue, uid_t uid, gid_t gid, struct takt_jobspec *spec,
		struct takt_wall now, struct takt_queue_batch *batch, struct takt_err *err)
{
	struct takt_queue_job *job = NULL;
	int rc = takt_queue_submit_one(queue, uid, gid, spec, now, &job, err);

	if (rc < 0)
		return rc;
	job->batch = batch;
	batch->members++;
	batch->left++;
	return 0;
}

static int add_element(struct takt_queue *queue, uid_t uid, gid_t gid,
		       const struct takt_jobspec *array, uint64_t array_id, uint32_t index,
		       struct takt_wall now, struct takt_queue_batch *batch, struct takt_err *err)
{
	struct takt_jobspec spec;
	int rc;

	takt_jobspec_init(&spec);
	rc = takt_jobspec_element(array, array_id, index, &spec, err);
	if (rc == 0)
		rc = join(queue, uid, gid, &spec, now, batch, err);
	takt_jobspec_fini(&spec);
	return rc;
}

int takt_queue_check_count(const struct takt_queue *queue, uint32_t count, struct takt_err *err)
{
	if (queue->jobs.len + count <= queue->config.max_jobs)
		return 0;
	return takt_err_set(err, -TAKT_E_LIMIT,
			    "%u jobs: the queue has room for %zu more (max_jobs)", count,
			    queue->config.max_jobs - queue->jobs.len);
}

static int begin(const struct takt_queue *queue, uint32_t count, void *token,
		 struct takt_queue_batch **ret, struct takt_err *err)
{
	struct takt_queue_batch *batch;
	int rc = takt_queue_check_count(queue, count, err);

	if (rc < 0)
		return rc;
	batch = takt_zalloc(sizeof(*batch));
	if (!batch)
		return takt_err_set(err, -ENOMEM, "the jobs");
	batch->token = token;
	batch->posting = true;
	*ret = batch;
	return 0;
}

/* Everything is posted, or `why` says what was refused: then what was posted before it ends when it
 * is on disk, and nobody is answered. */
static int close_batch(struct takt_queue_batch *batch, int rc, const struct takt_err *why,
		       struct takt_err *err)
{
	batch->posting = false;
	if (rc == 0)
		return 0;
	if (err)
		*err = *why;
	batch->token = NULL;
	batch->why = *why;
	if (batch->members == 0)
		takt_free(batch);
	return rc;
}

uint32_t takt_queue_jobs_of(const struct takt_jobspec *spec)
{
	return spec->has_array ? spec->array_last - spec->array_first + 1 : 1;
}

uint32_t takt_queue_jobs_of_all(const struct takt_jobspecs *specs)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < specs->count; i++)
		count += takt_queue_jobs_of(&specs->jobs[i]);
	return count;
}

/* All jobs of an array, from `array_id` on; or the one. */
static int add_jobs(struct takt_queue *queue, uid_t uid, gid_t gid, struct takt_jobspec *spec,
		    struct takt_wall now, struct takt_queue_batch *batch, struct takt_err *err)
{
	uint64_t array_id = queue->next_id;
	int rc = 0;

	if (!spec->has_array)
		return join(queue, uid, gid, spec, now, batch, err);
	for (uint32_t i = 0; rc == 0 && i < takt_queue_jobs_of(spec); i++)
		rc = add_element(queue, uid, gid, spec, array_id, spec->array_first + i, now, batch,
				 err);
	return rc;
}

int takt_queue_submit_array(struct takt_queue *queue, uid_t uid, gid_t gid,
			    struct takt_jobspec *spec, struct takt_wall now, void *token,
			    struct takt_err *err)
{
	struct takt_queue_batch *batch = NULL;
	struct takt_err why = {.rc = 0};
	int rc = begin(queue, takt_queue_jobs_of(spec), token, &batch, err);

	if (rc < 0)
		return rc;
	rc = add_jobs(queue, uid, gid, spec, now, batch, &why);
	rc = close_batch(batch, rc, &why, err);
	if (rc == 0)
		takt_jobspec_fini(spec);
	return rc;
}

/* Nothing is posted before all of them are known to be possible. */
int takt_queue_check_all(struct takt_queue *queue, const struct takt_jobspecs *specs,
			 struct takt_err *err)
{
	for (uint32_t i = 0; i < specs->count; i++) {
		int rc = takt_queue_check_possible(queue, &specs->jobs[i], err);

		if (rc < 0)
			return specs->count > 1 ? takt_err_wrap(err, rc, "jobs[%u]", i) : rc;
	}
	return 0;
}

int takt_queue_submit_many(struct takt_queue *queue, uid_t uid, gid_t gid,
			   struct takt_jobspecs *specs, struct takt_wall now, void *token,
			   struct takt_err *err)
{
	struct takt_queue_batch *batch = NULL;
	struct takt_err why = {.rc = 0};
	int rc = takt_queue_check_all(queue, specs, err);

	if (rc == 0)
		rc = takt_queue_resolve_names(specs, queue->next_id, err);
	if (rc == 0)
		rc = begin(queue, takt_queue_jobs_of_all(specs), token, &batch, err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; rc == 0 && i < specs->count; i++)
		rc = add_jobs(queue, uid, gid, &specs->jobs[i], now, batch, &why);
	return close_batch(batch, rc, &why, err);
}
