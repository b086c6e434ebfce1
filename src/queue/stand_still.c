/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that the plan pushes out and that may be frozen (spec.freezable) stands still instead of
 * being ended, where the job that comes fits beside what it has: both say how much GPU memory they
 * need, and a GPU has as much. It keeps its memory and its place in the ledger; the other gets
 * exactly its GPUs, or those of several such jobs, which then stand still together or not at all.
 * They are never handed out twice otherwise: of two whole jobs on a GPU one stands still.
 *
 *	STILLING  "is to stand still" is on its way to disk, then it is told (SIGSTOP) and looked at
 *		  until none of its processes runs. One that does not get there is ended, and those
 *		  that were to stand still with it go on.
 *	STILL     so it is on disk. With the scheduler it waits, held; the other job has been
 *		  placed.
 *
 * When the other has left and the GPUs are clean of it, each has its own again before any plan is
 * made, and goes on. The row says which (4, 5), so that after a restart of takt it is the same: 4,
 *or 5 without the other, goes on at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/sys.h"
#include "queue/queue_impl.h"

static const uint64_t look_ns = 50 * TAKT_NS_PER_MS;
static const uint64_t patience_ns = 10 * TAKT_NS_PER_S;

enum {
	ROW_STILLING = 4,
	ROW_STILL = 5
};

/* What stands in the way of freezing such a job; NULL = nothing. */
static const char *hindrance(const struct takt_jobspec *spec)
{
	if (!spec->preemptible)
		return "it is for jobs that may be ended for others, too: add --preemptible";
	if (!spec->gpus || spec->gpu_milli || spec->mig[0])
		return "only jobs with whole GPUs are frozen";
	if (!spec->gpu_mem_mib)
		return "say with --gpu-mem how much GPU memory it keeps meanwhile";
	if (spec->mem_mib)
		return "the memory of the machine that --mem reserves is not given back";
	if (spec->container)
		return "processes of a container cannot be frozen";
	if (takt_jobspec_sets_gpus(spec))
		return "clocks are the other job's meanwhile: drop --clock and --power-limit";
	return spec->idle_release_ms ? "it would look idle: drop --idle-release" : NULL;
}

int takt_queue_check_freezable(const struct takt_jobspec *spec, struct takt_err *err)
{
	const char *why = spec->freezable ? hindrance(spec) : NULL;

	return why ? takt_err_set(err, -TAKT_E_USAGE, "--freezable (field 'freezable'): %s", why)
		   : 0;
}

/* The job that it makes room for, if that still wants it. */
static struct takt_queue_job *asker(const struct takt_queue *queue,
				    const struct takt_queue_job *job)
{
	struct takt_queue_job *other =
		job->row.evict_for ? takt_queue_job_find(queue, job->row.evict_for) : NULL;

	return other && other->phase == TAKT_PHASE_WAITING && !other->row.held &&
			       !other->row.cancel_wanted && other->stage != TAKT_STAGE_OFF
		       ? other
		       : NULL;
}

static bool others_stand_still_for(const struct takt_queue *queue, uint64_t job_id)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		const struct takt_queue_job *job = entry->value.ptr;

		if (job->evict.step == TAKT_EVICT_STILL && job->row.evict_for == job_id)
			return true;
	}
	return false;
}

/* On the same GPU, with so much of its memory kept. */
static bool fits(const struct takt_queue *queue, const struct takt_queue_job *job,
		 const struct takt_queue_job *other, uint32_t kept_mib)
{
	const struct takt_jobspec *spec = &other->spec;

	if (spec->gpu_milli || spec->mig[0] || !spec->gpu_mem_mib || takt_jobspec_sets_gpus(spec))
		return false;
	if (kept_mib < job->spec.gpu_mem_mib)
		kept_mib = job->spec.gpu_mem_mib;
	return (uint64_t)kept_mib + spec->gpu_mem_mib <= queue->config.gpu_mem_mib;
}

/* The GPUs that a job asks for are exactly these. */
static bool are_all(const struct takt_queue_job *other, uint64_t gpu_mask)
{
	return other->spec.gpus == (uint32_t)__builtin_popcountll(gpu_mask);
}

static bool may_stand_still(const struct takt_queue *queue, const struct takt_queue_job *job,
			    const struct takt_queue_job *other)
{
	return job->spec.freezable && !job->evict.restless && job->phase == TAKT_PHASE_RUNNING &&
	       !job->stop_wanted && !job->row.cancel_wanted &&
	       (job->evict.step <= TAKT_EVICT_NOTED || job->evict.step == TAKT_EVICT_STILLING) &&
	       fits(queue, job, other, 0) && !others_stand_still_for(queue, job->row.id);
}

/* Whether all that the plan pushes out for the other may stand still, and make all its room. Those
 * of which that is not on disk yet are waited for. */
static bool all_may(const struct takt_queue *queue, const struct takt_queue_job *other,
		    bool *ret_wait)
{
	uint64_t gpu_mask = 0;

	*ret_wait = false;
	for (size_t i = 0; i < queue->plan.eviction_count; i++) {
		const struct takt_plan_eviction *eviction = &queue->plan.evictions[i];
		const struct takt_queue_job *job;

		if (eviction->for_job != other->row.id)
			continue;
		job = takt_queue_job_find(queue, eviction->job_id);
		if (!job || !may_stand_still(queue, job, other))
			return false;
		gpu_mask |= job->row.gpu_mask;
		*ret_wait |= job->evict.step < TAKT_EVICT_NOTED;
	}
	return are_all(other, gpu_mask);
}

bool takt_queue_stand_still(struct takt_queue *queue, struct takt_queue_job *job)
{
	const struct takt_queue_job *other = asker(queue, job);
	bool wait;

	if (!other || !all_may(queue, other, &wait))
		return false;
	if (wait)
		return true;
	job->evict.step = TAKT_EVICT_STILLING;
	job->evict.due_ns = 0;
	job->evict.give_up_ns = queue->now.ns + patience_ns;
	job->row.evict = ROW_STILLING;
	job->row.evict_at = queue->wall;
	if (takt_queue_post(queue, job, TICKET_EVICT, NULL) < 0) {
		takt_queue_drop_eviction(queue, job);
		takt_queue_pause(queue);
	}
	takt_queue_changed(queue, job);
	return true;
}

void takt_queue_still_noted(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused)
{
	if (refused) {
		takt_queue_drop_eviction(queue, job);
		takt_queue_pause(queue);
		return;
	}
	takt_crash_point("queue.before_still");
	(void)takt_queue_send_signal(queue, job, SIGSTOP, NULL);
	job->evict.due_ns = queue->now.ns + look_ns;
	queue->next_evict_ns = 1;
}

/* With the scheduler. */
static void set_held(struct takt_queue *queue, struct takt_queue_job *job, bool held)
{
	job->evict.held = held;
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, NULL);
}

static void drain_gpus(struct takt_queue *queue, uint64_t gpu_mask)
{
	for (uint64_t left = gpu_mask; left; left &= left - 1)
		(void)takt_ledger_tell_drained(queue, (uint32_t)__builtin_ctzll(left), NULL);
}

/* It goes on, and whatever was said of it is over. */
static void go_on(struct takt_queue *queue, struct takt_queue_job *job)
{
	takt_queue_drop_eviction(queue, job);
	if (!job->row.frozen)
		(void)takt_queue_send_signal(queue, job, SIGCONT, NULL);
	takt_queue_say(job, "");
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	takt_queue_limit_anew(queue, job);
	takt_queue_changed(queue, job);
}

/* What its owner had frozen before is not counted twice. */
static void note_stood(struct takt_queue *queue, struct takt_queue_job *job)
{
	uint64_t stood_ns;

	if (queue->wall.ns <= job->row.evict_at.ns)
		return;
	stood_ns = (uint64_t)(queue->wall.ns - job->row.evict_at.ns);
	job->row.stood_ns += stood_ns;
	if (job->row.frozen && job->rests_since.ns)
		job->rests_since.ns += stood_ns;
}

/* It has its GPUs again, which nobody else has. */
static void thaw(struct takt_queue *queue, struct takt_queue_job *job)
{
	takt_crash_point("queue.before_thaw");
	set_held(queue, job, false);
	if (takt_queue_tell(queue, TAKT_SCHED_JOB_PLACED, job, NULL) < 0) {
		set_held(queue, job, true);
		job->evict.due_ns = queue->now.ns +
				    takt_pace_ns(&takt_queue_refusals, job->evict.thaws_refused++);
		queue->next_evict_ns = 1;
		return;
	}
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_RUNNING, job, NULL);
	note_stood(queue, job);
	takt_queue_note_event(job, TAKT_EVENT_THAWED);
	go_on(queue, job);
}

/* It stands still, or the other does not fit after all: it is ended, as if it were not freezable.
 */
static void give_up(struct takt_queue *queue, struct takt_queue_job *job)
{
	(void)takt_queue_send_signal(queue, job, SIGCONT, NULL);
	job->evict.restless = true;
	takt_queue_tell_to_go(queue, job);
}

/* Those that are to stand still for one job, together. */
struct group {
	struct takt_queue_job *jobs[TAKT_SCHED_MAX_NODE_GPUS];
	size_t count;
	uint64_t gpu_mask;
};

static bool is_in_group(const struct takt_queue_job *job, const struct takt_queue_job *other)
{
	return job->evict.step == TAKT_EVICT_STILLING && job->row.evict_for == other->row.id &&
	       job->phase == TAKT_PHASE_RUNNING && !job->row.cancel_wanted;
}

static struct group group_for(const struct takt_queue *queue, const struct takt_queue_job *other)
{
	struct group group = {.count = 0};

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (!is_in_group(job, other) || group.count == TAKT_ARRAY_LEN(group.jobs))
			continue;
		group.jobs[group.count++] = job;
		group.gpu_mask |= job->row.gpu_mask;
	}
	return group;
}

/* Negative when that cannot be written down. */
static int let_stand(struct takt_queue *queue, struct takt_queue_job *job,
		     const struct takt_queue_job *other)
{
	char text[64];

	job->evict.step = TAKT_EVICT_STILL;
	job->evict.clean_gpus = 0;
	job->evict.due_ns = 0;
	job->row.evict = ROW_STILL;
	job->row.evict_at = queue->wall;
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_REQUEUED, job, NULL);
	set_held(queue, job, true);
	drain_gpus(queue, job->row.gpu_mask);
	snprintf(text, sizeof(text), "frozen for job %llu", (unsigned long long)other->row.id);
	takt_queue_say(job, text);
	takt_queue_note_event(job, TAKT_EVENT_FROZEN);
	return takt_queue_post(queue, job, TICKET_NOTE, NULL);
}

/* Their GPUs become the other's: for the scheduler in one step, on disk in this order. */
static void hand_over(struct takt_queue *queue, const struct group *group,
		      const struct takt_queue_job *other)
{
	const struct takt_plan_placement place = {.job_id = other->row.id,
						  .node_id = TAKT_QUEUE_NODE,
						  .gpu_mask = group->gpu_mask,
						  .milli = TAKT_REQUEST_WHOLE};
	int rc = 0;

	takt_crash_point("queue.before_hand_over");
	for (size_t i = 0; i < group->count; i++)
		rc |= let_stand(queue, group->jobs[i], other);
	if (rc == 0)
		takt_queue_promise(queue, &place, 1);
	takt_crash_point("queue.after_hand_over");
	for (size_t i = 0; i < group->count; i++)
		if (other->phase == TAKT_PHASE_WAITING)
			thaw(queue, group->jobs[i]);
		else
			takt_queue_changed(queue, group->jobs[i]);
}

static bool stands(const struct takt_queue *queue, const struct takt_queue_job *job,
		   uint32_t *ret_kept_mib)
{
	const struct takt_queue_hooks *hooks = queue->config.hooks;

	*ret_kept_mib = 0;
	return !hooks->stands_still ||
	       hooks->stands_still(queue->config.hooks_ctx, job, ret_kept_mib);
}

static bool all_stand(const struct takt_queue *queue, const struct group *group,
		      const struct takt_queue_job *other)
{
	uint32_t kept_mib;

	for (size_t i = 0; i < group->count; i++)
		if (!stands(queue, group->jobs[i], &kept_mib) ||
		    !fits(queue, group->jobs[i], other, kept_mib))
			return false;
	return true;
}

/* It stands still itself. One of the others may have left, so that there is not room enough. */
static void look_at_group(struct takt_queue *queue, struct takt_queue_job *job,
			  const struct takt_queue_job *other)
{
	struct group group = group_for(queue, other);

	if (!are_all(other, group.gpu_mask))
		go_on(queue, job);
	else if (all_stand(queue, &group, other))
		hand_over(queue, &group, other);
}

static void look(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_queue_job *other = asker(queue, job);
	uint32_t kept_mib;

	job->evict.due_ns = queue->now.ns + look_ns;
	if (!other)
		go_on(queue, job);
	else if (stands(queue, job, &kept_mib))
		fits(queue, job, other, kept_mib) ? look_at_group(queue, job, other)
						  : give_up(queue, job);
	else if (job->evict.give_up_ns <= queue->now.ns)
		give_up(queue, job);
	else /* for what was forked meanwhile */
		(void)takt_queue_send_signal(queue, job, SIGSTOP, NULL);
}

void takt_queue_check_still(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->evict.step == TAKT_EVICT_STILLING && job->evict.taken_over)
		go_on(queue, job);
	else if (job->evict.due_ns == 0 || job->evict.due_ns > queue->now.ns)
		return;
	else if (job->evict.step == TAKT_EVICT_STILLING)
		look(queue, job);
	else
		thaw(queue, job);
}

static bool is_anothers(const struct takt_queue *queue, uint32_t gpu, uint64_t job_id)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(queue, &count);

	for (size_t i = 0; i < count; i++)
		if (holdings[i].gpu == gpu && holdings[i].job_id != job_id)
			return true;
	return false;
}

bool takt_queue_still_has(struct takt_queue *queue, uint32_t gpu)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->evict.step != TAKT_EVICT_STILL || !(job->row.gpu_mask >> gpu & 1) ||
		    is_anothers(queue, gpu, job->row.id))
			continue;
		job->evict.clean_gpus |= UINT64_C(1) << gpu;
		if (job->evict.clean_gpus == job->row.gpu_mask) {
			drain_gpus(queue, job->row.gpu_mask);
			thaw(queue, job);
		}
		return true;
	}
	return false;
}

void takt_queue_still_ended(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->evict.step == TAKT_EVICT_STILL) {
		set_held(queue, job, false);
		takt_ledger_leave(queue, job->row.id);
	}
	if (job->evict.step == TAKT_EVICT_STILL || job->evict.step == TAKT_EVICT_STILLING)
		takt_queue_forget_eviction(job);
}

bool takt_queue_still_load(struct takt_queue_job *job)
{
	if (job->row.evict != ROW_STILLING && job->row.evict != ROW_STILL)
		return false;
	job->evict.taken_over = true;
	job->evict.held = job->row.evict == ROW_STILL;
	job->evict.step = job->evict.held ? TAKT_EVICT_STILL : TAKT_EVICT_STILLING;
	return true;
}

/* The other's attempt may be alive, and has the GPUs. */
static bool other_has_gpus(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	const struct takt_queue_job *other = takt_queue_job_find(queue, job->row.evict_for);

	return other && other->row.gpu_mask && other->phase != TAKT_PHASE_WAITING;
}

bool takt_queue_still_claim(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->evict.step != TAKT_EVICT_STILL)
		return false;
	if (other_has_gpus(queue, job)) {
		if (takt_ledger_reserve(queue, job) == 0)
			takt_ledger_take(queue, job);
		return true;
	}
	job->evict.step = TAKT_EVICT_STILLING;
	set_held(queue, job, false);
	return false;
}
