/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounting: what each process has used of a GPU over its life. Of ended processes the twin
 * remembers fewer than a driver's buffer holds.
 */
#include <string.h>

#include "nvml_entry.h"
#include "twin_counters.h"

enum {
	BUFFER = 4000 /* what drivers answer; TWIN_ACCOUNTS are kept */
};

int nvmlDeviceGetAccountingMode(struct nvml_device *device, uint32_t *mode)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, mode, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*mode = gpu.accounting;
	return rc;
}

int nvmlDeviceGetAccountingBufferSize(struct nvml_device *device, uint32_t *size)
{
	struct twin_call call;
	int rc = twin_enter_out(device, size, &call);

	if (rc == NVML_SUCCESS)
		*size = BUFFER;
	return rc;
}

/* Of processes that begin from now on. */
static int set_mode(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t mode = *(const uint32_t *)arg;

	if (mode > NVML_FEATURE_ENABLED)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->accounting = mode;
	return NVML_SUCCESS;
}

int nvmlDeviceSetAccountingMode(struct nvml_device *device, uint32_t mode)
{
	return twin_set(device, set_mode, &mode, false);
}

static int forget_ended(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	gpu->account_count = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceClearAccountingPids(struct nvml_device *device)
{
	return twin_set(device, forget_ended, NULL, false);
}

/* There is nothing to be told while the mode is off. */
static int enter_accounted(struct nvml_device *device, const void *out, struct twin_call *ret,
			   struct twin_gpu *ret_gpu)
{
	int rc = twin_enter_read(device, out, ret, ret_gpu);

	return rc == NVML_SUCCESS && !ret_gpu->accounting ? NVML_ERROR_NOT_SUPPORTED : rc;
}

/* All that are known: those that are still in the list of loads, then the ended, newest first. */
static uint32_t accounts_of(const struct twin_gpu *gpu,
			    struct twin_account ret[TWIN_MAX_LOADS + TWIN_ACCOUNTS])
{
	uint64_t kept = gpu->account_count < TWIN_ACCOUNTS ? gpu->account_count : TWIN_ACCOUNTS;
	uint32_t n = 0;

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		if (gpu->loads[i].pid && gpu->loads[i].accounted)
			twin_account_of(gpu, &gpu->loads[i], &ret[n++]);
	}
	for (uint64_t i = 1; i <= kept; i++)
		ret[n++] = gpu->accounts[(gpu->account_count - i) % TWIN_ACCOUNTS];
	return n;
}

int nvmlDeviceGetAccountingPids(struct nvml_device *device, uint32_t *count, uint32_t *pids)
{
	struct twin_account accounts[TWIN_MAX_LOADS + TWIN_ACCOUNTS];
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_accounted(device, count, &call, &gpu);

	if (rc != NVML_SUCCESS || !twin_room_for(count, accounts_of(&gpu, accounts), pids, &rc))
		return rc;
	for (uint32_t i = 0; i < *count; i++)
		pids[i] = (uint32_t)accounts[i].pid;
	return rc;
}

int nvmlDeviceGetAccountingStats_v2(struct nvml_device *device,
				    struct nvml_accounting_stats_v2 *stats)
{
	struct twin_account accounts[TWIN_MAX_LOADS + TWIN_ACCOUNTS], *found = accounts;
	struct twin_call call;
	struct twin_gpu gpu;
	uint64_t life_ns;
	uint32_t n;
	int rc = enter_accounted(device, stats, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	n = accounts_of(&gpu, accounts);
	while (found < accounts + n && (uint32_t)found->pid != stats->pid)
		found++;
	if (found == accounts + n)
		return NVML_ERROR_NOT_FOUND;
	life_ns = (found->ended_ns ? found->ended_ns : gpu.at_ns) - found->started_ns;
	*stats = (struct nvml_accounting_stats_v2){
		.pid = (uint32_t)found->pid,
		.running = found->ended_ns == 0,
		.gpu = (found->busy_permille + 5u) / 10,
		.memory = (found->memory_permille + 5u) / 10,
		.max_memory = found->max_memory_bytes,
		.sample_count = (uint32_t)(life_ns / TWIN_CELL_NS),
		.time_ms = found->ended_ns ? life_ns / 1000000 : 0,
		.start_us = twin_stamp_us(call.map, found->started_ns),
	};
	stats->sum_gpu = (uint64_t)stats->sample_count * found->busy_permille / 10;
	stats->sum_memory = (uint64_t)stats->sample_count * found->memory_permille / 10;
	return NVML_SUCCESS;
}

int nvmlDeviceGetAccountingStats(struct nvml_device *device, uint32_t pid,
				 struct nvml_accounting_stats *stats)
{
	struct nvml_accounting_stats_v2 now = {.pid = pid};
	int rc = nvmlDeviceGetAccountingStats_v2(device, stats ? &now : NULL);

	if (rc != NVML_SUCCESS)
		return rc;
	*stats = (struct nvml_accounting_stats){
		.gpu = now.gpu,
		.memory = now.memory,
		.max_memory = now.max_memory,
		.time_ms = now.time_ms,
		.start_us = now.start_us,
		.running = now.running,
	};
	return NVML_SUCCESS;
}
