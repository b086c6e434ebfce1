/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job under one governor on measured curves: what the governor sees is noisy, delayed and
 * quantised, what is counted is the truth of the table. docs/research/clocks-replay.md defines
 * each figure.
 *
 * Time and energy are relative to the same job at the reference setting (highest clock, or the
 * highest limit) throughout, which is 1 for both.
 */
#ifndef TAKT_SIM_CLOCK_RUN_H
#define TAKT_SIM_CLOCK_RUN_H

#include "base/err.h"
#include "sim/clock_points.h"

enum {
	TAKT_CLOCK_SETTLING = 8, /* epochs after a beginning that may violate */
};

struct takt_clock_world {
	double time_noise, power_noise; /* standard deviation of an epoch's measurement, relative */
	uint64_t epoch_ns;		/* of the loop */
	uint64_t delay_ns;		/* from wish to effect; < epoch_ns */
	uint64_t meter_ns;		/* the energy counter moves this often; 0 = always */
	bool tell_remaining;		/* the governor knows how long the job is */
};

struct takt_clock_job {
	const struct takt_governor *governor;
	const struct takt_governor_param *params;
	size_t param_count;
	uint32_t max_slowdown_permille;
	const struct takt_clock_curve *const *phases; /* equal shares of the work, in turn */
	size_t phase_count;
	uint32_t epochs; /* of the job at the reference setting */
	uint64_t seed;
	void *state; /* of governor->state_bytes */
	bool warm;   /* the state went through other jobs of boards with the same settings; it is
			told of the new one by a call without an epoch. Else it begins anew */
};

struct takt_clock_result {
	double time, energy;		 /* at the reference: 1 */
	double best_time, best_energy;	 /* of the offline optimum */
	double probe_time, probe_energy; /* part of time and energy spent on probes */
	double settling_loss;		 /* saving that the optimum has in the settling epochs
					    and the governor has not; part of energy */
	uint32_t epochs, settled_epochs, violating_epochs, changes;
};

/* The setting of least energy that keeps the promise on this curve. */
const struct takt_clock_setting *takt_clock_best(const struct takt_clock_curve *curve,
						 uint32_t max_slowdown_permille);
/* Time and energy of a setting relative to the curve's reference. */
double takt_clock_time(const struct takt_clock_curve *curve,
		       const struct takt_clock_setting *setting);
double takt_clock_energy(const struct takt_clock_curve *curve,
			 const struct takt_clock_setting *setting);
/* What a ceiling makes of a curve: the highest setting not above it, or the lowest one. */
const struct takt_clock_setting *takt_clock_under(const struct takt_clock_curve *curve,
						  double ceiling);
/* Slower than promised; what rounding can do is no violation. */
bool takt_clock_violates(double time, uint32_t max_slowdown_permille);

/* The same job at one setting from its first moment, without a governor. */
void takt_clock_hold(const struct takt_clock_job *job, double setting,
		     struct takt_clock_result *ret);

int takt_clock_run(const struct takt_clock_world *world, const struct takt_clock_job *job,
		   struct takt_clock_result *ret, struct takt_err *err);

#endif
