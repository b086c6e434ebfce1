/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam of placement policies: on which of the nodes where a task fits it goes.
 *
 * A policy is arithmetic over what it is shown; the cluster has checked before that the task fits.
 * There are two kinds of policy, told apart by which function they bring:
 *
 * score: a level for one node, from that node and the request alone. The highest level wins, of
 * equal ones the node of lowest rank. Since a level depends on nothing else, the cluster keeps it
 * until the node changes (place_index.h). So a score function MUST be a function of the node's
 * state, the request, and what prepare() put into the policy's state; where that state changes (a
 * phase of the cluster, a learned frequency) `epoch` says so by another number, and all levels are
 * computed anew: nodes x kinds scores, so change it seldom.
 *
 * What a score may cost: under steady load a decision refreshes 30 to 70 nodes, so each 10 ns of
 * score cost about 0.5 us a placement. 50 ns holds a million placements a second within reach,
 * 200 ns a quarter of that. Keep tables in the state, look at each distinct fraction once, and do
 * not divide.
 *
 * scan: picks from the list of all nodes where the task fits; for policies that normalise over the
 * list or draw at random. Costs the whole list for every decision: for comparison only.
 *
 * If a single node fits, it is taken unseen; only the devices are asked for (choose, or score and
 * scan with one node). With several models of accelerators in a node the devices of a task are of
 * one model; `candidates` says which devices may be used.
 *
 * Everything is integers: no floating point where a decision is made.
 */
#ifndef TAKT_SCHED_PLACE_H
#define TAKT_SCHED_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sched/cluster_node.h"
#include "sched/request.h"

struct takt_cluster;

/* What a score may answer instead of a level: not worth it now; the node is treated as if the task
 * did not fit there, with cause TAKT_FIT_POLICY. */
#define TAKT_PLACE_REFUSE UINT32_MAX

enum {
	TAKT_PLACE_MAX_LEVELS = 1000,
	TAKT_PLACE_MAX_WORKLOAD = 4096,
	TAKT_PLACE_MAX_PHASES = 4,
};

/* What is expected to arrive: how often each request, in any unit. A policy knows this and never
 * what really comes. */
struct takt_workload {
	const struct takt_workload_item {
		struct takt_request request;
		uint64_t weight;
	} * items; /* borrowed until the call is over */
	size_t count;
};

struct takt_place_param {
	const char *name; /* borrowed until the call is over */
	int64_t value;
};

/* What a policy is made from. */
struct takt_place_setup {
	const struct takt_placement *placement; /* the one that is being prepared */
	const struct takt_cluster *cluster;	/* borrowed; nodes may be added later, so read its
						   capacities in epoch() if they matter */
	const struct takt_workload *workload;
	const struct takt_place_param *params;
	size_t param_count;
	uint64_t seed;
};

/* How a task would sit in a node. The cluster fills it in before the policy is asked. */
struct takt_place_choice {
	uint64_t candidates; /* devices that may be used, each of them enough for the request */
	/* In: 0. Out: the devices taken, as many as asked for, all of `candidates`; 0 leaves it to
	 * the cluster: the best-linked whole ones, the tightest fraction, the lowest index. */
	uint64_t dev_mask;
};

struct takt_placement {
	const char *name;    /* as on the command line: "fgd" */
	const char *summary; /* half a line */
	uint16_t levels;     /* of score(): 1..TAKT_PLACE_MAX_LEVELS */
	/* score() does not look at request.mem_mib: kinds that differ in it share their levels. */
	bool ignores_memory;
	/* The policy's own state; *ret may stay NULL. -EINVAL names a parameter that it does not
	 * know. Optional: no state. */
	int (*prepare)(const struct takt_place_setup *setup, void **ret, struct takt_err *err);
	void (*release)(void *state); /* optional */
	/* 0..levels-1, or TAKT_PLACE_REFUSE. `choice` may be NULL: only the level is wanted. */
	uint32_t (*score)(const void *state, const struct takt_node *node,
			  const struct takt_request *request, struct takt_place_choice *choice);
	/* Index into nodes[count], count > 0, which are in order of rank. choice is of the node
	 * returned: the policy sets `dev_mask`, and finds `candidates` itself by
	 * takt_cluster_candidates(). State may change (a random sequence). */
	size_t (*scan)(void *state, const struct takt_cluster *cluster,
		       const struct takt_node *const *nodes, size_t count,
		       const struct takt_request *request, struct takt_place_choice *choice);
	/* Optional: another number means all levels are stale. Cheap: asked before each pick. May
	 * bring the state up to date first, say when takt_cluster_shape_version() has changed. */
	uint64_t (*epoch)(void *state, const struct takt_cluster *cluster);
	/* Optional, for a policy that scores in one way or another by what the cluster is like as a
	 * whole: below `phases`, and until it is asked again score() answers for that phase. Asked
	 * before each pick, so cheap: from takt_cluster_totals(), say. The levels of each phase are
	 * kept, so that going to and fro costs only what has changed meanwhile. */
	uint32_t (*phase)(void *state, const struct takt_cluster *cluster);
	uint32_t phases; /* with phase: 1..TAKT_PLACE_MAX_PHASES */
};

/* The policies that every takt has, ended by NULL; those for comparison are in compare/compare.h.
 * The first is the default. */
extern const struct takt_placement *const takt_placements[];
const struct takt_placement *takt_placement_find(const char *name); /* NULL = none */

extern const struct takt_placement takt_place_takt;	      /* place_takt.c */
extern const struct takt_placement takt_place_fgd;	      /* place_fgd.c */
extern const struct takt_placement takt_place_pack;	      /* place_pack.c */
extern const struct takt_placement takt_place_spread;	      /* place_spread.c */
extern const struct takt_placement takt_place_least_utilised; /* place_least_utilised.c */
extern const struct takt_placement takt_place_energy;	      /* place_energy.c */
extern const struct takt_placement takt_place_topology;	      /* place_topology.c */
extern const struct takt_placement takt_place_hetero;	      /* place_hetero.c */

/* Milli that a task holds of a device: what it asks, or the share of the memory it asks, rounded
 * up; more than TAKT_REQUEST_WHOLE when that memory is not known or too small. */
uint32_t takt_fit_milli(const struct takt_request *request, const struct takt_device *device);

/* CPU of a request as the published policies count it: none asked for is a little. */
static inline int32_t takt_place_cpu_milli(const struct takt_request *request)
{
	return request->cpu_milli ? request->cpu_milli : 100;
}

/* Value of a parameter, or `absent`. Each policy says in its header comment which it has. */
int64_t takt_place_param(const struct takt_place_setup *setup, const char *name, int64_t absent);
/* -EINVAL naming the first parameter that is not in `known` (ended by NULL) or outside 0..max. */
int takt_place_check_params(const struct takt_place_setup *setup, const char *const *known,
			    int64_t max, struct takt_err *err);

#endif
