/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy: where the cluster's power grows least.
 *
 * Power by the model of PWR+FGD (CCGrid 2025; cluster_power.c): a device that holds anything draws
 * its full power, else its idle power, and the same for packages of CPU. So fractions gather on
 * devices in use, which costs nothing, and work goes to the models that draw least. PWR ranks the
 * nodes of each decision from 0 to 100 between the least growth and the largest, which depends
 * on the whole list; here a level is growth in watts, which orders the same and can be kept.
 *
 * Growths within STEP_MW count as equal; then the node with the least left wins, so that others
 * stay empty and can sleep. Nodes whose power is not known come last.
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/place_share.h"

enum {
	STEP_MW = 10000,
	STEPS = 120, /* the last one: so much or more, or not known */
	TIGHT = 8,
};

struct energy {
	const struct takt_cluster *cluster; /* borrowed */
};

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const none[] = {NULL};
	int rc = takt_place_check_params(setup, none, 0, err);
	struct energy *energy;

	if (rc < 0)
		return rc;
	energy = takt_zalloc(sizeof(*energy));
	if (!energy)
		return takt_err_set(err, -ENOMEM, "no memory for the policy energy");
	energy->cluster = setup->cluster;
	*ret = energy;
	return 0;
}

/* The devices it would wake fewest of: used ones first for a fraction, any that are whole. */
static uint64_t devices_for(const struct energy *energy, const struct takt_node *node,
			    const struct takt_request *request,
			    const struct takt_place_choice *choice)
{
	uint64_t from = takt_share_devices(energy->cluster, node, request, choice), mask = 0;
	uint32_t least = UINT32_MAX;

	if (!takt_share_is_fraction(request)) {
		from &= request->mig_profile ? from : node->whole;
		for (uint32_t i = 0; i < request->devices; i++, from &= from - 1)
			mask |= from & -from;
		return mask;
	}
	for (; from; from &= from - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(from), left = node->left[i];

		if (left >= takt_fit_milli(request, &node->device[i]) && left < least) {
			least = left;
			mask = from & -from;
		}
	}
	return mask;
}

static uint32_t growth_steps(const struct energy *energy, const struct takt_node *node,
			     const struct takt_request *request, uint64_t devices)
{
	uint64_t before, after, steps;

	if (takt_cluster_node_power_mw(energy->cluster, node->id, &before) < 0 ||
	    takt_cluster_node_power_after_mw(energy->cluster, node->id, request, devices, &after) <
		    0)
		return STEPS - 1;
	steps = after > before ? (after - before) / STEP_MW : 0;
	return steps < STEPS - 1 ? (uint32_t)steps : STEPS - 1;
}

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct energy *energy = state;
	uint64_t devices = devices_for(energy, node, request, choice);
	uint32_t tight = takt_share_asked(node, request) * (TIGHT - 1) / 1000;

	/* Whole ones are left to the cluster, which knows the links. */
	if (choice && takt_share_is_fraction(request))
		choice->dev_mask = devices;
	return (STEPS - 1 - growth_steps(energy, node, request, devices)) * TIGHT + tight;
}

const struct takt_placement takt_place_energy = {
	.name = "energy",
	.summary = "least growth of power, by the model of PWR (2025)",
	.levels = STEPS * TIGHT,
	.ignores_memory = true,
	.prepare = prepare,
	.release = takt_free,
	.score = score,
};
