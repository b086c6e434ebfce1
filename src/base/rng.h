/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deterministic random numbers: xoshiro256** seeded through splitmix64 (Blackman and Vigna, public
 * domain). The same seed gives the same sequence on every machine. Not for secrets.
 */
#ifndef TAKT_BASE_RNG_H
#define TAKT_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct takt_rng {
	uint64_t s[4];
};

void takt_rng_init(struct takt_rng *rng, uint64_t seed); /* any seed, 0 too */
uint64_t takt_rng_next(struct takt_rng *rng);		 /* all 64 bits */

/* Uniform without bias: below n (n >= 1); from min to max, both included (min <= max). */
uint64_t takt_rng_below(struct takt_rng *rng, uint64_t n);
uint64_t takt_rng_range(struct takt_rng *rng, uint64_t min, uint64_t max);

void takt_rng_fill(struct takt_rng *rng, void *ret, size_t n);
void takt_rng_shuffle(struct takt_rng *rng, void *base, size_t n, size_t size);

#endif
