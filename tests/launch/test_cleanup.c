/* SPDX-License-Identifier: Apache-2.0 */
/* Clean-ups that do what they should not: they are the user's programs. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "launch/cleanup.h"
#include "launch_fixture.h"

enum {
	LONG_MS = 100000,
	SHORT_MS = 300,
};

static struct takt_cleanup cleanup_of(const struct takt_attempt_spec *spec, uint32_t limit_ms)
{
	static const struct takt_job_user self;

	return (struct takt_cleanup){.spec = spec,
				     .user = &self,
				     .leaf = "",
				     .logfd = -1,
				     .limit_ms = limit_ms,
				     .kill_limit_ms = LONG_MS};
}

/* What the clean-up of such a line comes to. */
static int clean(const struct fixture *fixture, const char *line, uint32_t limit_ms)
{
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 1, line);
	struct takt_cleanup cleanup;
	int rc;

	spec.cleanup = spec.argv;
	spec.argv = NULL;
	takt_free(spec.cleanup[0]);
	spec.cleanup[0] = takt_strdup("/bin/sh");
	spec_add_env(&spec, "EVIL=trap '' TERM HUP; echo $$ >pid; while :; do sleep 1; done");
	cleanup = cleanup_of(&spec, limit_ms);
	assert_int_equal(chdir(fixture->dir), 0);
	rc = takt_cleanup_run(&cleanup, NULL);
	takt_attempt_spec_fini(&spec);
	return rc;
}

/* We are a subreaper: nothing is below us any more. */
static void expect_nothing_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void expect_gone(const struct fixture *fixture)
{
	char *text = slurp(fixture, "pid");
	pid_t pid = atoi(text);

	takt_free(text);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	expect_nothing_left();
}

static void test_its_end_is_told(void **state)
{
	assert_int_equal(clean(*state, "exit 0", LONG_MS), 0);
	assert_int_equal(clean(*state, "exit 3", LONG_MS), -EAGAIN);
	assert_int_equal(clean(*state, "kill -KILL $$", LONG_MS), -EAGAIN);
}

static void test_one_that_does_not_end_is_ended(void **state)
{
	assert_int_equal(clean(*state, "while :; do :; done", SHORT_MS), -ETIMEDOUT);
	expect_nothing_left();
}

static void test_one_that_stops_itself_is_ended(void **state)
{
	assert_int_equal(clean(*state, "kill -STOP $$", SHORT_MS), -ETIMEDOUT);
	expect_nothing_left();
}

static void test_what_it_leaves_is_ended(void **state)
{
	assert_int_equal(
		clean(*state, "(setsid sh -c \"$EVIL\" &); while [ ! -s pid ]; do sleep 0.01; done",
		      LONG_MS),
		0);
	expect_gone(*state);
}

static void test_what_it_leaves_without_its_environment_is_ended(void **state)
{
	assert_int_equal(clean(*state,
			       "(env -i PATH=$PATH setsid sh -c \"$EVIL\" &);"
			       "while [ ! -s pid ]; do sleep 0.01; done; exit 1",
			       LONG_MS),
			 -EAGAIN);
	expect_gone(*state);
}

static void test_one_that_forks_all_the_time_is_ended(void **state)
{
	assert_int_equal(clean(*state,
			       "f() { while :; do (sleep 0.01) & done; };"
			       "(setsid sh -c \"$EVIL\" &); f & f & sleep 100",
			       SHORT_MS * 4),
			 -ETIMEDOUT);
	expect_nothing_left();
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_up, fixture_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_its_end_is_told),
		CASE(test_one_that_does_not_end_is_ended),
		CASE(test_one_that_stops_itself_is_ended),
		CASE(test_what_it_leaves_is_ended),
		CASE(test_what_it_leaves_without_its_environment_is_ended),
		CASE(test_one_that_forks_all_the_time_is_ended),
	};

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
