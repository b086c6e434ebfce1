/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a node: see place_share.h. */
#include "sched/place_share.h"

enum {
	ALL = 1000,
};

static uint32_t asked_milli(const struct takt_node *node, const struct takt_request *request)
{
	uint32_t milli;

	if (!request || request->mig_profile || request->devices == 0)
		return 0;
	milli = request->milli ? request->milli : takt_fit_milli(request, node->device);
	return milli * request->devices;
}

uint32_t takt_share_of_devices(const struct takt_node *node, const struct takt_request *request)
{
	uint32_t left = 0, asked = asked_milli(node, request);

	if (node->devices == 0)
		return ALL;
	for (uint32_t i = 0; i < node->devices; i++)
		left += node->left[i];
	left = left > asked ? left - asked : 0;
	return ALL - left / node->devices;
}

uint32_t takt_share_of_cpu(const struct takt_node *node, const struct takt_request *request)
{
	int64_t left = node->cpu_left_milli - (request ? request->cpu_milli : 0);

	if (node->cpu_milli == 0 || left <= 0)
		return ALL;
	return ALL - (uint32_t)(left * ALL / node->cpu_milli);
}

uint32_t takt_share_asked(const struct takt_node *node, const struct takt_request *request)
{
	return request->devices ? takt_share_of_devices(node, request)
				: takt_share_of_cpu(node, request);
}

uint64_t takt_share_devices(const struct takt_cluster *cluster, const struct takt_node *node,
			    const struct takt_request *request,
			    const struct takt_place_choice *choice)
{
	/* What others hold has nothing left, except for those who may share it. */
	bool plain = !(node->flags & (TAKT_NODE_MIXED | TAKT_NODE_DEV_MEM)) &&
		     !(request->flags & TAKT_REQUEST_SHARE_OUTSIDE);
	uint64_t all, clean;

	if (!choice && plain && request->milli)
		return takt_node_all_devices(node);
	all = choice ? choice->candidates : takt_cluster_candidates(cluster, node, request);
	if (!(request->flags & TAKT_REQUEST_SHARE_OUTSIDE))
		return all;
	clean = all & ~node->outside;
	return (uint32_t)__builtin_popcountll(clean) >= request->devices ? clean : all;
}

uint64_t takt_share_emptiest(const struct takt_node *node, const struct takt_request *request,
			     uint64_t candidates)
{
	uint64_t best = 0;
	uint32_t most = 0;

	if (!takt_share_is_fraction(request))
		return 0;
	for (; candidates; candidates &= candidates - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(candidates);

		if (node->left[i] > most) {
			most = node->left[i];
			best = UINT64_C(1) << i;
		}
	}
	return best;
}
