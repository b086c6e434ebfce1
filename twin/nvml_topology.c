/* SPDX-License-Identifier: Apache-2.0 */
/* Where GPUs are: near which CPUs and memory, under which PCIe ancestor, on which NVLink. */
#include <stdio.h>
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
		bool leads =
			link->to_switch ? to->desc->link_count > 0 : link->bus == to->desc->bus;
		if (leads && !(gpu.links_down >> i & 1))
			return true;
	}
	return false;
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
	if ((near && cap != NVML_P2P_CAP_NVLINK) || (reaches(&a, &b) && reaches(&b, &a)))
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

/* A link that the board has, or `missing` for one that it has not. */
static int enter_link(const struct nvml_device *device, uint32_t link, const void *out, int missing,
		      struct twin_call *ret)
{
	int rc = twin_enter_out(device, out, ret);

	if (rc != NVML_SUCCESS)
		return rc;
	return link < ret->desc->link_count ? NVML_SUCCESS : missing;
}

int nvmlDeviceGetNvLinkState(struct nvml_device *device, uint32_t link, uint32_t *active)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_link(device, link, active, NVML_ERROR_INVALID_ARGUMENT, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	twin_read(call.map, call.index, &gpu);
	*active = gpu.links_down >> link & 1 ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(struct nvml_device *device, uint32_t link, uint32_t *version)
{
	struct twin_call call;
	int rc = enter_link(device, link, version, NVML_ERROR_INVALID_ARGUMENT, &call);

	if (rc == NVML_SUCCESS)
		*version = call.board->nvlink_version;
	return rc;
}

int nvmlDeviceGetNvLinkCapability(struct nvml_device *device, uint32_t link, uint32_t cap,
				  uint32_t *result)
{
	struct twin_call call;
	int rc = enter_link(device, link, result, NVML_ERROR_INVALID_ARGUMENT, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (cap >= NVML_NVLINK_CAP_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	*result = cap != NVML_NVLINK_CAP_SLI_BRIDGE;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkErrorCounter(struct nvml_device *device, uint32_t link, uint32_t counter,
				    uint64_t *value)
{
	struct twin_call call;
	int rc = enter_link(device, link, value, NVML_ERROR_INVALID_ARGUMENT, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (counter > 4) /* replay, recovery, CRC of flits and data, ECC */
		return NVML_ERROR_INVALID_ARGUMENT;
	*value = 0;
	return NVML_SUCCESS;
}

/* They are at zero always. */
int nvmlDeviceResetNvLinkErrorCounters(struct nvml_device *device, uint32_t link)
{
	struct twin_call call;

	return enter_link(device, link, device, NVML_ERROR_INVALID_ARGUMENT, &call);
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, uint32_t link, uint32_t *type)
{
	struct twin_call call;
	int rc = enter_link(device, link, type, NVML_ERROR_NOT_SUPPORTED, &call);

	if (rc == NVML_SUCCESS)
		*type = call.desc->links[link].to_switch ? NVML_NVLINK_REMOTE_SWITCH
							 : NVML_NVLINK_REMOTE_GPU;
	return rc;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, uint32_t link,
					struct nvml_pci_info *pci)
{
	struct twin_call call;
	int rc = enter_link(device, link, pci, NVML_ERROR_NOT_SUPPORTED, &call);
	const struct twin_link *end;

	if (rc != NVML_SUCCESS)
		return rc;
	end = &call.desc->links[link];
	memset(pci, 0, sizeof(*pci));
	pci->bus = end->bus;
	pci->pci_device_id = end->to_switch ? call.board->nvswitch_device : call.board->pci_device;
	snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "0000:%02X:00.0", end->bus);
	snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", end->bus);
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo(struct nvml_device *device, uint32_t link,
				     struct nvml_pci_info_v2 *pci)
{
	struct nvml_pci_info full;
	int rc = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci ? &full : NULL);

	if (rc != NVML_SUCCESS)
		return rc;
	memset(pci, 0, sizeof(*pci));
	memcpy(pci->bus_id, full.bus_id_legacy, sizeof(pci->bus_id));
	pci->bus = full.bus;
	pci->pci_device_id = full.pci_device_id;
	return NVML_SUCCESS;
}
