/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SM clock ranges and the driver's own list of clocks. What is set comes from that list alone:
 * a value in between would be rounded by the driver to one that nobody chose.
 */
#ifndef TAKT_CLOCK_RANGE_H
#define TAKT_CLOCK_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct takt_clock_range {
	uint32_t min_mhz, max_mhz;
};

/*
 * The range as the board can hold it: each end goes down to the nearest listed clock, since asking
 * for a ceiling must never give more than it; ends below the list become its lowest entry, and a
 * min of 0 means that. `mhz` is strictly ascending. False, and *ret as it was, when the list is
 * empty, max is 0 or min is above max.
 */
bool takt_clock_range_clamp(const uint32_t *mhz, size_t n, struct takt_clock_range wish,
			    struct takt_clock_range *ret);

static inline bool takt_clock_range_equal(struct takt_clock_range a, struct takt_clock_range b)
{
	return a.min_mhz == b.min_mhz && a.max_mhz == b.max_mhz;
}

#endif
