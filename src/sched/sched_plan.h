/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler answers: a plan. A proposal, not a fact; see sched.h.
 *
 * Jobs are started (placements), pushed out (evictions: whole jobs only), moved (migrations) and
 * told who runs next, where and when (reservations, so that an engine can stage the next job before
 * its GPUs are free). GPUs may have to be cut into MIG instances. Every job that waits has a
 * reason.
 */
#ifndef TAKT_SCHED_PLAN_H
#define TAKT_SCHED_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "sched/sched_facts.h"

/*
 * Why a job waits; the first that applies, in this order. The reasons from SELECTOR to POLICY are
 * also what a single node can lack: they are what struct takt_plan_fit counts.
 */
enum takt_why {
	TAKT_WHY_NONE,
	TAKT_WHY_HELD,	     /* held by its owner or an administrator */
	TAKT_WHY_DEPENDENCY, /* a job that it comes after has not ended (well) */
	TAKT_WHY_EARLIEST,   /* its earliest start has not come */
	TAKT_WHY_ARRAY,	     /* as many of its array run as may */
	TAKT_WHY_QUOTA,	     /* its tenant has what it may have */
	TAKT_WHY_IMPOSSIBLE, /* no node, or no set of nodes, could take it if all were empty */
	TAKT_WHY_SELECTOR,   /* labels, taints */
	TAKT_WHY_MODEL,	     /* another accelerator model */
	TAKT_WHY_UNHEALTHY,  /* enough GPUs exist, too many are quarantined or lost */
	TAKT_WHY_OUTSIDE,    /* too many are used by processes that takt did not start */
	TAKT_WHY_ORDER,	     /* GPUs would do, but a job of higher rank waits for them */
	TAKT_WHY_GPUS,	     /* too few free GPUs; jobs that run must end first */
	TAKT_WHY_FRACTION,   /* no GPU has so large a share left */
	TAKT_WHY_DEV_MEMORY, /* too little memory on each GPU, or left on it */
	TAKT_WHY_MIG,	     /* no room for the slice */
	TAKT_WHY_NUMA,	     /* enough free GPUs, but not on one NUMA node */
	TAKT_WHY_CPU,
	TAKT_WHY_MEMORY,
	TAKT_WHY_PER_NODE,    /* as many of its kind run there as may */
	TAKT_WHY_POLICY,      /* the placement policy refuses what is free: much slower GPUs, say */
	TAKT_WHY_AFFINITY,    /* near to or apart from jobs that run */
	TAKT_WHY_RESERVATION, /* what is free is reserved, or needed for maintenance, before it
				 would be over */
	TAKT_WHY_GANG,	      /* some tasks find room, not all at once */
	TAKT_WHY_TOPOLOGY,    /* all tasks find room, but not near enough to each other */
	TAKT_WHY_PREEMPTION,  /* jobs are pushed out for it; it starts when they are gone */
	TAKT_WHY_COUNT
};
const char *takt_why_name(enum takt_why why); /* "held", "impossible", ... */
extern const char *const takt_why_names[];

/* Who can do something about it. */
enum takt_unblock {
	TAKT_UNBLOCK_NOTHING,	  /* nothing that takt knows of */
	TAKT_UNBLOCK_RELEASE,	  /* its owner: release it, or ask for something else */
	TAKT_UNBLOCK_JOBS_END,	  /* jobs that run end, GPUs get clean */
	TAKT_UNBLOCK_JOB_AHEAD,	  /* behind_job starts */
	TAKT_UNBLOCK_TIME,	  /* an instant comes: start_ns */
	TAKT_UNBLOCK_QUOTA,	  /* the tenant's other jobs end, or its quota grows */
	TAKT_UNBLOCK_REPAIR,	  /* GPUs or nodes get healthy */
	TAKT_UNBLOCK_OUTSIDE_USE, /* processes that takt did not start leave */
	TAKT_UNBLOCK_LARGER,	  /* other or larger nodes are added */
	TAKT_UNBLOCK_COUNT
};
extern const char *const takt_unblock_names[]; /* "nothing", "release", ... NULL */

/* How an instant was predicted. */
enum takt_start_how {
	TAKT_START_UNKNOWN,  /* not predicted; the instant is 0 */
	TAKT_START_NOW,	     /* as soon as evicted jobs are gone */
	TAKT_START_RELEASE,  /* the job's earliest start, or the end of a window */
	TAKT_START_ESTIMATE, /* from the predicted ends of running jobs */
	TAKT_START_BEHIND,   /* the same, and of jobs that are to start before it */
	TAKT_START_HOW_COUNT
};
extern const char *const takt_start_how_names[]; /* "unknown", "now", ... NULL */

/* One task of a job. The tasks of a job stand together, task 0 first. */
struct takt_plan_placement {
	uint64_t job_id;
	uint32_t node_id;
	uint64_t gpu_mask;
	int64_t pair_score_sum;
	uint32_t task;
	uint32_t tasks; /* of the job, placed now */
	uint32_t milli; /* of each GPU; 1000 = whole, 0 = a MIG slice */
	uint32_t mig_start;
};

enum takt_evict_why {
	TAKT_EVICT_PRIORITY, /* for a job that goes first by order */
	TAKT_EVICT_RECLAIM,  /* for a job within its tenant's quota: this one's was borrowed */
	TAKT_EVICT_FAILURE,  /* its node or a GPU of it failed */
	TAKT_EVICT_WINDOW,   /* maintenance begins */
	TAKT_EVICT_WHY_COUNT
};
extern const char *const takt_evict_why_names[]; /* "priority", "reclaim", ... NULL */

/* A whole job goes: it is requeued, or stopped. */
struct takt_plan_eviction {
	uint64_t job_id;
	enum takt_evict_why why;
	bool stop;	      /* not requeued: over */
	uint64_t for_job;     /* who starts then; 0 = nobody */
	uint64_t lost_gpu_ms; /* work since its last checkpoint */
};

/* One task of a running job goes somewhere else. */
struct takt_plan_migration {
	uint64_t job_id;
	uint32_t task;
	struct takt_sched_slot from;
	struct takt_sched_slot to;
};

/* Who runs next, where and when: one task of a job that waits. What is not `foreseen` only is kept
 * free for it. */
struct takt_plan_reservation {
	uint64_t job_id;
	uint32_t task;
	uint32_t tasks; /* of the job */
	uint32_t node_id;
	uint64_t gpu_mask;
	uint32_t milli;
	uint32_t mig_start;
	uint64_t start_ns;
	enum takt_start_how how;
	/* What is to be expected of it as things are; nothing is kept free for it. */
	bool foreseen;
};

/* An instance that is to be made on a GPU, for a task that this plan places or reserves it for;
 * `first`: the GPU holds none yet, and must be put into MIG mode, which needs it to be empty. */
struct takt_plan_layout {
	uint32_t node_id;
	uint32_t gpu;
	uint32_t profile; /* id */
	uint32_t start;	  /* its first memory slice */
	bool first;
	uint64_t for_job;
};

/* Nodes by what they lack for one kind of task. */
struct takt_plan_fit {
	uint32_t nodes;			/* all that there are */
	uint32_t fit;			/* that could take a task now */
	uint32_t room;			/* tasks that they could take together, as far as needed */
	uint32_t first[TAKT_WHY_COUNT]; /* by the first reason in the order above */
	uint32_t any[TAKT_WHY_COUNT];	/* by every reason: a node may count several times */
};

/*
 * The counts from total to must_end are over one node, the one where the job is nearest to running.
 * Each GPU counts once, in the first class that applies, so that total = unhealthy + outside +
 * running + draining + promised + kept + free.
 */
struct takt_plan_wait {
	uint64_t job_id;
	enum takt_why why;
	uint32_t need; /* GPUs that a task asked for */
	uint32_t total;
	uint32_t unhealthy; /* quarantined or lost, whoever holds them */
	uint32_t outside;   /* used by outside processes; 0 if the job may share them */
	uint32_t running;   /* held by jobs: assigned or running */
	uint32_t draining;
	uint32_t promised; /* to placements of this plan, and to the job ahead that waits for more
			    */
	uint32_t kept;	   /* would be free, but for a window that is not for the job */
	uint32_t free;
	/* ORDER: the job of higher rank that holds it back. GPUS: the job of higher rank that
	 * waits too and goes first, 0 = it is next. DEPENDENCY: the job it comes after. Else 0. */
	uint64_t behind_job;
	uint32_t must_end; /* GPUS: how many more GPUs have to come free, need - free - kept; else 0
			    */

	uint32_t tasks; /* that it asked for; 1 = no gang */
	uint64_t also;	/* every reason that applies, bit `1 << why`; `why` is one of them */
	uint32_t ahead; /* jobs that wait and go first */
	enum takt_unblock unblock;
	enum takt_start_how how;
	uint64_t start_ns; /* predicted start, with `how` */
	uint32_t fit;	   /* index in the plan's fits, plus 1; 0 = not counted */
};

struct takt_plan {
	uint64_t version;	 /* takt_sched_version() it was made on */
	uint64_t serial;	 /* of the scheduler's plans, from 1 */
	uint64_t next_wakeup_ns; /* ask again then at the latest; 0 = only on events */
	struct takt_plan_placement *placements; /* owned, as all lists; in queue order */
	size_t placement_count;
	struct takt_plan_wait *waits; /* every waiting job that is not placed, in queue order */
	size_t wait_count;
	bool waits_cut; /* more jobs wait behind those, see takt_sched_run_briefly */
	struct takt_plan_eviction *evictions; /* do these first */
	size_t eviction_count;
	struct takt_plan_migration *migrations;
	size_t migration_count;
	struct takt_plan_reservation *reservations;
	size_t reservation_count;
	struct takt_plan_layout *layouts;
	size_t layout_count;
	struct takt_plan_fit *fits; /* of kinds of tasks that wait */
	size_t fit_count;
};
void takt_plan_fini(struct takt_plan *plan);

/* One sentence for people: why it waits and what would unblock it. */
int takt_why_text(const struct takt_plan_wait *wait, struct takt_str *ret_text);
/* The same in a few words, for a table: "needs 4 more, behind 28", "held"; at most 63 bytes. */
int takt_why_words(const struct takt_plan_wait *wait, struct takt_str *ret_text);
/* The sentence with the counts of nodes and the predicted start; `plan` is the one of the wait. */
int takt_why_details(const struct takt_plan *plan, const struct takt_plan_wait *wait,
		     uint64_t now_ns, struct takt_str *ret_text);

#endif
