/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of a cluster, for the property test and for the digest: events that are valid
 * by a naive book of what is where, kept here and nowhere else.
 */
#ifndef TAKT_TESTS_CLUSTER_STORY_H
#define TAKT_TESTS_CLUSTER_STORY_H

#include "base/rng.h"
#include "sched/sched.h"

enum {
	STORY_NODES = 12, /* ids 1..STORY_NODES */
	STORY_GPUS = 8,
	STORY_JOBS = 60, /* ids from 1 on */
	STORY_TASKS = 6,
	STORY_TENANTS = 4,
	STORY_CPU = 64000,
	STORY_MEM = 256000,
	STORY_LEVELS = 2,
};

struct story {
	struct takt_rng rng;
	uint64_t now_ns;
	uint64_t next_seq;
	struct story_node {
		bool there, cordoned;
		uint64_t bad;	/* lost or quarantined */
		uint64_t drain; /* not clean */
	} nodes[STORY_NODES + 1];
	struct story_window {
		uint64_t start_ns, end_ns; /* 0 = there is none */
		uint32_t node;
		uint64_t gpu_mask; /* 0 = all of the node */
		uint64_t owner;	   /* whose jobs may be there; 0 = maintenance */
	} window;
	struct story_job {
		enum {
			STORY_ABSENT,
			STORY_WAITS,
			STORY_PLACED
		} state;
		struct takt_sched_job job;
		struct takt_sched_after after;
		uint32_t slot_count;
		struct takt_sched_slot slots[STORY_TASKS];
	} jobs[STORY_JOBS + 1];
};

/* Feeds the words, tenants and nodes. */
void story_begin(struct story *story, struct takt_sched *sched, uint64_t seed);
/* One random event that is valid; also moves the clock. */
void story_step(struct story *story, struct takt_sched *sched);
/* What an engine does with a plan: some or all of the placements, moves and evictions. */
void story_obey(struct story *story, struct takt_sched *sched, const struct takt_plan *plan);
/* Domain of a node on a level, 1..STORY_LEVELS; 0 is the node itself. */
uint32_t story_domain(uint32_t node, uint32_t level);

#endif
