/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random: any node where the task fits, and for a fraction any device that is enough; whole devices
 * are the lowest free ones. All equally likely, from the seed of the cluster's configuration.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sched/cluster.h"
#include "sched/compare/compare.h"

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	struct takt_rng *rng = takt_alloc(sizeof(*rng));

	if (!rng)
		return takt_err_set(err, -ENOMEM, "no memory for the policy random");
	takt_rng_init(rng, setup->seed);
	*ret = rng;
	return 0;
}

static uint64_t any_of(struct takt_rng *rng, uint64_t devices)
{
	uint64_t skip = takt_rng_below(rng, (uint64_t)__builtin_popcountll(devices));

	while (skip--)
		devices &= devices - 1;
	return devices & -devices;
}

static size_t scan(void *state, const struct takt_cluster *cluster,
		   const struct takt_node *const *nodes, size_t count,
		   const struct takt_request *request, struct takt_place_choice *choice)
{
	size_t at = count > 1 ? takt_rng_below(state, count) : 0;

	if (request->devices == 1 && request->milli && request->milli < TAKT_REQUEST_WHOLE) {
		choice->candidates = takt_cluster_candidates(cluster, nodes[at], request);
		choice->dev_mask = any_of(state, choice->candidates);
	}
	return at;
}

const struct takt_placement takt_compare_random = {
	.name = "random",
	.summary = "any node where it fits",
	.levels = 1,
	.prepare = prepare,
	.release = takt_free,
	.scan = scan,
};
