/* SPDX-License-Identifier: Apache-2.0 */
/* Settings to step through: arithmetic on the board's own lists. */
#include "clock/levels.h"

static uint32_t top_of(const struct takt_governor_board *board, uint32_t actuator)
{
	return actuator == TAKT_ACTUATE_CLOCKS ? board->sm_mhz[board->sm_count - 1]
					       : board->power_default_mw;
}

static uint32_t bottom_of(const struct takt_governor_board *board, uint32_t actuator)
{
	return actuator == TAKT_ACTUATE_CLOCKS ? board->sm_mhz[0] : board->power_min_mw;
}

uint32_t takt_levels_ceil_mhz(const struct takt_governor_board *board, double mhz)
{
	size_t i = 0;

	while (i + 1 < board->sm_count && board->sm_mhz[i] < mhz)
		i++;
	return board->sm_mhz[i];
}

/* The settable value that is nearest, the higher one of two alike. */
static uint32_t nearest_mhz(const struct takt_governor_board *board, uint32_t mhz)
{
	size_t i = 0;

	while (i + 1 < board->sm_count && board->sm_mhz[i + 1] <= mhz)
		i++;
	if (i + 1 < board->sm_count && board->sm_mhz[i] < mhz &&
	    board->sm_mhz[i + 1] - mhz <= mhz - board->sm_mhz[i])
		i++;
	return board->sm_mhz[i];
}

static uint32_t nearest_mw(const struct takt_governor_board *board, uint32_t mw)
{
	uint32_t step = board->power_step_mw ? board->power_step_mw : 1;
	uint64_t steps = ((uint64_t)(mw - board->power_min_mw) + step / 2) / step;
	uint64_t near = board->power_min_mw + steps * step;

	return near < board->power_default_mw ? (uint32_t)near : board->power_default_mw;
}

static void add_level(struct takt_levels *levels, uint32_t value)
{
	if (levels->count == 0 || value > levels->value[levels->count - 1])
		levels->value[levels->count++] = value;
}

/* All clocks of a short list; a long one is thinned. */
static bool take_all(const struct takt_governor_board *board, uint32_t low, uint32_t count,
		     struct takt_levels *levels)
{
	size_t first = 0;

	while (board->sm_mhz[first] < low)
		first++;
	if (board->sm_count - first > count)
		return false;
	for (size_t i = first; i < board->sm_count; i++)
		add_level(levels, board->sm_mhz[i]);
	return true;
}

void takt_levels_make(const struct takt_governor_board *board, uint32_t floor_permille,
		      uint32_t count, struct takt_levels *ret)
{
	uint32_t top, low, floor;

	*ret = (struct takt_levels){.actuator = board->can & TAKT_ACTUATE_CLOCKS
							? TAKT_ACTUATE_CLOCKS
							: board->can & TAKT_ACTUATE_POWER};
	if (!ret->actuator)
		return;
	top = top_of(board, ret->actuator);
	floor = (uint32_t)((uint64_t)top * floor_permille / 1000);
	low = bottom_of(board, ret->actuator);
	low = floor > low ? floor : low;
	if (ret->actuator == TAKT_ACTUATE_CLOCKS && take_all(board, low, count, ret))
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t even = low + (uint32_t)((uint64_t)(top - low) * i / (count - 1));

		add_level(ret, ret->actuator == TAKT_ACTUATE_CLOCKS ? nearest_mhz(board, even)
								    : nearest_mw(board, even));
	}
}

double takt_levels_share(const struct takt_levels *levels, uint32_t level)
{
	return (double)levels->value[level] / levels->value[levels->count - 1];
}

uint32_t takt_levels_in_force(const struct takt_levels *levels, const struct takt_governor_cap *cap)
{
	uint32_t held = levels->actuator == TAKT_ACTUATE_CLOCKS ? cap->max_mhz : cap->power_mw;

	if (!(cap->sets & levels->actuator))
		return takt_levels_top(levels);
	for (uint32_t i = 0; i < levels->count; i++)
		if (levels->value[i] == held)
			return i;
	return levels->count;
}

void takt_levels_ask(const struct takt_levels *levels, uint32_t level,
		     enum takt_governor_reason reason, struct takt_governor_wish *ret)
{
	ret->reason = reason;
	ret->cap = (struct takt_governor_cap){.sets = levels->actuator};
	if (levels->actuator == TAKT_ACTUATE_CLOCKS)
		ret->cap.max_mhz = levels->value[level];
	else if (levels->actuator == TAKT_ACTUATE_POWER)
		ret->cap.power_mw = levels->value[level];
}

bool takt_levels_stand_back(const struct takt_governor_observation *seen,
			    struct takt_governor_wish *ret)
{
	if (!seen->foreign && !seen->idle)
		return false;
	ret->cap = (struct takt_governor_cap){0};
	ret->reason = seen->foreign ? TAKT_REASON_FOREIGN : TAKT_REASON_IDLE;
	return true;
}
