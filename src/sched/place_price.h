/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How scarce each model of accelerator is for those who need just that model.
 *
 * Some requests allow certain models only. What they are expected to ask for is shared out over
 * the models that they allow, by how many accelerators of each there are; a model's scarcity is
 * what falls to it, over its part of the cluster, when everything that is expected together asks
 * for as much as there is:
 *
 *	scarcity(t) = sum over requests r that do not allow all models, and allow t, of
 *	              (asked by r / asked by all) * capacity(t) / capacity(models r allows)
 *	              / (capacity(t) / capacity(all))
 *
 * Above 1, a model cannot serve even those who can go nowhere else. Whoever can go elsewhere should
 * leave it to them; the policy `takt` charges for it.
 */
#ifndef TAKT_SCHED_PLACE_PRICE_H
#define TAKT_SCHED_PLACE_PRICE_H

#include "sched/cluster.h"

/* What is expected, as far as models are concerned. */
struct takt_model_demand {
	uint64_t all; /* milli, weighted */
	size_t count;
	struct takt_model_share {
		uint64_t models; /* as bits */
		uint64_t asked;	 /* milli, weighted */
	} * shares;		 /* owned */
};

/* -ENOMEM. Requests that say their fraction by memory are not counted. */
int takt_model_demand_init(struct takt_model_demand *demand, const struct takt_workload *workload);
void takt_model_demand_fini(struct takt_model_demand *demand);

/* In permille, by model; 0 of models that the cluster does not have. */
void takt_model_scarcity(const struct takt_model_demand *demand,
			 const struct takt_cluster_totals *totals,
			 uint32_t ret[TAKT_CLUSTER_MAX_MODELS]);

#endif
