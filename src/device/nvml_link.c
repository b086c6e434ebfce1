/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two GPUs reach each other. NVML tells for each NVLink port of a board whether it is up and
 * what is at its other end: a GPU (by PCI id) or an NVSwitch. Behind a switch every GPU reaches
 * every other with all the ports that both have into it. The PCIe side is a call of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "device/link_kind.h"
#include "device/nvml_api.h"
#include "device/pci_id.h"
#include "device/sysfs_pci.h"

static void add_remote(struct takt_nvml_ports *ports, const char *pci_bus_id)
{
	uint32_t i;

	for (i = 0; i < ports->count; i++)
		if (takt_pci_id_compare(ports->remote[i].pci_bus_id, pci_bus_id) == 0)
			break;
	if (i == ports->count) {
		takt_strcpy(ports->remote[i].pci_bus_id, sizeof(ports->remote[i].pci_bus_id),
			    pci_bus_id);
		ports->count++;
	}
	ports->remote[i].links++;
}

/* Drivers before 460 do not tell what kind of thing is at the other end; the kernel knows. */
static bool leads_to_switch(const struct takt_nvml *nvml, struct nvml_device *device, uint32_t link,
			    const char *remote)
{
	uint32_t type;

	if (nvml->api.nvlink_remote_type &&
	    nvml->api.nvlink_remote_type(device, link, &type) == NVML_SUCCESS)
		return type == NVML_NVLINK_REMOTE_SWITCH;
	return takt_sysfs_is_switch(nvml->sysfs_root, remote);
}

static void read_port(const struct takt_nvml *nvml, struct nvml_device *device, uint32_t link,
		      struct takt_nvml_ports *ports)
{
	struct nvml_pci_info remote = {0};
	uint32_t active = 0;
	char id[32] = "";

	if (nvml->api.nvlink_state(device, link, &active) != NVML_SUCCESS ||
	    active != NVML_FEATURE_ENABLED)
		return;
	if (nvml->api.nvlink_remote_pci &&
	    nvml->api.nvlink_remote_pci(device, link, &remote) == NVML_SUCCESS)
		snprintf(id, sizeof(id), "%.31s", remote.bus_id);
	if (leads_to_switch(nvml, device, link, id))
		ports->to_switch++;
	else if (id[0] != '\0')
		add_remote(ports, id);
}

void takt_nvml_read_ports(struct takt_nvml *nvml, uint32_t gpu)
{
	struct takt_nvml_gpu *g = &nvml->gpus[gpu];

	if (!nvml->api.nvlink_state)
		return;
	for (uint32_t link = 0; link < TAKT_NVML_MAX_PORTS; link++)
		read_port(nvml, g->device, link, &g->ports);
	atomic_store(&g->ports_known, true);
}

static uint32_t direct_links(const struct takt_nvml_ports *ports, const char *pci_bus_id)
{
	for (uint32_t i = 0; i < ports->count; i++)
		if (takt_pci_id_compare(ports->remote[i].pci_bus_id, pci_bus_id) == 0)
			return ports->remote[i].links;
	return 0;
}

static uint32_t count_nvlinks(struct takt_nvml_gpu *a, struct takt_nvml_gpu *b)
{
	uint32_t direct, switched = 0;

	if (!atomic_load(&a->ports_known))
		return 0;
	direct = direct_links(&a->ports, b->pci_bus_id);
	if (atomic_load(&b->ports_known))
		switched = a->ports.to_switch < b->ports.to_switch ? a->ports.to_switch
								   : b->ports.to_switch;
	return direct + switched;
}

static uint8_t from_level(uint32_t level)
{
	switch (level) {
	case NVML_TOPOLOGY_INTERNAL:
		return LINK_BOARD;
	case NVML_TOPOLOGY_SINGLE:
		return LINK_PIX;
	case NVML_TOPOLOGY_MULTIPLE:
		return LINK_PXB;
	case NVML_TOPOLOGY_HOSTBRIDGE:
		return LINK_PHB;
	case NVML_TOPOLOGY_NODE:
		return LINK_NODE;
	case NVML_TOPOLOGY_SYSTEM:
		return LINK_SYS;
	default:
		return LINK_UNKNOWN;
	}
}

static uint8_t pcie_link(const struct takt_nvml *nvml, const struct takt_nvml_gpu *a,
			 const struct takt_nvml_gpu *b)
{
	uint32_t level;

	if (nvml->api.common_ancestor &&
	    nvml->api.common_ancestor(a->device, b->device, &level) == NVML_SUCCESS &&
	    from_level(level) != LINK_UNKNOWN)
		return from_level(level);
	return a->simulated ? LINK_UNKNOWN
			    : takt_sysfs_link(nvml->sysfs_root, a->pci_bus_id, b->pci_bus_id);
}

struct takt_gpu_link takt_nvml_link(struct takt_source *source, uint32_t gpu, uint32_t other)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	struct takt_nvml_gpu *a = &nvml->gpus[gpu], *b = &nvml->gpus[other];

	if (!atomic_load(&a->attached) || !atomic_load(&b->attached))
		return (struct takt_gpu_link){0};
	return (struct takt_gpu_link){
		.pcie = pcie_link(nvml, a, b),
		.nvlinks = (uint8_t)count_nvlinks(a, b),
	};
}
