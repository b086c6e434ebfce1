/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping GPUs for jobs that wait, against those that would be in their way.
 *
 * A job that is over before what is kept begins may use it; one that is not may use only the rest.
 * So before a job is looked at, exactly what it would be in the way of is taken in the cluster: of
 * the GPUs kept those that are free now, and of CPU and memory what the node could not give to
 * both.
 */
#include "sched/plan_state.h"

enum {
	CPU_STEP = 1000, /* milli; amounts are held as a multiple of it and a rest, */
	MEM_STEP = 1024, /* MiB; so that there are few kinds of holds */
	MIG_SLICES = 8,
};

static void hold(struct takt_planner *planner, const struct takt_request *request,
		 struct takt_slot slot)
{
	struct takt_plan_hold hold = {.slot = slot};
	int rc = takt_cluster_kind(planner->sched->cluster, request, &hold.kind, NULL);

	if (rc == 0)
		rc = takt_vec_reserve(&planner->holds, 1);
	if (rc == 0)
		rc = takt_cluster_take(planner->sched->cluster, hold.kind, &slot);
	if (rc == 0)
		planner->holds.at[planner->holds.len++] = hold;
	else
		takt_plan_fail(planner, rc);
}

/* A part of a GPU that has something of it left, at most milli and the memory that goes with it:
 * less where memory is held beyond its share. */
static void hold_part(struct takt_planner *planner, const struct takt_request *kept, uint32_t node,
		      uint32_t gpu, uint32_t milli)
{
	const struct takt_node *at = takt_cluster_node(planner->sched->cluster, node);
	const struct takt_device *device = &at->device[gpu];
	uint32_t left = at->left[gpu] < milli ? at->left[gpu] : milli;
	uint32_t mem_left = device->mem_mib - device->mem_held_mib;
	uint32_t share = (uint32_t)((uint64_t)device->mem_mib * left / TAKT_REQUEST_WHOLE);
	uint32_t mem = milli < TAKT_REQUEST_WHOLE && kept->dev_mem_mib ? kept->dev_mem_mib : share;
	struct takt_request request = {.devices = 1, .milli = (uint16_t)left};

	if (mem > mem_left)
		mem = mem_left;
	request.dev_mem_mib = mem == share ? 0 : mem;
	if (left == 0 || left == TAKT_REQUEST_WHOLE || (device->mem_mib > 0 && mem == 0))
		return;
	hold(planner, &request,
	     (struct takt_slot){
		     .node = node, .milli = (uint16_t)left, .dev_mask = UINT64_C(1) << gpu});
}

/* The smallest instance of a device; false if it has none. */
static bool smallest_instance(const struct takt_cluster *cluster, uint32_t model,
			      struct takt_request *ret)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t profile = 1; profile <= TAKT_SCHED_MAX_PROFILES; profile++) {
		uint32_t size = takt_cluster_mig_size(cluster, model, (uint8_t)profile);

		if (size == 0 || size >= least)
			continue;
		least = size;
		*ret = (struct takt_request){.devices = 1, .mig_profile = (uint8_t)profile};
	}
	return least != UINT32_MAX;
}

/* Those of n memory slices of a cut GPU that are free. What cannot be held, as nothing starts
 * there, nobody else can have either. */
static void hold_slices(struct takt_planner *planner, uint32_t node, uint32_t gpu, uint32_t start,
			uint32_t n)
{
	struct takt_cluster *cluster = planner->sched->cluster;
	uint32_t model = takt_cluster_node(cluster, node)->device[gpu].model;
	struct takt_plan_hold part = {.slot = {.node = node, .dev_mask = UINT64_C(1) << gpu}};
	struct takt_request slice;

	if (!smallest_instance(cluster, model, &slice) ||
	    takt_cluster_kind(cluster, &slice, &part.kind, NULL) < 0)
		return;
	for (uint32_t i = start; i < start + n; i++) {
		part.slot.mig_start = (uint8_t)i;
		if (takt_cluster_take(cluster, part.kind, &part.slot) == 0)
			takt_plan_fail(planner, takt_vec_push(&planner->holds, part));
	}
}

/* An instance as a whole, or what is free of it. */
static void hold_instance(struct takt_planner *planner, const struct takt_request *kept,
			  const struct takt_slot *slot)
{
	struct takt_cluster *cluster = planner->sched->cluster;
	struct takt_request request = {.devices = 1, .mig_profile = kept->mig_profile};
	struct takt_plan_hold part = {.slot = *slot};
	uint32_t gpu = (uint32_t)__builtin_ctzll(slot->dev_mask);
	uint32_t model = takt_cluster_node(cluster, slot->node)->device[gpu].model;

	if (takt_cluster_kind(cluster, &request, &part.kind, NULL) == 0 &&
	    takt_cluster_take(cluster, part.kind, &part.slot) == 0)
		takt_plan_fail(planner, takt_vec_push(&planner->holds, part));
	else
		hold_slices(planner, slot->node, gpu, slot->mig_start,
			    takt_cluster_mig_size(cluster, model, kept->mig_profile));
}

/* A part of each GPU of `mask` that is as large as what is left of it, at most milli. */
static void hold_gpus(struct takt_planner *planner, const struct takt_request *kept, uint32_t node,
		      uint64_t mask, uint32_t milli)
{
	const struct takt_node *at = takt_cluster_node(planner->sched->cluster, node);
	uint64_t whole = milli == TAKT_REQUEST_WHOLE ? mask & at->whole : 0;
	struct takt_request request = {.devices = (uint16_t)takt_sched_count(whole),
				       .milli = TAKT_REQUEST_WHOLE};

	if (whole)
		hold(planner, &request,
		     (struct takt_slot){
			     .node = node, .milli = TAKT_REQUEST_WHOLE, .dev_mask = whole});
	for (mask &= ~whole; mask; mask &= mask - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(mask);

		if (at->device[gpu].mig_busy)
			hold_slices(planner, node, gpu, 0, MIG_SLICES);
		else
			hold_part(planner, kept, node, gpu, milli);
	}
}

static void hold_cpu(struct takt_planner *planner, uint32_t node, int64_t milli)
{
	struct takt_request request = {.cpu_milli = (int32_t)(milli / CPU_STEP * CPU_STEP)};

	if (request.cpu_milli > 0)
		hold(planner, &request, (struct takt_slot){.node = node});
	request.cpu_milli = (int32_t)(milli % CPU_STEP);
	if (request.cpu_milli > 0)
		hold(planner, &request, (struct takt_slot){.node = node});
}

static void hold_mem(struct takt_planner *planner, uint32_t node, int64_t mib)
{
	struct takt_request request = {.mem_mib = mib / MEM_STEP * MEM_STEP};

	if (request.mem_mib > 0)
		hold(planner, &request, (struct takt_slot){.node = node});
	request.mem_mib = mib % MEM_STEP;
	if (request.mem_mib > 0)
		hold(planner, &request, (struct takt_slot){.node = node});
}

static void hold_slot(struct takt_planner *planner, const struct takt_plan_kept *kept, uint32_t i,
		      uint64_t own)
{
	const struct takt_slot *slot = &kept->slots[i];
	const struct takt_plan_spare *spare = &kept->spare[i];
	const struct takt_node *node = takt_cluster_node(planner->sched->cluster, slot->node);
	uint32_t milli = slot->milli ? slot->milli : TAKT_REQUEST_WHOLE;
	/* A copy: what is held may be of a new kind, and then the kinds move. */
	struct takt_request request =
		*takt_cluster_request(planner->sched->cluster, kept->entry->kind);

	if (slot->dev_mask && !(slot->dev_mask & ~own))
		return;
	if (request.mig_profile && node->device[__builtin_ctzll(slot->dev_mask)].held == 0)
		hold_instance(planner, &request, slot);
	else
		hold_gpus(planner, &request, slot->node, slot->dev_mask & ~own, milli);
	hold_cpu(planner, slot->node, node->cpu_left_milli - spare->cpu_milli);
	hold_mem(planner, slot->node, node->mem_left_mib - spare->mem_mib);
}

void takt_plan_hold(struct takt_planner *planner, const struct takt_plan_kept *kept,
		    const struct takt_sched_entry *entry)
{
	for (uint32_t i = 0; i < kept->slot_count; i++)
		hold_slot(planner, kept, i,
			  entry ? takt_plan_own(planner, &entry->job, kept->slots[i].node) : 0);
}

void takt_plan_release_to(struct takt_planner *planner, size_t holds)
{
	while (planner->holds.len > holds) {
		const struct takt_plan_hold *last = &planner->holds.at[--planner->holds.len];

		(void)takt_cluster_give(planner->sched->cluster, last->kind, &last->slot);
	}
}

void takt_plan_hold_nothing(struct takt_planner *planner)
{
	takt_plan_release_to(planner, 0);
	TAKT_VEC_EACH (kept, &planner->kept)
		kept->held = false;
}

bool takt_plan_is_in_way(const struct takt_plan_kept *kept, uint64_t end_ns)
{
	return kept->start_ns == UINT64_MAX || kept->start_ns < end_ns;
}

uint32_t takt_plan_hold_for(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	uint64_t end_ns = takt_plan_end_if_started(planner, entry, planner->now_ns);
	bool same = planner->sched->windows.len == 0; /* else each job may have its own */
	uint32_t n = 0;

	TAKT_VEC_EACH (kept, &planner->kept) {
		same = same && kept->held == takt_plan_is_in_way(kept, end_ns);
		n += takt_plan_is_in_way(kept, end_ns);
	}
	if (same)
		return n;
	takt_plan_hold_nothing(planner);
	TAKT_VEC_EACH (kept, &planner->kept) {
		if (!takt_plan_is_in_way(kept, end_ns))
			continue;
		kept->held = true;
		takt_plan_hold(planner, kept, entry);
	}
	return n;
}
