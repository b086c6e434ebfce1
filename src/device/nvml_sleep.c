/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs that the kernel has suspended are left so. NVML initialises a GPU when its handle is asked
 * for, which wakes it; so it cannot be asked which of its GPUs is which while one sleeps. Then they
 * are numbered as sysfs has them, and asked for by their place on the bus, each when it is awake.
 */
#include <string.h>

#include "base/str.h"
#include "device/nvml_api.h"
#include "device/sysfs_pci.h"

static bool any_asleep(const struct takt_nvml *nvml, char (*ids)[TAKT_SYSFS_ID], uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (takt_sysfs_asleep(nvml->sysfs_root, ids[i]))
			return true;
	return false;
}

/* Where the two do not agree how many there are, the driver alone is asked: in a container, say. */
void takt_nvml_find_asleep(struct takt_nvml *nvml)
{
	char ids[TAKT_DEVICE_MAX_GPUS + 1][TAKT_SYSFS_ID];
	uint32_t count;

	if (!nvml->leaves_asleep || !nvml->api.handle_by_bus)
		return;
	count = takt_sysfs_gpus(nvml->sysfs_root, ids, TAKT_DEVICE_MAX_GPUS + 1);
	if (count != nvml->base.gpu_count || !any_asleep(nvml, ids, count))
		return;
	nvml->by_bus = true;
	for (uint32_t i = 0; i < count; i++)
		takt_strcpy(nvml->gpus[i].pci_bus_id, sizeof(nvml->gpus[i].pci_bus_id), ids[i]);
}

bool takt_nvml_asleep(struct takt_source *source, uint32_t gpu, struct takt_gpu_facts *facts)
{
	const struct takt_nvml *nvml = (const struct takt_nvml *)source;
	const struct takt_nvml_gpu *g = &nvml->gpus[gpu];

	if (!nvml->leaves_asleep || !(nvml->by_bus || atomic_load(&g->attached)) ||
	    !takt_sysfs_asleep(nvml->sysfs_root, g->pci_bus_id))
		return false;
	if (facts) {
		takt_strcpy(facts->pci_bus_id, sizeof(facts->pci_bus_id), g->pci_bus_id);
		facts->has |= TAKT_FACT_PCI;
	}
	return true;
}
