/* SPDX-License-Identifier: Apache-2.0 */
/* The curves below takt report --by day. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "cli/report_days.h"

static struct takt_str out;

static int begin(void **state)
{
	(void)state;
	out = TAKT_STR(1 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	takt_str_fini(&out);
	return 0;
}

static int64_t day_of(const char *text)
{
	int64_t day;

	assert_true(takt_report_day_of(text, &day));
	return day;
}

static void dates_are_days(void **state)
{
	int64_t day;

	(void)state;
	assert_int_equal(day_of("1970-01-02"), 1);
	assert_int_equal(day_of("2024-03-01") - day_of("2024-02-28"), 2);
	assert_false(takt_report_day_of("-", &day));
	assert_false(takt_report_day_of("ada", &day));
}

static void a_day_is_a_character(void **state)
{
	const struct takt_report_day days[] = {
		{day_of("2026-02-27"), 4, 50, (double)NAN},
		{day_of("2026-02-28"), 8, 100, (double)NAN},
		{day_of("2026-03-02"), 2, 75, (double)NAN},
	};

	(void)state;
	assert_int_equal(takt_report_days(days, 3, 0, false, false, &out), 0);
	assert_non_null(strstr(takt_str_text(&out), "\n2026-02-27 to 2026-03-02\n"));
	/* nothing ran on the first of March: no hours, and of the rest nothing is known */
	assert_non_null(strstr(takt_str_text(&out), "GPU hours      0     8  =#_:\n"));
	assert_non_null(strstr(takt_str_text(&out), "used %        50   100  _# =\n"));
	assert_null(strstr(takt_str_text(&out), "energy"));
}

static void more_days_than_room_share_characters(void **state)
{
	static struct takt_report_day days[730];

	(void)state;
	for (int i = 0; i < 730; i++)
		days[i] = (struct takt_report_day){10000 + i, i, 10, 1};
	assert_int_equal(takt_report_days(days, 730, 80, false, false, &out), 0);
	for (const char *line = takt_str_text(&out); *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, 80);
	assert_non_null(strstr(takt_str_text(&out), " 729  ___"));
	assert_non_null(strstr(takt_str_text(&out), "###\n"));
}

static void one_day_is_no_course(void **state)
{
	const struct takt_report_day days[] = {{1, 1, 1, 1}, {1000000, 1, 1, 1}};

	(void)state;
	assert_int_equal(takt_report_days(days, 0, 80, true, false, &out), 0);
	assert_int_equal(takt_report_days(days, 1, 80, true, false, &out), 0);
	assert_int_equal(takt_report_days(days, 2, 80, true, false, &out), 0);
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dates_are_days, begin, end),
		cmocka_unit_test_setup_teardown(a_day_is_a_character, begin, end),
		cmocka_unit_test_setup_teardown(more_days_than_room_share_characters, begin, end),
		cmocka_unit_test_setup_teardown(one_day_is_no_course, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
