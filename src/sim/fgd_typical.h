/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typical pods: what a policy may know of a workload, and what fragments are measured against.
 *
 * After Weng et al. (USENIX ATC 2023): the pods of the original list by (CPU, milli-GPU, GPUs,
 * models), memory left out, CPU-only ones counted; sorted by how many there are (ties: the larger
 * CPU, milli-GPU, GPUs, models first); the shortest prefix with 95 % of all pods.
 *
 * Fragment of a node: for each typical pod the milli-GPU left on the node that it could not use
 * there, weighted by how many of the typical pods it is. All of what is left if the pod asks for no
 * GPU, for another model, for more GPUs than have enough left, or for more CPU than is left;
 * otherwise what is left on GPUs with too little for it.
 */
#ifndef TAKT_SIM_FGD_TYPICAL_H
#define TAKT_SIM_FGD_TYPICAL_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sched/cluster_node.h"
#include "sched/place.h"
#include "sim/sim_work.h"

struct takt_fgd_typical_pod {
	int32_t cpu_milli;
	uint32_t gpus;
	uint32_t milli;
	uint32_t models;     /* number in the work's specs */
	uint64_t model_mask; /* of the cluster's models; 0 = any */
	uint64_t count;
};

struct takt_fgd_typical {
	TAKT_VEC(struct takt_fgd_typical_pod) pods; /* most frequent first */
	uint64_t total;				    /* of their counts */
	TAKT_VEC(struct takt_workload_item) items;  /* the same for policies */
};

/* *ret is overwritten; untouched on failure. */
int takt_fgd_typical(const struct takt_sim_work *work, struct takt_fgd_typical *ret,
		     struct takt_err *err);
void takt_fgd_typical_fini(struct takt_fgd_typical *typical);

/* Fragment of a node in milli-GPU times typical->total. */
uint64_t takt_fgd_fragment(const struct takt_fgd_typical *typical, const struct takt_node *node);

#endif
