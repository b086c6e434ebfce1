/* SPDX-License-Identifier: Apache-2.0 */
/* Which model a job should start on: speed per price, and what is worth waiting for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "sched/place_hetero.h"

enum {
	V100,
	P100,
	K80,
	MODELS,
	ALL = 36, /* devices of each */
};

/* Of each model 9 nodes of 4, so many devices held. */
static void fill(struct takt_hetero_pool *pools, uint32_t v100, uint32_t p100, uint32_t k80)
{
	const uint32_t held[] = {v100, p100, k80};

	for (uint32_t i = 0; i < MODELS; i++)
		pools[i] = (struct takt_hetero_pool){
			.usable_milli = ALL * 1000, .held_milli = held[i] * 1000, .widest = 4};
}

/* The answer as text, "01" for V100 before P100. */
static const char *rank(const struct takt_hetero_pool *pools, const uint32_t *permille,
			uint32_t wait)
{
	static char text[TAKT_HETERO_MAX_MODELS + 1];
	uint8_t models[TAKT_HETERO_MAX_MODELS];
	struct takt_hetero_job job = {.permille = permille, .devices = 1};
	uint32_t count = takt_hetero_rank(pools, MODELS, &job, wait, models);

	for (uint32_t i = 0; i < count; i++)
		text[i] = (char)('0' + models[i]);
	text[count] = '\0';
	return text;
}

static void test_an_empty_cluster_gives_the_fastest(void **state)
{
	struct takt_hetero_pool pools[MODELS];

	(void)state;
	fill(pools, 0, 0, 0);
	assert_string_equal(rank(pools, (uint32_t[]){1000, 640, 140}, 0), "012");
	assert_string_equal(rank(pools, (uint32_t[]){430, 1000, 650}, 0), "120");
}

/* ResNet-18 (batch size 256) is 12 times as fast on a V100 as on a K80, Transformer (batch size 16)
 * twice: with all V100 taken one of them waits, the other starts. */
static void test_the_slow_model_takes_who_loses_little(void **state)
{
	struct takt_hetero_pool pools[MODELS];

	(void)state;
	fill(pools, 36, 36, 0);
	assert_string_equal(rank(pools, (uint32_t[]){1000, 750, 86}, TAKT_HETERO_WAIT), "01");
	assert_string_equal(rank(pools, (uint32_t[]){1000, 862, 494}, TAKT_HETERO_WAIT), "20");
}

static void test_bounds_of_waiting(void **state)
{
	static const struct {
		uint32_t v100_held, k80_held, k80_permille, wait;
		const char *expected;
	} rows[] = {
		{36, 0, 223, TAKT_HETERO_WAIT, "02"}, /* 4.48 times slower, empty: starts */
		{36, 0, 222, TAKT_HETERO_WAIT, "0"},  /* 4.5 times: waits */
		{36, 36, 667, TAKT_HETERO_WAIT, "02"},
		{36, 36, 666, TAKT_HETERO_WAIT, "0"},
		{0, 0, 667, TAKT_HETERO_WAIT, "02"},
		{0, 0, 666, TAKT_HETERO_WAIT, "0"},
		{36, 0, 1, 0, "02"}, /* never waits */
		{36, 0, 333, 1000, "0"},
		{36, 0, 334, 1000, "2"},
	};

	(void)state;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_hetero_pool pools[MODELS];

		fill(pools, rows[i].v100_held, 0, rows[i].k80_held);
		assert_string_equal(
			rank(pools, (uint32_t[]){1000, 0, rows[i].k80_permille}, rows[i].wait),
			rows[i].expected);
	}
}

static void test_what_cannot_be_is_not_waited_for(void **state)
{
	static const uint32_t permille[] = {1000, 500, 100};
	struct takt_hetero_job job = {.permille = permille, .devices = 8};
	struct takt_hetero_pool pools[MODELS];
	uint8_t models[TAKT_HETERO_MAX_MODELS];

	(void)state;
	fill(pools, 0, 0, 0);
	assert_int_equal(takt_hetero_rank(pools, MODELS, &job, TAKT_HETERO_WAIT, models), 0);
	pools[K80].widest = 8; /* the only one with nodes wide enough, however slow */
	assert_int_equal(takt_hetero_rank(pools, MODELS, &job, TAKT_HETERO_WAIT, models), 1);
	assert_int_equal(models[0], K80);

	fill(pools, 0, 0, 0);
	pools[V100].usable_milli = 0; /* all drained */
	assert_string_equal(rank(pools, permille, TAKT_HETERO_WAIT), "1");
	assert_string_equal(rank(pools, (uint32_t[]){1000, 0, 0}, TAKT_HETERO_WAIT), "");

	job = (struct takt_hetero_job){.permille = permille, .devices = 1, .models = 1u << K80};
	assert_int_equal(takt_hetero_rank(pools, MODELS, &job, TAKT_HETERO_WAIT, models), 1);
	assert_int_equal(models[0], K80);
}

static void test_equal_worth_goes_by_number(void **state)
{
	struct takt_hetero_pool pools[MODELS];

	(void)state;
	fill(pools, 5, 5, 5);
	assert_string_equal(rank(pools, (uint32_t[]){1000, 1000, 1000}, TAKT_HETERO_WAIT), "012");
	fill(pools, 30, 20, 10); /* as fast everywhere: where there is most left */
	assert_string_equal(rank(pools, (uint32_t[]){1000, 1000, 1000}, 0), "210");
}

/* More held than usable (a GPU broke under its job), and the largest figures there are. */
static void test_extremes(void **state)
{
	struct takt_hetero_pool pools[MODELS];

	(void)state;
	fill(pools, 40, 0, 0);
	assert_string_equal(rank(pools, (uint32_t[]){1000, 300, 0}, TAKT_HETERO_WAIT), "01");
	fill(pools, 0, 0, 0);
	assert_string_equal(
		rank(pools, (uint32_t[]){UINT32_MAX, UINT32_MAX, 1}, TAKT_HETERO_MAX_WAIT), "01");
}

static uint32_t random_rank(struct takt_rng *rng, struct takt_hetero_pool *pools,
			    uint32_t *permille, uint8_t *models)
{
	struct takt_hetero_job job = {.permille = permille, .devices = 1};

	for (uint32_t i = 0; i < TAKT_HETERO_MAX_MODELS; i++) {
		pools[i].usable_milli = takt_rng_below(rng, 5) * 8000;
		pools[i].held_milli = takt_rng_below(rng, 40001);
		pools[i].widest = 8;
		permille[i] = (uint32_t)takt_rng_below(rng, 1001);
	}
	return takt_hetero_rank(pools, TAKT_HETERO_MAX_MODELS, &job, TAKT_HETERO_WAIT, models);
}

/* Whatever the figures: each model once; the unit of speed does not matter; a model that
 * somebody takes more of does not come to the front. */
static void test_random_clusters(void **state)
{
	struct takt_rng rng;

	(void)state;
	takt_rng_init(&rng, 4);
	for (int round = 0; round < 2000; round++) {
		struct takt_hetero_pool pools[TAKT_HETERO_MAX_MODELS];
		uint32_t permille[TAKT_HETERO_MAX_MODELS], tenfold[TAKT_HETERO_MAX_MODELS];
		uint8_t models[TAKT_HETERO_MAX_MODELS], again[TAKT_HETERO_MAX_MODELS];
		uint32_t count = random_rank(&rng, pools, permille, models), last;
		struct takt_hetero_job job = {.permille = tenfold, .devices = 1};
		uint64_t seen = 0;

		for (uint32_t i = 0; i < count; i++) {
			assert_false(seen >> models[i] & 1);
			seen |= UINT64_C(1) << models[i];
		}
		for (uint32_t i = 0; i < TAKT_HETERO_MAX_MODELS; i++)
			tenfold[i] = permille[i] * 10;
		assert_int_equal(takt_hetero_rank(pools, TAKT_HETERO_MAX_MODELS, &job,
						  TAKT_HETERO_WAIT, again),
				 count);
		assert_memory_equal(models, again, count);
		if (count < 2)
			continue;
		last = models[count - 1];
		pools[last].held_milli = pools[last].usable_milli;
		assert_true(takt_hetero_rank(pools, TAKT_HETERO_MAX_MODELS, &job, TAKT_HETERO_WAIT,
					     again) >= count - 1);
		assert_int_equal(again[0], models[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_cluster_gives_the_fastest),
		cmocka_unit_test(test_the_slow_model_takes_who_loses_little),
		cmocka_unit_test(test_bounds_of_waiting),
		cmocka_unit_test(test_what_cannot_be_is_not_waited_for),
		cmocka_unit_test(test_equal_worth_goes_by_number),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_random_clusters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
