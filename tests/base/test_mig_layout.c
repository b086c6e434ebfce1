/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mig_layout.h"

static void what_is_written_reads_back(void **state)
{
	static const char *const texts[] = {
		"none",
		"3g.40gb,3g.40gb",
		"1g.10gb+me",
		"9:0,9:4",
		"9:0/0/0/0",
		"9:0/",
		"9:0/,19:4",
		"0",
		("19:0/0,19:1/0,19:2/0,19:3/0,19:4/0,"
		 "19:5/0,19:6/0"),
		"3g.40gb:4",
	};
	struct takt_mig_layout layout;
	char buf[TAKT_MIG_TEXT];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(takt_mig_layout_parse(texts[i], &layout, NULL), 0);
		assert_string_equal(takt_mig_layout_text(&layout, buf), texts[i]);
	}
}

static void what_is_said_of_each_part(void **state)
{
	struct takt_mig_layout layout;

	assert_int_equal(takt_mig_layout_parse("9:4/0/1,3g.40gb", &layout, NULL), 0);
	assert_int_equal(layout.count, 2);
	assert_int_equal(layout.parts[0].id, 9);
	assert_int_equal(layout.parts[0].start, 4);
	assert_int_equal(layout.parts[0].compute_count, 2);
	assert_int_equal(layout.parts[0].compute[1], 1);
	assert_string_equal(layout.parts[1].name, "3g.40gb");
	assert_int_equal(layout.parts[1].start, -1);
	assert_int_equal(layout.parts[1].compute_count, -1);
}

static void what_is_no_layout_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		",",
		"3g.40gb,",
		",3g.40gb",
		"3G.40GB",
		"9:8",
		"9:",
		"9:0:0",
		"256",
		"9/16",
		"9/0/",
		"9//0",
		"9 9",
		"9;9",
		"9\n",
		"1,1,1,1,1,1,1,1,1",
		"abcdefghijklmnopqrstuvwxyz",
		"9/0/0/0/0/0/0/0/0/0",
	};
	struct takt_mig_layout layout = {.count = 77};
	struct takt_err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (takt_mig_layout_parse(texts[i], &layout, &err) != -EINVAL)
			fail_msg("'%s' was taken", texts[i]);
		assert_int_equal(layout.count, 77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(what_is_said_of_each_part),
		cmocka_unit_test(what_is_no_layout_is_refused),
	};

	return cmocka_run_group_tests_name("mig_layout", tests, NULL, NULL);
}
