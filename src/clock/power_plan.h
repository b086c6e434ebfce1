/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each job's boards may draw of a machine's power, from the curves that jobs have measured so
 * far (power_share.h does the sharing). A curve is known where the job was; this says what is taken
 * for granted elsewhere:
 *
 * - Below the lowest setting that was measured less power costs nothing. That is better than it
 *   will be, so that a job is held to less where others gain by it, for long enough to find out. A
 *   promise does not go by it.
 * - Above the highest it goes on rising as it did on the whole so far, until the highest clock was
 *   measured. That is better than it will be, so that a job is given what it takes to find out.
 * - Of a job of which nothing is known, each watt brings less than the one before.
 *
 * A setting is thought to need MARGIN more than was measured there: a share that is just enough for
 * it must still be when the next epoch draws a little more.
 */
#ifndef TAKT_CLOCK_POWER_PLAN_H
#define TAKT_CLOCK_POWER_PLAN_H

#include <stdbool.h>

#include "clock/levels.h"
#include "clock/power_share.h"

enum {
	TAKT_POWER_OUTLOOK_MAX = TAKT_LEVELS_MAX + 2,
	TAKT_POWER_MARGIN_PERMILLE = 20,
};

struct takt_power_job {
	uint32_t boards;	    /* that stand at one setting, 1.. */
	uint32_t least_mw, most_mw; /* that each of them can be held to, and draws at the most */
	bool has_promise;
	uint32_t max_slowdown_permille;
	/* takt_power_budget_curve(), of one board; and whether it reaches up to the highest clock.
	 */
	struct takt_power_point measured[TAKT_LEVELS_MAX];
	size_t count;
	bool complete;
	/* Out: of each board, whole watts unless it is the least. */
	uint32_t share_mw;
	bool breaks_promise; /* there is too little for what was promised */
};

/* The curve of one board as above: ascending in mw, 1 at its end. Returns the number of points. */
size_t takt_power_outlook(const struct takt_power_job *job,
			  struct takt_power_point ret[TAKT_POWER_OUTLOOK_MAX]);

/*
 * Fills in shares of `budget_mw`. Each job gets its least first, one with a promise what it takes
 * to keep that, if there is enough for all of these; the rest goes to whom it brings most, and what
 * would bring nothing to anybody is spread over all boards as room. A board of one job counts as
 * much as a board of another. *ret_short: even the least of all is more than there is, and all have
 * that. -ENOMEM.
 */
int takt_power_plan(uint64_t budget_mw, struct takt_power_job *jobs, size_t count, bool *ret_short,
		    struct takt_err *err);

#endif
