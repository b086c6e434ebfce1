/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics that history keeps. Their order is that of the files: rows are only appended. Which
 * reasons to slow down count is what jobs are told, too: being idle and clocks that somebody asked
 * for are none.
 */
#include <string.h>

#include "base/compiler.h"
#include "telemetry/history.h"

enum kind {
	KIND_U32,
	KIND_I32,
	KIND_U64,
	KIND_THROTTLED,
};

struct row {
	struct takt_history_series series;
	uint64_t has; /* enum takt_gpu_has */
	enum kind kind;
	size_t at;
	double scale;
};

#define AT(member) offsetof(struct takt_gpu_reading, member)

static const struct row rows[] = {
	{{"power", "W"}, TAKT_HAS_POWER, KIND_U32, AT(power_mw), 1e-3},
	{{"power_limit", "W"}, TAKT_HAS_POWER_ENFORCED, KIND_U32, AT(power_enforced_mw), 1e-3},
	{{"sm_clock", "MHz"}, TAKT_HAS_SM_CLOCK, KIND_U32, AT(sm_mhz), 1},
	{{"memory_clock", "MHz"}, TAKT_HAS_MEM_CLOCK, KIND_U32, AT(mem_mhz), 1},
	{{"temperature", "C"}, TAKT_HAS_TEMP, KIND_I32, AT(temp_c), 1},
	{{"utilization", "%"}, TAKT_HAS_GPU_UTIL, KIND_U32, AT(gpu_util_pct), 1},
	{{"memory_utilization", "%"}, TAKT_HAS_MEM_UTIL, KIND_U32, AT(mem_util_pct), 1},
	{{"memory", "MiB"}, TAKT_HAS_MEMORY, KIND_U64, AT(mem_used_bytes), 1.0 / (1 << 20)},
	{{"fan", "%"}, TAKT_HAS_FAN, KIND_U32, AT(fan_pct), 1},
	{{"encoder", "%"}, TAKT_HAS_ENC_DEC, KIND_U32, AT(enc_util_pct), 1},
	{{"decoder", "%"}, TAKT_HAS_ENC_DEC, KIND_U32, AT(dec_util_pct), 1},
	{{"throttled", "%"}, TAKT_HAS_THROTTLE, KIND_THROTTLED, AT(throttle), 100},
	{{"processes", ""}, TAKT_HAS_PROCS, KIND_U32, AT(proc_count), 1},
};

const struct takt_history_series *takt_history_series_at(uint32_t series)
{
	return series < TAKT_ARRAY_LEN(rows) ? &rows[series].series : NULL;
}

uint32_t takt_history_series_find(const char *name)
{
	for (uint32_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].series.name, name) == 0)
			return i;
	return TAKT_HISTORY_SERIES;
}

static double number_at(const struct row *row, const struct takt_gpu_reading *reading)
{
	const void *at = (const char *)reading + row->at;
	uint64_t bits;

	switch (row->kind) {
	case KIND_U32:
		return *(const uint32_t *)at;
	case KIND_I32:
		return *(const int32_t *)at;
	case KIND_THROTTLED:
		bits = *(const uint64_t *)at;
		return (bits & ~(uint64_t)(TAKT_THROTTLE_IDLE | TAKT_THROTTLE_APP_CLOCKS)) != 0;
	default:
		return (double)*(const uint64_t *)at;
	}
}

bool takt_history_series_value(uint32_t series, const struct takt_gpu_reading *reading, double *ret)
{
	const struct row *row = series < TAKT_ARRAY_LEN(rows) ? &rows[series] : NULL;

	if (!row || reading->lost || !(reading->has & row->has))
		return false;
	*ret = number_at(row, reading) * row->scale;
	return true;
}
