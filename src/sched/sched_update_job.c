/* SPDX-License-Identifier: Apache-2.0 */
/* Events of jobs: coming, changing, ending. Where they are is in sched_update_place.c. */
#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "sched/sched_update.h"

struct takt_sched_entry *takt_sched_need_job(const struct takt_sched *sched, uint64_t id,
					     struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_map_u64_ptr(&sched->by_id, id);

	if (!entry)
		takt_err_set(err, -EINVAL, "job_id %" PRIu64 " is not a known job", id);
	return entry;
}

static int check_gang(const struct takt_sched *sched, const struct takt_sched_job *job,
		      struct takt_err *err)
{
	size_t levels = sched->names[TAKT_SPACE_LEVEL].len;

	if (takt_sched_tasks(job) > TAKT_SCHED_MAX_TASKS)
		return takt_err_set(err, -EINVAL,
				    "job.tasks %" PRIu32 " of job %" PRIu64 " is over %d",
				    job->tasks, job->id, TAKT_SCHED_MAX_TASKS);
	if (takt_sched_min_tasks(job) > takt_sched_tasks(job))
		return takt_err_set(err, -EINVAL,
				    "job.min_tasks %" PRIu32 " of job %" PRIu64
				    " is over its tasks",
				    job->min_tasks, job->id);
	if ((unsigned)job->topology >= TAKT_TOPOLOGY_WANT_COUNT || job->level > levels ||
	    job->near_level > levels || job->apart_level > levels)
		return takt_err_set(err, -EINVAL,
				    "job %" PRIu64
				    " names a topology or a level that was not told before",
				    job->id);
	if (job->after_count > TAKT_SCHED_MAX_AFTER)
		return takt_err_set(err, -EINVAL,
				    "job.after of job %" PRIu64 " has over %d entries", job->id,
				    TAKT_SCHED_MAX_AFTER);
	return 0;
}

static int check_job(const struct takt_sched *sched, const struct takt_sched_job *job,
		     struct takt_err *err)
{
	uint32_t known = TAKT_JOB_USE_OUTSIDE | TAKT_JOB_HELD | TAKT_JOB_PREEMPTIBLE |
			 TAKT_JOB_MOVABLE | TAKT_JOB_CLEAN_END;

	if (job->id == 0)
		return takt_err_set(err, -EINVAL, "job.id is 0");
	if (job->flags & ~known)
		return takt_err_set(err, -EINVAL,
				    "job.flags 0x%" PRIx32 " of job %" PRIu64
				    " has bits that mean nothing",
				    job->flags, job->id);
	if (job->task.devices && job->task.devices != job->gpus)
		return takt_err_set(err, -EINVAL,
				    "job.task.devices %u of job %" PRIu64
				    " is not its gpus, %" PRIu32,
				    job->task.devices, job->id, job->gpus);
	if ((unsigned)job->on_failure >= TAKT_FAILURE_POLICY_COUNT)
		return takt_err_set(err, -EINVAL, "job.on_failure of job %" PRIu64 " is none",
				    job->id);
	if (job->tenant && !takt_tenants_find(sched->tenants, job->tenant))
		return takt_err_set(err, -EINVAL,
				    "job.tenant %" PRIu32 " of job %" PRIu64 " was not told before",
				    job->tenant, job->id);
	if (job->workload && !takt_sched_workload_find(sched, job->workload))
		return takt_err_set(err, -EINVAL,
				    "job.workload %" PRIu32 " of job %" PRIu64
				    " was not told before",
				    job->workload, job->id);
	if (job->outlook && !takt_sched_outlook_find(sched, job->outlook))
		return takt_err_set(err, -EINVAL,
				    "job.outlook %" PRIu32 " of job %" PRIu64
				    " was not told before",
				    job->outlook, job->id);
	return check_gang(sched, job, err);
}

static int check_new_job(const struct takt_sched *sched, const struct takt_sched_job *job,
			 struct takt_err *err)
{
	const struct takt_sched_entry *same = takt_map_u64_ptr(&sched->by_seq, job->submit_seq);
	int rc = check_job(sched, job, err);

	if (rc < 0)
		return rc;
	if (takt_map_u64_ptr(&sched->by_id, job->id))
		return takt_err_set(err, -EINVAL, "job.id %" PRIu64 " is there already", job->id);
	if (same)
		return takt_err_set(err, -EINVAL,
				    "job.submit_seq %" PRIu64 " of job %" PRIu64
				    " is that of job %" PRIu64,
				    job->submit_seq, job->id, same->job.id);
	if (sched->jobs.len >= sched->jobs.max)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "job.id %" PRIu64 " is one more than the %zu allowed", job->id,
				    sched->jobs.max);
	return 0;
}

/* What it comes after was accepted before it. */
static int check_after(const struct takt_sched *sched, const struct takt_sched_job *job,
		       struct takt_err *err)
{
	for (uint32_t i = 0; i < job->after_count; i++) {
		const struct takt_sched_entry *other =
			takt_map_u64_ptr(&sched->by_id, job->after[i].job_id);

		if (other && other->job.submit_seq >= job->submit_seq)
			return takt_err_set(err, -EINVAL,
					    "job.after of job %" PRIu64 " names job %" PRIu64
					    ", which was accepted later",
					    job->id, other->job.id);
	}
	return 0;
}

/* Of those that it comes after: what of others waits for them, with it or without. */
static void count_awaited(struct takt_sched *sched, const struct takt_sched_entry *entry, bool with)
{
	const struct takt_sched_job *job = &entry->job;
	struct takt_sched_entry *other;

	for (uint32_t i = 0; i < job->after_count; i++) {
		other = takt_map_u64_ptr(&sched->by_id, job->after[i].job_id);
		if (other && !job->after[i].failed)
			other->awaited = with ? other->awaited + 1 : other->awaited - 1;
	}
}

/* Takes it out of everything that it was put into; half-built ones, too. */
static void forget(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	takt_sched_leave(sched, entry);
	if (entry->queue_at != TAKT_SCHED_NOWHERE)
		sched->queue.at[entry->queue_at] = NULL;
	if (entry->index != TAKT_SCHED_NOWHERE) {
		(*takt_vec_last(&sched->jobs))->index = entry->index;
		takt_vec_remove_swap(&sched->jobs, entry->index);
	}
	if (takt_map_u64_ptr(&sched->by_id, entry->job.id) == entry)
		takt_map_u64_remove(&sched->by_id, entry->job.id);
	if (takt_map_u64_ptr(&sched->by_seq, entry->job.submit_seq) == entry)
		takt_map_u64_remove(&sched->by_seq, entry->job.submit_seq);
	count_awaited(sched, entry, false);
	sched->estimated -= entry->job.estimate_ns > 0;
	takt_sched_leave_array(sched, entry);
	takt_sched_entry_free(entry);
}

void takt_sched_entry_free(struct takt_sched_entry *entry)
{
	if (entry->slots != &entry->one)
		takt_free(entry->slots);
	takt_free((void *)entry->job.after);
	takt_free(entry);
}

/* The dependencies that are not met yet, owned. A job that is not known has ended well. */
static int copy_after(struct takt_sched *sched, struct takt_sched_entry *entry,
		      const struct takt_sched_job *job)
{
	struct takt_sched_after *copy;
	uint32_t n = 0;

	entry->job.after = NULL;
	entry->job.after_count = 0;
	if (job->after_count == 0)
		return 0;
	copy = takt_calloc(job->after_count, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->after_count; i++)
		if (job->after[i].failed || takt_map_u64_ptr(&sched->by_id, job->after[i].job_id))
			copy[n++] = job->after[i];
	entry->job.after = copy;
	entry->job.after_count = n;
	count_awaited(sched, entry, true);
	return 0;
}

static int join(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	struct takt_sched_group *group = takt_sched_group_for(sched, entry);

	if (!group)
		return -ENOMEM;
	takt_sched_join(sched, entry, group);
	return 0;
}

static int register_job(struct takt_sched *sched, struct takt_sched_entry *entry,
			const struct takt_sched_job *job)
{
	int rc = copy_after(sched, entry, job);

	if (rc == 0)
		rc = takt_vec_push(&sched->jobs, entry);
	if (rc == 0)
		entry->index = (uint32_t)sched->jobs.len - 1;
	if (rc == 0)
		rc = takt_map_u64_put_ptr(&sched->by_id, job->id, entry);
	if (rc == 0)
		rc = takt_map_u64_put_ptr(&sched->by_seq, job->submit_seq, entry);
	if (rc == 0)
		rc = takt_sched_join_array(sched, entry);
	return rc < 0 ? rc : join(sched, entry);
}

int takt_sched_on_job_add(struct takt_sched *sched, const struct takt_sched_event *event,
			  struct takt_err *err)
{
	const struct takt_sched_job *job = &event->job;
	struct takt_sched_entry *entry;
	uint32_t kind, task_milli;
	int rc = check_new_job(sched, job, err);

	if (rc == 0)
		rc = check_after(sched, job, err);
	if (rc == 0)
		rc = takt_sched_kind_of(sched, job, &kind, &task_milli, err);
	if (rc < 0)
		return rc;
	entry = takt_zalloc(sizeof(*entry));
	if (!entry)
		return takt_err_set(err, -ENOMEM, "job %" PRIu64, job->id);
	entry->job = *job;
	sched->estimated += job->estimate_ns > 0;
	entry->kind = kind;
	entry->task_milli = task_milli;
	entry->index = entry->queue_at = entry->fresh_at = TAKT_SCHED_NOWHERE;
	entry->slots = &entry->one;
	entry->attained_gpu_ms = job->attained_gpu_ms;
	entry->ran_ns = job->ran_ns;
	entry->waited_ns = job->waited_ns;
	rc = register_job(sched, entry, job);
	if (rc < 0) {
		forget(sched, entry);
		return takt_err_set(err, rc, "job %" PRIu64, job->id);
	}
	takt_sched_waits_since(sched, entry, event->at_ns);
	return 0;
}

static int check_change(const struct takt_sched *sched, const struct takt_sched_entry *entry,
			const struct takt_sched_job *job, struct takt_err *err)
{
	if (entry->phase != TAKT_SCHED_WAITING)
		return takt_err_set(err, -EINVAL, "job.id %" PRIu64 " does not wait", job->id);
	if (job->gpus != entry->job.gpus || job->submit_seq != entry->job.submit_seq)
		return takt_err_set(err, -EINVAL,
				    "job.%s of job %" PRIu64
				    " cannot change, only priority and flags",
				    job->gpus != entry->job.gpus ? "gpus" : "submit_seq", job->id);
	return check_job(sched, job, err);
}

int takt_sched_on_job_change(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job.id, err);
	struct takt_sched_group *group;
	struct takt_sched_entry changed;
	uint32_t task_milli;
	int rc;

	if (!entry)
		return -EINVAL;
	rc = check_change(sched, entry, &event->job, err);
	if (rc < 0)
		return rc;
	changed = *entry;
	changed.job.flags = event->job.flags;
	rc = takt_sched_kind_of(sched, &changed.job, &changed.kind, &task_milli, err);
	if (rc < 0)
		return rc;
	group = takt_sched_group_for(sched, &changed);
	if (!group)
		return takt_err_set(err, -ENOMEM, "job %" PRIu64, entry->job.id);
	takt_sched_leave(sched, entry);
	entry->job.priority = event->job.priority;
	entry->job.flags = event->job.flags;
	entry->job.earliest_start_ns = event->job.earliest_start_ns;
	entry->job.deadline_ns = event->job.deadline_ns;
	entry->kind = changed.kind;
	takt_sched_join(sched, entry, group);
	return 0;
}

int takt_sched_on_job_estimate(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	sched->estimated += (event->estimate_ns > 0) - (entry->job.estimate_ns > 0);
	entry->job.estimate_ns = event->estimate_ns;
	if (entry->group && sched->config.order->reads & TAKT_ORDER_PREDICTION)
		sched->keys_stale = true;
	return 0;
}

int takt_sched_on_job_checkpoint(struct takt_sched *sched, const struct takt_sched_event *event,
				 struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (!takt_sched_is_placed(entry))
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " does not run", event->job_id);
	if (event->at_ns == 0)
		return takt_err_set(err, -EINVAL, "at_ns of a checkpoint is missing");
	entry->checkpoint_ns = event->at_ns;
	return 0;
}

/* One dependency is settled: forgotten when it ended as hoped, else it stays, failed. */
static void settle_after(struct takt_sched *sched, struct takt_sched_entry *entry,
			 struct takt_sched_entry *ended, bool failed)
{
	struct takt_sched_after *after = (struct takt_sched_after *)entry->job.after;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < entry->job.after_count; i++) {
		if (after[i].job_id == ended->job.id && !after[i].failed) {
			ended->awaited--;
			if (after[i].any || !failed)
				continue;
			after[i].failed = true;
		}
		after[kept++] = after[i];
	}
	if (entry->job.after_count == 0 || kept > 0) {
		entry->job.after_count = kept;
		return;
	}
	entry->job.after_count = 0;
	if (entry->group && entry->fresh_at == TAKT_SCHED_NOWHERE &&
	    !(entry->job.flags & TAKT_JOB_HELD))
		takt_sched_make_ready(sched, entry);
}

int takt_sched_on_job_ended(struct takt_sched *sched, const struct takt_sched_event *event,
			    struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_sched_need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (entry->phase == TAKT_SCHED_WAITING)
		takt_sched_waits_no_more(sched, entry, event->at_ns);
	takt_sched_leave_place(sched, entry, event->at_ns);
	for (size_t i = 0; i < sched->jobs.len && entry->awaited > 0; i++)
		settle_after(sched, sched->jobs.at[i], entry, event->failed);
	forget(sched, entry);
	return 0;
}
