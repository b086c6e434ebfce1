/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's watts shared out among its boards: to whom a watt brings most, until there are none
 * left or none would bring anything. The budget is one continuous number and every job bids with
 * its own curve of performance over power; nobody is cut because of a class that he is in.
 *
 * Each board first gets its least. The rest goes to the steepest piece of any bidder's curve, then
 * to the next steepest (water-filling). For curves whose slope only falls that is the best there
 * is; other curves are taken as the lowest such curve above them.
 */
#ifndef TAKT_CLOCK_POWER_SHARE_H
#define TAKT_CLOCK_POWER_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct takt_power_point {
	uint32_t mw;
	double performance; /* any unit, the same for all points of a bidder */
};

struct takt_power_bidder {
	uint32_t min_mw; /* it never gets less */
	uint32_t max_mw; /* nor more; >= min_mw */
	double weight;	 /* > 0; what a unit of its performance is worth, beside others' */
	/* Ascending in mw; borrowed. Without any it is as if each watt brought the same, from 0 at
	 * min_mw to 1 at max_mw. Beyond its last point power brings nothing. */
	const struct takt_power_point *points;
	size_t count;
};

/*
 * ret_mw[i] is what bidder i may draw. The sum is never above the budget, and what would bring
 * nothing is not given out. -TAKT_E_IMPOSSIBLE when the minima alone are above the budget; -EINVAL
 * for a bidder that is none, -ENOMEM. On failure ret_mw is as it was.
 */
int takt_power_share_out(uint64_t budget_mw, const struct takt_power_bidder *bidders, size_t count,
			 uint32_t *ret_mw, struct takt_err *err);

/*
 * What the governor power-budget has measured so far, from its state: ascending in both,
 * performance relative to the best. `ret` has room for TAKT_LEVELS_MAX points; returns how many
 * there are.
 */
size_t takt_power_budget_curve(const void *state, struct takt_power_point *ret);
/* Whether that reaches up to the highest clock. */
bool takt_power_budget_complete(const void *state);

#endif
