/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hetero: each kind of work on the model of accelerator where it has its comparative advantage.
 *
 * Work knows how fast it is on each model (request.speeds, measured as in Gavel: Narayanan et al.,
 * "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI 2020). What
 * Gavel finds with a linear program in rounds is found here when a task is placed, with a price of
 * each model, the dual of its capacity. The task goes where its speed per price is highest: those
 * who gain little from the fast model leave it to those who gain much. With u the part in use,
 *
 *	price = 1 / (1.5 - u)		worth = speed / price = speed * (1.5 - u)
 *
 * A full model costs three times as much as an empty one. The form is that of a queue's delay
 * against its load; 1.5 instead of 1 because with prices near the pole jobs crawl on slow models
 * while fast ones are free. A price is a function of what is held now: nothing has to be
 * remembered, and a scheduler rebuilt from its snapshot decides the same.
 *
 * A node is refused whose worth is below that of the best model by more than the factor `wait`
 * (permille; default 1500, 0 = never refuse): better wait for a fast model than crawl on a slow
 *one. With 1.5, a task waits for a full model rather than start on an empty one that is more
 *than 4.5 times slower, or on an equally full one that is more than 1.5 times slower. A model that
 *has no usable node wide enough for the task is not waited for. Work whose speeds are not told is
 *as fast everywhere and never refused.
 *
 * Use counts in eighths, so that levels are seldom computed anew. Among nodes of equal worth
 * the one with the fewest free devices left over wins. A node with several models counts as one of
 * the lowest of them that is allowed.
 *
 * The two constants were chosen on Gavel's throughputs (docs/research/placement.md).
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "sched/cluster.h"

enum {
	STEPS = 8,
	CALM = 12, /* 1.5 in steps */
	WAIT = 1500,
	MAX_WAIT = 1000000,
	QUALITIES = 62,
	PACKINGS = 16,
};

struct pool {
	uint64_t usable_milli; /* on nodes that take new tasks */
	uint32_t widest;       /* most devices of it in such a node */
	uint32_t calm;	       /* 1 / price, in steps: 4 (full) to 12 (empty) */
};

struct hetero {
	const struct takt_cluster *cluster; /* borrowed */
	uint64_t wait;
	uint64_t epoch;
	bool counted;
	uint64_t shape;	 /* version that `pools` were counted at */
	uint64_t models; /* bit i: anything of model i is usable */
	struct pool pools[TAKT_CLUSTER_MAX_MODELS];
};

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const names[] = {"wait", NULL};
	struct hetero *hetero;
	int rc = takt_place_check_params(setup, names, MAX_WAIT, err);

	if (rc < 0)
		return rc;
	hetero = takt_zalloc(sizeof(*hetero));
	if (!hetero)
		return takt_err_set(err, -ENOMEM, "no memory for the policy hetero");
	hetero->cluster = setup->cluster;
	hetero->wait = (uint64_t)takt_place_param(setup, "wait", WAIT);
	*ret = hetero;
	return 0;
}

static void count_node(struct hetero *hetero, const struct takt_node *node)
{
	uint32_t width[TAKT_CLUSTER_MAX_MODELS] = {0};

	for (uint64_t left = node->usable; left; left &= left - 1) {
		uint32_t model = node->device[__builtin_ctzll(left)].model;
		struct pool *pool = &hetero->pools[model];

		hetero->models |= UINT64_C(1) << model;
		pool->usable_milli += TAKT_REQUEST_WHOLE;
		if (++width[model] > pool->widest)
			pool->widest = width[model];
	}
}

static void count_pools(struct hetero *hetero, const struct takt_cluster *cluster)
{
	hetero->models = 0;
	memset(hetero->pools, 0, sizeof(hetero->pools));
	for (uint32_t i = 0; i < takt_cluster_node_count(cluster); i++) {
		const struct takt_node *node = takt_cluster_node(cluster, i);

		if (!(node->flags & (TAKT_NODE_REMOVED | TAKT_NODE_DRAINED)))
			count_node(hetero, node);
	}
}

static uint32_t calm(const struct pool *pool, int64_t held_milli)
{
	uint64_t held = (uint64_t)held_milli;

	if (held > pool->usable_milli)
		held = pool->usable_milli;
	return (uint32_t)(CALM - held * STEPS / pool->usable_milli);
}

static uint64_t epoch(void *state, const struct takt_cluster *cluster)
{
	const struct takt_cluster_totals *totals = takt_cluster_totals(cluster);
	struct hetero *hetero = state;
	bool changed = !hetero->counted || hetero->shape != takt_cluster_shape_version(cluster);

	if (changed) {
		count_pools(hetero, cluster);
		hetero->counted = true;
		hetero->shape = takt_cluster_shape_version(cluster);
	}
	for (uint64_t models = hetero->models; models; models &= models - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(models);
		uint32_t now = calm(&hetero->pools[i], totals->model[i].held_milli);

		changed |= now != hetero->pools[i].calm;
		hetero->pools[i].calm = now;
	}
	hetero->epoch += changed;
	return hetero->epoch;
}

static uint64_t worth(const struct hetero *hetero, const struct takt_request *request,
		      uint32_t model)
{
	const struct pool *pool = &hetero->pools[model];

	if (pool->widest < request->devices)
		return 0;
	return (uint64_t)takt_cluster_speed(hetero->cluster, request->speeds, model) * pool->calm;
}

static uint64_t allowed(const struct takt_request *request, uint64_t models)
{
	return request->model_mask ? models & request->model_mask : models;
}

static uint64_t highest_worth(const struct hetero *hetero, const struct takt_request *request)
{
	uint64_t best = 0;

	for (uint64_t models = allowed(request, hetero->models); models; models &= models - 1) {
		uint64_t own = worth(hetero, request, (uint32_t)__builtin_ctzll(models));

		best = own > best ? own : best;
	}
	return best;
}

/* The fewer free devices are left over, the higher. */
static uint32_t packing(const struct takt_node *node, const struct takt_request *request)
{
	uint32_t free = (uint32_t)__builtin_popcountll(node->whole);
	uint32_t taken = request->milli == TAKT_REQUEST_WHOLE ? request->devices : 0;
	uint32_t left = free > taken ? free - taken : 0;

	return left < PACKINGS ? PACKINGS - 1 - left : 0;
}

static bool worth_it(const struct hetero *hetero, uint64_t own, uint64_t best)
{
	return own > 0 && (hetero->wait == 0 || own * hetero->wait >= best * 1000);
}

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct hetero *hetero = state;
	uint64_t models = allowed(request, node->models), own, best;

	(void)choice;
	if (request->devices == 0 || !models)
		return packing(node, request);
	best = highest_worth(hetero, request);
	own = worth(hetero, request, (uint32_t)__builtin_ctzll(models));
	if (request->speeds && !worth_it(hetero, own, best))
		return TAKT_PLACE_REFUSE;
	return (uint32_t)(best ? own * (QUALITIES - 1) / best : 0) * PACKINGS +
	       packing(node, request);
}

const struct takt_placement takt_place_hetero = {
	.name = "hetero",
	.summary = "each kind of work on the model where it has its comparative advantage",
	.levels = QUALITIES * PACKINGS,
	.prepare = prepare,
	.release = takt_free,
	.score = score,
	.epoch = epoch,
};
