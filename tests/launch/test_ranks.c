/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks under a real shim: what each is told, and whose end is the job's. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "launch_fixture.h"

static struct takt_attempt_spec ranks_sh(const struct fixture *fixture, uint32_t ranks,
					 const char *line)
{
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 1, line);

	spec.ranks = ranks;
	spec.master_port = 29612;
	spec.grace_ms = 20000;
	return spec;
}

static pid_t start(const struct fixture *fixture, struct takt_attempt_spec *spec)
{
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, spec, NULL), 0);
	takt_attempt_spec_fini(spec);
	return shim_start(fixture, 1, 1, NULL);
}

static struct takt_attempt_status run(const struct fixture *fixture, struct takt_attempt_spec spec)
{
	assert_int_equal(wait_pid(start(fixture, &spec)), 0);
	return status_of(fixture, 1, 1);
}

static void test_each_rank_is_told_its_place(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = ranks_sh(
		fixture, 3,
		"echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT "
		">place.$RANK");
	struct takt_attempt_status status;
	char name[16], want[64], *text;

	spec_add_env(&spec, "RANK=9"); /* of a user's shell: not true here */
	status = run(fixture, spec);
	assert_int_equal(status.exit_kind, TAKT_EXIT_EXITED);
	assert_int_equal(status.exit_code, 0);
	assert_string_equal(status.message, "");
	for (int rank = 0; rank < 3; rank++) {
		snprintf(name, sizeof(name), "place.%d", rank);
		snprintf(want, sizeof(want), "%d %d 3 3 127.0.0.1:29612\n", rank, rank);
		text = slurp(fixture, name);
		assert_string_equal(text, want);
		takt_free(text);
	}
}

static void test_a_job_without_ranks_is_told_nothing(void **state)
{
	char *text;

	run_sh(*state, 1, "echo .$RANK.$WORLD_SIZE.$MASTER_PORT. >place");
	text = slurp(*state, "place");
	assert_string_equal(text, "....\n");
	takt_free(text);
}

/* The others would wait for it in a collective call for ever. */
static void test_first_failing_rank_ends_the_job(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_status status = run(
		fixture, ranks_sh(fixture, 3,
				  "trap 'echo told >told.$RANK; exit 0' TERM; echo up >up.$RANK;"
				  "if [ $RANK = 1 ]; then while ! [ -s up.0 -a -s up.2 ]; do sleep "
				  "0.01; done;"
				  "exit 7; fi; while :; do sleep 0.05; done"));
	char *text;

	assert_int_equal(status.exit_kind, TAKT_EXIT_EXITED);
	assert_int_equal(status.exit_code, 7);
	assert_string_equal(status.message, "rank 1 failed with exit status 7");
	text = slurp(fixture, "told.0");
	assert_string_equal(text, "told\n");
	takt_free(text);
	text = slurp(fixture, "told.2");
	assert_string_equal(text, "told\n");
	takt_free(text);
}

static void test_rank_that_will_not_end_is_killed_after_the_grace(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = ranks_sh(
		fixture, 2,
		"if [ $RANK = 1 ]; then while ! [ -s deaf ]; do sleep 0.01; done; kill -SEGV $$;"
		"fi; trap '' TERM; echo deaf >deaf; while :; do sleep 0.05; done");
	struct takt_attempt_status status;

	spec.grace_ms = 100;
	status = run(fixture, spec);
	assert_int_equal(status.exit_kind, TAKT_EXIT_SIGNALED);
	assert_int_equal(status.exit_code, SIGSEGV);
	assert_string_equal(status.message, "rank 1 was killed by signal 11 (Segmentation fault)");
}

/* One that is done first is no failure; the job goes on. */
static void test_job_ends_with_its_last_rank(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_status status = run(
		fixture, ranks_sh(fixture, 2, "[ $RANK = 0 ] && exit 0; sleep 1.5; echo >late"));
	char *text = slurp(fixture, "late");

	assert_int_equal(status.exit_code, 0);
	assert_string_equal(text, "\n");
	takt_free(text);
}

static void test_stop_reaches_all_ranks(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec =
		ranks_sh(fixture, 2,
			 "trap 'echo >told.$RANK; exit 3' TERM; echo >up.$RANK; "
			 "while :; do sleep 0.05; done");
	struct takt_attempt_status status;
	pid_t shim = start(fixture, &spec);

	wait_file(fixture, "up.0");
	wait_file(fixture, "up.1");
	assert_int_equal(kill(shim, SIGTERM), 0);
	assert_int_equal(wait_pid(shim), 0);
	wait_file(fixture, "told.0");
	wait_file(fixture, "told.1");
	status = status_of(fixture, 1, 1);
	assert_int_equal(status.exit_code, 3);
	assert_string_equal(status.message, ""); /* whoever stopped it knows why it ended */
}

static void test_signal_is_passed_on_to_every_rank(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = ranks_sh(
		fixture, 2, "trap 'exit 0' USR1; echo >up.$RANK; while :; do sleep 0.05; done");
	pid_t shim = start(fixture, &spec);

	wait_file(fixture, "up.0");
	wait_file(fixture, "up.1");
	assert_int_equal(kill(shim, SIGUSR1), 0);
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 0);
}

static void test_ranks_that_cannot_be_executed(void **state)
{
	struct fixture *fixture = *state;
	char *argv[] = {(char[]){"./absent"}, NULL};
	struct takt_attempt_spec spec = spec_argv(fixture, 1, 1, argv);
	struct takt_attempt_status status;

	spec.ranks = 4;
	spec.master_port = 29612;
	status = run(fixture, spec);
	assert_string_equal(status.message, "exec './absent': No such file or directory");
	if (status.exit_kind == TAKT_EXIT_EXEC_FAILED)
		assert_int_equal(status.exit_code, ENOENT);
	else /* some were told to stop before they could try */
		assert_int_equal(status.exit_code, 127);
}

static void test_lines_say_which_rank_wrote_them(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = ranks_sh(fixture, 2,
						 "if [ $RANK = 0 ]; then printf 'one\\ntwo\\n'; "
						 "printf 'a\\rb\\r\\n' >&2; printf end;"
						 "else head -c 5000 /dev/zero | tr '\\0' x; fi");
	struct takt_attempt_status status;
	char *log;

	spec.rank_prefix = true;
	status = run(fixture, spec);
	assert_int_equal(status.exit_code, 0);
	log = slurp_log(fixture, 1, 1);
	assert_non_null(strstr(log, "[0] one\n"));
	assert_non_null(strstr(log, "[0] two\n"));
	assert_non_null(strstr(log, "[0] a\r"));
	assert_non_null(strstr(log, "[0] b\r\n"));
	assert_non_null(strstr(log, "[0] end\n"));
	assert_non_null(strstr(log, "[1] xxx"));
	assert_null(strstr(log, "]\n"));
	takt_free(log);
}

static void test_output_of_ranks_has_no_prefix_unless_asked_for(void **state)
{
	struct fixture *fixture = *state;
	char *log;

	run(fixture, ranks_sh(fixture, 2, "[ $RANK = 0 ] || echo line"));
	log = slurp_log(fixture, 1, 1);
	assert_string_equal(log, "line\n");
	takt_free(log);
}

/* No survivors: whatever the ranks leave dies with the shim or is found by the attempt's id. */
static void test_killed_shim_takes_all_ranks_along(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = ranks_sh(fixture, 3, "echo $$ >pid.$RANK; exec sleep 1000");
	char id[TAKT_ATTEMPT_ID_MAX], name[16];
	pid_t shim;
	int left = 1;

	memcpy(id, spec.id, sizeof(id));
	shim = start(fixture, &spec);
	for (int rank = 0; rank < 3; rank++) {
		snprintf(name, sizeof(name), "pid.%d", rank);
		wait_file(fixture, name);
	}
	assert_int_equal(takt_attempt_survivors(id, getuid(), "", NULL, 0, NULL), 3);
	kill(shim, SIGKILL);
	wait_pid(shim);
	for (int i = 0; left > 0 && i < 1000; i++) {
		left = takt_attempt_survivors(id, getuid(), "", NULL, 0, NULL);
		sleep_ms(10);
	}
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_rank_is_told_its_place, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_a_job_without_ranks_is_told_nothing,
						fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_first_failing_rank_ends_the_job, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(
			test_rank_that_will_not_end_is_killed_after_the_grace, fixture_up,
			fixture_down),
		cmocka_unit_test_setup_teardown(test_job_ends_with_its_last_rank, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_stop_reaches_all_ranks, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_signal_is_passed_on_to_every_rank, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_ranks_that_cannot_be_executed, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_lines_say_which_rank_wrote_them, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_output_of_ranks_has_no_prefix_unless_asked_for,
						fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_killed_shim_takes_all_ranks_along, fixture_up,
						fixture_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
