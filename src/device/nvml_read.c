/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample of one GPU: a table of calls, fast ones first. A call that the board does not support
 * leaves its bits clear and is no error; a lost GPU ends the sample, since each further call would
 * only wait for the same answer.
 */
#include <errno.h>

#include "base/sys.h"
#include "device/nvml_api.h"

struct subject {
	const struct takt_nvml_api *api;
	struct takt_nvml_gpu *gpu;
	struct nvml_device *device;
	struct takt_gpu_reading *reading;
};

int takt_nvml_field(const struct nvml_field_value *value, uint64_t *ret)
{
	if (value->ret != NVML_SUCCESS)
		return (int)value->ret;
	switch (value->value_type) {
	case NVML_VALUE_TYPE_UNSIGNED_INT:
		*ret = value->value.u32;
		return NVML_SUCCESS;
	case NVML_VALUE_TYPE_UNSIGNED_LONG:
		*ret = value->value.ulong;
		return NVML_SUCCESS;
	case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
		*ret = value->value.u64;
		return NVML_SUCCESS;
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

static int read_field(const struct takt_nvml_api *api, struct nvml_device *device,
		      uint32_t field_id, uint32_t scope_id, uint64_t *ret)
{
	struct nvml_field_value value = {.field_id = field_id, .scope_id = scope_id};
	int code;

	if (!api->fields)
		return NVML_ERROR_NOT_SUPPORTED;
	code = api->fields(device, 1, &value);
	return code == NVML_SUCCESS ? takt_nvml_field(&value, ret) : code;
}

static int read_clock(const struct subject *s, uint32_t type, uint32_t *mhz)
{
	return s->api->clock ? s->api->clock(s->device, type, mhz) : NVML_ERROR_NOT_SUPPORTED;
}

static int read_sm_clock(const struct subject *s)
{
	return read_clock(s, NVML_CLOCK_SM, &s->reading->sm_mhz);
}

static int read_mem_clock(const struct subject *s)
{
	return read_clock(s, NVML_CLOCK_MEM, &s->reading->mem_mhz);
}

static int read_power(const struct subject *s)
{
	static const uint32_t scopes[] = {NVML_POWER_SCOPE_GPU, NVML_POWER_SCOPE_MODULE};
	int code = s->api->power ? s->api->power(s->device, &s->reading->power_mw)
				 : NVML_ERROR_NOT_SUPPORTED;

	for (uint32_t i = 0; i < TAKT_ARRAY_LEN(scopes) && code == NVML_ERROR_NOT_SUPPORTED; i++) {
		uint64_t mw;

		code = read_field(s->api, s->device, NVML_FI_POWER_INSTANT, scopes[i], &mw);
		if (code == NVML_SUCCESS)
			s->reading->power_mw = (uint32_t)mw;
	}
	return code;
}

static int read_energy(const struct subject *s)
{
	struct takt_mono begin = takt_mono_now(takt_sys_real());
	int code = s->api->energy ? s->api->energy(s->device, &s->reading->energy_mj)
				  : NVML_ERROR_NOT_SUPPORTED;

	if (code == NVML_ERROR_NOT_SUPPORTED)
		code = read_field(s->api, s->device, NVML_FI_TOTAL_ENERGY, 0,
				  &s->reading->energy_mj);
	s->reading->energy_took_ns = takt_mono_elapsed_ns(takt_mono_now(takt_sys_real()), begin);
	return code;
}

static int read_temperature(const struct subject *s)
{
	uint32_t celsius;
	int code;

	if (!s->api->temperature)
		return NVML_ERROR_NOT_SUPPORTED;
	code = s->api->temperature(s->device, NVML_TEMPERATURE_GPU, &celsius);
	if (code == NVML_SUCCESS)
		s->reading->temp_c = (int32_t)celsius;
	return code;
}

static int read_utilization(const struct subject *s)
{
	struct nvml_utilization utilization;
	int code;

	if (!s->api->utilization)
		return NVML_ERROR_NOT_SUPPORTED;
	code = s->api->utilization(s->device, &utilization);
	if (code == NVML_SUCCESS) {
		s->reading->gpu_util_pct = utilization.gpu;
		s->reading->mem_util_pct = utilization.memory;
	}
	return code;
}

static int read_throttle(const struct subject *s)
{
	return s->api->throttle ? s->api->throttle(s->device, &s->reading->throttle)
				: NVML_ERROR_NOT_SUPPORTED;
}

static int read_memory_v2(const struct subject *s)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_WORD};
	int code = s->api->memory_v2(s->device, &memory);

	if (code != NVML_SUCCESS)
		return code;
	s->reading->mem_used_bytes = memory.used;
	s->reading->mem_free_bytes = memory.free;
	s->reading->mem_reserved_bytes = memory.reserved;
	s->reading->has |= TAKT_HAS_RESERVED;
	return NVML_SUCCESS;
}

static bool refuses_version(int code)
{
	return code == NVML_ERROR_FUNCTION_NOT_FOUND ||
	       code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH ||
	       code == NVML_ERROR_INVALID_ARGUMENT || code == NVML_ERROR_NOT_SUPPORTED;
}

/* The old struct counts the reserved part as used. */
static int read_memory(const struct subject *s)
{
	struct nvml_memory memory;
	int code;

	if (s->api->memory_v2 && !s->gpu->memory_v1_only) {
		code = read_memory_v2(s);
		if (!refuses_version(code))
			return code;
		s->gpu->memory_v1_only = true;
	}
	if (!s->api->memory)
		return NVML_ERROR_NOT_SUPPORTED;
	code = s->api->memory(s->device, &memory);
	if (code == NVML_SUCCESS) {
		s->reading->mem_used_bytes = memory.used;
		s->reading->mem_free_bytes = memory.free;
	}
	return code;
}

static int read_power_limit(const struct subject *s)
{
	return s->api->power_limit ? s->api->power_limit(s->device, &s->reading->power_limit_mw)
				   : NVML_ERROR_NOT_SUPPORTED;
}

static int read_power_enforced(const struct subject *s)
{
	return s->api->power_enforced
		       ? s->api->power_enforced(s->device, &s->reading->power_enforced_mw)
		       : NVML_ERROR_NOT_SUPPORTED;
}

static int read_fan(const struct subject *s)
{
	return s->api->fan ? s->api->fan(s->device, &s->reading->fan_pct)
			   : NVML_ERROR_NOT_SUPPORTED;
}

static int read_pstate(const struct subject *s)
{
	uint32_t pstate;
	int code = s->api->pstate ? s->api->pstate(s->device, &pstate) : NVML_ERROR_NOT_SUPPORTED;

	if (code == NVML_SUCCESS && pstate == NVML_PSTATE_UNKNOWN)
		return NVML_ERROR_NOT_SUPPORTED;
	if (code == NVML_SUCCESS)
		s->reading->pstate = pstate;
	return code;
}

static int read_pcie(const struct subject *s)
{
	int code;

	if (!s->api->pcie_gen || !s->api->pcie_width)
		return NVML_ERROR_NOT_SUPPORTED;
	code = s->api->pcie_gen(s->device, &s->reading->pcie_gen);
	return code ? code : s->api->pcie_width(s->device, &s->reading->pcie_width);
}

static int read_pcie_replay(const struct subject *s)
{
	uint32_t replays;
	int code;

	if (!s->api->pcie_replay)
		return NVML_ERROR_NOT_SUPPORTED;
	code = s->api->pcie_replay(s->device, &replays);
	if (code == NVML_SUCCESS)
		s->reading->pcie_replay = replays;
	return code;
}

static int read_video(const struct subject *s)
{
	uint32_t period;
	int code;

	if (!s->api->encoder || !s->api->decoder)
		return NVML_ERROR_NOT_SUPPORTED;
	code = s->api->encoder(s->device, &s->reading->enc_util_pct, &period);
	return code ? code : s->api->decoder(s->device, &s->reading->dec_util_pct, &period);
}

static int read_persistence(const struct subject *s)
{
	uint32_t mode;
	int code = s->api->persistence ? s->api->persistence(s->device, &mode)
				       : NVML_ERROR_NOT_SUPPORTED;

	if (code == NVML_SUCCESS)
		s->reading->persistence = mode == NVML_FEATURE_ENABLED;
	return code;
}

static int read_ecc(const struct subject *s)
{
	int code;

	if (!s->api->ecc_errors)
		return NVML_ERROR_NOT_SUPPORTED;
	code = s->api->ecc_errors(s->device, NVML_ECC_ERROR_CORRECTED, NVML_ECC_COUNTER_VOLATILE,
				  &s->reading->ecc_corrected);
	if (code != NVML_SUCCESS)
		return code;
	return s->api->ecc_errors(s->device, NVML_ECC_ERROR_UNCORRECTED, NVML_ECC_COUNTER_VOLATILE,
				  &s->reading->ecc_uncorrected);
}

static int read_vitals(const struct subject *s)
{
	return takt_nvml_read_vitals(s->api, s->gpu, &s->reading->vitals);
}

static int read_view(const struct subject *s)
{
	return takt_nvml_read_view(s->api, s->gpu, &s->reading->vitals);
}

static int read_procs(const struct subject *s)
{
	int code = takt_nvml_read_procs(s->api, s->gpu, s->reading);

	return code ? code : takt_nvml_read_uses(s->api, s->gpu, s->reading);
}

static const struct {
	uint32_t part;
	uint32_t has;
	int (*read)(const struct subject *);
} calls[] = {
	{TAKT_PART_FAST, TAKT_HAS_SM_CLOCK, read_sm_clock},
	{TAKT_PART_FAST, TAKT_HAS_POWER, read_power},
	{TAKT_PART_ENERGY, TAKT_HAS_ENERGY, read_energy},
	{TAKT_PART_FAST, TAKT_HAS_TEMP, read_temperature},
	{TAKT_PART_FAST, TAKT_HAS_GPU_UTIL | TAKT_HAS_MEM_UTIL, read_utilization},
	{TAKT_PART_FAST, TAKT_HAS_MEMORY, read_memory},
	{TAKT_PART_FAST, TAKT_HAS_THROTTLE, read_throttle},
	{TAKT_PART_SLOW, TAKT_HAS_MEM_CLOCK, read_mem_clock},
	{TAKT_PART_SLOW, TAKT_HAS_POWER_LIMIT, read_power_limit},
	{TAKT_PART_DETAIL, TAKT_HAS_POWER_ENFORCED, read_power_enforced},
	{TAKT_PART_SLOW, TAKT_HAS_FAN, read_fan},
	{TAKT_PART_SLOW, TAKT_HAS_PSTATE, read_pstate},
	{TAKT_PART_SLOW, TAKT_HAS_PCIE, read_pcie},
	{TAKT_PART_DETAIL, TAKT_HAS_PCIE_REPLAY, read_pcie_replay},
	{TAKT_PART_DETAIL, TAKT_HAS_ENC_DEC, read_video},
	{TAKT_PART_DETAIL, TAKT_HAS_PERSISTENCE, read_persistence},
	{TAKT_PART_ERRORS, TAKT_HAS_ECC, read_ecc},
	{TAKT_PART_VITALS, 0, read_vitals},
	{TAKT_PART_VIEW, 0, read_view},
	{TAKT_PART_PROCS, TAKT_HAS_PROCS, read_procs},
};

static bool is_absence(int rc)
{
	return rc == -TAKT_E_UNSUPPORTED;
}

/* False: no use in asking further. */
static bool book(struct takt_gpu_reading *reading, uint32_t has, int code)
{
	int rc = takt_nvml_rc(code);

	if (code == NVML_SUCCESS)
		reading->has |= has;
	else if (!is_absence(rc) && reading->last_rc == 0)
		reading->last_rc = rc;
	if (rc != -ENODEV)
		return true;
	reading->last_rc = rc;
	reading->lost = true;
	return false;
}

/* "Not supported" may be said by us, of a function that the library lacks. */
static bool is_answer(uint32_t has, int code)
{
	return (has && code == NVML_SUCCESS) || code == NVML_ERROR_GPU_IS_LOST ||
	       code == NVML_ERROR_RESET_REQUIRED || code == NVML_ERROR_NO_PERMISSION;
}

bool takt_nvml_sample(struct takt_source *source, uint32_t gpu, uint32_t parts,
		      struct takt_gpu_reading *reading)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	struct takt_nvml_gpu *g = &nvml->gpus[gpu];
	struct subject subject = {.api = &nvml->api, .gpu = g, .reading = reading};
	bool answered = false, on = true;
	int code = takt_nvml_attach(nvml, gpu);

	if (code != NVML_SUCCESS) {
		(void)book(reading, 0, code);
		return is_answer(0, code);
	}
	subject.device = g->device;
	for (uint32_t i = 0; i < TAKT_ARRAY_LEN(calls) && on; i++) {
		if (!(calls[i].part & parts))
			continue;
		code = calls[i].read(&subject);
		answered |= is_answer(calls[i].has, code);
		on = book(reading, calls[i].has, code);
	}
	return answered;
}
