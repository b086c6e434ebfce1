/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where one task goes. With a placement policy the cluster says. Without one, for whole GPUs, the
 * links do: fewest GPUs with outside use, then the largest pair-score sum, then the fewest free
 * GPUs left over, then the lowest id; that looks at every node and is meant for machines, not
 * clusters. So go shares of several GPUs. What has to be on one NUMA node goes where the cluster
 * says.
 */
#include "sched/plan_state.h"

/* A way to place a task; the better of two is chosen as sched.h's "Choice among nodes" says. */
struct offer {
	const struct takt_sched_host *host;
	uint64_t gpu_mask;
	int64_t sum;
	uint32_t shared; /* GPUs with outside use */
	uint32_t left;	 /* free GPUs left over */
};

static bool better_offer(const struct offer *a, const struct offer *b)
{
	if (!b->host)
		return true;
	if (a->shared != b->shared)
		return a->shared < b->shared;
	if (a->sum != b->sum)
		return a->sum > b->sum;
	return a->left < b->left;
}

static struct offer offer_of(const struct takt_sched *sched, const struct takt_sched_host *host,
			     const struct takt_request *request, const struct takt_scope *scope)
{
	const struct takt_node *node = takt_cluster_node(sched->cluster, host->node);
	uint64_t free_gpus = takt_cluster_candidates(sched->cluster, node, request) &
			     ~takt_scope_keep_off(scope, host->node);
	uint64_t clean = free_gpus & ~host->outside;
	struct offer offer = {.host = host};

	if (takt_sched_count(clean) >= request->devices)
		offer.gpu_mask = takt_sched_best_with(host->pair_score, host->gpu_count, clean, 0,
						      request->devices, &offer.sum);
	else
		offer.gpu_mask = takt_sched_best_with(host->pair_score, host->gpu_count, free_gpus,
						      clean, request->devices, &offer.sum);
	offer.shared = takt_sched_count(offer.gpu_mask & host->outside);
	offer.left = takt_sched_count(free_gpus) - request->devices;
	return offer;
}

static bool pick_by_links(const struct takt_sched *sched, uint32_t kind,
			  const struct takt_request *request, const struct takt_scope *scope,
			  struct takt_slot *ret)
{
	struct offer best = {0};

	TAKT_VEC_EACH (it, &sched->hosts) {
		struct takt_sched_host *host = *it;
		struct offer offer;

		if (host->removed ||
		    takt_cluster_why_not(sched->cluster, kind, host->node, scope) != 0)
			continue;
		offer = offer_of(sched, host, request, scope);
		if (better_offer(&offer, &best))
			best = offer;
		if (request->devices == 0)
			break;
	}
	if (!best.host)
		return false;
	*ret = (struct takt_slot){
		.node = best.host->node,
		.milli = request->milli,
		.dev_mask = best.gpu_mask,
	};
	return true;
}

bool takt_plan_pick(struct takt_planner *planner, uint32_t kind, const struct takt_scope *scope,
		    struct takt_slot *ret)
{
	const struct takt_sched *sched = planner->sched;
	const struct takt_request *request;
	bool linked, several;

	if (planner->has_stand_in)
		kind = planner->stand_in;
	request = takt_cluster_request(sched->cluster, kind);
	linked = request->devices == 0 || request->milli == TAKT_REQUEST_WHOLE;
	several = request->devices > 1 && !linked; /* policies know shares of one */

	if (several ||
	    (!sched->config.placement && linked && !(request->flags & TAKT_REQUEST_ONE_NUMA)))
		return pick_by_links(sched, kind, request, scope, ret);
	return takt_cluster_pick(sched->cluster, kind, scope, ret, NULL);
}
