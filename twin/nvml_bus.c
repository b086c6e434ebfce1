/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of the PCI Express link, in million transfers a second and lane. */
#include "nvml_entry.h"

static uint32_t speed_of(uint32_t gen)
{
	return gen == 1 ? 2500 : gen == 2 ? 5000 : 1000u << gen;
}

int nvmlDeviceGetPcieSpeed(struct nvml_device *device, uint32_t *speed)
{
	uint32_t gen;
	int rc = nvmlDeviceGetCurrPcieLinkGeneration(device, speed ? &gen : NULL);

	if (rc == NVML_SUCCESS)
		*speed = speed_of(gen);
	return rc;
}

int nvmlDeviceGetPcieLinkMaxSpeed(struct nvml_device *device, uint32_t *speed)
{
	uint32_t gen;
	int rc = nvmlDeviceGetMaxPcieLinkGeneration(device, speed ? &gen : NULL);

	if (rc == NVML_SUCCESS)
		*speed = speed_of(gen);
	return rc;
}
