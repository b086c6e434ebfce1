/* SPDX-License-Identifier: Apache-2.0 */
/* From the plan to the engine: promise GPUs, put the attempt on disk, let the caller prepare,
 * start. */
#include <errno.h>
#include <signal.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "queue/queue_impl.h"

/* Ids of start and stop follow from the attempt, so that repeating one after a restart is the same
 * action. */
static uint64_t action_id(const struct takt_queue_job *job, enum takt_action_kind kind)
{
	return job->row.id << 24 | (uint64_t)(job->row.attempt & 0xfffff) << 4 | kind;
}

static struct takt_action make_action(const struct takt_queue *queue,
				      const struct takt_queue_job *job, enum takt_action_kind kind)
{
	return (struct takt_action){
		.id = action_id(job, kind),
		.planned_on = takt_sched_version(queue->sched),
		.kind = kind,
		.job_id = job->row.id,
		.attempt = job->row.attempt,
		.node_id = TAKT_QUEUE_NODE,
		.gpu_mask = job->row.gpu_mask,
		.grace_ms = job->spec.grace_ms,
		.staged = job->stage == TAKT_STAGE_READY,
	};
}

void takt_queue_clear_place(struct takt_queue_job *job)
{
	job->row.gpu_mask = 0;
	job->row.share_milli = job->row.mem_held_mib = 0;
	job->row.mps_limited = false;
	takt_free(job->row.mig);
	takt_free(job->row.gpu_uuids);
	job->row.mig = job->row.gpu_uuids = NULL;
}

void takt_queue_call_off(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_job_report report = {0};

	queue->config.hooks->release(queue->config.hooks_ctx, job, &report);
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_REQUEUED, job, NULL);
	takt_ledger_unused(queue, job);
	job->phase = TAKT_PHASE_WAITING;
	job->row.state = TAKT_JOB_WAITING;
	takt_queue_clear_place(job);
	if (job->stage == TAKT_STAGE_NONE)
		job->row.attempt--;
	else
		takt_queue_stage_off(queue, job);
}

int takt_queue_order(struct takt_queue *queue, struct takt_queue_job *job,
		     enum takt_action_kind kind)
{
	struct takt_action action = make_action(queue, job, kind);
	int rc = takt_engine_apply(queue->config.engine, &action, 1, NULL);

	return rc < 0 ? rc : 0;
}

void takt_queue_stop(struct takt_queue *queue, struct takt_queue_job *job)
{
	/* One that stands still would go on beside the other, to end. */
	bool still = job->evict.step == TAKT_EVICT_STILL;

	job->stop_sent = still ? takt_queue_send_signal(queue, job, SIGKILL, NULL) == 0
			       : takt_queue_order(queue, job, TAKT_ACTION_STOP) == 0;
	job->stops_refused = job->stop_sent ? 0 : job->stops_refused + 1;
}

uint64_t takt_queue_stop_again_ns(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	uint32_t before = job->stops_refused ? job->stops_refused - 1 : 0;

	return queue->now.ns + takt_pace_ns(&takt_queue_refusals, before);
}

void takt_queue_try_start(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->phase != TAKT_PHASE_PREPARING || !job->row_durable || !job->prepared)
		return;
	if (takt_queue_mig_is_gone(queue, job)) {
		takt_queue_call_off(queue, job);
		return;
	}
	takt_crash_point("queue.before_start");
	if (takt_queue_order(queue, job, TAKT_ACTION_START) < 0) {
		takt_queue_call_off(queue, job);
		takt_queue_pause(queue);
		return;
	}
	takt_queue_stage_started(queue, job);
	job->phase = TAKT_PHASE_STARTING;
	takt_crash_point("queue.after_start");
	takt_queue_changed(queue, job);
}

/* Which GPUs its numbers mean today. */
static int write_uuids(const struct takt_queue_config *config, struct takt_queue_job *job)
{
	struct takt_str text = TAKT_STR(64 * 100);

	if (!config->gpu_uuid || !job->row.gpu_mask)
		return 0;
	for (uint64_t left = job->row.gpu_mask; left; left &= left - 1)
		takt_str_addf(&text, "%s%s", left == job->row.gpu_mask ? "" : ",",
			      config->gpu_uuid[__builtin_ctzll(left)]);
	takt_free(job->row.gpu_uuids);
	job->row.gpu_uuids = takt_str_take(&text);
	takt_str_fini(&text);
	return job->row.gpu_uuids ? 0 : -ENOMEM;
}

/* What the plan gives it, into its row. */
static int write_place(struct takt_queue *queue, struct takt_queue_job *job,
		       const struct takt_plan_placement *placements, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		job->row.gpu_mask |= placements[i].gpu_mask;
	job->row.share_milli = placements->milli;
	job->row.mem_held_mib = takt_queue_share_mem(queue, job);
	if (job->row.gpu_mask & (queue->contested_gpus | queue->closed_gpus))
		return -EBUSY;
	if (write_uuids(&queue->config, job) < 0)
		return -ENOMEM;
	return job->spec.mig[0] ? takt_queue_mig_place(queue, job, placements, count) : 0;
}

void takt_queue_promise(struct takt_queue *queue, const struct takt_plan_placement *placements,
			uint32_t count)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, placements->job_id);

	if (!job || job->phase != TAKT_PHASE_WAITING || job->stage == TAKT_STAGE_OFF)
		return;
	if (!takt_queue_env_fetch(queue, job))
		return;
	if (write_place(queue, job, placements, count) < 0 ||
	    takt_queue_tell(queue, TAKT_SCHED_JOB_PLACED, job, NULL) < 0) {
		takt_queue_clear_place(job);
		return;
	}
	takt_queue_learn_start(queue, job);
	job->phase = TAKT_PHASE_PREPARING;
	job->row.state = TAKT_JOB_STARTING;
	takt_queue_stage_place(queue, job);
	takt_ledger_name(queue, job);
	job->row.evict_for = 0;
	job->row.evict_at.ns = 0;
	job->row.checkpoint_at.ns = 0;
	job->row.frozen = job->rest_unknown = false;
	job->row.stood_ns = job->rested_ns = 0;
	job->row_durable = job->prepared = job->stop_wanted = job->stop_sent = false;
	job->stops_refused = job->stages_failed = 0;
	job->limit_ns = 0;
	job->clock_note[0] = '\0';
	if (takt_queue_post(queue, job, TICKET_START, NULL) < 0) {
		takt_queue_call_off(queue, job);
		takt_queue_pause(queue);
		return;
	}
	job->start_writes++;
	queue->config.hooks->prepare(queue->config.hooks_ctx, job);
}

/* The tasks of a job stand together. */
static uint32_t tasks_at(const struct takt_plan *plan, size_t at)
{
	uint32_t count = 1;

	while (at + count < plan->placement_count &&
	       plan->placements[at + count].job_id == plan->placements[at].job_id)
		count++;
	return count;
}

/* Of many, so many of each user's: the others are placed again when some of those have started,
 * which is told to the scheduler. So are those of a user whose starts are refused: one is tried. */
static void promise_all(struct takt_queue *queue)
{
	bool many = queue->plan.placement_count > TAKT_QUEUE_STARTS || queue->users_refused;

	if (many)
		takt_queue_count_starts(queue);
	for (size_t i = 0, n; i < queue->plan.placement_count; i += n) {
		n = tasks_at(&queue->plan, i);
		if (!many || takt_queue_may_start(queue, queue->plan.placements[i].job_id))
			takt_queue_promise(queue, &queue->plan.placements[i], (uint32_t)n);
	}
}

int takt_queue_replan(struct takt_queue *queue, struct takt_err *err)
{
	uint64_t now_ns = takt_queue_sched_ns(queue, queue->wall);
	int rc = takt_ledger_keep(queue);

	if (rc < 0)
		return takt_err_set(err, rc, "what jobs have left on their GPUs");
	takt_queue_find_places(queue);
	rc = takt_sched_run_briefly(queue->sched, now_ns, TAKT_QUEUE_EXPLAINED, &queue->plan, err);
	if (rc < 0)
		return rc;
	queue->planned_ns = now_ns;
	queue->wake_ns = queue->plan.next_wakeup_ns;
	queue->dirty = false;
	queue->version++;
	rc = takt_queue_index_waits(queue);
	takt_queue_keep_decision(queue);
	takt_queue_note_foretold(queue);
	takt_queue_heed_evictions(queue);
	promise_all(queue);
	takt_queue_stage(queue, now_ns);
	return rc < 0 ? takt_err_set(err, rc, "the plan's index") : 0;
}
