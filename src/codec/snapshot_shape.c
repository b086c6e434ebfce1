/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of events: what they are called in JSON, and which an event has. */
#include "codec/snapshot.h"
#include "codec/snapshot_record.h"

#define NUMBER(type, member, k, most)                                                     \
	{                                                                                 \
		TAKT_FIELD_AT(type, member, k), .optional = true, .min = 0, .max = (most) \
	}
#define U32(type, member) NUMBER(type, member, TAKT_FIELD_U32, UINT32_MAX)
#define U64(type, member) NUMBER(type, member, TAKT_FIELD_U64, INT64_MAX)
#define BOOL(type, member)                                   \
	{                                                    \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_BOOL) \
	}
#define ID(type, member)                                                                 \
	{                                                                                \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_U32), .required = true, .min = 0, \
							     .max = UINT32_MAX           \
	}
#define LIST(type, member, counter, room_)                                        \
	{                                                                         \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_U32),                      \
			.many = TAKT_MANY_ARRAY, .counts = true,                  \
			.count_offset = offsetof(type, counter), .room = (room_), \
			.size = sizeof(uint32_t), .min = 0, .max = UINT32_MAX     \
	}

#define MACHINE struct takt_record_machine
static const struct takt_field machine_fields[] = {
	{TAKT_FIELD_AT(MACHINE, cpu_milli, TAKT_FIELD_I32), .optional = true, .max = INT32_MAX},
	{TAKT_FIELD_AT(MACHINE, mem_mib, TAKT_FIELD_I64), .optional = true, .max = INT64_MAX},
	U32(MACHINE, gpu_mem_mib),
	U32(MACHINE, model),
	{TAKT_FIELD_AT(MACHINE, mig, TAKT_FIELD_MASK)},
	LIST(MACHINE, each_mem_mib, each_mem_count, TAKT_SCHED_MAX_NODE_GPUS),
	LIST(MACHINE, numa, numa_count, TAKT_SCHED_MAX_NODE_GPUS),
	LIST(MACHINE, domain, domain_count, TAKT_SCHED_LEVELS),
	{TAKT_FIELD_AT(MACHINE, mig_cut, TAKT_FIELD_MASK),
	 .flag_offset = offsetof(MACHINE, is_cut)},
	{TAKT_FIELD_AT(MACHINE, mig_layout, TAKT_FIELD_U32), .many = TAKT_MANY_ARRAY,
	 .counts = true, .flag_offset = offsetof(MACHINE, is_cut),
	 .count_offset = offsetof(MACHINE, mig_layout_count),
	 .room = TAKT_SCHED_MAX_NODE_GPUS * TAKT_SCHED_MIG_SLICES, .size = sizeof(uint32_t),
	 .max = UINT8_MAX},
};
static const struct takt_shape machine_shape = TAKT_SHAPE(MACHINE, "a machine", machine_fields);

#define ASK struct takt_record_ask
static const struct takt_field ask_fields[] = {
	NUMBER(ASK, milli, TAKT_FIELD_U32, TAKT_REQUEST_WHOLE),
	U32(ASK, gpu_mem_mib),
	NUMBER(ASK, mig_profile, TAKT_FIELD_U32, UINT8_MAX),
	{TAKT_FIELD_AT(ASK, cpu_milli, TAKT_FIELD_I32), .optional = true, .max = INT32_MAX},
	{TAKT_FIELD_AT(ASK, mem_mib, TAKT_FIELD_I64), .optional = true, .max = INT64_MAX},
	{TAKT_FIELD_AT(ASK, models, TAKT_FIELD_MASK)},
	{TAKT_FIELD_AT(ASK, gpu_indices, TAKT_FIELD_MASK), .optional = true},
	U32(ASK, selector),
	U32(ASK, max_per_node),
	BOOL(ASK, one_numa),
	U32(ASK, tasks),
	U32(ASK, min_tasks),
	{TAKT_FIELD_AT(ASK, topology, TAKT_FIELD_ENUM), .names = takt_topology_want_names},
	U32(ASK, level),
	BOOL(ASK, preemptible),
	BOOL(ASK, movable),
	BOOL(ASK, clean_end),
	U64(ASK, owner),
	U32(ASK, tenant),
	U32(ASK, workload),
	U32(ASK, outlook),
	U64(ASK, submit_ns),
	U64(ASK, estimate_ns),
	U64(ASK, deadline_ns),
	U64(ASK, earliest_start_ns),
	U64(ASK, min_runtime_ns),
	{TAKT_FIELD_AT(ASK, on_failure, TAKT_FIELD_ENUM), .names = takt_failure_policy_names},
	U64(ASK, array),
	U32(ASK, array_limit),
	U32(ASK, group),
	U32(ASK, near_group),
	U32(ASK, near_level),
	U32(ASK, apart_group),
	U32(ASK, apart_level),
	U64(ASK, attained_gpu_ms),
	U64(ASK, ran_ns),
	U64(ASK, waited_ns),
	U64(ASK, done_ns),
};
static const struct takt_shape ask_shape = TAKT_SHAPE(ASK, "what a job asks", ask_fields);

#define AFTER struct takt_sched_after
static const struct takt_field after_fields[] = {
	{TAKT_FIELD_AT(AFTER, job_id, TAKT_FIELD_U64), .required = true, .max = INT64_MAX},
	BOOL(AFTER, any),
	BOOL(AFTER, failed),
};
static const struct takt_shape after_shape = TAKT_SHAPE(AFTER, "a dependency", after_fields);

#define SLOT struct takt_record_slot
static const struct takt_field slot_fields[] = {
	ID(SLOT, node_id),
	{TAKT_FIELD_AT(SLOT, gpu_mask, TAKT_FIELD_MASK), .required = true},
	NUMBER(SLOT, milli, TAKT_FIELD_U32, TAKT_REQUEST_WHOLE),
	NUMBER(SLOT, mig_start, TAKT_FIELD_U32, UINT8_MAX),
};
static const struct takt_shape slot_shape = TAKT_SHAPE(SLOT, "a slot", slot_fields);

#define WORD struct takt_record_word
static const struct takt_field word_fields[] = {
	{TAKT_FIELD_AT(WORD, space, TAKT_FIELD_ENUM), .required = true,
	 .names = takt_sched_space_names},
	ID(WORD, id),
	{TAKT_FIELD_AT(WORD, name, TAKT_FIELD_TEXT), .required = true, .size = TAKT_SCHED_MAX_NAME},
};
static const struct takt_shape word_shape = TAKT_SHAPE(WORD, "a word", word_fields);

#define PROFILE struct takt_sched_profile
static const struct takt_field profile_fields[] = {
	{TAKT_FIELD_AT(PROFILE, name, TAKT_FIELD_TEXT), .required = true, .size = 32},
	NUMBER(PROFILE, size, TAKT_FIELD_U32, 8),
	NUMBER(PROFILE, slices, TAKT_FIELD_U32, 7),
	NUMBER(PROFILE, max, TAKT_FIELD_U32, UINT8_MAX),
	U32(PROFILE, mem_mib),
};
static const struct takt_shape profile_shape = TAKT_SHAPE(PROFILE, "a profile", profile_fields);

#define MODEL struct takt_sched_model
static const struct takt_field model_fields[] = {
	ID(MODEL, id),
	{TAKT_FIELD_AT(MODEL, name, TAKT_FIELD_TEXT), .required = true,
	 .size = TAKT_SCHED_MAX_NAME},
	{TAKT_FIELD_AT(MODEL, category, TAKT_FIELD_TEXT), .size = 16},
	U32(MODEL, mem_mib),
	U32(MODEL, idle_mw),
	U32(MODEL, busy_mw),
	{TAKT_FIELD_AT(MODEL, profiles, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .count_offset = offsetof(MODEL, profile_count), .room = TAKT_SCHED_MAX_PROFILES,
	 .size = sizeof(PROFILE), .shape = &profile_shape},
};
static const struct takt_shape model_shape = TAKT_SHAPE(MODEL, "a model", model_fields);

#define SELECTOR struct takt_sched_selector
static const struct takt_field selector_fields[] = {
	ID(SELECTOR, id),
	LIST(SELECTOR, all, all_count, TAKT_SCHED_MAX_TERMS),
	LIST(SELECTOR, any, any_count, TAKT_SCHED_MAX_TERMS),
	LIST(SELECTOR, none, none_count, TAKT_SCHED_MAX_TERMS),
	LIST(SELECTOR, tolerate, tolerate_count, TAKT_SCHED_MAX_TERMS),
};
static const struct takt_shape selector_shape = TAKT_SHAPE(SELECTOR, "a selector", selector_fields);

#define WORKLOAD struct takt_sched_workload
static const struct takt_field workload_fields[] = {
	ID(WORKLOAD, id),
	LIST(WORKLOAD, permille, count, TAKT_SCHED_MAX_MODELS),
};
static const struct takt_shape workload_shape = TAKT_SHAPE(WORKLOAD, "a workload", workload_fields);

#define OUTLOOK struct takt_record_outlook
static const struct takt_field outlook_fields[] = {
	ID(OUTLOOK, id),
	U32(OUTLOOK, mean_s),
	LIST(OUTLOOK, age_s, age_count, TAKT_ORDER_OUTLOOK_STEPS),
	LIST(OUTLOOK, rank_s, rank_count, TAKT_ORDER_OUTLOOK_STEPS),
};
static const struct takt_shape outlook_shape = TAKT_SHAPE(OUTLOOK, "an outlook", outlook_fields);

#define TENANT struct takt_tenant
static const struct takt_field tenant_fields[] = {
	ID(TENANT, id),
	U32(TENANT, parent),
	U32(TENANT, weight),
	{TAKT_FIELD_AT(TENANT, priority, TAKT_FIELD_I32), .optional = true, .min = INT32_MIN,
	 .max = INT32_MAX},
	U64(TENANT, quota_milli),
	U64(TENANT, limit_milli),
	BOOL(TENANT, may_borrow),
};
static const struct takt_shape tenant_shape = TAKT_SHAPE(TENANT, "a tenant", tenant_fields);

#define WINDOW struct takt_sched_window
static const struct takt_field window_fields[] = {
	{TAKT_FIELD_AT(WINDOW, id, TAKT_FIELD_U64), .required = true, .max = INT64_MAX},
	U64(WINDOW, start_ns),
	U64(WINDOW, end_ns),
	U32(WINDOW, tenant),
	U64(WINDOW, owner),
	U64(WINDOW, job),
	{TAKT_FIELD_AT(WINDOW, gpu_mask, TAKT_FIELD_MASK)},
};
static const struct takt_shape window_shape = TAKT_SHAPE(WINDOW, "a window", window_fields);

#define AT(member, k, bit) TAKT_FIELD_AT(struct takt_record, member, k), .has_bit = (bit)
#define WHOLE(most)	   .size = sizeof(uint64_t), .min = 0, .max = (most)
#define INSIDE(member, bit, of)                                    \
	{                                                          \
		AT(member, TAKT_FIELD_OBJECT, bit), .shape = &(of) \
	}
#define OWNED(member, k, bit, counter, room_, bytes)                               \
	AT(member, k, bit), .many = TAKT_MANY_OWNED, .counts = true,               \
			    .count_offset = offsetof(struct takt_record, counter), \
			    .room = (room_), .size = (bytes)

static const struct takt_field record_fields[] = {
	{TAKT_FIELD_AT(struct takt_record, event, TAKT_FIELD_ENUM), .required = true,
	 .names = takt_sched_event_names},
	{AT(node_id, TAKT_FIELD_U32, TAKT_HAS_NODE), WHOLE(UINT32_MAX)},
	{AT(gpu, TAKT_FIELD_U32, TAKT_HAS_GPU), WHOLE(TAKT_SCHED_MAX_NODE_GPUS - 1)},
	{AT(state, TAKT_FIELD_ENUM, TAKT_HAS_STATE), .names = takt_gpu_state_names},
	{AT(outside, TAKT_FIELD_BOOL, TAKT_HAS_OUTSIDE)},
	{AT(job_id, TAKT_FIELD_U64, TAKT_HAS_JOB), WHOLE(INT64_MAX)},
	{AT(submit_seq, TAKT_FIELD_U64, TAKT_HAS_SEQ), WHOLE(INT64_MAX)},
	{AT(priority, TAKT_FIELD_I32, TAKT_HAS_PRIORITY), .min = INT32_MIN, .max = INT32_MAX},
	{AT(gpus, TAKT_FIELD_U32, TAKT_HAS_GPUS), WHOLE(UINT32_MAX)},
	{AT(use_outside, TAKT_FIELD_BOOL, TAKT_HAS_USE_OUTSIDE)},
	{AT(held, TAKT_FIELD_BOOL, TAKT_HAS_HELD)},
	{AT(gpu_mask, TAKT_FIELD_MASK, TAKT_HAS_GPU_MASK)},
	{OWNED(slots, TAKT_FIELD_OBJECT, TAKT_HAS_SLOTS, slot_count, TAKT_SCHED_MAX_TASKS,
	       sizeof(SLOT)),
	 .shape = &slot_shape},
	{AT(at_ns, TAKT_FIELD_U64, TAKT_HAS_AT), WHOLE(INT64_MAX)},
	{AT(failed, TAKT_FIELD_BOOL, TAKT_HAS_FAILED)},
	{AT(estimate_ns, TAKT_FIELD_U64, TAKT_HAS_ESTIMATE), WHOLE(INT64_MAX)},
	INSIDE(machine, TAKT_HAS_MACHINE, machine_shape),
	{OWNED(labels, TAKT_FIELD_U32, TAKT_HAS_LABELS, label_count, TAKT_SCHED_MAX_LABELS,
	       sizeof(uint32_t)),
	 .max = UINT32_MAX},
	{OWNED(taints, TAKT_FIELD_U32, TAKT_HAS_TAINTS, taint_count, TAKT_SCHED_MAX_LABELS,
	       sizeof(uint32_t)),
	 .max = UINT32_MAX},
	INSIDE(ask, TAKT_HAS_ASK, ask_shape),
	{OWNED(after, TAKT_FIELD_OBJECT, TAKT_HAS_AFTER, after_count, TAKT_SCHED_MAX_AFTER,
	       sizeof(AFTER)),
	 .shape = &after_shape},
	INSIDE(word, TAKT_HAS_WORD, word_shape),
	INSIDE(model, TAKT_HAS_MODEL, model_shape),
	INSIDE(selector, TAKT_HAS_SELECTOR, selector_shape),
	INSIDE(workload, TAKT_HAS_WORKLOAD, workload_shape),
	INSIDE(outlook, TAKT_HAS_OUTLOOK, outlook_shape),
	INSIDE(tenant, TAKT_HAS_TENANT, tenant_shape),
	{AT(tenant_id, TAKT_FIELD_U32, TAKT_HAS_TENANT_ID), WHOLE(UINT32_MAX)},
	{AT(usage, TAKT_FIELD_U32, TAKT_HAS_USAGE), .many = TAKT_MANY_ARRAY, .counts = true,
	 .count_offset = offsetof(struct takt_record, usage_count), .room = 2,
	 .size = sizeof(uint32_t), .max = UINT32_MAX},
	INSIDE(window, TAKT_HAS_WINDOW, window_shape),
	{OWNED(nodes, TAKT_FIELD_U32, TAKT_HAS_NODES, node_count, 100000, sizeof(uint32_t)),
	 .max = UINT32_MAX},
	{AT(window_id, TAKT_FIELD_U64, TAKT_HAS_WINDOW_ID), WHOLE(INT64_MAX)},
	{AT(pair_score, TAKT_FIELD_I32, TAKT_HAS_PAIR_SCORE), .many = TAKT_MANY_MATRIX,
	 .counts = true, .count_offset = offsetof(struct takt_record, gpu_count),
	 .room = TAKT_SCHED_MAX_NODE_GPUS, .size = sizeof(int32_t), .min = INT32_MIN,
	 .max = INT32_MAX},
};
const struct takt_shape takt_record_shape = {
	.what = "an event",
	.fields = record_fields,
	.count = TAKT_ARRAY_LEN(record_fields),
	.size = sizeof(struct takt_record),
	.has_offset = offsetof(struct takt_record, has),
};

static const struct fields_of_event {
	uint32_t must, may;
} fields_of[TAKT_SCHED_EVENT_COUNT] = {
	[TAKT_SCHED_NODE_ADD] = {TAKT_HAS_NODE, TAKT_HAS_PAIR_SCORE | TAKT_HAS_GPUS |
							TAKT_HAS_MACHINE | TAKT_HAS_LABELS |
							TAKT_HAS_TAINTS},
	[TAKT_SCHED_NODE_REMOVE] = {TAKT_HAS_NODE, TAKT_HAS_AT},
	[TAKT_SCHED_GPU_HEALTH] = {TAKT_HAS_NODE | TAKT_HAS_GPU | TAKT_HAS_STATE, TAKT_HAS_AT},
	[TAKT_SCHED_GPU_OUTSIDE] = {TAKT_HAS_NODE | TAKT_HAS_GPU | TAKT_HAS_OUTSIDE, 0},
	[TAKT_SCHED_GPU_DRAINING] = {TAKT_HAS_NODE | TAKT_HAS_GPU | TAKT_HAS_JOB, 0},
	[TAKT_SCHED_GPU_DRAINED] = {TAKT_HAS_NODE | TAKT_HAS_GPU, 0},
	[TAKT_SCHED_JOB_ADD] = {TAKT_HAS_JOB | TAKT_HAS_SEQ | TAKT_HAS_PRIORITY | TAKT_HAS_GPUS,
				TAKT_HAS_USE_OUTSIDE | TAKT_HAS_HELD | TAKT_HAS_ASK |
					TAKT_HAS_AFTER | TAKT_HAS_AT},
	[TAKT_SCHED_JOB_CHANGE] = {TAKT_HAS_JOB | TAKT_HAS_SEQ | TAKT_HAS_PRIORITY | TAKT_HAS_GPUS,
				   TAKT_HAS_USE_OUTSIDE | TAKT_HAS_HELD | TAKT_HAS_ASK},
	[TAKT_SCHED_JOB_PLACED] = {TAKT_HAS_JOB, TAKT_HAS_NODE | TAKT_HAS_GPU_MASK |
							 TAKT_HAS_SLOTS | TAKT_HAS_AT},
	[TAKT_SCHED_JOB_RUNNING] = {TAKT_HAS_JOB, TAKT_HAS_AT},
	[TAKT_SCHED_JOB_DRAINING] = {TAKT_HAS_JOB, TAKT_HAS_AT},
	[TAKT_SCHED_JOB_REQUEUED] = {TAKT_HAS_JOB, TAKT_HAS_AT},
	[TAKT_SCHED_JOB_ENDED] = {TAKT_HAS_JOB, TAKT_HAS_AT | TAKT_HAS_FAILED},
	[TAKT_SCHED_MODEL] = {TAKT_HAS_MODEL, 0},
	[TAKT_SCHED_NAME] = {TAKT_HAS_WORD, 0},
	[TAKT_SCHED_SELECTOR] = {TAKT_HAS_SELECTOR, 0},
	[TAKT_SCHED_WORKLOAD] = {TAKT_HAS_WORKLOAD, 0},
	[TAKT_SCHED_OUTLOOK] = {TAKT_HAS_OUTLOOK, 0},
	[TAKT_SCHED_TENANT] = {TAKT_HAS_TENANT, 0},
	[TAKT_SCHED_TENANT_REMOVE] = {TAKT_HAS_TENANT_ID, 0},
	[TAKT_SCHED_TENANT_USAGE] = {TAKT_HAS_TENANT_ID | TAKT_HAS_USAGE | TAKT_HAS_AT, 0},
	[TAKT_SCHED_NODE_CORDON] = {TAKT_HAS_NODE | TAKT_HAS_OUTSIDE, 0},
	[TAKT_SCHED_NODE_FAILED] = {TAKT_HAS_NODE | TAKT_HAS_AT, 0},
	[TAKT_SCHED_WINDOW_ADD] = {TAKT_HAS_WINDOW | TAKT_HAS_NODES, 0},
	[TAKT_SCHED_WINDOW_REMOVE] = {TAKT_HAS_WINDOW_ID, 0},
	[TAKT_SCHED_JOB_ESTIMATE] = {TAKT_HAS_JOB | TAKT_HAS_ESTIMATE, 0},
	[TAKT_SCHED_JOB_CHECKPOINT] = {TAKT_HAS_JOB | TAKT_HAS_AT, 0},
	[TAKT_SCHED_JOB_MOVED] = {TAKT_HAS_JOB | TAKT_HAS_SLOTS, 0},
	[TAKT_SCHED_GPU_LAYOUT] = {TAKT_HAS_NODE | TAKT_HAS_GPU | TAKT_HAS_MACHINE, 0},
};

uint32_t takt_record_must(enum takt_sched_event_kind kind)
{
	return fields_of[kind].must;
}

uint32_t takt_record_may(enum takt_sched_event_kind kind)
{
	return fields_of[kind].must | fields_of[kind].may;
}
