/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes for clocks meet the lists of drivers: never more than was asked for, always a listed one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "clock/range.h"

static const uint32_t list[] = {135, 210, 217, 225, 1380};

static void wishes_go_down_to_listed_clocks(void **state)
{
	static const struct {
		struct takt_clock_range wish, got;
	} rows[] = {
		{{0, 1380}, {135, 1380}},   /* a ceiling at the top */
		{{0, 9999}, {135, 1380}},   /* above the list */
		{{0, 224}, {135, 217}},	    /* between two clocks: the lower one */
		{{0, 225}, {135, 225}},	    /* exactly one of them */
		{{0, 100}, {135, 135}},	    /* below the list: its lowest */
		{{1000, 1000}, {225, 225}}, /* locked: both ends alike */
		{{212, 1379}, {210, 225}},  /* both ends between */
		{{1380, 1380}, {1380, 1380}},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_clock_range got;

		assert_true(takt_clock_range_clamp(list, TAKT_ARRAY_LEN(list), rows[i].wish, &got));
		assert_true(takt_clock_range_equal(got, rows[i].got));
	}
}

static void nonsense_is_refused_and_changes_nothing(void **state)
{
	struct takt_clock_range got = {7, 7};

	assert_false(takt_clock_range_clamp(list, 0, (struct takt_clock_range){0, 500}, &got));
	assert_false(takt_clock_range_clamp(list, 5, (struct takt_clock_range){0, 0}, &got));
	assert_false(takt_clock_range_clamp(list, 5, (struct takt_clock_range){500, 400}, &got));
	assert_int_equal(got.min_mhz, 7);
	assert_int_equal(got.max_mhz, 7);
}

static void a_list_of_one_has_one_answer(void **state)
{
	struct takt_clock_range got;

	assert_true(takt_clock_range_clamp(list, 1, (struct takt_clock_range){0, 5000}, &got));
	assert_int_equal(got.min_mhz, 135);
	assert_int_equal(got.max_mhz, 135);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wishes_go_down_to_listed_clocks),
		cmocka_unit_test(nonsense_is_refused_and_changes_nothing),
		cmocka_unit_test(a_list_of_one_has_one_answer),
	};

	return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
