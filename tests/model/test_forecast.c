/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forecasters on series whose right answer is known, gaps that are no zeros, and the backtest:
 * whom it chooses where that is known too, and what it counts as missed and as needless.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/backtest.h"

enum {
	LEN = 3000,
	HORIZON = 5,
	SEASON = 48,
};

static double values[LEN];

static struct takt_series all(void)
{
	return (struct takt_series){.value = values, .len = LEN, .begin_s = 0, .step_s = 60};
}

static double uniform(struct takt_rng *rng)
{
	return (double)(takt_rng_next(rng) >> 11) / 9007199254740992.0;
}

/* Mean 0, deviation 1: the sum of twelve. */
static double normal(struct takt_rng *rng)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(rng);
	return sum;
}

static void fill_noise(uint64_t seed, double mean)
{
	struct takt_rng rng;

	takt_rng_init(&rng, seed);
	for (size_t i = 0; i < LEN; i++)
		values[i] = mean + normal(&rng);
}

static void fill_walk(uint64_t seed)
{
	struct takt_rng rng;

	takt_rng_init(&rng, seed);
	values[0] = 100;
	for (size_t i = 1; i < LEN; i++)
		values[i] = values[i - 1] + normal(&rng);
}

/* A day that repeats itself, with a little noise. */
static void fill_season(uint64_t seed, double noise, double rise)
{
	struct takt_rng rng;

	takt_rng_init(&rng, seed);
	for (size_t i = 0; i < LEN; i++)
		values[i] = 50 + 20 * sin(6.283185307179586 * (double)(i % SEASON) / SEASON) +
			    rise * (double)i + noise * normal(&rng);
}

static const struct takt_forecast_task plain = {
	.horizon = HORIZON, .season = SEASON, .seed = 1, .lstm_rounds = 100, .lstm_hidden = 4};

static void *fitted(const struct takt_forecaster *forecaster, size_t len)
{
	struct takt_series whole = all(), history = takt_series_head(&whole, len);
	void *state = NULL;

	assert_int_equal(forecaster->fit(&history, &plain, &state, NULL), 0);
	return state;
}

static double said(const struct takt_forecaster *forecaster, size_t len)
{
	void *state = fitted(forecaster, len);
	double value = forecaster->predict(state);

	forecaster->release(state);
	return value;
}

static void near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%g instead of %g +- %g", value, expected, tolerance);
}

static void test_persistence_is_the_last_value(void **test)
{
	void *state;

	fill_walk(1);
	near(said(&takt_forecast_persistence, 1000), values[999], 0);
	state = fitted(&takt_forecast_persistence, 1000);
	for (int i = 0; i < 3 * HORIZON; i++)
		takt_forecast_persistence.observe(state, NAN);
	near(takt_forecast_persistence.predict(state), values[999], 0);
	takt_forecast_persistence.observe(state, NAN);
	assert_true(isnan(takt_forecast_persistence.predict(state)));
	takt_forecast_persistence.observe(state, 7);
	near(takt_forecast_persistence.predict(state), 7, 0);
	takt_forecast_persistence.release(state);
}

static void test_seasonal_is_one_season_before(void **test)
{
	struct takt_series whole = all(), early = takt_series_head(&whole, SEASON - 1);
	struct takt_err err;
	void *state = NULL;

	fill_walk(2);
	for (size_t len = 1000; len < 1000 + 2 * SEASON; len++)
		near(said(&takt_forecast_seasonal, len), values[len - 1 + HORIZON - SEASON], 0);
	values[1000 - 1 + HORIZON - SEASON] = NAN;
	assert_true(isnan(said(&takt_forecast_seasonal, 1000)));
	assert_int_equal(takt_forecast_seasonal.fit(&early, &plain, &state, &err), -ENODATA);
	assert_non_null(strstr(err.msg, "season"));
}

static void test_ewma_finds_how_fast_to_forget(void **test)
{
	double before;
	void *state;

	fill_noise(3, 40);
	near(said(&takt_forecast_ewma, LEN), 40, 0.3);
	fill_walk(4);
	near(said(&takt_forecast_ewma, LEN), values[LEN - 1], 0.5);
	/* A gap says nothing, and certainly not 0. */
	state = fitted(&takt_forecast_ewma, LEN);
	before = takt_forecast_ewma.predict(state);
	for (int i = 0; i < 100; i++)
		takt_forecast_ewma.observe(state, NAN);
	near(takt_forecast_ewma.predict(state), before, 0);
	takt_forecast_ewma.release(state);
}

/* x = 10 + 0.9 (x' - 10) + noise: five steps on, 0.9^5 of what is above 10 is left. */
static void test_ar_finds_its_coefficients(void **test)
{
	struct takt_rng rng;
	void *state;

	takt_rng_init(&rng, 5);
	values[0] = 10;
	for (size_t i = 1; i < LEN; i++)
		values[i] = 10 + 0.9 * (values[i - 1] - 10) + normal(&rng);
	state = fitted(&takt_forecast_ar, LEN);
	for (int i = 0; i < 3; i++)
		takt_forecast_ar.observe(state, 20);
	near(takt_forecast_ar.predict(state), 10 + 10 * pow(0.9, 5), 1.2);
	takt_forecast_ar.observe(state, NAN);
	takt_forecast_ar.observe(state, 20);
	assert_true(isnan(takt_forecast_ar.predict(state)));
	takt_forecast_ar.release(state);
}

static void test_ar_needs_rows_without_gaps(void **test)
{
	struct takt_series whole = all();
	void *state = NULL;

	fill_noise(6, 10);
	for (size_t i = 0; i < LEN; i += 3)
		values[i] = NAN;
	assert_int_equal(takt_forecast_ar.fit(&whole, &plain, &state, NULL), -ENODATA);
}

static void test_holt_winters_follows_season_and_trend(void **test)
{
	fill_season(7, 0.1, 0.01);
	for (size_t len = 2000; len < 2000 + SEASON; len += 5)
		near(said(&takt_forecast_holt_winters, len), values[len - 1 + HORIZON], 1.5);
}

static void test_holt_winters_begins_with_a_gap(void **test)
{
	fill_season(8, 0.1, 0);
	for (size_t i = 0; i < SEASON + 3; i++)
		values[i] = NAN;
	near(said(&takt_forecast_holt_winters, 2000), values[2000 - 1 + HORIZON], 1.5);
}

/* Every second sample is missing: whoever took gaps for zeros would say half. */
static void test_gaps_are_no_zeros(void **test)
{
	for (size_t k = 0; k < TAKT_FORECASTERS; k++) {
		struct takt_rng rng;
		double value;

		fill_noise(9, 100);
		takt_rng_init(&rng, 9);
		for (size_t i = 0; i < LEN; i++)
			if (takt_rng_below(&rng, 4) == 0)
				values[i] = NAN;
		values[LEN - 1] = values[LEN - 2] = values[LEN - 3] = 100;
		values[LEN - 1 + HORIZON - SEASON] = 100;
		value = said(takt_forecasters[k], LEN);
		if (!(fabs(value - 100) < 5))
			fail_msg("%s says %g", takt_forecasters[k]->name, value);
	}
}

static struct takt_backtest backtest(const struct takt_backtest_config *config)
{
	struct takt_series series = all();
	struct takt_backtest result;

	assert_int_equal(takt_backtest(&series, config, &result, NULL), 0);
	return result;
}

static const struct takt_backtest_config without_lstm = {
	.task = {.horizon = HORIZON, .season = SEASON, .seed = 1},
	.threshold = NAN,
	.without = {[5] = true},
};

static const char *chosen(const struct takt_backtest_config *config)
{
	struct takt_backtest result = backtest(config);
	const char *name = takt_forecasters[result.chosen]->name;

	takt_backtest_fini(&result);
	return name;
}

/* Nothing beats persistence on a random walk; by chance one may in some of 40. */
static void test_chance_does_not_win(void **test)
{
	int wrong = 0;

	for (uint64_t seed = 100; seed < 140; seed++) {
		fill_walk(seed);
		wrong += strcmp(chosen(&without_lstm), "persistence") != 0;
	}
	assert_in_range(wrong, 0, 3);
}

static void test_the_right_one_wins(void **test)
{
	struct takt_backtest result;

	fill_noise(10, 30);
	assert_string_equal(chosen(&without_lstm), "ewma");
	fill_season(11, 0, 0);
	assert_string_equal(chosen(&without_lstm), "seasonal");
	fill_season(12, 1, 0);
	result = backtest(&without_lstm);
	assert_string_equal(takt_forecasters[result.chosen]->name, "holt-winters");
	/* Noise of deviation 1: the mean absolute error cannot be below 0.8. */
	near(result.scores[4].mae, 0.8, 0.2);
	near(result.scores[4].p90, 1.65, 0.4);
	near(result.scores[1].mae, 0.8 * sqrt(2), 0.1);
	/* Seasonal was chosen before it; what it is worth is told against persistence. */
	near(result.better, result.scores[0].mae - result.scores[4].mae, 0.1);
	assert_true(result.better > 5 * result.scores[4].better);
	assert_true(result.error > 0 && result.better > 2.6 * result.error);
	takt_backtest_fini(&result);
}

/* One sample in ten is 10, the others are 0: persistence misses each and cries wolf after each. */
static void test_missed_and_needless_are_counted(void **test)
{
	struct takt_backtest_config config = without_lstm;
	const struct takt_backtest_score *score;
	struct takt_backtest result;

	config.threshold = 5;
	config.task.season = 10;
	for (size_t i = 0; i < LEN; i++)
		values[i] = i % 10 == 0 ? 10 : 0;
	result = backtest(&config);
	score = &result.scores[0];
	assert_int_equal(result.begin, 2100);
	assert_int_equal(score->tested, 900 - HORIZON + 1);
	assert_int_equal(score->high, 89);
	assert_int_equal(score->missed, 89);
	assert_int_equal(score->needless, 90);
	near(score->high_load, 890, 0);
	near(score->missed_load, 890, 0);
	assert_int_equal(result.scores[1].missed, 0);
	assert_int_equal(result.scores[1].needless, 0);
	near(result.scores[1].mae, 0, 0);
	takt_backtest_fini(&result);
}

/* Where being ready costs nothing and missing does, the one that is wrong on the safe side wins. */
static void test_chosen_by_consequence(void **test)
{
	struct takt_backtest_config config = without_lstm;
	struct takt_backtest result;

	config.by_consequence = true;
	config.needless_cost = 0.1;
	config.threshold = 60;
	fill_season(13, 0, 0);
	result = backtest(&config);
	assert_string_equal(takt_forecasters[result.chosen]->name, "seasonal");
	assert_true(result.scores[0].missed > 0);
	assert_int_equal(result.scores[1].missed, 0);
	near(result.scores[1].loss, 0, 0);
	takt_backtest_fini(&result);
}

/* What is not known cannot be tested, and silence is scored as persistence. */
static void test_silence_counts_as_persistence(void **test)
{
	struct takt_backtest result;

	fill_season(14, 0.5, 0);
	for (size_t i = 2200; i < 2300; i++)
		values[i] = NAN;
	result = backtest(&without_lstm);
	for (size_t k = 0; k < 5; k++)
		assert_int_equal(result.scores[k].tested, result.scores[0].tested);
	assert_int_equal(result.scores[0].silent, 0);
	assert_true(result.scores[1].silent > 0);
	assert_true(result.scores[0].tested <= 900 - 100);
	takt_backtest_fini(&result);
}

/* What is said of a sample may not depend on it or on what comes after: change it, nothing does. */
static void test_nobody_sees_the_future(void **test)
{
	struct takt_backtest_config config = without_lstm;
	struct takt_backtest before, after;

	config.without[5] = false;
	config.folds = 2;
	config.task.lstm_rounds = 60;
	config.task.lstm_hidden = 4;
	fill_season(15, 1, 0);
	before = backtest(&config);
	for (size_t i = 2800; i < LEN; i++)
		values[i] += 1000;
	after = backtest(&config);
	for (size_t k = 0; k < TAKT_FORECASTERS; k++) {
		for (size_t i = before.begin + HORIZON - 1; i < 2800 + HORIZON - 1; i++)
			near(after.said[k][i], before.said[k][i], 0);
		assert_true(before.scores[k].tried);
	}
	takt_backtest_fini(&before);
	takt_backtest_fini(&after);
}

static void test_too_little_is_said_so(void **test)
{
	struct takt_series whole = all(), little = takt_series_head(&whole, 6);
	struct takt_backtest_config config = without_lstm;
	struct takt_backtest result;
	struct takt_err err;

	fill_walk(16);
	assert_int_equal(takt_backtest(&little, &config, &result, &err), -ENODATA);
	assert_non_null(strstr(err.msg, "too few"));
	config.task.horizon = 0;
	assert_int_equal(takt_backtest(&whole, &config, &result, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "horizon"));
	config = without_lstm;
	values[7] = INFINITY;
	assert_int_equal(takt_backtest(&whole, &config, &result, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "sample 8"));
}

static void test_no_memory(void **test)
{
	struct takt_backtest_config config = without_lstm;
	struct takt_series whole = all(), some = takt_series_head(&whole, 400);
	struct takt_backtest result;
	int rc = -ENOMEM;

	config.without[5] = false;
	config.task.lstm_rounds = 1;
	config.task.lstm_hidden = 1;
	config.folds = 1;
	fill_season(17, 1, 0);
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_backtest(&some, &config, &result, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc != 0)
			assert_int_equal(rc, -ENOMEM);
		assert_in_range(nth, 1, 500);
	}
	takt_backtest_fini(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_persistence_is_the_last_value),
		cmocka_unit_test(test_seasonal_is_one_season_before),
		cmocka_unit_test(test_ewma_finds_how_fast_to_forget),
		cmocka_unit_test(test_ar_finds_its_coefficients),
		cmocka_unit_test(test_ar_needs_rows_without_gaps),
		cmocka_unit_test(test_holt_winters_follows_season_and_trend),
		cmocka_unit_test(test_holt_winters_begins_with_a_gap),
		cmocka_unit_test(test_gaps_are_no_zeros),
		cmocka_unit_test(test_chance_does_not_win),
		cmocka_unit_test(test_the_right_one_wins),
		cmocka_unit_test(test_missed_and_needless_are_counted),
		cmocka_unit_test(test_chosen_by_consequence),
		cmocka_unit_test(test_silence_counts_as_persistence),
		cmocka_unit_test(test_nobody_sees_the_future),
		cmocka_unit_test(test_too_little_is_said_so),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("forecasters", tests, NULL, NULL);
}
