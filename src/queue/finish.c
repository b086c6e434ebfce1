/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine says of attempts, and how jobs end. */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

void takt_queue_say(struct takt_queue_job *job, const char *message)
{
	takt_free(job->row.message);
	job->row.message = takt_strdup(message);
}

void takt_queue_remark(struct takt_queue *queue, uint64_t job_id, const char *text)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, job_id);

	if (job && (!job->row.message || !job->row.message[0]))
		takt_queue_say(job, text);
}

void takt_queue_end(struct takt_queue *queue, struct takt_queue_job *job, enum takt_job_state state)
{
	enum takt_queue_phase was = job->phase;

	if (takt_queue_stage_keeps(queue, job, state))
		return;
	job->phase = TAKT_PHASE_ENDING;
	job->row.state = state;
	if (state == TAKT_JOB_CANCELLED && job->row.cause.cause == TAKT_CAUSE_NONE)
		takt_queue_note_cause(job, TAKT_CAUSE_CANCELLED);
	if (job->row.ended.ns == 0)
		job->row.ended = queue->wall;
	if (state != TAKT_JOB_DONE)
		takt_queue_note_bad_end(queue, job);
	takt_queue_note_event(job, TAKT_EVENT_ENDED);
	if (was == TAKT_PHASE_WAITING)
		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ENDED, job, NULL);
	takt_queue_post_end(queue, job);
}

/* The attempt is over but the job is not: it waits again in its old place. */
static void requeue(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_job_report unused = {0};

	queue->config.hooks->release(queue->config.hooks_ctx, job, &unused);
	/* One whose GPUs were on record as another's too has no place with the scheduler (load.c).
	 */
	if (takt_queue_tell(queue, TAKT_SCHED_JOB_REQUEUED, job, NULL) == -EINVAL)
		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, job, NULL);
	job->phase = TAKT_PHASE_WAITING;
	job->row.state = TAKT_JOB_WAITING;
	takt_queue_clear_place(job);
	job->row.started = (struct takt_wall){0};
	job->started_boot = (struct takt_boot){0};
	job->pid = 0;
	if (job->row.retry_at.ns || job->spec.deadline_ms || job->refusal)
		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, NULL);
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	takt_queue_changed(queue, job);
}

static enum takt_job_state final_state(const struct takt_queue_job *job,
				       const struct takt_engine_event *event)
{
	if (job->row.cancel_wanted)
		return TAKT_JOB_CANCELLED;
	if (job->row.timed_out || job->row.evict == 3)
		return TAKT_JOB_FAILED;
	switch (event->end) {
	case TAKT_END_EXITED:
		return event->code == 0 ? TAKT_JOB_DONE : TAKT_JOB_FAILED;
	case TAKT_END_LOST:
		return TAKT_JOB_LOST;
	case TAKT_END_INTERRUPTED:
		return TAKT_JOB_INTERRUPTED;
	default:
		return TAKT_JOB_FAILED;
	}
}

/* What a shell would say: 127 for a command that is not there, 126 for one that cannot be run. */
static void keep_exit(struct takt_queue_job *job, const struct takt_engine_event *event)
{
	switch (event->end) {
	case TAKT_END_EXITED:
		job->row.exit_code = event->code;
		break;
	case TAKT_END_SIGNALED:
		job->row.exit_signal = event->code;
		break;
	case TAKT_END_NOT_STARTED:
		job->row.exit_code = event->code == ENOENT ? 127 : 126;
		break;
	default:
		break;
	}
	job->row.ended = event->at;
}

/* Attempt and job are over. run_ns is by the shim's boot clock, 0 = not known: the times of start
 * and end are wall time, which jumps. */
static void over(struct takt_queue *queue, struct takt_queue_job *job, enum takt_job_state state,
		 uint64_t run_ns)
{
	queue->config.hooks->release(queue->config.hooks_ctx, job, &job->row.report);
	job->row.state = state;
	if (run_ns) {
		job->row.report.has |= TAKT_REPORT_WALL;
		job->row.report.wall_ns = run_ns;
	}
	takt_queue_learn_end(queue, job);
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_DRAINING, job, NULL);
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ENDED, job, NULL);
	takt_queue_end(queue, job, state);
}

static bool failed(const struct takt_engine_event *event)
{
	return event->end == TAKT_END_SIGNALED ||
	       (event->end == TAKT_END_EXITED && event->code != 0);
}

/* The first one is the job's own, each later one twice the one before; the first may be longer than
 * what the later ones are limited to. */
static uint64_t retry_pause_ns(const struct takt_queue_job *job)
{
	uint64_t first_ns = job->spec.retry_backoff_ms * TAKT_NS_PER_MS;
	uint64_t longest_ns = TAKT_QUEUE_LONGEST_PAUSE_MS * TAKT_NS_PER_MS;
	struct takt_pace pace = {first_ns, first_ns > longest_ns ? first_ns : longest_ns};

	return takt_pace_ns(&pace, job->row.failures);
}

/* It ended badly by itself and may be tried again, after a pause that doubles. */
static void try_again(struct takt_queue *queue, struct takt_queue_job *job,
		      const struct takt_engine_event *event)
{
	uint64_t pause_ns = retry_pause_ns(job);
	char text[120];

	job->row.failures++;
	job->row.retry_at.ns = queue->wall.ns + (int64_t)pause_ns;
	snprintf(text, sizeof(text), "failed %u time%s (%s %d), may be tried %u more",
		 job->row.failures, job->row.failures == 1 ? "" : "s",
		 event->end == TAKT_END_EXITED ? "exit status" : "signal", event->code,
		 job->spec.retries - job->row.failures + 1);
	takt_queue_say(job, text);
	requeue(queue, job);
}

/* It ended because a GPU failed: that is no failure of its own, and another one may serve it. */
static void try_elsewhere(struct takt_queue *queue, struct takt_queue_job *job)
{
	char text[TAKT_CAUSE_TEXT];

	takt_job_cause_text(&job->row, text, sizeof(text));
	takt_queue_say(job, text);
	requeue(queue, job);
}

/* The attempt is followed by another one. */
static bool repeats(struct takt_queue *queue, struct takt_queue_job *job,
		    const struct takt_engine_event *event)
{
	bool broken = (event->end == TAKT_END_LOST || event->end == TAKT_END_INTERRUPTED) &&
		      job->spec.requeue;
	bool evicted = takt_queue_was_evicted(queue, job, event);
	bool asked = job->row.evict == TAKT_EVICT_ROW_ASKED;
	enum takt_failure_policy policy = takt_queue_gpu_failed(job) && !evicted && failed(event)
						  ? takt_queue_on_failure(queue, job)
						  : TAKT_FAILURE_KEEP;
	bool for_good = job->row.evict == 3 || policy == TAKT_FAILURE_STOP;
	bool elsewhere = policy == TAKT_FAILURE_REQUEUE && !for_good;
	bool tried = !evicted && !for_good && !elsewhere && failed(event) &&
		     job->row.failures < job->spec.retries;

	job->in_doubt = false; /* that was of this attempt */
	if (job->row.cancel_wanted || job->row.timed_out ||
	    !(broken || tried || elsewhere || evicted || event->end == TAKT_END_NEVER_RAN))
		return false;
	if (event->end != TAKT_END_NEVER_RAN) {
		job->row.restarts++;
		takt_queue_note_event(job, evicted && !asked ? TAKT_EVENT_PREEMPTED
							     : TAKT_EVENT_REQUEUED);
	}
	if (evicted)
		takt_queue_evicted(queue, job);
	else
		takt_queue_forget_eviction(job);
	if (tried)
		try_again(queue, job, event);
	else if (elsewhere)
		try_elsewhere(queue, job);
	else
		requeue(queue, job);
	return true;
}

/* What the log of the job does not say. */
static void say_end(struct takt_queue_job *job, const struct takt_engine_event *event)
{
	enum takt_cause cause = job->row.cause.cause;
	char text[TAKT_CAUSE_TEXT];

	if (event->message[0])
		takt_queue_say(job, event->message);
	else if (cause >= TAKT_CAUSE_GPU_LOST && cause <= TAKT_CAUSE_GPU_MEMORY)
		takt_queue_say(job, takt_job_cause_text(&job->row, text, sizeof(text)));
}

void takt_queue_attempt_ended(struct takt_queue *queue, struct takt_queue_job *job,
			      const struct takt_engine_event *event)
{
	takt_queue_still_ended(queue, job);
	if (event->end == TAKT_END_NEVER_RAN && job->never_ran++)
		takt_queue_note_refusal(queue, job,
					event->refusal ? event->refusal : TAKT_REFUSAL_SHIM,
					event->message); /* what hinders it is not over at once */
	if (repeats(queue, job, event))
		return;
	keep_exit(job, event);
	if (!job->row.timed_out && job->row.evict != 3)
		say_end(job, event);
	over(queue, job, final_state(job, event), event->run_ns);
}

/* By the shim's record, as the wall clock is now: it may have been set since. */
static void note_started(struct takt_queue *queue, struct takt_queue_job *job,
			 const struct takt_engine_event *event)
{
	job->started_boot = event->at_boot;
	if (job->row.started.ns == 0)
		job->row.started = takt_queue_wall_at(queue, event->at_boot, event->at);
}

/* It was adopted before its start was on record. */
static void learn_start(struct takt_queue *queue, struct takt_queue_job *job,
			const struct takt_engine_event *event)
{
	job->pid = event->pid;
	note_started(queue, job, event);
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	takt_queue_changed(queue, job);
}

static bool is_told_to_go(const struct takt_queue_job *job)
{
	return job->row.evict == 2 || job->row.evict == 3 || job->row.evict == TAKT_EVICT_ROW_ASKED;
}

static void attempt_runs(struct takt_queue *queue, struct takt_queue_job *job,
			 const struct takt_engine_event *event)
{
	if (job->phase == TAKT_PHASE_RUNNING && job->row.started.ns == 0 && event->at.ns)
		learn_start(queue, job, event);
	if (job->phase != TAKT_PHASE_STARTING)
		return;
	job->phase = TAKT_PHASE_RUNNING;
	job->never_ran = 0;
	takt_queue_went_well(queue);
	takt_queue_refusal_over(queue, job);
	job->row.retry_at = (struct takt_wall){0};
	if (!job->row.timed_out && job->row.evict < 2)
		takt_queue_say(job, ""); /* what hindered an earlier start is over */
	if (!job->row.timed_out && !job->row.cancel_wanted && !is_told_to_go(job))
		takt_queue_note_cause(job, TAKT_CAUSE_NONE); /* that was the attempt before */
	job->pid = event->pid;
	job->row.state =
		job->stop_wanted || is_told_to_go(job) ? TAKT_JOB_STOPPING : TAKT_JOB_RUNNING;
	note_started(queue, job, event);
	if (event->kind == TAKT_ENGINE_STARTED)
		takt_queue_note_event(job, TAKT_EVENT_STARTED);
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_RUNNING, job, NULL);
	if (job->row.checkpoint_at.ns)
		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_CHECKPOINT, job, NULL);
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	if (job->stop_wanted && !job->stop_sent)
		takt_queue_stop(queue, job);
	takt_queue_watch_limit(queue, job);
	if (job->row.evict)
		queue->next_evict_ns = 1;
	if (queue->next_estimate_ns == 0)
		queue->next_estimate_ns = 1; /* at the next pump, which knows what time it is */
	takt_queue_changed(queue, job);
}

/* An action that was not taken. Only a start matters: its GPUs go back, and the job waits unless it
 * was cancelled meanwhile. */
static void refused(struct takt_queue *queue, struct takt_queue_job *job,
		    const struct takt_engine_event *event)
{
	bool was_start = (event->action_id & 0xf) == TAKT_ACTION_START &&
			 event->action_id >> 24 == job->row.id;

	if (!was_start || job->phase != TAKT_PHASE_STARTING ||
	    (event->outcome != TAKT_OUTCOME_FAILED && event->outcome != TAKT_OUTCOME_CONFLICT))
		return;
	takt_queue_say(job, event->message);
	if (job->row.cancel_wanted) {
		over(queue, job, TAKT_JOB_CANCELLED, 0);
		return;
	}
	takt_queue_note_refusal(queue, job, event->refusal ? event->refusal : TAKT_REFUSAL_ATTEMPT,
				event->message);
	requeue(queue, job);
}

void takt_queue_engine_event(void *ctx, const struct takt_engine_event *event)
{
	struct takt_queue *queue = ctx;
	struct takt_queue_job *job = takt_queue_job_find(queue, event->job_id);

	if (event->attempt >= TAKT_ENGINE_ASIDE) {
		if (queue->config.hooks->aside)
			queue->config.hooks->aside(queue->config.hooks_ctx, event);
		return;
	}
	if (!job || event->attempt != job->row.attempt ||
	    takt_queue_stage_heard(queue, job, event) || job->phase < TAKT_PHASE_STARTING ||
	    job->phase == TAKT_PHASE_ENDING || job->end)
		return;
	switch (event->kind) {
	case TAKT_ENGINE_OUTCOME:
		refused(queue, job, event);
		break;
	case TAKT_ENGINE_STARTED:
	case TAKT_ENGINE_ADOPTED:
		attempt_runs(queue, job, event);
		break;
	case TAKT_ENGINE_ENDED:
		if (takt_queue_find_cause(queue, job, event))
			takt_queue_attempt_ended(queue, job, event);
		break;
	default:
		break;
	}
}
