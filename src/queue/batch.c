/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and files: jobs that are accepted together or not at all. Each is a job of its own from
 * then on. None starts before all are on disk. When the disk refuses one, those that it took are
 * ended; a crash before the answer may leave the first ones, which then run like any job whose
 * submitter did not live to see the answer.
 *
 * Ten thousand jobs are not made in one turn of the main loop, nor given to the store while it has
 * as much to write as it takes: so many a turn, the batches in turns. Their numbers are theirs from
 * the beginning, so that those of an array are in a row.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

enum {
	FEED_JOBS = 64,		 /* made in one turn, */
	FEED_BYTES = 512 * 1024, /* and of descriptions no more than this and one more */
};

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
	bool posting = batch->posting;

	batch->left--;
	if (refused) {
		if (batch->why.rc == 0)
			batch->why = *refused;
		batch->posting = true; /* keep it while its job goes */
		takt_queue_job_drop(queue, job);
		batch->posting = posting;
	}
	if (batch->left == 0 && !posting)
		finish(queue, batch);
}

/* What was kept for jobs to come is taken by those that have come, or not needed. */
static void spend(struct takt_queue *queue, struct takt_queue_batch *batch, uint32_t jobs,
		  size_t bytes)
{
	bytes = bytes < batch->bytes_to_come ? bytes : batch->bytes_to_come;
	batch->bytes_to_come -= bytes;
	batch->to_come -= jobs;
	queue->to_come -= jobs;
	takt_queue_user_lets_go(queue, batch->entry.uid, jobs, bytes);
}

static int join(struct takt_queue *queue, struct takt_queue_batch *batch, struct takt_jobspec *spec,
		struct takt_err *err)
{
	struct takt_queue_job *job = NULL;
	int rc = takt_queue_submit_one(queue, &batch->entry, spec, &job, err);

	if (rc < 0)
		return rc;
	job->batch = batch;
	batch->members++;
	batch->left++;
	batch->entry.id++;
	batch->entry.seq++;
	spend(queue, batch, 1, job->bytes);
	return 0;
}

/* The next array: what its jobs have together. */
static int begin_array(struct takt_queue *queue, struct takt_queue_batch *batch,
		       struct takt_jobspec *array, struct takt_err *err)
{
	char **env = array->env;

	batch->array_id = batch->entry.id;
	array->env = NULL;
	if (!env)
		return 0;
	batch->entry.env = takt_queue_env_share(queue, batch->array_id, batch->entry.uid, env);
	if (!batch->entry.env)
		return takt_err_set(err, -ENOMEM, "the environment of an array");
	spend(queue, batch, 0, batch->entry.env->bytes);
	return 0;
}

static int add_element(struct takt_queue *queue, struct takt_queue_batch *batch,
		       struct takt_jobspec *array, struct takt_err *err)
{
	struct takt_jobspec spec;
	int rc = batch->element == 0 ? begin_array(queue, batch, array, err) : 0;

	takt_jobspec_init(&spec);
	if (rc == 0)
		rc = takt_jobspec_element(array, batch->array_id,
					  array->array_first + batch->element, &spec, err);
	if (rc == 0)
		rc = join(queue, batch, &spec, err);
	takt_jobspec_fini(&spec);
	return rc;
}

static int add_next(struct takt_queue *queue, struct takt_queue_batch *batch, struct takt_err *err)
{
	struct takt_jobspec *spec = &batch->specs.jobs[batch->spec];
	int rc = spec->has_array ? add_element(queue, batch, spec, err)
				 : join(queue, batch, spec, err);

	if (rc < 0)
		return rc;
	if (++batch->element < takt_queue_jobs_of(spec))
		return 0;
	takt_queue_env_unref(batch->entry.env);
	batch->entry.env = NULL;
	batch->element = 0;
	batch->spec++;
	return 0;
}

/* Nothing more is to come of it. */
static void stop_posting(struct takt_queue *queue, struct takt_queue_batch *batch)
{
	takt_queue_env_unref(batch->entry.env);
	batch->entry.env = NULL;
	spend(queue, batch, batch->to_come, batch->bytes_to_come);
	takt_jobspecs_free(&batch->specs);
	batch->posting = false;
}

/* Posts some of it, or with `all` the rest, as long as there is room. 0, or why the next could not
 * be posted; nothing more is to come then. */
static int feed(struct takt_queue *queue, struct takt_queue_batch *batch, bool all,
		struct takt_err *err)
{
	size_t before = batch->bytes_to_come;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && batch->to_come > 0 && batch->why.rc == 0; i++) {
		size_t fed = before - batch->bytes_to_come;

		if (!all && (i == FEED_JOBS || fed > FEED_BYTES ||
			     !takt_store_has_room(queue->config.store, 0)))
			return 0;
		rc = add_next(queue, batch, err);
	}
	stop_posting(queue, batch);
	return rc;
}

/* Behind the others. */
static void append(struct takt_queue *queue, struct takt_queue_batch *batch)
{
	struct takt_queue_batch **at = &queue->batches;

	while (*at)
		at = &(*at)->next;
	batch->next = NULL;
	*at = batch;
}

bool takt_queue_feed_batches(struct takt_queue *queue)
{
	struct takt_queue_batch *batch = queue->batches;
	struct takt_err why = {.rc = 0};

	if (!batch)
		return false;
	if (batch->why.rc == 0 && !takt_store_has_room(queue->config.store, 0))
		return false; /* its next word wakes us */
	queue->batches = batch->next;
	if (feed(queue, batch, false, &why) < 0 && batch->why.rc == 0)
		batch->why = why;
	if (batch->posting)
		append(queue, batch);
	else if (batch->left == 0)
		finish(queue, batch);
	return queue->batches != NULL;
}

void takt_queue_free_batches(struct takt_queue *queue)
{
	while (queue->batches) {
		struct takt_queue_batch *batch = queue->batches;

		queue->batches = batch->next;
		(void)feed(queue, batch, true, NULL);
		if (batch->members == 0)
			takt_free(batch);
	}
}

static struct takt_queue_batch *new_batch(struct takt_queue *queue, uid_t uid, gid_t gid,
					  struct takt_jobspecs *specs, struct takt_wall now,
					  void *token)
{
	struct takt_queue_batch *batch = takt_zalloc(sizeof(*batch));

	if (!batch)
		return NULL;
	batch->token = token;
	batch->posting = true;
	batch->to_come = takt_queue_jobs_of_all(specs);
	batch->entry = (struct takt_queue_entry){.uid = uid,
						 .gid = gid,
						 .now = now,
						 .id = queue->next_id,
						 .seq = queue->next_seq,
						 .weighed = true};
	batch->specs = *specs;
	*specs = (struct takt_jobspecs){.count = 0};
	return batch;
}

/* Its first jobs are posted. On a failure what was posted ends when it is on disk, and nobody is
 * answered. */
static int open_batch(struct takt_queue *queue, struct takt_queue_batch *batch,
		      struct takt_err *err)
{
	struct takt_err why = {.rc = 0};
	int rc = feed(queue, batch, false, &why);

	if (batch->posting)
		append(queue, batch);
	if (rc == 0)
		return 0;
	if (err)
		*err = why;
	batch->token = NULL;
	batch->why = why;
	if (batch->members == 0)
		takt_free(batch);
	return rc;
}

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
	struct takt_queue_batch *batch;
	size_t bytes = 0;
	int rc = takt_queue_check_all(queue, specs, err);

	if (rc == 0)
		rc = takt_queue_resolve_names(specs, queue->next_id, err);
	if (rc == 0)
		rc = takt_queue_check_limits_of(queue, uid, specs, &bytes, err);
	if (rc < 0)
		return rc;
	rc = takt_queue_user_has(queue, uid, takt_queue_jobs_of_all(specs), bytes);
	if (rc < 0)
		return takt_err_set(err, rc, "the jobs");
	batch = new_batch(queue, uid, gid, specs, now, token);
	if (!batch) {
		takt_queue_user_lets_go(queue, uid, takt_queue_jobs_of_all(specs), bytes);
		return takt_err_set(err, -ENOMEM, "the jobs");
	}
	queue->next_id += batch->to_come;
	queue->next_seq += batch->to_come;
	queue->to_come += batch->to_come;
	batch->bytes_to_come = bytes;
	return open_batch(queue, batch, err);
}
