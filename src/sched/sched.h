/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: events in, plan out. Pure: a function of its event log.
 *
 * A caller-owned object is fed events (`update`) and asked for a plan (`run`). It reads no clock,
 * file, environment or global; time and randomness are arguments. `run` changes nothing that a
 * later plan depends on: a placement counts only when the engine has taken it and the caller says
 * so with TAKT_SCHED_JOB_PLACED. Therefore a scheduler rebuilt from its snapshot (a canonical,
 * minimal event log) gives the same plan as the one that lived through everything (property test).
 *
 * The shape holds a cluster: nodes with GPUs and a pair-score matrix inside each. One machine is a
 * cluster of one node. Today: whole GPUs on one node a job, queue order priority then arrival.
 *
 * Order. Jobs are considered by (priority descending, submit_seq ascending). A job that cannot be
 * placed now although it could be once jobs that takt runs have ended holds back every job behind
 * it: nothing overtakes a runnable job of higher rank. A job that waits for what takt does not
 * govern (outside processes, drained, quarantined or lost GPUs, a hold) holds nobody back.
 *
 * Choice. Among the free GPUs of a node the set with the largest sum of pair scores, exact up to
 * TAKT_SCHED_EXACT_GPUS free GPUs; ties: the set that leaves the larger pair-score sum among the
 * GPUs that stay free, then the lexicographically smallest list of indices.
 */
#ifndef TAKT_SCHED_SCHED_H
#define TAKT_SCHED_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
	TAKT_SCHED_MAX_NODE_GPUS = 64, /* GPUs of one node; a set is a uint64_t mask by index */
	TAKT_SCHED_EXACT_GPUS = 16,
};

/* What a GPU is to the scheduler. Outside use is a flag of its own: a GPU may be both free of
 * takt's jobs and used by somebody else. */
enum takt_gpu_state {
	TAKT_GPU_FREE,
	TAKT_GPU_ASSIGNED, /* an engine has taken a placement; the job has not started */
	TAKT_GPU_RUNNING,
	TAKT_GPU_DRAINING,    /* job over, driver still shows a process or memory */
	TAKT_GPU_QUARANTINED, /* unhealthy or set aside by an administrator */
	TAKT_GPU_LOST,	      /* fell off the bus or does not answer */
	TAKT_GPU_STATE_COUNT
};
const char *takt_gpu_state_name(enum takt_gpu_state state);

struct takt_sched_node {
	uint32_t id;	    /* chosen by the caller, unique, ties are broken by it */
	uint32_t gpu_count; /* 0..TAKT_SCHED_MAX_NODE_GPUS */
	const int32_t
		*pair_score; /* gpu_count x gpu_count, symmetric, diagonal ignored; borrowed for the
			      * call, sum of link classes as takt_link_score() gives them */
};

enum {
	TAKT_JOB_USE_OUTSIDE = 1u << 0, /* may share a GPU with a process that takt did not start */
	TAKT_JOB_HELD = 1u << 1,	/* waits until released */
};

struct takt_sched_job {
	uint64_t id;	     /* unique for ever, > 0 */
	uint64_t submit_seq; /* order of acceptance; unique */
	int32_t priority;    /* larger runs first */
	uint32_t gpus; /* whole GPUs on one node; 0 = needs none and is placed at once on the lowest
			  node id */
	uint32_t flags; /* TAKT_JOB_... */
};

enum takt_sched_event_kind {
	TAKT_SCHED_NODE_ADD,	/* node */
	TAKT_SCHED_NODE_REMOVE, /* node_id; jobs placed there stay placed until JOB_ENDED or
				   JOB_REQUEUED */
	TAKT_SCHED_GPU_HEALTH,	/* node_id, gpu, state: FREE lifts, QUARANTINED or LOST sets; a
				   placed job keeps the GPU */
	TAKT_SCHED_GPU_OUTSIDE, /* node_id, gpu, outside */
	TAKT_SCHED_JOB_ADD,	/* job: waiting */
	TAKT_SCHED_JOB_CHANGE,	/* job: new priority or flags of a job that waits */
	TAKT_SCHED_JOB_PLACED, /* job_id, node_id, gpu_mask: an engine took it; GPUs are ASSIGNED */
	TAKT_SCHED_JOB_RUNNING,	 /* job_id: its GPUs are RUNNING */
	TAKT_SCHED_JOB_DRAINING, /* job_id: over, its GPUs are DRAINING */
	TAKT_SCHED_GPU_DRAINED,	 /* node_id, gpu: a DRAINING GPU is clean again */
	TAKT_SCHED_JOB_REQUEUED, /* job_id: waits again in its old order; its GPUs are DRAINING
				    unless drained */
	TAKT_SCHED_JOB_ENDED,	 /* job_id: forgotten; GPUs of it that are DRAINING stay so until
				    drained */
	TAKT_SCHED_EVENT_COUNT
};

struct takt_sched_event {
	enum takt_sched_event_kind kind;
	uint32_t node_id;
	uint32_t gpu; /* index within the node */
	enum takt_gpu_state state;
	bool outside;
	uint64_t job_id;
	uint64_t gpu_mask;
	struct takt_sched_node node;
	struct takt_sched_job job;
};

/* Why a job waits; the first that applies, in this order. */
enum takt_why {
	TAKT_WHY_NONE,
	TAKT_WHY_HELD,	     /* held by its owner or an administrator */
	TAKT_WHY_IMPOSSIBLE, /* no node has that many GPUs */
	TAKT_WHY_UNHEALTHY,  /* enough GPUs exist, too many are quarantined or lost */
	TAKT_WHY_OUTSIDE,    /* too many are used by processes that takt did not start */
	TAKT_WHY_ORDER,	     /* GPUs would do, but a job of higher rank waits for them */
	TAKT_WHY_GPUS,	     /* too few free GPUs; jobs that run must end first */
	TAKT_WHY_COUNT
};
const char *takt_why_name(enum takt_why why); /* "held", "impossible", ... stable, for JSON */

struct takt_plan_placement {
	uint64_t job_id;
	uint32_t node_id;
	uint64_t gpu_mask;
	int64_t pair_score_sum;
};

struct takt_plan_wait {
	uint64_t job_id;
	enum takt_why why;
	uint32_t need;	/* GPUs it asked for */
	uint32_t total; /* counts over the node where it is nearest to running */
	uint32_t free, running, draining, outside, unhealthy,
		promised;    /* promised: to placements of this plan and to
				 jobs ahead that hold what is free */
	uint64_t behind_job; /* ORDER: the job of higher rank that holds it back; else 0 */
	uint32_t must_end;   /* GPUS: how many more GPUs have to come free */
};

struct takt_plan {
	uint64_t version;	 /* takt_sched_version() it was made on */
	uint64_t next_wakeup_ns; /* ask again then at the latest; 0 = only on events */
	struct takt_plan_placement *placements; /* in queue order */
	size_t placement_count;
	struct takt_plan_wait *waits; /* every waiting job that is not placed, in queue order */
	size_t wait_count;
};

struct takt_sched;

struct takt_sched_config {
	uint32_t max_jobs;  /* refuse JOB_ADD beyond; 0 = 1,000,000 */
	uint32_t max_nodes; /* 0 = 100,000 */
};

/* Heap object; free takes NULL. */
int takt_sched_new(const struct takt_sched_config *config, struct takt_sched **ret,
		   struct takt_err *err);
void takt_sched_free(struct takt_sched *sched);

/* Take one event. -EINVAL (names the field) when it contradicts what went before: then nothing
 * changed. -ENOMEM likewise. */
int takt_sched_update(struct takt_sched *sched, const struct takt_sched_event *event,
		      struct takt_err *err);

/* Number of events taken. */
uint64_t takt_sched_version(const struct takt_sched *sched);

/* Make a plan into *plan (takt_plan_fini'd or zeroed before; reused memory is fine). seed is used
 * only where a policy says so (none does today). -ENOMEM leaves *plan empty. */
int takt_sched_run(struct takt_sched *sched, uint64_t now_ns, uint64_t seed, struct takt_plan *plan,
		   struct takt_err *err);
void takt_plan_fini(struct takt_plan *plan);

/* Can this ever run here? 0, or -TAKT_E_IMPOSSIBLE with the reason as message ("asks for 9 GPUs,
 * the largest node has 8"). For refusing at submit. */
int takt_sched_possible(const struct takt_sched *sched, const struct takt_sched_job *job,
			struct takt_err *err);

/* Hands the canonical event log of the present state to `emit`, in an order that update() accepts:
 * nodes by id, GPU states, jobs by submit_seq. Stops at the first negative return and returns it.
 */
int takt_sched_snapshot(const struct takt_sched *sched,
			int (*emit)(void *ctx, const struct takt_sched_event *event), void *ctx);

/* State of one GPU and the job that holds it (0 = none). -ENOENT for an unknown node or GPU. */
int takt_sched_gpu(const struct takt_sched *sched, uint32_t node_id, uint32_t gpu,
		   enum takt_gpu_state *ret_state, bool *ret_outside, uint64_t *ret_job_id);

/* The best set of `need` GPUs among `free_mask` (see "Choice" above). -ENOENT when too few are
 * free. *ret_sum is its pair-score sum. Also used by `takt topo`. */
int takt_best_set(const int32_t *pair_score, uint32_t gpu_count, uint64_t free_mask, uint32_t need,
		  uint64_t *ret_mask, int64_t *ret_sum);

/* How two GPUs reach each other inside a node. */
enum takt_link {
	TAKT_LINK_UNKNOWN,
	TAKT_LINK_SYS,	/* across sockets */
	TAKT_LINK_NODE, /* between host bridges of a NUMA node */
	TAKT_LINK_PHB,	/* through a host bridge */
	TAKT_LINK_PXB,	/* several PCIe switches */
	TAKT_LINK_PIX,	/* one PCIe switch */
	TAKT_LINK_BOARD /* same board */
};
/* Pair score as the device plugins' allocators use it: SYS 10, NODE 20, PHB 30, PXB 40, PIX 50,
 * board 60 (unknown 0), plus 100 for each NVLink. */
int32_t takt_link_score(enum takt_link pcie, uint32_t nvlinks);
const char *takt_link_name(enum takt_link pcie); /* "SYS", "PIX", ... "?" when unknown */

/* One sentence for people: why it waits and what would unblock it. */
int takt_why_text(const struct takt_plan_wait *wait, struct takt_str *ret_text);

#endif
