/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event as a flat record, which one shape describes: what stands between JSON and struct
 * takt_sched_event. A bit for each field says which are there.
 */
#ifndef TAKT_CODEC_SNAPSHOT_RECORD_H
#define TAKT_CODEC_SNAPSHOT_RECORD_H

#include "codec/shape.h"
#include "sched/sched.h"

enum takt_record_has {
	TAKT_HAS_NODE = 1u << 0,
	TAKT_HAS_GPU = 1u << 1,
	TAKT_HAS_STATE = 1u << 2,
	TAKT_HAS_OUTSIDE = 1u << 3,
	TAKT_HAS_JOB = 1u << 4,
	TAKT_HAS_SEQ = 1u << 5,
	TAKT_HAS_PRIORITY = 1u << 6,
	TAKT_HAS_GPUS = 1u << 7,
	TAKT_HAS_USE_OUTSIDE = 1u << 8,
	TAKT_HAS_HELD = 1u << 9,
	TAKT_HAS_GPU_MASK = 1u << 10,
	TAKT_HAS_PAIR_SCORE = 1u << 11,
	TAKT_HAS_MACHINE = 1u << 12,
	TAKT_HAS_LABELS = 1u << 13,
	TAKT_HAS_TAINTS = 1u << 14,
	TAKT_HAS_ASK = 1u << 15,
	TAKT_HAS_AFTER = 1u << 16,
	TAKT_HAS_SLOTS = 1u << 17,
	TAKT_HAS_AT = 1u << 18,
	TAKT_HAS_FAILED = 1u << 19,
	TAKT_HAS_ESTIMATE = 1u << 20,
	TAKT_HAS_WORD = 1u << 21,
	TAKT_HAS_MODEL = 1u << 22,
	TAKT_HAS_SELECTOR = 1u << 23,
	TAKT_HAS_WORKLOAD = 1u << 24,
	TAKT_HAS_TENANT = 1u << 25,
	TAKT_HAS_TENANT_ID = 1u << 26,
	TAKT_HAS_USAGE = 1u << 27,
	TAKT_HAS_WINDOW = 1u << 28,
	TAKT_HAS_NODES = 1u << 29,
	TAKT_HAS_WINDOW_ID = 1u << 30,
};
#define TAKT_HAS_OUTLOOK (1u << 31) /* no int, hence not in the enum */

/* Of a node, beside its GPUs. */
struct takt_record_machine {
	int32_t cpu_milli;
	int64_t mem_mib;
	uint32_t gpu_mem_mib;
	uint32_t model;
	uint64_t mig;
	uint32_t each_mem_count;
	uint32_t each_mem_mib[TAKT_SCHED_MAX_NODE_GPUS];
	uint32_t numa_count;
	uint32_t numa[TAKT_SCHED_MAX_NODE_GPUS];
	uint32_t domain_count;
	uint32_t domain[TAKT_SCHED_LEVELS];
	bool is_cut; /* the next two are something */
	uint64_t mig_cut;
	uint32_t mig_layout_count;
	uint32_t mig_layout[TAKT_SCHED_MAX_NODE_GPUS * TAKT_SCHED_MIG_SLICES];
};

/* Of a job, beside its GPUs: struct takt_request and struct takt_sched_job in numbers that shapes
 * know. */
struct takt_record_ask {
	uint32_t milli, gpu_mem_mib, mig_profile, selector, max_per_node;
	int32_t cpu_milli;
	int64_t mem_mib;
	uint64_t models, gpu_indices;
	bool one_numa, preemptible, movable, clean_end;
	uint32_t tasks, min_tasks, level;
	enum takt_topology_want topology;
	uint32_t tenant, workload, outlook;
	uint64_t submit_ns, estimate_ns, deadline_ns, earliest_start_ns, min_runtime_ns;
	enum takt_failure_policy on_failure;
	uint32_t spare; /* 0: equal ones are equal bytes */
	uint64_t array;
	uint32_t array_limit;
	uint32_t group, near_group, near_level, apart_group, apart_level;
	uint64_t owner;
	uint64_t attained_gpu_ms, ran_ns, waited_ns, done_ns;
};
_Static_assert(sizeof(struct takt_record_ask) == 22 * sizeof(uint32_t) + 14 * sizeof(uint64_t),
	       "no padding: it is compared as bytes");

struct takt_record_slot {
	uint32_t node_id;
	uint64_t gpu_mask;
	uint32_t milli;
	uint32_t mig_start;
};

struct takt_record_outlook {
	uint32_t id;
	uint32_t mean_s;
	uint32_t age_count, rank_count; /* equal in a good one */
	uint32_t age_s[TAKT_ORDER_OUTLOOK_STEPS];
	uint32_t rank_s[TAKT_ORDER_OUTLOOK_STEPS];
};

struct takt_record_word {
	enum takt_sched_space space;
	uint32_t id;
	char name[TAKT_SCHED_MAX_NAME];
};

struct takt_record {
	uint32_t has; /* enum takt_record_has */
	enum takt_sched_event_kind event;
	uint32_t node_id;
	uint32_t gpu;
	enum takt_gpu_state state;
	bool outside;
	uint64_t job_id;
	uint64_t submit_seq;
	int32_t priority;
	uint32_t gpus;
	bool use_outside;
	bool held;
	uint64_t gpu_mask;
	uint64_t at_ns;
	bool failed;
	uint64_t estimate_ns;
	uint32_t tenant_id;
	uint64_t window_id;
	uint32_t usage_count;
	uint32_t usage[2]; /* the high and the low half: JSON would not keep it exact */
	struct takt_record_machine machine;
	uint8_t numa[TAKT_SCHED_MAX_NODE_GPUS]; /* the machine's, as events have it */
	uint8_t mig_layout[TAKT_SCHED_MAX_NODE_GPUS * TAKT_SCHED_MIG_SLICES];
	struct takt_record_ask ask;
	struct takt_record_word word;
	struct takt_sched_model model;
	struct takt_sched_selector selector;
	struct takt_sched_workload workload;
	struct takt_record_outlook outlook;
	struct takt_sched_outlook outlook_event; /* what an event points at */
	struct takt_tenant tenant;
	struct takt_sched_window window;
	/* Owned; see takt_record_clear. */
	uint32_t label_count, taint_count, after_count, slot_count, node_count;
	uint32_t *labels, *taints, *nodes;
	struct takt_sched_after *after;
	struct takt_record_slot *slots;
	uint32_t gpu_count;
	/* Last: a record is cleared up to here only. Row i starts at i * MAX_NODE_GPUS. */
	int32_t pair_score[TAKT_SCHED_MAX_NODE_GPUS * TAKT_SCHED_MAX_NODE_GPUS];
};

extern const struct takt_shape takt_record_shape;

/* Which fields an event must and may have beside. */
uint32_t takt_record_must(enum takt_sched_event_kind kind);
uint32_t takt_record_may(enum takt_sched_event_kind kind);

/* Frees what it owns and makes it empty. A new one is zeroed. */
void takt_record_clear(struct takt_record *record);

/* Into a zeroed record. `slots` is room for as many as the event has; what else the record points
 * at is the event's, so it must not be cleared. */
void takt_record_from_event(const struct takt_sched_event *event, struct takt_record_slot *slots,
			    struct takt_record *ret);
/* The event borrows the record, whose matrix is packed in place; `slots` is room for as many as the
 * record has. */
struct takt_sched_event takt_record_to_event(struct takt_record *record,
					     struct takt_sched_slot *slots);

#endif
