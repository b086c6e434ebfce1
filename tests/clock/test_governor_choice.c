/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "clock/governor_choice.h"

static void step_nowhere(void *state, const struct takt_governor_setup *setup,
			 const struct takt_governor_observation *seen,
			 struct takt_governor_wish *ret)
{
	ret->reason = TAKT_REASON_OBSERVE;
}

static const struct takt_governor own = {.abi = TAKT_GOVERNOR_ABI,
					 .name = "own",
					 .summary = "nothing",
					 .params = "any",
					 .step = step_nowhere};
static const struct takt_governor *const more[] = {&own, NULL};
static const struct takt_governors with_own = {more};

static void a_policy_names_a_governor_and_its_parameters(void **state)
{
	struct takt_governor_param params[TAKT_POLICY_MAX_PARAMS];
	const struct takt_governor *governor = NULL;
	struct takt_policy_text said;

	assert_int_equal(takt_governors_choose(NULL, "fixed:sm_mhz=1200,power_mw=200000", &governor,
					       &said, NULL),
			 0);
	assert_ptr_equal(governor, &takt_governor_fixed);
	assert_int_equal(takt_policy_params(&said, params), 2);
	assert_string_equal(params[1].name, "power_mw");
	assert_int_equal(params[1].value, 200000);
	assert_int_equal(takt_governors_choose(&with_own, "ladder", &governor, &said, NULL), 0);
	assert_ptr_equal(governor, &takt_governor_ladder);
	assert_int_equal(said.param_count, 0);
}

static void governors_of_others_are_named_like_takts_own(void **state)
{
	const struct takt_governor *governor = NULL;
	struct takt_policy_text said;

	assert_int_equal(takt_governors_choose(&with_own, "own:any=-7", &governor, &said, NULL), 0);
	assert_ptr_equal(governor, &own);
	assert_int_equal(said.params[0].value, -7);
	assert_null(takt_governors_find(NULL, "own"));
}

static void what_cannot_be_is_told_with_what_could(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"thrifty", "there is no governor 'thrifty'; there are own, observe, assured, "},
		{"thrifty", ", forecast"},
		{"Fixed", "such as fixed:sm_mhz=1200, not 'Fixed'"},
		{"fixed:clock=3", "has no parameter 'clock'; it takes sm_mhz sm_permille power_mw"},
		{"performance:x=1", "it takes none"},
		{"own:other=1", "it takes any"},
		{"fixed:sm_mhz=1,sm_mhz=2", "parameter 'sm_mhz' of governor 'fixed' stands twice"},
		{"fixed:sm_permille=1001", "sm_permille must be 1 to 1000, not 1001"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		const struct takt_governor *governor = &own;
		struct takt_policy_text said;
		struct takt_err err = {0};

		assert_int_equal(
			takt_governors_choose(&with_own, rows[i].text, &governor, &said, &err),
			-TAKT_E_USAGE);
		if (!strstr(err.msg, rows[i].says))
			fail_msg("'%s' does not say '%s'", err.msg, rows[i].says);
		assert_ptr_equal(governor, &own);
	}
}

/* No parameter of takt's own is without bounds: a user may set it to anything. */
static void each_parameter_has_its_bounds(void **state)
{
	for (size_t i = 0; takt_governor_all[i]; i++) {
		const struct takt_governor *governor = takt_governor_all[i];
		char names[256];

		snprintf(names, sizeof(names), "%s", governor->params ? governor->params : "");
		for (char *save, *name = strtok_r(names, " ", &save); name;
		     name = strtok_r(NULL, " ", &save)) {
			const struct takt_governor_param low = {name, INT64_MIN},
							 high = {name, INT64_MAX};

			if (takt_governor_check_param(governor, &low, NULL) == 0 ||
			    takt_governor_check_param(governor, &high, NULL) == 0)
				fail_msg("%s of %s may be anything", name, governor->name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_names_a_governor_and_its_parameters),
		cmocka_unit_test(governors_of_others_are_named_like_takts_own),
		cmocka_unit_test(what_cannot_be_is_told_with_what_could),
		cmocka_unit_test(each_parameter_has_its_bounds),
	};

	return cmocka_run_group_tests_name("governor choice", tests, NULL, NULL);
}
