/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zeus-cost: tries every setting once at the beginning, then holds the one of least cost. After
 * Zeus (You, Chung, Chowdhury, NSDI 2023), its optimiser of power limits while a job runs; the
 * other half of Zeus, batch sizes over recurrences of a job, is not ours to choose.
 *
 *	cost of a unit of work = eta * energy + (1 - eta) * highest power * time
 *
 * From the highest setting downwards, each with `warm_up` epochs that do not count and `window`
 * that do. Settings are power limits in steps of 25 W where the board can set those alone, and else
 * clocks, 13 of them from half the highest on. eta 1 is least energy whatever it takes, eta 0 least
 * time. It knows of no promise: a promised slowdown is not looked at.
 *
 * The highest power is the board's highest limit where limits are what it tries, else what was
 * drawn at the highest clock.
 *
 *	eta_permille	(500)
 *	warm_up, window	epochs (1, 2)
 */
#include <string.h>

#include "clock/levels.h"
#include "clock/tally.h"

enum {
	CLOCK_STEPS = 13,
	FLOOR_PERMILLE = 500,
	POWER_STEP_MW = 25000,
};

struct zeus_cost {
	struct takt_levels levels;
	struct takt_tally seen[TAKT_LEVELS_MAX];
	uint32_t at;
	uint32_t warmed; /* epochs at this setting that did not count */
	uint32_t done;	 /* has chosen */
};

static uint32_t steps_of(const struct takt_governor_board *board)
{
	uint32_t steps;

	if (board->can & TAKT_ACTUATE_CLOCKS || !(board->can & TAKT_ACTUATE_POWER))
		return CLOCK_STEPS;
	steps = (board->power_default_mw - board->power_min_mw) / POWER_STEP_MW + 1;
	return steps < 2 ? 2 : steps > TAKT_LEVELS_MAX ? TAKT_LEVELS_MAX : steps;
}

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct zeus_cost *own = state;

	(void)message;
	(void)message_size;
	memset(own, 0, sizeof(*own));
	takt_levels_make(&setup->board, setup->board.can & TAKT_ACTUATE_CLOCKS ? FLOOR_PERMILLE : 0,
			 steps_of(&setup->board), &own->levels);
	own->at = takt_levels_top(&own->levels);
	return 0;
}

static double highest_w(const struct zeus_cost *own, const struct takt_governor_setup *setup)
{
	if (own->levels.actuator == TAKT_ACTUATE_POWER)
		return setup->board.power_max_mw / 1000.0;
	return takt_tally_power_w(&own->seen[takt_levels_top(&own->levels)]);
}

static uint32_t cheapest(const struct zeus_cost *own, const struct takt_governor_setup *setup)
{
	double eta = (double)takt_governor_param(setup, "eta_permille", 500) / 1000;
	uint32_t best = takt_levels_top(&own->levels);
	double best_cost = 0;

	for (uint32_t i = own->levels.count; i-- > 0;) {
		const struct takt_tally *tally = &own->seen[i];
		double watts = eta * takt_tally_power_w(tally) + (1 - eta) * highest_w(own, setup);
		double cost = tally->epochs ? watts / takt_tally_rate(tally) : 0;

		if (cost > 0 && (best_cost == 0 || cost < best_cost)) {
			best = i;
			best_cost = cost;
		}
	}
	return best;
}

static void learn(struct zeus_cost *own, const struct takt_governor_setup *setup,
		  const struct takt_governor_observation *seen)
{
	if (takt_levels_in_force(&own->levels, &seen->cap) != own->at || !takt_tally_usable(seen))
		return;
	if (own->warmed < takt_governor_param(setup, "warm_up", 1)) {
		own->warmed++;
		return;
	}
	takt_tally_add(&own->seen[own->at], seen);
	if (own->seen[own->at].epochs < takt_governor_param(setup, "window", 2))
		return;
	own->warmed = 0;
	own->done = own->at == 0;
	own->at = own->done ? cheapest(own, setup) : own->at - 1;
}

static bool says_enough(const struct takt_governor_observation *seen)
{
	return (seen->has & TAKT_OBSERVED_WORK) &&
	       (seen->has & (TAKT_OBSERVED_ENERGY | TAKT_OBSERVED_POWER));
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct zeus_cost *own = state;

	if (takt_levels_stand_back(seen, ret))
		return;
	if (seen->has && !says_enough(seen)) {
		takt_levels_ask(&own->levels, takt_levels_top(&own->levels), TAKT_REASON_NO_SIGNAL,
				ret);
		return;
	}
	if (seen->has && !own->done)
		learn(own, setup, seen);
	takt_levels_ask(&own->levels, own->at, own->done ? TAKT_REASON_LEARNED : TAKT_REASON_PROBE,
			ret);
	ret->probe = !own->done;
}

const struct takt_governor takt_governor_zeus_cost = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "zeus-cost",
	.summary = "tries each setting, holds the least of eta*energy + (1-eta)*power*time",
	.params = "eta_permille warm_up window",
	.state_bytes = sizeof(struct zeus_cost),
	.state_version = 1,
	.init = init,
	.step = step,
};
