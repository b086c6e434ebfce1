/* SPDX-License-Identifier: Apache-2.0 */
/* The PCI Express link: speeds in million transfers a second and lane, and traffic. */
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

/* An idle link's chatter, and a little for each kernel that runs (GUESS, but for the chatter). */
uint32_t twin_pcie_kib_per_s(bool sent, uint32_t busy_permille)
{
	return (sent ? 500 : 575) + 6 * busy_permille;
}

int nvmlDeviceGetPcieThroughput(struct nvml_device *device, uint32_t counter, uint32_t *kib_per_s)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, kib_per_s, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (counter >= NVML_PCIE_UTIL_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	*kib_per_s = twin_pcie_kib_per_s(counter == NVML_PCIE_UTIL_TX_BYTES,
					 10 * twin_physics_util_percent(&gpu));
	return NVML_SUCCESS;
}
