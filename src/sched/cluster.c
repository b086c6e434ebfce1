/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster from its beginning to its end, and what is asked about it as a whole. */
#include "sched/cluster.h"

#include <errno.h>

#include "sched/place_index.h"

enum {
	MAX_UNDO = 1 << 24,
	MAX_PER_NODE = 1 << 22,
	MAX_INDEX_BYTES = 160 << 20,
};

static void init_limits(struct takt_cluster *cluster)
{
	cluster->models.max = TAKT_CLUSTER_MAX_MODELS;
	cluster->profiles.max = TAKT_CLUSTER_MAX_MIG_PROFILES;
	cluster->links.max = TAKT_CLUSTER_MAX_LINK_CLASSES;
	cluster->levels.max = TAKT_CLUSTER_MAX_LEVELS;
	cluster->domains.max = TAKT_CLUSTER_MAX_DOMAINS;
	cluster->domain_by_name = TAKT_MAP_STR(TAKT_CLUSTER_MAX_DOMAINS);
	cluster->selectors.max = TAKT_CLUSTER_MAX_SELECTORS;
	cluster->selector_by_text = TAKT_MAP_STR(TAKT_CLUSTER_MAX_SELECTORS);
	cluster->pages.max = TAKT_CLUSTER_MAX_NODES / TAKT_CLUSTER_PAGE;
	cluster->cold.max = TAKT_CLUSTER_MAX_NODES;
	cluster->order.max = TAKT_CLUSTER_MAX_NODES;
	cluster->speeds.max = TAKT_CLUSTER_MAX_SPEEDS;
	cluster->kinds.max = TAKT_CLUSTER_MAX_KINDS;
	cluster->kind_by_hash = TAKT_MAP_U64(TAKT_CLUSTER_MAX_KINDS);
	cluster->per_node = TAKT_MAP_U64(MAX_PER_NODE);
	cluster->undo.max = MAX_UNDO;
}

static int make_state(const struct takt_cluster *cluster, const struct takt_cluster_config *config,
		      const struct takt_placement **ret_placement, void **ret_state,
		      struct takt_err *err)
{
	static const struct takt_workload nothing;
	const struct takt_placement *placement = takt_placements[0];
	struct takt_place_setup setup = {.cluster = cluster, .workload = &nothing};
	int rc = 0;

	if (config && config->placement)
		placement = config->placement;
	if (config) {
		setup.workload = config->workload ? config->workload : &nothing;
		setup.params = config->params;
		setup.param_count = config->param_count;
		setup.seed = config->seed;
	}
	if (setup.workload->count > TAKT_PLACE_MAX_WORKLOAD)
		return takt_err_set(err, -EINVAL, "a workload has at most %d different requests",
				    TAKT_PLACE_MAX_WORKLOAD);
	setup.placement = placement;
	*ret_state = NULL;
	if (placement->prepare)
		rc = placement->prepare(&setup, ret_state, err);
	*ret_placement = placement;
	return rc;
}

static void release_state(struct takt_cluster *cluster)
{
	if (cluster->placement && cluster->placement->release)
		cluster->placement->release(cluster->placement_state);
	cluster->placement = NULL;
	cluster->placement_state = NULL;
}

int takt_cluster_set_placement(struct takt_cluster *cluster,
			       const struct takt_cluster_config *config, struct takt_err *err)
{
	const struct takt_placement *placement = NULL;
	void *state = NULL;
	int rc = make_state(cluster, config, &placement, &state, err);

	if (rc < 0)
		return rc;
	takt_index_drop_views(cluster);
	release_state(cluster);
	cluster->placement = placement;
	cluster->placement_state = state;
	cluster->index.max_bytes = MAX_INDEX_BYTES;
	if (config && config->max_index_bytes)
		cluster->index.max_bytes = config->max_index_bytes;
	cluster->phase = 0;
	cluster->policy_epoch++;
	cluster->version++;
	return 0;
}

static int start(struct takt_cluster *cluster, const struct takt_cluster_config *config,
		 struct takt_err *err)
{
	int rc = takt_vec_push(&cluster->links, (struct takt_cluster_links){.numa_count = 0});
	uint32_t selector;

	if (rc == 0)
		rc = takt_vec_push(&cluster->speeds, (struct takt_cluster_speeds){.permille = {0}});
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for a cluster");
	rc = takt_cluster_selector(cluster, NULL, 0, &selector, err);
	if (rc < 0)
		return rc;
	return takt_cluster_set_placement(cluster, config, err);
}

int takt_cluster_new(const struct takt_cluster_config *config, struct takt_cluster **ret,
		     struct takt_err *err)
{
	struct takt_cluster *cluster = takt_zalloc(sizeof(*cluster));
	int rc;

	if (!cluster)
		return takt_err_set(err, -ENOMEM, "no memory for a cluster");
	init_limits(cluster);
	rc = start(cluster, config, err);
	if (rc < 0) {
		takt_cluster_free(cluster);
		return rc;
	}
	*ret = cluster;
	return 0;
}

void takt_cluster_free(struct takt_cluster *cluster)
{
	if (!cluster)
		return;
	takt_index_fini(cluster);
	release_state(cluster);
	takt_cluster_names_fini(cluster);
	takt_cluster_domains_fini(cluster);
	takt_cluster_selectors_fini(cluster);
	takt_cluster_nodes_fini(cluster);
	takt_vec_fini(&cluster->kinds);
	takt_map_fini(&cluster->kind_by_hash);
	takt_map_fini(&cluster->per_node);
	takt_vec_fini(&cluster->undo);
	takt_free(cluster);
}

static void update_intact(struct takt_cluster *cluster, struct takt_node *node)
{
	bool was = (node->flags & TAKT_NODE_INTACT) != 0;
	bool is = node->devices && node->whole == takt_node_all_devices(node);

	if (is == was)
		return;
	node->flags ^= TAKT_NODE_INTACT;
	cluster->totals.width[node->devices].intact += is ? 1 : -1u;
}

void takt_cluster_touch(struct takt_cluster *cluster, struct takt_node *node, bool frees)
{
	update_intact(cluster, node);
	cluster->version++;
	takt_index_note(cluster, node, frees);
}

/* The epoch of views is a number of our own: a policy's may repeat when the policy is exchanged. */
static void update_levels_epoch(struct takt_cluster *cluster)
{
	uint64_t said = cluster->placement->epoch(cluster->placement_state, cluster);

	if (said == cluster->said_epoch)
		return;
	cluster->said_epoch = said;
	cluster->policy_epoch++;
	cluster->version++;
}

/* The epoch first: the phase may depend on what it brings up to date. */
void takt_cluster_update_epoch(struct takt_cluster *cluster)
{
	if (cluster->placement->epoch)
		update_levels_epoch(cluster);
	if (cluster->placement->phase)
		cluster->phase = cluster->placement->phase(cluster->placement_state, cluster);
}

static size_t vec_bytes(size_t cap, size_t size)
{
	return cap * size;
}

void takt_cluster_bytes(const struct takt_cluster *cluster, struct takt_cluster_bytes *ret)
{
	struct takt_cluster_bytes bytes = {
		.nodes = cluster->pages.len * TAKT_CLUSTER_PAGE * sizeof(struct takt_node) +
			 vec_bytes(cluster->cold.cap, sizeof(*cluster->cold.at)) +
			 vec_bytes(cluster->order.cap, sizeof(uint32_t)) +
			 cluster->scratch_cap * (sizeof(uint32_t) + sizeof(void *)),
		.index = cluster->index.bytes +
			 cluster->index.cap * (sizeof(struct takt_glance) +
					       TAKT_RECENT_COUNT * sizeof(uint64_t)) +
			 cluster->index.log_size * TAKT_RECENT_COUNT * sizeof(uint32_t),
		.other = sizeof(*cluster) +
			 vec_bytes(cluster->kinds.cap, sizeof(*cluster->kinds.at)) +
			 vec_bytes(cluster->undo.cap, sizeof(*cluster->undo.at)) +
			 vec_bytes(cluster->domains.cap, sizeof(*cluster->domains.at)),
	};

	bytes.nodes += cluster->device_bytes;
	TAKT_VEC_EACH (domain, &cluster->domains)
		bytes.other += vec_bytes(domain->nodes.cap, sizeof(uint32_t));
	TAKT_VEC_EACH (selector, &cluster->selectors)
		bytes.other += vec_bytes(selector->words, sizeof(uint64_t));
	*ret = bytes;
}

uint64_t takt_cluster_version(const struct takt_cluster *cluster)
{
	return cluster->version;
}

uint64_t takt_cluster_shape_version(const struct takt_cluster *cluster)
{
	return cluster->shape_version;
}

const struct takt_cluster_totals *takt_cluster_totals(const struct takt_cluster *cluster)
{
	return &cluster->totals;
}
