/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ended an attempt. Whoever has takt end it notes why in the row, with the write that says so:
 * that stands, over a restart of takt too. Of one that ended badly by itself the engine and the
 * machine are asked. What became of its GPUs shows a moment later, so such an end is kept back
 * until the machine has looked at them, or for some seconds.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

static const uint64_t patience_ns = 3 * TAKT_NS_PER_S;
static const uint64_t look_ns = 50 * TAKT_NS_PER_MS;
/* Of an end that takt learns later than that, it does not know how its GPUs were. */
static const uint64_t stale_ns = 60 * TAKT_NS_PER_S;

void takt_queue_note_cause(struct takt_queue_job *job, enum takt_cause cause)
{
	job->row.cause = (struct takt_job_cause){.cause = cause, .gpu = -1};
}

/* It is known, or there is none to be known. Of one that did not run, what is on record is why the
 * attempt before it ended. */
static bool is_told(const struct takt_queue_job *job, const struct takt_engine_event *event)
{
	bool ran = event->end != TAKT_END_NOT_STARTED || job->row.cancel_wanted;

	return (ran && job->row.cause.cause != TAKT_CAUSE_NONE) ||
	       event->end == TAKT_END_NEVER_RAN ||
	       (event->end == TAKT_END_EXITED && event->code == 0);
}

static enum takt_cause by_engine(const struct takt_engine_event *event)
{
	switch (event->end) {
	case TAKT_END_NOT_STARTED:
		return TAKT_CAUSE_NOT_STARTED;
	case TAKT_END_LOST:
		return TAKT_CAUSE_TAKT_DIED;
	case TAKT_END_INTERRUPTED:
		return TAKT_CAUSE_NODE_REBOOT;
	default:
		return event->out_of_memory ? TAKT_CAUSE_HOST_MEMORY : TAKT_CAUSE_NONE;
	}
}

static bool is_stale(const struct takt_queue *queue, const struct takt_engine_event *event)
{
	return queue->wall.ns - event->at.ns > (int64_t)stale_ns;
}

/* False: its GPUs have nothing to do with it, or nobody knows. */
static bool may_be_gpu(const struct takt_queue *queue, const struct takt_queue_job *job,
		       const struct takt_engine_event *event)
{
	return queue->config.hooks->cause && job->row.gpu_mask && !is_stale(queue, event);
}

static void by_program(struct takt_queue_job *job, const struct takt_engine_event *event)
{
	if (job->row.cause.cause == TAKT_CAUSE_NONE && event->out_of_gpu_memory)
		takt_queue_note_cause(job, TAKT_CAUSE_GPU_MEMORY);
}

void takt_queue_note_gpu_cause(struct takt_queue *queue, struct takt_queue_job *job)
{
	const struct takt_queue_hooks *hooks = queue->config.hooks;

	takt_queue_note_cause(job, TAKT_CAUSE_NONE);
	if (hooks->cause)
		(void)hooks->cause(queue->config.hooks_ctx, job, queue->now, &job->row.cause);
	if (job->row.cause.cause == TAKT_CAUSE_NONE)
		takt_queue_note_cause(job, TAKT_CAUSE_GPU_LOST);
}

static bool keep_back(struct takt_queue *queue, struct takt_queue_job *job,
		      const struct takt_engine_event *event)
{
	job->end = takt_alloc(sizeof(*job->end));
	if (!job->end)
		return false;
	*job->end = *event;
	job->end_since.ns = 0;
	queue->next_end_ns = 1; /* at the next pump, which knows what time it is */
	return true;
}

bool takt_queue_find_cause(struct takt_queue *queue, struct takt_queue_job *job,
			   const struct takt_engine_event *event)
{
	if (is_told(job, event))
		return true;
	takt_queue_note_cause(job, by_engine(event));
	if (job->row.cause.cause == TAKT_CAUSE_NONE && may_be_gpu(queue, job, event) &&
	    keep_back(queue, job, event))
		return false;
	by_program(job, event);
	return true;
}

/* Whether enough is known, or it is of no use to wait for more. */
static bool is_judged(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_job_cause cause = {.cause = TAKT_CAUSE_NONE, .gpu = -1};
	bool known;

	if (job->end_since.ns == 0)
		job->end_since = queue->now;
	if (is_told(job, job->end))
		return true;
	known = queue->config.hooks->cause(queue->config.hooks_ctx, job, job->end_since, &cause) ||
		queue->now.ns - job->end_since.ns >= patience_ns;
	if (known)
		job->row.cause = cause;
	return known;
}

/* Boot time to look again; UINT64_MAX = no need. */
static uint64_t look_at(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_engine_event *event = job->end;

	if (!event)
		return UINT64_MAX;
	if (!is_judged(queue, job))
		return queue->now.ns + look_ns;
	job->end = NULL;
	by_program(job, event);
	takt_queue_attempt_ended(queue, job, event);
	takt_free(event);
	return UINT64_MAX;
}

void takt_queue_look_at_ends(struct takt_queue *queue)
{
	uint64_t next_ns = UINT64_MAX;

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		uint64_t due_ns = look_at(queue, entry->value.ptr);

		next_ns = due_ns < next_ns ? due_ns : next_ns;
	}
	queue->next_end_ns = next_ns == UINT64_MAX ? 0 : next_ns;
}

bool takt_queue_gpu_failed(const struct takt_queue_job *job)
{
	return job->row.cause.cause == TAKT_CAUSE_GPU_LOST ||
	       job->row.cause.cause == TAKT_CAUSE_GPU_FAULT;
}

static void put_gpu(const struct takt_job *row, const char *what, char *buf, size_t size)
{
	char gpu[32] = "a GPU", xid[24] = "";

	if (row->cause.gpu >= 0)
		snprintf(gpu, sizeof(gpu), "GPU %" PRId32, row->cause.gpu);
	if (row->cause.xid)
		snprintf(xid, sizeof(xid), ", XID %" PRIu32, row->cause.xid);
	snprintf(buf, size, "%s %s%s", gpu, what, xid);
}

const char *takt_job_cause_text(const struct takt_job *row, char *buf, size_t size)
{
	static const char *const texts[TAKT_CAUSE_COUNT] = {
		[TAKT_CAUSE_GPU_MEMORY] = "its program says that GPU memory ran out",
		[TAKT_CAUSE_HOST_MEMORY] = "the kernel ended it for want of memory",
		[TAKT_CAUSE_TIME_LIMIT] = "its time limit was over",
		[TAKT_CAUSE_NODE_REBOOT] = "the machine restarted while it ran",
		[TAKT_CAUSE_IDLE_RELEASE] = "nobody used its GPUs",
		[TAKT_CAUSE_MAINTENANCE] = "it made way for maintenance",
		[TAKT_CAUSE_REQUEUED] = "somebody wanted it to begin anew",
		[TAKT_CAUSE_CANCELLED] = "it was cancelled",
		[TAKT_CAUSE_DEPENDENCY] = "what it comes after ended badly",
		[TAKT_CAUSE_NOT_STARTED] = "its program could not be executed",
		[TAKT_CAUSE_TAKT_DIED] = "the takt-shim that watched over it was killed",
	};
	enum takt_cause cause = row->cause.cause;

	if (cause == TAKT_CAUSE_GPU_LOST)
		put_gpu(row, "was lost", buf, size);
	else if (cause == TAKT_CAUSE_GPU_FAULT)
		put_gpu(row, "failed", buf, size);
	else if (cause == TAKT_CAUSE_GPU_ERROR)
		put_gpu(row, "refused what it did", buf, size);
	else if (cause == TAKT_CAUSE_PREEMPTED && row->evict_for)
		snprintf(buf, size, "it made room for job %" PRIu64, row->evict_for);
	else if (cause == TAKT_CAUSE_PREEMPTED)
		snprintf(buf, size, "it made room for others");
	else
		snprintf(buf, size, "%s", texts[cause] ? texts[cause] : "");
	return buf;
}
