/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a clock fits its ceiling, see the header. */
#include "clock/fit.h"

enum {
	SLACK_MHZ = 30, /* two steps of most boards: readings differ by a few MHz */
};

enum takt_clock_fit takt_clock_fit(uint32_t max_mhz, uint32_t mhz, uint32_t reach_mhz)
{
	uint32_t expected = reach_mhz < max_mhz ? reach_mhz : max_mhz;
	uint32_t slack = expected / 16 > SLACK_MHZ ? expected / 16 : SLACK_MHZ;

	if (mhz > max_mhz + SLACK_MHZ)
		return TAKT_CLOCK_ABOVE;
	if (mhz + slack < expected)
		return TAKT_CLOCK_FELL;
	return mhz < max_mhz / 4 * 3 ? TAKT_CLOCK_NEVER_CAME : TAKT_CLOCK_FITS;
}
