/* SPDX-License-Identifier: Apache-2.0 */
/* What a sweep's samples come to: errors, front, recommendation; which settings; stored profiles.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "cli/profiles.h"
#include "cli/tune.h"

struct measured {
	uint32_t sm_mhz;
	double seconds, watts;
};

/* One sample each, or two with `spread` to either side of the time. */
static void fill(struct takt_tune_result *result, const struct measured *rows, uint32_t count,
		 double spread)
{
	memset(result, 0, sizeof(*result));
	result->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct takt_tune_point *point = &result->points[i];

		point->sm_mhz = rows[i].sm_mhz;
		for (int side = -1; side <= 1; side += 2) {
			double seconds = rows[i].seconds * (1 + side * spread);

			point->samples[point->count++] =
				(struct takt_tune_sample){.performance = 1 / seconds,
							  .power_w = rows[i].watts,
							  .energy_j = rows[i].watts * seconds,
							  .sm_mhz = rows[i].sm_mhz,
							  .unit = "run"};
			if (!(spread > 0))
				break;
		}
	}
}

static const struct measured rows[] = {
	{1980, 1.00, 500}, {1800, 1.02, 430},
	{1600, 1.06, 380}, {1400, 1.12, 390}, /* slower and dearer than 1600: off the front */
	{1200, 1.30, 300},
};

static struct takt_tune_result result;

static void write_other(struct takt_tune_sample *sample)
{
	takt_strcpy(sample->written.all, sizeof(sample->written.all), "other");
}

/* What came out at a setting counts where runs at the reference agree. */
static void what_differs_is_not_recommended(void **state)
{
	(void)state;
	fill(&result, rows, TAKT_ARRAY_LEN(rows), 0.001);
	takt_strcpy(result.warm_up.all, sizeof(result.warm_up.all), "compiling");
	result.max_slowdown_pct = 8;
	takt_tune_note_same(&result);
	takt_tune_judge(&result);
	assert_int_equal(result.points[result.recommended].sm_mhz, 1600);
	result.compared = "output";
	takt_tune_note_same(&result);
	assert_string_equal(result.compared, "output");
	assert_false(result.points[2].differs);
	write_other(&result.points[2].samples[1]); /* 1600 MHz */
	takt_tune_note_same(&result);
	takt_tune_judge(&result);
	assert_true(result.points[2].differs && !result.points[1].differs);
	assert_int_equal(result.points[result.recommended].sm_mhz, 1800);
	result.points[2].differs = false;
	write_other(&result.points[0].samples[1]);
	takt_tune_note_same(&result);
	takt_tune_judge(&result);
	assert_null(result.compared);
	assert_non_null(strstr(result.not_compared, "differ, too"));
	assert_int_equal(result.points[result.recommended].sm_mhz, 1600);
}

/* One run says nothing of what is usual: the warm-up before it does, if it wrote the same. */
static void of_one_run_the_warm_up_has_a_say(void **state)
{
	for (int same = 0; same <= 1; same++) {
		fill(&result, rows, TAKT_ARRAY_LEN(rows), 0);
		result.compared = "output";
		if (!same)
			takt_strcpy(result.warm_up.all, sizeof(result.warm_up.all), "12:01");
		write_other(&result.points[1].samples[0]);
		takt_tune_note_same(&result);
		assert_int_equal(result.compared != NULL, same);
		assert_int_equal(result.points[1].differs, same);
		assert_int_equal(strstr(result.not_compared, "differs from the warm-up") == NULL,
				 same);
	}
}

static void the_front_is_what_nothing_beats(void **state)
{
	static const bool front[] = {true, true, true, false, true};

	fill(&result, rows, TAKT_ARRAY_LEN(rows), 0);
	result.max_slowdown_pct = 5;
	takt_tune_judge(&result);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_int_equal(result.points[i].front, front[i]);
	assert_true(fabs(result.points[2].slowdown_pct.mean - 6) < 1e-9);
	assert_true(fabs(result.points[2].saved_pct.mean - 100 * (1 - 380 * 1.06 / 500)) < 1e-9);
	assert_true(
		isnan(result.points[2].slowdown_pct.half95)); /* one sample says nothing of it */
}

static void the_promise_chooses(void **state)
{
	static const struct {
		double promised;
		uint32_t sm_mhz;
	} cases[] = {{0, 1980}, {1.9, 1980}, {2.1, 1800}, {6.1, 1600}, {13, 1600}, {31, 1200}};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		fill(&result, rows, TAKT_ARRAY_LEN(rows), 0);
		result.max_slowdown_pct = cases[i].promised;
		takt_tune_judge(&result);
		assert_true(result.recommended >= 0);
		assert_int_equal(result.points[result.recommended].sm_mhz, cases[i].sm_mhz);
	}
}

/* With two samples 0.1 % off to either side the interval is 12.7 times as wide. */
static void the_error_counts_against_a_setting(void **state)
{
	double error;

	fill(&result, rows, TAKT_ARRAY_LEN(rows), 0.001);
	result.max_slowdown_pct = 6.5;
	takt_tune_judge(&result);
	error = result.points[2].slowdown_pct.half95;
	assert_true(error > 1.5 && error < 2.5);
	assert_int_equal(result.points[result.recommended].sm_mhz, 1800);
	result.max_slowdown_pct = 6 + error + 0.1;
	takt_tune_judge(&result);
	assert_int_equal(result.points[result.recommended].sm_mhz, 1600);
}

static void without_energy_nothing_is_recommended(void **state)
{
	fill(&result, rows, 2, 0);
	result.points[0].samples[0].energy_j = result.points[1].samples[0].energy_j = NAN;
	result.max_slowdown_pct = 10;
	takt_tune_judge(&result);
	assert_int_equal(result.recommended, -1);
	assert_false(result.points[0].front);
	fill(&result, rows, 2, 0);
	result.points[0].count = result.points[1].count = 0;
	takt_tune_judge(&result);
	assert_int_equal(result.recommended, -1);
}

static void settings_are_spread_or_listed(void **state)
{
	struct takt_tune_axes axes = {.steps = 3};
	struct takt_err err;

	memset(&result, 0, sizeof(result));
	assert_int_equal(takt_tune_settings(&axes, 1000, 2000, &result, &err), 0);
	assert_int_equal(result.count, 3);
	assert_int_equal(result.points[0].sm_mhz, 2000);
	assert_int_equal(result.points[1].sm_mhz, 1500);
	assert_int_equal(result.points[2].sm_mhz, 1000);
	axes = (struct takt_tune_axes){.clocks = "1200,2000,1200", .power_limits = "300,400"};
	memset(&result, 0, sizeof(result));
	assert_int_equal(takt_tune_settings(&axes, 1000, 2000, &result, &err), 0);
	assert_int_equal(result.count, 4); /* none twice */
	assert_int_equal(result.points[1].sm_mhz, 1200);
	assert_int_equal(result.points[3].sm_mhz, 2000);
	assert_int_equal(result.points[3].power_limit_mw, 400000);
}

static void settings_that_are_none_are_named(void **state)
{
	static const struct {
		struct takt_tune_axes axes;
		const char *part;
	} cases[] = {
		{{.clocks = "1200,999"}, "'--clocks': 999; 1000 to 2000"},
		{{.clocks = "1200,x"}, "'--clocks': x"},
		{{.clocks = ",1200"}, "'--clocks'"},
		{{.steps = 2, .power_limits = "0"}, "'--power-limits': 0"},
		{{.steps = 2, .power_limits = "12345678901234567890"}, "'--power-limits'"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		struct takt_err err = {0};

		memset(&result, 0, sizeof(result));
		assert_int_equal(takt_tune_settings(&cases[i].axes, 1000, 2000, &result, &err),
				 -TAKT_E_USAGE);
		assert_non_null(strstr(err.msg, cases[i].part));
	}
}

static char state_home[] = "/tmp/takt-profiles-XXXXXX";

static int make_home(void **state)
{
	return mkdtemp(state_home) && setenv("XDG_STATE_HOME", state_home, 1) == 0 ? 0 : -1;
}

static int remove_home(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/takt/profiles.json", state_home);
	(void)unlink(path);
	snprintf(path, sizeof(path), "%s/takt", state_home);
	(void)rmdir(path);
	return rmdir(state_home);
}

static void profiles_are_kept_by_name(void **state)
{
	struct takt_profile profile = {.name = "train",
				       .gpu_name = "H \"100\"",
				       .sm_mhz = 1600,
				       .slowdown_permille = -3,
				       .saved_permille = 120,
				       .at_ms = 7};
	struct takt_profile found = {0};
	struct takt_profiles all;
	struct takt_err err = {0};

	assert_int_equal(takt_profiles_find(takt_sys_real(), "train", &found, &err),
			 -TAKT_E_NOT_FOUND);
	assert_int_equal(takt_profiles_keep(takt_sys_real(), &profile, &err), 0);
	takt_strcpy(profile.name, sizeof(profile.name), "other");
	assert_int_equal(takt_profiles_keep(takt_sys_real(), &profile, &err), 0);
	takt_strcpy(profile.name, sizeof(profile.name), "train");
	profile.sm_mhz = 1500;
	assert_int_equal(takt_profiles_keep(takt_sys_real(), &profile, &err), 0);
	assert_int_equal(takt_profiles_read(takt_sys_real(), &all, &err), 0);
	assert_int_equal(all.count, 2);
	takt_profiles_fini(&all);
	assert_int_equal(takt_profiles_find(takt_sys_real(), "train", &found, &err), 0);
	assert_int_equal(found.sm_mhz, 1500);
	assert_int_equal(found.slowdown_permille, -3);
	assert_string_equal(found.gpu_name, "H \"100\"");
}

/* Each allocation fails in turn: what was kept before stays whole. */
static void without_memory_profiles_stay(void **state)
{
	struct takt_profile profile = {.name = "train", .sm_mhz = 1400, .at_ms = 8}, found;
	struct takt_err err;
	int rc = -ENOMEM;

	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_profiles_keep(takt_sys_real(), &profile, &err);
		takt_alloc_fail_nth(0, 0);
		assert_true(nth < 1000);
		assert_int_equal(takt_profiles_find(takt_sys_real(), "train", &found, &err), 0);
		assert_int_equal(found.sm_mhz, rc == 0 ? 1400 : 1500);
	}
}

static void a_damaged_file_is_named_and_left_alone(void **state)
{
	struct takt_profile profile = {.name = "train", .sm_mhz = 1400, .at_ms = 8};
	struct takt_err err = {0};
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/takt/profiles.json", state_home);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("{\"profiles\":[{\"name\":\"x\"", file);
	fclose(file);
	assert_int_equal(takt_profiles_keep(takt_sys_real(), &profile, &err), -TAKT_E_CORRUPT);
	assert_non_null(strstr(err.msg, "profiles.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_front_is_what_nothing_beats),
		cmocka_unit_test(what_differs_is_not_recommended),
		cmocka_unit_test(of_one_run_the_warm_up_has_a_say),
		cmocka_unit_test(the_promise_chooses),
		cmocka_unit_test(the_error_counts_against_a_setting),
		cmocka_unit_test(without_energy_nothing_is_recommended),
		cmocka_unit_test(settings_are_spread_or_listed),
		cmocka_unit_test(settings_that_are_none_are_named),
		cmocka_unit_test(profiles_are_kept_by_name),
		cmocka_unit_test(without_memory_profiles_stay),
		cmocka_unit_test(a_damaged_file_is_named_and_left_alone),
	};

	return cmocka_run_group_tests(tests, make_home, remove_home);
}
