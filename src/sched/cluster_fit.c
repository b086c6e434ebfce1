/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a task fits on a node, why not, and how many more of it would.
 *
 * takt_fit() is asked for every node that has changed and stops at the first obstacle, cheapest
 * first; takt_fit_causes() goes through them all. A test holds the two against each other.
 */
#include "sched/cluster_state.h"

uint32_t takt_fit_milli(const struct takt_request *request, const struct takt_device *device)
{
	uint64_t milli;

	if (request->milli != 0 || request->dev_mem_mib == 0)
		return request->milli;
	if (device->mem_mib < request->dev_mem_mib)
		return TAKT_REQUEST_WHOLE + 1;
	milli = (UINT64_C(1000) * request->dev_mem_mib + device->mem_mib - 1) / device->mem_mib;
	return (uint32_t)milli;
}

uint32_t takt_fit_dev_mem(const struct takt_request *request, const struct takt_device *device,
			  uint32_t milli)
{
	if (milli < TAKT_REQUEST_WHOLE && request->dev_mem_mib != 0)
		return request->dev_mem_mib;
	return (uint32_t)((uint64_t)device->mem_mib * milli / TAKT_REQUEST_WHOLE);
}

static bool shares(const struct takt_request *request)
{
	return (request->flags & TAKT_REQUEST_SHARE_OUTSIDE) != 0;
}

static uint64_t asked_for(const struct takt_node *node, const struct takt_request *request)
{
	uint64_t all = takt_node_all_devices(node);

	return request->only_devices ? all & request->only_devices : all;
}

/* Devices that are asked for, of an allowed model, whatever their state; for a MIG profile those
 * that can have it. */
static uint64_t matching(const struct takt_cluster *cluster, const struct takt_node *node,
			 const struct takt_request *request)
{
	uint64_t all = asked_for(node, request), match = 0;

	if (!(node->flags & TAKT_NODE_MIXED) && !request->mig_profile) {
		bool allowed =
			request->model_mask == 0 || (request->model_mask >> node->model & 1) != 0;

		return allowed ? all : 0;
	}
	for (; all; all &= all - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(all);
		const struct takt_device *device = &node->device[i];

		if (request->model_mask && !(request->model_mask >> device->model & 1))
			continue;
		if (cluster && request->mig_profile &&
		    !takt_mig_possible(cluster, device, request->mig_profile))
			continue;
		match |= UINT64_C(1) << i;
	}
	return match;
}

static uint32_t milli_left(const struct takt_node *node, const struct takt_request *request,
			   uint32_t i)
{
	const struct takt_device *device = &node->device[i];
	bool cut = device->mig == TAKT_MIG_FIXED || device->mig_busy;

	if (!shares(request) || !(node->outside >> i & 1))
		return node->left[i];
	return cut ? 0 : TAKT_REQUEST_WHOLE - device->held;
}

static uint64_t usable(const struct takt_node *node, const struct takt_request *request)
{
	uint64_t mask = node->usable;

	if (shares(request) && !(node->flags & TAKT_NODE_DRAINED))
		mask |= node->outside & ~node->unhealthy & ~node->draining;
	return mask;
}

static bool has_dev_mem(const struct takt_node *node, const struct takt_request *request,
			uint32_t i, uint32_t milli)
{
	const struct takt_device *device = &node->device[i];

	if (request->dev_mem_mib > device->mem_mib)
		return false;
	return device->mem_mib - device->mem_held_mib >= takt_fit_dev_mem(request, device, milli);
}

/* Whether `left` says how many such tasks fit on a device: the device itself, which is dearer to
 * look at, adds nothing. */
static bool left_says_all(const struct takt_request *request, bool memory)
{
	return request->milli && !request->mig_profile && !memory && !shares(request);
}

static uint64_t with_left(const struct takt_node *node, uint64_t from, uint32_t milli)
{
	uint64_t mask = 0;

	for (from &= node->open; from; from &= from - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(from);

		mask |= (uint64_t)(node->left[i] >= milli) << i;
	}
	return mask;
}

static uint64_t with_fraction(const struct takt_node *node, const struct takt_request *request,
			      uint64_t from, bool memory)
{
	uint64_t mask = 0;

	if (left_says_all(request, memory))
		return with_left(node, from, request->milli);
	for (; from; from &= from - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(from);
		uint32_t milli = request->milli;

		if (milli == 0)
			milli = takt_fit_milli(request, &node->device[i]);
		if (milli_left(node, request, i) < milli)
			continue;
		if (memory && !has_dev_mem(node, request, i, milli))
			continue;
		mask |= UINT64_C(1) << i;
	}
	return mask;
}

static uint64_t with_instance(const struct takt_cluster *cluster, const struct takt_node *node,
			      const struct takt_request *request, uint64_t from)
{
	uint64_t mask = 0;

	for (; from; from &= from - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(from), start, cost;

		if (takt_mig_choose(cluster, &node->device[i], request->mig_profile, &start, &cost))
			mask |= UINT64_C(1) << i;
	}
	return mask;
}

/* Those of `from` (usable ones of an allowed model) that have enough left. */
static uint64_t enough(const struct takt_cluster *cluster, const struct takt_node *node,
		       const struct takt_request *request, uint64_t from)
{
	if (request->mig_profile)
		return with_instance(cluster, node, request, from);
	if (request->milli == TAKT_REQUEST_WHOLE && !request->dev_mem_mib && !shares(request))
		return from & node->whole;
	return with_fraction(node, request, from,
			     request->dev_mem_mib || node->flags & TAKT_NODE_DEV_MEM);
}

uint64_t takt_cluster_candidates(const struct takt_cluster *cluster, const struct takt_node *node,
				 const struct takt_request *request)
{
	return enough(cluster, node, request,
		      matching(cluster, node, request) & usable(node, request));
}

/* The devices of `mask` that are of the lowest model of which there are `need`; all of them when
 * that makes no difference. */
static uint64_t of_one_model(const struct takt_node *node, uint64_t mask, uint32_t need)
{
	if (need < 2 || !(node->flags & TAKT_NODE_MIXED))
		return takt_bits(mask) >= need ? mask : 0;
	for (uint64_t models = node->models; models; models &= models - 1) {
		uint32_t model = (uint32_t)__builtin_ctzll(models);
		uint64_t same = 0;

		for (uint64_t rest = mask; rest; rest &= rest - 1) {
			uint32_t i = (uint32_t)__builtin_ctzll(rest);

			if (node->device[i].model == model)
				same |= UINT64_C(1) << i;
		}
		if (takt_bits(same) >= need)
			return same;
	}
	return 0;
}

/* The devices of `mask` that hang on the NUMA node with the fewest that are enough. */
static uint64_t on_one_numa(const struct takt_cluster *cluster, const struct takt_node *node,
			    const struct takt_request *request, uint64_t mask)
{
	const struct takt_cluster_links *links = &cluster->links.at[node->link_class];
	uint32_t least = UINT32_MAX;
	uint64_t best = 0;

	if (!(request->flags & TAKT_REQUEST_ONE_NUMA) || links->numa_count < 2)
		return mask;
	for (uint32_t i = 0; i < links->numa_count; i++) {
		uint64_t here = of_one_model(node, mask & links->numa[i], request->devices);

		if (here && takt_bits(here) < least) {
			least = takt_bits(here);
			best = here;
		}
	}
	return best;
}

uint64_t takt_fit_devices(const struct takt_cluster *cluster, const struct takt_node *node,
			  const struct takt_request *request)
{
	return takt_fit_devices_off(cluster, node, request, 0);
}

uint64_t takt_fit_devices_off(const struct takt_cluster *cluster, const struct takt_node *node,
			      const struct takt_request *request, uint64_t keep_off)
{
	uint64_t mask = takt_cluster_candidates(cluster, node, request) & ~keep_off;

	mask = on_one_numa(cluster, node, request, mask);
	return of_one_model(node, mask, request->devices);
}

static bool below_limit(const struct takt_cluster *cluster, const struct takt_node *node,
			uint32_t kind)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	const union takt_map_value *held;

	if (!request->max_per_node)
		return true;
	held = takt_map_u64_get(&cluster->per_node, (uint64_t)kind << 32 | node->id);
	return !held || held->u64 < request->max_per_node;
}

static uint32_t cause(enum takt_fit fit, bool applies)
{
	return (uint32_t)applies << fit;
}

static bool too_large(const struct takt_node *node, const struct takt_request *request,
		      uint64_t match)
{
	bool memory = request->dev_mem_mib != 0 && request->devices != 0;

	if (request->cpu_milli > node->cpu_milli || request->mem_mib > node->mem_mib)
		return true;
	for (; memory && match; match &= match - 1)
		if (node->device[__builtin_ctzll(match)].mem_mib >= request->dev_mem_mib)
			return false;
	return memory;
}

/* Why the devices that are usable are not enough. */
static uint32_t device_causes(const struct takt_cluster *cluster, const struct takt_node *node,
			      const struct takt_request *request, uint64_t match)
{
	uint64_t from = match & usable(node, request);
	uint64_t mask = enough(cluster, node, request, from);

	if (of_one_model(node, mask, request->devices))
		return cause(TAKT_FIT_NUMA, !on_one_numa(cluster, node, request, mask));
	if (request->mig_profile)
		return cause(TAKT_FIT_MIG, true);
	mask = request->milli ? with_fraction(node, request, from, false) : from;
	if (of_one_model(node, mask, request->devices) || !request->milli)
		return cause(TAKT_FIT_DEV_MEM, true);
	return cause(request->milli == TAKT_REQUEST_WHOLE ? TAKT_FIT_DEVICES : TAKT_FIT_FRACTION,
		     true);
}

/* Of what can be wrong with the accelerators only the first: where there are none of the model,
 * nobody wants to hear that these are not healthy. */
static uint32_t accelerator_causes(const struct takt_cluster *cluster, const struct takt_node *node,
				   const struct takt_request *request, uint64_t match)
{
	uint64_t healthy = match & ~node->unhealthy;
	uint32_t need = request->devices;

	if (!asked_for(node, request))
		return cause(TAKT_FIT_COUNT_OF, true);
	if (!match)
		return cause(TAKT_FIT_MODEL, true);
	if (!of_one_model(node, on_one_numa(cluster, node, request, match), need))
		return cause(TAKT_FIT_COUNT_OF, true);
	if (!of_one_model(node, healthy, need))
		return cause(TAKT_FIT_HEALTH, true);
	if (!shares(request) && !of_one_model(node, healthy & ~node->outside, need))
		return cause(TAKT_FIT_OUTSIDE, true);
	return device_causes(cluster, node, request, match);
}

uint32_t takt_fit_causes(const struct takt_cluster *cluster, const struct takt_node *node,
			 uint32_t kind)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	uint32_t need = request->devices;
	uint64_t match = need ? matching(cluster, node, request) : 0;
	uint32_t causes = 0;

	causes |= cause(TAKT_FIT_SELECTOR,
			!takt_cluster_selects(cluster, request->selector, node->id));
	causes |= cause(TAKT_FIT_SIZE, too_large(node, request, match));
	causes |= cause(TAKT_FIT_DRAINED, (node->flags & TAKT_NODE_DRAINED) != 0);
	if (need)
		causes |= accelerator_causes(cluster, node, request, match);
	causes |= cause(TAKT_FIT_CPU, request->cpu_milli > node->cpu_left_milli);
	causes |= cause(TAKT_FIT_MEM, request->mem_mib > node->mem_left_mib);
	causes |= cause(TAKT_FIT_PER_NODE, !below_limit(cluster, node, kind));
	return causes;
}

uint32_t takt_fit_why(const struct takt_cluster *cluster, const struct takt_node *node,
		      uint32_t kind)
{
	uint32_t causes = takt_fit_causes(cluster, node, kind);

	if (!causes && takt_pick_level(cluster, node, kind) == TAKT_PLACE_REFUSE)
		causes = UINT32_C(1) << TAKT_FIT_POLICY;
	return causes;
}

enum takt_cluster_quick takt_fit_quick(const struct takt_request *request)
{
	if (!request->devices)
		return TAKT_QUICK_NO_DEVICE;
	if (request->dev_mem_mib || request->mig_profile || request->flags || !request->milli ||
	    request->only_devices)
		return TAKT_QUICK_NONE;
	if (request->devices > 1 && request->milli < TAKT_REQUEST_WHOLE)
		return TAKT_QUICK_NONE;
	return request->milli == TAKT_REQUEST_WHOLE ? TAKT_QUICK_WHOLE : TAKT_QUICK_FRACTION;
}

static bool devices_fit(const struct takt_cluster *cluster, const struct takt_node *node,
			const struct takt_cluster_kind *kind)
{
	const struct takt_request *request = &kind->request;
	bool model = !request->model_mask || request->model_mask >> node->model & 1;

	if (kind->quick == TAKT_QUICK_NO_DEVICE)
		return true;
	if (kind->quick == TAKT_QUICK_NONE || node->flags & (TAKT_NODE_MIXED | TAKT_NODE_DEV_MEM))
		return takt_fit_devices(cluster, node, request) != 0;
	if (kind->quick == TAKT_QUICK_WHOLE)
		return model && takt_bits(node->whole) >= request->devices;
	return model && node->most_left >= request->milli;
}

static bool host_fits(const struct takt_node *node, const struct takt_request *request)
{
	return request->cpu_milli <= node->cpu_left_milli &&
	       request->mem_mib <= node->mem_left_mib &&
	       !(node->flags & (TAKT_NODE_DRAINED | TAKT_NODE_REMOVED));
}

bool takt_fit(const struct takt_cluster *cluster, const struct takt_node *node, uint32_t kind)
{
	const struct takt_cluster_kind *at = &cluster->kinds.at[kind];
	const struct takt_request *request = &at->request;

	if (!host_fits(node, request) || !devices_fit(cluster, node, at))
		return false;
	if ((request->selector || cluster->tainted) &&
	    !takt_cluster_selects(cluster, request->selector, node->id))
		return false;
	return !request->max_per_node || below_limit(cluster, node, kind);
}

bool takt_fit_plain(const struct takt_cluster *cluster, const struct takt_node *node, uint32_t kind)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;

	return host_fits(node, request) &&
	       (!request->devices || takt_fit_devices(cluster, node, request)) &&
	       takt_cluster_selects(cluster, request->selector, node->id) &&
	       below_limit(cluster, node, kind);
}

static uint32_t room_by(int64_t left, int64_t each, uint32_t most)
{
	if (each <= 0)
		return most;
	return left / each < most ? (uint32_t)(left < 0 ? 0 : left / each) : most;
}

static uint32_t whole_room(const struct takt_cluster *cluster, const struct takt_node *node,
			   const struct takt_request *request, uint64_t mask)
{
	uint32_t room = 0;

	for (;;) {
		uint64_t group = on_one_numa(cluster, node, request, mask);

		group = of_one_model(node, group, request->devices);
		if (!group)
			return room;
		room += takt_bits(group) / request->devices;
		mask &= ~group;
	}
}

/* Tasks that one device has room for by itself. */
static uint32_t room_on(const struct takt_cluster *cluster, const struct takt_node *node,
			const struct takt_request *request, uint32_t i)
{
	const struct takt_device *device = &node->device[i];
	uint32_t milli, more;

	if (request->mig_profile)
		return takt_mig_room(cluster, device, request->mig_profile);
	milli = takt_fit_milli(request, device);
	more = milli_left(node, request, i) / milli;
	return room_by((int64_t)device->mem_mib - device->mem_held_mib,
		       takt_fit_dev_mem(request, device, milli), more);
}

/* Tasks that each take a share of several devices: so many that the devices, each used once a task
 * at most, are enough for. */
static uint32_t spread_room(const struct takt_cluster *cluster, const struct takt_node *node,
			    const struct takt_request *request, uint64_t mask)
{
	uint32_t room = 0, places;

	for (;; room++) {
		places = 0;
		for (uint64_t left = mask; left; left &= left - 1) {
			uint32_t on =
				room_on(cluster, node, request, (uint32_t)__builtin_ctzll(left));

			places += on < room + 1 ? on : room + 1;
		}
		if (places < (room + 1) * request->devices)
			return room;
	}
}

static uint32_t device_room(const struct takt_cluster *cluster, const struct takt_node *node,
			    const struct takt_request *request)
{
	uint64_t mask = takt_cluster_candidates(cluster, node, request);
	bool memory = request->dev_mem_mib || node->flags & TAKT_NODE_DEV_MEM;
	bool plain = left_says_all(request, memory);
	uint32_t room = 0;

	if (request->milli == TAKT_REQUEST_WHOLE)
		return whole_room(cluster, node, request, mask);
	if (request->devices > 1)
		return spread_room(cluster, node, request, mask);
	for (; plain && mask; mask &= mask - 1)
		room += node->left[__builtin_ctzll(mask)] / request->milli;
	for (; mask; mask &= mask - 1)
		room += room_on(cluster, node, request, (uint32_t)__builtin_ctzll(mask));
	return room;
}

uint32_t takt_fit_room(const struct takt_cluster *cluster, const struct takt_node *node,
		       uint32_t kind)
{
	const struct takt_request *request = &cluster->kinds.at[kind].request;
	uint32_t room = TAKT_CLUSTER_MAX_ROOM;
	const union takt_map_value *held;

	if (!takt_fit(cluster, node, kind))
		return 0;
	room = room_by(node->cpu_left_milli, request->cpu_milli, room);
	room = room_by(node->mem_left_mib, request->mem_mib, room);
	if (request->max_per_node) {
		held = takt_map_u64_get(&cluster->per_node, (uint64_t)kind << 32 | node->id);
		room = room_by((int64_t)request->max_per_node - (held ? (int64_t)held->u64 : 0), 1,
			       room);
	}
	if (request->devices) {
		uint32_t devices = device_room(cluster, node, request);

		room = devices < room ? devices : room;
	}
	return room;
}

/* Devices that whole tasks and fractions may use once nothing is held. */
static uint64_t never_cut(const struct takt_node *node, uint64_t mask)
{
	for (uint32_t i = 0; i < node->devices; i++)
		if (node->device[i].mig == TAKT_MIG_FIXED)
			mask &= ~(UINT64_C(1) << i);
	return mask;
}

uint32_t takt_fit_room_when_empty(const struct takt_cluster *cluster, const struct takt_node *node,
				  uint32_t kind)
{
	const struct takt_cluster_kind *at = &cluster->kinds.at[kind];
	const struct takt_request *request = &at->request;
	uint32_t room = TAKT_CLUSTER_MAX_ROOM;
	uint32_t devices;

	if (at->quick == TAKT_QUICK_NONE || request->max_per_node ||
	    node->flags & (TAKT_NODE_MIXED | TAKT_NODE_DRAINED | TAKT_NODE_REMOVED) ||
	    !takt_cluster_selects(cluster, request->selector, node->id))
		return 0;
	room = room_by(node->cpu_milli, request->cpu_milli, room);
	room = room_by(node->mem_mib, request->mem_mib, room);
	if (at->quick == TAKT_QUICK_NO_DEVICE)
		return room;
	devices = takt_bits(never_cut(node, matching(cluster, node, request) & node->usable));
	devices = at->quick == TAKT_QUICK_WHOLE ? devices / request->devices
						: devices * (TAKT_REQUEST_WHOLE / request->milli);
	return devices < room ? devices : room;
}
