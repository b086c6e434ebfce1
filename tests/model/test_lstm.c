/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network: its gradient against finite differences, a series that it can learn and persistence
 * cannot, the same weights from the same seed, and a file that is what was written or is refused.
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
#include "model/lstm_impl.h"

enum {
	LEN = 1500,
	HORIZON = 5,
	WAVE = 16,
};

static double values[LEN];

static struct takt_series all(void)
{
	return (struct takt_series){.value = values, .len = LEN, .begin_s = 600, .step_s = 60};
}

static double between(struct takt_rng *rng, double limit)
{
	return ((double)(takt_rng_next(rng) >> 11) / 4503599627370496.0 - 1) * limit;
}

/* A square wave whose turns nobody foresees who knows the last value only. */
static void fill_wave(void)
{
	struct takt_rng rng;

	takt_rng_init(&rng, 3);
	for (size_t i = 0; i < LEN; i++)
		values[i] = (i / (WAVE / 2) % 2 ? 300 : 100) + between(&rng, 2);
}

static struct takt_lstm *trained(uint64_t seed, uint32_t rounds)
{
	struct takt_forecast_task task = {
		.horizon = HORIZON, .seed = seed, .lstm_hidden = 8, .lstm_rounds = rounds};
	struct takt_series series = all();
	struct takt_lstm *net = NULL;

	fill_wave();
	assert_int_equal(takt_lstm_train(&series, &task, &net, NULL), 0);
	return net;
}

static void test_gradient_is_that_of_the_loss(void **test)
{
	enum {
		WINDOW = 7
	};
	double inputs[WINDOW * TAKT_LSTM_INPUTS], *gradient;
	struct takt_lstm_pass *pass;
	struct takt_lstm *net;
	struct takt_rng rng;
	const double target = 0.7, step = 1e-5;

	takt_rng_init(&rng, 1);
	assert_int_equal(takt_lstm_new(3, WINDOW, &net, NULL), 0);
	assert_int_equal(takt_lstm_pass_new(net, &pass), 0);
	gradient = takt_calloc(net->weight_count, sizeof(double));
	assert_non_null(gradient);
	for (size_t i = 0; i < WINDOW * TAKT_LSTM_INPUTS; i++)
		inputs[i] = between(&rng, 2);
	for (size_t i = 0; i < net->weight_count; i++)
		net->weight[i] = between(&rng, 1);
	(void)takt_lstm_run(net, inputs, pass);
	takt_lstm_back(net, inputs, pass, target, gradient);
	for (size_t i = 0; i < net->weight_count; i++) {
		double kept = net->weight[i], above, below, slope;

		net->weight[i] = kept + step;
		above = takt_lstm_loss(takt_lstm_run(net, inputs, pass) - target);
		net->weight[i] = kept - step;
		below = takt_lstm_loss(takt_lstm_run(net, inputs, pass) - target);
		net->weight[i] = kept;
		slope = (above - below) / (2 * step);
		if (!(fabs(slope - gradient[i]) < 1e-8 + 1e-6 * fabs(slope)))
			fail_msg("weight %zu: gradient %.12g, difference %.12g", i, gradient[i],
				 slope);
	}
	takt_free(gradient);
	takt_lstm_pass_free(pass);
	takt_lstm_free(net);
}

static void test_gradients_add_up(void **test)
{
	double inputs[2 * TAKT_LSTM_INPUTS] = {1, -1, 0, 0.5, 0.5, 0.3, 1, 0, -0.5, 0.5};
	double once[64] = {0}, twice[64] = {0};
	struct takt_lstm_pass *pass;
	struct takt_lstm *net;

	assert_int_equal(takt_lstm_new(1, 2, &net, NULL), 0);
	assert_in_range(net->weight_count, 1, 64);
	assert_int_equal(takt_lstm_pass_new(net, &pass), 0);
	for (size_t i = 0; i < net->weight_count; i++)
		net->weight[i] = 0.1 * (double)(i % 7) - 0.2;
	(void)takt_lstm_run(net, inputs, pass);
	takt_lstm_back(net, inputs, pass, -1, once);
	takt_lstm_back(net, inputs, pass, -1, twice);
	takt_lstm_back(net, inputs, pass, -1, twice);
	for (size_t i = 0; i < net->weight_count; i++)
		assert_true(fabs(twice[i] - 2 * once[i]) < 1e-12);
	takt_lstm_pass_free(pass);
	takt_lstm_free(net);
}

static void test_learns_what_persistence_cannot(void **test)
{
	struct takt_backtest_config config = {
		.task = {.horizon = HORIZON, .seed = 1, .lstm_hidden = 8, .lstm_rounds = 600},
		.folds = 1,
		.threshold = 200,
		.held_out_permille = 450, /* enough blocks to show it */
	};
	struct takt_series series = all();
	struct takt_backtest result;

	fill_wave();
	assert_int_equal(takt_backtest(&series, &config, &result, NULL), 0);
	assert_true(result.scores[5].tried);
	if (!(result.scores[5].mae < 0.2 * result.scores[0].mae))
		fail_msg("lstm %g, persistence %g", result.scores[5].mae, result.scores[0].mae);
	assert_true(result.scores[5].missed * 5 < result.scores[0].missed);
	assert_string_equal(takt_forecasters[result.chosen]->name, "lstm");
	takt_backtest_fini(&result);
}

/* What has no pattern teaches it nothing: what was kept aside holds it to persistence. */
static void test_is_held_to_persistence(void **test)
{
	struct takt_forecast_task task = {
		.horizon = HORIZON, .seed = 1, .lstm_hidden = 8, .lstm_rounds = 300};
	struct takt_series series = all();
	struct takt_lstm *net = NULL;
	struct takt_rng rng;

	takt_rng_init(&rng, 9);
	values[0] = 0;
	for (size_t i = 1; i < LEN; i++)
		values[i] = values[i - 1] + between(&rng, 1);
	assert_int_equal(takt_lstm_train(&series, &task, &net, NULL), 0);
	assert_true(net->worth <= 1);
	assert_true(net->worth > 0.7);
	takt_lstm_free(net);
}

static void test_a_constant_is_no_trouble(void **test)
{
	struct takt_forecast_task task = {
		.horizon = HORIZON, .season = 24, .seed = 1, .lstm_hidden = 2, .lstm_rounds = 50};
	struct takt_series series = all();
	void *state = NULL;

	for (size_t i = 0; i < LEN; i++)
		values[i] = 42;
	assert_int_equal(takt_forecast_lstm.fit(&series, &task, &state, NULL), 0);
	assert_true(fabs(takt_forecast_lstm.predict(state) - 42) < 1e-9);
	takt_forecast_lstm.release(state);
}

static void test_same_seed_same_weights(void **test)
{
	struct takt_lstm *a = trained(5, 60), *b = trained(5, 60), *c = trained(6, 60);

	assert_memory_equal(a->weight, b->weight, a->weight_count * sizeof(double));
	assert_memory_not_equal(a->weight, c->weight, a->weight_count * sizeof(double));
	takt_lstm_free(a);
	takt_lstm_free(b);
	takt_lstm_free(c);
}

static int after_three(void *ctx, uint32_t done, uint32_t rounds)
{
	*(uint32_t *)ctx = done;
	return done == 3 ? -ECANCELED : 0;
}

static void test_training_can_be_ended(void **test)
{
	uint32_t done = 0;
	struct takt_forecast_task task = {.horizon = HORIZON,
					  .seed = 1,
					  .lstm_rounds = 100,
					  .progress = after_three,
					  .progress_ctx = &done};
	struct takt_series series = all();
	struct takt_lstm *net = NULL;

	fill_wave();
	assert_int_equal(takt_lstm_train(&series, &task, &net, NULL), -ECANCELED);
	assert_int_equal(done, 3);
	assert_null(net);
}

static void test_too_little_to_learn_from(void **test)
{
	struct takt_forecast_task task = {.horizon = HORIZON, .seed = 1};
	struct takt_series series = all(), little = takt_series_head(&series, 100);
	struct takt_lstm *net = NULL;
	struct takt_err err;

	fill_wave();
	assert_int_equal(takt_lstm_train(&little, &task, &net, &err), -ENODATA);
	assert_non_null(strstr(err.msg, "needed"));
	task.lstm_hidden = TAKT_LSTM_MAX_HIDDEN + 1;
	assert_int_equal(takt_lstm_train(&series, &task, &net, &err), -EINVAL);
}

static void format(const struct takt_lstm *net, struct takt_str *out)
{
	assert_int_equal(takt_lstm_format(net, out), 0);
}

static void test_a_file_keeps_every_bit(void **test)
{
	struct takt_lstm *net = trained(7, 60), *back = NULL;
	struct takt_forecast_task task = {.horizon = HORIZON, .lstm = net};
	struct takt_series series = all();
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_LSTM_MAX_FILE);
	void *first = NULL, *second = NULL;

	format(net, &text);
	assert_int_equal(takt_lstm_parse(text.s, text.len, &back, NULL), 0);
	assert_memory_equal(back->weight, net->weight, net->weight_count * sizeof(double));
	assert_int_equal(back->until_s, 600 + (LEN - 1) * 60);
	assert_int_equal(takt_forecast_lstm.fit(&series, &task, &first, NULL), 0);
	task.lstm = back;
	assert_int_equal(takt_forecast_lstm.fit(&series, &task, &second, NULL), 0);
	assert_true(fabs(takt_forecast_lstm.predict(first) - takt_forecast_lstm.predict(second)) <=
		    0);
	takt_forecast_lstm.release(first);
	takt_forecast_lstm.release(second);
	takt_lstm_free(back);
	takt_lstm_free(net);
}

static void test_a_network_for_other_steps_is_refused(void **test)
{
	struct takt_lstm *net = trained(7, 10);
	struct takt_forecast_task task = {.horizon = HORIZON + 1, .lstm = net};
	struct takt_series series = all();
	struct takt_err err;
	void *state = NULL;

	assert_int_equal(takt_forecast_lstm.fit(&series, &task, &state, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "5 steps ahead"));
	task.horizon = HORIZON;
	series.step_s = 30;
	assert_int_equal(takt_forecast_lstm.fit(&series, &task, &state, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "steps of 60 s"));
	takt_lstm_free(net);
}

/* Any byte changed, any end cut off, anything behind it. */
static void test_a_damaged_file_is_refused(void **test)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_LSTM_MAX_FILE);
	struct takt_lstm *net = NULL, *back = NULL;
	struct takt_err err;

	assert_int_equal(takt_lstm_new(1, 4, &net, NULL), 0);
	net->horizon = net->step_s = 1;
	net->spread = net->change = net->worth = 1;
	format(net, &text);
	assert_int_equal(takt_lstm_parse(text.s, text.len, &back, NULL), 0);
	takt_lstm_free(back);
	for (size_t i = 0; i < text.len; i++) {
		assert_true(takt_lstm_parse(text.s, i, &back, &err) < 0);
		assert_true(err.msg[0] != '\0');
		text.s[i] ^= 1;
		assert_true(takt_lstm_parse(text.s, text.len, &back, &err) < 0);
		assert_true(err.msg[0] != '\0');
		text.s[i] ^= 1;
	}
	takt_str_add(&text, "\n");
	assert_int_equal(takt_lstm_parse(text.s, text.len, &back, &err), -TAKT_E_CORRUPT);
	takt_lstm_free(net);
}

static void test_another_version_is_said_so(void **test)
{
	static const char text[] = "takt-lstm 2\n";
	struct takt_lstm *net = NULL;
	struct takt_err err;

	assert_int_equal(takt_lstm_parse(text, sizeof(text) - 1, &net, &err), -TAKT_E_VERSION);
	assert_non_null(strstr(err.msg, "version 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradient_is_that_of_the_loss),
		cmocka_unit_test(test_gradients_add_up),
		cmocka_unit_test(test_learns_what_persistence_cannot),
		cmocka_unit_test(test_is_held_to_persistence),
		cmocka_unit_test(test_a_constant_is_no_trouble),
		cmocka_unit_test(test_same_seed_same_weights),
		cmocka_unit_test(test_training_can_be_ended),
		cmocka_unit_test(test_too_little_to_learn_from),
		cmocka_unit_test(test_a_file_keeps_every_bit),
		cmocka_unit_test(test_a_network_for_other_steps_is_refused),
		cmocka_unit_test(test_a_damaged_file_is_refused),
		cmocka_unit_test(test_another_version_is_said_so),
	};

	return cmocka_run_group_tests_name("lstm", tests, NULL, NULL);
}
