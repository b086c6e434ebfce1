/* SPDX-License-Identifier: Apache-2.0 */
/* Activity counters of one GPU in one epoch, see the header. */
#include "daemon/govern_counters.h"

#define BIT(part) (1u << TAKT_ACTIVE_##part)

static const uint32_t all_parts = (1u << TAKT_ACTIVE_COUNT) - 1;
static const uint32_t pipes = BIT(TENSOR) | BIT(FP64) | BIT(FP32) | BIT(FP16);
static const uint32_t needed = BIT(DRAM) | BIT(TENSOR);
static const double PIPE_WEIGHT = 8;

void takt_counters_begin(struct takt_counters *counters)
{
	*counters = (struct takt_counters){.slow_ns = counters->slow_ns, .tells = counters->tells};
}

static void add_window(struct takt_counters *counters, const struct takt_gpu_vitals *vitals,
		       uint64_t ns)
{
	counters->parts = counters->ns ? counters->parts & counters->tells : counters->tells;
	counters->ns += ns;
	for (uint32_t part = 0; part < TAKT_ACTIVE_COUNT; part++)
		if (counters->parts & 1u << part)
			counters->ppm_ns[part] += vitals->active_ppm[part] * ns;
}

void takt_counters_add(struct takt_counters *counters, const struct takt_gpu_reading *reading,
		       uint64_t begun_ns)
{
	uint64_t from_ns = counters->slow_ns;

	if (reading->slow_at.ns == from_ns)
		return;
	counters->slow_ns = reading->slow_at.ns;
	counters->tells = reading->vitals.has / TAKT_VITAL_ACTIVE & all_parts;
	if (counters->tells && from_ns >= begun_ns && counters->slow_ns > from_ns)
		add_window(counters, &reading->vitals, counters->slow_ns - from_ns);
}

static bool has_needed(uint32_t parts)
{
	return (parts & needed) == needed;
}

bool takt_counters_are_there(const struct takt_counters *counters)
{
	return has_needed(counters->tells);
}

uint32_t takt_counters_parts(const struct takt_counters *counters, uint64_t passed_ns)
{
	if (!has_needed(counters->parts) || 2 * counters->ns < passed_ns)
		return 0;
	return counters->parts & (BIT(DRAM) | pipes);
}

double takt_counters_ppm(const struct takt_counters *counters, enum takt_active part)
{
	return (double)counters->ppm_ns[part] / (double)counters->ns;
}

double takt_counters_sum(const struct takt_counters *counters, uint32_t parts)
{
	double ppm = 0;

	for (enum takt_active part = 0; part < TAKT_ACTIVE_COUNT; part++)
		if (parts & 1u << part)
			ppm += takt_counters_ppm(counters, part);
	return ppm / 1e6;
}

double takt_counters_work(const struct takt_counters *counters, uint32_t parts, double clock_share)
{
	return takt_counters_sum(counters, parts & BIT(DRAM)) +
	       PIPE_WEIGHT * clock_share * takt_counters_sum(counters, parts & pipes);
}
