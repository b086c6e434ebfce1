/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated cluster as the scheduler's own object, and jobs as its requests. */
#ifndef TAKT_SIM_BUILD_H
#define TAKT_SIM_BUILD_H

#include <stdint.h>

#include "base/err.h"
#include "sched/cluster.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

/* Nodes in order of the file; rank of node i is ranks[i], or its place in the file with NULL.
 * Models get the numbers that they have in `from`. */
int takt_sim_build(const struct takt_sim_cluster *from, const uint32_t *ranks,
		   const struct takt_cluster_config *config, struct takt_cluster **ret,
		   struct takt_err *err);

/* What one task of that kind asks of a node. */
struct takt_request takt_sim_request(const struct takt_sim_kind *kind);

/* The number in the cluster of each kind of the work; ret has room for work->kinds.len. */
int takt_sim_build_kinds(struct takt_cluster *cluster, const struct takt_sim_work *work,
			 uint32_t *ret, struct takt_err *err);

#endif
