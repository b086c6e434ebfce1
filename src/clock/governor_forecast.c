/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast: as much clock as the load needs, now or as it is expected to be, whichever is more. So
 * the clock is there before the load is, and it goes down only when neither asks for it.
 *
 * Demand is what the board did, in MHz of work: its busy share times its clock. Needed is demand
 * divided by busy_permille: the clock at which it would be that busy (schedutil of the Linux kernel
 * aims at 0.8 in the same way). Ahead is the same for the forecast load, at the demand a unit of
 * load that was seen.
 *
 * Upwards it goes at once, downwards one epoch in `slow`, to the highest clock that was needed in
 * those epochs. Who forecasts is the caller's business (src/model); without a forecast, or before
 * any load was seen, the demand of now decides alone.
 *
 *	busy_permille	(800)
 *	slow		epochs (5)
 */
#include <string.h>

#include "clock/levels.h"

enum {
	SMOOTH = 4, /* epochs over which the demand of a unit of load is averaged */
};

struct forecast {
	double unit_mhz; /* demand of a unit of load; 0 = not seen yet */
	uint32_t mhz;	 /* held; 0 = nothing yet */
	uint32_t quiet;	 /* epochs in which less was needed */
	uint32_t most;	 /* the most that was needed in them */
};

static bool is_load(double load)
{
	return load > 0 && load < 1e15;
}

static double demand_ahead(struct forecast *own, const struct takt_governor_observation *seen,
			   double demand)
{
	if ((seen->has & TAKT_OBSERVED_LOAD) && is_load(seen->load) && demand > 0) {
		double unit = demand / seen->load;

		own->unit_mhz += own->unit_mhz > 0 ? (unit - own->unit_mhz) / SMOOTH : unit;
	}
	if (!(seen->has & TAKT_OBSERVED_LOAD_AHEAD) || !is_load(seen->load_ahead))
		return 0;
	return own->unit_mhz * seen->load_ahead;
}

static void settle(struct forecast *own, const struct takt_governor_setup *setup, uint32_t needed)
{
	if (needed >= own->mhz) {
		own->mhz = needed;
		own->quiet = own->most = 0;
		return;
	}
	own->most = needed > own->most ? needed : own->most;
	if (++own->quiet < takt_governor_param(setup, "slow", 5))
		return;
	own->mhz = own->most;
	own->quiet = own->most = 0;
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct forecast *own = state;
	double busy = (double)takt_governor_param(setup, "busy_permille", 800) / 1000;
	double demand, ahead;

	if (seen->foreign) {
		ret->reason = TAKT_REASON_FOREIGN;
		return;
	}
	if (!takt_governor_max_mhz(setup) || !(seen->has & TAKT_OBSERVED_GPU_UTIL) ||
	    !(seen->has & TAKT_OBSERVED_SM_CLOCK)) {
		takt_governor_ask_mhz(setup, takt_governor_max_mhz(setup), TAKT_REASON_NO_SIGNAL,
				      ret);
		return;
	}
	demand = seen->gpu_util_permille / 1000.0 * seen->sm_mhz;
	ahead = demand_ahead(own, seen, demand);
	settle(own, setup,
	       takt_levels_ceil_mhz(&setup->board, (ahead > demand ? ahead : demand) / busy));
	takt_governor_ask_mhz(setup, own->mhz,
			      ahead > demand ? TAKT_REASON_FORECAST : TAKT_REASON_UTILISATION, ret);
}

const struct takt_governor takt_governor_forecast = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "forecast",
	.summary = "clock for the load of now or as forecast, whichever is more",
	.params = "busy_permille slow",
	.state_bytes = sizeof(struct forecast),
	.state_version = 1,
	.step = step,
};
