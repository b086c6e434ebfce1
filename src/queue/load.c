/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a start of the daemon: the live jobs of the store come back. Those that wait, wait; those
 * that had an attempt keep its GPUs until the engine has said what became of it.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

struct load {
	struct takt_queue *queue;
	struct takt_err *err;
};

static int copy_row(const struct takt_job *from, struct takt_job *ret)
{
	*ret = *from;
	ret->spec_json = takt_strdup(from->spec_json);
	ret->message = takt_strdup(from->message);
	return (from->spec_json && !ret->spec_json) || (from->message && !ret->message) ? -ENOMEM
											: 0;
}

static int load_one(void *ctx, const struct takt_job *row)
{
	struct load *load = ctx;
	struct takt_queue *queue = load->queue;
	struct takt_queue_job *job = takt_zalloc(sizeof(*job));
	int rc;

	if (!job)
		return takt_err_set(load->err, -ENOMEM, "load job %llu",
				    (unsigned long long)row->id);
	takt_jobspec_init(&job->spec);
	rc = copy_row(row, &job->row);
	if (rc == 0)
		rc = takt_jobspec_from_json(row->spec_json, strlen(row->spec_json), &job->spec,
					    load->err);
	if (rc == 0)
		rc = takt_map_u64_put_ptr(&queue->jobs, row->id, job);
	if (rc < 0) {
		takt_job_fini(&job->row);
		takt_jobspec_fini(&job->spec);
		takt_free(job);
		return takt_err_wrap(load->err, rc, "load job %llu", (unsigned long long)row->id);
	}
	job->phase = row->state == TAKT_JOB_WAITING ? TAKT_PHASE_WAITING : TAKT_PHASE_STARTING;
	job->stop_wanted = row->cancel_wanted;
	return takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, job, load->err);
}

static int claim_attempts(struct takt_queue *queue,
			  int (*attempt)(void *ctx, const struct takt_queue_job *job,
					 struct takt_err *err),
			  void *ctx, struct takt_err *err)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;
		int rc = 0;

		if (job->phase == TAKT_PHASE_STARTING)
			rc = takt_queue_tell(queue, TAKT_SCHED_JOB_PLACED, job, err);
		if (rc == 0 && job->phase == TAKT_PHASE_STARTING)
			rc = attempt(ctx, job, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void end_cancelled(struct takt_queue *queue)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->phase == TAKT_PHASE_WAITING && job->row.cancel_wanted)
			takt_queue_end(queue, job, TAKT_JOB_CANCELLED);
	}
}

int takt_queue_load(struct takt_queue *queue,
		    int (*attempt)(void *ctx, const struct takt_queue_job *job,
				   struct takt_err *err),
		    void *ctx, struct takt_err *err)
{
	struct load load = {queue, err};
	int rc = takt_store_each_live(queue->config.store, load_one, &load, err);

	if (rc == 0)
		rc = claim_attempts(queue, attempt, ctx, err);
	if (rc == 0)
		end_cancelled(queue);
	return rc;
}
