/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field values: many readings in one call. The call succeeds; each entry has a code of its own.
 * What scope_id means depends on the field: an NVLink, or for power the GPU, module or memory.
 */
#include "nvml_entry.h"

/* One entry being answered. */
struct field {
	const struct twin_call *call;
	const struct twin_gpu *gpu;
	struct nvml_field_value *out;
};

static int put_u32(const struct field *field, uint32_t value)
{
	field->out->value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	field->out->value.u64 = 0;
	field->out->value.u32 = value;
	return NVML_SUCCESS;
}

static int put_u64(const struct field *field, uint64_t value)
{
	field->out->value_type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	field->out->value.u64 = value;
	return NVML_SUCCESS;
}

static int put_i32(const struct field *field, int32_t value)
{
	field->out->value_type = NVML_VALUE_TYPE_SIGNED_INT;
	field->out->value.u64 = 0;
	field->out->value.i32 = value;
	return NVML_SUCCESS;
}

/* The board's answer if it has the feature. */
static int put_u32_if(const struct field *field, enum twin_feature feature, uint32_t value)
{
	return twin_has(field->call, feature) ? put_u32(field, value) : NVML_ERROR_NOT_SUPPORTED;
}

/* HBM's own rail: what idles there and what bandwidth costs. */
static uint32_t memory_power_mw(const struct field *field)
{
	const struct twin_board *board = field->call->board;

	return board->memory_idle_mw +
	       board->memory_mw * twin_physics_memory_util_percent(field->gpu) / 100;
}

static int memory_temp_c(const struct field *field)
{
	const struct twin_board *board = field->call->board;
	int64_t celsius = field->gpu->temp_uc * board->memory_temp_permille / 1000000000 +
			  board->memory_temp_plus_c;

	return put_u32_if(field, TWIN_HAS_MEMORY_TEMP, (uint32_t)celsius);
}

static int power_average(const struct field *field)
{
	if (field->out->scope_id == NVML_POWER_SCOPE_MEMORY)
		return put_u32_if(field, TWIN_HAS_MEMORY_POWER, memory_power_mw(field));
	if (field->out->scope_id != NVML_POWER_SCOPE_GPU)
		return NVML_ERROR_NOT_SUPPORTED;
	return put_u32_if(field, TWIN_HAS_POWER_AVERAGE,
			  twin_physics_power_reading_mw(field->gpu, field->call->board, true));
}

/* Power limits and the instant reading: for the GPU alone. */
static int power_of_gpu(const struct field *field)
{
	const struct twin_board *board = field->call->board;

	if (field->out->scope_id != NVML_POWER_SCOPE_GPU)
		return NVML_ERROR_NOT_SUPPORTED;
	switch (field->out->field_id) {
	case NVML_FI_POWER_INSTANT:
		return put_u32(field, twin_physics_power_reading_mw(field->gpu, board, false));
	case NVML_FI_POWER_MIN_LIMIT:
		return put_u32(field, board->power_min_mw);
	case NVML_FI_POWER_MAX_LIMIT:
		return put_u32(field, board->power_max_mw);
	case NVML_FI_POWER_DEFAULT_LIMIT:
		return put_u32(field, board->power_default_mw);
	default: /* current, requested */
		return put_u32(field, field->gpu->limit_mw);
	}
}

static int t_limit(const struct field *field)
{
	uint32_t which = field->out->field_id - NVML_FI_TLIMIT_SHUTDOWN;

	return twin_has(field->call, TWIN_HAS_T_LIMIT)
		       ? put_i32(field, field->call->board->t_limit_c[which])
		       : NVML_ERROR_NOT_SUPPORTED;
}

static int link_field(const struct field *field)
{
	const struct twin_board *board = field->call->board;

	if (field->out->scope_id >= field->call->desc->link_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	switch (field->out->field_id) {
	case NVML_FI_NVLINK_GET_SPEED:
		return put_u32(field, board->nvlink_mbps);
	case NVML_FI_NVLINK_GET_STATE:
		return put_u32(field, field->gpu->links_down >> field->out->scope_id & 1
					      ? NVML_FEATURE_DISABLED
					      : NVML_FEATURE_ENABLED);
	default:
		return put_u32(field, board->nvlink_version);
	}
}

/* Speed of link N by its own field: six ids in one place, six more in another. */
static int link_speed(const struct field *field, uint32_t link)
{
	return put_u32(field,
		       link < field->call->desc->link_count ? field->call->board->nvlink_mbps : 0);
}

static int switch_links(const struct field *field)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < field->call->desc->link_count; i++)
		n += field->call->desc->links[i].to_switch;
	return put_u32(field, n);
}

static int time_throttled(const struct field *field)
{
	const struct twin_gpu *gpu = field->gpu;

	switch (field->out->field_id) {
	case NVML_FI_PERF_POLICY_POWER:
		return put_u64(field, gpu->power_cap_ns);
	case NVML_FI_PERF_POLICY_THERMAL:
		return put_u64(field, gpu->sw_thermal_ns + gpu->hw_thermal_ns);
	case NVML_FI_REASON_SW_THERMAL_NS:
		return put_u64(field, gpu->sw_thermal_ns);
	case NVML_FI_REASON_HW_THERMAL_NS:
		return put_u64(field, gpu->hw_thermal_ns);
	case NVML_FI_REASON_HW_POWER_BRAKE_NS:
		return put_u64(field, gpu->power_brake_ns);
	default: /* sync boost: not simulated, never the case */
		return put_u64(field, 0);
	}
}

static int answer(const struct field *field)
{
	uint32_t id = field->out->field_id;

	if (id >= NVML_FI_NVLINK_SPEED_MBPS_L0 && id < NVML_FI_NVLINK_SPEED_MBPS_COMMON)
		return link_speed(field, id - NVML_FI_NVLINK_SPEED_MBPS_L0);
	if (id >= NVML_FI_NVLINK_SPEED_MBPS_L6 && id < NVML_FI_NVLINK_SPEED_MBPS_L6 + 6)
		return link_speed(field, id - NVML_FI_NVLINK_SPEED_MBPS_L6 + 6);
	switch (id) {
	case NVML_FI_ECC_CURRENT:
	case NVML_FI_ECC_PENDING:
		return put_u32_if(field, TWIN_HAS_ECC, NVML_FEATURE_ENABLED);
	case NVML_FI_ECC_SBE_VOL_TOTAL:
		return put_u64(field, field->gpu->ecc_cor_volatile);
	case NVML_FI_ECC_DBE_VOL_TOTAL:
		return put_u64(field, field->gpu->ecc_unc_volatile);
	case NVML_FI_ECC_SBE_AGG_TOTAL:
		return put_u64(field, field->gpu->ecc_cor_aggregate);
	case NVML_FI_ECC_DBE_AGG_TOTAL:
		return put_u64(field, field->gpu->ecc_unc_aggregate);
	case NVML_FI_PERF_POLICY_POWER:
	case NVML_FI_PERF_POLICY_THERMAL:
	case NVML_FI_PERF_POLICY_SYNC_BOOST:
	case NVML_FI_REASON_SW_THERMAL_NS:
	case NVML_FI_REASON_HW_THERMAL_NS:
	case NVML_FI_REASON_HW_POWER_BRAKE_NS:
		return time_throttled(field);
	case NVML_FI_MEMORY_TEMP:
		return memory_temp_c(field);
	case NVML_FI_TOTAL_ENERGY:
	case NVML_FI_ENERGY:
		return put_u64(field, field->gpu->counter_nj / 1000000);
	case NVML_FI_NVLINK_SPEED_MBPS_COMMON:
		return link_speed(field, 0);
	case NVML_FI_NVLINK_LINK_COUNT:
		return put_u32(field, field->call->desc->link_count);
	case NVML_FI_NVSWITCH_LINK_COUNT:
		return switch_links(field);
	case NVML_FI_NVLINK_GET_SPEED:
	case NVML_FI_NVLINK_GET_STATE:
	case NVML_FI_NVLINK_GET_VERSION:
		return link_field(field);
	case NVML_FI_PCIE_REPLAY_COUNTER:
	case NVML_FI_PCIE_REPLAY_ROLLOVER:
		return put_u32(field, 0);
	case NVML_FI_REMAPPED_COR:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, field->gpu->remapped_cor);
	case NVML_FI_REMAPPED_UNC:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, field->gpu->remapped_unc);
	case NVML_FI_REMAPPED_PENDING:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, field->gpu->remap_pending != 0);
	case NVML_FI_REMAPPED_FAILURE:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, field->gpu->remap_failed);
	case NVML_FI_POWER_AVERAGE:
		return power_average(field);
	case NVML_FI_POWER_INSTANT:
	case NVML_FI_POWER_MIN_LIMIT:
	case NVML_FI_POWER_MAX_LIMIT:
	case NVML_FI_POWER_DEFAULT_LIMIT:
	case NVML_FI_POWER_CURRENT_LIMIT:
	case NVML_FI_POWER_REQUESTED_LIMIT:
		return power_of_gpu(field);
	case NVML_FI_TLIMIT_SHUTDOWN:
	case NVML_FI_TLIMIT_SLOWDOWN:
	case NVML_FI_TLIMIT_MEM_MAX:
	case NVML_FI_TLIMIT_GPU_MAX:
		return t_limit(field);
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *values)
{
	struct twin_call call;
	struct twin_gpu gpu;
	uint64_t stamp_us;
	int rc = twin_enter_read(device, count > 0 ? values : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	stamp_us = twin_stamp_us(call.map, gpu.at_ns);
	for (int i = 0; i < count; i++) {
		struct field field = {&call, &gpu, &values[i]};
		values[i].timestamp_us = (int64_t)stamp_us;
		values[i].latency_us = 0;
		values[i].ret = (uint32_t)answer(&field);
	}
	return NVML_SUCCESS;
}
