/* SPDX-License-Identifier: Apache-2.0 */
/* A board and a job on it by a formula of our own, for governors to be tried on: with r the clock
 * as a share of the highest, the job takes 1 + sensitivity (1/r - 1) and draws fixed + rising r^3.
 */
#ifndef TAKT_TESTS_CLOCK_GOVERNOR_KIT_H
#define TAKT_TESTS_CLOCK_GOVERNOR_KIT_H

#include "base/rng.h"
#include "clock/governor.h"

enum {
	KIT_STATE = 16384, /* bytes; every governor's state fits */
	KIT_CLOCKS = 81,   /* 210..1410 MHz in steps of 15 */
};

struct kit {
	const struct takt_governor *governor;
	struct takt_governor_setup setup;
	union {
		char bytes[KIT_STATE];
		double align;
	} state;
	struct takt_governor_wish wish;
	struct takt_rng rng;

	/* The job. */
	double sensitivity, fixed_w, rising_w;
	double noise;  /* of work, either way at most, relative */
	uint32_t hide; /* bits that the board does not say */
	uint32_t gpu_util_permille, dram_active_permille; /* at any clock */
	uint32_t budget_mw;				  /* 0 = none */

	/* What came of it. */
	uint64_t now_ns;
	uint32_t epochs;
	double time, energy;	     /* for the work that was done, */
	double top_time, top_energy; /* and what it would have been at the highest clock */
	double worst;		     /* slowdown of an epoch */
	uint32_t over;		     /* epochs slower than promised */
};

/* Begins: clocks (and limits, if the setup has none) of a board, 5 % promised. */
void kit_begin(struct kit *kit, const char *governor);
/* With other parameters, promise or board, as set in kit->setup. */
void kit_restart(struct kit *kit);

double kit_share(const struct kit *kit); /* r of what is in force */
double kit_power_w(const struct kit *kit);

/* One epoch of 2 s under the wish in force, and the governor's answer to it. */
void kit_epoch(struct kit *kit);
void kit_run(struct kit *kit, uint32_t epochs);
/* The same for an observation of the caller's own making. */
void kit_tell(struct kit *kit, const struct takt_governor_observation *seen);

double kit_slowdown(const struct kit *kit); /* 0.05 = 5 % */
double kit_saved(const struct kit *kit);    /* of energy: 0.2 = 20 % */

extern const uint32_t kit_clocks[KIT_CLOCKS];

#endif
