/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging: the jobs that are next get everything but their GPUs before those are free. The order of
 * things is that of a start: the store has the attempt (as staged, without GPUs) before the engine
 * hears of it, so that whoever comes after us finds every process that may wait. Nothing of a
 * staged job has run; to the scheduler it waits like any other. Called off, it may be placed, tried
 * again or ended only when the engine has said that nothing is left of the attempt.
 */
#include <errno.h>

#include "base/sys.h"
#include "queue/queue_impl.h"

enum {
	STAGE_AHEAD_S =
		600, /* before a predicted start; what is fetched earlier may be gone by then */
};

/* After attempts that could not be staged, which cost as much as a start. */
static const struct takt_pace restages = {2 * TAKT_NS_PER_S, 60 * TAKT_NS_PER_S};

struct takt_queue_wanted {
	uint64_t ids[TAKT_QUEUE_MAX_STAGED];
	size_t n;
	uint32_t gpus;	  /* of all of them together */
	uint64_t look_ns; /* by the scheduler's clock, when one comes near enough; 0 = none will */
};

static void forget(struct takt_queue *queue, struct takt_queue_job *job)
{
	job->stage = TAKT_STAGE_NONE;
	job->row.staged = false;
	for (size_t i = 0; i < queue->staged.len; i++)
		if (queue->staged.at[i] == job->row.id) {
			takt_vec_remove(&queue->staged, i);
			return;
		}
}

int takt_queue_stage_adopt(struct takt_queue *queue, struct takt_queue_job *job)
{
	int rc = takt_vec_push(&queue->staged, job->row.id);

	if (rc == 0)
		job->stage = TAKT_STAGE_READY;
	return rc;
}

/* Whether its owner, or the configuration, wants it staged. */
static bool may_stage(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	const struct takt_jobspec *spec = &job->spec;
	bool asked = spec->stage || spec->prefetch;

	return queue->config.staging != TAKT_STAGING_OFF &&
	       (asked || queue->config.staging == TAKT_STAGING_ALL) && spec->gpus > 0 &&
	       !job->row.cancel_wanted &&
	       (takt_engine_caps(queue->config.engine) & TAKT_ENGINE_STAGE);
}

static bool is_wanted(const struct takt_queue_wanted *wanted, uint64_t job_id)
{
	for (size_t i = 0; i < wanted->n; i++)
		if (wanted->ids[i] == job_id)
			return true;
	return false;
}

/* False: nobody behind it is wanted either. */
static bool want(const struct takt_queue *queue, struct takt_queue_wanted *wanted, uint64_t job_id)
{
	const struct takt_queue_job *job = takt_queue_job_find(queue, job_id);

	if (!job || job->phase != TAKT_PHASE_WAITING || is_wanted(wanted, job_id))
		return true;
	wanted->gpus += job->spec.gpus;
	if (wanted->n == TAKT_QUEUE_MAX_STAGED ||
	    (wanted->n > 0 && wanted->gpus > queue->config.gpu_count))
		return false;
	wanted->ids[wanted->n++] = job_id;
	return true;
}

/* Waits for nothing but jobs that run, and jobs that go first. */
static bool is_in_line(enum takt_why why)
{
	switch (why) {
	case TAKT_WHY_ORDER:
	case TAKT_WHY_GPUS:
	case TAKT_WHY_FRACTION:
	case TAKT_WHY_DEV_MEMORY:
	case TAKT_WHY_CPU:
	case TAKT_WHY_MEMORY:
	case TAKT_WHY_RESERVATION:
	case TAKT_WHY_PREEMPTION:
		return true;
	default:
		return false;
	}
}

static bool is_far(struct takt_queue_wanted *wanted, enum takt_start_how how, uint64_t start_ns,
		   uint64_t now_ns)
{
	uint64_t ahead_ns = STAGE_AHEAD_S * TAKT_NS_PER_S;

	if (how == TAKT_START_UNKNOWN || start_ns <= now_ns + ahead_ns)
		return false;
	if (wanted->look_ns == 0 || start_ns - ahead_ns < wanted->look_ns)
		wanted->look_ns = start_ns - ahead_ns;
	return true;
}

/* Those for whom the plan reserves, then those that wait in line, as many as the machine could run
 * beside each other. */
static void choose(const struct takt_queue *queue, uint64_t now_ns, struct takt_queue_wanted *ret)
{
	const struct takt_plan *plan = &queue->plan;
	bool more = true;

	for (size_t i = 0; more && i < plan->reservation_count; i++) {
		const struct takt_plan_reservation *kept = &plan->reservations[i];

		if (!kept->foreseen && !is_far(ret, kept->how, kept->start_ns, now_ns))
			more = want(queue, ret, kept->job_id);
	}
	for (size_t i = 0; more && i < plan->wait_count; i++) {
		const struct takt_plan_wait *wait = &plan->waits[i];

		if (is_in_line(wait->why) && !is_far(ret, wait->how, wait->start_ns, now_ns))
			more = want(queue, ret, wait->job_id);
	}
}

/* By the scheduler's clock. */
static void wake_at(struct takt_queue *queue, uint64_t at_ns)
{
	if (queue->wake_ns == 0 || at_ns < queue->wake_ns)
		queue->wake_ns = at_ns;
}

static void begin(struct takt_queue *queue, struct takt_queue_job *job, uint64_t now_ns)
{
	if (job->stage != TAKT_STAGE_NONE || job->stage_writes || job->changing)
		return;
	if (queue->now.ns < job->stage_after_ns) {
		wake_at(queue, now_ns + (job->stage_after_ns - queue->now.ns));
		return;
	}
	if (!takt_queue_env_fetch(queue, job) || takt_vec_push(&queue->staged, job->row.id) < 0)
		return;
	job->stage = TAKT_STAGE_WRITING;
	job->row.staged = true;
	job->row.attempt++;
	if (takt_queue_post(queue, job, TICKET_STAGE, NULL) == 0) {
		job->stage_writes++;
		return;
	}
	forget(queue, job);
	job->row.attempt--;
}

void takt_queue_stage_off(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->stage == TAKT_STAGE_WRITING) { /* nobody else has heard of it */
		forget(queue, job);
		job->row.attempt--;
		(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
		return;
	}
	if (job->stage == TAKT_STAGE_READY)
		job->stop_sent = false;
	job->stage = TAKT_STAGE_OFF;
	if (!job->stop_sent)
		takt_queue_stop(queue, job);
	if (!job->stop_sent)
		takt_queue_pause(queue);
}

void takt_queue_stage_again(struct takt_queue *queue)
{
	for (size_t i = queue->staged.len; i-- > 0;) {
		struct takt_queue_job *job = takt_queue_job_find(queue, queue->staged.at[i]);

		if (job->stage == TAKT_STAGE_OFF && !job->stop_sent)
			takt_queue_stage_off(queue, job);
	}
}

void takt_queue_stage(struct takt_queue *queue, uint64_t now_ns)
{
	struct takt_queue_wanted wanted = {.n = 0};

	if (queue->config.staging != TAKT_STAGING_OFF)
		choose(queue, now_ns, &wanted);
	for (size_t i = queue->staged.len; i-- > 0;) {
		struct takt_queue_job *job = takt_queue_job_find(queue, queue->staged.at[i]);

		if (job->phase == TAKT_PHASE_WAITING && job->stage != TAKT_STAGE_OFF &&
		    !is_wanted(&wanted, job->row.id))
			takt_queue_stage_off(queue, job);
	}
	for (size_t i = 0; i < wanted.n; i++) {
		struct takt_queue_job *job = takt_queue_job_find(queue, wanted.ids[i]);

		if (may_stage(queue, job))
			begin(queue, job, now_ns);
	}
	if (wanted.look_ns)
		wake_at(queue, wanted.look_ns);
}

void takt_queue_stage_place(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->stage == TAKT_STAGE_WRITING)
		forget(queue, job); /* it starts as the attempt that was to be staged */
	else if (job->stage == TAKT_STAGE_NONE)
		job->row.attempt++;
	job->row.staged = false;
}

void takt_queue_stage_started(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->stage != TAKT_STAGE_NONE)
		forget(queue, job);
}

bool takt_queue_stage_keeps(struct takt_queue *queue, struct takt_queue_job *job,
			    enum takt_job_state state)
{
	if (job->stage == TAKT_STAGE_WRITING)
		takt_queue_stage_off(queue, job);
	if (job->stage == TAKT_STAGE_NONE)
		return false;
	job->ends = true;
	job->end_as = state;
	takt_queue_stage_off(queue, job);
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	takt_queue_changed(queue, job);
	return true;
}

void takt_queue_stage_written(struct takt_queue *queue, struct takt_queue_job *job,
			      const struct takt_err *refused)
{
	int rc = refused ? refused->rc : 0;

	job->stage_writes--;
	if (job->stage != TAKT_STAGE_WRITING)
		return;
	takt_crash_point("queue.before_stage");
	if (rc == 0)
		rc = takt_queue_order(queue, job, TAKT_ACTION_STAGE);
	if (rc < 0) {
		forget(queue, job);
		job->row.attempt--;
		takt_queue_pause(queue);
		return;
	}
	job->stage = TAKT_STAGE_READY;
	takt_crash_point("queue.after_stage");
	takt_queue_changed(queue, job);
}

/* Nothing is left of the attempt. Its number is used up. */
static void over(struct takt_queue *queue, struct takt_queue_job *job)
{
	bool called_off = job->stage == TAKT_STAGE_OFF;

	forget(queue, job);
	queue->dirty = true;
	if (!called_off)
		job->stage_after_ns = queue->now.ns + takt_pace_ns(&restages, job->stages_failed++);
	if (job->phase == TAKT_PHASE_PREPARING) {
		takt_queue_call_off(queue, job);
		job->row.attempt++;
	}
	if (job->ends) {
		takt_queue_end(queue, job, job->end_as);
		return;
	}
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	takt_queue_changed(queue, job);
}

bool takt_queue_stage_heard(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_engine_event *event)
{
	bool refused = event->kind == TAKT_ENGINE_OUTCOME &&
		       (event->action_id & 0xf) == TAKT_ACTION_STAGE &&
		       event->outcome != TAKT_OUTCOME_ACCEPTED;

	if (job->phase >= TAKT_PHASE_STARTING || job->stage < TAKT_STAGE_READY)
		return false;
	if (event->kind == TAKT_ENGINE_ENDED && event->end != TAKT_END_NEVER_RAN && !job->ends) {
		takt_queue_say(job, "it was staged, and started itself before its turn");
		job->ends = true;
		job->end_as = TAKT_JOB_FAILED;
	}
	if (refused || event->kind == TAKT_ENGINE_ENDED)
		over(queue, job);
	return true;
}
