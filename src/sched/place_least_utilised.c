/* SPDX-License-Identifier: Apache-2.0 */
/*
 * least-utilised: the least utilised node, as long as it is utilised less than a bound.
 *
 * The rule of thumb for nodes that run training beside other work: a node may take another task
 * while less than 70 % of it is in use. Utilisation is the larger of the parts of its devices and
 * of its CPU that are held before the task comes. Nodes under the bound come first, the least
 * utilised of them at the head; the others, in the same order, only when there is none, or never.
 *
 * Parameters: `under`, percent (default 70); `strict`, 1 = rather wait than go to a node that is
 * not under it (default 0). Fractions go on the device with the most left.
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/place_share.h"

enum {
	UNDER_PERCENT = 70,
	ALL = 1000,
	HALF = 500, /* levels of the nodes under the bound, and of those that are not */
	LEVELS = 2 * HALF,
};

struct least {
	const struct takt_cluster *cluster; /* borrowed */
	uint32_t under;			    /* permille */
	bool strict;
};

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const names[] = {"under", "strict", NULL};
	int rc = takt_place_check_params(setup, names, 100, err);
	struct least *least;

	if (rc < 0)
		return rc;
	least = takt_zalloc(sizeof(*least));
	if (!least)
		return takt_err_set(err, -ENOMEM, "no memory for the policy least-utilised");
	least->cluster = setup->cluster;
	least->under = (uint32_t)takt_place_param(setup, "under", UNDER_PERCENT) * 10;
	least->strict = takt_place_param(setup, "strict", 0) != 0;
	*ret = least;
	return 0;
}

static uint32_t utilisation(const struct takt_node *node)
{
	uint32_t cpu = node->cpu_milli ? takt_share_of_cpu(node, NULL) : 0;
	uint32_t devices = node->devices ? takt_share_of_devices(node, NULL) : 0;

	return devices > cpu ? devices : cpu;
}

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct least *least = state;
	uint32_t used = utilisation(node), idle = (ALL - used) * (HALF - 1) / ALL;

	if (choice)
		choice->dev_mask = takt_share_emptiest(
			node, request, takt_share_devices(least->cluster, node, request, choice));
	if (used < least->under)
		return HALF + idle;
	return least->strict ? TAKT_PLACE_REFUSE : idle;
}

const struct takt_placement takt_place_least_utilised = {
	.name = "least-utilised",
	.summary = "the least utilised node, under 70 % if there is one",
	.levels = LEVELS,
	.ignores_memory = true,
	.prepare = prepare,
	.release = takt_free,
	.score = score,
};
