/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: how they come, change and go, and what of them is visible to policies. */
#include <errno.h>
#include <string.h>

#include "base/sort.h"
#include "sched/place_index.h"

static struct takt_node *find(const struct takt_cluster *cluster, uint32_t node)
{
	return node < cluster->node_count ? takt_cluster_at(cluster, node) : NULL;
}

int takt_cluster_by_rank(const void *a, const void *b, void *ctx)
{
	const struct takt_node *x = takt_cluster_at(ctx, *(const uint32_t *)a);
	const struct takt_node *y = takt_cluster_at(ctx, *(const uint32_t *)b);

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

const uint32_t *takt_cluster_order(struct takt_cluster *cluster)
{
	if (cluster->order_stale) {
		takt_sort_with(cluster->order.at, cluster->order.len, sizeof(*cluster->order.at),
			       cluster->sort_scratch, takt_cluster_by_rank, cluster);
		for (uint32_t i = 0; i < cluster->order.len; i++)
			takt_cluster_at(cluster, cluster->order.at[i])->position = i;
		cluster->index.order_version++;
	}
	cluster->order_stale = false;
	return cluster->order.at;
}

/* Cut, or fixed to be: nothing for whole tasks and fractions. */
static bool is_cut(const struct takt_device *device)
{
	return device->mig == TAKT_MIG_FIXED || device->mig_busy != 0;
}

static uint16_t most_left(const struct takt_node *node)
{
	uint16_t most = 0;

	for (uint64_t open = node->open; open; open &= open - 1) {
		uint16_t left = node->left[__builtin_ctzll(open)];

		most = left > most ? left : most;
	}
	return most;
}

void takt_cluster_refresh(struct takt_cluster *cluster, struct takt_node *node, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << i;
	uint64_t off = node->unhealthy | node->outside | node->draining;
	const struct takt_device *device = &node->device[i];
	bool was = (node->usable & bit) != 0;
	bool usable = !(off & bit) && !(node->flags & (TAKT_NODE_DRAINED | TAKT_NODE_REMOVED));

	cluster->totals.usable += (uint64_t)usable - (uint64_t)was;
	node->left[i] = usable && !is_cut(device) ? TAKT_REQUEST_WHOLE - device->held : 0;
	node->usable = usable ? node->usable | bit : node->usable & ~bit;
	node->whole = node->left[i] == TAKT_REQUEST_WHOLE ? node->whole | bit : node->whole & ~bit;
	node->open = node->left[i] ? node->open | bit : node->open & ~bit;
	if (node->left[i] >= node->most_left)
		node->most_left = node->left[i];
	else
		node->most_left = most_left(node);
}

static void refresh_all(struct takt_cluster *cluster, struct takt_node *node)
{
	for (uint32_t i = 0; i < node->devices; i++)
		takt_cluster_refresh(cluster, node, i);
	cluster->shape_version++;
	takt_cluster_touch(cluster, node, true);
}

static int check_layout(const struct takt_cluster *cluster, const struct takt_device_desc *desc,
			uint32_t i, struct takt_err *err)
{
	struct takt_device probe = {.model = (uint8_t)desc->model, .mig = TAKT_MIG_FREE};

	if (desc->mig != TAKT_MIG_FIXED)
		return 0;
	for (uint32_t at = 0; at < TAKT_CLUSTER_MAX_MIG; at++) {
		uint8_t profile = desc->layout[at];

		if (profile == 0)
			continue;
		if (profile > cluster->profiles.len || !takt_mig_fits(cluster, &probe, profile, at))
			return takt_err_set(err, -EINVAL,
					    "device %u: MIG profile %u cannot start at slice %u", i,
					    profile, at);
		takt_mig_hold(cluster, &probe, profile, at, true);
	}
	return 0;
}

static int check_devices(const struct takt_cluster *cluster, const struct takt_node_desc *desc,
			 struct takt_err *err)
{
	if (desc->device_count > TAKT_REQUEST_MAX_DEVICES)
		return takt_err_set(err, -EINVAL, "a node has at most %d accelerators, not %u",
				    TAKT_REQUEST_MAX_DEVICES, desc->device_count);
	for (uint32_t i = 0; i < desc->device_count; i++) {
		uint32_t model = desc->device ? desc->device[i].model : desc->model;

		if (model >= cluster->models.len)
			return takt_err_set(err, -EINVAL, "device %u: there is no model %u", i,
					    model);
		if (desc->device && (unsigned)desc->device[i].mig > TAKT_MIG_FIXED)
			return takt_err_set(err, -EINVAL, "device %u: no such use of MIG", i);
		if (desc->device && check_layout(cluster, &desc->device[i], i, err) < 0)
			return -EINVAL;
	}
	return 0;
}

static int check_node(const struct takt_cluster *cluster, const struct takt_node_desc *desc,
		      struct takt_err *err)
{
	int rc = check_devices(cluster, desc, err);

	if (rc < 0)
		return rc;
	if (desc->cpu_milli < 0 || desc->mem_mib < 0)
		return takt_err_set(err, -EINVAL, "CPU and memory of a node are not negative");
	if (desc->link_class >= cluster->links.len ||
	    (desc->link_class && cluster->links.at[desc->link_class].devices != desc->device_count))
		return takt_err_set(err, -EINVAL, "link class %u is not for %u accelerators",
				    desc->link_class, desc->device_count);
	if (desc->domain > cluster->domains.len)
		return takt_err_set(err, -EINVAL, "there is no domain %u", desc->domain);
	if (desc->label_count > TAKT_CLUSTER_MAX_LABELS ||
	    desc->taint_count > TAKT_CLUSTER_MAX_LABELS)
		return takt_err_set(err, -EINVAL, "a node has at most %d labels, and taints",
				    TAKT_CLUSTER_MAX_LABELS);
	return 0;
}

static void free_labels(struct takt_cluster_label *labels, size_t count)
{
	for (size_t i = 0; labels && i < count; i++)
		takt_free(labels[i].key);
	takt_free(labels);
}

static int copy_labels(const struct takt_label *from, size_t count, struct takt_cluster_label **ret)
{
	struct takt_cluster_label *labels;

	if (count == 0) {
		*ret = NULL;
		return 0;
	}
	labels = takt_calloc(count, sizeof(*labels));
	for (size_t i = 0; labels && i < count; i++) {
		const char *value = from[i].value ? from[i].value : "";
		size_t key = strlen(from[i].key) + 1, size = strlen(value) + 1;

		labels[i].key = takt_alloc(key + size);
		if (!labels[i].key) {
			free_labels(labels, count);
			return -ENOMEM;
		}
		memcpy(labels[i].key, from[i].key, key);
		labels[i].value = labels[i].key + key;
		memcpy(labels[i].value, value, size);
	}
	*ret = labels;
	return labels ? 0 : -ENOMEM;
}

static void free_cold(struct takt_cluster_cold *cold)
{
	takt_free(cold->name);
	free_labels(cold->labels, cold->label_count);
	free_labels(cold->taints, cold->taint_count);
}

static int make_cold(const struct takt_node_desc *desc, struct takt_cluster_cold *cold)
{
	*cold = (struct takt_cluster_cold){
		.cpu_package_milli = desc->cpu_package_milli,
		.cpu_idle_mw = desc->cpu_idle_mw,
		.cpu_busy_mw = desc->cpu_busy_mw,
		.price_micro_per_hour = desc->price_micro_per_hour,
	};
	cold->name = takt_strdup(desc->name);
	if (desc->name && !cold->name)
		return -ENOMEM;
	if (copy_labels(desc->labels, desc->label_count, &cold->labels) < 0)
		return -ENOMEM;
	cold->label_count = (uint16_t)desc->label_count;
	if (copy_labels(desc->taints, desc->taint_count, &cold->taints) < 0)
		return -ENOMEM;
	cold->taint_count = (uint16_t)desc->taint_count;
	return 0;
}

/* Room everywhere for one more node, so that entering it cannot fail. */
static int reserve_scratch(struct takt_cluster *cluster)
{
	size_t cap = cluster->scratch_cap ? cluster->scratch_cap * 2 : 64;
	const struct takt_node **listed;
	uint32_t *scratch;
	int rc;

	if (cluster->node_count < cluster->scratch_cap)
		return 0;
	scratch = takt_reallocarray(cluster->sort_scratch, cap, sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	cluster->sort_scratch = scratch;
	listed = takt_reallocarray((void *)cluster->listed, cap, sizeof(*listed));
	if (!listed)
		return -ENOMEM;
	cluster->listed = listed;
	rc = takt_index_reserve(cluster, cap);
	if (rc == 0)
		cluster->scratch_cap = cap;
	return rc;
}

static int reserve_page(struct takt_cluster *cluster)
{
	struct takt_cluster_page page;
	uintptr_t start;
	int rc;

	if (cluster->node_count < cluster->pages.len * TAKT_CLUSTER_PAGE)
		return 0;
	rc = takt_vec_reserve(&cluster->pages, 1);
	if (rc < 0)
		return rc;
	page.memory = takt_calloc(TAKT_CLUSTER_PAGE + 1, sizeof(*page.nodes));
	if (!page.memory)
		return -ENOMEM;
	start = (uintptr_t)page.memory;
	start += -start % _Alignof(struct takt_node);
	page.nodes = (struct takt_node *)start;
	cluster->pages.at[cluster->pages.len++] = page;
	return 0;
}

static int reserve_node(struct takt_cluster *cluster, const struct takt_node_desc *desc)
{
	int rc = takt_vec_reserve(&cluster->cold, 1);

	if (rc == 0)
		rc = takt_vec_reserve(&cluster->order, 1);
	if (rc == 0)
		rc = reserve_scratch(cluster);
	if (rc == 0)
		rc = reserve_page(cluster);
	if (rc == 0)
		rc = takt_cluster_selectors_reserve(cluster, cluster->node_count + 1);
	if (rc == 0)
		rc = takt_cluster_domain_reserve(cluster, desc->domain);
	return rc;
}

/* Devices of the node, and behind them what is left of each when that has no room in the node. */
static struct takt_device *alloc_devices(uint32_t count)
{
	size_t bytes = count * sizeof(struct takt_device);

	if (count > TAKT_NODE_INLINE_DEVICES)
		bytes += count * sizeof(uint16_t);
	return takt_zalloc(bytes ? bytes : 1);
}

static void describe_device(const struct takt_cluster *cluster, const struct takt_node_desc *desc,
			    uint32_t i, struct takt_device *device)
{
	const struct takt_device_desc *own = desc->device ? &desc->device[i] : NULL;
	uint32_t model = own ? own->model : desc->model;

	device->model = (uint8_t)model;
	device->mem_mib = cluster->models.at[model].mem_mib;
	if (!own) {
		device->mig = cluster->models.at[model].has_mig ? TAKT_MIG_FREE : TAKT_MIG_OFF;
		return;
	}
	if (own->mem_mib)
		device->mem_mib = own->mem_mib;
	device->mig = (uint8_t)own->mig;
	if (own->mig == TAKT_MIG_FIXED)
		memcpy(device->layout, own->layout, sizeof(device->layout));
}

static void fill_devices(struct takt_cluster *cluster, const struct takt_node_desc *desc,
			 struct takt_node *node)
{
	node->left = node->left_inline;
	if (node->devices > TAKT_NODE_INLINE_DEVICES)
		node->left = (uint16_t *)(void *)(node->device + node->devices);
	for (uint32_t i = 0; i < node->devices; i++) {
		struct takt_device *device = &node->device[i];

		describe_device(cluster, desc, i, device);
		node->models |= UINT64_C(1) << device->model;
		cluster->totals.model[device->model].devices++;
	}
	node->model = node->devices ? node->device[0].model : 0;
	if (takt_bits(node->models) > 1)
		node->flags |= TAKT_NODE_MIXED;
	cluster->totals.devices += node->devices;
	cluster->totals.width[node->devices].nodes++;
}

static void enter_node(struct takt_cluster *cluster, const struct takt_node_desc *desc,
		       struct takt_device *devices, const struct takt_cluster_cold *cold)
{
	uint32_t id = (uint32_t)cluster->node_count++;
	struct takt_node *node = takt_cluster_at(cluster, id);

	*node = (struct takt_node){
		.id = id,
		.cpu_milli = desc->cpu_milli,
		.cpu_left_milli = desc->cpu_milli,
		.mem_mib = desc->mem_mib,
		.mem_left_mib = desc->mem_mib,
		.devices = (uint8_t)desc->device_count,
		.device = devices,
		.link_class = desc->link_class,
		.domain = desc->domain,
		.rank = desc->rank_valid ? desc->rank : cluster->next_rank,
	};
	fill_devices(cluster, desc, node);
	cluster->cold.at[cluster->cold.len++] = *cold;
	node->position = (uint32_t)cluster->order.len;
	cluster->order.at[cluster->order.len++] = id;
	if (node->rank < cluster->next_rank)
		cluster->order_stale = true;
	else if (node->rank < UINT32_MAX)
		cluster->next_rank = node->rank + 1;
	cluster->tainted += desc->taint_count > 0;
	cluster->device_bytes += node->devices * sizeof(*node->device);
	cluster->totals.nodes++;
	cluster->totals.cpu_milli += node->cpu_milli;
	cluster->totals.mem_mib += node->mem_mib;
	takt_cluster_domain_enter(cluster, node);
	takt_cluster_selectors_update(cluster, id);
	refresh_all(cluster, node);
}

int takt_cluster_add_node(struct takt_cluster *cluster, const struct takt_node_desc *desc,
			  uint32_t *ret, struct takt_err *err)
{
	struct takt_cluster_cold cold;
	struct takt_device *devices;
	int rc = check_node(cluster, desc, err);

	if (rc < 0)
		return rc;
	rc = reserve_node(cluster, desc);
	if (rc < 0)
		return takt_err_set(err, rc, "at most %d nodes, each in memory",
				    TAKT_CLUSTER_MAX_NODES);
	devices = alloc_devices(desc->device_count);
	rc = make_cold(desc, &cold);
	if (rc < 0 || !devices) {
		free_cold(&cold);
		takt_free(devices);
		return takt_err_set(err, -ENOMEM, "no memory for a node");
	}
	enter_node(cluster, desc, devices, &cold);
	*ret = (uint32_t)cluster->node_count - 1;
	return 0;
}

int takt_cluster_remove_node(struct takt_cluster *cluster, uint32_t id, struct takt_err *err)
{
	struct takt_node *node = find(cluster, id);
	struct takt_cluster_totals *totals = &cluster->totals;

	if (!node || node->flags & TAKT_NODE_REMOVED)
		return takt_err_set(err, -ENOENT, "there is no node %u", id);
	node->flags |= TAKT_NODE_REMOVED;
	totals->nodes--;
	totals->cpu_milli -= node->cpu_milli;
	totals->mem_mib -= node->mem_mib;
	totals->devices -= node->devices;
	totals->width[node->devices].nodes--;
	for (uint32_t i = 0; i < node->devices; i++)
		totals->model[node->device[i].model].devices--;
	takt_cluster_domain_leave(cluster, node);
	refresh_all(cluster, node);
	return 0;
}

static int set_mask(struct takt_cluster *cluster, uint32_t id, uint64_t *mask, uint64_t value)
{
	struct takt_node *node = takt_cluster_at(cluster, id);

	if (value & ~takt_node_all_devices(node))
		return -EINVAL;
	if (*mask == value)
		return 0;
	*mask = value;
	refresh_all(cluster, node);
	return 0;
}

int takt_cluster_set_unhealthy(struct takt_cluster *cluster, uint32_t id, uint64_t mask)
{
	struct takt_node *node = find(cluster, id);

	return node ? set_mask(cluster, id, &node->unhealthy, mask) : -ENOENT;
}

int takt_cluster_set_outside(struct takt_cluster *cluster, uint32_t id, uint64_t mask)
{
	struct takt_node *node = find(cluster, id);

	return node ? set_mask(cluster, id, &node->outside, mask) : -ENOENT;
}

int takt_cluster_set_draining(struct takt_cluster *cluster, uint32_t id, uint64_t mask)
{
	struct takt_node *node = find(cluster, id);

	return node ? set_mask(cluster, id, &node->draining, mask) : -ENOENT;
}

int takt_cluster_set_layout(struct takt_cluster *cluster, uint32_t id, uint32_t device_index,
			    const uint8_t layout[TAKT_CLUSTER_MAX_MIG], struct takt_err *err)
{
	struct takt_node *node = find(cluster, id);
	struct takt_device_desc desc = {.mig = TAKT_MIG_FIXED};
	struct takt_device *device;
	int rc;

	if (!node || device_index >= node->devices ||
	    node->device[device_index].mig != TAKT_MIG_FIXED)
		return takt_err_set(err, -EINVAL, "device %u of node %u is not cut", device_index,
				    id);
	device = &node->device[device_index];
	desc.model = device->model;
	memcpy(desc.layout, layout, sizeof(desc.layout));
	rc = check_layout(cluster, &desc, device_index, err);
	for (uint32_t at = 0; rc == 0 && at < TAKT_CLUSTER_MAX_MIG; at++)
		if (device->mig_at[at] && device->mig_at[at] != layout[at])
			rc = takt_err_set(err, -EINVAL,
					  "device %u: the MIG instance at slice %u is held",
					  device_index, at);
	if (rc < 0)
		return rc;
	memcpy(device->layout, layout, sizeof(device->layout));
	refresh_all(cluster, node);
	return 0;
}

int takt_cluster_set_drained(struct takt_cluster *cluster, uint32_t id, bool drained)
{
	struct takt_node *node = find(cluster, id);

	if (!node)
		return -ENOENT;
	if (((node->flags & TAKT_NODE_DRAINED) != 0) == drained)
		return 0;
	node->flags ^= TAKT_NODE_DRAINED;
	refresh_all(cluster, node);
	return 0;
}

int takt_cluster_set_labels(struct takt_cluster *cluster, uint32_t id,
			    const struct takt_label *labels, size_t label_count,
			    const struct takt_label *taints, size_t taint_count,
			    struct takt_err *err)
{
	struct takt_cluster_label *new_labels, *new_taints;
	struct takt_node *node = find(cluster, id);
	struct takt_cluster_cold *cold;

	if (!node)
		return takt_err_set(err, -ENOENT, "there is no node %u", id);
	if (label_count > TAKT_CLUSTER_MAX_LABELS || taint_count > TAKT_CLUSTER_MAX_LABELS)
		return takt_err_set(err, -EINVAL, "a node has at most %d labels, and taints",
				    TAKT_CLUSTER_MAX_LABELS);
	if (copy_labels(labels, label_count, &new_labels) < 0)
		return takt_err_set(err, -ENOMEM, "no memory for labels");
	if (copy_labels(taints, taint_count, &new_taints) < 0) {
		free_labels(new_labels, label_count);
		return takt_err_set(err, -ENOMEM, "no memory for taints");
	}
	cold = &cluster->cold.at[id];
	cluster->tainted += (uint32_t)(taint_count > 0) - (cold->taint_count > 0);
	free_labels(cold->labels, cold->label_count);
	free_labels(cold->taints, cold->taint_count);
	cold->labels = new_labels;
	cold->label_count = (uint16_t)label_count;
	cold->taints = new_taints;
	cold->taint_count = (uint16_t)taint_count;
	takt_cluster_selectors_update(cluster, id);
	cluster->shape_version++;
	takt_cluster_touch(cluster, node, true);
	return 0;
}

size_t takt_cluster_node_count(const struct takt_cluster *cluster)
{
	return cluster->node_count;
}

const struct takt_node *takt_cluster_node(const struct takt_cluster *cluster, uint32_t node)
{
	return find(cluster, node);
}

const char *takt_cluster_node_name(const struct takt_cluster *cluster, uint32_t node)
{
	return node < cluster->node_count ? cluster->cold.at[node].name : NULL;
}

int64_t takt_cluster_node_price(const struct takt_cluster *cluster, uint32_t node)
{
	return node < cluster->node_count ? cluster->cold.at[node].price_micro_per_hour : 0;
}

void takt_cluster_nodes_fini(struct takt_cluster *cluster)
{
	for (uint32_t i = 0; i < cluster->node_count; i++)
		takt_free(takt_cluster_at(cluster, i)->device);
	TAKT_VEC_EACH (page, &cluster->pages)
		takt_free(page->memory);
	takt_vec_fini(&cluster->pages);
	TAKT_VEC_EACH (cold, &cluster->cold)
		free_cold(cold);
	takt_vec_fini(&cluster->cold);
	takt_vec_fini(&cluster->order);
	takt_free(cluster->sort_scratch);
	takt_free((void *)cluster->listed);
}
