/* SPDX-License-Identifier: Apache-2.0 */
/* What governors that look ahead are told of load: the job's queries, else what keeps its GPUs
 * busy, and what it will be only where that is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "clock/governor.h"
#include "daemon/govern_impl.h"

enum {
	PERIOD = 20,
	LONG = 400, /* seconds, enough to choose a forecaster */
};

static struct takt_daemon daemon_of_test;
static struct takt_govern govern = {.daemon = &daemon_of_test};

static int set_up(void **state)
{
	daemon_of_test.sys = takt_sys_real();
	daemon_of_test.config = (struct takt_config){.clock_epoch_ms = 500,
						     .forecast_step_ms = 1000,
						     .forecast_ahead_ms = 1000,
						     .forecast_season_ms = PERIOD * 1000};
	*state = takt_zalloc(sizeof(struct takt_governed));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	takt_load_end(*state);
	takt_free(*state);
	return 0;
}

static bool is_high(uint64_t second)
{
	return second % PERIOD < PERIOD / 2;
}

/* A second of a job whose load is a wave, as queries or as utilisation at half the clock. */
static struct takt_governor_observation second(uint64_t at, bool queries)
{
	struct takt_governor_observation seen = {
		.now_ns = (at + 1) * TAKT_NS_PER_S,
		.epoch_ns = TAKT_NS_PER_S,
		.has = TAKT_OBSERVED_GPU_UTIL | TAKT_OBSERVED_SM_CLOCK,
		.gpu_util_permille = is_high(at) ? 900 : 200,
		.sm_mhz = 1000,
	};

	if (queries) {
		seen.has |= TAKT_OBSERVED_LOAD;
		seen.load = is_high(at) ? 50 : 5;
	}
	return seen;
}

static struct takt_governor_observation tell(struct takt_governed *one, uint64_t at, bool queries)
{
	struct takt_governor_observation seen = second(at, queries);

	takt_load_observe(&govern, one, &seen);
	return seen;
}

static uint64_t tell_long(struct takt_governed *one, uint64_t from, bool queries)
{
	for (uint64_t at = from; at < from + LONG; at++)
		(void)tell(one, at, queries);
	return from + LONG;
}

static void queries_are_foreseen_where_they_can_be(void **state)
{
	struct takt_governed *one = *state;
	char text[200];
	uint64_t at;

	one->governor = &takt_governor_slo;
	takt_load_begin(&govern, one);
	assert_false(tell(one, 1000, true).has & TAKT_OBSERVED_LOAD_AHEAD);
	takt_load_text(one, text, sizeof(text));
	assert_non_null(strstr(text, "not known long enough to be foreseen"));
	for (at = tell_long(one, 1001, true); at < 1500; at++) {
		struct takt_governor_observation seen = tell(one, at, true);

		assert_true(seen.has & TAKT_OBSERVED_LOAD_AHEAD);
		assert_float_equal(seen.load_ahead, is_high(at + 1) ? 50 : 5, 0.5);
	}
	takt_load_text(one, text, sizeof(text));
	assert_non_null(strstr(text, "load 1s ahead by seasonal"));
	assert_non_null(strstr(text, "queries/s"));
}

static void without_queries_work_is_the_load(void **state)
{
	struct takt_governed *one = *state;
	struct takt_governor_observation seen;
	uint64_t at;

	one->governor = &takt_governor_forecast;
	takt_load_begin(&govern, one);
	at = tell_long(one, 1000, false);
	seen = tell(one, at, false);
	assert_true(seen.has & TAKT_OBSERVED_LOAD);
	assert_float_equal(seen.load, is_high(at) ? 900 : 200, 1e-9);
	assert_true(seen.has & TAKT_OBSERVED_LOAD_AHEAD);
	/* It begins to count its queries: other units. */
	seen = tell(one, at + 1, true);
	assert_false(seen.has & TAKT_OBSERVED_LOAD_AHEAD);
}

/* A minute without a word of its queries is a gap: how busy its GPUs are is in other units, and
 * hours of queries are not given up for it. */
static void silence_is_a_gap_in_queries(void **state)
{
	struct takt_governed *one = *state;
	struct takt_governor_observation seen;
	uint64_t at;

	one->governor = &takt_governor_forecast;
	takt_load_begin(&govern, one);
	at = tell_long(one, 1000, true);
	for (uint64_t until = at + 2 * PERIOD; at < until; at++)
		assert_false(tell(one, at, false).has & TAKT_OBSERVED_LOAD);
	for (uint64_t until = at + 2 * PERIOD; at < until; at++)
		seen = tell(one, at, true);
	assert_true(seen.has & TAKT_OBSERVED_LOAD_AHEAD);
	assert_float_equal(seen.load_ahead, is_high(at) ? 50 : 5, 0.5);
}

/* Latency is about queries: how busy a GPU is at its present clock says nothing of them. */
static void slo_is_told_of_queries_alone(void **state)
{
	struct takt_governed *one = *state;

	one->governor = &takt_governor_slo;
	takt_load_begin(&govern, one);
	assert_false(tell(one, 1000, false).has & TAKT_OBSERVED_LOAD);
}

static void others_are_told_nothing(void **state)
{
	struct takt_governed *one = *state;
	char text[200];

	one->governor = &takt_governor_assured;
	takt_load_begin(&govern, one);
	(void)tell_long(one, 1000, false);
	assert_false(tell(one, 1000 + LONG, false).has &
		     (TAKT_OBSERVED_LOAD | TAKT_OBSERVED_LOAD_AHEAD));
	takt_load_text(one, text, sizeof(text));
	assert_string_equal(text, "");
}

/* After a restart its log is told again. */
static void what_a_log_has_is_enough_to_go_on(void **state)
{
	struct takt_governed *one = *state;

	one->governor = &takt_governor_forecast;
	takt_load_begin(&govern, one);
	for (uint64_t at = 1000; at < 1000 + LONG; at++) {
		struct takt_governor_observation seen = second(at, true);

		takt_load_retell(one, &seen);
	}
	/* Of queries; that none are told of at first changes nothing. */
	assert_false(tell(one, 1000 + LONG, false).has & TAKT_OBSERVED_LOAD);
	assert_true(tell(one, 1001 + LONG, true).has & TAKT_OBSERVED_LOAD_AHEAD);
}

static void a_log_of_work_is_none_of_queries(void **state)
{
	struct takt_governed *one = *state;
	struct takt_governor_observation seen;

	one->governor = &takt_governor_forecast;
	takt_load_begin(&govern, one);
	for (uint64_t at = 1000; at < 1000 + LONG; at++) {
		seen = second(at, false);
		seen.has |= TAKT_OBSERVED_LOAD;
		seen.load = seen.gpu_util_permille / 1000.0 * seen.sm_mhz;
		takt_load_retell(one, &seen);
	}
	seen = tell(one, 1000 + LONG, false);
	assert_true(seen.has & TAKT_OBSERVED_LOAD);
	assert_true(seen.has & TAKT_OBSERVED_LOAD_AHEAD);
}

static void other_settings_begin_anew(void **state)
{
	struct takt_governed *one = *state;

	one->governor = &takt_governor_forecast;
	takt_load_begin(&govern, one);
	(void)tell_long(one, 1000, true);
	daemon_of_test.config.forecast_ahead_ms = 2000;
	assert_false(tell(one, 1000 + LONG, true).has & TAKT_OBSERVED_LOAD_AHEAD);
	(void)tell_long(one, 1001 + LONG, true);
	assert_true(tell(one, 1001 + 2 * LONG, true).has & TAKT_OBSERVED_LOAD_AHEAD);
}

static void a_network_that_cannot_be_read_is_said(void **state)
{
	takt_strcpy(daemon_of_test.config.forecast_model,
		    sizeof(daemon_of_test.config.forecast_model), "/no/such.lstm");
	takt_load_read_model(&govern);
	assert_null(govern.net);
	assert_non_null(strstr(takt_govern_model_note(&govern), "/no/such.lstm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(queries_are_foreseen_where_they_can_be, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_queries_work_is_the_load, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(silence_is_a_gap_in_queries, set_up, tear_down),
		cmocka_unit_test_setup_teardown(slo_is_told_of_queries_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_are_told_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_log_has_is_enough_to_go_on, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_log_of_work_is_none_of_queries, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(other_settings_begin_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_network_that_cannot_be_read_is_said, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
