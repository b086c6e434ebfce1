/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of users: written and read back, those of a log-in, taken by a process. And whose jobs do
 * not run at all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/system_users.h"
#include "launch/user_limits.h"

static struct takt_user_limits own(void)
{
	struct takt_user_limits limits = {0};

	assert_int_equal(takt_user_limits_read(&limits, NULL), 0);
	assert_true(limits.known);
	return limits;
}

static void test_they_come_back(void **state)
{
	struct takt_user_limits limits = {.known = true}, got = {0};
	char text[TAKT_USER_LIMITS_TEXT];

	for (int i = 0; i < RLIM_NLIMITS; i++)
		limits.of[i] = (struct rlimit){i % 3 ? (rlim_t)i : RLIM_INFINITY - 1,
					       i % 2 ? RLIM_INFINITY : RLIM_INFINITY - 1};
	takt_user_limits_format(&limits, text);
	assert_int_equal(takt_user_limits_parse(text, &got, NULL), 0);
	assert_true(got.known);
	assert_memory_equal(got.of, limits.of, sizeof(got.of));
	limits.known = false;
	takt_user_limits_format(&limits, text);
	assert_string_equal(text, "");
	assert_int_equal(takt_user_limits_parse(text, &got, NULL), 0);
	assert_false(got.known);
}

/* A text that is cut off anywhere, has a word too many or is another's is none. */
static void test_nothing_else_is_believed(void **state)
{
	static const char *const bad[] = {"1", "1:2", ":", ",", "-:-", "x:1", "1:2,3:4,"};
	struct takt_user_limits limits = own(), got = {0};
	char text[TAKT_USER_LIMITS_TEXT], more[TAKT_USER_LIMITS_TEXT + 8];
	struct takt_err err;

	takt_user_limits_format(&limits, text);
	for (size_t len = strrchr(text, ':') - text + 1; len > 0; len--) {
		memcpy(more, text, len);
		more[len] = '\0';
		assert_int_equal(takt_user_limits_parse(more, &got, &err), -EINVAL);
	}
	snprintf(more, sizeof(more), "%s,1:1", text);
	assert_int_equal(takt_user_limits_parse(more, &got, &err), -EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(takt_user_limits_parse(bad[i], &got, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "SOFT:HARD"));
	assert_false(got.known);
}

/* Of a process that has more, or less, than a log-in. */
static void test_those_of_a_login_are_not_ours(void **state)
{
	const struct rlimit files = {16, own().of[RLIMIT_NOFILE].rlim_max};
	const struct rlimit core = {4096, own().of[RLIMIT_CORE].rlim_max};
	struct takt_user_limits limits = {0};
	int status;

	if (fork() == 0) {
		if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &core) < 0)
			_exit(1);
		takt_user_limits_default(&limits);
		_exit(limits.known && limits.of[RLIMIT_NOFILE].rlim_cur == 1024 &&
				      limits.of[RLIMIT_NOFILE].rlim_max <= 524288 &&
				      limits.of[RLIMIT_MEMLOCK].rlim_cur <= 8 << 20 &&
				      limits.of[RLIMIT_CORE].rlim_cur == 0
			      ? 42
			      : 2);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(WEXITSTATUS(status), 42);
}

static int take_lower(void)
{
	struct takt_user_limits limits = own(), got;

	limits.of[RLIMIT_NOFILE] = (struct rlimit){100, 200};
	limits.of[RLIMIT_FSIZE] = (struct rlimit){1000, 2000};
	if (takt_user_limits_take(&limits, NULL) < 0 || takt_user_limits_read(&got, NULL) < 0)
		return 1;
	if (memcmp(got.of, limits.of, sizeof(got.of)) != 0)
		return 2;
	/* What may not be raised is had as far as it may be. */
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 77;
	limits.of[RLIMIT_NOFILE] = (struct rlimit){300, 300};
	if (takt_user_limits_take(&limits, NULL) < 0 || takt_user_limits_read(&got, NULL) < 0)
		return 3;
	return got.of[RLIMIT_NOFILE].rlim_cur == 200 && got.of[RLIMIT_NOFILE].rlim_max == 200 ? 42
											      : 4;
}

static void test_they_are_taken(void **state)
{
	int status;

	if (fork() == 0)
		_exit(take_lower());
	assert_true(wait(&status) > 0);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 42);
}

static void test_unknown_ones_change_nothing(void **state)
{
	const struct takt_user_limits before = own(), unknown = {0};

	assert_int_equal(takt_user_limits_take(&unknown, NULL), 0);
	takt_user_limits_make_room(&unknown);
	assert_memory_equal(own().of, before.of, sizeof(before.of));
}

static void test_users_of_the_system(void **state)
{
	static const uid_t system[] = {1, 33, 999, 61184, 65519, 65534, 65535};
	static const uid_t people[] = {1000, 4242, 60000, 61183, 65536, 1234567890};
	struct takt_err err;

	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		assert_int_equal(takt_system_users_check(system[i], 1000, &err), -EPERM);
	assert_non_null(strstr(err.msg, "65535"));
	assert_non_null(strstr(err.msg, "allow_system_users"));
	for (size_t i = 0; i < sizeof(people) / sizeof(people[0]); i++)
		assert_int_equal(takt_system_users_check(people[i], 1000, &err), 0);
	assert_true(takt_system_users_below("") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_they_come_back),
		cmocka_unit_test(test_nothing_else_is_believed),
		cmocka_unit_test(test_those_of_a_login_are_not_ours),
		cmocka_unit_test(test_they_are_taken),
		cmocka_unit_test(test_unknown_ones_change_nothing),
		cmocka_unit_test(test_users_of_the_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
