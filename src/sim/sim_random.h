/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Randomness of simulations: each purpose has a stream of its own, so that one draw more in one of
 * them moves nothing elsewhere.
 *
 * Stream k of seed S is the generator of base/rng.h seeded with the k-th number (k = 1, 2, ...) of
 * the generator that S seeds. The streams and their order of draws are part of docs/simulate.md:
 * changing them changes every published figure.
 */
#ifndef TAKT_SIM_RANDOM_H
#define TAKT_SIM_RANDOM_H

#include <stdint.h>

#include "base/rng.h"

enum takt_sim_stream {
	TAKT_SIM_SHUFFLE = 1, /* order of arrivals */
	TAKT_SIM_INFLATE,     /* which jobs are added or left out to reach the tuning ratio */
	TAKT_SIM_RANK,	      /* order of nodes, which breaks ties */
	TAKT_SIM_POLICY,      /* handed to policies that draw */
	TAKT_SIM_ARRIVALS,    /* times of generated arrivals */
	TAKT_SIM_KINDS,	      /* what arrives */
	TAKT_SIM_FAILURES,
	TAKT_SIM_WEEKS,	 /* resampling */
	TAKT_SIM_SHIFTS, /* rotations of copies */
	TAKT_SIM_NOISE,	 /* of measurements of clocks */
};

void takt_sim_stream(uint64_t seed, enum takt_sim_stream stream, struct takt_rng *ret);

#endif
