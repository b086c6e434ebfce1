/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: what they are, what they may be, and the calls that hold them. */
#include "nvml_entry.h"

static uint32_t top_mhz(const struct twin_board *board)
{
	return board->sm_mhz[board->clock_count - 1];
}

/* The video clock follows the SM clock between its own two ends. */
static uint32_t video_mhz(const struct twin_board *board, uint32_t sm_mhz)
{
	uint32_t span = board->video_max_mhz - board->video_idle_mhz;
	uint32_t above = sm_mhz > board->idle_mhz ? sm_mhz - board->idle_mhz : 0;

	return board->video_idle_mhz + span * above / (top_mhz(board) - board->idle_mhz);
}

static uint32_t clock_of(const struct twin_board *board, uint32_t type, uint32_t sm_mhz,
			 uint32_t memory_mhz)
{
	if (type == NVML_CLOCK_MEM)
		return memory_mhz;
	return type == NVML_CLOCK_VIDEO ? video_mhz(board, sm_mhz) : sm_mhz;
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t type, uint32_t *mhz)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, type < NVML_CLOCK_COUNT ? mhz : NULL, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*mhz = clock_of(call.board, type, gpu.now_mhz, gpu.now_memory_mhz);
	return rc;
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, uint32_t type, uint32_t *mhz)
{
	struct twin_call call;
	int rc = twin_enter_out(device, type < NVML_CLOCK_COUNT ? mhz : NULL, &call);

	if (rc == NVML_SUCCESS)
		*mhz = clock_of(call.board, type, top_mhz(call.board), call.board->memory[0].mhz);
	return rc;
}

/* Application clocks and boost exist for the graphics and memory clocks; SM follows graphics. */
static int enter_settable(struct nvml_device *device, uint32_t type, uint32_t *mhz,
			  struct twin_call *ret, struct twin_gpu *ret_gpu)
{
	int rc = twin_enter_read(device, type < NVML_CLOCK_COUNT ? mhz : NULL, ret, ret_gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	return type == NVML_CLOCK_VIDEO ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetApplicationsClock(struct nvml_device *device, uint32_t type, uint32_t *mhz)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_settable(device, type, mhz, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*mhz = clock_of(call.board, type,
				gpu.application_mhz ? gpu.application_mhz
						    : call.board->application_mhz,
				call.board->memory[0].mhz);
	return rc;
}

int nvmlDeviceGetDefaultApplicationsClock(struct nvml_device *device, uint32_t type, uint32_t *mhz)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_settable(device, type, mhz, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*mhz = clock_of(call.board, type, call.board->application_mhz,
				call.board->memory[0].mhz);
	return rc;
}

int nvmlDeviceGetMaxCustomerBoostClock(struct nvml_device *device, uint32_t type, uint32_t *mhz)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_settable(device, type, mhz, &call, &gpu);

	/* N/A on a captured GeForce 4080 */
	if (rc == NVML_SUCCESS && call.board->brand == NVML_BRAND_GEFORCE)
		return NVML_ERROR_NOT_SUPPORTED;
	if (rc == NVML_SUCCESS)
		*mhz = clock_of(call.board, type, top_mhz(call.board), call.board->memory[0].mhz);
	return rc;
}

int nvmlDeviceGetClock(struct nvml_device *device, uint32_t type, uint32_t id, uint32_t *mhz)
{
	switch (id) {
	case NVML_CLOCK_ID_APP_TARGET:
		return nvmlDeviceGetApplicationsClock(device, type, mhz);
	case NVML_CLOCK_ID_APP_DEFAULT:
		return nvmlDeviceGetDefaultApplicationsClock(device, type, mhz);
	case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX:
		return nvmlDeviceGetMaxCustomerBoostClock(device, type, mhz);
	default:
		return nvmlDeviceGetClockInfo(device,
					      id == NVML_CLOCK_ID_CURRENT ? type : UINT32_MAX, mhz);
	}
}

int nvmlDeviceGetSupportedMemoryClocks(struct nvml_device *device, uint32_t *count, uint32_t *mhz)
{
	struct twin_call call;
	int rc = twin_enter_out(device, count, &call);

	if (rc == NVML_SUCCESS && twin_room_for(count, call.board->memory_count, mhz, &rc)) {
		for (uint32_t i = 0; i < call.board->memory_count; i++)
			mhz[i] = call.board->memory[i].mhz;
	}
	return rc;
}

static const struct twin_memory_clock *find_memory(const struct twin_board *board, uint32_t mhz)
{
	for (uint32_t i = 0; i < board->memory_count; i++) {
		if (board->memory[i].mhz == mhz)
			return &board->memory[i];
	}
	return NULL;
}

/* Highest first, as the real list. */
int nvmlDeviceGetSupportedGraphicsClocks(struct nvml_device *device, uint32_t mem_mhz,
					 uint32_t *count, uint32_t *mhz)
{
	const struct twin_memory_clock *memory;
	struct twin_call call;
	int rc = twin_enter_out(device, count, &call);
	uint32_t n;

	if (rc != NVML_SUCCESS)
		return rc;
	memory = find_memory(call.board, mem_mhz);
	if (!memory)
		return NVML_ERROR_NOT_FOUND;
	n = call.board->clock_count;
	while (n > 1 && call.board->sm_mhz[n - 1] > memory->sm_max_mhz)
		n--;
	if (twin_room_for(count, n, mhz, &rc)) {
		for (uint32_t i = 0; i < n; i++)
			mhz[i] = call.board->sm_mhz[n - 1 - i];
	}
	return rc;
}

int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, uint64_t *reasons)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, reasons, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*reasons = gpu.now_reasons;
	return rc;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, uint64_t *reasons)
{
	return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

int nvmlDeviceGetSupportedClocksEventReasons(struct nvml_device *device, uint64_t *reasons)
{
	struct twin_call call;
	int rc = twin_enter_out(device, reasons, &call);

	if (rc == NVML_SUCCESS)
		*reasons = 0x1ff;
	return rc;
}

int nvmlDeviceGetSupportedClocksThrottleReasons(struct nvml_device *device, uint64_t *reasons)
{
	return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

struct range {
	uint32_t min_mhz, max_mhz;
};

/* A value between two steps is taken as the closest, as drivers do; the lower of two as close. */
static uint32_t nearest_step(const struct twin_board *board, uint32_t mhz)
{
	uint32_t i = board->clock_count - 1;

	while (i > 0 && board->sm_mhz[i] > mhz)
		i--;
	if (i + 1 < board->clock_count && board->sm_mhz[i] < mhz &&
	    board->sm_mhz[i + 1] - mhz < mhz - board->sm_mhz[i])
		i++;
	return board->sm_mhz[i];
}

static int lock_sm(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct range *range = arg;

	gpu->lock_min_mhz = range->max_mhz ? nearest_step(board, range->min_mhz) : 0;
	gpu->lock_max_mhz = range->max_mhz ? nearest_step(board, range->max_mhz) : 0;
	return NVML_SUCCESS;
}

/* One of the two symbolic pairs: base clock, or none at all. Mixing them with MHz is an error. */
static int symbolic(const struct range *range, const struct twin_board *board, struct range *ret)
{
	if (range->min_mhz != range->max_mhz)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = (struct range){0};
	if (range->min_mhz == NVML_CLOCK_LIMIT_ID_TDP)
		ret->min_mhz = ret->max_mhz = board->application_mhz;
	else if (range->min_mhz != NVML_CLOCK_LIMIT_ID_UNLIMITED)
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

static int set_lock(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	struct range range = *(const struct range *)arg;

	if (range.min_mhz >= 0xffffff00u || range.max_mhz >= 0xffffff00u) {
		int rc = symbolic(arg, board, &range);
		if (rc != NVML_SUCCESS)
			return rc;
	} else if (range.max_mhz == 0 || range.min_mhz > range.max_mhz) {
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	return lock_sm(gpu, board, &range);
}

int nvmlDeviceSetGpuLockedClocks(struct nvml_device *device, uint32_t min_mhz, uint32_t max_mhz)
{
	struct range range = {min_mhz, max_mhz};

	return twin_set(device, set_lock, &range, min_mhz == NVML_CLOCK_LIMIT_ID_UNLIMITED);
}

int nvmlDeviceResetGpuLockedClocks(struct nvml_device *device)
{
	struct range none = {0};

	return twin_set(device, lock_sm, &none, true);
}

static int lock_memory(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct range *range = arg;

	if (!(board->features & TWIN_HAS_MEMORY_LOCK))
		return NVML_ERROR_NOT_SUPPORTED;
	if (range->min_mhz > range->max_mhz)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->memory_lock_min_mhz = range->min_mhz;
	gpu->memory_lock_max_mhz = range->max_mhz;
	return NVML_SUCCESS;
}

int nvmlDeviceSetMemoryLockedClocks(struct nvml_device *device, uint32_t min_mhz, uint32_t max_mhz)
{
	struct range range = {min_mhz, max_mhz};

	return twin_set(device, lock_memory, &range, false);
}

int nvmlDeviceResetMemoryLockedClocks(struct nvml_device *device)
{
	struct range none = {0};

	return twin_set(device, lock_memory, &none, true);
}

struct application {
	uint32_t memory_mhz, graphics_mhz;
};

static int set_application(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct application *wish = arg;

	if (!find_memory(board, wish->memory_mhz) ||
	    nearest_step(board, wish->graphics_mhz) != wish->graphics_mhz)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->application_mhz = wish->graphics_mhz;
	return NVML_SUCCESS;
}

static int reset_application(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	gpu->application_mhz = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceSetApplicationsClocks(struct nvml_device *device, uint32_t mem_mhz,
				    uint32_t graphics_mhz)
{
	struct application wish = {mem_mhz, graphics_mhz};

	return twin_set_restricted(device, NVML_RESTRICTED_API_APPLICATION_CLOCKS, set_application,
				   &wish, false);
}

int nvmlDeviceResetApplicationsClocks(struct nvml_device *device)
{
	return twin_set_restricted(device, NVML_RESTRICTED_API_APPLICATION_CLOCKS,
				   reset_application, NULL, true);
}
