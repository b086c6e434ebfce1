/* SPDX-License-Identifier: Apache-2.0 */
/* Compute instances: the parts of a GPU instance that processes run in. */
#include <stdio.h>
#include <string.h>

#include "nvml_entry.h"
#include "twin_trouble.h"

/* One compute profile of one GPU instance. */
struct part {
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t start;
	const struct twin_mig_profile *profile;
	uint32_t number, slices;
};

static int enter_part(struct nvml_gpu_instance *instance, uint32_t number, const void *out,
		      struct part *ret)
{
	int rc = twin_enter_instance(instance, out, &ret->call, &ret->gpu, &ret->start);

	if (rc != NVML_SUCCESS)
		return rc;
	if (number >= TWIN_COMPUTE_PROFILES)
		return NVML_ERROR_INVALID_ARGUMENT;
	ret->profile = twin_mig_profile(&ret->gpu, ret->call.board, ret->start);
	ret->number = number;
	ret->slices = twin_compute_slices(number);
	return twin_compute_may_start(ret->profile, ret->slices, 0) ? NVML_SUCCESS
								    : NVML_ERROR_NOT_SUPPORTED;
}

/* Places in an empty instance, or only those that are free. */
static uint32_t places(const struct part *part, bool free)
{
	const struct twin_gpu_instance *instance = &part->gpu.instances[part->start];
	uint32_t n = 0;

	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++)
		n += free ? twin_compute_fits(instance, part->profile, part->slices, i)
			  : twin_compute_may_start(part->profile, part->slices, i);
	return n;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance,
						 uint32_t number, uint32_t engines,
						 struct nvml_compute_instance_profile *info)
{
	struct part part;
	int rc = enter_part(instance, number, engines == 0 ? info : NULL, &part);

	if (rc != NVML_SUCCESS)
		return rc;
	*info = (struct nvml_compute_instance_profile){
		.id = number,
		.slice_count = part.slices,
		.instance_count = places(&part, false),
		.multiprocessor_count =
			twin_compute_multiprocessors(part.call.board, part.profile, part.slices),
		.copy_engine_count = part.profile->copies,
		.decoder_count = part.profile->decoders,
		.jpeg_count = part.profile->jpegs,
		.ofa_count = part.profile->ofas,
	};
	return NVML_SUCCESS;
}

/* Both forms are alike up to the name; the third adds a word behind it. */
int nvmlGpuInstanceGetComputeInstanceProfileInfoV(struct nvml_gpu_instance *instance,
						  uint32_t number, uint32_t engines, void *info)
{
	struct nvml_compute_instance_profile_v3 full = {0};
	struct nvml_compute_instance_profile now;
	struct part part;
	int rc = enter_part(instance, number, engines == 0 ? info : NULL, &part);
	size_t size;

	if (rc != NVML_SUCCESS)
		return rc;
	memcpy(&full.version, info, sizeof(full.version));
	if (full.version == NVML_COMPUTE_INSTANCE_PROFILE_V2_WORD)
		size = sizeof(struct nvml_compute_instance_profile_v2);
	else if (full.version == NVML_COMPUTE_INSTANCE_PROFILE_V3_WORD)
		size = sizeof(full);
	else
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	rc = nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, engines, &now);
	if (rc != NVML_SUCCESS)
		return rc;
	memcpy(&full.id, &now, sizeof(now));
	snprintf(full.name, sizeof(full.name), "MIG ");
	twin_mig_name(part.call.board, part.profile, part.slices, full.name + 4,
		      sizeof(full.name) - 4);
	memcpy(info, &full, size);
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceRemainingCapacity(struct nvml_gpu_instance *instance,
						       uint32_t number, uint32_t *count)
{
	struct part part;
	int rc = enter_part(instance, number, count, &part);

	if (rc == NVML_SUCCESS)
		*count = places(&part, true);
	return rc;
}

int nvmlGpuInstanceGetComputeInstancePossiblePlacements(
	struct nvml_gpu_instance *instance, uint32_t number,
	struct nvml_gpu_instance_placement *placements, uint32_t *count)
{
	struct part part;
	uint32_t n = 0;
	int rc = enter_part(instance, number, count, &part);

	if (rc != NVML_SUCCESS)
		return rc;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++) {
		if (!twin_compute_may_start(part.profile, part.slices, i))
			continue;
		if (placements)
			placements[n] = (struct nvml_gpu_instance_placement){.start = i,
									     .size = part.slices};
		n++;
	}
	*count = n;
	return NVML_SUCCESS;
}

struct creation {
	uint32_t start, number;
	const struct nvml_gpu_instance_placement *placement; /* NULL: the first that is free */
	uint32_t compute_start;
};

static uint8_t free_id(const struct twin_gpu_instance *instance)
{
	for (uint8_t id = 0;; id++) {
		bool taken = false;
		for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++)
			taken |= instance->compute[i].slices && instance->compute[i].id == id;
		if (!taken)
			return id;
	}
}

static bool first_place(const struct twin_gpu_instance *instance,
			const struct twin_mig_profile *profile, uint32_t slices, uint32_t *ret)
{
	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++) {
		if (!twin_compute_fits(instance, profile, slices, i))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

static int create(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	struct creation *creation = arg;
	struct twin_gpu_instance *instance = &gpu->instances[creation->start];
	uint32_t slices = twin_compute_slices(creation->number), at = 0;
	const struct twin_mig_profile *profile;

	if (!instance->used)
		return NVML_ERROR_NOT_FOUND;
	profile = twin_mig_profile(gpu, board, creation->start);
	if (creation->placement) {
		at = creation->placement->start;
		if (creation->placement->size != slices ||
		    !twin_compute_may_start(profile, slices, at))
			return NVML_ERROR_INVALID_ARGUMENT;
		if (!twin_compute_fits(instance, profile, slices, at))
			return NVML_ERROR_INSUFFICIENT_RESOURCES;
	} else if (!first_place(instance, profile, slices, &at)) {
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	}
	instance->compute[at] =
		(struct twin_compute_instance){.slices = (uint8_t)slices, .id = free_id(instance)};
	creation->compute_start = at;
	twin_event_add(gpu, NVML_EVENT_MIG_CONFIG_CHANGE, 0);
	return NVML_SUCCESS;
}

static int create_in(struct nvml_gpu_instance *instance, struct creation *creation,
		     struct nvml_compute_instance **compute)
{
	struct part part;
	int rc = enter_part(instance, creation->number, compute, &part);

	if (rc != NVML_SUCCESS)
		return rc;
	creation->start = part.start;
	rc = twin_set_as("nvmlGpuInstanceCreateComputeInstance",
			 twin_handle(part.call.map, part.call.index), create, creation, false);
	if (rc == NVML_SUCCESS)
		*compute = twin_compute_handle(&part.call, part.start, creation->compute_start);
	return rc;
}

int nvmlGpuInstanceCreateComputeInstance(struct nvml_gpu_instance *instance, uint32_t number,
					 struct nvml_compute_instance **compute)
{
	return create_in(instance, &(struct creation){.number = number}, compute);
}

int nvmlGpuInstanceCreateComputeInstanceWithPlacement(
	struct nvml_gpu_instance *instance, uint32_t number,
	const struct nvml_gpu_instance_placement *placement, struct nvml_compute_instance **compute)
{
	struct creation creation = {.number = number, .placement = placement};

	return create_in(instance, &creation, placement ? compute : NULL);
}

int nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, uint32_t number,
				       struct nvml_compute_instance **computes, uint32_t *count)
{
	struct part part;
	int rc = enter_part(instance, number, count ? computes : NULL, &part);

	if (rc != NVML_SUCCESS)
		return rc;
	*count = 0;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++) {
		if (part.gpu.instances[part.start].compute[i].slices == part.slices)
			computes[(*count)++] = twin_compute_handle(&part.call, part.start, i);
	}
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceById(struct nvml_gpu_instance *instance, uint32_t id,
					  struct nvml_compute_instance **compute)
{
	const struct twin_compute_instance *all;
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t start;
	int rc = twin_enter_instance(instance, compute, &call, &gpu, &start);

	if (rc != NVML_SUCCESS)
		return rc;
	all = gpu.instances[start].compute;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++) {
		if (!all[i].slices || all[i].id != id)
			continue;
		*compute = twin_compute_handle(&call, start, i);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

struct place {
	uint32_t start, compute_start;
};

static int destroy(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct place *place = arg;
	struct twin_compute_instance *compute =
		&gpu->instances[place->start].compute[place->compute_start];

	if (!compute->slices)
		return NVML_ERROR_NOT_FOUND;
	if (twin_mig_busy(gpu, place->start, place->compute_start))
		return NVML_ERROR_IN_USE;
	memset(compute, 0, sizeof(*compute));
	twin_event_add(gpu, NVML_EVENT_MIG_CONFIG_CHANGE, 0);
	return NVML_SUCCESS;
}

int nvmlComputeInstanceDestroy(struct nvml_compute_instance *compute)
{
	struct twin_call call;
	struct twin_gpu gpu;
	struct place place;
	int rc = twin_enter_compute(compute, compute, &call, &gpu, &place.start,
				    &place.compute_start);

	return rc == NVML_SUCCESS
		       ? twin_set(twin_handle(call.map, call.index), destroy, &place, false)
		       : rc;
}

int nvmlComputeInstanceGetInfo_v2(struct nvml_compute_instance *compute,
				  struct nvml_compute_instance_info *info)
{
	const struct twin_compute_instance *found;
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t start, at;
	int rc = twin_enter_compute(compute, info, &call, &gpu, &start, &at);

	if (rc != NVML_SUCCESS)
		return rc;
	found = &gpu.instances[start].compute[at];
	*info = (struct nvml_compute_instance_info){
		.device = twin_handle(call.map, call.index),
		.gpu_instance = twin_instance_handle(&call, start),
		.id = found->id,
		.profile_id = twin_compute_number(found->slices),
		.placement = {.start = at, .size = found->slices},
	};
	return NVML_SUCCESS;
}

int nvmlComputeInstanceGetInfo(struct nvml_compute_instance *compute,
			       struct nvml_compute_instance_info_v1 *info)
{
	struct nvml_compute_instance_info now;
	int rc = nvmlComputeInstanceGetInfo_v2(compute, info ? &now : NULL);

	if (rc != NVML_SUCCESS)
		return rc;
	*info = (struct nvml_compute_instance_info_v1){
		.device = now.device,
		.gpu_instance = now.gpu_instance,
		.id = now.id,
		.profile_id = now.profile_id,
	};
	return NVML_SUCCESS;
}
