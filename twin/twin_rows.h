/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload as it was measured: how long it takes and what the board draws at some SM clocks.
 * Between two clocks straight lines (of time over the period of the clock, of power over the
 * clock); beyond them the line from the lowest to the highest, which is a guess and is said so.
 */
#ifndef TAKT_TWIN_TWIN_ROWS_H
#define TAKT_TWIN_TWIN_ROWS_H

#include "twin_layout.h"

static inline bool twin_rows_are(const struct twin_profile *profile)
{
	return profile->row_count != 0;
}

/* Time of the work at a clock, in millionths of that at the highest clock measured. */
uint64_t twin_rows_time(const struct twin_profile *profile, uint32_t sm_mhz);

/* What the whole board draws then. */
uint64_t twin_rows_power_uw(const struct twin_profile *profile, uint32_t sm_mhz);

/* How much more than that a power limit has to be for the clock to be had. */
uint64_t twin_rows_peaks_uw(const struct twin_profile *profile, uint32_t sm_mhz);

#endif
