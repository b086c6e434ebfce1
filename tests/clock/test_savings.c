/* SPDX-License-Identifier: Apache-2.0 */
/* What a governor saved: held against the epochs at the highest clock, with an error where there is
 * noise, and not known where nothing tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "clock/savings.h"

static const uint32_t clocks[] = {600, 900, 1200};
static const struct takt_governor_setup setup = {
	.board = {.can = TAKT_ACTUATE_CLOCKS, .sm_mhz = clocks, .sm_count = 3}};

static struct takt_governor_observation epoch(uint32_t max_mhz, double work, uint64_t energy_mj)
{
	return (struct takt_governor_observation){
		.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_ENERGY,
		.epoch_ns = 1000000000,
		.cap = {.sets = TAKT_ACTUATE_CLOCKS, .min_mhz = 600, .max_mhz = max_mhz},
		.work = work,
		.signal = TAKT_SIGNAL_JOB,
		.energy_mj = energy_mj,
	};
}

static void add(struct takt_savings *savings, struct takt_governor_observation seen)
{
	takt_savings_add(savings, &setup, &seen);
}

static void is_held_against_the_highest_clock(void **state)
{
	struct takt_savings savings = {.signal = TAKT_SIGNAL_NONE};
	struct takt_saved saved;

	/* 10 a second for 300 J there; 9.5 for 190 J below. */
	for (int i = 0; i < 2; i++)
		add(&savings, epoch(1200, 10, 300000));
	for (int i = 0; i < 6; i++)
		add(&savings, epoch(900, 9.5, 190000));
	assert_true(takt_savings_result(&savings, &saved));
	assert_int_equal(saved.signal, TAKT_SIGNAL_JOB);
	assert_int_equal(saved.epochs, 8);
	assert_int_equal(saved.highest_epochs, 2);
	assert_int_equal(saved.energy_mj, 2 * 300000 + 6 * 190000);
	assert_int_equal(saved.highest_mj, (20 + 57) * 30000);
	assert_int_equal(saved.slowdown_permille, 39); /* 8 / 7.7 */
	assert_int_equal(saved.highest_error_permille, 0);
}

static void noise_is_an_error(void **state)
{
	struct takt_savings savings = {.signal = TAKT_SIGNAL_NONE};
	struct takt_saved saved;

	for (int i = 0; i < 50; i++)
		add(&savings, epoch(1200, i % 2 ? 10.2 : 9.8, 300000));
	for (int i = 0; i < 50; i++)
		add(&savings, epoch(600, 10, 300000));
	assert_true(takt_savings_result(&savings, &saved));
	/* 2 % of an epoch, times sqrt(1/50 + 1/50). */
	assert_int_equal(saved.slowdown_error_permille, 4);
	assert_int_equal(saved.highest_error_permille, 4);
	assert_true(saved.slowdown_permille >= -4 && saved.slowdown_permille <= 4);
}

static void what_nothing_tells_is_not_known(void **state)
{
	struct takt_savings savings = {.signal = TAKT_SIGNAL_NONE};
	struct takt_governor_observation seen = epoch(1200, 10, 300000);
	struct takt_saved saved;

	add(&savings, epoch(1200, 10, 300000));
	add(&savings, epoch(900, 10, 200000));
	assert_false(takt_savings_result(&savings, &saved)); /* one epoch has no error */
	seen.has = TAKT_OBSERVED_WORK;
	add(&savings, seen);
	seen.has = TAKT_OBSERVED_ENERGY;
	add(&savings, seen);
	seen = epoch(1200, 0, 300000);
	add(&savings, seen);
	assert_false(takt_savings_result(&savings, &saved));
	/* A board that slows itself down is not at its highest clock. */
	seen = epoch(1200, 5, 300000);
	seen.has |= TAKT_OBSERVED_THROTTLE;
	seen.throttle = 0x40;
	add(&savings, seen);
	assert_false(takt_savings_result(&savings, &saved));
	seen = epoch(1200, 5, 300000);
	seen.foreign = true; /* nor is one that somebody else has set */
	add(&savings, seen);
	assert_false(takt_savings_result(&savings, &saved));
	add(&savings, epoch(1200, 10, 300000));
	assert_true(takt_savings_result(&savings, &saved));
}

static void the_least_sure_signal_counts(void **state)
{
	struct takt_savings savings = {.signal = TAKT_SIGNAL_NONE};
	struct takt_governor_observation seen = epoch(900, 10, 200000);
	struct takt_saved saved;

	add(&savings, epoch(1200, 10, 300000));
	add(&savings, epoch(1200, 10, 300000));
	seen.signal = TAKT_SIGNAL_UTILISATION;
	add(&savings, seen);
	assert_true(takt_savings_result(&savings, &saved));
	assert_int_equal(saved.signal, TAKT_SIGNAL_UTILISATION);
}

/* Without any noise, too: what stands in for progress is not progress. */
static void a_signal_has_an_error_of_its_own(void **state)
{
	static const struct {
		enum takt_governor_signal signal;
		uint32_t error_permille;
	} rows[] = {{TAKT_SIGNAL_JOB, 0},
		    {TAKT_SIGNAL_COUNTERS, TAKT_COUNTERS_ERROR_PERMILLE},
		    {TAKT_SIGNAL_UTILISATION, TAKT_UTILISATION_ERROR_PERMILLE}};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_savings savings = {.signal = TAKT_SIGNAL_NONE};
		struct takt_saved saved;

		for (uint32_t k = 0; k < 8; k++) {
			struct takt_governor_observation seen =
				epoch(k < 4 ? 1200 : 900, 10, k < 4 ? 300000 : 200000);

			seen.signal = rows[i].signal;
			add(&savings, seen);
		}
		assert_true(takt_savings_result(&savings, &saved));
		assert_int_equal(saved.highest_error_permille, rows[i].error_permille);
		assert_int_equal(saved.slowdown_error_permille, rows[i].error_permille);
	}
	assert_true(TAKT_COUNTERS_ERROR_PERMILLE > 0);
	assert_true(TAKT_UTILISATION_ERROR_PERMILLE > TAKT_COUNTERS_ERROR_PERMILLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_held_against_the_highest_clock),
		cmocka_unit_test(noise_is_an_error),
		cmocka_unit_test(what_nothing_tells_is_not_known),
		cmocka_unit_test(the_least_sure_signal_counts),
		cmocka_unit_test(a_signal_has_an_error_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
