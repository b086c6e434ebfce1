/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the scheduler share: events in one line each, the matrices of known machines,
 * and plans as text. A helper that expects success asserts it.
 */
#ifndef TAKT_TESTS_SCHED_KIT_H
#define TAKT_TESTS_SCHED_KIT_H

#include "base/str.h"
#include "sched/sched.h"

/* The machines of topologies.json, generated as matrices of pair scores. */
struct machine {
	const char *name;
	uint32_t gpu_count;
	const int32_t *pair_score;
};
extern const struct machine kit_machines[];
extern const size_t kit_machine_count;
const struct machine *kit_machine(const char *name);

struct takt_sched *kit_new(void);

void kit_take(struct takt_sched *sched, struct takt_sched_event event);
/* The event is refused with rc, with a message, and the state (its snapshot) stays the same. */
void kit_refuse(struct takt_sched *sched, struct takt_sched_event event, int rc);

struct takt_sched_event kit_node(uint32_t id, const struct machine *machine);
struct takt_sched_event kit_job(uint64_t id, uint32_t gpus, int32_t priority, uint32_t flags);
struct takt_sched_event kit_placed(uint64_t id, uint32_t node_id, uint64_t gpu_mask);
struct takt_sched_event kit_of_job(enum takt_sched_event_kind kind, uint64_t id);
struct takt_sched_event kit_of_gpu(enum takt_sched_event_kind kind, uint32_t node_id, uint32_t gpu);
struct takt_sched_event kit_health(uint32_t node_id, uint32_t gpu, enum takt_gpu_state state);
struct takt_sched_event kit_outside(uint32_t node_id, uint32_t gpu, bool outside);

/* Add, place and start a job that holds exactly these GPUs. */
void kit_running(struct takt_sched *sched, uint64_t id, uint32_t node_id, uint64_t gpu_mask);

struct takt_plan kit_plan(struct takt_sched *sched);
/* Appends everything in the plan but its version. */
void kit_plan_text(const struct takt_plan *plan, struct takt_str *ret);
void kit_state_text(const struct takt_sched *sched, struct takt_str *ret);
/* A new scheduler that was fed the snapshot of `sched`. */
struct takt_sched *kit_rebuild(const struct takt_sched *sched);

#endif
