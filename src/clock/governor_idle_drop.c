/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle-drop: nothing is held while a job computes; a board on which nothing happened for a while is
 * kept at its lowest clock until something does. The rule of EAR's policy for least energy on GPUs
 * (utilisation 0: lowest clock, else the default one), with a wait, since a job that pauses between
 * two kernels is not idle.
 *
 * It saves where a program holds a board without using it: with a context open some boards stay at
 * a high clock and draw more by a third to a half than at their lowest. The price is that the first
 * epoch after a pause begins at the low clock.
 *
 *	idle_ms		how long nothing must have happened (10000)
 *	sm_permille	of the highest clock: what an idle board is kept at (0: the lowest)
 */
#include "clock/levels.h"

struct idle_drop {
	uint64_t idle_ns;
};

static bool nothing_happened(const struct takt_governor_observation *seen)
{
	return seen->idle || ((seen->has & TAKT_OBSERVED_GPU_UTIL) && seen->gpu_util_permille == 0);
}

static uint64_t wait_ns(const struct takt_governor_setup *setup)
{
	int64_t ms = takt_governor_param(setup, "idle_ms", 10000);

	return ms > 0 ? (uint64_t)ms * 1000000 : 0;
}

static uint32_t idle_mhz(const struct takt_governor_setup *setup)
{
	uint64_t permille = (uint64_t)takt_governor_param(setup, "sm_permille", 0);
	uint64_t mhz = permille <= 1000 ? permille * takt_governor_max_mhz(setup) / 1000 : 0;

	return mhz ? (uint32_t)mhz : 1;
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct idle_drop *own = state;

	own->idle_ns = nothing_happened(seen) ? own->idle_ns + seen->epoch_ns + seen->gap_ns : 0;
	if (seen->foreign)
		ret->reason = TAKT_REASON_FOREIGN;
	else if (own->idle_ns && own->idle_ns >= wait_ns(setup))
		takt_governor_ask_mhz(setup, idle_mhz(setup), TAKT_REASON_IDLE, ret);
}

const struct takt_governor takt_governor_idle_drop = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "idle-drop",
	.summary = "nothing held while busy; after idle_ms without work the lowest clock",
	.params = "idle_ms sm_permille",
	.state_bytes = sizeof(struct idle_drop),
	.state_version = 1,
	.step = step,
};
