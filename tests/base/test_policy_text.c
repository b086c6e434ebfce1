/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/policy_text.h"

static void a_name_stands_alone_or_with_parameters(void **state)
{
	struct takt_policy_text policy;

	assert_int_equal(takt_policy_text_parse("memory-bound", &policy), 0);
	assert_string_equal(policy.name, "memory-bound");
	assert_int_equal(policy.param_count, 0);
	assert_int_equal(takt_policy_text_parse("fixed:sm_mhz=1200,power_mw=-5", &policy), 0);
	assert_string_equal(policy.name, "fixed");
	assert_int_equal(policy.param_count, 2);
	assert_string_equal(policy.params[0].name, "sm_mhz");
	assert_int_equal(policy.params[0].value, 1200);
	assert_string_equal(policy.params[1].name, "power_mw");
	assert_int_equal(policy.params[1].value, -5);
}

static void what_is_none_is_refused_and_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"",
		":sm_mhz=1",
		"Fixed",
		"fixed sm_mhz=1",
		"fixed:",
		"fixed:sm_mhz",
		"fixed:sm_mhz=",
		"fixed:=1",
		"fixed:sm_mhz=1,",
		"fixed:,sm_mhz=1",
		"fixed:sm_mhz=1.5",
		"fixed:sm_mhz=1 ",
		"fixed:sm mhz=1",
		"fixed:sm_mhz=9223372036854775808",
		"fixed:sm_mhz=0000000000000000000000001",
		"abcdefghijklmnopqrstuvwxyz0123456",
		"a:b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1,r=1",
	};
	struct takt_policy_text policy = {.name = "before"};
	char text[TAKT_POLICY_TEXT + 1];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(wrong); i++)
		if (takt_policy_text_parse(wrong[i], &policy) != -EINVAL)
			fail_msg("'%s' was taken", wrong[i]);
	memset(text, '0', sizeof(text));
	memcpy(text, "fixed:a=1,b=1,c", 15);
	text[TAKT_POLICY_TEXT] = '\0';
	assert_int_equal(takt_policy_text_parse(text, &policy), -EINVAL);
	assert_string_equal(policy.name, "before");
}

static void one_parameter_ends_where_it_is_said_to(void **state)
{
	struct takt_policy_param param;

	assert_int_equal(takt_policy_param_parse("half-way.busy=7 next", 15, &param), 0);
	assert_string_equal(param.name, "half-way.busy");
	assert_int_equal(param.value, 7);
	assert_int_equal(takt_policy_param_parse("a=12", 3, &param), 0);
	assert_int_equal(param.value, 1);
	assert_int_equal(takt_policy_param_parse("a=12", 1, &param), -EINVAL);
	assert_int_equal(takt_policy_param_parse("", 0, &param), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_stands_alone_or_with_parameters),
		cmocka_unit_test(what_is_none_is_refused_and_changes_nothing),
		cmocka_unit_test(one_parameter_ends_where_it_is_said_to),
	};

	return cmocka_run_group_tests_name("policy text", tests, NULL, NULL);
}
