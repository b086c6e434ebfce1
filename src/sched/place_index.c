/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed, and views kept up to date with it: see place_index.h. */
#include "sched/place_index.h"

#include <errno.h>

typedef int refresh_fn(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
		       uint32_t node);

static void unlink(struct takt_place_index *index, enum takt_recent list, uint32_t node)
{
	struct takt_recent_link *links = index->link[list], *link = &links[node];

	if (link->later != TAKT_CLUSTER_NONE)
		links[link->later].earlier = link->earlier;
	else
		index->latest[list] = link->earlier;
	if (link->earlier != TAKT_CLUSTER_NONE)
		links[link->earlier].later = link->later;
}

static void move_to_front(struct takt_place_index *index, enum takt_recent list, uint32_t node)
{
	struct takt_recent_link *links = index->link[list], *link = &links[node];

	link->changed = index->head;
	if (index->latest[list] == node)
		return;
	if (link->later != node)
		unlink(index, list, node);
	link->later = TAKT_CLUSTER_NONE;
	link->earlier = index->latest[list];
	if (link->earlier != TAKT_CLUSTER_NONE)
		links[link->earlier].later = node;
	index->latest[list] = node;
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
	index->head++;
	index->freed += frees;
	move_to_front(index, TAKT_RECENT_ANY, node->id);
	if (look || was.whole || is.whole)
		move_to_front(index, TAKT_RECENT_WHOLE, node->id);
	if (look || was.most_left || is.most_left)
		move_to_front(index, TAKT_RECENT_FRACTION, node->id);
}

void takt_index_init(struct takt_cluster *cluster)
{
	for (size_t i = 0; i < TAKT_RECENT_COUNT; i++)
		cluster->index.latest[i] = TAKT_CLUSTER_NONE;
}

int takt_index_reserve(struct takt_cluster *cluster, size_t nodes)
{
	struct takt_place_index *index = &cluster->index;
	struct takt_glance *glance;

	if (nodes <= index->cap)
		return 0;
	glance = takt_reallocarray(index->glance, nodes, sizeof(*glance));
	if (!glance)
		return -ENOMEM;
	index->glance = glance;
	for (size_t i = 0; i < TAKT_RECENT_COUNT; i++) {
		struct takt_recent_link *link =
			takt_reallocarray(index->link[i], nodes, sizeof(*link));

		if (!link)
			return -ENOMEM;
		index->link[i] = link;
		for (uint32_t j = (uint32_t)index->cap; j < nodes; j++)
			link[j] = (struct takt_recent_link){.later = j, .earlier = j};
	}
	memset(glance + index->cap, 0, (nodes - index->cap) * sizeof(*glance));
	index->cap = nodes;
	return 0;
}

/* Refreshes every node of the list that has changed since *seen. */
static inline __attribute__((always_inline)) int catch_up(struct takt_cluster *cluster,
							  struct takt_place_view *view,
							  uint32_t kind, enum takt_recent list,
							  uint64_t *seen, refresh_fn *refresh)
{
	const struct takt_place_index *index = &cluster->index;
	const struct takt_recent_link *links = index->link[list];
	uint32_t node = index->latest[list];
	int rc = 0;

	while (node != TAKT_CLUSTER_NONE && links[node].changed > *seen && rc == 0) {
		uint32_t earlier = links[node].earlier;

		if (earlier != TAKT_CLUSTER_NONE)
			__builtin_prefetch(&index->glance[earlier]);
		rc = refresh(cluster, view, kind, node);
		node = earlier;
	}
	if (rc == 0)
		*seen = index->head;
	return rc;
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
	for (size_t i = 0; i < TAKT_RECENT_COUNT; i++)
		takt_free(cluster->index.link[i]);
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

/* Whether it may fit; false is certain. */
static bool may_fit(const struct takt_cluster_kind *kind, const struct takt_glance *glance)
{
	const struct takt_request *request = &kind->request;

	if (request->cpu_milli > glance->cpu_left_milli)
		return false;
	if (request->mem_mib > glance->mem_left_mib && glance->mem_left_mib != UINT32_MAX)
		return false;
	if (kind->quick <= TAKT_QUICK_NO_DEVICE || glance->model == TAKT_GLANCE_LOOK)
		return true;
	if (request->model_mask && !(request->model_mask >> glance->model & 1))
		return false;
	return kind->quick == TAKT_QUICK_WHOLE ? glance->whole >= request->devices
					       : glance->most_left >= request->milli;
}

static int refresh_level(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
			 uint32_t id)
{
	struct takt_place_levels *levels = &view->levels[cluster->phase];
	uint32_t level = TAKT_BUCKETS_NOWHERE, was = levels->level[id];
	const struct takt_node *node;
	int rc;

	if (!may_fit(&cluster->kinds.at[kind], &cluster->index.glance[id])) {
		if (was == TAKT_BUCKETS_NOWHERE)
			return 0;
		node = takt_cluster_at(cluster, id);
	} else {
		node = takt_cluster_at(cluster, id);
		if (takt_fit(cluster, node, kind))
			level = takt_pick_level(cluster, node, kind);
		if (level == TAKT_PLACE_REFUSE) {
			levels->refuses = true;
			level = TAKT_BUCKETS_NOWHERE;
		}
		if (level == was)
			return 0;
	}
	rc = takt_buckets_move(&levels->buckets, node->position, was, level);
	if (rc == 0)
		levels->level[id] = (uint16_t)level;
	return rc;
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
	return catch_up(cluster, view, kind, list_of(&cluster->kinds.at[kind]), &levels->seen,
			refresh_level);
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
			  uint32_t id)
{
	const struct takt_node *node = takt_cluster_at(cluster, id);
	uint32_t *causes = &view->causes[id];
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
	catch_up(cluster, view, kind, TAKT_RECENT_ANY, &view->causes_seen, refresh_causes);
	account(cluster, view);
	return view;
}

/* Room. */

static int refresh_room(struct takt_cluster *cluster, struct takt_place_view *view, uint32_t kind,
			uint32_t id)
{
	const struct takt_node *node = takt_cluster_at(cluster, id);
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
	catch_up(cluster, view, kind, TAKT_RECENT_ANY, &view->room_seen, refresh_room);
	account(cluster, view);
	return view;
}
