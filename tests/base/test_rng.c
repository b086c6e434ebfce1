/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: known sequence, fair bounds, complete shuffles. Also CRC-32C's known answers. */
#include "seeded.h"

#include <stdbool.h>
#include <string.h>

#include "base/checksum.h"
#include "base/rng.h"

/* splitmix64 of 0, then xoshiro256**, computed by an independent implementation. */
static void known_sequence(void **state)
{
	static const uint64_t want[] = {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au,
					0x1a5f849d4933e6e0u, 0x6aa594f1262d2d2cu};
	struct takt_rng rng;

	takt_rng_init(&rng, 0);
	for (size_t i = 0; i < 4; i++)
		assert_true(takt_rng_next(&rng) == want[i]);
}

static void bounds_are_fair(void **state)
{
	uint64_t counts[7] = {0}, three_quarters = UINT64_MAX / 4 * 3, low = 0;
	struct takt_rng rng;

	takt_rng_init(&rng, 1);
	for (int i = 0; i < 70000; i++)
		counts[takt_rng_below(&rng, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(counts[i], 9600, 10400);
	/* A plain modulo would put two thirds of the draws in the lower third. */
	for (int i = 0; i < 30000; i++)
		low += takt_rng_below(&rng, three_quarters) < three_quarters / 3;
	assert_in_range(low, 9500, 10500);
}

static void ranges_include_both_ends(void **state)
{
	bool seen[3] = {false};
	struct takt_rng rng;

	takt_rng_init(&rng, 2);
	for (int i = 0; i < 100; i++) {
		uint64_t value = takt_rng_range(&rng, 5, 7);

		assert_in_range(value, 5, 7);
		seen[value - 5] = true;
	}
	assert_true(seen[0] && seen[1] && seen[2]);
	assert_true(takt_rng_range(&rng, 9, 9) == 9);
	takt_rng_range(&rng, 0, UINT64_MAX);
}

static void fill_is_the_sequence(void **state)
{
	unsigned char bytes[11];
	struct takt_rng a, b;
	uint64_t first;

	takt_rng_init(&a, 3);
	b = a;
	first = takt_rng_next(&b);
	takt_rng_fill(&a, bytes, sizeof(bytes));
	for (int i = 0; i < 8; i++)
		assert_int_equal(bytes[i], first >> (8 * i) & 255);
	takt_rng_next(&b); /* 11 bytes took a second word */
	assert_true(takt_rng_next(&a) == takt_rng_next(&b));
}

static void shuffles_reach_every_order(void **state)
{
	int seen[27] = {0}, orders = 0;
	struct takt_rng rng;

	takt_rng_init(&rng, 4);
	for (int n = 0; n < 600; n++) {
		int cards[3] = {0, 1, 2};

		takt_rng_shuffle(&rng, cards, 3, sizeof(int));
		assert_true(cards[0] != cards[1] && cards[1] != cards[2] && cards[0] != cards[2]);
		seen[cards[0] * 9 + cards[1] * 3 + cards[2]]++;
	}
	for (int i = 0; i < 27; i++) {
		assert_true(seen[i] == 0 || seen[i] > 60);
		orders += seen[i] > 0;
	}
	assert_int_equal(orders, 6);
}

static void crc_known_answers(void **state)
{
	unsigned char zeros[32] = {0};

	assert_int_equal(takt_crc32c("", 0), 0);
	assert_int_equal(takt_crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(takt_crc32c(zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
	assert_int_equal(takt_crc32c_more(takt_crc32c("1234", 4), "56789", 5), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_sequence),
		cmocka_unit_test(bounds_are_fair),
		cmocka_unit_test(ranges_include_both_ends),
		cmocka_unit_test(fill_is_the_sequence),
		cmocka_unit_test(shuffles_reach_every_order),
		cmocka_unit_test(crc_known_answers),
	};

	return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
