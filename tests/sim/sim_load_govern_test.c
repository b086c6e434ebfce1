/* SPDX-License-Identifier: Apache-2.0 */
/* A governed board under a load: figures that can be worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "sim/load_govern.h"

enum {
	LEN = 40,
	BEGIN = 10, /* the most before it is 100: busy at 1410 MHz */
};

static struct takt_series series_of(double *values, double load)
{
	for (size_t i = 0; i < LEN; i++)
		values[i] = i < BEGIN ? 100 : load;
	return (struct takt_series){values, LEN, 0, 60};
}

static struct takt_load_governed govern(const struct takt_series *series, const double *ahead,
					uint32_t horizon)
{
	struct takt_load_governed figures;

	assert_int_equal(takt_load_govern(series, BEGIN, ahead, horizon, &figures, NULL), 0);
	return figures;
}

static double power_w(double mhz, double busy)
{
	double r = mhz / 1410, v = fmax(0.83, 1 - 0.75 * (1 - r));

	return 60 + (14 + 440 * busy) * r * v * v;
}

/* Half of the load needs 705 MHz, at 0.8 busy 881.25: 885 once five epochs agree. Until then and in
 * the first step the board is as it was: at its highest. */
static void a_steady_load_gets_the_clock_that_it_needs(void **state)
{
	double values[LEN];
	struct takt_series series = series_of(values, 50);
	struct takt_load_governed figures = govern(&series, NULL, 1);

	assert_true(fabs(figures.missed_pct) < 1e-12);
	assert_true(fabs(figures.mean_mhz - (1410 + 29 * 885.0) / 30) < 1e-9);
	assert_true(fabs(figures.energy_wh -
			 (power_w(1410, 0.5) + 29 * power_w(885, 705.0 / 885)) / 60) < 1e-6);
}

static void at_the_highest_clock_only_what_nobody_can_serve_is_missed(void **state)
{
	double values[LEN];
	struct takt_series series = series_of(values, 50);
	struct takt_load_governed figures;

	values[20] = 200; /* half of it */
	assert_int_equal(takt_load_at_maximum(&series, BEGIN, &figures, NULL), 0);
	assert_true(fabs(figures.missed_pct - 100 * 100 / (29 * 50.0 + 200)) < 1e-9);
	assert_true(fabs(figures.mean_mhz - 1410) < 1e-9);
	assert_true(fabs(figures.energy_wh - (29 * power_w(1410, 0.5) + power_w(1410, 1)) / 60) <
		    1e-6);
}

/* 20 asks for 282 MHz and gets 360; the 100 that follow at once find that clock. */
static void who_foresees_a_rise_misses_nothing(void **state)
{
	double values[LEN], none[LEN];
	struct takt_series series = series_of(values, 20);
	struct takt_load_governed blind, seeing, silent;

	for (size_t i = 0; i < LEN; i++)
		none[i] = NAN;
	for (size_t i = 30; i < LEN; i++)
		values[i] = 100;
	blind = govern(&series, NULL, 1);
	seeing = govern(&series, values, 1);
	silent = govern(&series, none, 1);
	assert_true(blind.missed_pct > 3);
	assert_true(seeing.missed_pct < 1e-9);
	assert_true(seeing.energy_wh > blind.energy_wh);
	assert_memory_equal(&blind, &silent, sizeof(blind));
}

static void gaps_cost_nothing(void **state)
{
	double values[LEN];
	struct takt_series series = series_of(values, 50);
	struct takt_load_governed whole = govern(&series, NULL, 1), gaps;

	values[15] = values[16] = NAN;
	gaps = govern(&series, NULL, 1);
	assert_true(fabs(whole.energy_wh - gaps.energy_wh - 2 * power_w(885, 705.0 / 885) / 60) <
		    1e-6);
}

static void without_a_load_there_is_nothing_to_compare(void **state)
{
	double values[LEN] = {0};
	struct takt_series series = {values, LEN, 0, 60};
	struct takt_load_governed figures;

	assert_int_equal(takt_load_govern(&series, BEGIN, NULL, 1, &figures, NULL), -ENODATA);
	values[0] = 1;
	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_load_govern(&series, BEGIN, NULL, 1, &figures, NULL), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_steady_load_gets_the_clock_that_it_needs),
		cmocka_unit_test(at_the_highest_clock_only_what_nobody_can_serve_is_missed),
		cmocka_unit_test(who_foresees_a_rise_misses_nothing),
		cmocka_unit_test(gaps_cost_nothing),
		cmocka_unit_test(without_a_load_there_is_nothing_to_compare),
	};

	return cmocka_run_group_tests_name("governed load", tests, NULL, NULL);
}
