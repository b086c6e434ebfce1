/* SPDX-License-Identifier: Apache-2.0 */
/* Fans of boards that have their own: they follow the temperature until somebody sets them. A
 * board's fans go together here, whichever of them is set (GUESS: real ones go apart). */
#include "nvml_entry.h"

/* Most boards are cooled by the machine's fans. */
int nvmlDeviceGetNumFans(struct nvml_device *device, uint32_t *fans)
{
	struct twin_call call;
	int rc = twin_enter_out(device, fans, &call);

	if (rc == NVML_SUCCESS)
		*fans = call.board->fans;
	return rc;
}

int nvmlDeviceGetFanSpeed(struct nvml_device *device, uint32_t *percent)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, percent, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (call.board->fans == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*percent = gpu.now_fan_percent;
	return NVML_SUCCESS;
}

int nvmlDeviceGetFanSpeed_v2(struct nvml_device *device, uint32_t fan, uint32_t *percent)
{
	struct twin_call call;
	int rc = twin_enter_out(device, percent, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (call.board->fans && fan >= call.board->fans)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvmlDeviceGetFanSpeed(device, percent);
}

/* A fan of a board that has fans. */
static int enter_fan(struct nvml_device *device, uint32_t fan, const void *out,
		     struct twin_call *ret, struct twin_gpu *ret_gpu)
{
	int rc = twin_enter_read(device, out, ret, ret_gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (ret->board->fans == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	return fan < ret->board->fans ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetTargetFanSpeed(struct nvml_device *device, uint32_t fan, uint32_t *percent)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_fan(device, fan, percent, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*percent = twin_physics_fan_target(&gpu, call.board);
	return rc;
}

int nvmlDeviceGetMinMaxFanSpeed(struct nvml_device *device, uint32_t *min, uint32_t *max)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_fan(device, 0, max ? min : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	*min = call.board->fan_min_percent;
	*max = 100;
	return NVML_SUCCESS;
}

enum {
	FOLLOWS_TEMPERATURE = 0,
	SET_BY_HAND = 1,
	CONTROL_VARIABLE = 2,
	TARGET_GPU = 1
};

int nvmlDeviceGetFanControlPolicy_v2(struct nvml_device *device, uint32_t fan, uint32_t *policy)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = enter_fan(device, fan, policy, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*policy = gpu.fan_set_percent ? SET_BY_HAND : FOLLOWS_TEMPERATURE;
	return rc;
}

struct fan_wish {
	uint32_t fan, percent;
};

static int set_speed(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct fan_wish *wish = arg;

	if (board->fans == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (wish->fan >= board->fans || wish->percent < board->fan_min_percent ||
	    wish->percent > 100)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->fan_set_percent = wish->percent;
	return NVML_SUCCESS;
}

int nvmlDeviceSetFanSpeed_v2(struct nvml_device *device, uint32_t fan, uint32_t percent)
{
	struct fan_wish wish = {fan, percent};

	return twin_set(device, set_speed, &wish, false);
}

static int set_policy(struct twin_gpu *gpu, const struct twin_board *board, uint32_t fan,
		      bool by_hand)
{
	if (board->fans == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (fan >= board->fans)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->fan_set_percent = by_hand ? twin_physics_fan_target(gpu, board) : 0;
	return NVML_SUCCESS;
}

static int let_go(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	return set_policy(gpu, board, *(const uint32_t *)arg, false);
}

/* They stay at the speed that they have. */
static int hold(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	return set_policy(gpu, board, *(const uint32_t *)arg, true);
}

int nvmlDeviceSetDefaultFanSpeed_v2(struct nvml_device *device, uint32_t fan)
{
	return twin_set(device, let_go, &fan, true);
}

int nvmlDeviceSetFanControlPolicy(struct nvml_device *device, uint32_t fan, uint32_t policy)
{
	if (twin_machine_map() && policy > SET_BY_HAND)
		return NVML_ERROR_INVALID_ARGUMENT;
	return twin_set(device, policy == SET_BY_HAND ? hold : let_go, &fan,
			policy == FOLLOWS_TEMPERATURE);
}

int nvmlDeviceGetCoolerInfo(struct nvml_device *device, struct nvml_cooler_info *info)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, info, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (info->version != NVML_COOLER_INFO_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	rc = enter_fan(device, info->index, info, &call, &gpu);
	if (rc != NVML_SUCCESS)
		return rc;
	info->control = CONTROL_VARIABLE;
	info->target = TARGET_GPU;
	return NVML_SUCCESS;
}
