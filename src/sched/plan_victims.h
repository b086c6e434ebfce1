/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest jobs to push out so that one that waits has room; for plan_preempt.c.
 *
 * All that runs and may be pushed out at all is listed once a plan, by node. For a waiting job,
 * node after node is made room on, the cheapest first, until all its tasks fit; then what turned
 * out not to be needed stays. On one node victims go by rising cost until one more task fits there,
 * and again those that are not needed stay, the dearest first.
 *
 * Cost of a victim: GPU time since its last checkpoint, and for each job pushed out, and each of
 * its GPUs, as much as a minute's work of them: a restart costs about that, and of equal losses
 * fewer and smaller victims are better. Ties: the job that came later goes.
 */
#ifndef TAKT_SCHED_PLAN_VICTIMS_H
#define TAKT_SCHED_PLAN_VICTIMS_H

#include "sched/plan_state.h"

struct takt_victim {
	struct takt_sched_entry *entry;
	struct takt_order_key key;
	uint64_t loss_gpu_ms; /* since its checkpoint */
	uint64_t cost;
	bool gone; /* given back in the cluster, by this plan */
	/* Of the job looked at. */
	bool allowed;
	bool reclaimed; /* the tenants allow it, the order does not */
};

/* A victim on a node. */
struct takt_victim_at {
	uint32_t node;
	uint32_t victim; /* in `all` */
};

struct takt_victims {
	struct takt_planner *planner;
	TAKT_VEC(struct takt_victim) all;     /* by rising cost */
	TAKT_VEC(struct takt_victim_at) at;   /* by node, then rising cost */
	TAKT_VEC(uint32_t) chosen;	      /* in `all` */
	TAKT_VEC(uint32_t) trial, best_trial; /* of one node */
};

int takt_victims_init(struct takt_victims *victims, struct takt_planner *planner);
void takt_victims_fini(struct takt_victims *victims);

/* Room for a waiting job: gives the victims back in the cluster and takes its tasks, whose places
 * stand in planner->slots; their number. 0: there is no room to be made, or it needs nobody's
 * eviction, and nothing has changed. */
uint32_t takt_victims_choose(struct takt_victims *victims, const struct takt_sched_entry *entry);

#endif
