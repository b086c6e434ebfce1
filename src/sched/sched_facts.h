/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler is told: nodes, jobs, tenants, windows, and the words for them.
 *
 * Zero in a field means what it meant before the field was there: a node of GPUs and nothing else,
 * a job of whole GPUs on one node. All memory that a fact points at is borrowed for the call.
 *
 * Accelerator models and words (labels, topology levels, MIG profiles) are told once and are small
 * numbers from then on, so that facts stay plain numbers. Ids of each go from 1 upwards without
 * gaps. Instants are nanoseconds of the caller's clock, the one that takt_sched_run is given; 0 =
 * not known.
 */
#ifndef TAKT_SCHED_FACTS_H
#define TAKT_SCHED_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/order.h"
#include "sched/request.h"

enum {
	TAKT_SCHED_MAX_NODE_GPUS = 64, /* GPUs of one node; a set is a uint64_t mask by index */
	TAKT_SCHED_LEVELS = 4,	       /* of topology, above the node */
	TAKT_SCHED_MAX_NAME = 64,      /* bytes of a name, its end included */
	TAKT_SCHED_MAX_LABELS = 256,   /* of a node, and taints */
	TAKT_SCHED_MAX_TERMS = 16,     /* labels of one list of a selector */
	TAKT_SCHED_MAX_MODELS = 64,    /* model 0 included */
	TAKT_SCHED_MAX_PROFILES = 16,  /* of a model */
	TAKT_SCHED_MIG_SLICES = 8,     /* of memory, of a GPU */
	TAKT_SCHED_MAX_TASKS = 16384,  /* of a job */
	TAKT_SCHED_MAX_AFTER = 1000,   /* dependencies of a job */
};

enum takt_sched_space {
	TAKT_SPACE_LABEL,   /* of nodes, labels and taints alike: "gpu=h100", "spot" */
	TAKT_SPACE_LEVEL,   /* of topology, from the outside in: 1 "zone", 2 "rack", ... */
	TAKT_SPACE_PROFILE, /* of MIG, after the models that have it: "1g.10gb" */
	TAKT_SPACE_COUNT
};
extern const char *const takt_sched_space_names[]; /* "label", "level", "profile", NULL */

/* A model of accelerators, told by a MODEL event. Model 0 is there already: nothing known. */
struct takt_sched_model {
	uint32_t id;
	char name[TAKT_SCHED_MAX_NAME]; /* "H100-80GB" */
	char category[16];		/* "gpu", "fpga"; empty = "gpu" */
	uint32_t mem_mib;		/* of each; 0 = not known */
	uint32_t idle_mw, busy_mw;	/* power; 0 = not known */
	uint32_t profile_count;
	struct takt_sched_profile {
		char name[32];
		uint32_t size;	 /* memory slices, 1..8 */
		uint32_t slices; /* of computing, 1..7 */
		uint32_t max;	 /* on one GPU; 0 = as many as fit */
		uint32_t mem_mib;
	} profiles[TAKT_SCHED_MAX_PROFILES];
};

/* Requirements on a node's labels and taints, lists of label ids. Ids of selectors are the
 * caller's, > 0; told by a SELECTOR event before a job names one. */
struct takt_sched_selector {
	uint32_t id;
	uint32_t all_count, any_count, none_count, tolerate_count;
	uint32_t all[TAKT_SCHED_MAX_TERMS];	 /* the node has each of these */
	uint32_t any[TAKT_SCHED_MAX_TERMS];	 /* and one of these, all values of one key */
	uint32_t none[TAKT_SCHED_MAX_TERMS];	 /* and none of these */
	uint32_t tolerate[TAKT_SCHED_MAX_TERMS]; /* taints that the job can stand */
};

/* How fast a kind of work is on each model, in permille of the reference; 0 = not known, which
 * counts as 1000. Ids are the caller's, > 0. */
struct takt_sched_workload {
	uint32_t id;
	uint32_t count; /* models told, from 0 on */
	uint32_t permille[TAKT_SCHED_MAX_MODELS];
};
_Static_assert(sizeof(struct takt_sched_workload) == (2 + TAKT_SCHED_MAX_MODELS) * sizeof(uint32_t),
	       "no padding: it is compared as bytes");

struct takt_sched_node {
	uint32_t id;	    /* chosen by the caller, unique, ties are broken by it */
	uint32_t gpu_count; /* 0..TAKT_SCHED_MAX_NODE_GPUS */
	/* gpu_count x gpu_count, symmetric, diagonal ignored; as takt_link_score() gives them.
	 * NULL: all pairs alike. */
	const int32_t *pair_score;

	int32_t cpu_milli;	      /* 0 = not counted on this node */
	int64_t mem_mib;	      /* 0 = not counted */
	uint32_t dev_mem_mib;	      /* of each GPU; 0 = not known */
	const uint32_t *each_mem_mib; /* gpu_count, where they are unlike; NULL: dev_mem_mib */
	uint32_t model;		      /* id of the GPUs' model */
	uint64_t mig_mask; /* GPUs that may be cut into MIG instances while they are empty */
	/* GPUs that are cut and stay so: nothing else is placed there. The instances of each: id of
	 * the profile that starts at each memory slice, 0 = none, TAKT_SCHED_MIG_SLICES a GPU. */
	uint64_t mig_cut;
	const uint8_t *mig_layout; /* NULL without mig_cut */
	/* Which domain of each level it is in, [0] being level 1, the outermost; numbers are the
	 * caller's, unique in the domain around it, 0 = none. */
	uint32_t domain[TAKT_SCHED_LEVELS];
	/* gpu_count: the NUMA node of each GPU; NULL: as pair_score tells paths across sockets, all
	 * on one if it tells none. */
	const uint8_t *numa;
	const uint32_t *labels, *taints; /* label ids */
	uint32_t label_count, taint_count;
};

enum {
	TAKT_JOB_USE_OUTSIDE = 1u << 0, /* may share a GPU with a process that takt did not start */
	TAKT_JOB_HELD = 1u << 1,	/* waits until released */
	TAKT_JOB_PREEMPTIBLE = 1u << 2, /* may be pushed out for others */
	TAKT_JOB_MOVABLE = 1u << 3,	/* may be moved to other GPUs while it runs */
	TAKT_JOB_CLEAN_END = 1u << 4,	/* whoever tells of its end sees to it that its GPUs are
					   clean by then: nothing drains */
};

enum takt_topology_want {
	TAKT_TOPOLOGY_NONE,
	TAKT_TOPOLOGY_PREFERRED, /* at this level or narrower if it can be, else as near as can be
				  */
	TAKT_TOPOLOGY_REQUIRED,	 /* all tasks in one domain of this level */
	TAKT_TOPOLOGY_WANT_COUNT
};
extern const char *const takt_topology_want_names[]; /* "none", "preferred", ... NULL */

/* What becomes of a running job whose node or GPU fails. */
enum takt_failure_policy {
	TAKT_FAILURE_KEEP,    /* nothing: whoever runs it sees how it ends */
	TAKT_FAILURE_REQUEUE, /* waits again, from its last checkpoint */
	TAKT_FAILURE_MIGRATE, /* moves to other GPUs as soon as there are, keeps what is healthy
				 until then; a lost GPU is a requeue */
	TAKT_FAILURE_STOP,
	TAKT_FAILURE_POLICY_COUNT
};
extern const char *const takt_failure_policy_names[]; /* "keep", "requeue", ... NULL */

/* A job that another one comes after. One that the scheduler does not know has ended well. */
struct takt_sched_after {
	uint64_t job_id;
	bool any;    /* however it ended; else only if it ended well */
	bool failed; /* it ended otherwise: the job that comes after it can never start */
};

struct takt_sched_job {
	uint64_t id;	     /* unique for ever, > 0 */
	uint64_t submit_seq; /* order of acceptance; unique */
	int32_t priority;    /* larger runs first */
	/* GPUs of each task, on one node; 0 = needs none. Alone, whole ones on one node. */
	uint32_t gpus;
	uint32_t flags; /* TAKT_JOB_... */

	/* What each task asks besides. devices is 0 or `gpus`, milli 0 means whole GPUs unless
	 * dev_mem_mib or mig_profile say otherwise; selector is the id of a SELECTOR event;
	 * TAKT_REQUEST_SHARE_OUTSIDE is TAKT_JOB_USE_OUTSIDE. */
	struct takt_request task;
	uint32_t tasks;	    /* placed all together or not at all; 0 = 1 */
	uint32_t min_tasks; /* elastic: starts with that many at least; 0 = tasks */
	enum takt_topology_want topology;
	uint32_t level; /* of `topology`: 0 = one node, else a level's id */

	uint64_t owner;	   /* whose it is, for windows; a number of the caller's, 0 = none */
	uint32_t tenant;   /* id of a TENANT event; 0 = none */
	uint32_t outlook;  /* id of an OUTLOOK event: its kind; 0 = none */
	uint32_t workload; /* id of a WORKLOAD event; 0 = none: as fast everywhere */
	uint64_t submit_ns;
	uint64_t estimate_ns; /* predicted run time, the whole; 0 = not known */
	uint64_t deadline_ns;
	uint64_t earliest_start_ns;
	uint64_t min_runtime_ns; /* not pushed out before it has run that long */
	enum takt_failure_policy on_failure;

	/* Jobs of one array, of which at most array_limit run at a time; 0 = no array, no limit. */
	uint64_t array;
	uint32_t array_limit;
	/* A group of jobs, and the groups whose running jobs this one wants to be near to (in one
	 * domain of that level with each of them) or apart from (in no domain of that level with
	 * any). Level 0 is the node; group 0 is none. */
	uint32_t group;
	uint32_t near_group, near_level;
	uint32_t apart_group, apart_level;

	/* Before it was told: GPU-milliseconds of service, time with GPUs, time without. */
	uint64_t attained_gpu_ms;
	uint64_t ran_ns;
	uint64_t waited_ns;
	uint64_t done_ns; /* of its run time: what its checkpoints have kept */

	const struct takt_sched_after *after;
	uint32_t after_count;
};

/* What is to be expected of jobs of one kind that have run for some time. Ids are the caller's, >
 * 0; told again with other figures whenever more has been learned. */
struct takt_sched_outlook {
	uint32_t id;
	struct takt_order_outlook is;
};

/*
 * GPUs set aside from start to end: for maintenance (tenant, owner and job 0: nobody's) or reserved
 * in advance for a tenant and all below it, an owner or a job. Nothing else is placed there that is
 * not predicted to be over by the start; nothing of unknown length either.
 */
#define TAKT_WINDOW_FOR_EVER ((uint64_t)INT64_MAX)
struct takt_sched_window {
	uint64_t id; /* unique, > 0 */
	uint64_t start_ns;
	uint64_t end_ns; /* > start_ns; TAKT_WINDOW_FOR_EVER */
	uint32_t tenant;
	uint64_t owner;
	uint64_t job;
	uint64_t gpu_mask;     /* of the one node that it names; 0 = all GPUs of all nodes */
	const uint32_t *nodes; /* ids */
	uint32_t node_count;
};

/* Where one task of a job is. */
struct takt_sched_slot {
	uint32_t node_id;
	uint16_t milli; /* of each GPU; 0 = whole */
	uint8_t mig_start;
	uint64_t gpu_mask;
};

#endif
