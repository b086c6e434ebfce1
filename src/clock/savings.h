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

/* One epoch, as a governor saw it. */
void takt_savings_add(struct takt_savings *savings, const struct takt_governor_setup *setup,
		      const struct takt_governor_observation *seen);

struct takt_saved {
	enum takt_governor_signal signal;
	uint32_t epochs, highest_epochs; /* that this rests on */
	uint64_t energy_mj;		 /* measured in those epochs */
	uint64_t highest_mj;		 /* modelled: the same work at the highest setting */
	uint32_t highest_error_permille; /* standard error of that */
	int32_t slowdown_permille;
	uint32_t slowdown_error_permille;
};

/* False: not known. */
bool takt_savings_result(const struct takt_savings *savings, struct takt_saved *ret);

#endif
