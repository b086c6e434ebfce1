/* SPDX-License-Identifier: Apache-2.0 */
/* The log of changes, and views of it: see place_index.h. */
#include "sched/place_index.h"

#include <errno.h>

enum {
	LEAST_LOG = 1024,
	AHEAD = 4, /* log entries whose nodes are fetched early */
};

typedef int refresh_fn(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
		       const struct takt_node *node);

void takt_index_note(struct takt_cluster *cluster, struct takt_node *node, bool frees)
{
	struct takt_place_index *index = &cluster->index;

	node->changed = index->head;
	index->log[index->head++ & (index->log_size - 1)] = node->id;
	index->freed += frees;
}

int takt_index_reserve(struct takt_cluster *cluster, size_t nodes)
{
	struct takt_place_index *index = &cluster->index;
	size_t size = index->log_size ? index->log_size : LEAST_LOG;
	uint32_t *log;

	while (size < nodes)
		size *= 2;
	if (size == index->log_size)
		return 0;
	log = takt_calloc(size, sizeof(*log));
	if (!log)
		return -ENOMEM;
	for (uint64_t i = index->head > index->log_size ? index->head - index->log_size : 0;
	     i < index->head; i++)
		log[i & (size - 1)] = index->log[i & (index->log_size - 1)];
	takt_free(index->log);
	index->log = log;
	index->log_size = size;
	return 0;
}

/* Refreshes every node that has changed since *seen. */
static inline __attribute__((always_inline)) int replay(struct takt_cluster *cluster,
							struct takt_place_view *view, uint32_t kind,
							uint64_t *seen, refresh_fn *refresh)
{
	const struct takt_place_index *index = &cluster->index;
	uint64_t mask = index->log_size - 1;

	if (index->head - *seen > cluster->node_count) {
		for (uint32_t i = 0; i < cluster->node_count; i++) {
			const struct takt_node *node = takt_cluster_at(cluster, i);

			if (node->changed >= *seen && refresh(cluster, view, kind, node) < 0)
				return -ENOMEM;
		}
		*seen = index->head;
		return 0;
	}
	for (uint64_t i = *seen; i < index->head; i++) {
		const struct takt_node *node = takt_cluster_at(cluster, index->log[i & mask]);

		__builtin_prefetch(takt_cluster_at(cluster, index->log[(i + AHEAD) & mask]));
		if (node->changed == i && refresh(cluster, view, kind, node) < 0)
			return -ENOMEM;
	}
	*seen = index->head;
	return 0;
}

static void free_view(struct takt_cluster *cluster, struct takt_cluster_kind *kind)
{
	struct takt_place_view *view = kind->view;

	if (!view)
		return;
	cluster->index.bytes -= view->bytes;
	for (size_t i = 0; i < TAKT_PLACE_MAX_PHASES; i++)
		takt_buckets_fini(&view->levels[i].buckets);
	takt_free(view->causes);
	takt_free(view->room);
	takt_free(view->domain_room);
	takt_free(view);
	kind->view = NULL;
}

void takt_index_drop_views(struct takt_cluster *cluster)
{
	TAKT_VEC_EACH (kind, &cluster->kinds)
		free_view(cluster, kind);
}

void takt_index_fini(struct takt_cluster *cluster)
{
	takt_index_drop_views(cluster);
	takt_free(cluster->index.log);
}

static struct takt_place_view *view_of(struct takt_cluster *cluster, uint32_t kind)
{
	struct takt_cluster_kind *at = &cluster->kinds.at[kind];

	if (!at->view) {
		at->view = takt_zalloc(sizeof(*at->view));
		if (!at->view)
			return NULL;
		for (size_t i = 0; i < TAKT_PLACE_MAX_PHASES; i++)
			at->view->levels[i].empty_at = UINT64_MAX;
	}
	at->view->asked = ++cluster->index.clock;
	return at->view;
}

/* Drops views until they are within bounds; not this one. */
static void shrink(struct takt_cluster *cluster, const struct takt_place_view *keep)
{
	while (cluster->index.bytes > cluster->index.max_bytes) {
		struct takt_cluster_kind *oldest = NULL;

		TAKT_VEC_EACH (kind, &cluster->kinds)
			if (kind->view && kind->view != keep &&
			    (!oldest || kind->view->asked < oldest->view->asked))
				oldest = kind;
		if (!oldest)
			return;
		free_view(cluster, oldest);
	}
}

static void account(struct takt_cluster *cluster, struct takt_place_view *view)
{
	size_t bytes = sizeof(*view) +
		       ((size_t)view->causes_cap + view->room_cap) * sizeof(uint32_t) +
		       (size_t)view->domain_cap * sizeof(uint64_t);

	for (size_t i = 0; i < TAKT_PLACE_MAX_PHASES; i++)
		bytes += view->levels[i].buckets.bytes;
	if (bytes == view->bytes)
		return;
	cluster->index.bytes += bytes - view->bytes;
	view->bytes = bytes;
	shrink(cluster, view);
}

/* Levels. */

static int refresh_level(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
			 const struct takt_node *node)
{
	struct takt_place_levels *levels = &view->levels[cluster->phase];
	uint32_t level = TAKT_BUCKETS_NOWHERE;

	if (takt_fit(cluster, node, kind)) {
		level = takt_pick_level(cluster, node, kind);
		if (level == TAKT_PLACE_REFUSE) {
			levels->refuses = true;
			level = TAKT_BUCKETS_NOWHERE;
		}
	}
	return takt_buckets_move(&levels->buckets, node->position, level);
}

static int make_levels(struct takt_cluster *cluster, struct takt_place_levels *levels)
{
	takt_buckets_fini(&levels->buckets);
	levels->seen = 0;
	levels->order_version = cluster->index.order_version;
	return takt_buckets_init(&levels->buckets, cluster->placement->levels,
				 (uint32_t)cluster->scratch_cap);
}

static bool fits_nowhere_still(const struct takt_cluster *cluster,
			       const struct takt_place_levels *levels)
{
	return levels->empty_at == cluster->index.freed && levels->epoch == cluster->policy_epoch &&
	       levels->order_version == cluster->index.order_version;
}

static int update_levels(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind)
{
	struct takt_place_levels *levels = &view->levels[cluster->phase];

	if (levels->order_version != cluster->index.order_version ||
	    levels->buckets.positions < cluster->node_count) {
		int rc = make_levels(cluster, levels);

		if (rc < 0)
			return rc;
	}
	if (levels->epoch != cluster->policy_epoch) {
		levels->seen = 0;
		levels->refuses = false;
		levels->epoch = cluster->policy_epoch;
	}
	return replay(cluster, view, kind, &levels->seen, refresh_level);
}

struct takt_place_levels *takt_index_levels(struct takt_cluster *cluster, uint32_t kind)
{
	struct takt_place_view *view = view_of(cluster, kind);
	struct takt_place_levels *levels;

	if (!view || cluster->node_count == 0)
		return NULL;
	takt_cluster_order(cluster);
	levels = &view->levels[cluster->phase];
	if (fits_nowhere_still(cluster, levels))
		return levels;
	if (update_levels(cluster, view, kind) < 0) {
		levels->order_version = UINT64_MAX; /* half brought up to date */
		account(cluster, view);
		return NULL;
	}
	levels->empty_at = UINT64_MAX;
	if (levels->buckets.total == 0 && !levels->refuses)
		levels->empty_at = cluster->index.freed;
	account(cluster, view);
	return levels;
}

/* Causes. */

static void count_causes(struct takt_fit_counts *counts, uint32_t causes, uint32_t sign)
{
	counts->nodes += sign;
	if (!causes) {
		counts->fit += sign;
		return;
	}
	counts->first[__builtin_ctz(causes)] += sign;
	for (; causes; causes &= causes - 1)
		counts->all[__builtin_ctz(causes)] += sign;
}

static int refresh_causes(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
			  const struct takt_node *node)
{
	uint32_t *causes = &view->causes[node->id];
	bool removed = (node->flags & TAKT_NODE_REMOVED) != 0;

	if (*causes != TAKT_CLUSTER_NONE)
		count_causes(&view->counts, *causes, -1u);
	*causes = removed ? TAKT_CLUSTER_NONE : takt_fit_why(cluster, node, kind);
	if (!removed)
		count_causes(&view->counts, *causes, 1);
	return 0;
}

/* Room for as many nodes as there can be before the next growth; what is new is `fill`. */
static int grow(uint32_t **array, uint32_t *cap, size_t want, uint32_t fill)
{
	uint32_t *grown;

	if (want <= *cap)
		return 0;
	grown = takt_reallocarray(*array, want, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (size_t i = *cap; i < want; i++)
		grown[i] = fill;
	*array = grown;
	*cap = (uint32_t)want;
	return 0;
}

struct takt_place_view *takt_index_causes(struct takt_cluster *cluster, uint32_t kind)
{
	struct takt_place_view *view = view_of(cluster, kind);

	if (!view ||
	    grow(&view->causes, &view->causes_cap, cluster->scratch_cap, TAKT_CLUSTER_NONE) < 0)
		return NULL;
	if (view->causes_epoch != cluster->policy_epoch || view->causes_phase != cluster->phase)
		view->causes_seen = 0;
	view->causes_epoch = cluster->policy_epoch;
	view->causes_phase = cluster->phase;
	replay(cluster, view, kind, &view->causes_seen, refresh_causes);
	account(cluster, view);
	return view;
}

/* Room. */

static int refresh_room(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
			const struct takt_node *node)
{
	uint32_t room = takt_fit_room(cluster, node, kind);
	uint64_t more = (uint64_t)room - view->room[node->id];

	if (more == 0)
		return 0;
	view->room[node->id] = room;
	view->domain_room[0] += more;
	for (uint32_t i = node->domain; i; i = takt_cluster_domain_parent(cluster, i))
		view->domain_room[i] += more;
	return 0;
}

static int grow_domains(struct takt_cluster *cluster, struct takt_place_view *view)
{
	size_t want = cluster->domains.len + 1;
	uint64_t *grown;

	if (want <= view->domain_cap)
		return 0;
	grown = takt_reallocarray(view->domain_room, want, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + view->domain_cap, 0, (want - view->domain_cap) * sizeof(*grown));
	view->domain_room = grown;
	view->domain_cap = (uint32_t)want;
	return 0;
}

struct takt_place_view *takt_index_room(struct takt_cluster *cluster, uint32_t kind)
{
	struct takt_place_view *view = view_of(cluster, kind);

	if (!view || grow(&view->room, &view->room_cap, cluster->scratch_cap, 0) < 0 ||
	    grow_domains(cluster, view) < 0)
		return NULL;
	replay(cluster, view, kind, &view->room_seen, refresh_room);
	account(cluster, view);
	return view;
}
