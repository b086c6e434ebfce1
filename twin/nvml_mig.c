/* SPDX-License-Identifier: Apache-2.0 */
/* MIG as a mode of a GPU, and its compute instances as devices of their own. */
#include <string.h>

#include "nvml_entry.h"
#include "twin_trouble.h"

int nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, pending ? current : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (call.board->mig_count == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = gpu.mig_mode;
	*pending = gpu.mig_pending;
	return NVML_SUCCESS;
}

struct mode_wish {
	uint32_t mode;
	int activation;
};

static bool has_instances(const struct twin_gpu *gpu)
{
	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		if (gpu->instances[i].used)
			return true;
	}
	return false;
}

static bool has_processes(const struct twin_gpu *gpu)
{
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		if (twin_load_alive(&gpu->loads[i]))
			return true;
	}
	return false;
}

/* While the GPU is in use the mode stays pending, and becomes that of the next reload. Boards up to
 * Ampere are reset for it; that locks do not live through that is a GUESS. */
static int set_mode(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	struct mode_wish *wish = arg;

	if (board->mig_count == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (wish->mode > NVML_MIG_ENABLE)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (wish->mode == NVML_MIG_DISABLE && has_instances(gpu))
		return NVML_ERROR_IN_USE;
	gpu->mig_pending = wish->mode;
	wish->activation = NVML_SUCCESS;
	if (gpu->mig_mode == wish->mode)
		return NVML_SUCCESS;
	if (has_processes(gpu)) {
		wish->activation = NVML_ERROR_IN_USE;
		return NVML_SUCCESS;
	}
	gpu->mig_mode = wish->mode;
	if (board->arch <= NVML_ARCH_AMPERE)
		twin_trouble_reset(gpu, board);
	twin_event_add(gpu, NVML_EVENT_MIG_CONFIG_CHANGE, 0);
	return NVML_SUCCESS;
}

int nvmlDeviceSetMigMode(struct nvml_device *device, uint32_t mode, int *activation)
{
	struct mode_wish wish = {.mode = mode};
	struct twin_call call;
	int rc = twin_enter_out(device, activation, &call);

	if (rc == NVML_SUCCESS)
		rc = twin_set(device, set_mode, &wish, false);
	if (rc == NVML_SUCCESS)
		*activation = wish.activation;
	return rc;
}

/* None on boards without MIG and while the mode is off. */
int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, uint32_t *count)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, count, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*count = gpu.mig_mode ? TWIN_MIG_DEVICES : 0;
	return rc;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index,
					struct nvml_device **mig)
{
	struct twin_mig_device found;
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t at = 0;
	int rc = twin_enter_read(device, mig, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (call.board->mig_count == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (index >= TWIN_MIG_DEVICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	while (twin_mig_next(&gpu, call.board, &at, &found)) {
		if (index-- > 0)
			continue;
		*mig = twin_mig_handle(&call, found.start, found.compute_start);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, uint32_t *is_mig)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, is_mig, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*is_mig = call.is_mig;
	return rc;
}

/* Only of MIG devices; GPUs are refused. */
static int enter_mig(const struct nvml_device *device, const void *out, struct twin_call *ret)
{
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, out, ret, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (ret->is_mig)
		return NVML_SUCCESS;
	return ret->board->mig_count ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig,
						 struct nvml_device **device)
{
	struct twin_call call;
	int rc = enter_mig(mig, device, &call);

	if (rc == NVML_SUCCESS)
		*device = twin_handle(call.map, call.index);
	return rc;
}

int nvmlDeviceGetGpuInstanceId(struct nvml_device *device, uint32_t *id)
{
	struct twin_call call;
	int rc = enter_mig(device, id, &call);

	if (rc == NVML_SUCCESS)
		*id = call.mig.id;
	return rc;
}

int nvmlDeviceGetComputeInstanceId(struct nvml_device *device, uint32_t *id)
{
	struct twin_call call;
	int rc = enter_mig(device, id, &call);

	if (rc == NVML_SUCCESS)
		*id = call.mig.compute_id;
	return rc;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *device,
			       struct nvml_device_attributes *attributes)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	int rc = enter_mig(device, attributes, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	profile = call.mig.profile;
	*attributes = (struct nvml_device_attributes){
		.multiprocessor_count =
			twin_compute_multiprocessors(call.board, profile, call.mig.slices),
		.copy_engine_count = profile->copies,
		.decoder_count = profile->decoders,
		.jpeg_count = profile->jpegs,
		.ofa_count = profile->ofas,
		.gpu_instance_slices = profile->slices,
		.compute_instance_slices = call.mig.slices,
		.memory_mib = profile->memory_mib,
	};
	return NVML_SUCCESS;
}

/* The first form has no slices. */
int nvmlDeviceGetAttributes(struct nvml_device *device,
			    struct nvml_device_attributes_v1 *attributes)
{
	struct nvml_device_attributes now;
	int rc = nvmlDeviceGetAttributes_v2(device, attributes ? &now : NULL);

	if (rc != NVML_SUCCESS)
		return rc;
	*attributes = (struct nvml_device_attributes_v1){
		.multiprocessor_count = now.multiprocessor_count,
		.copy_engine_count = now.copy_engine_count,
		.decoder_count = now.decoder_count,
		.jpeg_count = now.jpeg_count,
		.ofa_count = now.ofa_count,
		.memory_mib = now.memory_mib,
	};
	return NVML_SUCCESS;
}
