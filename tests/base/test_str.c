/* SPDX-License-Identifier: Apache-2.0 */
/* Growable text with its limit, and the number parsers. */
#include "seeded.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"

enum {
	LIMIT = 300
};

static void append(struct takt_str *str, char *model, struct takt_rng *rng)
{
	char text[40];
	size_t n = takt_rng_below(rng, sizeof(text)), len = strlen(model);

	for (size_t i = 0; i < n; i++)
		text[i] = (char)takt_rng_range(rng, 'a', 'z');
	text[n] = '\0';
	switch (takt_rng_below(rng, 3)) {
	case 0:
		takt_str_add(str, text);
		break;
	case 1:
		takt_str_addn(str, text, n);
		break;
	default:
		takt_str_addf(str, "%s", text);
	}
	if (str->rc == 0)
		memcpy(model + len, text, n + 1);
}

static void matches_a_buffer_up_to_the_limit(void **state)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct takt_str str = TAKT_STR(LIMIT);
		char model[LIMIT + 1] = "";
		struct takt_rng rng;
		char *taken;

		takt_rng_init(&rng, seed);
		while (str.rc == 0) {
			append(&str, model, &rng);
			CHECK_SEED(seed, strcmp(takt_str_text(&str), model) == 0);
			CHECK_SEED(seed, str.len == strlen(model) && str.len <= LIMIT);
		}
		CHECK_SEED(seed, str.rc == -TAKT_E_LIMIT);
		CHECK_SEED(seed, takt_str_add(&str, "") == -TAKT_E_LIMIT); /* sticky */
		takt_str_reset(&str);
		CHECK_SEED(seed, takt_str_add(&str, "again") == 0);
		taken = takt_str_take(&str);
		CHECK_SEED(seed, strcmp(taken, "again") == 0);
		takt_free(taken);
		takt_str_fini(&str);
	}
}

static void exactly_the_limit_fits(void **state)
{
	struct takt_str str = TAKT_STR(4);

	assert_int_equal(takt_str_add(&str, "takt"), 0);
	assert_int_equal(takt_str_add(&str, "!"), -TAKT_E_LIMIT);
	assert_string_equal(takt_str_text(&str), "takt");
	assert_null(takt_str_take(&str));
}

static void empty_text_can_be_taken(void **state)
{
	struct takt_str str = TAKT_STR(4);
	char *taken = takt_str_take(&str);

	assert_string_equal(taken, "");
	takt_free(taken);
	assert_string_equal(takt_str_text(&str), "");
}

static void out_of_memory_is_remembered(void **state)
{
	struct takt_str str = TAKT_STR(LIMIT);

	assert_int_equal(takt_str_add(&str, "kept"), 0);
	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_str_addf(&str, "%100d", 1), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	assert_int_equal(takt_str_add(&str, "x"), -ENOMEM);
	assert_string_equal(takt_str_text(&str), "kept");
	takt_str_fini(&str);
}

static void copies_are_cut_to_size(void **state)
{
	char small[4] = "zzz";

	assert_true(takt_strcpy(small, sizeof(small), "abc"));
	assert_string_equal(small, "abc");
	assert_false(takt_strcpy(small, sizeof(small), "defg"));
	assert_string_equal(small, "def");
	assert_true(takt_strcpy(small, sizeof(small), ""));
	assert_string_equal(small, "");
}

struct u64_row {
	const char *text;
	unsigned long long min, max;
	int rc;
	unsigned long long value;
};

static void unsigned_numbers(void **state)
{
	static const struct u64_row rows[] = {
		{"0", 0, ULLONG_MAX, 0, 0},
		{"18446744073709551615", 0, ULLONG_MAX, 0, ULLONG_MAX},
		{"18446744073709551616", 0, ULLONG_MAX, -ERANGE, 0},
		{"99999999999999999999999", 0, ULLONG_MAX, -ERANGE, 0},
		{"99999999999999999999999x", 0, ULLONG_MAX, -EINVAL, 0},
		{"007", 0, 10, 0, 7},
		{"11", 0, 10, -ERANGE, 0},
		{"4", 5, 10, -ERANGE, 0},
		{"", 0, 10, -EINVAL, 0},
		{"-1", 0, 10, -EINVAL, 0},
		{"+1", 0, 10, -EINVAL, 0},
		{" 1", 0, 10, -EINVAL, 0},
		{"1 ", 0, 10, -EINVAL, 0},
		{"1\n", 0, 10, -EINVAL, 0},
		{"0x1", 0, 10, -EINVAL, 0},
		{"1.0", 0, 10, -EINVAL, 0},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		unsigned long long value = 4711;

		assert_int_equal(takt_parse_u64(rows[i].text, rows[i].min, rows[i].max, &value),
				 rows[i].rc);
		assert_true(value == (rows[i].rc ? 4711 : rows[i].value));
	}
}

struct i64_row {
	const char *text;
	long long min, max;
	int rc;
	long long value;
};

static void signed_numbers(void **state)
{
	static const struct i64_row rows[] = {
		{"-9223372036854775808", LLONG_MIN, LLONG_MAX, 0, LLONG_MIN},
		{"-9223372036854775809", LLONG_MIN, LLONG_MAX, -ERANGE, 0},
		{"9223372036854775807", LLONG_MIN, LLONG_MAX, 0, LLONG_MAX},
		{"9223372036854775808", LLONG_MIN, LLONG_MAX, -ERANGE, 0},
		{"+3", -5, 5, 0, 3},
		{"-3", -5, 5, 0, -3},
		{"-0", -5, 5, 0, 0},
		{"-6", -5, 5, -ERANGE, 0},
		{"-", -5, 5, -EINVAL, 0},
		{"--1", -5, 5, -EINVAL, 0},
		{"+-1", -5, 5, -EINVAL, 0},
		{"", -5, 5, -EINVAL, 0},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		long long value = 4711;

		assert_int_equal(takt_parse_i64(rows[i].text, rows[i].min, rows[i].max, &value),
				 rows[i].rc);
		assert_true(value == (rows[i].rc ? 4711 : rows[i].value));
	}
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t mib;
	} rows[] = {
		{"512M", 0, 512},
		{"16G", 0, 16384},
		{"16GiB", 0, 16384},
		{"2T", 0, 2 << 20},
		{"1K", 0, 1},
		{"1025KiB", 0, 2},
		{"0M", 0, 0},
		{"9223372036854775807K", 0, 9007199254740992},
		{"9223372036854775808K", -ERANGE, 0},
		{"99999999999999999999G", -EINVAL, 0},
		{"512", -EINVAL, 0},
		{"512MB", 0, 512},
		{"512Mi", 0, 512},
		{"16g", 0, 16384},
		{"16gb", 0, 16384},
		{"16Gbit", -EINVAL, 0},
		{"-1M", -EINVAL, 0},
		{"1.5G", -EINVAL, 0},
		{"M", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"000000000000000000000001M", -EINVAL, 0},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		uint64_t mib = 4711;

		assert_int_equal(takt_size_parse(rows[i].text, &mib), rows[i].rc);
		assert_true(mib == (rows[i].rc ? 4711 : rows[i].mib));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_a_buffer_up_to_the_limit),
		cmocka_unit_test(exactly_the_limit_fits),
		cmocka_unit_test(empty_text_can_be_taken),
		cmocka_unit_test(out_of_memory_is_remembered),
		cmocka_unit_test(copies_are_cut_to_size),
		cmocka_unit_test(unsigned_numbers),
		cmocka_unit_test(signed_numbers),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
