/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field values: many readings in one call. The call succeeds; each entry has a code of its own.
 * What scope_id means depends on the field: an NVLink, or for power the GPU, module or memory.
 */
#include "nvml_entry.h"
#include "twin_counters.h"

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

/* HBM's own rail: what idles there, what kernels add and what bandwidth costs. */
static uint32_t memory_power_mw(const struct field *field)
{
	const struct twin_board *board = field->call->board;

	return board->memory_idle_mw +
	       board->memory_busy_mw * twin_physics_util_percent(field->gpu) / 100 +
	       board->memory_mw * twin_physics_memory_util_percent(field->gpu) / 100;
}

static int memory_temp_c(const struct field *field)
{
	const struct twin_board *board = field->call->board;
	int64_t celsius = field->gpu->temp_uc * board->memory_temp_permille / 1000000000 +
			  board->memory_temp_plus_c;

	return put_u32_if(field, TWIN_HAS_MEMORY_TEMP, (uint32_t)celsius);
}

/* GPU, CPU and what else is on their module. Its limit is the default one always. */
static int power_of_module(const struct field *field, bool average)
{
	const struct twin_board *board = field->call->board;

	if (!board->module_limit_mw[2])
		return NVML_ERROR_NOT_SUPPORTED;
	switch (field->out->field_id) {
	case NVML_FI_POWER_AVERAGE:
	case NVML_FI_POWER_INSTANT:
		return put_u32(field, board->module_rest_mw + twin_physics_power_reading_mw(
								      field->gpu, board, average));
	case NVML_FI_POWER_MIN_LIMIT:
		return put_u32(field, board->module_limit_mw[0]);
	case NVML_FI_POWER_MAX_LIMIT:
		return put_u32(field, board->module_limit_mw[2]);
	default: /* default, current, requested */
		return put_u32(field, board->module_limit_mw[1]);
	}
}

static int power_average(const struct field *field)
{
	if (field->out->scope_id == NVML_POWER_SCOPE_MEMORY)
		return put_u32_if(field, TWIN_HAS_MEMORY_POWER, memory_power_mw(field));
	if (field->out->scope_id == NVML_POWER_SCOPE_MODULE)
		return power_of_module(field, true);
	if (field->out->scope_id != NVML_POWER_SCOPE_GPU)
		return NVML_ERROR_NOT_SUPPORTED;
	return put_u32_if(field, TWIN_HAS_POWER_AVERAGE,
			  twin_physics_power_reading_mw(field->gpu, field->call->board, true));
}

/* Power limits and the instant reading. */
static int power_now(const struct field *field)
{
	const struct twin_board *board = field->call->board;

	if (field->out->scope_id == NVML_POWER_SCOPE_MODULE)
		return power_of_module(field, false);
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

/* A link's own fields. Hopper's links can tell whether they rest: they never do. */
static int link_field(const struct field *field)
{
	const struct twin_board *board = field->call->board;

	if (field->out->scope_id >= field->call->desc->link_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	switch (field->out->field_id) {
	case NVML_FI_NVLINK_GET_SPEED:
		return put_u32(field, board->nvlink_mbps);
	case NVML_FI_NVLINK_GET_STATE:
		return put_u32(field,
			       twin_links_down(field->call, field->gpu) >> field->out->scope_id & 1
				       ? NVML_FEATURE_DISABLED
				       : NVML_FEATURE_ENABLED);
	case NVML_FI_NVLINK_GET_POWER_STATE:
		return board->arch < NVML_ARCH_HOPPER ? NVML_ERROR_NOT_SUPPORTED
						      : put_u32(field, 0);
	default:
		return put_u32(field, board->nvlink_version);
	}
}

/* Of link N: six ids in one place, six more in another. */
static int link_speed(const struct field *field)
{
	uint32_t id = field->out->field_id;
	uint32_t link = id - NVML_FI_NVLINK_SPEED_MBPS_L0;

	if (id >= NVML_FI_NVLINK_SPEED_MBPS_L6)
		link = id - NVML_FI_NVLINK_SPEED_MBPS_L6 + 6;
	else if (id == NVML_FI_NVLINK_SPEED_MBPS_COMMON)
		link = 0;
	return put_u32(field,
		       link < field->call->desc->link_count ? field->call->board->nvlink_mbps : 0);
}

static int count_links(const struct field *field)
{
	uint32_t n = 0;

	if (field->out->field_id == NVML_FI_NVLINK_LINK_COUNT)
		return put_u32(field, field->call->desc->link_count);
	for (uint32_t i = 0; i < field->call->desc->link_count; i++)
		n += field->call->desc->links[i].to_switch;
	return put_u32(field, n);
}

/* Errors of links are counted on boards that have links: none is simulated. */
static int link_errors(const struct field *field)
{
	return field->call->desc->link_count ? put_u64(field, 0) : NVML_ERROR_NOT_SUPPORTED;
}

/* KiB of all links or of one, each way; links are used alike. */
static int link_kib(const struct field *field, uint32_t link, uint32_t ways)
{
	uint32_t links = field->call->desc->link_count;
	uint64_t kib = twin_link_bytes(field->gpu, field->call->board) / 1024 * ways;

	if (links == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (link == UINT32_MAX)
		return put_u64(field, kib * links);
	return put_u64(field, link < links ? kib : 0);
}

/* Both ways together (GUESS), by ids of links as with speed; both sets of counters count alike. */
static int link_bandwidth(const struct field *field)
{
	uint32_t id = field->out->field_id, link;

	if (id == NVML_FI_NVLINK_BANDWIDTH_C0_TOTAL || id == NVML_FI_NVLINK_BANDWIDTH_C1_TOTAL)
		link = UINT32_MAX;
	else if (id >= NVML_FI_NVLINK_BANDWIDTH_C0_L6)
		link = 6 + (id - NVML_FI_NVLINK_BANDWIDTH_C0_L6) % 6;
	else
		link = (id - NVML_FI_NVLINK_BANDWIDTH_C0_L0) % 7;
	return link_kib(field, link, 2);
}

/* Data without what the protocol adds, which is not simulated. */
static int link_data(const struct field *field)
{
	uint32_t link = field->out->scope_id;

	if (link != UINT32_MAX && link >= field->call->desc->link_count)
		return field->call->desc->link_count ? NVML_ERROR_INVALID_ARGUMENT
						     : NVML_ERROR_NOT_SUPPORTED;
	return link_kib(field, link, 1);
}

/* Counters that links have since Blackwell. */
static int link_counter(const struct field *field)
{
	uint32_t id = field->out->field_id;

	if (field->call->board->arch < NVML_ARCH_BLACKWELL)
		return NVML_ERROR_NOT_SUPPORTED;
	if (field->out->scope_id >= field->call->desc->link_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	return put_u64(field, id == NVML_FI_NVLINK_SENT_BYTES || id == NVML_FI_NVLINK_RECEIVED_BYTES
				      ? twin_link_bytes(field->gpu, field->call->board)
				      : 0);
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
	default: /* sync boost and other policies: not simulated, never the case */
		return put_u64(field, 0);
	}
}

static int ecc_mode(const struct field *field)
{
	bool off = field->out->field_id == NVML_FI_ECC_CURRENT ? field->gpu->ecc_off
							       : field->gpu->ecc_off_pending;

	return put_u32_if(field, TWIN_HAS_ECC, !off);
}

/* All errors of the twin are in the device's memory. */
static int ecc_errors(const struct field *field)
{
	const struct twin_gpu *gpu = field->gpu;

	if (!twin_has(field->call, TWIN_HAS_ECC) || gpu->ecc_off)
		return NVML_ERROR_NOT_SUPPORTED;
	switch (field->out->field_id) {
	case NVML_FI_ECC_SBE_VOL_TOTAL:
	case NVML_FI_ECC_SBE_VOL_DEV:
		return put_u64(field, gpu->ecc_cor_volatile);
	case NVML_FI_ECC_DBE_VOL_TOTAL:
	case NVML_FI_ECC_DBE_VOL_DEV:
		return put_u64(field, gpu->ecc_unc_volatile);
	case NVML_FI_ECC_SBE_AGG_TOTAL:
	case NVML_FI_ECC_SBE_AGG_DEV:
		return put_u64(field, gpu->ecc_cor_aggregate);
	case NVML_FI_ECC_DBE_AGG_TOTAL:
	case NVML_FI_ECC_DBE_AGG_DEV:
		return put_u64(field, gpu->ecc_unc_aggregate);
	default:
		return put_u64(field, 0);
	}
}

static int retired(const struct field *field)
{
	const struct twin_gpu *gpu = field->gpu;

	switch (field->out->field_id) {
	case NVML_FI_RETIRED_DBE:
		return put_u32_if(field, TWIN_HAS_RETIRED_PAGES, gpu->retired_pages);
	case NVML_FI_RETIRED_PENDING:
	case NVML_FI_RETIRED_PENDING_DBE:
		return put_u32_if(field, TWIN_HAS_RETIRED_PAGES, gpu->retired_pending != 0);
	default: /* for single-bit errors: never */
		return put_u32_if(field, TWIN_HAS_RETIRED_PAGES, 0);
	}
}

static int remapped(const struct field *field)
{
	const struct twin_gpu *gpu = field->gpu;

	switch (field->out->field_id) {
	case NVML_FI_REMAPPED_COR:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, gpu->remapped_cor);
	case NVML_FI_REMAPPED_UNC:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, gpu->remapped_unc);
	case NVML_FI_REMAPPED_PENDING:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, gpu->remap_pending != 0);
	default:
		return put_u32_if(field, TWIN_HAS_ROW_REMAP, gpu->remap_failed);
	}
}

static int energy(const struct field *field)
{
	return put_u64(field, field->gpu->counter_nj / 1000000);
}

static int replays(const struct field *field)
{
	return put_u32(field, 0);
}

/* Hopper and newer can tell that no CPU is on their module. */
static int c2c_links(const struct field *field)
{
	return field->call->board->arch < NVML_ARCH_HOPPER
		       ? NVML_ERROR_NOT_SUPPORTED
		       : put_u32(field, field->call->board->c2c_links);
}

/* Can the mode be changed without a reset, can profiles be asked for while it is off? */
static int mig_ability(const struct field *field)
{
	const struct twin_board *board = field->call->board;
	bool any = board->mig_count != 0;

	return put_u32(field, field->out->field_id == NVML_FI_RESETLESS_MIG
				      ? any && board->arch >= NVML_ARCH_HOPPER
				      : any);
}

enum {
	RECOVER_NOTHING = 0,
	RECOVER_BY_RESET = 1
};

/* Rows that wait to be replaced want a reset (GUESS that it is called so). */
static int recovery(const struct field *field)
{
	return put_u32(field, field->gpu->remap_pending ? RECOVER_BY_RESET : RECOVER_NOTHING);
}

/* Who answers which fields, ascending. */
static const struct answerer {
	uint32_t first, last;
	int (*answer)(const struct field *field);
	bool clears; /* to clear them is allowed */
} answerers[] = {
	{NVML_FI_ECC_CURRENT, NVML_FI_ECC_PENDING, ecc_mode},
	{NVML_FI_ECC_SBE_VOL_TOTAL, NVML_FI_ECC_DBE_AGG_CBU, ecc_errors},
	{NVML_FI_RETIRED_SBE, NVML_FI_RETIRED_PENDING, retired},
	{NVML_FI_NVLINK_CRC_FLIT_L0, NVML_FI_NVLINK_RECOVERY_TOTAL, link_errors, true},
	{NVML_FI_NVLINK_BANDWIDTH_C0_L0, NVML_FI_NVLINK_BANDWIDTH_C1_TOTAL, link_bandwidth},
	{NVML_FI_PERF_POLICY_POWER, NVML_FI_PERF_POLICY_TOTAL_BASE_CLOCKS, time_throttled},
	{NVML_FI_MEMORY_TEMP, NVML_FI_MEMORY_TEMP, memory_temp_c},
	{NVML_FI_TOTAL_ENERGY, NVML_FI_TOTAL_ENERGY, energy},
	{NVML_FI_NVLINK_SPEED_MBPS_L0, NVML_FI_NVLINK_SPEED_MBPS_COMMON, link_speed},
	{NVML_FI_NVLINK_LINK_COUNT, NVML_FI_NVLINK_LINK_COUNT, count_links},
	{NVML_FI_RETIRED_PENDING_SBE, NVML_FI_RETIRED_PENDING_DBE, retired},
	{NVML_FI_PCIE_REPLAY_COUNTER, NVML_FI_PCIE_REPLAY_ROLLOVER, replays},
	{NVML_FI_NVLINK_CRC_FLIT_L6, NVML_FI_NVLINK_RECOVERY_L11, link_errors, true},
	{NVML_FI_NVLINK_BANDWIDTH_C0_L6, NVML_FI_NVLINK_BANDWIDTH_C1_L11, link_bandwidth},
	{NVML_FI_NVLINK_SPEED_MBPS_L6, NVML_FI_NVLINK_SPEED_MBPS_L11, link_speed},
	{NVML_FI_NVLINK_DATA_TX, NVML_FI_NVLINK_DATA_RX, link_data},
	{NVML_FI_REMAPPED_COR, NVML_FI_REMAPPED_FAILURE, remapped},
	{NVML_FI_NVSWITCH_LINK_COUNT, NVML_FI_NVSWITCH_LINK_COUNT, count_links},
	{NVML_FI_NVLINK_ECC_DATA_L0, NVML_FI_NVLINK_ERROR_DL_CRC, link_errors, true},
	{NVML_FI_NVLINK_GET_SPEED, NVML_FI_NVLINK_GET_POWER_STATE, link_field},
	{NVML_FI_C2C_LINK_COUNT, NVML_FI_C2C_LINK_COUNT, c2c_links},
	{NVML_FI_RESETLESS_MIG, NVML_FI_RESETLESS_MIG, mig_ability},
	{NVML_FI_POWER_AVERAGE, NVML_FI_POWER_AVERAGE, power_average},
	{NVML_FI_POWER_INSTANT, NVML_FI_POWER_CURRENT_LIMIT, power_now},
	{NVML_FI_ENERGY, NVML_FI_ENERGY, energy},
	{NVML_FI_POWER_REQUESTED_LIMIT, NVML_FI_POWER_REQUESTED_LIMIT, power_now},
	{NVML_FI_TLIMIT_SHUTDOWN, NVML_FI_TLIMIT_GPU_MAX, t_limit},
	{NVML_FI_MIG_QUERY_CAPABLE, NVML_FI_MIG_QUERY_CAPABLE, mig_ability},
	{NVML_FI_NVLINK_SENT_BYTES, NVML_FI_NVLINK_SENT_BYTES, link_counter},
	{NVML_FI_NVLINK_RECEIVED_BYTES, NVML_FI_NVLINK_RECEIVED_BYTES, link_counter},
	{NVML_FI_NVLINK_MALFORMED_PACKETS, NVML_FI_NVLINK_RECOVERY_EVENTS, link_counter, true},
	{NVML_FI_GPU_RECOVERY_ACTION, NVML_FI_GPU_RECOVERY_ACTION, recovery},
	{NVML_FI_REASON_SW_THERMAL_NS, NVML_FI_REASON_HW_POWER_BRAKE_NS, time_throttled},
};

static const struct answerer *answerer_of(uint32_t id)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(answerers); i++) {
		if (id >= answerers[i].first && id <= answerers[i].last)
			return &answerers[i];
	}
	return NULL;
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
		const struct answerer *found = answerer_of(values[i].field_id);
		struct field field = {&call, &gpu, &values[i]};
		values[i].timestamp_us = (int64_t)stamp_us;
		values[i].latency_us = 0;
		values[i].ret = found ? (uint32_t)found->answer(&field) : NVML_ERROR_NOT_SUPPORTED;
	}
	return NVML_SUCCESS;
}

static int change_nothing(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	return NVML_SUCCESS;
}

/* Counters of link errors may be cleared. They are zero always, so only permission matters. */
int nvmlDeviceClearFieldValues(struct nvml_device *device, int count,
			       struct nvml_field_value *values)
{
	struct twin_call call;
	int rc = twin_enter_out(device, count > 0 ? values : NULL, &call);

	if (rc == NVML_SUCCESS)
		rc = twin_set(device, change_nothing, NULL, false);
	for (int i = 0; rc == NVML_SUCCESS && i < count; i++) {
		const struct answerer *found = answerer_of(values[i].field_id);
		values[i].ret = found && found->clears && call.desc->link_count
					? NVML_SUCCESS
					: NVML_ERROR_NOT_SUPPORTED;
	}
	return rc;
}
