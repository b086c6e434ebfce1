/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few settings that a stepping governor tries: evenly spaced, each one that the board can hold,
 * as clocks where clocks can be set and else as power limits. And what every governor does before
 * it thinks: stand back where there is nothing to govern.
 */
#ifndef TAKT_CLOCK_LEVELS_H
#define TAKT_CLOCK_LEVELS_H

#include "clock/governor.h"

enum {
	TAKT_LEVELS_MAX = 16,
};

struct takt_levels {
	uint32_t actuator; /* one of enum takt_governor_actuator; 0 = nothing can be set */
	uint32_t count;	   /* 1.. with an actuator */
	/* MHz or mW, strictly ascending; the last is what the board holds without us. */
	uint32_t value[TAKT_LEVELS_MAX];
};

/*
 * Up to `count` (2..TAKT_LEVELS_MAX) of them, all where the board has no more, from
 * `floor_permille` of the highest, or from the lowest that the board has, whichever is more. Power
 * limits end at the default one: a governor never raises a limit.
 */
void takt_levels_make(const struct takt_governor_board *board, uint32_t floor_permille,
		      uint32_t count, struct takt_levels *ret);

static inline uint32_t takt_levels_top(const struct takt_levels *levels)
{
	return levels->count ? levels->count - 1 : 0;
}

/* As a share of the highest, (0, 1]. `level` is below count. */
double takt_levels_share(const struct takt_levels *levels, uint32_t level);

/* Which one was in force: the top when nothing was held, `count` when it was none of them. */
uint32_t takt_levels_in_force(const struct takt_levels *levels,
			      const struct takt_governor_cap *cap);

/* Wishes for one of them; for nothing when there are none. */
void takt_levels_ask(const struct takt_levels *levels, uint32_t level,
		     enum takt_governor_reason reason, struct takt_governor_wish *ret);

/* Lowest settable clock that is not below `mhz`; the highest if all are. The board has CLOCKS. */
uint32_t takt_levels_ceil_mhz(const struct takt_governor_board *board, double mhz);

/* True, with *ret saying why nothing is wished for: somebody else sets the clocks, or the board
 * idles (held clocks only cost power then). */
bool takt_levels_stand_back(const struct takt_governor_observation *seen,
			    struct takt_governor_wish *ret);

#endif
