/* SPDX-License-Identifier: Apache-2.0 */
#include "twin_rows.h"

enum {
	PERIOD = 1000000000 /* over a clock in MHz: enough digits for steps of 1 MHz */
};

/* The two rows whose line goes through a clock. */
static void around(const struct twin_profile *profile, uint32_t sm_mhz, const struct twin_row **low,
		   const struct twin_row **high)
{
	uint32_t i = 1;

	*low = &profile->rows[0];
	*high = &profile->rows[profile->row_count - 1];
	if (sm_mhz <= (*low)->mhz || sm_mhz >= (*high)->mhz)
		return;
	while (profile->rows[i].mhz < sm_mhz)
		i++;
	*low = &profile->rows[i - 1];
	*high = &profile->rows[i];
}

static int64_t line(int64_t x0, int64_t y0, int64_t x1, int64_t y1, int64_t x)
{
	return x1 == x0 ? y0 : y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

uint64_t twin_rows_time(const struct twin_profile *profile, uint32_t sm_mhz)
{
	const struct twin_row *low, *high;
	int64_t time;

	around(profile, sm_mhz, &low, &high);
	time = line(PERIOD / low->mhz, low->time, PERIOD / high->mhz, high->time, PERIOD / sm_mhz);
	/* a line over noise may lead anywhere, but nothing gets ten times as fast */
	return time > 100000 ? (uint64_t)time : 100000;
}

uint64_t twin_rows_power_uw(const struct twin_profile *profile, uint32_t sm_mhz)
{
	const struct twin_row *low, *high;
	int64_t power_mw;

	around(profile, sm_mhz, &low, &high);
	power_mw = line(low->mhz, low->power_mw, high->mhz, high->power_mw, sm_mhz);
	return power_mw > 0 ? (uint64_t)power_mw * 1000 : 0;
}

uint64_t twin_rows_peaks_uw(const struct twin_profile *profile, uint32_t sm_mhz)
{
	const struct twin_row *low, *high;
	int64_t limit_mw, power_mw = (int64_t)(twin_rows_power_uw(profile, sm_mhz) / 1000);

	around(profile, sm_mhz, &low, &high);
	limit_mw = line(low->mhz, low->limit_mw, high->mhz, high->limit_mw, sm_mhz);
	return limit_mw > power_mw ? (uint64_t)(limit_mw - power_mw) * 1000 : 0;
}
