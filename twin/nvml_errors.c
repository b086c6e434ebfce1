/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the memory: how many were counted, and what was done about their rows or pages. */
#include <string.h>

#include "nvml_entry.h"

/* One of the four counters, for a place that has them. */
static int count_errors(struct nvml_device *device, uint32_t error, uint32_t counter,
			uint64_t *count)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, count, &call, &gpu);
	bool total = counter == NVML_ECC_COUNTER_AGGREGATE;

	if (rc != NVML_SUCCESS)
		return rc;
	if (error > NVML_ECC_ERROR_UNCORRECTED || counter > NVML_ECC_COUNTER_AGGREGATE)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!twin_has(&call, TWIN_HAS_ECC) || gpu.ecc_off)
		return NVML_ERROR_NOT_SUPPORTED;
	if (error == NVML_ECC_ERROR_UNCORRECTED)
		*count = total ? gpu.ecc_unc_aggregate : gpu.ecc_unc_volatile;
	else
		*count = total ? gpu.ecc_cor_aggregate : gpu.ecc_cor_volatile;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
				uint64_t *count)
{
	return count_errors(device, error, counter, count);
}

/* All errors of the twin are in the device's memory. */
int nvmlDeviceGetMemoryErrorCounter(struct nvml_device *device, uint32_t error, uint32_t counter,
				    uint32_t location, uint64_t *count)
{
	uint64_t found;
	int rc;

	if (twin_machine_map() && location >= NVML_ECC_LOCATION_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = count_errors(device, error, counter, count ? &found : NULL);
	if (rc == NVML_SUCCESS)
		*count = location == NVML_ECC_LOCATION_DEVICE_MEMORY ? found : 0;
	return rc;
}

int nvmlDeviceGetDetailedEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
				   struct nvml_ecc_error_counts *counts)
{
	uint64_t found;
	int rc = count_errors(device, error, counter, counts ? &found : NULL);

	if (rc == NVML_SUCCESS)
		*counts = (struct nvml_ecc_error_counts){.device_memory = found};
	return rc;
}

static int clear_counts(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t counter = *(const uint32_t *)arg;

	if (counter > NVML_ECC_COUNTER_AGGREGATE)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->ecc_cor_volatile = gpu->ecc_unc_volatile = 0;
	if (counter == NVML_ECC_COUNTER_AGGREGATE)
		gpu->ecc_cor_aggregate = gpu->ecc_unc_aggregate = 0;
	return NVML_SUCCESS;
}

/* The total takes the count since the driver's load with it. */
int nvmlDeviceClearEccErrorCounts(struct nvml_device *device, uint32_t counter)
{
	return twin_set(device, clear_counts, &counter, false);
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

/* None was seen: uncorrectable errors of the twin are in the device's memory. */
int nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(struct nvml_device *device,
						     struct nvml_sram_errors *errors)
{
	struct twin_call call;
	int rc = twin_enter_out(device, errors, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_SRAM_STATUS))
		return NVML_ERROR_NOT_SUPPORTED;
	if (errors->version != NVML_SRAM_ERRORS_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	errors->count = 0;
	return NVML_SUCCESS;
}

static int enter_rows(struct nvml_device *device, const void *out, struct twin_call *ret,
		      struct twin_gpu *ret_gpu)
{
	int rc = twin_enter_read(device, out, ret, ret_gpu);

	return rc == NVML_SUCCESS && !twin_has(ret, TWIN_HAS_ROW_REMAP) ? NVML_ERROR_NOT_SUPPORTED
									: rc;
}

int nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *cor, uint32_t *unc,
			      uint32_t *pending, uint32_t *failure)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_rows(device, unc && pending && failure ? cor : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	*cor = gpu.remapped_cor;
	*unc = gpu.remapped_unc;
	*pending = gpu.remap_pending != 0;
	*failure = gpu.remap_failed;
	return NVML_SUCCESS;
}

int nvmlDeviceGetRemappedRows_v2(struct nvml_device *device, struct nvml_remapped_rows *rows)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_rows(device, rows, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	*rows = (struct nvml_remapped_rows){
		.cor_active = gpu.remapped_cor,
		.unc_active = gpu.remapped_unc,
		.unc_inactive = gpu.remap_pending,
		.pending = gpu.remap_pending != 0,
		.failure = gpu.remap_failed,
	};
	return NVML_SUCCESS;
}

int nvmlDeviceGetRepairStatus(struct nvml_device *device, struct nvml_repair_status *status)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_rows(device, status, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (status->version != NVML_REPAIR_STATUS_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*status = (struct nvml_repair_status){.version = NVML_REPAIR_STATUS_WORD};
	return NVML_SUCCESS;
}

int nvmlDeviceGetUnrepairableMemoryFlag_v1(struct nvml_device *device,
					   struct nvml_unrepairable_memory *memory)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_rows(device, memory, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (memory->version != NVML_UNREPAIRABLE_MEMORY_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memory->unrepairable = gpu.remap_failed;
	return NVML_SUCCESS;
}

/* Each replaced row has used up one of the spare rows of a bank of its own; one whose rows cannot
 * be replaced has none left. */
int nvmlDeviceGetRowRemapperHistogram(struct nvml_device *device,
				      struct nvml_row_remapper_histogram *values)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t used, banks;
	int rc = enter_rows(device, values, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	banks = call.board->remap_banks;
	used = gpu.remapped_cor + gpu.remapped_unc;
	if (used > banks - 1)
		used = banks - 1;
	*values = (struct nvml_row_remapper_histogram){
		.max = banks - used - gpu.remap_failed,
		.high = used,
		.none = gpu.remap_failed,
	};
	return NVML_SUCCESS;
}

enum {
	CAUSE_DOUBLE_BIT = 1,
	PAGE = 65536
};

/* Pages retired after double-bit errors; their addresses are made up, one after another. When that
 * was is not remembered, which is 0 (as for pages retired by drivers before 410). */
int nvmlDeviceGetRetiredPages_v2(struct nvml_device *device, uint32_t cause, uint32_t *count,
				 uint64_t *addresses, uint64_t *timestamps)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, count, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (cause > CAUSE_DOUBLE_BIT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!twin_has(&call, TWIN_HAS_RETIRED_PAGES))
		return NVML_ERROR_NOT_SUPPORTED;
	if (!twin_room_for(count, cause == CAUSE_DOUBLE_BIT ? gpu.retired_pages : 0, addresses,
			   &rc))
		return rc;
	for (uint32_t i = 0; i < *count; i++) {
		addresses[i] = (uint64_t)(i + 1) * PAGE;
		if (timestamps)
			timestamps[i] = 0;
	}
	return NVML_SUCCESS;
}

int nvmlDeviceGetRetiredPages(struct nvml_device *device, uint32_t cause, uint32_t *count,
			      uint64_t *addresses)
{
	return nvmlDeviceGetRetiredPages_v2(device, cause, count, addresses, NULL);
}

int nvmlDeviceGetRetiredPagesPendingStatus(struct nvml_device *device, uint32_t *pending)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, pending, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_RETIRED_PAGES))
		return NVML_ERROR_NOT_SUPPORTED;
	*pending = gpu.retired_pending != 0;
	return NVML_SUCCESS;
}
