/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed: one clock, and a power limit if one is given, from beginning to end.
 *
 *	sm_mhz		the ceiling; or sm_permille of the highest clock
 *	power_mw	the limit
 */
#include <stdio.h>

#include "clock/governor.h"

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	(void)state;
	if (setup->param_count)
		return 0;
	snprintf(message, message_size,
		 "it needs sm_mhz (up to 100000), sm_permille (up to 1000) or power_mw (up to "
		 "100000000)");
	return -1;
}

static int64_t ceiling_mhz(const struct takt_governor_setup *setup)
{
	int64_t permille = takt_governor_param(setup, "sm_permille", 0);

	return takt_governor_param(setup, "sm_mhz",
				   permille * (int64_t)takt_governor_max_mhz(setup) / 1000);
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	int64_t mhz = ceiling_mhz(setup), power_mw = takt_governor_param(setup, "power_mw", 0);

	(void)state;
	(void)seen;
	ret->reason = TAKT_REASON_FIXED;
	if (mhz)
		takt_governor_ask_mhz(setup, (uint32_t)mhz, TAKT_REASON_FIXED, ret);
	if (power_mw) {
		ret->cap.sets |= TAKT_ACTUATE_POWER;
		ret->cap.power_mw = (uint32_t)power_mw;
	}
}

const struct takt_governor takt_governor_fixed = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "fixed",
	.summary = "one ceiling from beginning to end: sm_mhz, sm_permille or power_mw",
	.params = "sm_mhz sm_permille power_mw",
	.init = init,
	.step = step,
};
