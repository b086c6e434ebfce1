/* SPDX-License-Identifier: Apache-2.0 */
/* Clamping of wishes to a driver's list of clocks: arithmetic alone. */
#include "clock/range.h"

/* Highest listed clock that is not above `want`; the lowest one if all are. */
static uint32_t floor_clock(const uint32_t *mhz, size_t n, uint32_t want)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (mhz[mid] <= want)
			low = mid;
		else
			high = mid;
	}
	return mhz[low];
}

bool takt_clock_range_clamp(const uint32_t *mhz, size_t n, struct takt_clock_range wish,
			    struct takt_clock_range *ret)
{
	if (n == 0 || wish.max_mhz == 0 || wish.min_mhz > wish.max_mhz)
		return false;
	ret->min_mhz = floor_clock(mhz, n, wish.min_mhz);
	ret->max_mhz = floor_clock(mhz, n, wish.max_mhz);
	return true;
}
