/* SPDX-License-Identifier: Apache-2.0 */
/* Performance states: a board has one for work, and one for rest where that is another. */
#include "nvml_entry.h"

int nvmlDeviceGetPerformanceState(struct nvml_device *device, uint32_t *pstate)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, pstate, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*pstate = gpu.now_pstate;
	return rc;
}

int nvmlDeviceGetPowerState(struct nvml_device *device, uint32_t *pstate)
{
	return nvmlDeviceGetPerformanceState(device, pstate);
}

/* `size` is in bytes, and what is left of the array is filled. */
int nvmlDeviceGetSupportedPerformanceStates(struct nvml_device *device, uint32_t *pstates,
					    uint32_t size)
{
	struct twin_call call;
	int rc = twin_enter_out(device, pstates, &call);
	uint32_t room = size / (uint32_t)sizeof(*pstates), n = 0;
	bool rests;

	if (rc != NVML_SUCCESS)
		return rc;
	rests = call.board->idle_pstate != call.board->busy_pstate;
	if (room < 1u + rests)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	pstates[n++] = call.board->busy_pstate;
	if (rests)
		pstates[n++] = call.board->idle_pstate;
	while (n < room)
		pstates[n++] = NVML_PSTATE_UNKNOWN;
	return NVML_SUCCESS;
}

/* The memory clock tells the states apart; the others may be anywhere below what goes with it. */
static void range_of(const struct twin_board *board, uint32_t type, bool busy, uint32_t *min,
		     uint32_t *max)
{
	uint32_t at = 0;

	while (!busy && at + 1 < board->memory_count &&
	       board->memory[at].mhz > board->idle_memory_mhz)
		at++;
	switch (type) {
	case NVML_CLOCK_GRAPHICS:
	case NVML_CLOCK_SM:
		*min = board->sm_mhz[0];
		*max = board->memory[at].sm_max_mhz;
		break;
	case NVML_CLOCK_MEM:
		*min = *max = board->memory[at].mhz;
		break;
	default:
		*min = board->video_idle_mhz;
		*max = board->video_max_mhz;
	}
}

int nvmlDeviceGetMinMaxClockOfPState(struct nvml_device *device, uint32_t type, uint32_t pstate,
				     uint32_t *min_mhz, uint32_t *max_mhz)
{
	struct twin_call call;
	int rc = twin_enter_out(device, max_mhz && type < NVML_CLOCK_COUNT ? min_mhz : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (pstate != call.board->busy_pstate && pstate != call.board->idle_pstate)
		return NVML_ERROR_INVALID_ARGUMENT;
	range_of(call.board, type, pstate == call.board->busy_pstate, min_mhz, max_mhz);
	return NVML_SUCCESS;
}

/* Volta and newer, which all boards of the twin are (GUESS that it is on). */
int nvmlDeviceGetAdaptiveClockInfoStatus(struct nvml_device *device, uint32_t *status)
{
	struct twin_call call;
	int rc = twin_enter_out(device, status, &call);

	if (rc == NVML_SUCCESS)
		*status = NVML_FEATURE_ENABLED;
	return rc;
}
