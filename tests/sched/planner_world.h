/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random clusters and jobs with every feature at once, and a naive second opinion on them: lists
 * that are searched, amounts that are summed anew each time, the words of the scheduler's headers
 * and nothing of its code. Without cmocka, so that the digest of same_plans.py is over it, too.
 *
 * The world makes events that are valid and keeps what they lead to. Jobs run when the caller says
 * that a plan was taken. Of MIG, fractions, gangs, topology, tenants and so on there is little of
 * each, so that they meet.
 */
#ifndef TAKT_TESTS_PLANNER_WORLD_H
#define TAKT_TESTS_PLANNER_WORLD_H

#include "base/rng.h"
#include "sched/sched.h"

enum {
	WORLD_NODES = 7,
	WORLD_GPUS = 8,	 /* of a node, at most */
	WORLD_JOBS = 28, /* at a time */
	WORLD_TASKS = 6,
	WORLD_TENANTS = 4,
	WORLD_WINDOWS = 3,
	WORLD_PROFILES = 5,
	WORLD_SELECTORS = 2,
	WORLD_SECOND = 1000000000,
};

enum world_phase {
	WORLD_ABSENT,
	WORLD_WAITS,
	WORLD_RUNS
};

struct world_node {
	bool present, cordoned;
	struct takt_sched_node node;
	uint32_t labels[2];
	uint64_t sick, draining;
};

struct world_job {
	enum world_phase phase;
	struct takt_sched_job job;
	struct takt_sched_after after;
	uint32_t count; /* tasks placed */
	struct takt_sched_slot slots[WORLD_TASKS];
	uint64_t since_ns;
};

struct world_window {
	struct takt_sched_window window; /* id 0 = none */
	uint32_t nodes[2];
};

struct planner_world {
	struct takt_rng rng;
	uint64_t now_ns;
	uint64_t next_id, next_window;
	bool clean_at_end;
	int32_t pair_score[WORLD_GPUS * WORLD_GPUS];
	struct takt_sched_model models[2];
	struct takt_sched_selector selectors[WORLD_SELECTORS];
	struct takt_tenant tenants[WORLD_TENANTS];
	struct world_node nodes[WORLD_NODES];
	struct world_job jobs[WORLD_JOBS];
	struct world_window windows[WORLD_WINDOWS];
};

/* Called for each event that is to be told, borrowed for the call. */
typedef void world_tell(void *ctx, const struct takt_sched_event *event);

void world_init(struct planner_world *world, uint64_t seed, bool clean_at_end, world_tell *tell,
		void *ctx);
/* Something happens; time goes on. */
void world_step(struct planner_world *world, world_tell *tell, void *ctx);
/* The engine did what the plan says, or (`some`) a part of it: evictions and placements. */
void world_take_plan(struct planner_world *world, const struct takt_plan *plan, bool some,
		     world_tell *tell, void *ctx);
struct world_job *world_find(struct planner_world *world, uint64_t id);

/* What is held. */
struct world_use {
	struct world_node_use {
		int64_t cpu_milli, mem_mib;
		struct world_gpu_use {
			uint32_t milli;
			uint64_t mem_mib;
			uint32_t mig;			 /* memory slices */
			uint32_t of[WORLD_PROFILES + 1]; /* instances by profile */
		} gpu[WORLD_GPUS];
	} node[WORLD_NODES];
};

uint32_t world_tasks(const struct takt_sched_job *job);
uint32_t world_least(const struct takt_sched_job *job);
/* Milli of a GPU that a task holds there, as plans name it; 0 for MIG and for none, 1001 = no. */
uint32_t world_milli(const struct planner_world *world, const struct takt_sched_job *job,
		     uint32_t node);
/* Adds a task; false if something is then over-committed, or it may not be there at all: node,
 * model, labels, health, MIG rules. */
bool world_hold(const struct planner_world *world, const struct takt_sched_job *job,
		const struct takt_sched_slot *slot, struct world_use *use);
/* What running jobs hold, but for those of which `gone` says so; false as above, health and windows
 * aside. */
bool world_held(const struct planner_world *world, const bool gone[WORLD_JOBS],
		struct world_use *use);
/* How many tasks of the job the node could take beside `use`; `empty`: were it healthy, and
 * nothing held. */
uint32_t world_room(const struct planner_world *world, const struct takt_sched_job *job,
		    uint32_t node, const struct world_use *use, bool empty);
bool world_same_kind(const struct takt_sched_job *a, const struct takt_sched_job *b);
/* Tasks of this very kind on the node. */
uint32_t world_alike(const struct planner_world *world, const struct takt_sched_job *job,
		     uint32_t node, const bool gone[WORLD_JOBS]);
/* In no window of others that begins before the job, started now, is over. */
bool world_outside_windows(const struct planner_world *world, const struct takt_sched_job *job,
			   uint32_t node);
uint64_t world_length_ns(const struct takt_sched_job *job); /* UINT64_MAX = not known */
uint64_t world_domain(const struct planner_world *world, uint32_t node, uint32_t level);
/* GPU milli of one task as tenants are charged. */
uint64_t world_charge(const struct planner_world *world, const struct takt_sched_job *job);

#endif
