/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other terms while jobs wait and run. A scheduler keeps its settings for life, so another one
 * takes over all that the present one knows, with what the settings change of each job.
 */
#include <errno.h>
#include <string.h>

#include "queue/queue_impl.h"

struct copy {
	const struct takt_queue *queue;
	struct takt_sched *to;
};

static int copy_event(void *ctx, const struct takt_sched_event *event)
{
	const struct copy *copy = ctx;
	struct takt_sched_event told = *event;
	const struct takt_queue_job *job = event->kind == TAKT_SCHED_JOB_ADD
						   ? takt_queue_find(copy->queue, event->job.id)
						   : NULL;

	if (job)
		takt_queue_job_terms(copy->queue, job, &told.job);
	return takt_sched_update(copy->to, &told, NULL);
}

int takt_queue_set_up(struct takt_queue *queue, const struct takt_sched_settings *settings,
		      struct takt_err *err)
{
	int rc = takt_sched_setup_init(settings, &queue->setup, err);

	queue->setup.sched.max_jobs = TAKT_QUEUE_MAX_JOBS + TAKT_QUEUE_MAX_HELD;
	return rc;
}

/* What the new order asks of jobs and the old one did not: whose share, how long they may take. */
static int complete_jobs(struct takt_queue *queue, struct takt_err *err)
{
	int rc = 0;

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (rc == 0 && !job->tenant_id)
			rc = takt_queue_find_tenant(queue, job, false, err);
		if (rc == 0)
			rc = takt_queue_tell_outlook(queue, job->estimate.kind, err);
	}
	return rc;
}

static bool is_same(const struct takt_sched_settings *a, const struct takt_sched_settings *b)
{
	return strcmp(a->order, b->order) == 0 && a->backfill == b->backfill &&
	       a->preempt == b->preempt && a->guard_ns == b->guard_ns &&
	       a->min_runtime_ns == b->min_runtime_ns && a->half_life_ns == b->half_life_ns;
}

int takt_queue_change_settings(struct takt_queue *queue, const struct takt_sched_settings *settings,
			       struct takt_err *err)
{
	struct takt_sched_setup was = queue->setup;
	struct copy copy = {.queue = queue};
	int rc;

	if (is_same(settings, &queue->config.settings))
		return 0;
	rc = takt_queue_set_up(queue, settings, err);
	if (rc < 0)
		return rc;
	rc = complete_jobs(queue, err);
	if (rc == 0)
		rc = takt_sched_new(&queue->setup.sched, &copy.to, err);
	if (rc == 0)
		rc = takt_sched_snapshot(queue->sched, copy_event, &copy);
	if (rc < 0) {
		queue->setup = was;
		takt_sched_free(copy.to);
		return takt_err_set(err, rc, "other settings of the scheduler");
	}
	queue->version += takt_sched_version(queue->sched);
	takt_sched_free(queue->sched);
	queue->sched = copy.to;
	queue->outlooks.len = 0; /* it has those of live jobs only */
	queue->config.settings = *settings;
	queue->dirty = true;
	return 0;
}

int takt_queue_set_terms(struct takt_queue *queue, const struct takt_queue_terms *terms,
			 struct takt_err *err)
{
	struct takt_sched_settings settings = terms->settings;
	int rc;

	settings.half_life_ns = queue->config.settings.half_life_ns;
	rc = takt_queue_change_settings(queue, &settings, err);
	if (rc < 0)
		return rc;
	queue->config.max_jobs = terms->max_jobs;
	queue->config.user_max_jobs = terms->user_max_jobs;
	queue->config.user_max_bytes = terms->user_max_bytes;
	queue->config.staging = terms->staging;
	queue->config.on_gpu_failure = terms->on_gpu_failure;
	queue->dirty = true;
	return 0;
}
