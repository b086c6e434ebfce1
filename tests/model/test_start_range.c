/* SPDX-License-Identifier: Apache-2.0 */
/* What was learned of foretold starts, as text: it is read again as it was, and only as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/start_range.h"

static const uint64_t second_ns = 1000000000;

/* More than are kept, none of them alike. */
static uint32_t learn(struct takt_start_ranges *ranges, uint32_t n)
{
	uint32_t kind = 0;

	for (uint32_t i = 0; i < n; i++)
		kind = takt_start_range_learn(ranges, 600 * second_ns,
					      (300 + 7 * (uint64_t)i) * second_ns);
	return kind;
}

static void what_is_written_is_read_again(void **state)
{
	static const uint32_t counts[] = {0, 1, 30, 127, 128, 200};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct takt_start_ranges ranges = {0};
		struct takt_start_range read = {.learned = 9};
		struct takt_str text = TAKT_STR(4096);
		uint32_t kind = learn(&ranges, counts[i]);

		takt_start_range_write(&ranges.kinds[kind], &text);
		assert_true(takt_start_range_read(takt_str_text(&text), &read));
		assert_memory_equal(&read, &ranges.kinds[kind], sizeof(read));
		takt_str_fini(&text);
	}
}

static void what_is_damaged_is_not_taken_in_part(void **state)
{
	static const char *const texts[] = {
		"",
		"1",
		"2 1 0 500",
		"1 2 0 500",
		"1 1 0 500 600",
		"1 1 0 5000000",
		"1 1 - 500",
		"1 1 0 -500",
		"1 1 0 99999999999999999999 ",
		"1 1 1000 500",
		"1 256 0 500",
		"1 1 0 500 rest",
		"1 -1 0 500",
	};
	struct takt_start_range was = {.learned = 1, .permille = {700}}, range = was;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (takt_start_range_read(texts[i], &range))
			fail_msg("'%s' was taken", texts[i]);
		assert_memory_equal(&range, &was, sizeof(range));
	}
	assert_true(takt_start_range_read("1 1 -20 500", &range));
	assert_int_equal(range.permille[0], 500);
	assert_int_equal(range.less, -20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(what_is_damaged_is_not_taken_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
