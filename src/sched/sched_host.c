/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and the masks that say what each of their GPUs is. */
#include "base/mem.h"
#include "sched/sched_state.h"

size_t takt_sched_host_place(const struct takt_sched *sched, uint32_t id)
{
	size_t low = 0;
	size_t high = sched->hosts.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sched->hosts.at[mid]->id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct takt_sched_host *takt_sched_host_find(const struct takt_sched *sched, uint32_t id)
{
	size_t i = takt_sched_host_place(sched, id);

	if (i < sched->hosts.len && sched->hosts.at[i]->id == id)
		return sched->hosts.at[i];
	return NULL;
}

void takt_sched_host_free(struct takt_sched_host *host)
{
	if (!host)
		return;
	takt_free(host->pair_score);
	takt_free(host->gpu_job);
	takt_free(host);
}

uint64_t takt_sched_host_eligible(const struct takt_sched_host *host, uint32_t flags)
{
	uint64_t mask = takt_sched_low_bits(host->gpu_count) & ~(host->quarantined | host->lost);

	return flags & TAKT_JOB_USE_OUTSIDE ? mask : mask & ~host->outside;
}

uint64_t takt_sched_host_free_gpus(const struct takt_sched_host *host, uint32_t flags)
{
	return takt_sched_host_eligible(host, flags) &
	       ~(host->assigned | host->running | host->draining | host->taken);
}

enum takt_gpu_state takt_sched_host_gpu_state(const struct takt_sched_host *host, uint32_t gpu)
{
	uint64_t bit = UINT64_C(1) << gpu;

	if (host->lost & bit)
		return TAKT_GPU_LOST;
	if (host->quarantined & bit)
		return TAKT_GPU_QUARANTINED;
	if (host->assigned & bit)
		return TAKT_GPU_ASSIGNED;
	if (host->running & bit)
		return TAKT_GPU_RUNNING;
	return host->draining & bit ? TAKT_GPU_DRAINING : TAKT_GPU_FREE;
}

void takt_sched_host_drain(struct takt_sched_host *host, uint64_t mask)
{
	host->assigned &= ~mask;
	host->running &= ~mask;
	if (!host->removed) {
		host->draining |= mask;
		return;
	}
	for (uint32_t gpu = 0; gpu < host->gpu_count; gpu++)
		if (mask >> gpu & 1)
			host->gpu_job[gpu] = 0;
}
