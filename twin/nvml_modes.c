/* SPDX-License-Identifier: Apache-2.0 */
/* Modes and counters that a healthy data-centre board has: ECC, persistence, fabric. */
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
FIXED(nvmlDeviceGetDefaultEccMode, NVML_FEATURE_ENABLED, 0)
FIXED(nvmlDeviceGetAccountingMode, NVML_FEATURE_DISABLED, 0)
FIXED(nvmlDeviceGetAccountingBufferSize, ACCOUNTING_BUFFER, 0)
FIXED(nvmlDeviceGetVirtualizationMode, GPU_VIRTUALIZATION_NONE, 0)
FIXED(nvmlDeviceGetRetiredPagesPendingStatus, NVML_FEATURE_DISABLED, TWIN_HAS_RETIRED_PAGES)

int nvmlDeviceGetEccMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	return fixed_pair(device, current, pending, NVML_FEATURE_ENABLED, 0);
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

/* Error counters of a board without errors: the arguments are checked all the same. */
static int no_errors(struct nvml_device *device, uint32_t error, uint32_t counter, uint64_t *count)
{
	struct twin_call call;
	int rc = twin_enter_out(device, count, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (error > NVML_ECC_ERROR_UNCORRECTED || counter > NVML_ECC_COUNTER_AGGREGATE)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
				uint64_t *count)
{
	return no_errors(device, error, counter, count);
}

int nvmlDeviceGetMemoryErrorCounter(struct nvml_device *device, uint32_t error, uint32_t counter,
				    uint32_t location, uint64_t *count)
{
	if (twin_machine_map() && location >= NVML_ECC_LOCATION_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	return no_errors(device, error, counter, count);
}

int nvmlDeviceGetDetailedEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
				   struct nvml_ecc_error_counts *counts)
{
	uint64_t none;
	int rc = no_errors(device, error, counter, counts ? &none : NULL);

	if (rc == NVML_SUCCESS)
		memset(counts, 0, sizeof(*counts));
	return rc;
}

int nvmlDeviceGetSramEccErrorStatus(struct nvml_device *device, struct nvml_ecc_sram_status *status)
{
	struct twin_call call;
	int rc = twin_enter_out(device, status, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_SRAM_STATUS))
		return NVML_ERROR_NOT_SUPPORTED;
	if (status->version != NVML_ECC_SRAM_STATUS_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*status = (struct nvml_ecc_sram_status){.version = NVML_ECC_SRAM_STATUS_WORD};
	return NVML_SUCCESS;
}

int nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *cor, uint32_t *unc,
			      uint32_t *pending, uint32_t *failure)
{
	struct twin_call call;
	int rc = twin_enter_out(device, unc && pending && failure ? cor : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_ROW_REMAP))
		return NVML_ERROR_NOT_SUPPORTED;
	*cor = *unc = *pending = *failure = 0;
	return NVML_SUCCESS;
}

enum {
	REMAP_BANKS = 2560
};

int nvmlDeviceGetRowRemapperHistogram(struct nvml_device *device,
				      struct nvml_row_remapper_histogram *values)
{
	struct twin_call call;
	int rc = twin_enter_out(device, values, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_ROW_REMAP))
		return NVML_ERROR_NOT_SUPPORTED;
	*values = (struct nvml_row_remapper_histogram){.max = REMAP_BANKS};
	return NVML_SUCCESS;
}

int nvmlDeviceGetRetiredPages(struct nvml_device *device, uint32_t cause, uint32_t *count,
			      uint64_t *addresses)
{
	struct twin_call call;
	int rc = twin_enter_out(device, count, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (cause > 1) /* single-bit, double-bit */
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!twin_has(&call, TWIN_HAS_RETIRED_PAGES))
		return NVML_ERROR_NOT_SUPPORTED;
	*count = 0;
	return NVML_SUCCESS;
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

int nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, struct nvml_fabric_info_v2 *info)
{
	struct twin_call call;
	int rc = twin_enter_out(device, info, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (info->version != NVML_FABRIC_INFO_V2_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!twin_has(&call, TWIN_HAS_FABRIC))
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (struct nvml_fabric_info_v2){.version = NVML_FABRIC_INFO_V2_WORD,
					     .state = FABRIC_COMPLETED};
	return NVML_SUCCESS;
}
