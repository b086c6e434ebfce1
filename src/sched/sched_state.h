/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler remembers, for the files of this room only.
 *
 * Everything that a plan looks at lies on the node as one mask a fact, so that a question about a
 * node ("which GPUs could this job have?") is a few word operations. Jobs are in two arrays: all of
 * them by submit_seq, and those that wait in queue order.
 */
#ifndef TAKT_SCHED_STATE_H
#define TAKT_SCHED_STATE_H

#include "base/map.h"
#include "base/vec.h"
#include "sched/sched.h"

enum takt_sched_phase {
	TAKT_SCHED_WAITING,
	TAKT_SCHED_ASSIGNED,
	TAKT_SCHED_RUNNING,
	TAKT_SCHED_DRAINING, /* over; its GPUs have left it and drain on their own */
};

struct takt_sched_host {
	uint32_t id;
	uint32_t gpu_count;
	bool removed;	      /* kept only because jobs are placed there */
	uint32_t placed;      /* jobs that are ASSIGNED or RUNNING here */
	int32_t *pair_score;  /* owned */
	uint64_t *gpu_job;    /* owned: who holds each GPU, or held it while it drains; 0 = none */
	uint64_t quarantined; /* disjoint from lost */
	uint64_t lost;
	uint64_t outside;
	uint64_t assigned; /* disjoint: assigned, running, draining */
	uint64_t running;
	uint64_t draining;
	/* Of the plan being made; mean nothing afterwards. */
	uint64_t taken;	   /* by placements of this plan */
	uint64_t reserved; /* free, but kept for the first job that waits for GPUs */
};

struct takt_sched_entry {
	struct takt_sched_job job;
	enum takt_sched_phase phase;
	struct takt_sched_host *host; /* ASSIGNED or RUNNING: where; else NULL */
	uint64_t gpu_mask;	      /* ASSIGNED or RUNNING: what it holds there; else 0 */
};

struct takt_sched {
	TAKT_VEC(struct takt_sched_host *) hosts;  /* owned, by id */
	TAKT_VEC(struct takt_sched_entry *) jobs;  /* owned, by submit_seq */
	TAKT_VEC(struct takt_sched_entry *) queue; /* those that wait, in queue order */
	struct takt_map by_id;			   /* job id -> struct takt_sched_entry */
	uint64_t version;
};

static inline uint32_t takt_sched_count(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

/* The lowest `count` bits. */
static inline uint64_t takt_sched_low_bits(uint32_t count)
{
	return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* sched_host.c: nodes. */

/* NULL when there is none of that id; removed ones are found too. */
struct takt_sched_host *takt_sched_host_find(const struct takt_sched *sched, uint32_t id);
/* Where a node of that id is or would be in `hosts`. */
size_t takt_sched_host_place(const struct takt_sched *sched, uint32_t id);
void takt_sched_host_free(struct takt_sched_host *host); /* takes NULL */
/* GPUs that a job with these flags could ever use while health and outside use stay as they are. */
uint64_t takt_sched_host_eligible(const struct takt_sched_host *host, uint32_t flags);
/* Those of them that nothing holds now, `taken` ones excepted. */
uint64_t takt_sched_host_free_gpus(const struct takt_sched_host *host, uint32_t flags);
enum takt_gpu_state takt_sched_host_gpu_state(const struct takt_sched_host *host, uint32_t gpu);
/* GPUs in `mask` now belong to no job and drain (on a removed node: are forgotten). */
void takt_sched_host_drain(struct takt_sched_host *host, uint64_t mask);

/* sched_queue.c: jobs in order. */

int takt_sched_queue_insert(struct takt_sched *sched, struct takt_sched_entry *entry);
void takt_sched_queue_remove(struct takt_sched *sched, const struct takt_sched_entry *entry);
/* Where a job of that submit_seq is or would be in `jobs`. */
size_t takt_sched_job_place(const struct takt_sched *sched, uint64_t submit_seq);

/* sched_linkset.c: the best set that contains all of `forced` (a part of free_mask of at most
 * `need` GPUs). need <= GPUs in free_mask. */
uint64_t takt_sched_best_with(const int32_t *pair_score, uint32_t gpu_count, uint64_t free_mask,
			      uint64_t forced, uint32_t need, int64_t *ret_sum);

/* sched_wait.c */

/* What a job waits for that takt does not govern: IMPOSSIBLE, UNHEALTHY or OUTSIDE; NONE if ending
 * jobs can make room for it. */
enum takt_why takt_sched_ungoverned(const struct takt_sched *sched, uint32_t need, uint32_t flags);
/* The node where a job that waits for `why` is nearest to running, the lowest id of equal ones;
 * NULL when there is no node. */
struct takt_sched_host *takt_sched_nearest(const struct takt_sched *sched,
					   const struct takt_sched_job *job, enum takt_why why);
/* Why a job waits that this plan has not placed, with all counts, were it not held; job_id and
 * behind_job are 0. */
void takt_sched_explain(const struct takt_sched *sched, const struct takt_sched_job *job,
			struct takt_plan_wait *ret);

#endif
