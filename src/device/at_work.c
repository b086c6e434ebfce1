/* SPDX-License-Identifier: Apache-2.0 */
/* What a reading says of the clock in it, see the header. */
#include "device/at_work.h"

enum {
	/* A board that works in bursts may let its clock fall between them; so little is left of
	 * the time here that a few looks in a row do not all fall into it. */
	AT_WORK_PCT = 80,
};

/* The reasons are of an instant; near the limit one look may miss them. */
static bool near_power_limit(const struct takt_gpu_reading *reading)
{
	uint32_t limit_mw = reading->power_limit_mw;

	if (!(reading->has & TAKT_HAS_POWER) || !(reading->has & TAKT_HAS_POWER_LIMIT))
		return false;
	if ((reading->has & TAKT_HAS_POWER_ENFORCED) && reading->power_enforced_mw < limit_mw)
		limit_mw = reading->power_enforced_mw;
	return reading->power_mw >= limit_mw / 10 * 9;
}

/* Lower memory clocks have lists of their own, which end lower. The highest two of some boards are
 * nearly alike and have the same. */
static bool memory_is_slow(const struct takt_gpu_facts *facts,
			   const struct takt_gpu_reading *reading)
{
	return (facts->has & TAKT_FACT_MEM_CLOCKS) && facts->mem_clock_count > 0 &&
	       (reading->has & TAKT_HAS_MEM_CLOCK) &&
	       reading->mem_mhz < facts->mem_clocks_mhz[facts->mem_clock_count - 1] / 4 * 3;
}

bool takt_reading_is_busy(const struct takt_gpu_reading *reading)
{
	const uint32_t needed = TAKT_HAS_SM_CLOCK | TAKT_HAS_GPU_UTIL;

	return (reading->has & needed) == needed && reading->gpu_util_pct >= AT_WORK_PCT;
}

bool takt_reading_at_work(const struct takt_gpu_facts *facts,
			  const struct takt_gpu_reading *reading)
{
	return takt_reading_is_busy(reading) && (reading->has & TAKT_HAS_THROTTLE) &&
	       !(reading->throttle & (TAKT_THROTTLE_IDLE | TAKT_THROTTLE_HOLDS_BACK)) &&
	       !near_power_limit(reading) && !memory_is_slow(facts, reading);
}
