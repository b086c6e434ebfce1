/* SPDX-License-Identifier: Apache-2.0 */
/* Power, energy, temperature, and the limits that act on them. */
#include <string.h>

#include "nvml_entry.h"

int nvmlDeviceGetPowerUsage(struct nvml_device *device, uint32_t *power_mw)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, power_mw, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*power_mw = twin_physics_power_reading_mw(&gpu, call.board, true);
	return rc;
}

int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, uint64_t *energy_mj)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, energy_mj, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*energy_mj = gpu.counter_nj / 1000000;
	return rc;
}

int nvmlDeviceGetPowerManagementMode(struct nvml_device *device, uint32_t *mode)
{
	struct twin_call call;
	int rc = twin_enter_out(device, mode, &call);

	if (rc == NVML_SUCCESS)
		*mode = NVML_FEATURE_ENABLED;
	return rc;
}

int nvmlDeviceGetPowerManagementLimit(struct nvml_device *device, uint32_t *limit_mw)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, limit_mw, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*limit_mw = gpu.limit_mw;
	return rc;
}

int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *device, uint32_t *limit_mw)
{
	return nvmlDeviceGetPowerManagementLimit(device, limit_mw);
}

int nvmlDeviceGetPowerManagementDefaultLimit(struct nvml_device *device, uint32_t *limit_mw)
{
	struct twin_call call;
	int rc = twin_enter_out(device, limit_mw, &call);

	if (rc == NVML_SUCCESS)
		*limit_mw = call.board->power_default_mw;
	return rc;
}

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, uint32_t *min_mw,
						 uint32_t *max_mw)
{
	struct twin_call call;
	int rc = twin_enter_out(device, max_mw ? min_mw : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	*min_mw = call.board->power_min_mw;
	*max_mw = call.board->power_max_mw;
	return NVML_SUCCESS;
}

static int set_limit(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t limit_mw = *(const uint32_t *)arg;

	if (limit_mw < board->power_min_mw || limit_mw > board->power_max_mw)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->limit_mw = limit_mw;
	return NVML_SUCCESS;
}

int nvmlDeviceSetPowerManagementLimit(struct nvml_device *device, uint32_t limit_mw)
{
	uint32_t default_mw = 0;
	int rc = nvmlDeviceGetPowerManagementDefaultLimit(device, &default_mw);

	return rc == NVML_SUCCESS ? twin_set(device, set_limit, &limit_mw, limit_mw == default_mw)
				  : rc;
}

int nvmlDeviceSetPowerManagementLimit_v2(struct nvml_device *device,
					 struct nvml_power_value_v2 *value)
{
	struct twin_call call;
	int rc = twin_enter_out(device, value, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (value->version != NVML_POWER_VALUE_V2_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (value->scope > NVML_POWER_SCOPE_MEMORY)
		return NVML_ERROR_INVALID_ARGUMENT;
	return value->scope == NVML_POWER_SCOPE_GPU
		       ? nvmlDeviceSetPowerManagementLimit(device, value->power_mw)
		       : NVML_ERROR_NOT_SUPPORTED;
}

/* The numbers between are nobody's. */
static bool is_policy(uint32_t policy)
{
	return policy <= NVML_PERF_POLICY_RELIABILITY ||
	       (policy >= NVML_PERF_POLICY_TOTAL_APP_CLOCKS && policy < NVML_PERF_POLICY_COUNT);
}

/* Of policies that no simulated board has: never. */
int nvmlDeviceGetViolationStatus(struct nvml_device *device, uint32_t policy,
				 struct nvml_violation_time *time)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, is_policy(policy) ? time : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	time->reference_us = twin_stamp_us(call.map, gpu.at_ns);
	time->violation_ns = 0;
	if (policy == NVML_PERF_POLICY_POWER)
		time->violation_ns = gpu.power_cap_ns;
	else if (policy == NVML_PERF_POLICY_THERMAL)
		time->violation_ns = gpu.sw_thermal_ns + gpu.hw_thermal_ns;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, sensor == NVML_TEMPERATURE_GPU ? celsius : NULL, &call,
				 &gpu);

	if (rc == NVML_SUCCESS)
		*celsius = (uint32_t)(gpu.temp_uc / 1000000);
	return rc;
}

int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature_value *value)
{
	struct twin_call call;
	uint32_t celsius;
	int rc = twin_enter_out(device, value, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (value->version != NVML_TEMPERATURE_VALUE_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	rc = nvmlDeviceGetTemperature(device, value->sensor, &celsius);
	if (rc == NVML_SUCCESS)
		value->celsius = (int32_t)celsius;
	return rc;
}

/* How far it may still warm up. */
int nvmlDeviceGetMarginTemperature(struct nvml_device *device,
				   struct nvml_margin_temperature *margin)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, margin, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_T_LIMIT))
		return NVML_ERROR_NOT_SUPPORTED;
	if (margin->version != NVML_MARGIN_TEMPERATURE_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	margin->celsius = (int32_t)call.board->gpu_max_c - (int32_t)(gpu.temp_uc / 1000000);
	return NVML_SUCCESS;
}

int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, uint32_t type, uint32_t *celsius)
{
	struct twin_call call;
	int rc = twin_enter_out(device, type < NVML_THRESHOLD_COUNT ? celsius : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	switch (type) {
	case NVML_THRESHOLD_SHUTDOWN:
		*celsius = call.board->shutdown_c;
		return NVML_SUCCESS;
	case NVML_THRESHOLD_SLOWDOWN:
		*celsius = call.board->slowdown_c;
		return NVML_SUCCESS;
	case NVML_THRESHOLD_MEM_MAX:
		if (!twin_has(&call, TWIN_HAS_MEMORY_MAX))
			return NVML_ERROR_NOT_SUPPORTED;
		*celsius = call.board->memory_max_c;
		return NVML_SUCCESS;
	case NVML_THRESHOLD_GPU_MAX:
		*celsius = call.board->gpu_max_c;
		return NVML_SUCCESS;
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

enum {
	THERMAL_TARGET_GPU = 1,
	THERMAL_TARGET_ALL = 15,
	THERMAL_CONTROLLER_INTERNAL = 1
};

int nvmlDeviceGetThermalSettings(struct nvml_device *device, uint32_t index,
				 struct nvml_thermal_settings *settings)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, settings, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (index != 0 && index != THERMAL_TARGET_ALL)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(settings, 0, sizeof(*settings));
	settings->count = 1;
	settings->sensor[0] = (struct nvml_thermal_sensor){
		.controller = THERMAL_CONTROLLER_INTERNAL,
		.default_max_c = (int32_t)call.board->shutdown_c,
		.current_c = (int32_t)(gpu.temp_uc / 1000000),
		.target = THERMAL_TARGET_GPU,
	};
	return NVML_SUCCESS;
}
