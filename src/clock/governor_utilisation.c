/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utilisation: the textbook governor, by how busy the driver says that the board is.
 *
 *	busy above 90 %		the highest clock (boost)
 *	busy below 30 %		0.8 of the base clock
 *	between			the base clock
 *
 * It remembers nothing and promises nothing: a board can be 100 % busy at any clock, as utilisation
 * counts time with a kernel on it and not what the kernel gets done. A board that does not say what
 * its base clock is has its highest clock in that place.
 *
 *	base_mhz	the base clock, where the board does not say
 */
#include "clock/levels.h"

enum {
	BUSY_PERMILLE = 900,
	QUIET_PERMILLE = 300,
	QUIET_SHARE_PERMILLE = 800, /* of the base clock */
	MAX_MHZ = 100000,
};

static uint32_t base_mhz(const struct takt_governor_setup *setup)
{
	int64_t told = takt_governor_param(setup, "base_mhz", 0);

	if (told > 0 && told <= MAX_MHZ)
		return (uint32_t)told;
	return setup->board.has_base_mhz ? setup->board.base_mhz : takt_governor_max_mhz(setup);
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	uint32_t mhz = base_mhz(setup);

	(void)state;
	if (takt_levels_stand_back(seen, ret))
		return;
	if (!(seen->has & TAKT_OBSERVED_GPU_UTIL)) {
		ret->reason = TAKT_REASON_NO_SIGNAL;
		return;
	}
	if (seen->gpu_util_permille > BUSY_PERMILLE)
		mhz = takt_governor_max_mhz(setup);
	else if (seen->gpu_util_permille < QUIET_PERMILLE)
		mhz = (uint32_t)((uint64_t)mhz * QUIET_SHARE_PERMILLE / 1000);
	takt_governor_ask_mhz(setup, mhz, TAKT_REASON_UTILISATION, ret);
}

const struct takt_governor takt_governor_utilisation = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "utilisation",
	.summary = "busy above 90%: highest clock; below 30%: 0.8 of base; else base",
	.params = "base_mhz",
	.step = step,
};
