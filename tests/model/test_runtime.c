/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of run times against distributions whose answers are known: memoryless, all alike, and
 * short or very long; and what it must keep to: nothing counted twice, survivors counted, limits.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/runtime.h"

#define S UINT64_C(1000000000)

static struct takt_runtime *new_model(uint32_t max_groups)
{
	struct takt_runtime_config config = {.max_groups = max_groups};
	struct takt_runtime *model;

	assert_int_equal(takt_runtime_new(&config, &model, NULL), 0);
	return model;
}

static uint32_t kind_of(struct takt_runtime *model, uint64_t owner, uint64_t name, uint32_t gpus)
{
	struct takt_runtime_job job = {.owner = owner, .name = name, .gpus = gpus};
	uint32_t kind;

	assert_int_equal(takt_runtime_kind(model, &job, &kind, NULL), 0);
	return kind;
}

/* A job of that kind runs for so long and ends; nobody predicted anything. */
static void ran(struct takt_runtime *model, uint32_t kind, uint64_t seconds)
{
	uint32_t step = TAKT_RUNTIME_NEW;

	takt_runtime_ended(model, kind, &step, seconds * S, 0);
}

static void test_kinds_are_owner_name_and_size(void **state)
{
	struct takt_runtime *model = new_model(0);
	uint32_t one = kind_of(model, 1, 0, 1);

	assert_int_equal(kind_of(model, 1, 0, 1), one);
	assert_int_not_equal(kind_of(model, 2, 0, 1), one);
	assert_int_not_equal(kind_of(model, 1, 7, 1), one);
	assert_int_not_equal(kind_of(model, 1, 0, 2), one);
	assert_int_equal(kind_of(model, 1, 0, 3), kind_of(model, 1, 0, 4));
	assert_int_equal(takt_runtime_kinds(model), 5);
	takt_runtime_free(model);
}

static void test_steps_double_every_other_time(void **state)
{
	assert_int_equal(takt_runtime_step_ms(0), 0);
	assert_int_equal(takt_runtime_step_ms(1), 30000);
	assert_int_equal(takt_runtime_step_ms(3), 60000);
	assert_int_equal(takt_runtime_step_ms(5), 120000);
	for (uint32_t step = 0; step < TAKT_RUNTIME_STEPS; step++) {
		assert_int_equal(takt_runtime_step(takt_runtime_step_ms(step)), step);
		if (step)
			assert_int_equal(takt_runtime_step(takt_runtime_step_ms(step) - 1),
					 step - 1);
	}
	assert_int_equal(takt_runtime_step(UINT64_MAX), TAKT_RUNTIME_STEPS - 1);
}

static void test_mean_comes_from_the_narrowest_group(void **state)
{
	struct takt_runtime *model = new_model(0);
	struct takt_runtime_prediction p;
	uint32_t mine = kind_of(model, 1, 0, 1), wide = kind_of(model, 1, 0, 8);

	assert_false(takt_runtime_predict(model, mine, &p));
	for (int i = 0; i < 3; i++)
		ran(model, mine, 100);
	assert_true(takt_runtime_predict(model, mine, &p));
	assert_int_equal(p.mean_ns, 100 * S);
	assert_int_equal(p.seen, 3);
	assert_false(p.has_error);
	/* Nothing of that size yet: the owner's others. */
	assert_true(takt_runtime_predict(model, wide, &p));
	assert_int_equal(p.mean_ns, 100 * S);
	for (int i = 0; i < 3; i++)
		ran(model, wide, 900);
	assert_true(takt_runtime_predict(model, wide, &p));
	assert_int_equal(p.mean_ns, 900 * S);
	/* A stranger: all jobs. */
	assert_true(takt_runtime_predict(model, kind_of(model, 2, 0, 1), &p));
	assert_in_range(p.mean_ns, 499 * S, 500 * S);
	takt_runtime_free(model);
}

static void test_mean_follows_change(void **state)
{
	struct takt_runtime *model = new_model(0);
	struct takt_runtime_prediction p;
	uint32_t kind = kind_of(model, 1, 0, 1);

	for (int i = 0; i < 100; i++)
		ran(model, kind, 1000);
	for (int i = 0; i < 60; i++)
		ran(model, kind, 100);
	assert_true(takt_runtime_predict(model, kind, &p));
	assert_in_range(p.mean_ns, 100 * S, 150 * S);
	takt_runtime_free(model);
}

static void test_predictions_carry_their_error(void **state)
{
	struct takt_runtime *model = new_model(0);
	struct takt_runtime_prediction p;
	uint32_t kind = kind_of(model, 1, 0, 1);

	for (int i = 0; i < 40; i++) {
		uint32_t step = TAKT_RUNTIME_NEW;

		takt_runtime_ended(model, kind, &step, (i % 2 ? 150 : 50) * S, 100 * S);
	}
	assert_true(takt_runtime_predict(model, kind, &p));
	assert_true(p.has_error);
	assert_in_range(p.error_ns, 49 * S, 51 * S);
	takt_runtime_free(model);
}

/* Jobs with a run time that has no memory: the rank is the mean at any age. */
static void test_rank_of_memoryless_is_the_mean(void **state)
{
	struct takt_runtime *model = new_model(0);
	struct takt_runtime_outlook outlook;
	uint32_t kind = kind_of(model, 1, 0, 1);
	struct takt_rng rng;

	takt_rng_init(&rng, 1);
	for (int i = 0; i < 4000; i++) {
		uint64_t seconds = 1;

		while (takt_rng_below(&rng, 600) != 0)
			seconds++;
		ran(model, kind, seconds);
	}
	takt_runtime_outlook(model, kind, &outlook);
	for (uint32_t step = 0; outlook.age_ms[step] < 900000; step++)
		assert_in_range(outlook.rank_ms[step], 600000 * 6 / 10, 600000 * 14 / 10);
	takt_runtime_free(model);
}

/* All end after 1,000 s: the nearer, the more urgent. */
static void test_rank_falls_when_the_end_comes_near(void **state)
{
	struct takt_runtime *model = new_model(0);
	struct takt_runtime_outlook outlook;
	uint32_t kind = kind_of(model, 1, 0, 1);

	for (int i = 0; i < 400; i++)
		ran(model, kind, 1000);
	takt_runtime_outlook(model, kind, &outlook);
	for (uint32_t step = 1; step <= takt_runtime_step(900000); step++)
		assert_true(outlook.rank_ms[step] < outlook.rank_ms[step - 1]);
	assert_in_range(outlook.rank_ms[0], 850000, 1300000);
	takt_runtime_free(model);
}

/* Nine of ten end within a minute, the tenth runs for a day: who has passed the minute is long. */
static void test_rank_rises_for_who_outlives_the_short(void **state)
{
	struct takt_runtime *model = new_model(0);
	struct takt_runtime_outlook outlook;
	uint32_t kind = kind_of(model, 1, 0, 1);

	for (int i = 0; i < 400; i++)
		ran(model, kind, i % 10 ? 40 : 86400);
	takt_runtime_outlook(model, kind, &outlook);
	assert_in_range(outlook.rank_ms[0], 30000, 90000);
	assert_true(outlook.rank_ms[takt_runtime_step(300000)] > 20 * outlook.rank_ms[0]);
	takt_runtime_free(model);
}

static void test_survivors_make_jobs_look_long(void **state)
{
	struct takt_runtime *told = new_model(0), *untold = new_model(0);
	struct takt_runtime_outlook with, without;
	uint32_t kind = kind_of(told, 1, 0, 1), step;

	kind_of(untold, 1, 0, 1);
	for (int i = 0; i < 20; i++) {
		ran(told, kind, 500);
		ran(untold, kind, 500);
		step = TAKT_RUNTIME_NEW;
		takt_runtime_reached(told, kind, &step, 50000 * S);
	}
	takt_runtime_outlook(told, kind, &with);
	takt_runtime_outlook(untold, kind, &without);
	step = takt_runtime_step(600000);
	assert_true(with.rank_ms[step] > 2 * without.rank_ms[step]);
	takt_runtime_free(told);
	takt_runtime_free(untold);
}

static void test_nothing_is_counted_twice(void **state)
{
	struct takt_runtime *once = new_model(0), *often = new_model(0);
	struct takt_runtime_outlook a, b;
	uint32_t kind = kind_of(once, 1, 0, 1), step = TAKT_RUNTIME_NEW;

	kind_of(often, 1, 0, 1);
	ran(once, kind, 4000);
	for (uint64_t seconds = 0; seconds < 4000; seconds += 7)
		takt_runtime_reached(often, kind, &step, seconds * S);
	takt_runtime_ended(often, kind, &step, 4000 * S, 0);
	takt_runtime_outlook(once, kind, &a);
	takt_runtime_outlook(often, kind, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	takt_runtime_free(once);
	takt_runtime_free(often);
}

static void test_told_says_when_an_outlook_may_be_another(void **state)
{
	struct takt_runtime *model = new_model(0);
	uint32_t one = kind_of(model, 1, 0, 1), other = kind_of(model, 2, 0, 2);
	uint64_t told = takt_runtime_told(model, one);

	/* A job of somebody else's is told to the group of all, which is above. */
	ran(model, other, 50);
	assert_true(takt_runtime_told(model, one) > told);
	takt_runtime_free(model);
}

static void test_beyond_the_limit_jobs_count_above(void **state)
{
	struct takt_runtime *model = new_model(6);
	struct takt_runtime_outlook outlook;

	for (uint64_t owner = 1; owner < 50; owner++) {
		uint32_t kind = kind_of(model, owner, owner, 1);

		assert_true(kind < takt_runtime_kinds(model));
		ran(model, kind, 70);
		takt_runtime_outlook(model, kind, &outlook);
	}
	assert_in_range(takt_runtime_kinds(model), 1, 6);
	assert_in_range(outlook.rank_ms[0], 30000, 200000);
	takt_runtime_free(model);
}

static int use_all(void)
{
	struct takt_runtime_config config = {0};
	struct takt_runtime_job job = {.owner = 1, .name = 2, .gpus = 4};
	struct takt_runtime *model;
	uint32_t kind = 77;
	int rc = takt_runtime_new(&config, &model, NULL);

	if (rc < 0)
		return rc;
	rc = takt_runtime_kind(model, &job, &kind, NULL);
	assert_int_equal(kind == 77, rc < 0);
	/* What was half made does no harm. */
	if (rc < 0 && takt_runtime_kind(model, &job, &kind, NULL) == 0)
		ran(model, kind, 5);
	takt_runtime_free(model);
	return rc;
}

static void test_every_allocation_may_fail(void **state)
{
	unsigned long nth = 0;
	int rc;

	do {
		takt_alloc_fail_nth(++nth, 0);
		rc = use_all();
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
	} while (rc < 0);
	assert_true(nth > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_are_owner_name_and_size),
		cmocka_unit_test(test_steps_double_every_other_time),
		cmocka_unit_test(test_mean_comes_from_the_narrowest_group),
		cmocka_unit_test(test_mean_follows_change),
		cmocka_unit_test(test_predictions_carry_their_error),
		cmocka_unit_test(test_rank_of_memoryless_is_the_mean),
		cmocka_unit_test(test_rank_falls_when_the_end_comes_near),
		cmocka_unit_test(test_rank_rises_for_who_outlives_the_short),
		cmocka_unit_test(test_survivors_make_jobs_look_long),
		cmocka_unit_test(test_nothing_is_counted_twice),
		cmocka_unit_test(test_told_says_when_an_outlook_may_be_another),
		cmocka_unit_test(test_beyond_the_limit_jobs_count_above),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
