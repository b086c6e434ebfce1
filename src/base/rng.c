/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256**, see the header. */
#include "base/rng.h"

#include <assert.h>
#include <string.h>

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

void takt_rng_init(struct takt_rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = splitmix64(&seed);
}

uint64_t takt_rng_next(struct takt_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* Numbers under 2^64 mod n are drawn again: the rest is a whole multiple of n. */
uint64_t takt_rng_below(struct takt_rng *rng, uint64_t n)
{
	uint64_t unfair, draw;

	assert(n > 0);
	unfair = -n % n;
	do {
		draw = takt_rng_next(rng);
	} while (draw < unfair);
	return draw % n;
}

uint64_t takt_rng_range(struct takt_rng *rng, uint64_t min, uint64_t max)
{
	assert(min <= max);
	if (max - min == UINT64_MAX)
		return takt_rng_next(rng);
	return min + takt_rng_below(rng, max - min + 1);
}

/* Least significant byte first, so that the bytes do not depend on the machine. */
void takt_rng_fill(struct takt_rng *rng, void *ret, size_t n)
{
	unsigned char *out = ret;
	uint64_t word = 0;

	for (size_t i = 0; i < n; i++, word >>= 8) {
		if (i % 8 == 0)
			word = takt_rng_next(rng);
		out[i] = (unsigned char)word;
	}
}

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

void takt_rng_shuffle(struct takt_rng *rng, void *base, size_t n, size_t size)
{
	unsigned char *bytes = base;

	for (size_t i = n; i > 1; i--)
		swap(bytes + (i - 1) * size, bytes + takt_rng_below(rng, i) * size, size);
}
