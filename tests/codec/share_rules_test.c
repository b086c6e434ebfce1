/* SPDX-License-Identifier: Apache-2.0 */
/* The file of tenants: what it says, and that a wrong one is refused whole with line and key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "codec/share_rules.h"

static const char good[] = "# who may have how much\n"
			   "half_life = 2d\n"
			   "[tenant lab]\n"
			   "quota = 2.5\n"
			   "limit = 6\n"
			   "borrow = no\n"
			   "users = anna, bob ,1002\n"
			   "\n"
			   "[ user anna ]\n"
			   "weight = 3\n"
			   "max_queued = 500\n"
			   "tenant = lab\n"
			   "[user *]\n"
			   "limit = 0.125\n";

static int parse(const char *text, struct takt_share_rules *ret, struct takt_err *err)
{
	return takt_share_rules_parse(text, strlen(text), "f", ret, err);
}

static void test_a_file_is_read(void **state)
{
	struct takt_share_rules rules;
	const struct takt_share_rule *lab, *anna;

	assert_int_equal(parse(good, &rules, NULL), 0);
	assert_int_equal(rules.half_life_ns, 2ull * 24 * 3600 * 1000000000);
	lab = takt_share_rule_tenant(&rules, "lab");
	assert_int_equal(lab->quota_milli, 2500);
	assert_int_equal(lab->limit_milli, 6000);
	assert_false(lab->may_borrow);
	assert_true(takt_share_rule_admits(lab, "bob", 5));
	assert_true(takt_share_rule_admits(lab, "carl", 1002));
	assert_false(takt_share_rule_admits(lab, "bo", 5));
	anna = takt_share_rule_user(&rules, "anna", 1000);
	assert_int_equal(anna->weight, 3);
	assert_int_equal(anna->max_queued, 500);
	assert_string_equal(anna->tenant, "lab");
	assert_int_equal(takt_share_rule_user(&rules, "zoe", 7)->limit_milli, 125);
	takt_share_rules_fini(&rules);
}

static void test_clocks_of_a_tenants_jobs(void **state)
{
	struct takt_share_rules rules;

	assert_int_equal(parse("[tenant a]\nmax_slowdown = 3.5%\nclock_policy = ladder\n"
			       "[tenant b]\nmax_slowdown = 0%\n[tenant c]\nweight = 2\n",
			       &rules, NULL),
			 0);
	assert_int_equal(rules.list[0].max_slowdown_permille, 35);
	assert_string_equal(rules.list[0].clock_policy, "ladder");
	assert_true(rules.list[1].has_max_slowdown && !rules.list[1].max_slowdown_permille);
	assert_false(rules.list[2].has_max_slowdown);
	takt_share_rules_fini(&rules);
}

static void test_what_users_may_book(void **state)
{
	struct takt_share_rules rules;

	assert_int_equal(parse("[tenant a]\nreserve_gpu_hours = 40.5\nreserve_approval = yes\n"
			       "[user b]\nreserve_ahead = 3d\nreserve_longest = 90m\n",
			       &rules, NULL),
			 0);
	assert_true(rules.list[0].reserve.has_hours && rules.list[0].reserve.needs_approval);
	assert_int_equal(rules.list[0].reserve.week_milli_h, 40500);
	assert_false(rules.list[1].reserve.has_hours || rules.list[1].reserve.has_approval);
	assert_int_equal(rules.list[1].reserve.ahead_ms, 3 * 24 * 3600 * 1000);
	assert_int_equal(rules.list[1].reserve.longest_ms, 90 * 60 * 1000);
	takt_share_rules_fini(&rules);
}

static void test_a_wrong_file_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"[tenant a]\nweight = 0\n", "f:2: weight must be a number from 1"},
		{"[tenant a]\nquota = 1.2345\n", "f:2: quota must be GPUs"},
		{"[tenant a]\nquota = .\n", "f:2: quota must be GPUs"},
		{"[user a]\nreserve_gpu_hours = many\n",
		 "f:2: reserve_gpu_hours must be GPU hours such as 40 or 0.5"},
		{"[user a]\nreserve_longest = 10s\n",
		 "f:2: reserve_longest must be a time such as 12h or 14d, from 1m to 366d"},
		{"[user a]\nreserve_ahead = 2y\n", "f:2: reserve_ahead must be a time"},
		{"[user a]\nreserve_approval = 1\n", "f:2: reserve_approval must be yes or no"},
		{"[tenant a]\nmax_slowdown = 60%\n", "f:2: max_slowdown must be a percentage"},
		{"[tenant a]\nclock_policy = A\n", "f:2: clock_policy must be the name"},
		{"[user a]\nmax_slowdown = 3%\n",
		 "f:2: there is no key 'max_slowdown' in [user a]"},
		{"[tenant a]\nborrow = maybe\n", "f:2: borrow must be yes or no"},
		{"[tenant a]\nmax_queued = 3\n", "f:2: there is no key 'max_queued' in [tenant a]"},
		{"[tenant a]\nweight = 1\nweight = 2\n", "f:3: weight stands twice"},
		{"[tenant a]\n[tenant a]\n", "f:2: [tenant a] stands twice"},
		{"[team a]\n", "f:1: a section is"},
		{"[user a/b]\n", "f:1: a section is"},
		{"[tenant a]\nquota = 3\nlimit = 2\n", "the quota of a is above its limit"},
		{"[user a]\ntenant = b\n", "user a counts for tenant 'b', which has no section"},
		{"[tenant b]\nusers = c\n[user a]\ntenant = b\n", "whose users do not name him"},
		{"half_life = 3\n", "f:1: half_life must be a time"},
		{"weight = 3\n", "f:1: there is no key 'weight' before the first section"},
		{"nonsense\n", "f:1: 'nonsense' is not a line"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_share_rules rules = {.count = 77};
		struct takt_err err = {0};

		assert_int_equal(parse(rows[i].text, &rules, &err), -TAKT_E_USAGE);
		assert_int_equal(rules.count, 77);
		if (!strstr(err.msg, rows[i].says))
			fail_msg("'%s' says '%s', not '%s'", rows[i].text, err.msg, rows[i].says);
	}
}

static void test_any_allocation_may_fail(void **state)
{
	int rc = -1;

	for (unsigned long n = 1; rc != 0; n++) {
		struct takt_share_rules rules;

		takt_alloc_fail_nth(n, 0);
		rc = parse(good, &rules, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc == 0)
			takt_share_rules_fini(&rules);
		assert_true(rc == 0 || n < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_is_read),
		cmocka_unit_test(test_clocks_of_a_tenants_jobs),
		cmocka_unit_test(test_what_users_may_book),
		cmocka_unit_test(test_a_wrong_file_is_refused_with_its_line),
		cmocka_unit_test(test_any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
