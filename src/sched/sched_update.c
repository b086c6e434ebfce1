/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking events. Each handler checks everything, then takes the memory it needs, then changes: so a
 * refused event has changed nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "sched/sched_state.h"

/* A node that is there; NULL sets err. */
static struct takt_sched_host *need_host(const struct takt_sched *sched, uint32_t id,
					 struct takt_err *err)
{
	struct takt_sched_host *host = takt_sched_host_find(sched, id);

	if (host && !host->removed)
		return host;
	takt_err_set(err, -EINVAL, "node_id %" PRIu32 " is not a known node", id);
	return NULL;
}

static struct takt_sched_host *need_gpu(const struct takt_sched *sched,
					const struct takt_sched_event *event, struct takt_err *err)
{
	struct takt_sched_host *host = need_host(sched, event->node_id, err);

	if (!host || event->gpu < host->gpu_count)
		return host;
	takt_err_set(err, -EINVAL,
		     "gpu %" PRIu32 " is not one of the %" PRIu32 " GPUs of node %" PRIu32,
		     event->gpu, host->gpu_count, host->id);
	return NULL;
}

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

/* Nodes. */

static int check_node(const struct takt_sched_node *node, struct takt_err *err)
{
	uint32_t n = node->gpu_count;

	if (n > TAKT_SCHED_MAX_NODE_GPUS)
		return takt_err_set(err, -EINVAL,
				    "gpu_count %" PRIu32 " of node %" PRIu32 " is over %d", n,
				    node->id, TAKT_SCHED_MAX_NODE_GPUS);
	if (n > 0 && !node->pair_score)
		return takt_err_set(err, -EINVAL, "pair_score of node %" PRIu32 " is missing",
				    node->id);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (node->pair_score[i * n + j] != node->pair_score[j * n + i])
				return takt_err_set(err, -EINVAL,
						    "pair_score of node %" PRIu32
						    " is not symmetric at %" PRIu32 ",%" PRIu32,
						    node->id, i, j);
	return 0;
}

static struct takt_sched_host *host_new(const struct takt_sched_node *node)
{
	struct takt_sched_host *host = takt_zalloc(sizeof(*host));
	size_t scores = (size_t)node->gpu_count * node->gpu_count;

	if (!host)
		return NULL;
	host->id = node->id;
	host->gpu_count = node->gpu_count;
	host->pair_score = takt_calloc(scores, sizeof(*host->pair_score));
	host->gpu_job = takt_calloc(node->gpu_count, sizeof(*host->gpu_job));
	if (!host->pair_score || !host->gpu_job) {
		takt_sched_host_free(host);
		return NULL;
	}
	if (scores > 0)
		memcpy(host->pair_score, node->pair_score, scores * sizeof(*host->pair_score));
	return host;
}

/* A removed node is back: `fresh` gives it new facts, the jobs placed there keep what they hold. */
static int host_return(struct takt_sched_host *host, const struct takt_sched_node *node,
		       struct takt_err *err)
{
	uint64_t held = host->assigned | host->running;
	struct takt_sched_host *fresh;
	struct takt_sched_host old = *host;

	if (held & ~takt_sched_low_bits(node->gpu_count))
		return takt_err_set(err, -EINVAL,
				    "gpu_count %" PRIu32 " of node %" PRIu32
				    ", which comes back, lacks a GPU that a job still holds",
				    node->gpu_count, node->id);
	fresh = host_new(node);
	if (!fresh)
		return takt_err_set(err, -ENOMEM, "node %" PRIu32, node->id);
	fresh->placed = host->placed;
	fresh->assigned = host->assigned;
	fresh->running = host->running;
	for (; held; held &= held - 1)
		fresh->gpu_job[__builtin_ctzll(held)] = host->gpu_job[__builtin_ctzll(held)];
	*host = *fresh;
	*fresh = old;
	takt_sched_host_free(fresh);
	return 0;
}

static int node_add(struct takt_sched *sched, const struct takt_sched_event *event,
		    struct takt_err *err)
{
	const struct takt_sched_node *node = &event->node;
	struct takt_sched_host *host = takt_sched_host_find(sched, node->id);
	int rc = check_node(node, err);

	if (rc < 0)
		return rc;
	if (host && !host->removed)
		return takt_err_set(err, -EINVAL, "node.id %" PRIu32 " is there already", node->id);
	if (host)
		return host_return(host, node, err);
	rc = takt_vec_reserve(&sched->hosts, 1);
	host = rc < 0 ? NULL : host_new(node);
	if (rc == -TAKT_E_LIMIT)
		return takt_err_set(err, rc, "node.id %" PRIu32 " is one more than the %zu allowed",
				    node->id, sched->hosts.max);
	if (!host)
		return takt_err_set(err, -ENOMEM, "node %" PRIu32, node->id);
	return takt_vec_insert(&sched->hosts, takt_sched_host_place(sched, node->id), host);
}

static void forget_host(struct takt_sched *sched, struct takt_sched_host *host)
{
	takt_vec_remove(&sched->hosts, takt_sched_host_place(sched, host->id));
	takt_sched_host_free(host);
}

static int node_remove(struct takt_sched *sched, const struct takt_sched_event *event,
		       struct takt_err *err)
{
	struct takt_sched_host *host = need_host(sched, event->node_id, err);
	uint64_t drains;

	if (!host)
		return -EINVAL;
	if (host->placed == 0) {
		forget_host(sched, host);
		return 0;
	}
	for (drains = host->draining; drains; drains &= drains - 1)
		host->gpu_job[__builtin_ctzll(drains)] = 0;
	host->removed = true;
	host->quarantined = host->lost = host->outside = host->draining = 0;
	return 0;
}

/* GPUs. */

static int gpu_health(struct takt_sched *sched, const struct takt_sched_event *event,
		      struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	if (event->state != TAKT_GPU_FREE && event->state != TAKT_GPU_QUARANTINED &&
	    event->state != TAKT_GPU_LOST)
		return takt_err_set(err, -EINVAL, "state '%s' is not free, quarantined or lost",
				    takt_gpu_state_name(event->state));
	bit = UINT64_C(1) << event->gpu;
	host->quarantined &= ~bit;
	host->lost &= ~bit;
	if (event->state == TAKT_GPU_QUARANTINED)
		host->quarantined |= bit;
	if (event->state == TAKT_GPU_LOST)
		host->lost |= bit;
	return 0;
}

static int gpu_outside(struct takt_sched *sched, const struct takt_sched_event *event,
		       struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	bit = UINT64_C(1) << event->gpu;
	host->outside = event->outside ? host->outside | bit : host->outside & ~bit;
	return 0;
}

static int gpu_draining(struct takt_sched *sched, const struct takt_sched_event *event,
			struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	bit = UINT64_C(1) << event->gpu;
	if ((host->assigned | host->running) & bit)
		return takt_err_set(err, -EINVAL,
				    "gpu %" PRIu32 " of node %" PRIu32 " cannot drain: job %" PRIu64
				    " holds it",
				    event->gpu, host->id, host->gpu_job[event->gpu]);
	host->draining |= bit;
	host->gpu_job[event->gpu] = event->job_id;
	return 0;
}

static int gpu_drained(struct takt_sched *sched, const struct takt_sched_event *event,
		       struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	bit = UINT64_C(1) << event->gpu;
	if (!(host->draining & bit))
		return takt_err_set(err, -EINVAL,
				    "gpu %" PRIu32 " of node %" PRIu32 " is not draining",
				    event->gpu, host->id);
	host->draining &= ~bit;
	host->gpu_job[event->gpu] = 0;
	return 0;
}

/* Jobs. */

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

static int job_add(struct takt_sched *sched, const struct takt_sched_event *event,
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

static int job_change(struct takt_sched *sched, const struct takt_sched_event *event,
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

static int job_placed(struct takt_sched *sched, const struct takt_sched_event *event,
		      struct takt_err *err)
{
	struct takt_sched_entry *entry = need_job(sched, event->job_id, err);
	struct takt_sched_host *host = entry ? need_host(sched, event->node_id, err) : NULL;
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

static int job_running(struct takt_sched *sched, const struct takt_sched_event *event,
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
		forget_host(sched, host);
}

static int job_draining(struct takt_sched *sched, const struct takt_sched_event *event,
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

static int job_requeued(struct takt_sched *sched, const struct takt_sched_event *event,
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

static int job_ended(struct takt_sched *sched, const struct takt_sched_event *event,
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

int takt_sched_update(struct takt_sched *sched, const struct takt_sched_event *event,
		      struct takt_err *err)
{
	static int (*const handlers[TAKT_SCHED_EVENT_COUNT])(struct takt_sched * sched,
							     const struct takt_sched_event *event,
							     struct takt_err *err) = {
		[TAKT_SCHED_NODE_ADD] = node_add,	  [TAKT_SCHED_NODE_REMOVE] = node_remove,
		[TAKT_SCHED_GPU_HEALTH] = gpu_health,	  [TAKT_SCHED_GPU_OUTSIDE] = gpu_outside,
		[TAKT_SCHED_GPU_DRAINING] = gpu_draining, [TAKT_SCHED_GPU_DRAINED] = gpu_drained,
		[TAKT_SCHED_JOB_ADD] = job_add,		  [TAKT_SCHED_JOB_CHANGE] = job_change,
		[TAKT_SCHED_JOB_PLACED] = job_placed,	  [TAKT_SCHED_JOB_RUNNING] = job_running,
		[TAKT_SCHED_JOB_DRAINING] = job_draining, [TAKT_SCHED_JOB_REQUEUED] = job_requeued,
		[TAKT_SCHED_JOB_ENDED] = job_ended,
	};
	int rc;

	if ((size_t)event->kind >= TAKT_SCHED_EVENT_COUNT)
		return takt_err_set(err, -EINVAL, "kind %d is not an event", (int)event->kind);
	rc = handlers[event->kind](sched, event, err);
	if (rc < 0)
		return rc;
	sched->version++;
	return 0;
}
