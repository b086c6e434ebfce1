/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evictions of the plan, carried out. A job that is to go
 *
 *	SUSPECTED  its GPU failed; a reading may be wrong, so that is looked at for a while
 *	DECIDED    "makes room for job N" is on its way to disk
 *	NOTED      is on disk; the next plan is asked again, and only if it still says so
 *	TOLD       the checkpoint signal was sent, its grace runs
 *	(ASKED)    instead of all that: somebody wants it to begin anew, which is on its way to disk
 *	ENDING     SIGTERM, the job's grace, SIGKILL are under way
 *
 * (or, instead of being told to go, is frozen: stand_still.c)
 * and then waits again in its old place. Up to NOTED it is called off as soon as the plan does
 * without it: nobody is ended for nothing. From TOLD on its end is an eviction however it exits,
 * for what it was told to do is to save its work and go. The row says which (0, 1 up to NOTED, 2
 * from TOLD on, 3 likewise but not run again), so that it is the same after a restart of takt.
 *
 * What it is told goes to disk after the telling. So one that was only noted by the takt before
 * this one is in doubt: it may end of that for a while, counted from each start of takt. Called off
 * meanwhile, it keeps its note in the row, since this takt may die in that time, too.
 *
 * Until the job that it made room for has started, or for some minutes, the one that went does not
 * ask for those GPUs itself, though its old place may be the better one.
 */
#include <errno.h>
#include <stdio.h>

#include "base/timetext.h"
#include "queue/queue_impl.h"

static const uint64_t failure_patience_ns = 30 * TAKT_NS_PER_S;
static const uint64_t give_way_ns = 10 * 60 * TAKT_NS_PER_S;
static const uint64_t doubt_ns = 30 * TAKT_NS_PER_S;

static bool is_over_its_mark(const struct takt_queue_job *job)
{
	return job->evict.step >= TAKT_EVICT_ASKED;
}

static bool may_go(const struct takt_queue_job *job)
{
	return job->phase == TAKT_PHASE_RUNNING && !job->end && !job->stop_wanted &&
	       !job->row.cancel_wanted;
}

void takt_queue_forget_eviction(struct takt_queue_job *job)
{
	job->evict = (struct takt_queue_evict){.step = TAKT_EVICT_NONE};
	job->row.evict = 0;
	job->row.evict_for = 0;
	job->row.evict_at.ns = 0;
}

static bool is_in_doubt(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	return job->in_doubt && (!job->doubt_until_ns || queue->now.ns < job->doubt_until_ns);
}

void takt_queue_drop_eviction(struct takt_queue *queue, struct takt_queue_job *job)
{
	uint64_t evict_for = job->row.evict_for;
	struct takt_wall evict_at = job->row.evict_at;

	takt_queue_forget_eviction(job);
	takt_queue_watch_limit(queue, job); /* which may have rested */
	if (!is_in_doubt(queue, job))
		return;
	job->row.evict = 1;
	job->row.evict_for = evict_for;
	job->row.evict_at = evict_at;
	queue->next_evict_ns = 1; /* that ends at some time */
}

static void call_off(struct takt_queue *queue, struct takt_queue_job *job)
{
	uint32_t was = job->row.evict;

	takt_queue_drop_eviction(queue, job);
	if (job->row.evict != was)
		(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	takt_queue_changed(queue, job);
}

static void decide(struct takt_queue *queue, struct takt_queue_job *job,
		   const struct takt_plan_eviction *eviction)
{
	job->evict.step = TAKT_EVICT_DECIDED;
	job->row.evict = 1;
	job->row.evict_for = eviction->for_job;
	job->row.evict_at = queue->wall;
	if (takt_queue_post(queue, job, TICKET_EVICT, NULL) < 0) {
		takt_queue_drop_eviction(queue, job);
		takt_queue_pause(queue);
		return;
	}
	takt_queue_changed(queue, job);
}

static bool is_asked(const struct takt_queue_job *job)
{
	return job->row.evict == TAKT_EVICT_ROW_ASKED;
}

/* What is told of it, before it is told to go. */
static void note_cause(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (is_asked(job))
		takt_queue_note_cause(job, TAKT_CAUSE_REQUEUED);
	else if (job->row.evict_for || job->evict.why == TAKT_EVICT_PRIORITY ||
		 job->evict.why == TAKT_EVICT_RECLAIM)
		takt_queue_note_cause(job, TAKT_CAUSE_PREEMPTED);
	else if (job->evict.why == TAKT_EVICT_WINDOW)
		takt_queue_note_cause(job, TAKT_CAUSE_MAINTENANCE);
	else
		takt_queue_note_gpu_cause(queue, job);
}

/* What its owner is told while it goes, and afterwards. */
static void say_why(struct takt_queue_job *job)
{
	char text[96];

	if (job->row.evict_for)
		snprintf(text, sizeof(text), "makes room for job %llu",
			 (unsigned long long)job->row.evict_for);
	else if (is_asked(job))
		snprintf(text, sizeof(text), "begins anew, as was asked");
	else
		snprintf(text, sizeof(text), "%s",
			 job->evict.why == TAKT_EVICT_WINDOW ? "makes way for maintenance"
							     : "a GPU of it has failed");
	takt_queue_say(job, text);
}

/* The planner is to know when those GPUs come free. */
static void tell_end(struct takt_queue *queue, const struct takt_queue_job *job, uint64_t in_ns)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_ESTIMATE, .job_id = job->row.id};

	if (job->row.started.ns && queue->wall.ns > job->row.started.ns)
		event.estimate_ns = (uint64_t)(queue->wall.ns - job->row.started.ns) + in_ns;
	(void)takt_sched_update(queue->sched, &event, NULL);
}

static void end_it(struct takt_queue *queue, struct takt_queue_job *job)
{
	takt_queue_stop(queue, job);
	job->evict.step = TAKT_EVICT_ENDING;
	job->evict.due_ns = job->stop_sent ? 0 : takt_queue_stop_again_ns(queue, job);
	tell_end(queue, job, job->spec.grace_ms * TAKT_NS_PER_MS);
}

void takt_queue_tell_to_go(struct takt_queue *queue, struct takt_queue_job *job)
{
	uint64_t grace_ns = job->spec.checkpoint_grace_ms * TAKT_NS_PER_MS;

	if (!is_asked(job))
		job->row.evict = job->evict.stop ? 3 : 2;
	job->row.evict_at = queue->wall;
	job->row.state = TAKT_JOB_STOPPING;
	job->evict.step = TAKT_EVICT_TOLD;
	note_cause(queue, job);
	say_why(job);
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	if (job->spec.checkpoint_signal == 0 ||
	    takt_queue_signal(queue, job->row.id, job->spec.checkpoint_signal, NULL) < 0)
		grace_ns = 0;
	job->evict.due_ns = queue->now.ns + grace_ns;
	if (grace_ns == 0)
		end_it(queue, job);
	else
		tell_end(queue, job, grace_ns + job->spec.grace_ms * TAKT_NS_PER_MS);
	takt_queue_changed(queue, job);
	takt_crash_point("queue.after_evict");
}

void takt_queue_ask_to_go(struct takt_queue *queue, struct takt_queue_job *job)
{
	takt_queue_forget_eviction(job);
	job->evict.step = TAKT_EVICT_ASKED;
	job->row.evict = TAKT_EVICT_ROW_ASKED;
	job->row.evict_at = queue->wall;
}

void takt_queue_asking_noted(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (!may_go(job))
		return;
	queue->next_evict_ns = 1;
	takt_queue_tell_to_go(queue, job);
}

/* A GPU that is only set aside may be used to the end of the job that has it. */
static bool has_lost_gpu(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	uint64_t holder;

	for (uint32_t gpu = 0; gpu < queue->config.gpu_count; gpu++)
		if (job->row.gpu_mask >> gpu & 1 &&
		    takt_queue_gpu(queue, gpu, &holder) == TAKT_GPU_LOST)
			return true;
	return false;
}

/* The plan says that it has to go. */
static void heed(struct takt_queue *queue, const struct takt_plan_eviction *eviction)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, eviction->job_id);
	bool failure = eviction->why == TAKT_EVICT_FAILURE || eviction->why == TAKT_EVICT_WINDOW;

	if (!job || !may_go(job) || is_over_its_mark(job) || (failure && !has_lost_gpu(queue, job)))
		return;
	queue->next_evict_ns = 1; /* at the next pump, which sees what is due */
	queue->evicts = true;
	job->evict.serial = queue->plan.serial;
	job->evict.why = eviction->why;
	job->evict.stop = eviction->stop;
	if (job->evict.step == TAKT_EVICT_NONE && failure) {
		job->evict.step = TAKT_EVICT_SUSPECTED;
		job->evict.due_ns = queue->now.ns + failure_patience_ns;
	} else if (job->evict.step == TAKT_EVICT_NONE || (job->evict.step == TAKT_EVICT_SUSPECTED &&
							  job->evict.due_ns <= queue->now.ns)) {
		decide(queue, job, eviction);
	} else if (job->evict.step == TAKT_EVICT_NOTED) {
		job->row.evict_for = eviction->for_job;
		if (!takt_queue_stand_still(queue, job))
			takt_queue_tell_to_go(queue, job);
	}
}

static bool is_pending(const struct takt_queue_job *job)
{
	return job->evict.step != TAKT_EVICT_NONE && !is_over_its_mark(job);
}

void takt_queue_heed_evictions(struct takt_queue *queue)
{
	for (size_t i = 0; i < queue->plan.eviction_count; i++)
		heed(queue, &queue->plan.evictions[i]);
	if (!queue->evicts)
		return;
	queue->evicts = false;
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		/* What is on its way to disk is called off when it is there. */
		if (is_pending(job) && job->evict.step != TAKT_EVICT_DECIDED &&
		    job->evict.serial != queue->plan.serial)
			call_off(queue, job);
		queue->evicts = queue->evicts || is_pending(job);
	}
}

void takt_queue_evict_noted(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused)
{
	if (job->evict.step == TAKT_EVICT_STILLING)
		takt_queue_still_noted(queue, job, refused);
	if (job->evict.step != TAKT_EVICT_DECIDED)
		return;
	if (refused) {
		takt_queue_drop_eviction(queue, job);
		takt_queue_pause(queue);
		return;
	}
	job->evict.step = TAKT_EVICT_NOTED;
	queue->dirty = true;
	takt_crash_point("queue.before_evict");
}

/* After a restart of takt: how long ago it was told is known by the wall clock only. */
static void take_up(struct takt_queue *queue, struct takt_queue_job *job)
{
	uint64_t grace_ns =
		job->spec.checkpoint_signal ? job->spec.checkpoint_grace_ms * TAKT_NS_PER_MS : 0;
	uint64_t ago_ns = queue->wall.ns > job->row.evict_at.ns
				  ? (uint64_t)(queue->wall.ns - job->row.evict_at.ns)
				  : 0;

	job->evict.taken_over = false;
	job->evict.due_ns = queue->now.ns + (grace_ns > ago_ns ? grace_ns - ago_ns : 0);
}

/* Boot time to look at it again; UINT64_MAX = no need. */
static uint64_t check(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_queue_evict *evict = &job->evict;

	if (job->phase != TAKT_PHASE_RUNNING || job->row.cancel_wanted)
		return UINT64_MAX;
	if (evict->step == TAKT_EVICT_STILLING || evict->step == TAKT_EVICT_STILL)
		takt_queue_check_still(queue, job);
	if (evict->step == TAKT_EVICT_TOLD && evict->taken_over)
		take_up(queue, job);
	if (evict->step == TAKT_EVICT_SUSPECTED && evict->due_ns <= queue->now.ns) {
		queue->dirty = true;
		return UINT64_MAX;
	}
	if ((evict->step == TAKT_EVICT_TOLD && evict->due_ns <= queue->now.ns) ||
	    (evict->step == TAKT_EVICT_ENDING && !job->stop_sent))
		end_it(queue, job);
	return evict->due_ns > queue->now.ns ? evict->due_ns : UINT64_MAX;
}

/* Whether it leaves free GPUs to the job that it made room for. */
static bool gives_way(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	const struct takt_queue_job *other =
		job->row.evict_for ? takt_queue_job_find(queue, job->row.evict_for) : NULL;

	return other && job->phase == TAKT_PHASE_WAITING && other->phase == TAKT_PHASE_WAITING &&
	       !other->row.held && !other->row.cancel_wanted &&
	       queue->wall.ns - job->row.evict_at.ns < (int64_t)give_way_ns;
}

static uint64_t look_at_way(struct takt_queue *queue, struct takt_queue_job *job)
{
	bool way = gives_way(queue, job);

	if (way != job->gives_way) {
		job->gives_way = way;
		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, NULL);
	}
	return way ? queue->now.ns + give_way_ns : UINT64_MAX;
}

static void limit_doubt(const struct takt_queue *queue, struct takt_queue_job *job)
{
	const struct takt_jobspec *spec = &job->spec;

	if (job->in_doubt && job->doubt_until_ns == 0)
		job->doubt_until_ns = queue->now.ns + doubt_ns +
				      (spec->checkpoint_grace_ms + spec->grace_ms) * TAKT_NS_PER_MS;
}

/* It was called off; its note stays until it would have ended of what it may have been told. */
static uint64_t look_at_doubt(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (is_in_doubt(queue, job))
		return job->doubt_until_ns;
	call_off(queue, job);
	return UINT64_MAX;
}

void takt_queue_check_evictions(struct takt_queue *queue)
{
	uint64_t next_ns = UINT64_MAX;

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;
		uint64_t due_ns = UINT64_MAX;

		limit_doubt(queue, job);
		if (job->evict.step != TAKT_EVICT_NONE)
			due_ns = check(queue, job);
		else if (job->row.evict_for && job->phase == TAKT_PHASE_WAITING)
			due_ns = look_at_way(queue, job);
		if (job->evict.step == TAKT_EVICT_NONE && job->row.evict &&
		    job->phase == TAKT_PHASE_RUNNING)
			due_ns = look_at_doubt(queue, job);
		next_ns = due_ns < next_ns ? due_ns : next_ns;
	}
	queue->next_evict_ns = next_ns == UINT64_MAX ? 0 : next_ns;
}

/* It ended by itself while takt was away, or soon after, perhaps of a signal of ours that is not on
 * record: the plan may want nothing of it any more since. */
static bool may_be_ours(const struct takt_queue *queue, const struct takt_queue_job *job,
			const struct takt_engine_event *event)
{
	return ((job->evict.taken_over && job->row.evict) || is_in_doubt(queue, job)) &&
	       (event->end == TAKT_END_SIGNALED ||
		(event->end == TAKT_END_EXITED && event->code != 0));
}

bool takt_queue_was_evicted(const struct takt_queue *queue, const struct takt_queue_job *job,
			    const struct takt_engine_event *event)
{
	return job->row.evict == 2 || is_asked(job) || may_be_ours(queue, job, event);
}

void takt_queue_evicted(struct takt_queue *queue, struct takt_queue_job *job)
{
	char text[96];

	if (job->row.evict_for)
		snprintf(text, sizeof(text), "made room for job %llu, runs again",
			 (unsigned long long)job->row.evict_for);
	else
		snprintf(text, sizeof(text), "%s, runs again",
			 is_asked(job) ? "ended, as was asked" : "its GPUs failed or were needed");
	takt_queue_say(job, text);
	if (job->row.cause.cause == TAKT_CAUSE_NONE) /* told by an earlier takt, not on record */
		takt_queue_note_cause(job,
				      is_asked(job) ? TAKT_CAUSE_REQUEUED : TAKT_CAUSE_PREEMPTED);
	job->row.preemptions += !is_asked(job);
	job->row.evict = 0;
	job->row.evict_at = queue->wall;
	job->evict = (struct takt_queue_evict){.step = TAKT_EVICT_NONE};
	queue->next_evict_ns = 1;
}

void takt_queue_load_eviction(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->phase != TAKT_PHASE_WAITING && takt_queue_still_load(job)) {
		queue->next_evict_ns = 1;
	} else if (job->row.evict > 1 && job->phase != TAKT_PHASE_WAITING) {
		job->evict.step = TAKT_EVICT_TOLD;
		job->evict.stop = job->row.evict == 3;
		job->evict.taken_over = true;
		queue->evicts = true;
	}
	job->in_doubt = job->phase != TAKT_PHASE_WAITING &&
			(job->row.evict == 1 || job->evict.step == TAKT_EVICT_STILLING);
	if (job->row.evict || job->row.evict_for)
		queue->next_evict_ns = 1;
}
