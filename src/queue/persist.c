/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes to disk and what follows from its being there. A refused write (full disk) never loses
 * a job: a refused insert is a refused submit; a refused start puts the GPUs back and nothing
 * starts for a while; a refused end is posted again until it is taken, and until then the attempt's
 * own record is the truth.
 */
#include <errno.h>

#include "queue/queue_impl.h"

const struct takt_pace takt_queue_refusals = {TAKT_NS_PER_S / 2, 5 * TAKT_NS_PER_S};

int takt_queue_post(struct takt_queue *queue, struct takt_queue_job *job, enum ticket_kind kind,
		    struct takt_err *err)
{
	uint64_t tag = job->row.id << TICKET_BITS | kind;
	int64_t ticket = kind == TICKET_INSERT
				 ? takt_store_insert(queue->config.store, &job->row, tag, err)
				 : takt_store_update(queue->config.store, &job->row, tag, err);

	if (ticket < 0)
		return (int)ticket;
	job->writes++;
	return 0;
}

void takt_queue_pause(struct takt_queue *queue)
{
	if (queue->retry_ns > queue->now.ns)
		return; /* what is refused until then is one refusal */
	queue->retry_ns = queue->now.ns + takt_pace_ns(&takt_queue_refusals, queue->refusals++);
}

void takt_queue_went_well(struct takt_queue *queue)
{
	queue->refusals = 0;
}

/* Its GPUs are not another's before this end is on disk. */
static void count_unended(struct takt_queue *queue, const struct takt_queue_job *job, int by)
{
	for (uint64_t left = job->row.gpu_mask; left; left &= left - 1)
		queue->unended[__builtin_ctzll(left)] += (uint32_t)by;
}

static void end_refused(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (!job->end_missing)
		count_unended(queue, job, 1);
	job->end_missing = job->end_refused = true;
	takt_queue_pause(queue);
}

void takt_queue_post_end(struct takt_queue *queue, struct takt_queue_job *job)
{
	job->end_refused = false;
	if (takt_queue_post(queue, job, TICKET_END, NULL) < 0)
		end_refused(queue, job);
}

static bool any_unended(const struct takt_queue *queue, uint64_t gpu_mask)
{
	for (; gpu_mask; gpu_mask &= gpu_mask - 1)
		if (queue->unended[__builtin_ctzll(gpu_mask)])
			return true;
	return false;
}

static void insert_done(struct takt_queue *queue, struct takt_queue_job *job,
			const struct takt_err *refused)
{
	void *token = job->token;

	if (job->batch) {
		takt_queue_batch_inserted(queue, job, refused);
		return;
	}
	job->token = NULL;
	if (refused) {
		if (token)
			queue->config.hooks->accepted(queue->config.hooks_ctx, token, job, refused);
		takt_queue_job_drop(queue, job);
		return;
	}
	job->phase = TAKT_PHASE_WAITING;
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, job, NULL);
	if (token)
		queue->config.hooks->accepted(queue->config.hooks_ctx, token, job, NULL);
	if (job->row.cancel_wanted)
		takt_queue_end(queue, job, TAKT_JOB_CANCELLED);
}

static void start_done(struct takt_queue *queue, struct takt_queue_job *job,
		       const struct takt_err *refused)
{
	/* Of a placement that was called off meanwhile only the one that followed counts. */
	if (--job->start_writes > 0 || job->phase != TAKT_PHASE_PREPARING)
		return;
	/* After a crash the store must not name more jobs than may run on a GPU. Ends are posted
	 * before the starts that follow them, so one that is not on disk by now was refused. */
	if (refused || any_unended(queue, job->row.gpu_mask)) {
		takt_queue_call_off(queue, job);
		takt_queue_pause(queue);
		return;
	}
	job->row_durable = true;
	takt_queue_try_start(queue, job);
}

static void end_done(struct takt_queue *queue, struct takt_queue_job *job,
		     const struct takt_err *refused)
{
	if (refused) {
		end_refused(queue, job);
		return;
	}
	takt_queue_went_well(queue);
	if (job->end_missing)
		count_unended(queue, job, -1);
	takt_queue_changed(queue, job);
	takt_queue_job_drop(queue, job);
}

static void handle(struct takt_queue *queue, const struct takt_store_completion *done)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, done->tag >> TICKET_BITS);
	enum ticket_kind kind = done->tag & ((1u << TICKET_BITS) - 1);
	struct takt_err error;
	const struct takt_err *refused = NULL;

	if (done->tag == 0 && queue->config.hooks->stored)
		queue->config.hooks->stored(queue->config.hooks_ctx, done);
	if (!job)
		return;
	if (done->rc < 0) {
		takt_err_set(&error, done->rc, "%s", done->message);
		refused = &error;
	}
	takt_queue_tell_events(queue, job, refused);
	if (kind == TICKET_INSERT)
		insert_done(queue, job, refused);
	else if (kind == TICKET_START)
		start_done(queue, job, refused);
	else if (kind == TICKET_END)
		end_done(queue, job, refused);
	else if (kind == TICKET_STAGE)
		takt_queue_stage_written(queue, job, refused);
	else if (kind == TICKET_CHANGE)
		takt_queue_change_done(queue, job, refused);
	else if (kind == TICKET_EVICT)
		takt_queue_evict_noted(queue, job, refused);
}

void takt_queue_take_completions(struct takt_queue *queue)
{
	struct takt_store_completion done[64];
	size_t n;

	do {
		n = takt_store_completions(queue->config.store, done, TAKT_ARRAY_LEN(done));
		for (size_t i = 0; i < n; i++)
			handle(queue, &done[i]);
	} while (n == TAKT_ARRAY_LEN(done));
}
