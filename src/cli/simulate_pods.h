/* SPDX-License-Identifier: Apache-2.0 */
/* What the protocols that place pods have in common: cluster, pods, policies. */
#ifndef TAKT_CLI_SIMULATE_PODS_H
#define TAKT_CLI_SIMULATE_PODS_H

#include "cli/simulate.h"
#include "sim/fgd_typical.h"
#include "sim/sim_class.h"
#include "sim/sim_cluster.h"
#include "sim/sim_policies.h"
#include "sim/sim_work.h"

struct takt_simulate_pods {
	struct takt_sim_cluster cluster;
	struct takt_sim_work work;
	struct takt_sim_classes classes;
	struct takt_fgd_typical typical;
	struct takt_sim_placements placements;
	struct takt_place_param params[TAKT_SIMULATE_MAX_PARAMS];
	size_t baseline; /* index of the policy that differences are taken to */
};

/* *ret is overwritten; nothing to release on failure. */
int takt_simulate_pods_load(struct takt_simulate *simulate, struct takt_simulate_pods *ret,
			    struct takt_err *err);
void takt_simulate_pods_fini(struct takt_simulate_pods *pods);

/* Where cluster and pods come from. */
void takt_simulate_pods_meta(const struct takt_simulate_pods *pods, struct takt_sim_meta *ret);

#endif
