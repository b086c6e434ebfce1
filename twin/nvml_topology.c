/* SPDX-License-Identifier: Apache-2.0 */
/* Where GPUs are: near which CPUs and memory, under which PCIe ancestor, linked to whom. */
#include <sched.h>
#include <string.h>

#include "nvml_entry.h"

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "CPU sets are copied word by word");

int nvmlDeviceGetCpuAffinity(struct nvml_device *device, uint32_t words, unsigned long *set)
{
	struct twin_call call;
	int rc = twin_enter_out(device, words ? set : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	for (uint32_t i = 0; i < words; i++)
		set[i] = i < TWIN_CPU_WORDS ? call.desc->cpus[i] : 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCpuAffinityWithinScope(struct nvml_device *device, uint32_t words,
					unsigned long *set, uint32_t scope)
{
	if (twin_machine_map() && scope > NVML_AFFINITY_SCOPE_SOCKET)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvmlDeviceGetCpuAffinity(device, words, set);
}

int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, uint32_t words, unsigned long *set,
				uint32_t scope)
{
	struct twin_call call;
	int rc = twin_enter_out(device, words ? set : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (scope > NVML_AFFINITY_SCOPE_SOCKET)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(set, 0, words * sizeof(*set));
	if (call.desc->numa / 64 < words)
		set[call.desc->numa / 64] = 1ul << call.desc->numa % 64;
	return NVML_SUCCESS;
}

/* Binds the calling thread to the CPUs of that number that this machine has. */
int nvmlDeviceSetCpuAffinity(struct nvml_device *device)
{
	struct twin_call call;
	cpu_set_t set;
	int rc = twin_enter(device, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	CPU_ZERO(&set);
	for (unsigned i = 0; i < TWIN_CPU_WORDS * 64; i++) {
		if (call.desc->cpus[i / 64] >> i % 64 & 1)
			CPU_SET(i, &set);
	}
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

int nvmlDeviceClearCpuAffinity(struct nvml_device *device)
{
	struct twin_call call;
	cpu_set_t set;
	int rc = twin_enter(device, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	memset(&set, 0xff, sizeof(set));
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

int nvmlDeviceGetNumaNodeId(struct nvml_device *device, uint32_t *node)
{
	struct twin_call call;
	int rc = twin_enter_out(device, node, &call);

	/* the node of the GPU's own memory: only boards that share memory with the CPU have one */
	return rc == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : rc;
}

static int enter_pair(const struct nvml_device *device, const struct nvml_device *other,
		      const void *out, struct twin_call *ret, struct twin_call *ret_other)
{
	int rc = twin_enter_out(device, out, ret);

	return rc == NVML_SUCCESS ? twin_enter(other, ret_other) : rc;
}

int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *device, struct nvml_device *other,
					uint32_t *level)
{
	struct twin_call a, b;
	int rc = enter_pair(device, other, level, &a, &b);

	if (rc == NVML_SUCCESS)
		*level = a.desc->ancestor[b.index];
	return rc;
}

int nvmlDeviceGetTopologyNearestGpus(struct nvml_device *device, uint32_t level, uint32_t *count,
				     struct nvml_device **devices)
{
	uint32_t found[TWIN_MAX_GPUS], n = 0;
	struct twin_call call;
	int rc = twin_enter_out(device, count, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	for (uint32_t i = 0; i < call.machine->gpu_count; i++) {
		if (i != call.index && call.desc->ancestor[i] == level)
			found[n++] = i;
	}
	if (twin_room_for(count, n, devices, &rc)) {
		for (uint32_t i = 0; i < n; i++)
			devices[i] = twin_handle(call.map, found[i]);
	}
	return rc;
}

int nvmlSystemGetTopologyGpuSet(uint32_t cpu, uint32_t *count, struct nvml_device **devices)
{
	uint32_t found[TWIN_MAX_GPUS], n = 0;
	const struct twin_map *map = twin_machine_map();
	const struct twin_machine *machine;
	int rc;

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!count || cpu >= TWIN_CPU_WORDS * 64)
		return NVML_ERROR_INVALID_ARGUMENT;
	machine = &twin_map_file(map)->machine;
	for (uint32_t i = 0; i < machine->gpu_count; i++) {
		if (machine->gpus[i].cpus[cpu / 64] >> cpu % 64 & 1)
			found[n++] = i;
	}
	if (twin_room_for(count, n, devices, &rc)) {
		for (uint32_t i = 0; i < n; i++)
			devices[i] = twin_handle(map, found[i]);
	}
	return rc;
}

/* Does a GPU have a link that is up, to another or to the switches that it hangs on, too? */
static bool reaches(const struct twin_call *from, const struct twin_call *to)
{
	struct twin_gpu gpu;

	twin_read(from->map, from->index, &gpu);
	for (uint32_t i = 0; i < from->desc->link_count; i++) {
		const struct twin_link *link = &from->desc->links[i];
		bool leads = link->to_switch ? to->desc->link_count > 0 : link->end == to->index;
		if (leads && !(gpu.links_down >> i & 1))
			return true;
	}
	return false;
}

/* In MIG mode a GPU has no peers. */
static bool is_cut(const struct twin_call *call)
{
	struct twin_gpu gpu;

	twin_read(call->map, call->index, &gpu);
	return gpu.mig_mode != 0;
}

int nvmlDeviceGetP2PStatus(struct nvml_device *device, struct nvml_device *other, uint32_t cap,
			   uint32_t *status)
{
	struct twin_call a, b;
	int rc = enter_pair(device, other, status, &a, &b);
	bool near;

	if (rc != NVML_SUCCESS)
		return rc;
	if (cap >= NVML_P2P_CAP_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	near = a.desc->ancestor[b.index] < NVML_TOPOLOGY_SYSTEM;
	if (is_cut(&a) || is_cut(&b))
		*status = NVML_P2P_STATUS_NOT_SUPPORTED;
	else if ((near && cap != NVML_P2P_CAP_NVLINK) || (reaches(&a, &b) && reaches(&b, &a)))
		*status = NVML_P2P_STATUS_OK;
	else
		*status = near ? NVML_P2P_STATUS_NOT_SUPPORTED
			       : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

int nvmlDeviceOnSameBoard(struct nvml_device *device, struct nvml_device *other, int *same)
{
	struct twin_call a, b;
	int rc = enter_pair(device, other, same, &a, &b);

	if (rc == NVML_SUCCESS)
		*same = a.index == b.index;
	return rc;
}
