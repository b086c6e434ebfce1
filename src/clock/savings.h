/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a governor saved, by the job's own epochs: those that went by at the highest setting say
 * how fast the job is there and what its work costs there, and what it did at other settings is
 * held against that. It assumes that the job would have gone on as it did in those epochs; nothing
 * is known where there were none, or where no signal says how much work was done.
 *
 * Pure, plain, zeroed to begin. Time between epochs, while a change took effect, is left out on
 * both sides.
 */
#ifndef TAKT_CLOCK_SAVINGS_H
#define TAKT_CLOCK_SAVINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <takt/clock_governor.h>

/*
 * How far off a signal is as a measure of what a job gets done at another clock, relative: the root
 * of the mean square over measured programs (bench/clocks_signals.py, bench/results). Of activity
 * counters 138 microbenchmarks, which they fit less well than nine real programs (16); of
 * utilisation ten real programs, which it fits less well than the microbenchmarks (167). A job's
 * own word is the thing itself. All at nine clocks down to 0.41 of the highest on one board; how
 * the error of one job is spread is not known.
 */
#define TAKT_COUNTERS_ERROR_PERMILLE	30u
#define TAKT_UTILISATION_ERROR_PERMILLE 221u
/* 0 for a job's own word, and for none. */
uint32_t takt_signal_error_permille(enum takt_governor_signal signal);

/* Sums over epochs; of rates and costs of one unit of work also the squares. */
struct takt_savings_part {
	uint32_t epochs;
	double seconds, work, joules;
	double rate, rate_squares, cost, cost_squares;
};

struct takt_savings {
	struct takt_savings_part highest, below;
	enum takt_governor_signal signal; /* the least sure one of all epochs */
};

/* One epoch, as a governor saw it; one that was somebody else's is left out. */
void takt_savings_add(struct takt_savings *savings, const struct takt_governor_setup *setup,
		      const struct takt_governor_observation *seen);

struct takt_saved {
	enum takt_governor_signal signal;
	uint32_t epochs, highest_epochs; /* that this rests on */
	uint64_t energy_mj;		 /* measured in those epochs */
	uint64_t highest_mj;		 /* modelled: the same work at the highest setting */
	uint32_t highest_error_permille; /* standard error of that, the signal's own error in it */
	int32_t slowdown_permille;
	uint32_t slowdown_error_permille; /* the same */
};

/* False: not known. */
bool takt_savings_result(const struct takt_savings *savings, struct takt_saved *ret);

#endif
