/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for a task by moving others: consolidation, only when somebody waits for it.
 *
 * A task fits nowhere although enough is left in the cluster. Then the cheapest few tasks are
 * looked for that can stand elsewhere, so that it fits where they stood. Which tasks may be moved,
 * and what each move costs (work since the last checkpoint, say, or simply size), the caller knows.
 *
 * A move can be carried out in the order given: the new place is free while the old one is still
 * held, for every move before any old place is given up. So a task that is copied, started there
 * and only then stopped here never holds less than it needs, and a plan that is broken off
 * half-way leaves nothing over-committed.
 *
 * Search. On each node the tasks are taken away, those of the device that is emptied most cheaply
 * first, until the new one fits; those that were not needed are put back. The nodes whose set is
 * cheapest (sum of costs, then number of moves, then rank) are tried in turn: each task of the
 * set is placed elsewhere by the cluster's policy. The first for which all find a place is the
 * plan. It is a heuristic: nothing found does not mean that no moves would help.
 *
 * Pure: the cluster is as before when it returns. The order of `tasks` does not matter, but among
 * tasks that are equal in kind, slot and cost.
 */
#ifndef TAKT_SCHED_PLACE_MIGRATE_H
#define TAKT_SCHED_PLACE_MIGRATE_H

#include "sched/cluster.h"

enum {
	TAKT_MIGRATE_MAX_MOVES = 8,
};

/* A task that may be moved. */
struct takt_migrate_task {
	uint32_t kind;
	uint64_t cost;
	struct takt_slot slot; /* where it is */
};

struct takt_migrate_limits {
	size_t max_moves;  /* 1..TAKT_MIGRATE_MAX_MOVES; 0 = none, nothing is found */
	uint64_t max_cost; /* of all moves together */
};

struct takt_migrate_plan {
	struct takt_slot slot; /* of the new task, free after the moves */
	uint64_t cost;
	size_t count;
	struct takt_migrate_move {
		size_t task; /* index in `tasks` */
		struct takt_slot to;
	} moves[TAKT_MIGRATE_MAX_MOVES];
};

/* 0; -ENOENT when nothing was found (also when it fits without); -ENOMEM. *ret is untouched then.
 */
int takt_migrate_for(struct takt_cluster *cluster, uint32_t kind,
		     const struct takt_migrate_task *tasks, size_t count,
		     const struct takt_migrate_limits *limits, struct takt_migrate_plan *ret);

#endif
