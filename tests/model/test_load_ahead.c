/* SPDX-License-Identifier: Apache-2.0 */
/* A job's load as it goes by: foreseen where its past shows that it can be, and not a word where it
 * does not. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/timetypes.h"
#include "model/load_ahead.h"
#include "model/lstm_impl.h"

enum {
	PERIOD = 20, /* steps of the wave: half of it high */
	HIGH = 100,
	LOW = 10,
};

static struct takt_load_ahead *new_ahead(uint32_t horizon, uint32_t season)
{
	struct takt_load_ahead_config config = {
		.step_s = 1, .horizon = horizon, .season = season, .zero_s = 1000};
	struct takt_load_ahead *ahead = NULL;

	assert_int_equal(takt_load_ahead_new(&config, &ahead, NULL), 0);
	return ahead;
}

static double wave(uint64_t step)
{
	return step % PERIOD < PERIOD / 2 ? HIGH : LOW;
}

/* One step goes by, told in halves. */
static void tell(struct takt_load_ahead *ahead, uint64_t step, double load)
{
	uint64_t from_ns = step * TAKT_NS_PER_S, half_ns = TAKT_NS_PER_S / 2;

	takt_load_ahead_add(ahead, from_ns, from_ns + half_ns, load);
	takt_load_ahead_add(ahead, from_ns + half_ns, from_ns + 2 * half_ns, load);
	takt_load_ahead_pass(ahead, from_ns + 2 * half_ns);
}

static uint64_t tell_wave(struct takt_load_ahead *ahead, uint64_t from, uint64_t until)
{
	for (uint64_t step = from; step < until; step++)
		tell(ahead, step, wave(step));
	return until;
}

static void a_load_that_repeats_itself_is_foreseen(void **state)
{
	struct takt_load_ahead *ahead = new_ahead(1, PERIOD);
	struct takt_load_ahead_word word;
	uint64_t at = tell_wave(ahead, 500, 620);
	double said = 0;

	takt_load_ahead_look(ahead, &word);
	assert_true(word.steps < word.needed);
	assert_false(word.tried);
	assert_false(takt_load_ahead_say(ahead, at * TAKT_NS_PER_S, &said));
	at = tell_wave(ahead, at, 700);
	takt_load_ahead_look(ahead, &word);
	assert_true(word.tried);
	assert_string_equal(word.chosen, "seasonal");
	assert_true(word.better > 2.6 * word.error);
	for (; at < 760; at = tell_wave(ahead, at, at + 1)) {
		/* `at` is the step that begins now, one ahead of what was told last. */
		assert_true(takt_load_ahead_say(ahead, at * TAKT_NS_PER_S, &said));
		assert_true(fabs(said - wave(at)) < 1);
	}
	takt_load_ahead_free(ahead);
}

/* What is said five steps ahead holds until it is there. */
static void the_most_of_all_steps_ahead_counts(void **state)
{
	struct takt_load_ahead *ahead = new_ahead(5, PERIOD);
	uint64_t at = tell_wave(ahead, 0, 1000);
	double said;

	for (; at < 1000 + 2 * PERIOD; at = tell_wave(ahead, at, at + 1)) {
		double most = LOW;

		for (uint64_t step = at; step < at + 5; step++)
			most = fmax(most, wave(step));
		assert_true(takt_load_ahead_say(ahead, at * TAKT_NS_PER_S, &said));
		assert_true(fabs(said - most) < 1);
	}
	takt_load_ahead_free(ahead);
}

static struct {
	double newest, next; /* what the network is shown, and knows */
	uint32_t asked;
} oracle;

double __wrap_takt_lstm_run(const struct takt_lstm *net, const double *inputs,
			    struct takt_lstm_pass *pass);
double __wrap_takt_lstm_run(const struct takt_lstm *net, const double *inputs,
			    struct takt_lstm_pass *pass)
{
	oracle.asked++;
	return oracle.next - oracle.newest;
}

/* It is dear: asked when a step is over, by itself and once more when it is the one that is used,
 * and not of all the steps held out when a choice is due. */
static void a_network_is_asked_once_a_step(void **state)
{
	struct takt_load_ahead_config config = {.step_s = 1, .horizon = 1, .zero_s = 1000};
	struct takt_load_ahead *ahead = NULL;
	struct takt_load_ahead_word word;
	struct takt_lstm *net = NULL;
	struct takt_rng rng;
	double said;

	assert_int_equal(takt_lstm_new(1, 2, &net, NULL), 0);
	net->step_s = net->horizon = 1;
	net->spread = net->change = 1;
	config.lstm = net;
	assert_int_equal(takt_load_ahead_new(&config, &ahead, NULL), 0);
	takt_rng_init(&rng, 5);
	oracle.next = 100;
	for (uint64_t step = 0; step < TAKT_LOAD_AHEAD_MAX + 100; step++) {
		oracle.newest = oracle.next;
		oracle.next = (double)takt_rng_below(&rng, 1000);
		oracle.asked = 0;
		tell(ahead, step, oracle.newest);
		assert_in_range(oracle.asked, 1, 3);
	}
	takt_load_ahead_look(ahead, &word);
	assert_string_equal(word.chosen, "lstm");
	assert_true(takt_load_ahead_say(ahead, (TAKT_LOAD_AHEAD_MAX + 100) * TAKT_NS_PER_S, &said));
	assert_true(fabs(said - oracle.next) < 1e-9);
	takt_load_ahead_free(ahead);
	/* One of other steps is no help. */
	net->step_s = 2;
	assert_int_equal(takt_load_ahead_new(&config, &ahead, NULL), 0);
	oracle.asked = 0;
	(void)tell_wave(ahead, 0, 300);
	takt_load_ahead_look(ahead, &word);
	assert_true(word.tried);
	assert_int_equal(oracle.asked, 0);
	takt_load_ahead_free(ahead);
	takt_lstm_free(net);
}

static void nothing_is_said_of_a_walk(void **state)
{
	struct takt_load_ahead *ahead = new_ahead(2, PERIOD);
	struct takt_load_ahead_word word;
	struct takt_rng rng;
	double load = 1000, said;

	takt_rng_init(&rng, 3);
	for (uint64_t step = 0; step < 2 * TAKT_LOAD_AHEAD_MAX; step++) {
		load += (double)takt_rng_below(&rng, 21) - 10;
		load = load < 0 ? 0 : load;
		tell(ahead, step, load);
		assert_false(takt_load_ahead_say(ahead, (step + 1) * TAKT_NS_PER_S, &said));
	}
	takt_load_ahead_look(ahead, &word);
	assert_true(word.tried);
	assert_null(word.chosen);
	assert_in_range(word.steps, TAKT_LOAD_AHEAD_MAX * 7 / 8, TAKT_LOAD_AHEAD_MAX);
	takt_load_ahead_free(ahead);
}

static void the_same_load_leads_to_the_same_words(void **state)
{
	struct takt_load_ahead *one = new_ahead(3, PERIOD), *other = new_ahead(3, PERIOD);
	struct takt_rng rng;

	takt_rng_init(&rng, 9);
	for (uint64_t step = 0; step < 1200; step++) {
		double load = wave(step) + (double)takt_rng_below(&rng, 5), a = -1, b = -1;

		tell(one, step, load);
		tell(other, step, load);
		assert_int_equal(takt_load_ahead_say(one, (step + 1) * TAKT_NS_PER_S, &a),
				 takt_load_ahead_say(other, (step + 1) * TAKT_NS_PER_S, &b));
		assert_memory_equal(&a, &b, sizeof(a));
	}
	assert_true(takt_load_ahead_say(one, 1200 * TAKT_NS_PER_S, &(double){0}));
	takt_load_ahead_free(one);
	takt_load_ahead_free(other);
}

static void a_gap_is_no_zero(void **state)
{
	struct takt_load_ahead *ahead = new_ahead(1, PERIOD);
	uint64_t at = tell_wave(ahead, 0, 600);
	double said;

	/* It stood still for a whole period. */
	at += PERIOD;
	at = tell_wave(ahead, at, at + PERIOD);
	for (; at < 700; at = tell_wave(ahead, at, at + 1)) {
		assert_true(takt_load_ahead_say(ahead, at * TAKT_NS_PER_S, &said));
		assert_true(fabs(said - wave(at)) < 1);
	}
	takt_load_ahead_free(ahead);
}

static void another_unit_or_a_long_time_begins_anew(void **state)
{
	struct takt_load_ahead *ahead = new_ahead(1, PERIOD);
	struct takt_load_ahead_word word;

	tell_wave(ahead, 0, 300);
	takt_load_ahead_reset(ahead);
	takt_load_ahead_look(ahead, &word);
	assert_int_equal(word.steps, 0);
	assert_null(word.chosen);
	tell_wave(ahead, 300, 600);
	takt_load_ahead_look(ahead, &word);
	assert_non_null(word.chosen);
	tell(ahead, 600 + 2 * TAKT_LOAD_AHEAD_MAX, HIGH);
	takt_load_ahead_look(ahead, &word);
	assert_int_equal(word.steps, 1);
	assert_null(word.chosen);
	takt_load_ahead_free(ahead);
}

static void what_no_forecaster_takes_is_refused(void **state)
{
	struct takt_load_ahead *ahead = NULL;
	struct takt_load_ahead_config config = {.step_s = 0, .horizon = 1};
	struct takt_err err;

	assert_int_equal(takt_load_ahead_new(&config, &ahead, &err), -EINVAL);
	config = (struct takt_load_ahead_config){.step_s = 1, .horizon = 2000};
	assert_int_equal(takt_load_ahead_new(&config, &ahead, &err), -EINVAL);
	config.horizon = 1;
	for (uint64_t n = 1; n <= 4; n++) {
		takt_alloc_fail_nth(n, 0);
		assert_int_equal(takt_load_ahead_new(&config, &ahead, &err), -ENOMEM);
		takt_alloc_fail_nth(0, 0);
	}
	assert_null(ahead);
	takt_load_ahead_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_that_repeats_itself_is_foreseen),
		cmocka_unit_test(the_most_of_all_steps_ahead_counts),
		cmocka_unit_test(a_network_is_asked_once_a_step),
		cmocka_unit_test(nothing_is_said_of_a_walk),
		cmocka_unit_test(the_same_load_leads_to_the_same_words),
		cmocka_unit_test(a_gap_is_no_zero),
		cmocka_unit_test(another_unit_or_a_long_time_begins_anew),
		cmocka_unit_test(what_no_forecaster_takes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
