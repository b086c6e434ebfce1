/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power-budget: the highest clock whose power stays within this board's share of the machine's, and
 * the share itself as power limit behind it. A clock that is too high for its power is cut by the
 * board itself, in bursts; one that fits runs evenly. Who gets which share is worked out for all
 * boards together (power_share.h), from the curves that these governors measure.
 *
 * Power at a clock is what was measured there, recent epochs counting more. At one that was not
 * measured it is expected on the cubic A + B f^3 through the lowest clock that was and the nearest
 * one below (with one clock only A is 0, but for the next one up, which is expected in proportion
 * so that there will be two), and to be no more than what was measured above. Where nothing was
 * measured at all it begins at the lowest clock, or, where the limit keeps the budget anyway, at
 * the highest.
 *
 * A higher clock draws no less power and is no slower; it draws no more than with the cube of the
 * clock, and is no faster than in proportion. What was measured earlier and contradicts that beside
 * what is measured now is of another time, when the job was loading its data, for one. It is
 * dropped: where it makes more power look worthless, nobody would give the job the power to measure
 * it again.
 *
 * Its bid: relative performance gained a watt by the next clock up that was measured.
 */
#include <stdio.h>
#include <string.h>

#include "clock/levels.h"
#include "clock/power_share.h"
#include "clock/tally.h"

enum {
	STEPS = 16,
	FLOOR_PERMILLE = 300,
	MEMORY = 8,	    /* epochs after which what was measured counts half */
	APART_PERCENT = 10, /* that measurements may be off */
};

#define SW_POWER_CAP UINT64_C(0x4) /* of the driver's throttle bits */

struct power_budget {
	struct takt_levels levels; /* of clocks; none on a board with limits only */
	struct takt_tally tally[TAKT_LEVELS_MAX];
	uint32_t budget_mw, at; /* of the last wish; 0 = there was no budget */
};

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct power_budget *own = state;

	(void)message;
	(void)message_size;
	memset(own, 0, sizeof(*own));
	if (setup->board.can & TAKT_ACTUATE_CLOCKS)
		takt_levels_make(&setup->board, FLOOR_PERMILLE, STEPS, &own->levels);
	return 0;
}

static double known_w(const struct power_budget *own, uint32_t level)
{
	return takt_tally_power_w(&own->tally[level]);
}

static double cube(const struct power_budget *own, uint32_t level)
{
	double share = takt_levels_share(&own->levels, level);

	return share * share * share;
}

/* From what was measured at `near` and, if another, at `low`, both below the level. */
static double rising_w(const struct power_budget *own, uint32_t low, uint32_t near, uint32_t level)
{
	double at_low = known_w(own, low), at_near = known_w(own, near), slope;

	if (low == near && level == near + 1)
		return at_near * own->levels.value[level] / own->levels.value[near];
	if (low == near || at_low >= at_near)
		return at_near * cube(own, level) / cube(own, near);
	slope = (at_near - at_low) / (cube(own, near) - cube(own, low));
	return at_near + slope * (cube(own, level) - cube(own, near));
}

/* What was measured, or is expected; 0 when nothing was measured anywhere. */
static double power_w(const struct power_budget *own, uint32_t level)
{
	uint32_t count = own->levels.count, low = 0, near = level, above = level;
	double rising = 0;

	if (known_w(own, level) > 0)
		return known_w(own, level);
	while (low < level && known_w(own, low) <= 0)
		low++;
	while (near > low && known_w(own, near) <= 0)
		near--;
	while (above < count && known_w(own, above) <= 0)
		above++;
	if (low < level)
		rising = rising_w(own, low, near, level);
	if (above == count || (low < level && rising < known_w(own, above)))
		return rising;
	return known_w(own, above);
}

static uint32_t fitting(const struct power_budget *own, const struct takt_governor_setup *setup,
			double budget_w)
{
	uint32_t level = takt_levels_top(&own->levels);

	if (power_w(own, level) == 0)
		return setup->board.can & TAKT_ACTUATE_POWER ? level : 0;
	while (level > 0 && power_w(own, level) > budget_w)
		level--;
	return level;
}

/* Which level the epoch was of. Where the limit held the board below its ceiling it was the clock
 * that it came to: the power there is no measure of the ceiling's. With a limit alone it was
 * whatever somebody else had set. */
static uint32_t level_of(const struct power_budget *own,
			 const struct takt_governor_observation *seen)
{
	uint32_t at = takt_levels_in_force(&own->levels, &seen->cap);

	if (seen->cap.sets == TAKT_ACTUATE_POWER)
		return own->levels.count;
	if (at >= own->levels.count || !(seen->cap.sets & TAKT_ACTUATE_POWER) ||
	    !(seen->has & TAKT_OBSERVED_THROTTLE) || !(seen->throttle & SW_POWER_CAP) ||
	    !(seen->has & TAKT_OBSERVED_SM_CLOCK))
		return at;
	while (at > 0 && own->levels.value[at] > seen->sm_mhz)
		at--;
	return at;
}

/* Whether a figure at a lower clock and one at a higher cannot be of the same work: it rises with
 * the clock, and at most so many times. */
static bool contradicts(double low, double high, double at_most)
{
	double apart = 1 + APART_PERCENT / 100.0;

	return low > 0 && high > 0 && (low > high * apart || high > low * at_most * apart);
}

/* Of what was measured at other clocks what cannot be of the same work as this. */
static void drop_outdated(struct power_budget *own, uint32_t at)
{
	for (uint32_t i = 0; i < own->levels.count; i++) {
		uint32_t low = i < at ? i : at, high = i < at ? at : i;
		double times = takt_levels_share(&own->levels, high) /
			       takt_levels_share(&own->levels, low);

		if (contradicts(known_w(own, low), known_w(own, high), times * times * times) ||
		    contradicts(takt_tally_rate(&own->tally[low]),
				takt_tally_rate(&own->tally[high]), times))
			own->tally[i] = (struct takt_tally){0};
	}
}

static void learn(struct power_budget *own, const struct takt_governor_observation *seen)
{
	uint32_t at = level_of(own, seen);

	if (at >= own->levels.count || !takt_tally_usable(seen))
		return;
	if (own->tally[at].epochs >= MEMORY)
		takt_tally_halve(&own->tally[at]);
	takt_tally_add(&own->tally[at], seen);
	drop_outdated(own, at);
}

static double bid(const struct power_budget *own, uint32_t at)
{
	struct takt_power_point points[TAKT_LEVELS_MAX];
	size_t n = takt_power_budget_curve(own, points);
	double here_mw = known_w(own, at) * 1000;
	size_t k = 1;

	if (n < 2)
		return 0;
	while (k + 1 < n && points[k].mw <= here_mw)
		k++;
	return (points[k].performance - points[k - 1].performance) * 1000 /
	       ((double)points[k].mw - points[k - 1].mw);
}

size_t takt_power_budget_curve(const void *state, struct takt_power_point *ret)
{
	const struct power_budget *own = state;
	double most = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < own->levels.count; i++)
		if (takt_tally_rate(&own->tally[i]) > most)
			most = takt_tally_rate(&own->tally[i]);
	for (uint32_t i = 0; i < own->levels.count; i++) {
		double watts = known_w(own, i);
		/* Upwards: a share that was made of this figure must bear it. */
		uint32_t mw = watts < 4e6 ? (uint32_t)(watts * 1000) + (watts > 0) : 0;

		if (mw > (n ? ret[n - 1].mw : 0))
			ret[n++] = (struct takt_power_point){mw, takt_tally_rate(&own->tally[i]) /
									 most};
	}
	return n;
}

bool takt_power_budget_complete(const void *state)
{
	const struct power_budget *own = state;

	return own->levels.count && known_w(own, takt_levels_top(&own->levels)) > 0;
}

static uint32_t limit_mw(const struct takt_governor_board *board, uint32_t budget_mw)
{
	if (budget_mw < board->power_min_mw)
		return board->power_min_mw;
	return budget_mw < board->power_default_mw ? budget_mw : board->power_default_mw;
}

static void ask_clock(struct power_budget *own, const struct takt_governor_setup *setup,
		      uint32_t budget_mw, struct takt_governor_wish *ret)
{
	own->at = own->levels.count ? fitting(own, setup, budget_mw / 1000.0) : 0;
	takt_levels_ask(&own->levels, own->at, TAKT_REASON_POWER_SHARE, ret);
	ret->bid = own->levels.count ? bid(own, own->at) : 0;
}

/* Where somebody else sets the clock, that is his. The limit stays: without it the board would draw
 * more than its share. A share that is told between two epochs, since the last one was of a clock
 * that nobody knows yet, is for the limit alone: to set the clock might be to fight for it. */
static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct power_budget *own = state;
	bool has_budget = seen->has & TAKT_OBSERVED_BUDGET;

	own->budget_mw = has_budget ? seen->budget_mw : 0;
	if (seen->foreign)
		ret->reason = TAKT_REASON_FOREIGN;
	else if (seen->has && own->levels.count)
		learn(own, seen);
	if (has_budget && !seen->epoch_ns && seen->cap.sets)
		*ret = (struct takt_governor_wish){.cap = seen->cap,
						   .reason = TAKT_REASON_POWER_SHARE};
	else if (has_budget && !seen->foreign)
		ask_clock(own, setup, seen->budget_mw, ret);
	if (has_budget && (setup->board.can & TAKT_ACTUATE_POWER)) {
		ret->cap.sets |= TAKT_ACTUATE_POWER;
		ret->cap.power_mw = limit_mw(&setup->board, seen->budget_mw);
	}
}

static void explain(const void *state, const struct takt_governor_setup *setup, char *text,
		    size_t text_size)
{
	const struct power_budget *own = state;

	(void)setup;
	if (!own->budget_mw)
		snprintf(text, text_size, "it has no share of the machine's power: no budget");
	else if (!own->levels.count || power_w(own, own->at) <= 0)
		snprintf(
			text, text_size,
			"each GPU may draw %u W of the machine's power; what it takes is not known",
			own->budget_mw / 1000);
	else
		snprintf(text, text_size,
			 "each GPU may draw %u W of the machine's power; %u MHz takes %.0f W%s",
			 own->budget_mw / 1000, own->levels.value[own->at], power_w(own, own->at),
			 known_w(own, own->at) > 0 ? "" : ", as is expected");
}

const struct takt_governor takt_governor_power_budget = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "power-budget",
	.summary = "highest clock within this board's share of the machine's power",
	.state_bytes = sizeof(struct power_budget),
	.state_version = 2,
	.init = init,
	.step = step,
	.explain = explain,
};
