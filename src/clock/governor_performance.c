/* SPDX-License-Identifier: Apache-2.0 */
/* performance: the highest clock and the limit that stands without us, whatever the load. */
#include "clock/governor.h"

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	(void)state;
	(void)seen;
	takt_governor_ask_mhz(setup, takt_governor_max_mhz(setup), TAKT_REASON_MAXIMUM, ret);
	if (setup->board.can & TAKT_ACTUATE_POWER) {
		ret->cap.sets |= TAKT_ACTUATE_POWER;
		ret->cap.power_mw = setup->board.power_default_mw;
	}
}

const struct takt_governor takt_governor_performance = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "performance",
	.summary = "the highest clock, whatever the load",
	.step = step,
};
