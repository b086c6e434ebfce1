/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks one by one: whether they are up, where they lead, and what went over them. */
#include <stdio.h>
#include <string.h>

#include "nvml_entry.h"
#include "twin_counters.h"

/* MIG mode takes the links of an A100 down; those of later boards stay up, unused (as NVIDIA
 * documents for its fabric manager). */
uint32_t twin_links_down(const struct twin_call *call, const struct twin_gpu *gpu)
{
	bool all = gpu->mig_mode && call->board->arch <= NVML_ARCH_AMPERE;

	return gpu->links_down | (all ? UINT32_MAX : 0);
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
	*active = twin_links_down(&call, &gpu) >> link & 1 ? NVML_FEATURE_DISABLED
							   : NVML_FEATURE_ENABLED;
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
	twin_put_pci(pci, end->to_switch ? &(struct twin_pci){.bus = end->end}
					 : &call.machine->gpus[end->end].pci);
	pci->pci_device_id = end->to_switch ? call.board->nvswitch_device : call.board->pci_device;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo(struct nvml_device *device, uint32_t link,
				     struct nvml_pci_info_v2 *pci)
{
	struct nvml_pci_info full;
	int rc = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci ? &full : NULL);

	if (rc == NVML_SUCCESS)
		twin_put_pci_v2(pci, &full);
	return rc;
}

/* Utilisation counters, two to each link: V100 has them, since Ampere boards refuse them and have
 * fields instead. They count bytes of all packets, which they cannot be told otherwise here. */
struct counter_wish {
	uint32_t link, counter, freeze;
};

static int enter_counter(const struct nvml_device *device, uint32_t link, uint32_t counter,
			 const void *out, struct twin_call *ret)
{
	int rc = enter_link(device, link, out, NVML_ERROR_INVALID_ARGUMENT, ret);

	if (rc != NVML_SUCCESS)
		return rc;
	if (counter > 1)
		return NVML_ERROR_INVALID_ARGUMENT;
	return ret->board->arch == NVML_ARCH_VOLTA && link < TWIN_COUNTED_LINKS
		       ? NVML_SUCCESS
		       : NVML_ERROR_NOT_SUPPORTED;
}

static uint64_t counted(const struct twin_gpu *gpu, const struct twin_board *board, uint32_t link,
			uint32_t counter)
{
	return gpu->link_frozen[counter] >> link & 1
		       ? gpu->link_held[counter][link]
		       : twin_link_bytes(gpu, board) - gpu->link_base[counter][link];
}

int nvmlDeviceGetNvLinkUtilizationCounter(struct nvml_device *device, uint32_t link,
					  uint32_t counter, uint64_t *received, uint64_t *sent)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_counter(device, link, counter, sent ? received : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	twin_read(call.map, call.index, &gpu);
	*received = *sent = counted(&gpu, call.board, link, counter);
	return NVML_SUCCESS;
}

static int freeze(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct counter_wish *wish = arg;
	uint64_t value = counted(gpu, board, wish->link, wish->counter);

	gpu->link_held[wish->counter][wish->link] = value;
	gpu->link_base[wish->counter][wish->link] = twin_link_bytes(gpu, board) - value;
	gpu->link_frozen[wish->counter] &= ~(1u << wish->link);
	gpu->link_frozen[wish->counter] |= wish->freeze << wish->link;
	return NVML_SUCCESS;
}

static int reset(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct counter_wish *wish = arg;

	gpu->link_held[wish->counter][wish->link] = 0;
	gpu->link_base[wish->counter][wish->link] = twin_link_bytes(gpu, board);
	return NVML_SUCCESS;
}

static int set_counter(struct nvml_device *device, twin_change_fn *change, struct counter_wish wish)
{
	struct twin_call call;
	int rc = enter_counter(device, wish.link, wish.counter, device, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	return wish.freeze > NVML_FEATURE_ENABLED
		       ? NVML_ERROR_INVALID_ARGUMENT
		       : twin_set_as("nvmlDeviceResetNvLinkUtilizationCounter", device, change,
				     &wish, false);
}

int nvmlDeviceFreezeNvLinkUtilizationCounter(struct nvml_device *device, uint32_t link,
					     uint32_t counter, uint32_t frozen)
{
	return set_counter(device, freeze, (struct counter_wish){link, counter, frozen});
}

int nvmlDeviceResetNvLinkUtilizationCounter(struct nvml_device *device, uint32_t link,
					    uint32_t counter)
{
	return set_counter(device, reset, (struct counter_wish){link, counter, 0});
}

int nvmlDeviceGetNvLinkUtilizationControl(struct nvml_device *device, uint32_t link,
					  uint32_t counter, struct nvml_link_control *control)
{
	struct twin_call call;
	int rc = enter_counter(device, link, counter, control, &call);

	if (rc == NVML_SUCCESS)
		*control = (struct nvml_link_control){NVML_NVLINK_COUNTER_UNIT_BYTES,
						      NVML_NVLINK_COUNTER_PACKETS_ALL};
	return rc;
}

int nvmlDeviceSetNvLinkUtilizationControl(struct nvml_device *device, uint32_t link,
					  uint32_t counter, struct nvml_link_control *control,
					  uint32_t also_reset)
{
	struct twin_call call;
	int rc = enter_counter(device, link, counter, control, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (control->units != NVML_NVLINK_COUNTER_UNIT_BYTES ||
	    control->packets != NVML_NVLINK_COUNTER_PACKETS_ALL)
		return NVML_ERROR_NOT_SUPPORTED;
	return also_reset ? nvmlDeviceResetNvLinkUtilizationCounter(device, link, counter)
			  : NVML_SUCCESS;
}
