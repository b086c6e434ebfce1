/* SPDX-License-Identifier: Apache-2.0 */
/* Modes of a GPU: ECC, persistence, computing, who may set what. */
#include <string.h>

#include "nvml_entry.h"

/* A mode that is the same on every board of the twin; `feature` 0 means all boards report it. */
static int fixed(struct nvml_device *device, uint32_t *out, uint32_t value, uint32_t feature)
{
	struct twin_call call;
	int rc = twin_enter_out(device, out, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (feature && !(call.board->features & feature))
		return NVML_ERROR_NOT_SUPPORTED;
	*out = value;
	return NVML_SUCCESS;
}

/* Two outputs with the same rule. */
static int fixed_pair(struct nvml_device *device, uint32_t *a, uint32_t *b, uint32_t value,
		      uint32_t feature)
{
	int rc = fixed(device, b ? a : NULL, value, feature);

	if (rc == NVML_SUCCESS)
		*b = value;
	return rc;
}

#define FIXED(function, value, feature)                         \
	int function(struct nvml_device *device, uint32_t *out) \
	{                                                       \
		return fixed(device, out, value, feature);      \
	}

enum {
	GPU_VIRTUALIZATION_NONE = 0,
	POWER_OF_THE_MAINS = 0
};

FIXED(nvmlDeviceGetDisplayActive, NVML_FEATURE_DISABLED, 0)
FIXED(nvmlDeviceGetDefaultEccMode, NVML_FEATURE_ENABLED, TWIN_HAS_ECC)
FIXED(nvmlDeviceGetPowerSource, POWER_OF_THE_MAINS, 0)
FIXED(nvmlDeviceGetVirtualizationMode, GPU_VIRTUALIZATION_NONE, 0)

/* Recorded of drivers since 580, on every board but one that had an older driver. */
int nvmlDeviceGetDisplayMode(struct nvml_device *device, uint32_t *mode)
{
	int rc = fixed(device, mode, NVML_FEATURE_ENABLED, 0);

	return rc == NVML_SUCCESS && strcmp(twin_library_branch, "13x") == 0 ? NVML_ERROR_DEPRECATED
									     : rc;
}

int nvmlDeviceGetEccMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, pending ? current : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_ECC))
		return NVML_ERROR_NOT_SUPPORTED;
	*current = !gpu.ecc_off;
	*pending = !gpu.ecc_off_pending;
	return NVML_SUCCESS;
}

static int set_ecc(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t mode = *(const uint32_t *)arg;

	if (!(board->features & TWIN_HAS_ECC))
		return NVML_ERROR_NOT_SUPPORTED;
	if (mode > NVML_FEATURE_ENABLED)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->ecc_off_pending = !mode;
	return NVML_SUCCESS;
}

/* Takes effect when the GPU is reset, which a reload of the driver does. */
int nvmlDeviceSetEccMode(struct nvml_device *device, uint32_t mode)
{
	return twin_set(device, set_ecc, &mode, false);
}

/* Application clocks are for root unless root opens them; GeForce boards have none to be opened. */
static int check_api(const struct twin_board *board, uint32_t api)
{
	if (api >= NVML_RESTRICTED_API_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	return api == NVML_RESTRICTED_API_APPLICATION_CLOCKS && board->brand != NVML_BRAND_GEFORCE
		       ? NVML_SUCCESS
		       : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetAPIRestriction(struct nvml_device *device, uint32_t api, uint32_t *restricted)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, restricted, &call, &gpu);

	if (rc == NVML_SUCCESS)
		rc = check_api(call.board, api);
	if (rc == NVML_SUCCESS)
		*restricted = !(gpu.open_apis >> api & 1);
	return rc;
}

struct restriction {
	uint32_t api, restricted;
};

static int set_restriction(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct restriction *wish = arg;
	int rc = check_api(board, wish->api);

	if (rc != NVML_SUCCESS)
		return rc;
	if (wish->restricted > NVML_FEATURE_ENABLED)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->open_apis &= ~(1u << wish->api);
	gpu->open_apis |= (wish->restricted ? 0u : 1u) << wish->api;
	return NVML_SUCCESS;
}

int nvmlDeviceSetAPIRestriction(struct nvml_device *device, uint32_t api, uint32_t restricted)
{
	struct restriction wish = {api, restricted};

	return twin_set(device, set_restriction, &wish, false);
}

int nvmlDeviceGetGspFirmwareMode(struct nvml_device *device, uint32_t *enabled,
				 uint32_t *default_mode)
{
	return fixed_pair(device, enabled, default_mode, NVML_FEATURE_ENABLED, TWIN_HAS_GSP);
}

int nvmlDeviceGetGspFirmwareVersion(struct nvml_device *device, char *version)
{
	struct twin_call call;
	int rc = twin_enter_out(device, version, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_GSP))
		return NVML_ERROR_NOT_SUPPORTED;
	return twin_put_text(version, NVML_BUFFER_VERSION, call.machine->driver_version);
}

int nvmlDeviceGetPersistenceMode(struct nvml_device *device, uint32_t *mode)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, mode, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*mode = gpu.persistence;
	return rc;
}

static int set_persistence(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t mode = *(const uint32_t *)arg;

	if (mode > NVML_FEATURE_ENABLED)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->persistence = mode;
	return NVML_SUCCESS;
}

int nvmlDeviceSetPersistenceMode(struct nvml_device *device, uint32_t mode)
{
	return twin_set(device, set_persistence, &mode, false);
}

int nvmlDeviceGetComputeMode(struct nvml_device *device, uint32_t *mode)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, mode, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*mode = gpu.compute_mode;
	return rc;
}

static int set_compute_mode(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t mode = *(const uint32_t *)arg;

	if (mode >= NVML_COMPUTEMODE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD)
		return NVML_ERROR_NOT_SUPPORTED;
	gpu->compute_mode = mode;
	return NVML_SUCCESS;
}

int nvmlDeviceSetComputeMode(struct nvml_device *device, uint32_t mode)
{
	return twin_set(device, set_compute_mode, &mode, false);
}
