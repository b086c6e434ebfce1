/* SPDX-License-Identifier: Apache-2.0 */
/* Times, durations and hexadecimal text as people see them. */
#include "seeded.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "base/rng.h"
#include "base/timetext.h"

static void wall_matches_libc(void **state)
{
	char got[TAKT_WALL_TEXT], want[64], day[32];
	struct takt_rng rng;
	struct tm tm;

	takt_rng_init(&rng, 1);
	for (int i = 0; i < 5000; i++) {
		int64_t ms = (int64_t)takt_rng_below(&rng, 18000000000000) - 9000000000000;
		time_t s = ms / 1000 - (ms % 1000 < 0);

		gmtime_r(&s, &tm);
		strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(want, sizeof(want), "%s.%03dZ", day, (int)(ms - (int64_t)s * 1000));
		takt_wall_text((struct takt_wall){ms * 1000000}, got);
		assert_string_equal(got, want);
	}
}

static void wall_at_the_edges(void **state)
{
	char text[TAKT_WALL_TEXT];

	assert_string_equal(takt_wall_text((struct takt_wall){-1}, text),
			    "1969-12-31T23:59:59.999Z");
	assert_string_equal(takt_wall_text((struct takt_wall){-86400000000000}, text),
			    "1969-12-31T00:00:00.000Z");
	assert_string_equal(takt_wall_text((struct takt_wall){INT64_MAX}, text),
			    "2262-04-11T23:47:16.854Z");
	assert_string_equal(takt_wall_text((struct takt_wall){INT64_MIN}, text),
			    "1677-09-21T00:12:43.145Z");
}

struct text_row {
	uint64_t ns;
	const char *text;
};

static void durations_in_two_units(void **state)
{
	static const struct text_row rows[] = {
		{0, "0ns"},
		{999, "999ns"},
		{20500, "20us"},
		{15999999, "15ms"},
		{4250000000, "4.250s"},
		{59999999999, "59.999s"},
		{185 * TAKT_NS_PER_S, "3m05s"},
		{3720 * TAKT_NS_PER_S, "1h02m"},
		{183600 * TAKT_NS_PER_S, "2d03h"},
		{UINT64_MAX, "213503d23h"},
	};
	char text[TAKT_DURATION_TEXT];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_string_equal(takt_duration_text(rows[i].ns, text), rows[i].text);
}

static void the_calendar_has_its_days(void **state)
{
	assert_true(takt_date_exists(2028, 2, 29) && takt_date_exists(2000, 2, 29) &&
		    takt_date_exists(2026, 12, 31));
	assert_false(takt_date_exists(2027, 2, 29) || takt_date_exists(2100, 2, 29) ||
		     takt_date_exists(2026, 4, 31));
	assert_false(takt_date_exists(2026, 0, 1) || takt_date_exists(2026, 13, 1) ||
		     takt_date_exists(2026, 1, 0));
}

static void exact_durations_read_back(void **state)
{
	static const struct text_row rows[] = {
		{0, "0s"},
		{8 * TAKT_NS_PER_S, "8s"},
		{1500 * TAKT_NS_PER_MS, "1s500ms"},
		{3723 * TAKT_NS_PER_S, "1h2m3s"},
		{UINT64_MAX, "213503d23h34m33s709ms551us615ns"},
	};
	char text[TAKT_DURATION_EXACT];
	struct takt_rng rng;
	uint64_t ns, back;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_string_equal(takt_duration_exact(rows[i].ns, text), rows[i].text);
	takt_rng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		ns = takt_rng_next(&rng) >> takt_rng_below(&rng, 64);
		assert_int_equal(takt_duration_parse(takt_duration_exact(ns, text), &back), 0);
		assert_true(back == ns);
	}
}

struct parse_row {
	const char *text;
	int rc;
	uint64_t ns;
};

static void durations_parse(void **state)
{
	static const struct parse_row rows[] = {
		{"90s", 0, 90 * TAKT_NS_PER_S},
		{"1h30m", 0, 5400 * TAKT_NS_PER_S},
		{"2d1ns", 0, 172800 * TAKT_NS_PER_S + 1},
		{"500ms", 0, 500 * TAKT_NS_PER_MS},
		{"1m1ms1us", 0, 60 * TAKT_NS_PER_S + TAKT_NS_PER_MS + TAKT_NS_PER_US},
		{"0s", 0, 0},
		{"18446744073709551615ns", 0, UINT64_MAX},
		{"18446744073s709551615ns", 0, UINT64_MAX},
		{"18446744073s709551616ns", -ERANGE, 0},
		{"18446744073709551616ns", -ERANGE, 0},
		{"300000d", -ERANGE, 0},
		{"18446744073s1000ms", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"90", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"1m1h", -EINVAL, 0},
		{"1s1s", -EINVAL, 0},
		{"1.5h", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"1 s", -EINVAL, 0},
		{"1s ", -EINVAL, 0},
		{"1S", -EINVAL, 0},
		{"90min", 0, 5400 * TAKT_NS_PER_S},
		{"1w", 0, 604800 * TAKT_NS_PER_S},
		{"2hours30minutes", 0, 9000 * TAKT_NS_PER_S},
		{"1m1min", -EINVAL, 0},
		{"1month", -EINVAL, 0},
		{"1h30", -EINVAL, 0},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		uint64_t ns = 4711;

		if (takt_duration_parse(rows[i].text, &ns) != rows[i].rc)
			fail_msg("'%s'", rows[i].text);
		assert_true(ns == (rows[i].rc ? 4711 : rows[i].ns));
	}
}

static void slurms_times_parse(void **state)
{
	static const struct parse_row rows[] = {
		{"90", 0, 5400 * TAKT_NS_PER_S},
		{"5:30", 0, 330 * TAKT_NS_PER_S},
		{"1:30:00", 0, 5400 * TAKT_NS_PER_S},
		{"1-00:00:00", 0, 86400 * TAKT_NS_PER_S},
		{"2-12", 0, 216000 * TAKT_NS_PER_S},
		{"2-12:30", 0, 217800 * TAKT_NS_PER_S},
		{"0", 0, 0},
		{"60000", 0, 3600000 * TAKT_NS_PER_S},
		{"99999999999999", -ERANGE, 0},
		{"99999999999999999999", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"1-", -EINVAL, 0},
		{"1:", -EINVAL, 0},
		{":30", -EINVAL, 0},
		{"1:2:3:4", -EINVAL, 0},
		{"1h", -EINVAL, 0},
		{"1-2-3", -EINVAL, 0},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		uint64_t ns = 4711;

		if (takt_slurm_time_parse(rows[i].text, &ns) != rows[i].rc)
			fail_msg("'%s'", rows[i].text);
		assert_true(ns == (rows[i].rc ? 4711 : rows[i].ns));
	}
}

static void hex_there_and_back(void **state)
{
	const unsigned char bytes[4] = {0x70, 0x9f, 0xff, 0xa1};
	unsigned char back[4] = {0};
	char text[9];

	takt_hex_encode(bytes, 4, text);
	assert_string_equal(text, "709fffa1");
	assert_int_equal(takt_hex_decode("709FfFA1", back, 4), 0);
	assert_memory_equal(back, bytes, 4);
	assert_int_equal(takt_hex_decode("009fff1", back, 4), -EINVAL);
	assert_int_equal(takt_hex_decode("009fff1a0", back, 4), -EINVAL);
	assert_int_equal(takt_hex_decode("709fffag", back, 4), -EINVAL);
	assert_memory_equal(back, bytes, 4);
}

static void uuid_is_version_4(void **state)
{
	uint8_t random[16];
	char text[37];

	memset(random, 0xff, sizeof(random));
	takt_uuid_format(random, text);
	assert_string_equal(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
	memset(random, 0, sizeof(random));
	takt_uuid_format(random, text);
	assert_string_equal(text, "00000000-0000-4000-8000-000000000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wall_matches_libc),
		cmocka_unit_test(wall_at_the_edges),
		cmocka_unit_test(durations_in_two_units),
		cmocka_unit_test(durations_parse),
		cmocka_unit_test(slurms_times_parse),
		cmocka_unit_test(exact_durations_read_back),
		cmocka_unit_test(the_calendar_has_its_days),
		cmocka_unit_test(hex_there_and_back),
		cmocka_unit_test(uuid_is_version_4),
	};

	return cmocka_run_group_tests_name("timetext", tests, NULL, NULL);
}
