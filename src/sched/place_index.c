/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed, and views kept up to date with it: see place_index.h. */
#include "sched/place_index.h"

#include <errno.h>

enum {
	BATCH = 256
};

/* Enters a change and crosses out the node's last one. */
static void enter(struct takt_place_index *index, enum takt_recent list, uint32_t node)
{
	struct takt_recent_log *log = &index->recent[list];
	uint64_t last = log->last[node], mask = index->log_size - 1;

	if (last > log->lost && log->head - last < index->log_size)
		log->node[(last - 1) & mask] = TAKT_CLUSTER_NONE;
	log->node[log->head & mask] = node;
	log->last[node] = ++log->head;
}

static struct takt_glance glance_at(const struct takt_node *node)
{
	bool look = (node->flags & (TAKT_NODE_REMOVED | TAKT_NODE_DRAINED | TAKT_NODE_MIXED |
				    TAKT_NODE_DEV_MEM)) != 0;

	return (struct takt_glance){
		.cpu_left_milli = node->cpu_left_milli,
		.mem_left_mib =
			node->mem_left_mib > UINT32_MAX ? UINT32_MAX : (uint32_t)node->mem_left_mib,
		.most_left = node->most_left,
		.whole = (uint8_t)takt_bits(node->whole),
		.model = look ? TAKT_GLANCE_LOOK : node->model,
	};
}

void takt_index_note(struct takt_cluster *cluster, struct takt_node *node, bool frees)
{
	struct takt_place_index *index = &cluster->index;
	struct takt_glance was = index->glance[node->id], is = glance_at(node);
	bool look = was.model == TAKT_GLANCE_LOOK || is.model == TAKT_GLANCE_LOOK;

	index->glance[node->id] = is;
	index->freed += frees;
	enter(index, TAKT_RECENT_ANY, node->id);
	if (look || was.whole || is.whole)
		enter(index, TAKT_RECENT_WHOLE, node->id);
	if (look || was.most_left || is.most_left)
		enter(index, TAKT_RECENT_FRACTION, node->id);
}

/* A longer log begins empty: whoever has not seen what was in the old one finds it by `last`. */
static int grow_log(struct takt_recent_log *log, size_t size, size_t nodes, size_t had)
{
	uint32_t *entries = takt_reallocarray(log->node, size, sizeof(*entries));
	uint64_t *last;

	if (!entries)
		return -ENOMEM;
	log->node = entries;
	log->lost = log->head;
	last = takt_reallocarray(log->last, nodes, sizeof(*last));
	if (!last)
		return -ENOMEM;
	memset(last + had, 0, (nodes - had) * sizeof(*last));
	log->last = last;
	return 0;
}

int takt_index_reserve(struct takt_cluster *cluster, size_t nodes)
{
	struct takt_place_index *index = &cluster->index;
	struct takt_glance *glance;
	size_t size = 64;

	if (nodes <= index->cap)
		return 0;
	glance = takt_reallocarray(index->glance, nodes, sizeof(*glance));
	if (!glance)
		return -ENOMEM;
	index->glance = glance;
	while (size < 2 * nodes)
		size *= 2;
	for (size_t i = 0; i < TAKT_RECENT_COUNT; i++)
		if (grow_log(&index->recent[i], size, nodes, index->cap) < 0)
			return -ENOMEM;
	memset(glance + index->cap, 0, (nodes - index->cap) * sizeof(*glance));
	index->log_size = size;
	index->cap = nodes;
	return 0;
}

/* Walks what has changed: through the log, or through all nodes where that is shorter. */
struct walk {
	const struct takt_place_index *index;
	const struct takt_recent_log *log;
	uint64_t seen;
	uint64_t at, end; /* log entries, or nodes */
	bool all;
	uint32_t node[BATCH];
};

static void walk_init(struct walk *walk, const struct takt_cluster *cluster, enum takt_recent list,
		      uint64_t seen)
{
	const struct takt_recent_log *log = &cluster->index.recent[list];

	walk->index = &cluster->index;
	walk->log = log;
	walk->seen = seen;
	walk->all = seen < log->lost || log->head - seen > cluster->index.log_size ||
		    log->head - seen > cluster->node_count + cluster->node_count / 2;
	walk->at = walk->all ? 0 : seen;
	walk->end = walk->all ? cluster->node_count : log->head;
}

/* The next nodes into walk->node; 0 = that was all. Without branches that depend on entries. */
static uint32_t walk_next(struct walk *walk)
{
	const struct takt_recent_log *log = walk->log;
	uint64_t mask = walk->index->log_size - 1, at = walk->at;
	uint32_t count = 0;

	while (count == 0 && at < walk->end) {
		uint64_t end = walk->end - at > BATCH ? at + BATCH : walk->end;

		for (; walk->all && at < end; at++) {
			walk->node[count] = (uint32_t)at;
			count += log->last[at] > walk->seen;
		}
		for (; at < end; at++) {
			walk->node[count] = log->node[at & mask];
			count += walk->node[count] != TAKT_CLUSTER_NONE;
		}
	}
	walk->at = at;
	return count;
}

static void free_levels(struct takt_place_levels *levels)
{
	takt_buckets_fini(&levels->buckets);
	takt_free(levels->level);
	levels->level = NULL;
	levels->level_cap = 0;
}

static void free_view(struct takt_cluster *cluster, struct takt_cluster_kind *kind)
{
	struct takt_place_view *view = kind->view;

	if (!view)
		return;
	cluster->index.bytes -= view->bytes;
	for (size_t i = 0; i < TAKT_PLACE_MAX_PHASES; i++)
		free_levels(&view->levels[i]);
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
	takt_free(cluster->index.glance);
	for (size_t i = 0; i < TAKT_RECENT_COUNT; i++) {
		takt_free(cluster->index.recent[i].node);
		takt_free(cluster->index.recent[i].last);
	}
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
		bytes += view->levels[i].buckets.bytes +
			 view->levels[i].level_cap * sizeof(uint16_t);
	if (bytes == view->bytes)
		return;
	cluster->index.bytes += bytes - view->bytes;
	view->bytes = bytes;
	shrink(cluster, view);
}

/* Levels. */

/* Whether it may fit; false is certain. All is looked at, as what is true is hard to foretell. */
static bool may_fit(const struct takt_cluster_kind *kind, const struct takt_glance *glance)
{
	const struct takt_request *request = &kind->request;
	bool whole = kind->quick == TAKT_QUICK_WHOLE, any = kind->quick <= TAKT_QUICK_NO_DEVICE;
	uint32_t left = whole ? glance->whole : glance->most_left;
	uint32_t asked = whole ? request->devices : request->milli;
	bool model = (kind->models >> (glance->model & 63) & 1) != 0;
	bool base =
		(request->cpu_milli <= glance->cpu_left_milli) &
		((request->mem_mib <= glance->mem_left_mib) | (glance->mem_left_mib == UINT32_MAX));

	return base & (any | (glance->model == TAKT_GLANCE_LOOK) | (model & (left >= asked)));
}

/* Of the nodes of a batch those that fit, or did, which are most often few. */
static uint32_t dismiss(const struct takt_cluster *cluster, const struct takt_place_levels *levels,
			uint32_t kind, uint32_t *node, uint32_t count)
{
	const struct takt_cluster_kind *at = &cluster->kinds.at[kind];
	const struct takt_glance *glance = cluster->index.glance;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		__builtin_prefetch(&glance[node[i]]);
		__builtin_prefetch(&levels->level[node[i]]);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t id = node[i];

		node[kept] = id;
		kept += may_fit(at, &glance[id]) | (levels->level[id] != TAKT_BUCKETS_NOWHERE);
	}
	for (uint32_t i = 0; i < kept; i++)
		__builtin_prefetch(takt_cluster_at(cluster, node[i]));
	return kept;
}

static int refresh_level(struct takt_cluster *cluster, struct takt_place_levels *levels,
			 uint32_t kind, uint32_t id)
{
	const struct takt_node *node = takt_cluster_at(cluster, id);
	uint32_t level = TAKT_BUCKETS_NOWHERE, was = levels->level[id];
	int rc;

	if (takt_fit(cluster, node, kind))
		level = takt_pick_level(cluster, node, kind);
	if (level == TAKT_PLACE_REFUSE) {
		levels->refuses = true;
		level = TAKT_BUCKETS_NOWHERE;
	}
	if (level == was)
		return 0;
	rc = takt_buckets_move(&levels->buckets, node->position, was, level);
	if (rc == 0)
		levels->level[id] = (uint16_t)level;
	return rc;
}

static int catch_up(struct takt_cluster *cluster, struct takt_place_levels *levels, uint32_t kind,
		    enum takt_recent list)
{
	struct walk walk;
	uint32_t count;

	walk_init(&walk, cluster, list, levels->seen);
	while ((count = walk_next(&walk)) > 0) {
		count = dismiss(cluster, levels, kind, walk.node, count);
		for (uint32_t i = 0; i < count; i++)
			if (refresh_level(cluster, levels, kind, walk.node[i]) < 0)
				return -ENOMEM;
	}
	levels->seen = walk.log->head;
	return 0;
}

static int make_levels(struct takt_cluster *cluster, struct takt_place_levels *levels)
{
	uint32_t positions = (uint32_t)cluster->scratch_cap;

	free_levels(levels);
	levels->seen = 0;
	levels->order_version = cluster->index.order_version;
	levels->level = takt_reallocarray(NULL, positions, sizeof(*levels->level));
	if (!levels->level)
		return -ENOMEM;
	levels->level_cap = positions;
	for (uint32_t i = 0; i < positions; i++)
		levels->level[i] = TAKT_BUCKETS_NOWHERE;
	return takt_buckets_init(&levels->buckets, cluster->placement->levels, positions);
}

static bool fits_nowhere_still(const struct takt_cluster *cluster,
			       const struct takt_place_levels *levels)
{
	return levels->empty_at == cluster->index.freed && levels->epoch == cluster->policy_epoch &&
	       levels->order_version == cluster->index.order_version;
}

static enum takt_recent list_of(const struct takt_cluster_kind *kind)
{
	if (kind->quick == TAKT_QUICK_WHOLE)
		return TAKT_RECENT_WHOLE;
	return kind->quick == TAKT_QUICK_FRACTION ? TAKT_RECENT_FRACTION : TAKT_RECENT_ANY;
}

static int update_levels(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind)
{
	struct takt_place_levels *levels = &view->levels[cluster->phase];

	if (levels->order_version != cluster->index.order_version ||
	    levels->level_cap < cluster->node_count) {
		int rc = make_levels(cluster, levels);

		if (rc < 0)
			return rc;
	}
	if (levels->epoch != cluster->policy_epoch) {
		levels->seen = 0;
		levels->refuses = false;
		levels->epoch = cluster->policy_epoch;
	}
	return catch_up(cluster, levels, kind, list_of(&cluster->kinds.at[kind]));
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

/* Causes and room. */

typedef void refresh_fn(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
			uint32_t node);

/* What has been seen then. */
static uint64_t refresh_view(struct takt_cluster *cluster, struct takt_place_view *view,
			     uint32_t kind, enum takt_recent list, uint64_t seen,
			     refresh_fn *refresh)
{
	struct walk walk;
	uint32_t count;

	walk_init(&walk, cluster, list, seen);
	while ((count = walk_next(&walk)) > 0)
		for (uint32_t i = 0; i < count; i++)
			refresh(cluster, view, kind, walk.node[i]);
	return walk.log->head;
}

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

static void refresh_causes(struct takt_cluster *cluster, struct takt_place_view *view,
			   uint32_t kind, uint32_t id)
{
	const struct takt_node *node = takt_cluster_at(cluster, id);
	uint32_t *causes = &view->causes[id];
	bool removed = (node->flags & TAKT_NODE_REMOVED) != 0;

	if (*causes != TAKT_CLUSTER_NONE)
		count_causes(&view->counts, *causes, -1u);
	*causes = removed ? TAKT_CLUSTER_NONE : takt_fit_why(cluster, node, kind);
	if (!removed)
		count_causes(&view->counts, *causes, 1);
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
	view->causes_seen = refresh_view(cluster, view, kind, TAKT_RECENT_ANY, view->causes_seen,
					 refresh_causes);
	account(cluster, view);
	return view;
}

static void refresh_room(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
			 uint32_t id)
{
	const struct takt_node *node = takt_cluster_at(cluster, id);
	uint32_t room = takt_fit_room(cluster, node, kind);
	uint64_t more = (uint64_t)room - view->room[node->id];

	if (more == 0)
		return;
	view->room[node->id] = room;
	view->domain_room[0] += more;
	for (uint32_t i = node->domain; i; i = takt_cluster_domain_parent(cluster, i))
		view->domain_room[i] += more;
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
	view->room_seen = refresh_view(cluster, view, kind, list_of(&cluster->kinds.at[kind]),
				       view->room_seen, refresh_room);
	account(cluster, view);
	return view;
}
