/* SPDX-License-Identifier: Apache-2.0 */
/* The naive second opinion: see the header. What happens is in planner_events.c. */
#include "planner_world.h"

#include <string.h>

static uint32_t bits(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

struct world_job *world_find(struct planner_world *world, uint64_t id)
{
	for (uint32_t i = 0; i < WORLD_JOBS; i++)
		if (world->jobs[i].phase != WORLD_ABSENT && world->jobs[i].job.id == id)
			return &world->jobs[i];
	return NULL;
}

uint32_t world_tasks(const struct takt_sched_job *job)
{
	return job->tasks ? job->tasks : 1;
}

uint32_t world_least(const struct takt_sched_job *job)
{
	return job->min_tasks ? job->min_tasks : world_tasks(job);
}

uint64_t world_length_ns(const struct takt_sched_job *job)
{
	return job->estimate_ns ? job->estimate_ns : UINT64_MAX;
}

uint64_t world_domain(const struct planner_world *world, uint32_t node, uint32_t level)
{
	const uint32_t *domain = world->nodes[node].node.domain;

	if (level == 0 || domain[level - 1] == 0)
		return 1000 + node;
	return level == 1 ? domain[0] : domain[0] * 100 + domain[1];
}

static const struct takt_sched_profile *profile_of(const struct planner_world *world,
						   const struct takt_sched_job *job)
{
	return &world->models[1].profiles[job->task.mig_profile - 1];
}

uint64_t world_charge(const struct planner_world *world, const struct takt_sched_job *job)
{
	uint64_t most = world->models[1].mem_mib;

	if (job->task.mig_profile)
		return profile_of(world, job)->slices * 1000u / 7;
	if (job->gpus == 0 || job->task.milli)
		return (uint64_t)job->gpus * job->task.milli;
	if (job->gpus > 1 || job->task.dev_mem_mib == 0)
		return job->gpus * UINT64_C(1000);
	return (UINT64_C(1000) * job->task.dev_mem_mib + most - 1) / most;
}

uint32_t world_milli(const struct planner_world *world, const struct takt_sched_job *job,
		     uint32_t node)
{
	uint32_t ask = job->task.dev_mem_mib;
	uint32_t mem = world->nodes[node].node.dev_mem_mib;

	if (job->gpus == 0 || job->task.mig_profile)
		return 0;
	if (job->task.milli)
		return job->task.milli;
	if (!ask || job->gpus > 1)
		return 1000;
	return ask > mem ? 1001 : (uint32_t)((UINT64_C(1000) * ask + mem - 1) / mem);
}

/* GPU memory that a task of so many milli holds. */
static uint64_t memory_of(const struct takt_sched_job *job, uint32_t mem, uint32_t milli)
{
	if (milli < 1000 && job->task.dev_mem_mib)
		return job->task.dev_mem_mib;
	return (uint64_t)mem * milli / 1000;
}

static bool has(const uint32_t *list, uint32_t n, uint32_t what)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == what)
			return true;
	return false;
}

static bool selects(const struct planner_world *world, const struct takt_sched_job *job,
		    const struct takt_sched_node *node)
{
	const struct takt_sched_selector *selector =
		job->task.selector ? &world->selectors[job->task.selector - 1] : NULL;

	for (uint32_t i = 0; i < node->taint_count; i++)
		if (!selector ||
		    !has(selector->tolerate, selector->tolerate_count, node->taints[i]))
			return false;
	for (uint32_t i = 0; selector && i < selector->all_count; i++)
		if (!has(node->labels, node->label_count, selector->all[i]))
			return false;
	return true;
}

/* Whether the node could take such a task at all, whatever is held. */
static bool suits(const struct planner_world *world, const struct takt_sched_job *job, uint32_t n)
{
	const struct takt_sched_node *node = &world->nodes[n].node;

	if (!world->nodes[n].present || !selects(world, job, node))
		return false;
	if (job->task.cpu_milli > node->cpu_milli || job->task.mem_mib > node->mem_mib)
		return false;
	if (job->gpus == 0)
		return true;
	if (job->task.model_mask && !(job->task.model_mask >> node->model & 1))
		return false;
	return job->task.dev_mem_mib <= node->dev_mem_mib;
}

/* Two sockets, half of the GPUs on each. */
static uint64_t socket_of(const struct takt_sched_node *node, uint32_t at)
{
	uint32_t half = node->gpu_count / 2;

	return at == 0 ? (UINT64_C(1) << half) - 1
		       : ((UINT64_C(1) << node->gpu_count) - 1) & ~((UINT64_C(1) << half) - 1);
}

static bool on_one_socket(const struct takt_sched_node *node, uint64_t mask)
{
	return (mask & ~socket_of(node, 0)) == 0 || (mask & ~socket_of(node, 1)) == 0;
}

static bool hold_instance(const struct planner_world *world, const struct takt_sched_job *job,
			  const struct takt_sched_slot *slot, struct world_gpu_use *gpu)
{
	const struct takt_sched_profile *profile = profile_of(world, job);
	uint32_t slices = ((1u << profile->size) - 1) << slot->mig_start;

	if (gpu->milli || gpu->mig & slices || slot->mig_start % profile->size ||
	    slot->mig_start + profile->slices > 7 || slices > 0xff)
		return false;
	gpu->mig |= slices;
	return ++gpu->of[job->task.mig_profile] <= profile->max;
}

static bool hold_share(const struct takt_sched_job *job, uint32_t mem, uint32_t milli,
		       struct world_gpu_use *gpu)
{
	gpu->milli += milli;
	gpu->mem_mib += memory_of(job, mem, milli);
	return !gpu->mig && gpu->milli <= 1000 && gpu->mem_mib <= mem;
}

static uint32_t number_of(const struct planner_world *world, uint32_t node_id)
{
	for (uint32_t n = 0; n < WORLD_NODES; n++)
		if (world->nodes[n].node.id == node_id)
			return n;
	return WORLD_NODES;
}

bool world_hold(const struct planner_world *world, const struct takt_sched_job *job,
		const struct takt_sched_slot *slot, struct world_use *use)
{
	uint32_t n = number_of(world, slot->node_id);
	const struct takt_sched_node *node = &world->nodes[n].node;
	struct world_node_use *at = &use->node[n];
	uint32_t milli = world_milli(world, job, n);

	if (n == WORLD_NODES || !suits(world, job, n) || bits(slot->gpu_mask) != job->gpus ||
	    slot->gpu_mask >> node->gpu_count)
		return false;
	if (job->task.flags & TAKT_REQUEST_ONE_NUMA && !on_one_socket(node, slot->gpu_mask))
		return false;
	at->cpu_milli += job->task.cpu_milli;
	at->mem_mib += job->task.mem_mib;
	if (at->cpu_milli > node->cpu_milli || at->mem_mib > node->mem_mib)
		return false;
	for (uint64_t left = slot->gpu_mask; left; left &= left - 1) {
		struct world_gpu_use *gpu = &at->gpu[__builtin_ctzll(left)];

		if (job->task.mig_profile ? !(node->mig_mask & left & -left) ||
						    !hold_instance(world, job, slot, gpu)
					  : !hold_share(job, node->dev_mem_mib, milli, gpu))
			return false;
	}
	return true;
}

bool world_held(const struct planner_world *world, const bool gone[WORLD_JOBS],
		struct world_use *use)
{
	memset(use, 0, sizeof(*use));
	for (uint32_t i = 0; i < WORLD_JOBS; i++) {
		const struct world_job *job = &world->jobs[i];

		if (job->phase != WORLD_RUNS || (gone && gone[i]))
			continue;
		for (uint32_t task = 0; task < job->count; task++)
			if (!world_hold(world, &job->job, &job->slots[task], use))
				return false;
	}
	return true;
}

static uint32_t instances(const struct takt_sched_profile *profile, const struct world_gpu_use *gpu,
			  uint32_t of)
{
	uint32_t busy = gpu->mig;
	uint32_t n = 0;

	for (uint32_t start = 0; start + profile->slices <= 7; start += profile->size) {
		uint32_t slices = ((1u << profile->size) - 1) << start;

		if (busy & slices || gpu->of[of] + n >= profile->max)
			continue;
		busy |= slices;
		n++;
	}
	return gpu->milli ? 0 : n;
}

/* Tasks that share of one GPU. */
static uint32_t shares(const struct takt_sched_job *job, uint32_t mem, uint32_t milli,
		       const struct world_gpu_use *gpu)
{
	uint64_t each = memory_of(job, mem, milli);
	uint32_t n = 0;

	while (!gpu->mig && gpu->milli + (n + 1) * milli <= 1000 &&
	       gpu->mem_mib + (n + 1) * each <= mem)
		n++;
	return n;
}

static uint32_t gpu_room(const struct planner_world *world, const struct takt_sched_job *job,
			 uint32_t n, const struct world_node_use *use, uint64_t usable)
{
	const struct takt_sched_node *node = &world->nodes[n].node;
	uint32_t milli = world_milli(world, job, n);
	uint64_t whole = 0;
	uint32_t room = 0;

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		const struct world_gpu_use *gpu = &use->gpu[i];

		if (!(usable >> i & 1))
			continue;
		if (job->task.mig_profile)
			room += node->mig_mask >> i & 1 ? instances(profile_of(world, job), gpu,
								    job->task.mig_profile)
							: 0;
		else if (milli == 1000)
			whole |= (uint64_t)(!gpu->milli && !gpu->mig) << i;
		else
			room += shares(job, node->dev_mem_mib, milli, gpu);
	}
	if (milli != 1000)
		return room;
	if (!(job->task.flags & TAKT_REQUEST_ONE_NUMA))
		return bits(whole) / job->gpus;
	return bits(whole & socket_of(node, 0)) / job->gpus +
	       bits(whole & socket_of(node, 1)) / job->gpus;
}

static uint32_t at_most(uint32_t room, int64_t left, int64_t each)
{
	return each > 0 && left / each < room ? (uint32_t)(left / each) : room;
}

bool world_same_kind(const struct takt_sched_job *a, const struct takt_sched_job *b)
{
	return a->gpus == b->gpus && memcmp(&a->task, &b->task, sizeof(a->task)) == 0;
}

uint32_t world_alike(const struct planner_world *world, const struct takt_sched_job *job,
		     uint32_t node, const bool gone[WORLD_JOBS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < WORLD_JOBS; i++) {
		const struct world_job *other = &world->jobs[i];

		if (other->phase != WORLD_RUNS || (gone && gone[i]) ||
		    !world_same_kind(&other->job, job))
			continue;
		for (uint32_t task = 0; task < other->count; task++)
			n += other->slots[task].node_id == world->nodes[node].node.id;
	}
	return n;
}

uint32_t world_room(const struct planner_world *world, const struct takt_sched_job *job,
		    uint32_t node, const struct world_use *use, bool empty)
{
	static const struct world_node_use nothing;
	const struct world_node *at = &world->nodes[node];
	const struct world_node_use *held = empty ? &nothing : &use->node[node];
	uint64_t usable = empty ? UINT64_MAX : ~(at->sick | at->draining);
	uint32_t room = 64;

	if (!suits(world, job, node) || (!empty && at->cordoned))
		return 0;
	room = at_most(room, at->node.cpu_milli - held->cpu_milli, job->task.cpu_milli);
	room = at_most(room, at->node.mem_mib - held->mem_mib, job->task.mem_mib);
	if (job->task.max_per_node && room > job->task.max_per_node)
		room = job->task.max_per_node;
	if (job->gpus) {
		uint32_t gpus = gpu_room(world, job, node, held, usable);

		room = gpus < room ? gpus : room;
	}
	return room;
}

/* Tenants have one parent at the most. */
static bool is_of(const struct planner_world *world, uint32_t tenant, uint32_t window_tenant)
{
	for (uint32_t i = 0; i < WORLD_TENANTS; i++)
		if (tenant && world->tenants[i].id == tenant &&
		    world->tenants[i].parent == window_tenant)
			return true;
	return tenant == window_tenant;
}

bool world_outside_windows(const struct planner_world *world, const struct takt_sched_job *job,
			   uint32_t node)
{
	uint64_t length = world_length_ns(job);
	uint64_t end = length == UINT64_MAX ? UINT64_MAX : world->now_ns + length;

	for (uint32_t i = 0; i < WORLD_WINDOWS; i++) {
		const struct takt_sched_window *window = &world->windows[i].window;
		bool own = (window->tenant && is_of(world, job->tenant, window->tenant)) ||
			   (window->job && window->job == job->id);

		if (window->id == 0 || own || window->start_ns >= end ||
		    window->end_ns <= world->now_ns)
			continue;
		if (has(window->nodes, window->node_count, world->nodes[node].node.id))
			return false;
	}
	return true;
}
