/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs on a GPU, how much memory is taken, and how busy it is. */
#include <string.h>

#include "nvml_entry.h"

#define MIB 1048576ull

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_uncut(device, utilization, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	utilization->gpu = twin_physics_util_percent(&gpu);
	utilization->memory = twin_physics_memory_util_percent(&gpu);
	return NVML_SUCCESS;
}

/* Total = reserved + used + free. Registering a load never takes more than there is. */
static struct nvml_memory_v2 memory_of(const struct twin_call *call, const struct twin_gpu *gpu)
{
	const struct twin_board *board = call->board;
	struct nvml_memory_v2 memory = {
		.total = board->memory_mib * MIB,
		.reserved = board->reserved_mib * MIB,
		.used = twin_physics_memory_used(gpu),
	};

	if (call->is_mig) {
		memory.total = call->mig.profile->memory_mib * MIB;
		memory.reserved = 0;
		memory.used = twin_mig_memory_used(gpu, call->mig.start);
	}

	memory.free = memory.total - memory.reserved - memory.used;
	return memory;
}

/* The first form counts the reserved part as used. */
int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	struct nvml_memory_v2 now;
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, memory, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	now = memory_of(&call, &gpu);
	memory->total = now.total;
	memory->used = now.used + now.reserved;
	memory->free = now.free;
	return NVML_SUCCESS;
}

/* A wrong version word is "function not found" here, as the real driver answers; later functions
 * say "version mismatch". Programs fall back to the first form on it. */
int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t version;
	int rc = twin_enter_any(device, memory, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	version = memory->version;
	if (version != NVML_MEMORY_V2_WORD)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	*memory = memory_of(&call, &gpu);
	memory->version = version;
	return NVML_SUCCESS;
}

int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1_memory *memory)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, memory, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	memory->total = call.board->bar1_mib * MIB;
	memory->used = MIB;
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

int nvmlDeviceGetConfComputeProtectedMemoryUsage(struct nvml_device *device,
						 struct nvml_memory *memory)
{
	struct twin_call call;
	int rc = twin_enter_out(device, memory, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_CONF_COMPUTE))
		return NVML_ERROR_NOT_SUPPORTED;
	memset(memory, 0, sizeof(*memory));
	return NVML_SUCCESS;
}

/* Lives, and where the call looks: on the GPU, or in the compute instance. */
static bool listed(const struct twin_call *call, const struct twin_load *load)
{
	if (!twin_load_alive(load))
		return false;
	return !call->is_mig || (load->in_instance && load->gpu_instance == call->mig.start &&
				 load->compute_instance == call->mig.compute_start);
}

static uint32_t living(const struct twin_call *call, const struct twin_gpu *gpu)
{
	uint32_t n = 0;

	for (uint64_t i = 0; i < gpu->load_count; i++)
		n += listed(call, &gpu->loads[i]);
	return n;
}

/* First entry at or after *at that is listed; advances *at past it. */
static const struct twin_load *next_living(const struct twin_call *call, const struct twin_gpu *gpu,
					   uint64_t *at)
{
	while (!listed(call, &gpu->loads[*at]))
		++*at;
	return &gpu->loads[(*at)++];
}

/* Ids of the instances that a process runs in. */
static void tell_instance(const struct twin_board *board, const struct twin_gpu *gpu,
			  const struct twin_load *load, uint32_t *id, uint32_t *compute_id)
{
	uint32_t start = load->gpu_instance;

	*id = *compute_id = NVML_NO_VALUE_U32;
	if (!load->in_instance)
		return;
	*id = twin_mig_id(twin_mig_profile(gpu, board, start), start);
	*compute_id = gpu->instances[start].compute[load->compute_instance].id;
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *count,
					 struct nvml_process_info_v1 *infos)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint64_t at = 0;
	int rc = twin_enter_any(device, count, &call, &gpu);

	if (rc != NVML_SUCCESS || !twin_room_for(count, living(&call, &gpu), infos, &rc))
		return rc;
	for (uint32_t i = 0; i < *count; i++) {
		const struct twin_load *load = next_living(&call, &gpu, &at);
		infos[i].pid = (uint32_t)load->pid;
		infos[i].used_memory = load->memory_bytes;
	}
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
					    struct nvml_process_info *infos)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint64_t at = 0;
	int rc = twin_enter_any(device, count, &call, &gpu);

	if (rc != NVML_SUCCESS || !twin_room_for(count, living(&call, &gpu), infos, &rc))
		return rc;
	for (uint32_t i = 0; i < *count; i++) {
		const struct twin_load *load = next_living(&call, &gpu, &at);
		infos[i] = (struct nvml_process_info){
			.pid = (uint32_t)load->pid,
			.used_memory = load->memory_bytes,
		};
		tell_instance(call.board, &gpu, load, &infos[i].gpu_instance_id,
			      &infos[i].compute_instance_id);
	}
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, uint32_t *count,
					    struct nvml_process_info *infos)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

enum {
	LIST_COMPUTE = 0,
	LIST_MPS = 2
};

/* One list by mode; entries of 32 bytes. Without room it says how many there are. */
int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
					  struct nvml_process_detail_list *list)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint64_t at = 0;
	int rc = twin_enter_any(device, list, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (list->version != NVML_PROCESS_DETAIL_LIST_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (list->mode > LIST_MPS)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!twin_room_for(&list->count, list->mode == LIST_COMPUTE ? living(&call, &gpu) : 0,
			   list->entries, &rc))
		return rc;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct twin_load *load = next_living(&call, &gpu, &at);
		list->entries[i] = (struct nvml_process_detail){
			.pid = (uint32_t)load->pid,
			.used_memory = load->memory_bytes,
		};
		tell_instance(call.board, &gpu, load, &list->entries[i].gpu_instance_id,
			      &list->entries[i].compute_instance_id);
	}
	return NVML_SUCCESS;
}

/* No workload of the twin draws, or runs below an MPS server. */
static int empty_list(struct nvml_device *device, uint32_t *count)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, count, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*count = 0;
	return rc;
}

#define EMPTY_LIST(function, type)                                             \
	int function(struct nvml_device *device, uint32_t *count, type *infos) \
	{                                                                      \
		return empty_list(device, count);                              \
	}

EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses, struct nvml_process_info_v1)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, struct nvml_process_info)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, struct nvml_process_info)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses, struct nvml_process_info_v1)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, struct nvml_process_info)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct nvml_process_info)

/* One sample a process: its share of the GPU in the present cell, stamped with the cell's start. */
static struct nvml_process_sample sample_of(const struct twin_gpu *gpu,
					    const struct twin_load *load, uint64_t stamp_us)
{
	const struct twin_phase *phase = twin_physics_phase(gpu, load);

	return (struct nvml_process_sample){
		.timestamp_us = stamp_us,
		.pid = (uint32_t)load->pid,
		.sm = phase ? phase->util * gpu->now_share / 10000 : 0,
		.memory = phase ? phase->memory_util * gpu->now_share / 10000 : 0,
	};
}

/* Whether there are samples that the caller has not seen and has room for. Asking with no array
 * means asking for the number. */
static bool samples_for(const struct twin_call *call, const struct twin_gpu *gpu,
			const void *entries, uint64_t last_seen_us, uint32_t *count,
			uint64_t *ret_stamp_us, int *ret_code)
{
	*ret_stamp_us = twin_stamp_us(call->map, gpu->at_ns - gpu->at_ns % TWIN_CELL_NS);
	if (living(call, gpu) == 0 || *ret_stamp_us <= last_seen_us) {
		*count = 0;
		*ret_code = NVML_ERROR_NOT_FOUND;
		return false;
	}
	if (!entries)
		*count = 0;
	return twin_room_for(count, living(call, gpu), entries, ret_code);
}

int nvmlDeviceGetProcessUtilization(struct nvml_device *device,
				    struct nvml_process_utilization *samples, uint32_t *count,
				    uint64_t last_seen_us)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint64_t at = 0, stamp_us;
	int rc = twin_enter_uncut(device, count, &call, &gpu);

	if (rc != NVML_SUCCESS ||
	    !samples_for(&call, &gpu, samples, last_seen_us, count, &stamp_us, &rc))
		return rc;
	for (uint32_t i = 0; i < *count; i++) {
		struct nvml_process_sample now =
			sample_of(&gpu, next_living(&call, &gpu, &at), stamp_us);
		samples[i] = (struct nvml_process_utilization){
			.pid = now.pid,
			.timestamp_us = now.timestamp_us,
			.sm = now.sm,
			.memory = now.memory,
		};
	}
	return NVML_SUCCESS;
}

int nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
					  struct nvml_processes_utilization *info)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint64_t at = 0, stamp_us;
	int rc = twin_enter_uncut(device, info, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (info->version != NVML_PROCESSES_UTILIZATION_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!samples_for(&call, &gpu, info->entries, info->last_seen_us, &info->count, &stamp_us,
			 &rc))
		return rc;
	for (uint32_t i = 0; i < info->count; i++)
		info->entries[i] = sample_of(&gpu, next_living(&call, &gpu, &at), stamp_us);
	return NVML_SUCCESS;
}
