/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology: where a task's devices are linked best, and where it breaks fewest good links.
 *
 * For several devices: the sum of pair scores of the best set that is free on the node, against
 * the best set that such a node has when it is empty, in LINKED steps; so a pair that is not linked
 * loses to one that is, whatever else speaks for it. Then, for every task: the links between the
 * devices it takes and the whole ones it leaves, in LOSS steps; so an odd request takes the
 * device whose partner is in use already, and a fraction one that is begun. Then the node with the
 * least left.
 *
 * A node without known links counts as fully linked in the first sense, when nothing better is
 * known, one step below: as good as equal links that are known, but after them. Which domain (rack,
 * leaf, NVLink) the tasks of a gang go to is the planner's question, not this policy's.
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/place_share.h"
#include "sched/sched.h"

enum {
	LINKED = 12,
	LOSS = 10,
	TIGHT = 8,
};

struct topology {
	const struct takt_cluster *cluster; /* borrowed */
};

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const none[] = {NULL};
	int rc = takt_place_check_params(setup, none, 0, err);
	struct topology *topology;

	if (rc < 0)
		return rc;
	topology = takt_zalloc(sizeof(*topology));
	if (!topology)
		return takt_err_set(err, -ENOMEM, "no memory for the policy topology");
	topology->cluster = setup->cluster;
	*ret = topology;
	return 0;
}

/* Of links between the devices of one set and those of another. */
static int64_t sum_between(const int32_t *score, uint32_t devices, uint64_t a, uint64_t b)
{
	int64_t sum = 0;

	for (; a; a &= a - 1)
		for (uint64_t left = b; left; left &= left - 1)
			sum += score[(uint32_t)__builtin_ctzll(a) * devices +
				     (uint32_t)__builtin_ctzll(left)];
	return sum;
}

/* The begun device with the least left that is enough; else a whole one that is linked worst. */
static uint64_t device_for_fraction(const struct takt_node *node,
				    const struct takt_request *request, const int32_t *score,
				    uint64_t from)
{
	uint64_t best = 0;
	int64_t least = INT64_MAX;

	for (; from; from &= from - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(from);
		uint64_t bit = from & -from;
		int64_t cost = node->left[i];

		if (node->left[i] < takt_fit_milli(request, &node->device[i]))
			continue;
		if (score && node->whole & bit)
			cost += sum_between(score, node->devices, bit, node->whole & ~bit);
		if (cost < least) {
			least = cost;
			best = bit;
		}
	}
	return best;
}

/* Where the task would sit. `score` may be NULL: then the lowest. */
static uint64_t devices_for(const struct takt_node *node, const struct takt_request *request,
			    const int32_t *score, uint64_t from)
{
	uint64_t mask = 0;
	int64_t sum;

	if (request->devices == 0 || request->mig_profile)
		return 0;
	if (request->milli != TAKT_REQUEST_WHOLE)
		return device_for_fraction(node, request, score, from);
	from &= node->whole;
	if (score && takt_best_set(score, node->devices, from, request->devices, &mask, &sum) == 0)
		return mask;
	for (uint32_t i = 0; i < request->devices; i++, from &= from - 1)
		mask |= from & -from;
	return mask;
}

static uint32_t linked(const struct takt_node *node, const int32_t *score, uint64_t mask,
		       uint32_t devices)
{
	uint64_t best;
	int64_t sum, most;

	if (!score || devices < 2)
		return score ? LINKED - 1 : LINKED - 2;
	if (takt_best_set(score, node->devices, takt_node_all_devices(node), devices, &best,
			  &most) < 0 ||
	    most <= 0)
		return LINKED - 2;
	sum = sum_between(score, node->devices, mask, mask) / 2;
	sum = sum < 0 ? 0 : sum > most ? most : sum;
	return (uint32_t)(sum * (LINKED - 1) / most);
}

/* Nothing is lost by taking all that is whole, or what is begun. */
static uint32_t kept(const struct takt_node *node, const int32_t *score, uint64_t mask)
{
	uint64_t all = takt_node_all_devices(node);
	int64_t lost, most;

	if (!score)
		return LOSS - 1;
	most = sum_between(score, node->devices, mask, all & ~mask);
	lost = sum_between(score, node->devices, mask & node->whole, node->whole & ~mask);
	if (most <= 0 || lost <= 0)
		return LOSS - 1;
	lost = lost > most ? most : lost;
	return (uint32_t)((most - lost) * (LOSS - 1) / most);
}

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct topology *topology = state;
	const int32_t *pairs = takt_cluster_pair_scores(topology->cluster, node->link_class);
	uint64_t from = takt_share_devices(topology->cluster, node, request, choice);
	uint64_t mask = devices_for(node, request, pairs, from);
	uint32_t tight = takt_share_asked(node, request) * (TIGHT - 1) / 1000;

	/* Whole ones are left to the cluster, which weighs the same and knows more. */
	if (choice && takt_share_is_fraction(request))
		choice->dev_mask = mask;
	return (linked(node, pairs, mask, request->devices) * LOSS + kept(node, pairs, mask)) *
		       TIGHT +
	       tight;
}

const struct takt_placement takt_place_topology = {
	.name = "topology",
	.summary = "best-linked devices, breaking the fewest good links",
	.levels = LINKED * LOSS * TIGHT,
	.ignores_memory = true,
	.prepare = prepare,
	.release = takt_free,
	.score = score,
};
