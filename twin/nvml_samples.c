/* SPDX-License-Identifier: Apache-2.0 */
/* The last readings, one after another: power, utilisation and clocks of the cells that a GPU
 * keeps. */
#include <string.h>

#include "nvml_entry.h"

/* Of one cell. No workload uses the video engines; the power of a module is not known apart. */
static bool sample_of(const struct twin_gpu *gpu, const struct twin_board *board, uint32_t type,
		      unsigned cell, uint32_t *ret)
{
	switch (type) {
	case NVML_SAMPLES_TOTAL_POWER:
		*ret = gpu->power_uw[cell] / 1000;
		return true;
	case NVML_SAMPLES_GPU_UTILIZATION:
		*ret = (gpu->util[cell] + 5u) / 10;
		return true;
	case NVML_SAMPLES_MEMORY_UTILIZATION:
		*ret = (gpu->memory_util[cell] + 5u) / 10;
		return true;
	case NVML_SAMPLES_ENCODER_UTILIZATION:
	case NVML_SAMPLES_DECODER_UTILIZATION:
		*ret = 0;
		return true;
	case NVML_SAMPLES_JPEG_UTILIZATION:
	case NVML_SAMPLES_OFA_UTILIZATION:
		*ret = 0;
		return board->features & TWIN_HAS_JPEG_OFA;
	case NVML_SAMPLES_PROCESSOR_CLOCK:
		*ret = gpu->sm_mhz[cell];
		return true;
	case NVML_SAMPLES_MEMORY_CLOCK:
		*ret = gpu->memory_mhz[cell];
		return true;
	default:
		return false;
	}
}

enum {
	/* two calls work out the stamp of one moment a little apart */
	STAMP_SLACK_US = 20
};

/* From the end of that cell to the end of the newest, in the world's time. */
static uint64_t since_us(const struct twin_map *map, uint64_t newest_ns, uint32_t ago)
{
	const struct twin_clock *clock = &twin_map_file(map)->clock;
	uint64_t now_ns = twin_now_ns();

	return (twin_clock_boot(clock, newest_ns, now_ns) -
		twin_clock_boot(clock, newest_ns - ago * TWIN_CELL_NS, now_ns)) /
	       1000;
}

/* In MIG mode nobody says how busy the GPU as a whole is. */
static bool is_utilization(uint32_t type)
{
	return type != NVML_SAMPLES_TOTAL_POWER && type != NVML_SAMPLES_PROCESSOR_CLOCK &&
	       type != NVML_SAMPLES_MEMORY_CLOCK;
}

/* Asking with no array means asking for the room that is enough. */
int nvmlDeviceGetSamples(struct nvml_device *device, uint32_t type, uint64_t last_seen_us,
			 uint32_t *value_type, uint32_t *count, struct nvml_sample *samples)
{
	uint32_t value, room, n = 0;
	uint64_t newest_ns, newest_us;
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, count ? value_type : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (type >= NVML_SAMPLES_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!sample_of(&gpu, call.board, type, 0, &value) || (gpu.mig_mode && is_utilization(type)))
		return NVML_ERROR_NOT_SUPPORTED;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	newest_ns = gpu.at_ns - gpu.at_ns % TWIN_CELL_NS;
	newest_us = twin_stamp_us(call.map, newest_ns);
	room = samples ? *count : 0;
	if (!samples)
		*count = TWIN_CELLS;
	for (uint32_t ago = TWIN_CELLS; samples && ago-- > 0 && n < room;) {
		unsigned cell = (unsigned)((gpu.cells - 1 - ago) % TWIN_CELLS);
		uint64_t ended_us = newest_us - since_us(call.map, newest_ns, ago);
		if (ended_us <= last_seen_us + STAMP_SLACK_US)
			continue;
		samples[n] = (struct nvml_sample){.timestamp_us = ended_us};
		sample_of(&gpu, call.board, type, cell, &samples[n++].value.u32);
	}
	if (samples)
		*count = n;
	return samples && n == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

enum {
	DOMAIN_GPU = 0,
	DOMAIN_MEMORY = 1
};

/* Utilisation by domain; the video engines and the bus are present and idle. */
int nvmlDeviceGetDynamicPstatesInfo(struct nvml_device *device, struct nvml_dynamic_pstates *info)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, info, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (gpu.mig_mode)
		return NVML_ERROR_NOT_SUPPORTED;
	memset(info, 0, sizeof(*info));
	for (unsigned i = 0; i < 4; i++)
		info->utilization[i].present = 1;
	info->utilization[DOMAIN_GPU].percent = twin_physics_util_percent(&gpu);
	info->utilization[DOMAIN_MEMORY].percent = twin_physics_memory_util_percent(&gpu);
	return NVML_SUCCESS;
}
