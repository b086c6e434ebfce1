/* SPDX-License-Identifier: Apache-2.0 */
#include "twin_counters.h"

#include "twin_physics.h"

static void add(struct twin_counters *counters, const struct twin_counters *permille, uint64_t ns)
{
	counters->busy += permille->busy * ns;
	counters->memory += permille->memory * ns;
	counters->link += permille->link * ns;
	counters->tensor += permille->tensor * ns;
}

/* Permille of the GPU that a load uses now. */
static struct twin_counters usage(const struct twin_gpu *gpu, const struct twin_load *load,
				  const struct twin_phase *phase)
{
	uint64_t part = (uint64_t)twin_physics_part(gpu, load) * gpu->now_share / 1000;
	bool sends = phase->kind == TWIN_PHASE_COMMUNICATION;

	return (struct twin_counters){
		.busy = phase->util * part / 1000,
		.memory = phase->memory_util * part / 1000,
		.link = sends ? load->link_permille * part / 1000 : 0,
		.tensor = phase->tensor * part / 1000,
	};
}

void twin_counters_book(struct twin_gpu *gpu, uint64_t ns)
{
	struct twin_counters all = {.busy = gpu->now_util, .memory = gpu->now_memory_util};

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		struct twin_load *load = &gpu->loads[i];
		const struct twin_phase *phase = twin_physics_phase(gpu, load);
		struct twin_counters own;
		if (load->memory_bytes > load->max_memory_bytes)
			load->max_memory_bytes = load->memory_bytes;
		if (!phase)
			continue;
		own = usage(gpu, load, phase);
		all.link += own.link;
		all.tensor += own.tensor;
		add(&load->used, &own, ns);
		if (load->in_instance)
			add(&gpu->instance_counters[load->gpu_instance % TWIN_MIG_SLICES], &own,
			    ns);
	}
	all.link = all.link < 1000 ? all.link : 1000;
	all.tensor = all.tensor < 1000 ? all.tensor : 1000;
	add(&gpu->counters, &all, ns);
}

struct twin_counters twin_counters_since(const struct twin_counters *now,
					 const struct twin_counters *then)
{
	return (struct twin_counters){
		.busy = now->busy - then->busy,
		.memory = now->memory - then->memory,
		.link = now->link - then->link,
		.tensor = now->tensor - then->tensor,
	};
}

void twin_account_of(const struct twin_gpu *gpu, const struct twin_load *load,
		     struct twin_account *ret)
{
	uint64_t end_ns = load->gone_ns ? load->gone_ns : gpu->at_ns;
	uint64_t life_ns = end_ns > load->started_ns ? end_ns - load->started_ns : 1;

	*ret = (struct twin_account){
		.pid = load->pid,
		.busy_permille = (uint16_t)(load->used.busy / life_ns),
		.memory_permille = (uint16_t)(load->used.memory / life_ns),
		.max_memory_bytes = load->max_memory_bytes > load->memory_bytes
					    ? load->max_memory_bytes
					    : load->memory_bytes,
		.started_ns = load->started_ns,
		.ended_ns = load->gone_ns,
	};
}

void twin_account_end(struct twin_gpu *gpu, const struct twin_load *load)
{
	if (load->accounted)
		twin_account_of(gpu, load, &gpu->accounts[gpu->account_count++ % TWIN_ACCOUNTS]);
}

/* Permille times nanoseconds times MB/s: a millionth of a byte. */
uint64_t twin_link_bytes(const struct twin_gpu *gpu, const struct twin_board *board)
{
	return gpu->counters.link / 1000 * board->nvlink_mbps / 1000;
}
