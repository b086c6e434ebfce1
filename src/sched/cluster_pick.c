/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the next task goes, by looking at every node: the definition that the index is held
 * against. Also the choice inside a node, which both share.
 */
#include "sched/place_index.h"

enum {
	FEW = 4,   /* a domain is small with fewer than a fourth of the nodes that fit */
	MANY = 64, /* nodes passed over for memory: better have levels that know of it */
};

bool takt_scope_has(const struct takt_cluster *cluster, const struct takt_scope *scope,
		    uint32_t node)
{
	uint32_t level;

	if (!scope)
		return true;
	if (scope->leave_out && node / 64 < scope->leave_out_words &&
	    scope->leave_out[node / 64] >> (node % 64) & 1)
		return false;
	if (scope->domain) {
		level = takt_cluster_domain_level(cluster, scope->domain);
		if (takt_cluster_node_domain(cluster, node, level) != scope->domain)
			return false;
	}
	for (size_t i = 0; scope->only && i < scope->only_count; i++)
		if (scope->only[i] == node)
			return true;
	return !scope->only;
}

uint64_t takt_scope_keep_off(const struct takt_scope *scope, uint32_t node)
{
	return scope && node < scope->keep_off_count ? scope->keep_off[node] : 0;
}

bool takt_scope_fits(const struct takt_cluster *cluster, const struct takt_scope *scope,
		     const struct takt_node *node, uint32_t kind)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	uint64_t keep_off = takt_scope_keep_off(scope, node->id);

	return takt_scope_has(cluster, scope, node->id) &&
	       (!request->devices || !keep_off ||
		takt_fit_devices_off(cluster, node, request, keep_off));
}

/* A copy of the node for a request that may share with outside use: those devices count. */
struct shared_view {
	struct takt_node node;
	uint16_t left[TAKT_REQUEST_MAX_DEVICES];
};

static const struct takt_node *
view_for(const struct takt_node *node, const struct takt_request *request, struct shared_view *view)
{
	uint64_t more = node->outside & ~node->unhealthy & ~node->draining;

	if (!(request->flags & TAKT_REQUEST_SHARE_OUTSIDE) || !more)
		return node;
	view->node = *node;
	memcpy(view->left, node->left, node->devices * sizeof(*view->left));
	view->node.left = view->left;
	view->node.usable |= more;
	for (; more; more &= more - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(more);
		const struct takt_device *device = &node->device[i];

		if (device->mig == TAKT_MIG_FIXED || device->mig_busy)
			continue;
		view->left[i] = TAKT_REQUEST_WHOLE - device->held;
		view->node.open |= (uint64_t)(view->left[i] > 0) << i;
		if (view->left[i] > view->node.most_left)
			view->node.most_left = view->left[i];
		if (device->held == 0)
			view->node.whole |= UINT64_C(1) << i;
	}
	return &view->node;
}

uint32_t takt_pick_level(const struct takt_cluster *cluster, const struct takt_node *node,
			 uint32_t kind)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	struct shared_view view;

	if (!cluster->placement->score)
		return 0;
	return cluster->placement->score(cluster->placement_state, view_for(node, request, &view),
					 request, NULL);
}

static uint64_t tightest(const struct takt_node *node, uint64_t candidates)
{
	uint64_t best = candidates & -candidates;
	uint32_t least = UINT32_MAX;

	for (; candidates; candidates &= candidates - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(candidates);

		if (node->left[i] < least) {
			least = node->left[i];
			best = UINT64_C(1) << i;
		}
	}
	return best;
}

/* The device where an instance costs least: a device that is cut already before a whole one, then
 * by the places it takes away. */
static uint64_t cheapest_cut(const struct takt_cluster *cluster, const struct takt_node *node,
			     uint8_t profile, uint64_t candidates)
{
	uint32_t least = UINT32_MAX;
	uint64_t best = 0;

	for (; candidates; candidates &= candidates - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(candidates), start, harm;
		const struct takt_device *device = &node->device[i];
		bool whole = device->mig == TAKT_MIG_FREE && !device->mig_busy;

		if (!takt_mig_choose(cluster, device, profile, &start, &harm))
			continue;
		harm += whole ? 1u << 16 : 0;
		if (harm < least) {
			least = harm;
			best = UINT64_C(1) << i;
		}
	}
	return best;
}

static uint64_t default_devices(struct takt_cluster *cluster, const struct takt_node *node,
				const struct takt_request *request, uint64_t candidates)
{
	uint64_t clean = candidates & ~node->outside;

	if (request->mig_profile)
		return cheapest_cut(cluster, node, request->mig_profile, candidates);
	if (takt_bits(clean) >= request->devices)
		return request->milli == TAKT_REQUEST_WHOLE
			       ? takt_cluster_best_linked(cluster, node, clean, 0, request->devices)
			       : tightest(node, clean);
	return request->milli == TAKT_REQUEST_WHOLE
		       ? takt_cluster_best_linked(cluster, node, candidates, clean,
						  request->devices)
		       : tightest(node, candidates);
}

void takt_pick_slot(struct takt_cluster *cluster, const struct takt_node *node, uint32_t kind,
		    uint64_t dev_mask, uint64_t keep_off, struct takt_slot *ret)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	struct takt_slot slot = {.node = node->id, .dev_mask = dev_mask};
	const struct takt_device *device;
	uint32_t start = 0, harm;

	if (request->devices && !dev_mask) {
		struct shared_view view;
		const struct takt_node *seen = view_for(node, request, &view);

		slot.dev_mask =
			default_devices(cluster, seen, request,
					takt_fit_devices_off(cluster, node, request, keep_off));
	}
	if (request->devices) {
		device = &node->device[__builtin_ctzll(slot.dev_mask)];
		slot.milli = (uint16_t)takt_fit_milli(request, device);
		if (request->mig_profile &&
		    takt_mig_choose(cluster, device, request->mig_profile, &start, &harm))
			slot.mig_start = (uint8_t)start;
	}
	*ret = slot;
}

/* The slot on a node that a score policy was chosen for. */
void takt_pick_on(struct takt_cluster *cluster, const struct takt_node *node, uint32_t kind,
		  uint64_t keep_off, struct takt_slot *ret)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	struct takt_place_choice choice = {0};
	struct shared_view view;

	if (request->devices && !request->mig_profile) {
		choice.candidates = takt_fit_devices_off(cluster, node, request, keep_off);
		cluster->placement->score(cluster->placement_state, view_for(node, request, &view),
					  request, &choice);
	}
	takt_pick_slot(cluster, node, kind, choice.dev_mask, keep_off, ret);
}

const uint32_t *takt_scope_nodes(struct takt_cluster *cluster, const struct takt_scope *scope,
				 size_t *ret_count)
{
	const uint32_t *nodes;

	if (scope && scope->domain) {
		if (takt_cluster_domain_nodes(cluster, scope->domain, &nodes, ret_count) == 0)
			return nodes;
		*ret_count = 0;
		return NULL;
	}
	*ret_count = cluster->order.len;
	return takt_cluster_order(cluster);
}

/* Nodes of the scope where the task fits, by rank, into cluster->listed. Scores are the index's
 * affair, which takes the short way (takt_fit): so they are judged by the long one. */
static size_t list_fitting(struct takt_cluster *cluster, uint32_t kind,
			   const struct takt_scope *scope)
{
	bool (*fits)(const struct takt_cluster *, const struct takt_node *, uint32_t) =
		cluster->placement->score ? takt_fit_plain : takt_fit;
	size_t count, listed = 0;
	const uint32_t *nodes = takt_scope_nodes(cluster, scope, &count);

	for (size_t i = 0; i < count; i++) {
		const struct takt_node *node = takt_cluster_at(cluster, nodes[i]);

		if (fits(cluster, node, kind) && takt_scope_fits(cluster, scope, node, kind))
			cluster->listed[listed++] = node;
	}
	return listed;
}

static const struct takt_node *best_of(const struct takt_cluster *cluster, uint32_t kind,
				       size_t count, uint32_t *ret_level)
{
	const struct takt_node *best = NULL;
	uint32_t highest = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t level = takt_pick_level(cluster, cluster->listed[i], kind);

		if (level != TAKT_PLACE_REFUSE && (!best || level > highest)) {
			best = cluster->listed[i];
			highest = level;
		}
	}
	*ret_level = highest;
	return best;
}

bool takt_cluster_pick_naive(struct takt_cluster *cluster, uint32_t kind,
			     const struct takt_scope *scope, struct takt_slot *ret,
			     uint32_t *ret_level)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	size_t count;
	struct takt_place_choice choice = {0};
	const struct takt_node *best;
	uint64_t keep_off;
	uint32_t level = 0;
	size_t at;

	takt_cluster_update_epoch(cluster);
	count = list_fitting(cluster, kind, scope);
	if (count == 0)
		return false;
	if (cluster->placement->score) {
		best = best_of(cluster, kind, count, &level);
		if (!best)
			return false;
		takt_pick_on(cluster, best, kind, takt_scope_keep_off(scope, best->id), ret);
	} else {
		at = cluster->placement->scan(cluster->placement_state, cluster, cluster->listed,
					      count, request, &choice);
		best = cluster->listed[at];
		keep_off = takt_scope_keep_off(scope, best->id);
		takt_pick_slot(cluster, best, kind,
			       choice.dev_mask & keep_off ? 0 : choice.dev_mask, keep_off, ret);
	}
	if (ret_level)
		*ret_level = level;
	return true;
}

/* What a node of the levels has to have beside its level. */
struct wanted {
	const struct takt_scope *scope;
	int64_t mem_mib;	  /* 0 = what the levels say is enough */
	uint32_t short_of_memory; /* nodes passed over */
};

static bool is_wanted(const struct takt_cluster *cluster, struct wanted *wanted, uint32_t node)
{
	if (wanted->mem_mib > takt_cluster_at(cluster, node)->mem_left_mib) {
		wanted->short_of_memory++;
		return false;
	}
	return !wanted->scope || takt_scope_has(cluster, wanted->scope, node);
}

/* The first by rank of the highest level among listed nodes. */
static const struct takt_node *best_listed(struct takt_cluster *cluster,
					   const struct takt_place_levels *levels,
					   struct wanted *wanted, const uint32_t *nodes,
					   size_t count, uint32_t *ret_level)
{
	const struct takt_node *best = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct takt_node *node = takt_cluster_at(cluster, nodes[i]);
		uint32_t level = levels->level[nodes[i]];

		if (level == TAKT_BUCKETS_NOWHERE || (best && level < *ret_level))
			continue;
		if (best && level == *ret_level && node->position > best->position)
			continue;
		if (!is_wanted(cluster, wanted, nodes[i]))
			continue;
		best = node;
		*ret_level = level;
	}
	return best;
}

/* Level by level, position by position, until one is wanted. */
static const struct takt_node *best_in(struct takt_cluster *cluster,
				       const struct takt_place_levels *levels,
				       struct wanted *wanted, uint32_t *ret_level)
{
	const struct takt_buckets *buckets = &levels->buckets;
	uint32_t level = buckets->levels - 1, position;

	for (; takt_buckets_highest(buckets, level, &level); level--) {
		uint32_t from = 0;

		for (; takt_buckets_next(buckets, level, from, &position); from = position + 1) {
			uint32_t node = cluster->order.at[position];

			if (!is_wanted(cluster, wanted, node))
				continue;
			*ret_level = level;
			return takt_cluster_at(cluster, node);
		}
		if (level == 0)
			break;
	}
	return NULL;
}

/* Few nodes are looked at one by one, wherever their levels are. */
static const struct takt_node *best_of_scope(struct takt_cluster *cluster,
					     const struct takt_place_levels *levels,
					     struct wanted *wanted, uint32_t *ret_level)
{
	const struct takt_scope *scope = wanted->scope;
	const uint32_t *nodes;
	size_t count;

	if (levels->buckets.total == 0)
		return NULL;
	if (scope && scope->only)
		return best_listed(cluster, levels, wanted, scope->only, scope->only_count,
				   ret_level);
	if (!scope || !scope->domain)
		return best_in(cluster, levels, wanted, ret_level);
	nodes = takt_scope_nodes(cluster, scope, &count);
	if (count * FEW >= levels->buckets.total)
		return best_in(cluster, levels, wanted, ret_level);
	return best_listed(cluster, levels, wanted, nodes, count, ret_level);
}

/* The kind whose levels are looked at for this one. */
static uint32_t kind_of_levels(const struct takt_cluster *cluster, uint32_t kind)
{
	const struct takt_cluster_kind *at = &cluster->kinds.at[kind];

	return cluster->placement->ignores_memory && !at->memory_counts ? at->group : kind;
}

bool takt_cluster_pick(struct takt_cluster *cluster, uint32_t kind, const struct takt_scope *scope,
		       struct takt_slot *ret, uint32_t *ret_level)
{
	struct wanted wanted = {.scope = scope};
	const struct takt_place_levels *levels;
	uint32_t of = kind_of_levels(cluster, kind), level = 0;
	const struct takt_node *best;

	if (!cluster->placement->score || (scope && scope->keep_off_count))
		return takt_cluster_pick_naive(cluster, kind, scope, ret, ret_level);
	takt_cluster_update_epoch(cluster);
	levels = takt_index_levels(cluster, of);
	if (!levels)
		return takt_cluster_pick_naive(cluster, kind, scope, ret, ret_level);
	if (of != kind)
		wanted.mem_mib = cluster->kinds.at[kind].request.mem_mib;
	best = best_of_scope(cluster, levels, &wanted, &level);
	if (wanted.short_of_memory > MANY)
		cluster->kinds.at[kind].memory_counts = true;
	if (!best)
		return false;
	takt_pick_on(cluster, best, kind, 0, ret);
	if (ret_level)
		*ret_level = level;
	return true;
}

void takt_cluster_warm(struct takt_cluster *cluster, uint32_t kind)
{
	takt_cluster_update_epoch(cluster);
	if (cluster->placement->score)
		takt_index_levels(cluster, kind_of_levels(cluster, kind));
}
