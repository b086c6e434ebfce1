/* SPDX-License-Identifier: Apache-2.0 */
/* Instants as people type them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli/job_filter.h"
#include "cli/when.h"

static const int64_t now_ms = 1795204226500; /* 2026-11-20 19:50:26.5 UTC */

static void instants_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t want_ms;
	} rows[] = {
		{"2h", 1795204226500 + 7200000},
		{"1m30s", 1795204226500 + 90000},
		{"20:00", 1795204800000},
		{"20:00:30", 1795204830000},
		{"19:50", 1795204200000 + 86400000}, /* past: tomorrow */
		{"18:00", 1795197600000 + 86400000},
		{"now", 1795204226500},
		{"now+2hours", 1795204226500 + 7200000},
		{"1w", 1795204226500 + 604800000},
		{"tomorrow", 1795219200000},
		{"today", 1795132800000},
		{"yesterday", 1795046400000},
		{"tomorrow 18:00", 1795219200000 + 64800000},
		{"2026-12-24", 1798070400000},
		{"2026-12-24T18:00", 1798135200000},
		{"2026-12-24 18:00:01", 1798135201000},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		int64_t ms = 0;

		if (takt_when_parse(rows[i].text, now_ms, &ms, NULL) != 0 || ms != rows[i].want_ms)
			fail_msg("%s: %lld", rows[i].text, (long long)ms);
	}
}

/* "--since 18:00" means the last one, where "--begin 18:00" means the next. */
static void the_past_is_read(void **state)
{
	static const struct {
		const char *text;
		int64_t want_ms;
	} rows[] = {
		{"2h", 1795204226500 - 7200000},
		{"1w", 1795204226500 - 604800000},
		{"18:00", 1795197600000},
		{"20:00", 1795204800000 - 86400000},
		{"yesterday", 1795046400000},
		{"today", 1795132800000},
		{"yesterday 18:00", 1795046400000 + 64800000},
		{"2026-11-19T18:00", 1795111200000},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		int64_t ms = 0;

		if (takt_past_parse(rows[i].text, now_ms, &ms, NULL) != 0 || ms != rows[i].want_ms)
			fail_msg("%s: %lld", rows[i].text, (long long)ms);
	}
}

static void nonsense_is_named(void **state)
{
	static const char *const rows[] = {
		"",   "soon", "25:00",	    "18:00x",	      "2026-13-01",
		"18", "-2h",  "tomorrow2h", "tomorrow 25:00", "now+",
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_err err;
		int64_t ms = 7;

		assert_int_equal(takt_when_parse(rows[i], now_ms, &ms, &err), -TAKT_E_USAGE);
		assert_int_equal(ms, 7);
		assert_non_null(strstr(err.msg, "such as 18:00"));
	}
}

static void days_that_are_in_no_calendar_are_refused(void **state)
{
	static const char *const rows[] = {"2027-02-29", "2027-04-31T08:00", "2026-02-30 10:00:00",
					   "2026-11-31", "2100-02-29",	     "2026-12-24T18:00:60"};
	int64_t ms = 7;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_err err;

		assert_int_equal(takt_when_parse(rows[i], now_ms, &ms, &err), -TAKT_E_USAGE);
		assert_int_equal(ms, 7);
		assert_non_null(strstr(err.msg, rows[i]));
		assert_non_null(strstr(err.msg, "calendar"));
	}
	assert_int_equal(takt_when_parse("2028-02-29", now_ms, &ms, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instants_are_read),
		cmocka_unit_test(the_past_is_read),
		cmocka_unit_test(nonsense_is_named),
		cmocka_unit_test(days_that_are_in_no_calendar_are_refused),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
