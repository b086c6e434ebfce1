/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was measured at one setting: work and energy over all epochs that count. An epoch in which
 * the board slowed itself down, or that says nothing of the work, does not count.
 */
#ifndef TAKT_CLOCK_TALLY_H
#define TAKT_CLOCK_TALLY_H

#include "clock/governor.h"

/* Bits of the driver (NVML's clock event reasons) that make an epoch useless as a measurement: HW
 * slowdown, SW and HW thermal slowdown, power brake. A power cap is not among them: it may be ours.
 */
#define TAKT_TALLY_THROTTLED UINT64_C(0xe8)

struct takt_tally {
	uint32_t epochs;
	double time_s, work, rate_squares; /* of each epoch's work/time */
	double energy_j, energy_time_s;	   /* of the epochs that say something of power */
};

/* Whether the epoch says how fast the job was. */
bool takt_tally_usable(const struct takt_governor_observation *seen);
/* Adds an epoch that is usable. */
void takt_tally_add(struct takt_tally *tally, const struct takt_governor_observation *seen);
/* Lets what was measured so far count half. */
void takt_tally_halve(struct takt_tally *tally);

double takt_tally_rate(const struct takt_tally *tally);	   /* work a second; 0 = nothing known */
double takt_tally_power_w(const struct takt_tally *tally); /* 0 = not known */

/* Relative variance of the mean rate, from the spread of its epochs; 1 with fewer than 2. */
double takt_tally_variance(const struct takt_tally *tally);

/* How much slower than `reference`: 0.05 = 5 %. Both know a rate. */
double takt_tally_slowdown(const struct takt_tally *tally, const struct takt_tally *reference);

#endif
