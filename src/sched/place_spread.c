/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread: where the smallest part is held after it, so that as few tasks as possible share a node's
 * memory bandwidth, network and fate.
 *
 * The part of devices for a task that asks for any, else of CPU (Kubernetes' LeastAllocated looks
 * at CPU and memory). Fractions go on the device with the most left.
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/place_share.h"

enum {
	LEVELS = 1000,
};

struct spread {
	const struct takt_cluster *cluster; /* borrowed */
};

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const none[] = {NULL};
	int rc = takt_place_check_params(setup, none, 0, err);
	struct spread *spread;

	if (rc < 0)
		return rc;
	spread = takt_zalloc(sizeof(*spread));
	if (!spread)
		return takt_err_set(err, -ENOMEM, "no memory for the policy spread");
	spread->cluster = setup->cluster;
	*ret = spread;
	return 0;
}

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct spread *spread = state;
	uint32_t share = takt_share_asked(node, request);

	if (choice)
		choice->dev_mask = takt_share_emptiest(
			node, request, takt_share_devices(spread->cluster, node, request, choice));
	return share < LEVELS ? LEVELS - 1 - share : 0;
}

const struct takt_placement takt_place_spread = {
	.name = "spread",
	.summary = "the node of which least is held",
	.levels = LEVELS,
	.ignores_memory = true,
	.prepare = prepare,
	.release = takt_free,
	.score = score,
};
