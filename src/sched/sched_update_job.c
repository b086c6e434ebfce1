/* SPDX-License-Identifier: Apache-2.0 */
/* Events of jobs. */
#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "sched/sched_update.h"

static struct takt_sched_entry *need_job(const struct takt_sched *sched, uint64_t id,
					 struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_map_u64_ptr(&sched->by_id, id);

	if (!entry)
		takt_err_set(err, -EINVAL, "job_id %" PRIu64 " is not a known job", id);
	return entry;
}

static bool is_placed(const struct takt_sched_entry *entry)
{
	return entry->phase == TAKT_SCHED_ASSIGNED || entry->phase == TAKT_SCHED_RUNNING;
}

static int check_job(const struct takt_sched_job *job, struct takt_err *err)
{
	uint32_t known = TAKT_JOB_USE_OUTSIDE | TAKT_JOB_HELD;

	if (job->id == 0)
		return takt_err_set(err, -EINVAL, "job.id is 0");
	if (job->flags & ~known)
		return takt_err_set(err, -EINVAL,
				    "job.flags 0x%" PRIx32 " of job %" PRIu64
				    " has bits that mean nothing",
				    job->flags, job->id);
	return 0;
}

static int check_new_job(const struct takt_sched *sched, const struct takt_sched_job *job,
			 struct takt_err *err)
{
	size_t place = takt_sched_job_place(sched, job->submit_seq);
	int rc = check_job(job, err);

	if (rc < 0)
		return rc;
	if (takt_map_u64_ptr(&sched->by_id, job->id))
		return takt_err_set(err, -EINVAL, "job.id %" PRIu64 " is there already", job->id);
	if (place < sched->jobs.len && sched->jobs.at[place]->job.submit_seq == job->submit_seq)
		return takt_err_set(err, -EINVAL,
				    "job.submit_seq %" PRIu64 " of job %" PRIu64
				    " is that of job %" PRIu64,
				    job->submit_seq, job->id, sched->jobs.at[place]->job.id);
	if (sched->jobs.len >= sched->jobs.max)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "job.id %" PRIu64 " is one more than the %zu allowed", job->id,
				    sched->jobs.max);
	return 0;
}

int takt_sched_on_job_add(struct takt_sched *sched, const struct takt_sched_event *event,
			  struct takt_err *err)
{
	struct takt_sched_entry *entry;
	int rc = check_new_job(sched, &event->job, err);

	if (rc < 0)
		return rc;
	entry = takt_zalloc(sizeof(*entry));
	if (!entry || takt_vec_reserve(&sched->jobs, 1) < 0 ||
	    takt_vec_reserve(&sched->queue, 1) < 0 ||
	    takt_map_u64_put_ptr(&sched->by_id, event->job.id, entry) < 0) {
		takt_free(entry);
		return takt_err_set(err, -ENOMEM, "job %" PRIu64, event->job.id);
	}
	entry->job = event->job;
	(void)takt_vec_insert(&sched->jobs, takt_sched_job_place(sched, entry->job.submit_seq),
			      entry);
	return takt_sched_queue_insert(sched, entry);
}

static int check_change(const struct takt_sched_entry *entry, const struct takt_sched_job *job,
			struct takt_err *err)
{
	if (entry->phase != TAKT_SCHED_WAITING)
		return takt_err_set(err, -EINVAL, "job.id %" PRIu64 " does not wait", job->id);
	if (job->gpus != entry->job.gpus || job->submit_seq != entry->job.submit_seq)
		return takt_err_set(err, -EINVAL,
				    "job.%s of job %" PRIu64
				    " cannot change, only priority and flags",
				    job->gpus != entry->job.gpus ? "gpus" : "submit_seq", job->id);
	return check_job(job, err);
}

int takt_sched_on_job_change(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	struct takt_sched_entry *entry = need_job(sched, event->job.id, err);
	int rc;

	if (!entry)
		return -EINVAL;
	rc = check_change(entry, &event->job, err);
	if (rc < 0)
		return rc;
	takt_sched_queue_remove(sched, entry);
	entry->job = event->job;
	return takt_sched_queue_insert(sched, entry);
}

static int check_placement(const struct takt_sched_entry *entry, const struct takt_sched_host *host,
			   uint64_t gpu_mask, struct takt_err *err)
{
	uint64_t busy = (host->assigned | host->running | host->draining) & gpu_mask;

	if (entry->phase != TAKT_SCHED_WAITING)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " does not wait",
				    entry->job.id);
	if (gpu_mask & ~takt_sched_low_bits(host->gpu_count))
		return takt_err_set(err, -EINVAL,
				    "gpu_mask 0x%" PRIx64 " of job %" PRIu64
				    " is beyond the %" PRIu32 " GPUs of node %" PRIu32,
				    gpu_mask, entry->job.id, host->gpu_count, host->id);
	if (takt_sched_count(gpu_mask) != entry->job.gpus)
		return takt_err_set(err, -EINVAL,
				    "gpu_mask 0x%" PRIx64 " of job %" PRIu64 " is not %" PRIu32
				    " GPUs",
				    gpu_mask, entry->job.id, entry->job.gpus);
	if (busy)
		return takt_err_set(err, -EINVAL,
				    "gpu_mask 0x%" PRIx64 " of job %" PRIu64
				    " has GPU %d, %s by job %" PRIu64,
				    gpu_mask, entry->job.id, __builtin_ctzll(busy),
				    host->draining & busy & -busy ? "left unclean" : "held",
				    host->gpu_job[__builtin_ctzll(busy)]);
	return 0;
}

int takt_sched_on_job_placed(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	struct takt_sched_entry *entry = need_job(sched, event->job_id, err);
	struct takt_sched_host *host =
		entry ? takt_sched_need_host(sched, event->node_id, err) : NULL;
	int rc;

	if (!host)
		return -EINVAL;
	rc = check_placement(entry, host, event->gpu_mask, err);
	if (rc < 0)
		return rc;
	takt_sched_queue_remove(sched, entry);
	entry->phase = TAKT_SCHED_ASSIGNED;
	entry->host = host;
	entry->gpu_mask = event->gpu_mask;
	host->placed++;
	host->assigned |= event->gpu_mask;
	for (uint64_t left = event->gpu_mask; left; left &= left - 1)
		host->gpu_job[__builtin_ctzll(left)] = entry->job.id;
	return 0;
}

int takt_sched_on_job_running(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	struct takt_sched_entry *entry = need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (entry->phase != TAKT_SCHED_ASSIGNED)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " is not assigned",
				    event->job_id);
	entry->phase = TAKT_SCHED_RUNNING;
	entry->host->assigned &= ~entry->gpu_mask;
	entry->host->running |= entry->gpu_mask;
	return 0;
}

/* The job lets go of its place: its GPUs drain, and a removed node that only it kept is gone. */
static void leave_host(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	struct takt_sched_host *host = entry->host;

	if (!is_placed(entry))
		return;
	takt_sched_host_drain(host, entry->gpu_mask);
	entry->host = NULL;
	entry->gpu_mask = 0;
	host->placed--;
	if (host->removed && host->placed == 0)
		takt_sched_host_forget(sched, host);
}

int takt_sched_on_job_draining(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err)
{
	struct takt_sched_entry *entry = need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (entry->phase == TAKT_SCHED_DRAINING)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " is draining already",
				    event->job_id);
	if (entry->phase == TAKT_SCHED_WAITING)
		takt_sched_queue_remove(sched, entry);
	leave_host(sched, entry);
	entry->phase = TAKT_SCHED_DRAINING;
	return 0;
}

int takt_sched_on_job_requeued(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err)
{
	struct takt_sched_entry *entry = need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (entry->phase == TAKT_SCHED_WAITING)
		return takt_err_set(err, -EINVAL, "job_id %" PRIu64 " waits already",
				    event->job_id);
	if (takt_sched_queue_insert(sched, entry) < 0)
		return takt_err_set(err, -ENOMEM, "job %" PRIu64, event->job_id);
	leave_host(sched, entry);
	entry->phase = TAKT_SCHED_WAITING;
	return 0;
}

int takt_sched_on_job_ended(struct takt_sched *sched, const struct takt_sched_event *event,
			    struct takt_err *err)
{
	struct takt_sched_entry *entry = need_job(sched, event->job_id, err);

	if (!entry)
		return -EINVAL;
	if (entry->phase == TAKT_SCHED_WAITING)
		takt_sched_queue_remove(sched, entry);
	leave_host(sched, entry);
	takt_vec_remove(&sched->jobs, takt_sched_job_place(sched, entry->job.submit_seq));
	takt_map_u64_remove(&sched->by_id, entry->job.id);
	takt_free(entry);
	return 0;
}
