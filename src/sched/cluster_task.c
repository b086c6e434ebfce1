/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: kinds of requests, what each holds of a node, and undoing. */
#include <errno.h>

#include "sched/cluster_state.h"

static uint64_t hash_of(const struct takt_request *request)
{
	const unsigned char *bytes = (const unsigned char *)request;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*request); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static int check_fraction(const struct takt_request *request, struct takt_err *err)
{
	bool fraction = request->milli < TAKT_REQUEST_WHOLE;

	if (request->milli > TAKT_REQUEST_WHOLE)
		return takt_err_set(err, -EINVAL, "milli %u is more than a whole accelerator, %d",
				    request->milli, TAKT_REQUEST_WHOLE);
	if (request->milli == 0 && request->devices > 1)
		return takt_err_set(err, -EINVAL,
				    "a share of memory alone is of one accelerator, not of %u; ask "
				    "for milli or for tasks",
				    request->devices);
	if (fraction && request->devices > 1 && request->flags & TAKT_REQUEST_ONE_NUMA)
		return takt_err_set(err, -EINVAL,
				    "shares of several accelerators are not kept on one NUMA node");
	if (fraction && request->milli == 0 && request->dev_mem_mib == 0)
		return takt_err_set(err, -EINVAL,
				    "a fraction needs milli or accelerator memory, or both");
	return 0;
}

static int check_instance(const struct takt_cluster *cluster, const struct takt_request *request,
			  struct takt_err *err)
{
	if (request->mig_profile > cluster->profiles.len)
		return takt_err_set(err, -EINVAL, "there is no MIG profile %u",
				    request->mig_profile);
	if (request->devices != 1 || request->milli || request->dev_mem_mib)
		return takt_err_set(err, -EINVAL,
				    "a MIG instance is on one device, without milli and memory");
	return 0;
}

static int check_request(const struct takt_cluster *cluster, const struct takt_request *request,
			 struct takt_err *err)
{
	static const uint8_t none[sizeof(request->spare)];

	if (request->cpu_milli < 0 || request->mem_mib < 0)
		return takt_err_set(err, -EINVAL, "CPU and memory asked for are not negative");
	if (request->devices > TAKT_REQUEST_MAX_DEVICES)
		return takt_err_set(err, -EINVAL, "%u accelerators are more than %d a node",
				    request->devices, TAKT_REQUEST_MAX_DEVICES);
	if (request->selector >= cluster->selectors.len)
		return takt_err_set(err, -EINVAL, "there is no selector %u", request->selector);
	if (request->speeds >= cluster->speeds.len)
		return takt_err_set(err, -EINVAL, "there are no speeds %u", request->speeds);
	if (memcmp(request->spare, none, sizeof(none)) != 0)
		return takt_err_set(err, -EINVAL, "spare bytes of a request are not 0");
	if (request->mig_profile)
		return check_instance(cluster, request, err);
	return request->devices ? check_fraction(request, err) : 0;
}

static uint32_t find_kind(const struct takt_cluster *cluster, const struct takt_request *request,
			  uint64_t hash, uint32_t *ret_first)
{
	const union takt_map_value *first = takt_map_u64_get(&cluster->kind_by_hash, hash);
	uint32_t kind = first ? (uint32_t)first->u64 : TAKT_CLUSTER_NONE;

	*ret_first = kind;
	while (kind != TAKT_CLUSTER_NONE &&
	       memcmp(&cluster->kinds.at[kind].request, request, sizeof(*request)) != 0)
		kind = cluster->kinds.at[kind].next;
	return kind;
}

/* The kind of a checked request; group NONE = its own. */
static int intern(struct takt_cluster *cluster, const struct takt_request *request, uint32_t group,
		  uint32_t *ret, struct takt_err *err)
{
	struct takt_cluster_kind kind = {.request = *request,
					 .quick = takt_fit_quick(request),
					 .models = request->model_mask ? request->model_mask
								       : UINT64_MAX};
	uint64_t hash = hash_of(request);
	uint32_t found = find_kind(cluster, request, hash, &kind.next);
	int rc;

	if (found != TAKT_CLUSTER_NONE) {
		*ret = found;
		return 0;
	}
	rc = takt_vec_reserve(&cluster->kinds, 1);
	if (rc == 0)
		rc = takt_map_u64_put(&cluster->kind_by_hash, hash,
				      (union takt_map_value){.u64 = cluster->kinds.len});
	if (rc < 0)
		return takt_err_set(err, rc, "at most %d different requests, each in memory",
				    TAKT_CLUSTER_MAX_KINDS);
	*ret = (uint32_t)cluster->kinds.len;
	kind.group = group == TAKT_CLUSTER_NONE ? *ret : group;
	cluster->kinds.at[cluster->kinds.len++] = kind;
	return 0;
}

int takt_cluster_kind(struct takt_cluster *cluster, const struct takt_request *request,
		      uint32_t *ret, struct takt_err *err)
{
	struct takt_request alike = *request;
	uint32_t first, found = find_kind(cluster, request, hash_of(request), &first);
	uint32_t group = TAKT_CLUSTER_NONE;
	int rc = 0;

	if (found != TAKT_CLUSTER_NONE) {
		*ret = found;
		return 0;
	}
	rc = check_request(cluster, request, err);
	alike.mem_mib = 0;
	if (rc == 0 && request->mem_mib && !request->max_per_node)
		rc = intern(cluster, &alike, TAKT_CLUSTER_NONE, &group, err);
	return rc < 0 ? rc : intern(cluster, request, group, ret, err);
}

const struct takt_request *takt_cluster_request(const struct takt_cluster *cluster, uint32_t kind)
{
	return kind < cluster->kinds.len ? &cluster->kinds.at[kind].request : NULL;
}

size_t takt_cluster_kind_count(const struct takt_cluster *cluster)
{
	return cluster->kinds.len;
}

static bool has_room_for_devices(const struct takt_cluster *cluster, const struct takt_node *node,
				 const struct takt_request *request, const struct takt_slot *slot)
{
	for (uint64_t mask = slot->dev_mask; mask; mask &= mask - 1) {
		const struct takt_device *device = &node->device[__builtin_ctzll(mask)];
		uint32_t mem = takt_fit_dev_mem(request, device, slot->milli);

		if (request->mig_profile) {
			if (!takt_mig_fits(cluster, device, request->mig_profile, slot->mig_start))
				return false;
			continue;
		}
		if (device->mig == TAKT_MIG_FIXED || device->mig_busy)
			return false;
		if (device->held + slot->milli > TAKT_REQUEST_WHOLE)
			return false;
		if (device->mem_held_mib + mem > device->mem_mib)
			return false;
	}
	return true;
}

static int check_slot(const struct takt_cluster *cluster, uint32_t kind,
		      const struct takt_slot *slot)
{
	const struct takt_request *request = takt_cluster_request(cluster, kind);
	const struct takt_node *node = takt_cluster_node(cluster, slot->node);

	if (!request || !node || slot->dev_mask & ~takt_node_all_devices(node))
		return -EINVAL;
	if (takt_bits(slot->dev_mask) != request->devices)
		return -EINVAL;
	if (request->mig_profile)
		return slot->milli == 0 && slot->mig_start < TAKT_CLUSTER_MAX_MIG ? 0 : -EINVAL;
	if (slot->mig_start || (!request->devices && slot->milli))
		return -EINVAL;
	if (request->devices && request->milli && slot->milli != request->milli)
		return -EINVAL;
	if (request->devices && !request->milli &&
	    slot->milli != takt_fit_milli(request, &node->device[__builtin_ctzll(slot->dev_mask)]))
		return -EINVAL;
	return 0;
}

int takt_cluster_can_take(const struct takt_cluster *cluster, uint32_t kind,
			  const struct takt_slot *slot)
{
	int rc = check_slot(cluster, kind, slot);
	const struct takt_request *request;
	const struct takt_node *node;

	if (rc < 0)
		return rc;
	request = takt_cluster_request(cluster, kind);
	node = takt_cluster_node(cluster, slot->node);
	if (node->flags & TAKT_NODE_REMOVED)
		return -EINVAL;
	if (request->cpu_milli > node->cpu_left_milli || request->mem_mib > node->mem_left_mib)
		return -TAKT_E_CONFLICT;
	return has_room_for_devices(cluster, node, request, slot) ? 0 : -TAKT_E_CONFLICT;
}

static uint64_t per_node_key(uint32_t kind, const struct takt_slot *slot)
{
	return (uint64_t)kind << 32 | slot->node;
}

/* Devices of the slot come to or leave the task. */
static void hold_devices(struct takt_cluster *cluster, struct takt_node *node,
			 const struct takt_request *request, const struct takt_slot *slot,
			 bool take)
{
	for (uint64_t mask = slot->dev_mask; mask; mask &= mask - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(mask);
		struct takt_device *device = &node->device[i];
		uint32_t mem = takt_fit_dev_mem(request, device, slot->milli);
		int64_t milli = slot->milli;

		if (request->mig_profile) {
			takt_mig_hold(cluster, device, request->mig_profile, slot->mig_start, take);
			milli = takt_mig_milli(cluster, device, request->mig_profile);
		} else {
			device->held = (uint16_t)(device->held + (take ? milli : -milli));
			device->mem_held_mib += take ? mem : -mem;
		}
		cluster->totals.held_milli += take ? milli : -milli;
		cluster->totals.model[device->model].held_milli += take ? milli : -milli;
		takt_cluster_refresh(cluster, node, i);
	}
}

static void count_shape(struct takt_cluster *cluster, struct takt_node *node,
			const struct takt_request *request, bool take)
{
	uint32_t shape = takt_node_shape(request);
	uint16_t *tasks = &cluster->cold.at[node->id].shape_tasks[shape];

	*tasks = (uint16_t)(*tasks + (take ? 1 : -1));
	if (*tasks)
		node->shapes |= UINT32_C(1) << shape;
	else
		node->shapes &= ~(UINT32_C(1) << shape);
}

static void hold(struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot,
		 bool take)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	struct takt_node *node = takt_cluster_at(cluster, slot->node);
	int32_t cpu = take ? request->cpu_milli : -request->cpu_milli;
	int64_t mem = take ? request->mem_mib : -request->mem_mib;

	node->cpu_left_milli -= cpu;
	node->mem_left_mib -= mem;
	cluster->totals.cpu_held_milli += cpu;
	cluster->totals.mem_held_mib += mem;
	node->tasks += take ? 1 : -1u;
	cluster->totals.tasks += take ? 1 : -UINT64_C(1);
	if (request->dev_mem_mib && slot->milli < TAKT_REQUEST_WHOLE)
		node->mem_tasks += take ? 1 : -1u;
	node->flags &= (uint8_t)~TAKT_NODE_DEV_MEM;
	node->flags |= node->mem_tasks ? TAKT_NODE_DEV_MEM : 0;
	if (request->max_per_node)
		takt_map_u64_get(&cluster->per_node, per_node_key(kind, slot))->u64 +=
			take ? 1 : -UINT64_C(1);
	if (request->devices)
		count_shape(cluster, node, request, take);
	hold_devices(cluster, node, request, slot, take);
	takt_cluster_touch(cluster, node, !take);
}

/* Whatever the change needs, so that it cannot fail half-way. */
static int reserve(struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;

	if (request->max_per_node &&
	    !takt_map_u64_get(&cluster->per_node, per_node_key(kind, slot))) {
		int rc = takt_map_u64_put(&cluster->per_node, per_node_key(kind, slot),
					  (union takt_map_value){.u64 = 0});

		if (rc < 0)
			return rc;
	}
	return cluster->marks ? takt_vec_reserve(&cluster->undo, 1) : 0;
}

static void note(struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot,
		 bool taken)
{
	if (cluster->marks)
		cluster->undo.at[cluster->undo.len++] =
			(struct takt_cluster_undo){.kind = kind, .taken = taken, .slot = *slot};
}

int takt_cluster_take(struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot)
{
	int rc = takt_cluster_can_take(cluster, kind, slot);

	if (rc == 0)
		rc = reserve(cluster, kind, slot);
	if (rc < 0)
		return rc;
	note(cluster, kind, slot, true);
	hold(cluster, kind, slot, true);
	return 0;
}

static bool holds(const struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	const struct takt_node *node = takt_cluster_node(cluster, slot->node);
	const union takt_map_value *held;

	if (node->tasks == 0 || node->cpu_milli - node->cpu_left_milli < request->cpu_milli ||
	    node->mem_mib - node->mem_left_mib < request->mem_mib)
		return false;
	for (uint64_t mask = slot->dev_mask; mask; mask &= mask - 1) {
		const struct takt_device *device = &node->device[__builtin_ctzll(mask)];

		if (request->mig_profile ? device->mig_at[slot->mig_start] != request->mig_profile
					 : device->held < slot->milli)
			return false;
	}
	if (!request->max_per_node)
		return true;
	held = takt_map_u64_get(&cluster->per_node, per_node_key(kind, slot));
	return held && held->u64 > 0;
}

int takt_cluster_give(struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot)
{
	int rc = check_slot(cluster, kind, slot);

	if (rc < 0)
		return rc;
	if (!holds(cluster, kind, slot))
		return -TAKT_E_CONFLICT;
	rc = reserve(cluster, kind, slot);
	if (rc < 0)
		return rc;
	note(cluster, kind, slot, false);
	hold(cluster, kind, slot, false);
	return 0;
}

uint64_t takt_cluster_mark(struct takt_cluster *cluster)
{
	cluster->marks++;
	return cluster->undo.len;
}

static void unmark(struct takt_cluster *cluster)
{
	assert(cluster->marks > 0);
	cluster->marks--;
	if (cluster->marks == 0)
		takt_vec_clear(&cluster->undo);
}

void takt_cluster_rollback(struct takt_cluster *cluster, uint64_t mark)
{
	while (cluster->undo.len > mark) {
		const struct takt_cluster_undo *last = takt_vec_last(&cluster->undo);

		hold(cluster, last->kind, &last->slot, !last->taken);
		cluster->undo.len--;
	}
	unmark(cluster);
}

void takt_cluster_commit(struct takt_cluster *cluster, uint64_t mark)
{
	assert(mark <= cluster->undo.len);
	unmark(cluster);
}
