/* SPDX-License-Identifier: Apache-2.0 */
/* Modes that data-centre boards have: ECC, persistence, computing, fabric. */
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
	ACCOUNTING_BUFFER = 4000
};

FIXED(nvmlDeviceGetDisplayActive, NVML_FEATURE_DISABLED, 0)
FIXED(nvmlDeviceGetDisplayMode, NVML_FEATURE_ENABLED, 0)
FIXED(nvmlDeviceGetDefaultEccMode, NVML_FEATURE_ENABLED, TWIN_HAS_ECC)
FIXED(nvmlDeviceGetAccountingMode, NVML_FEATURE_DISABLED, 0)
FIXED(nvmlDeviceGetAccountingBufferSize, ACCOUNTING_BUFFER, 0)
FIXED(nvmlDeviceGetVirtualizationMode, GPU_VIRTUALIZATION_NONE, 0)

int nvmlDeviceGetEccMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	return fixed_pair(device, current, pending, NVML_FEATURE_ENABLED, TWIN_HAS_ECC);
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

enum {
	FABRIC_COMPLETED = 3
};

int nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric_info *info)
{
	struct twin_call call;
	int rc = twin_enter_out(device, info, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_FABRIC))
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (struct nvml_fabric_info){.status = NVML_SUCCESS, .state = FABRIC_COMPLETED};
	return NVML_SUCCESS;
}

/* The third form ends with a summary: 1 is healthy. */
int nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, void *info)
{
	struct nvml_fabric_info_v3 now = {.state = FABRIC_COMPLETED, .health_summary = 1};
	struct twin_call call;
	int rc = twin_enter_out(device, info, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	memcpy(&now.version, info, sizeof(now.version));
	if (now.version != NVML_FABRIC_INFO_V2_WORD && now.version != NVML_FABRIC_INFO_V3_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!twin_has(&call, TWIN_HAS_FABRIC))
		return NVML_ERROR_NOT_SUPPORTED;
	memcpy(info, &now,
	       now.version == NVML_FABRIC_INFO_V2_WORD ? sizeof(struct nvml_fabric_info_v2)
						       : sizeof(now));
	return NVML_SUCCESS;
}
