/* SPDX-License-Identifier: Apache-2.0 */
/* The baseline file: what it says is used, what it does not say clearly is refused by line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "actuate/baseline.h"
#include "base/mem.h"
#include "fake_sys.h"

static struct takt_baseline baseline;

static void each_gpu_gets_its_own_line_else_the_star(void **state)
{
	static const char text[] = "# the machine room's\n"
				   "GPU-a\trange 210 1410   # quiet\r\n"
				   "\n"
				   "  GPU-b reset\n"
				   "GPU-d reset power 300\n"
				   "GPU-e reset cap 350 mig 3g.40gb,3g.40gb\n"
				   "GPU-f range 210 900 mig none\n"
				   "* range 300 900 power 250";
	struct takt_baseline_rule rule;

	assert_int_equal(takt_baseline_parse(text, strlen(text), &baseline, NULL), 0);
	rule = takt_baseline_of(&baseline, "GPU-a");
	assert_true(rule.locked);
	assert_int_equal(rule.range.min_mhz, 210);
	assert_int_equal(rule.range.max_mhz, 1410);
	assert_false(takt_baseline_of(&baseline, "GPU-b").locked);
	assert_int_equal(rule.power_limit_mw, 0);
	rule = takt_baseline_of(&baseline, "GPU-c");
	assert_int_equal(rule.range.max_mhz, 900);
	assert_int_equal(rule.power_limit_mw, 250000);
	rule = takt_baseline_of(&baseline, "GPU-d");
	assert_false(rule.locked);
	assert_int_equal(rule.power_limit_mw, 300000);
	assert_int_equal(takt_baseline_cap_of(&baseline, "GPU-e"), 350000);
	assert_string_equal(takt_baseline_mig_of(&baseline, "GPU-e"), "3g.40gb,3g.40gb");
	assert_string_equal(takt_baseline_mig_of(&baseline, "GPU-f"), "none");
	assert_string_equal(takt_baseline_mig_of(&baseline, "GPU-d"), "");
}

static void without_a_word_the_baseline_is_reset(void **state)
{
	assert_int_equal(takt_baseline_parse("", 0, &baseline, NULL), 0);
	assert_false(takt_baseline_of(&baseline, "GPU-a").locked);
	assert_int_equal(takt_baseline_load(NULL, "", &baseline, NULL), 0);
	assert_false(takt_baseline_of(&baseline, "GPU-a").locked);
}

static void bad_lines_are_named_and_nothing_is_used(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"GPU-a reset\nGPU-a range 1 2\n", "line 2: 'GPU-a' has a line already"},
		{"GPU-a\n", "line 1: expected"},
		{"GPU-a rest\n", "line 1: expected"},
		{"GPU-a reset now\n", "line 1: expected"},
		{"\n\nGPU-a range 210\n", "line 3: expected"},
		{"GPU-a range 210 1410 9\n", "line 1: expected"},
		{"GPU-a range 210 x\n", "line 1: 'range' takes two clocks"},
		{"GPU-a range -1 210\n", "line 1: 'range' takes two clocks"},
		{"GPU-a range 0 210\n", "line 1: 'range' takes two clocks"},
		{"GPU-a reset power x\n", "line 1: 'power' takes a limit in W"},
		{"GPU-a reset power 0\n", "line 1: 'power' takes a limit in W"},
		{"GPU-a power 300\n", "line 1: expected"},
		{"GPU-a reset cap 0\n", "line 1: 'cap' takes a limit in W"},
		{"GPU-a reset cap 300 power 300\n", "line 1: expected"},
		{"GPU-a reset mig 3g.40gb,\n", "line 1: MIG layout '3g.40gb,'"},
		{"GPU-a mig none\n", "line 1: expected"},
		{"GPU-a reset mig none cap 300\n", "line 1: expected"},
		{"GPU-a range 1 2 power 3 4\n", "line 1: expected"},
		{"GPU-a range 1 20001\n", "line 1: 'range' takes two clocks"},
		{"GPU-a range 300 210\n", "line 1: range 300 210 is upside down"},
		{"GPU-a re\001set\n", "line 1: a word is too long or not plain text"},
	};
	struct takt_err err;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		assert_int_equal(takt_baseline_parse("* range 5 6", 11, &baseline, NULL), 0);
		assert_true(takt_baseline_parse(rows[i].text, strlen(rows[i].text), &baseline,
						&err) < 0);
		if (strncmp(err.msg, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_int_equal(takt_baseline_of(&baseline, "GPU-a").range.max_mhz, 6);
	}
}

static void a_word_or_a_file_too_long_is_refused(void **state)
{
	char text[TAKT_BASELINE_MAX_LINES * 20 + 200];
	size_t n = 0;

	memset(text, 'G', 96);
	memcpy(text + 96, " reset", 6);
	assert_int_equal(takt_baseline_parse(text, 102, &baseline, NULL), -EINVAL);
	assert_int_equal(takt_baseline_parse(text + 1, 101, &baseline, NULL), 0);
	for (int i = 0; i <= TAKT_BASELINE_MAX_LINES; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "GPU-%d reset\n", i);
	assert_int_equal(takt_baseline_parse(text, n, &baseline, NULL), -TAKT_E_LIMIT);
}

static void a_file_is_read_and_errors_name_it(void **state)
{
	struct fake_sys *world = fake_sys_new();
	const struct takt_sys *sys = fake_sys_table(world);
	struct takt_err err;
	bool declared;

	fake_sys_add_file(world, "/good", "* range 210 700\n", 16);
	fake_sys_add_file(world, "/bad", "* never\n", 8);
	assert_int_equal(takt_baseline_load(sys, "/good", &baseline, NULL), 0);
	assert_int_equal(takt_baseline_of(&baseline, "x").range.max_mhz, 700);
	assert_int_equal(takt_baseline_load(sys, "/bad", &baseline, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "'/bad': line 1"));
	assert_int_equal(takt_baseline_load(sys, "/none", &baseline, &err), -ENOENT);
	assert_int_equal(takt_baseline_of(&baseline, "x").range.max_mhz, 700);
	fake_sys_add_file(world, "/declared", "x range 5 6 power 7 cap 8\n", 26);
	fake_sys_add_file(world, "/silent", "# nothing\n", 10);
	assert_int_equal(
		takt_baseline_load_declared(sys, "/declared", "/good", &baseline, &declared, NULL),
		0);
	assert_true(declared);
	assert_int_equal(takt_baseline_of(&baseline, "x").power_limit_mw, 7000);
	assert_int_equal(takt_baseline_cap_of(&baseline, "x"), 8000);
	assert_int_equal(takt_baseline_cap_of(&baseline, "y"), 0);
	for (const char *path = "/silent"; path; path = path[1] == 's' ? "/none" : NULL) {
		assert_int_equal(
			takt_baseline_load_declared(sys, path, "/good", &baseline, &declared, NULL),
			0);
		assert_false(declared);
		assert_int_equal(takt_baseline_of(&baseline, "x").range.max_mhz, 700);
	}
	assert_int_equal(
		takt_baseline_load_declared(sys, "/bad", "/good", &baseline, &declared, NULL),
		-EINVAL);
	fake_sys_free(world);
}

static void no_memory_is_an_error_and_changes_nothing(void **state)
{
	int rc = -1;

	assert_int_equal(takt_baseline_parse("* range 5 6", 11, &baseline, NULL), 0);
	for (unsigned long nth = 1; rc < 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_baseline_parse("* reset", 7, &baseline, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0) {
			assert_int_equal(rc, -ENOMEM);
			assert_true(takt_baseline_of(&baseline, "x").locked);
		}
	}
	assert_false(takt_baseline_of(&baseline, "x").locked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gpu_gets_its_own_line_else_the_star),
		cmocka_unit_test(without_a_word_the_baseline_is_reset),
		cmocka_unit_test(bad_lines_are_named_and_nothing_is_used),
		cmocka_unit_test(a_word_or_a_file_too_long_is_refused),
		cmocka_unit_test(a_file_is_read_and_errors_name_it),
		cmocka_unit_test(no_memory_is_an_error_and_changes_nothing),
	};

	return cmocka_run_group_tests_name("baseline", tests, NULL, NULL);
}
