/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random cluster with something of everything, and a random history of it: nodes of several
 * shapes, mixed models, MIG, NUMA, domains, labels, taints; requests of all sorts; tasks that come
 * and go, devices that fail and return, nodes that join and leave.
 *
 * The world keeps its own books of who holds what, so that the cluster's are judged by another's.
 */
#ifndef TAKT_TEST_CLUSTER_WORLD_H
#define TAKT_TEST_CLUSTER_WORLD_H

#include "base/rng.h"
#include "sched/cluster.h"

enum {
	WORLD_MODELS = 4,
	WORLD_MAX_KINDS = 64,
	WORLD_MAX_TASKS = 4096,
	WORLD_MAX_NODES = 512,
};

struct world_task {
	uint32_t kind;
	struct takt_slot slot;
};

struct world {
	struct takt_rng rng;
	struct takt_cluster *cluster;
	uint32_t models[WORLD_MODELS];
	uint32_t kinds[WORLD_MAX_KINDS];
	size_t kind_count;
	uint32_t domains;
	struct world_task tasks[WORLD_MAX_TASKS];
	size_t task_count;
	bool removed[WORLD_MAX_NODES];
};

/* placement NULL = the default. Ends the program when anything fails. */
void world_init(struct world *world, uint64_t seed, const struct takt_placement *placement,
		size_t nodes, size_t kinds);
void world_fini(struct world *world);

/* One random change that is no placement. */
void world_change(struct world *world);
/* A random scope; NULL = everywhere. What it points at lives in *scope and *mask. */
const struct takt_scope *world_scope(struct world *world, struct takt_scope *scope, uint64_t *mask);
void world_took(struct world *world, uint32_t kind, const struct takt_slot *slot);
/* A random task ends. */
void world_give(struct world *world);

/* The first contradiction between the cluster's books and the world's; NULL = none. */
const char *world_check(const struct world *world);

/* What policies and pickers can see of every node, as one number. */
uint64_t world_digest(const struct world *world);

#endif
