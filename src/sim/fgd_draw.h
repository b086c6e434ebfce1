/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a seed decides in the experiment of Weng et al. (USENIX ATC 2023): the order in which pods
 * arrive, which pods are added or left out, and the order of nodes that breaks ties.
 *
 * 1. Pods are sorted by name and shuffled (stream SHUFFLE).
 * 2. If they ask for less than `tuning` of the cluster's GPUs, copies of pods of the original list,
 *    drawn uniformly (stream INFLATE), are appended until the next one, counted with the milli-GPU
 *    of one of its GPUs, would go beyond; if for more, pods drawn uniformly are taken out until it
 *    is no more.
 * 3. Nodes are numbered by a random permutation (stream RANK).
 */
#ifndef TAKT_SIM_FGD_DRAW_H
#define TAKT_SIM_FGD_DRAW_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

enum {
	TAKT_FGD_MAX_ARRIVALS = 50000000
};

struct takt_fgd_draw {
	TAKT_VEC(uint32_t) arrivals; /* indices of work->jobs */
	TAKT_VEC(uint32_t) ranks;    /* of nodes: ranks.at[node] is its place in the order */
};

/* *ret is overwritten; untouched on failure. */
int takt_fgd_draw(const struct takt_sim_cluster *cluster, const struct takt_sim_work *work,
		  uint64_t seed, uint32_t tuning_permille, struct takt_fgd_draw *ret,
		  struct takt_err *err);
void takt_fgd_draw_fini(struct takt_fgd_draw *draw);

#endif
