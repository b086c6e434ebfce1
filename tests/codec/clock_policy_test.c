/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's policy of clocks: what it says of which GPU, and that a wrong one is refused whole
 * with line and key. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "codec/clock_policy.h"

static const char good[] = "[[gpu]]\n"
			   "power_w = 500\n"
			   "cap_w = 600 # of the rack\n"
			   "mig = \"3g.20gb,3g.20gb\"\n"
			   "[[gpu]]\n"
			   "model = \"NVIDIA A100\"\n"
			   "sm_mhz = [210, 1200]\n"
			   "[[gpu]]\n"
			   "uuid = \"GPU-1\"\n"
			   "sm_mhz = [300, 300]\n";

static struct takt_clock_policy policy;

static int parse(const char *text, struct takt_err *err)
{
	return takt_clock_policy_parse(text, strlen(text), &policy, err);
}

static const struct takt_declared *wish_of(const char *uuid, const char *name)
{
	const struct takt_declared_bounds gpu = {.uuid = uuid, .name = name};
	const struct takt_clock_rule *rule = takt_clock_policy_of(&policy, &gpu);

	return rule ? &rule->wish : NULL;
}

static void test_the_closest_entry_is_a_gpus(void **state)
{
	assert_int_equal(parse(good, NULL), 0);
	assert_int_equal(policy.count, 3);
	assert_int_equal(wish_of("GPU-1", "NVIDIA A100")->sm_max_mhz, 300);
	assert_int_equal(wish_of("GPU-2", "NVIDIA A100")->sm_min_mhz, 210);
	assert_int_equal(wish_of("GPU-2", "NVIDIA A100")->power_limit_mw, 0);
	assert_int_equal(wish_of("GPU-3", "NVIDIA L4")->power_limit_mw, 500000);
	assert_int_equal(wish_of("GPU-3", "NVIDIA L4")->cap_power_mw, 600000);
	assert_string_equal(wish_of("GPU-3", "NVIDIA L4")->mig, "3g.20gb,3g.20gb");
	assert_string_equal(wish_of("GPU-2", "NVIDIA A100")->mig, "");
	assert_int_equal(parse("[[gpu]]\nuuid = \"GPU-1\"\n", NULL), 0);
	assert_null(wish_of("GPU-2", "NVIDIA A100"));
	assert_int_equal(wish_of("GPU-1", "x")->sm_max_mhz, 0);
}

static void test_a_wrong_file_is_refused_with_line_and_key(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "line 1: there is no entry [[gpu]]"},
		{"x = 1\n", "line 1: 'x' is not known here"},
		{"\ngpu = 1\n", "line 2: 'gpu' is not known here"},
		{"gpu = [1]\n", "'gpu' must be written as tables"},
		{"[[gpu]]\n\npower_w = 0\n", "line 3: 'power_w' must be a whole number of watts"},
		{"[[gpu]]\ncap_w = 1.5\n", "line 2: 'cap_w' must be a whole number of watts"},
		{"[[gpu]]\ncap_w = \"300\"\n", "line 2: 'cap_w' must be"},
		{"[[gpu]]\npower_w = 1\n[[gpu]]\nmodel = \"a\"\npower_w = -1\n",
		 "line 5: 'power_w' must be"},
		{"[[gpu]]\nsm_mhz = 1410\n", "line 2: 'sm_mhz' must be two clocks in MHz"},
		{"[[gpu]]\nsm_mhz = [1410, 210]\n", "line 2: 'sm_mhz' must be two clocks in MHz"},
		{"[[gpu]]\nsm_mhz = [1, 2, 3]\n", "line 2: 'sm_mhz' must be two clocks in MHz"},
		{"[[gpu]]\nmig = \"3g.20gb,\"\n", "line 2: 'mig' must be kinds of MIG instances"},
		{"[[gpu]]\nmig = 3\n", "line 2: 'mig' must be kinds of MIG instances"},
		{"[[gpu]]\nuuid = \"\"\n", "line 2: 'uuid' must be a text"},
		{"[[gpu]]\nuuid = 5\n", "line 2: 'uuid' must be a text"},
		{"[[gpu]]\nmhz = 5\n", "line 2: there is no key 'mhz' here; there are uuid, model"},
		{"[[gpu]]\nuuid = \"a\"\nmodel = \"b\"\n",
		 "line 1: 'uuid' and 'model' cannot both"},
		{"[[gpu]]\n[[gpu]]\n", "line 2: these GPUs have an entry already, on line 1"},
		{"[[gpu]\n", "line 1: "},
	};
	struct takt_err err;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		assert_int_equal(parse(good, NULL), 0);
		assert_true(parse(rows[i].text, &err) < 0);
		if (strncmp(err.msg, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_int_equal(policy.count, 3);
	}
}

static void test_what_a_gpu_does_not_take_is_refused_by_key(void **state)
{
	const struct takt_declared_bounds gpu = {"u", "n", 210, 1410, 100000, 400000},
					  mute = {"u", "n"};
	static const struct {
		struct takt_declared wish;
		const char *says; /* NULL = fine */
	} rows[] = {
		{{.index = 0}, NULL},
		{{.sm_min_mhz = 210,
		  .sm_max_mhz = 1410,
		  .power_limit_mw = 100000,
		  .cap_power_mw = 400000},
		 NULL},
		{{.sm_min_mhz = 200, .sm_max_mhz = 1410}, "'sm_mhz' [200, 1410]: this GPU takes"},
		{{.sm_min_mhz = 210, .sm_max_mhz = 1411}, "'sm_mhz' [210, 1411]: this GPU takes"},
		{{.sm_min_mhz = 1410, .sm_max_mhz = 210}, "'sm_mhz'"},
		{{.sm_min_mhz = 0, .sm_max_mhz = 1410}, "'sm_mhz'"},
		{{.power_limit_mw = 99000}, "'power_w' 99 W: this GPU takes 100 to 400 W"},
		{{.cap_power_mw = 401000}, "'cap_w' 401 W: this GPU takes 100 to 400 W"},
	};
	struct takt_err err;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		err.msg[0] = '\0';
		if ((takt_declared_check(&rows[i].wish, &gpu, &err) == 0) != !rows[i].says ||
		    (rows[i].says && strncmp(err.msg, rows[i].says, strlen(rows[i].says)) != 0))
			fail_msg("row %zu: %s", i, err.msg);
		assert_int_equal(takt_declared_check(&rows[i].wish, &mute, NULL) == 0, i == 0);
	}
}

static void test_it_travels_as_json(void **state)
{
	const struct takt_declaration sent = {
		.count = 2,
		.gpu = {{.index = 3, .sm_min_mhz = 210, .sm_max_mhz = 900},
			{.index = 5, .power_limit_mw = 300000, .cap_power_mw = 350000}},
	};
	static const char *const bad[] = {"{}", "[]", "{\"gpus\":[{}]}",
					  "{\"gpus\":[{\"index\":0,\"x\":1}]}"};
	struct takt_str json = TAKT_STR(4096), text = TAKT_STR(4096);
	struct takt_declaration got;
	struct takt_clock_cap cap = {.gpu_mask = 5, .reason = "hot"}, cap_got;

	assert_int_equal(takt_declaration_to_json(&sent, &json), 0);
	assert_int_equal(takt_declaration_from_json(json.s, json.len, &got, NULL), 0);
	assert_memory_equal(&got, &sent, sizeof(sent));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(bad); i++)
		assert_int_equal(takt_declaration_from_json(bad[i], strlen(bad[i]), &got, NULL),
				 -TAKT_E_USAGE);
	assert_int_equal(takt_clock_cap_to_json(&cap, &text), 0);
	assert_int_equal(takt_clock_cap_from_json(text.s, text.len, &cap_got, NULL), 0);
	assert_memory_equal(&cap_got, &cap, sizeof(cap));
	assert_int_equal(
		takt_clock_cap_from_json("{\"gpus\":[],\"power_limit_mw\":1}", 31, &cap, NULL),
		-TAKT_E_USAGE);
	takt_str_fini(&json);
	takt_str_fini(&text);
}

static void test_want_of_memory_is_an_error_and_changes_nothing(void **state)
{
	int rc = -ENOMEM;

	for (unsigned long n = 1; rc == -ENOMEM; n++) {
		assert_int_equal(parse(good, NULL), 0);
		takt_alloc_fail_nth(n, 0);
		rc = parse("[[gpu]]\npower_w = 9\n", NULL);
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(policy.count, rc == 0 ? 1 : 3);
	}
	assert_int_equal(rc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_closest_entry_is_a_gpus),
		cmocka_unit_test(test_a_wrong_file_is_refused_with_line_and_key),
		cmocka_unit_test(test_what_a_gpu_does_not_take_is_refused_by_key),
		cmocka_unit_test(test_it_travels_as_json),
		cmocka_unit_test(test_want_of_memory_is_an_error_and_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
