/* SPDX-License-Identifier: Apache-2.0 */
/* GPU instances: their profiles and places, making, finding and ending them. */
#include <stdio.h>
#include <string.h>

#include "nvml_entry.h"
#include "twin_trouble.h"

/* A profile by its id, of a GPU whose mode is on. */
static int enter_profile(struct nvml_device *device, uint32_t id, const void *out,
			 struct twin_call *ret, struct twin_gpu *ret_gpu,
			 const struct twin_mig_profile **ret_profile)
{
	int rc = twin_enter_read(device, out, ret, ret_gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (ret->board->mig_count == 0 || !ret_gpu->mig_mode)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret_profile = twin_mig_by_id(ret->board, id);
	return *ret_profile ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* What a profile offers can be asked while the mode is off, too. */
static int enter_number(struct nvml_device *device, uint32_t number, const void *out,
			struct twin_call *ret, const struct twin_mig_profile **ret_profile)
{
	int rc = twin_enter_out(device, out, ret);

	if (rc != NVML_SUCCESS)
		return rc;
	if (ret->board->mig_count == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_profile = twin_mig_by_number(ret->board, number);
	return *ret_profile ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, uint32_t number,
					struct nvml_gpu_instance_profile *info)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	int rc = enter_number(device, number, info, &call, &profile);

	if (rc != NVML_SUCCESS)
		return rc;
	*info = (struct nvml_gpu_instance_profile){
		.id = profile->id,
		.slice_count = profile->slices,
		.instance_count = profile->count,
		.multiprocessor_count = profile->multiprocessors,
		.copy_engine_count = profile->copies,
		.decoder_count = profile->decoders,
		.jpeg_count = profile->jpegs,
		.ofa_count = profile->ofas,
		.memory_mib = profile->memory_mib,
	};
	return NVML_SUCCESS;
}

static void tell_v2(const struct twin_board *board, const struct twin_mig_profile *profile,
		    struct nvml_gpu_instance_profile_v2 *info)
{
	*info = (struct nvml_gpu_instance_profile_v2){
		.version = NVML_GPU_INSTANCE_PROFILE_V2_WORD,
		.id = profile->id,
		.slice_count = profile->slices,
		.instance_count = profile->count,
		.multiprocessor_count = profile->multiprocessors,
		.copy_engine_count = profile->copies,
		.decoder_count = profile->decoders,
		.jpeg_count = profile->jpegs,
		.ofa_count = profile->ofas,
		.memory_mib = profile->memory_mib,
	};
	snprintf(info->name, sizeof(info->name), "MIG ");
	twin_mig_name(board, profile, profile->slices, info->name + 4, sizeof(info->name) - 4);
}

static void tell_v3(const struct twin_board *board, const struct twin_mig_profile *profile,
		    struct nvml_gpu_instance_profile_v3 *info)
{
	*info = (struct nvml_gpu_instance_profile_v3){
		.version = NVML_GPU_INSTANCE_PROFILE_V3_WORD,
		.id = profile->id,
		.slice_count = profile->slices,
		.instance_count = profile->count,
		.multiprocessor_count = profile->multiprocessors,
		.copy_engine_count = profile->copies,
		.decoder_count = profile->decoders,
		.jpeg_count = profile->jpegs,
		.ofa_count = profile->ofas,
		.memory_mib = profile->memory_mib,
	};
	snprintf(info->name, sizeof(info->name), "MIG ");
	twin_mig_name(board, profile, profile->slices, info->name + 4, sizeof(info->name) - 4);
}

/* Two layouts of one size: the word alone tells them apart. */
static int tell(const struct twin_board *board, const struct twin_mig_profile *profile, void *info)
{
	uint32_t version;

	memcpy(&version, info, sizeof(version));
	if (version == NVML_GPU_INSTANCE_PROFILE_V2_WORD)
		tell_v2(board, profile, info);
	else if (version == NVML_GPU_INSTANCE_PROFILE_V3_WORD)
		tell_v3(board, profile, info);
	else
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, uint32_t number, void *info)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	int rc = enter_number(device, number, info, &call, &profile);

	return rc == NVML_SUCCESS ? tell(call.board, profile, info) : rc;
}

int nvmlDeviceGetGpuInstanceProfileInfoByIdV(struct nvml_device *device, uint32_t id, void *info)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	int rc = twin_enter_out(device, info, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (call.board->mig_count == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	profile = twin_mig_by_id(call.board, id);
	return profile ? tell(call.board, profile, info) : NVML_ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetGpuInstanceRemainingCapacity(struct nvml_device *device, uint32_t id,
					      uint32_t *count)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_profile(device, id, count, &call, &gpu, &profile);

	if (rc == NVML_SUCCESS)
		*count = twin_mig_room(&gpu, call.board, profile);
	return rc;
}

/* All places of an empty GPU. Without room for them it tells how many there are. */
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(struct nvml_device *device, uint32_t id,
						  struct nvml_gpu_instance_placement *placements,
						  uint32_t *count)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t n = 0;
	int rc = enter_profile(device, id, count, &call, &gpu, &profile);

	if (rc != NVML_SUCCESS)
		return rc;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		if (!twin_mig_may_start(profile, i))
			continue;
		if (placements)
			placements[n] = (struct nvml_gpu_instance_placement){.start = i,
									     .size = profile->size};
		n++;
	}
	*count = n;
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstancePossiblePlacements(struct nvml_device *device, uint32_t id,
					       struct nvml_gpu_instance_placement *placements,
					       uint32_t *count)
{
	return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements,
							     placements ? count : NULL);
}

struct creation {
	uint32_t id;
	const struct nvml_gpu_instance_placement *placement; /* NULL: where the driver likes */
	uint32_t start;
};

static int create(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	struct creation *creation = arg;
	const struct twin_mig_profile *profile = twin_mig_by_id(board, creation->id);
	uint32_t start = 0;

	if (board->mig_count == 0 || !gpu->mig_mode)
		return NVML_ERROR_NOT_SUPPORTED;
	if (!profile)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (creation->placement) {
		start = creation->placement->start;
		if (creation->placement->size != profile->size ||
		    !twin_mig_may_start(profile, start))
			return NVML_ERROR_INVALID_ARGUMENT;
		if (!twin_mig_fits(gpu, board, profile, start))
			return NVML_ERROR_INSUFFICIENT_RESOURCES;
	} else if (!twin_mig_choose(gpu, board, profile, &start)) {
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	}
	gpu->instances[start] =
		(struct twin_gpu_instance){.used = 1, .profile = (uint8_t)(profile - board->mig)};
	creation->start = start;
	twin_event_add(gpu, NVML_EVENT_MIG_CONFIG_CHANGE, 0);
	return NVML_SUCCESS;
}

static int create_for(struct nvml_device *device, struct creation *creation,
		      struct nvml_gpu_instance **instance)
{
	struct twin_call call;
	int rc = twin_enter_out(device, instance, &call);

	if (rc == NVML_SUCCESS)
		rc = twin_set_as("nvmlDeviceCreateGpuInstance", device, create, creation, false);
	if (rc == NVML_SUCCESS)
		*instance = twin_instance_handle(&call, creation->start);
	return rc;
}

int nvmlDeviceCreateGpuInstance(struct nvml_device *device, uint32_t id,
				struct nvml_gpu_instance **instance)
{
	return create_for(device, &(struct creation){.id = id}, instance);
}

int nvmlDeviceCreateGpuInstanceWithPlacement(struct nvml_device *device, uint32_t id,
					     const struct nvml_gpu_instance_placement *placement,
					     struct nvml_gpu_instance **instance)
{
	struct creation creation = {.id = id, .placement = placement};

	return create_for(device, &creation, placement ? instance : NULL);
}

static int destroy(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	struct twin_gpu_instance *instance = &gpu->instances[*(const uint32_t *)arg];

	if (!instance->used)
		return NVML_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++) {
		if (instance->compute[i].slices)
			return NVML_ERROR_IN_USE;
	}
	memset(instance, 0, sizeof(*instance));
	twin_event_add(gpu, NVML_EVENT_MIG_CONFIG_CHANGE, 0);
	return NVML_SUCCESS;
}

int nvmlGpuInstanceDestroy(struct nvml_gpu_instance *instance)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t start;
	int rc = twin_enter_instance(instance, instance, &call, &gpu, &start);

	return rc == NVML_SUCCESS
		       ? twin_set(twin_handle(call.map, call.index), destroy, &start, false)
		       : rc;
}

int nvmlDeviceGetGpuInstances(struct nvml_device *device, uint32_t id,
			      struct nvml_gpu_instance **instances, uint32_t *count)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_profile(device, id, count ? instances : NULL, &call, &gpu, &profile);

	if (rc != NVML_SUCCESS)
		return rc;
	*count = 0;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		if (gpu.instances[i].used && twin_mig_profile(&gpu, call.board, i) == profile)
			instances[(*count)++] = twin_instance_handle(&call, i);
	}
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceById(struct nvml_device *device, uint32_t id,
				 struct nvml_gpu_instance **instance)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, instance, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (call.board->mig_count == 0 || !gpu.mig_mode)
		return NVML_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		if (!gpu.instances[i].used ||
		    twin_mig_id(twin_mig_profile(&gpu, call.board, i), i) != id)
			continue;
		*instance = twin_instance_handle(&call, i);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance, struct nvml_gpu_instance_info *info)
{
	const struct twin_mig_profile *profile;
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t start;
	int rc = twin_enter_instance(instance, info, &call, &gpu, &start);

	if (rc != NVML_SUCCESS)
		return rc;
	profile = twin_mig_profile(&gpu, call.board, start);
	*info = (struct nvml_gpu_instance_info){
		.device = twin_handle(call.map, call.index),
		.id = twin_mig_id(profile, start),
		.profile_id = profile->id,
		.placement = {.start = start, .size = profile->size},
	};
	return NVML_SUCCESS;
}
