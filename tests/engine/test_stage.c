/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine with staged attempts: real launchers, shims and small jobs. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine_fixture.h"

#define JOB_LINE "echo \"ran $GIVEN\" >> ran"

static void expect_outcome(struct engine_fixture *ef, uint64_t action, enum takt_outcome outcome)
{
	const struct takt_engine_event *event = ef_wait(ef, TAKT_ENGINE_OUTCOME, action);

	if (event->outcome != outcome)
		fail_msg("outcome %d, not %d: %s", (int)event->outcome, (int)outcome,
			 event->message);
}

static void expect_ran(struct engine_fixture *ef, const char *want)
{
	char *ran = slurp(ef->launch, "ran");

	assert_string_equal(ran, want);
	takt_free(ran);
}

/* Staged and known to wait. */
static struct takt_attempt_status stage(struct engine_fixture *ef)
{
	ef->lines[1] = JOB_LINE;
	expect_outcome(ef, ef_stage(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	while (status_of(ef->launch, 1, 1).staged != TAKT_STAGED_READY)
		ef_pump_ms(ef, 2);
	return status_of(ef->launch, 1, 1);
}

static void expect_end(struct engine_fixture *ef, enum takt_end end)
{
	const struct takt_engine_event *event = ef_wait(ef, TAKT_ENGINE_ENDED, 1);

	if (event->end != end)
		fail_msg("end %d, not %d: %s", (int)event->end, (int)end, event->message);
	assert_int_equal(takt_engine_local_count(ef->engine), 0);
}

static void expect_runs_once(struct engine_fixture *ef)
{
	expect_end(ef, TAKT_END_EXITED);
	expect_ran(ef, "ran gpus\n");
	assert_int_equal(ef_count(ef, TAKT_ENGINE_STARTED, 1), 1);
}

static void expect_nothing_is_left(struct engine_fixture *ef)
{
	struct takt_attempt_status status = status_of(ef->launch, 1, 1);

	expect_ran(ef, "");
	assert_int_equal(status.state, TAKT_ATTEMPT_EXITED);
	assert_int_equal(status.exit_kind, TAKT_EXIT_VOID);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_STARTED, 1), 0);
}

static void test_waits_for_its_start(void **state)
{
	struct engine_fixture *ef = *state;

	stage(ef);
	ef_pump_ms(ef, 30);
	expect_ran(ef, "");
	assert_int_equal(ef_count(ef, TAKT_ENGINE_STARTED, 1), 0);
	expect_outcome(ef, ef_start_staged(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	expect_runs_once(ef);
}

static void test_start_right_behind(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t start;

	ef->lines[1] = JOB_LINE;
	ef_stage(ef, 1, 1);
	start = ef_start(ef, 1, 1);
	expect_outcome(ef, start, TAKT_OUTCOME_ACCEPTED);
	expect_runs_once(ef);
}

static void test_only_one_start(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t first, second;

	stage(ef);
	first = ef_start(ef, 1, 1);
	second = ef_start(ef, 1, 1);
	expect_outcome(ef, first, TAKT_OUTCOME_ACCEPTED);
	expect_outcome(ef, second, TAKT_OUTCOME_CONFLICT);
	expect_runs_once(ef);
}

static void test_called_off_nothing_is_left(void **state)
{
	struct engine_fixture *ef = *state;

	ef->prefetch = "setsid sleep 1000 & sleep 1000";
	stage(ef);
	expect_outcome(ef, ef_stop(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	expect_end(ef, TAKT_END_NEVER_RAN);
	expect_nothing_is_left(ef);
}

static void test_called_off_before_it_is_made(void **state)
{
	struct engine_fixture *ef = *state;

	ef->lines[1] = JOB_LINE;
	ef_stage(ef, 1, 1);
	expect_outcome(ef, ef_stop(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	while (takt_engine_local_count(ef->engine) > 0)
		ef_pump_ms(ef, 2);
	expect_ran(ef, "");
}

static void test_a_start_behind_a_stop_fails(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t start;

	stage(ef);
	ef_stop(ef, 1, 1);
	start = ef_start(ef, 1, 1);
	expect_outcome(ef, start, TAKT_OUTCOME_FAILED);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_ENDED, 1), 0);
	expect_nothing_is_left(ef);
}

/* It runs and is stopped, or does not run: never neither and never both. */
/* The attempt was called off while its START was on the way: the number is used up. */
static void test_a_start_that_comes_late_starts_nothing(void **state)
{
	struct engine_fixture *ef = *state;

	stage(ef);
	ef_stop(ef, 1, 1);
	expect_end(ef, TAKT_END_NEVER_RAN);
	expect_outcome(ef, ef_start(ef, 1, 1), TAKT_OUTCOME_CONFLICT);
	expect_nothing_is_left(ef);
	ef->event_count = 0;
	expect_outcome(ef, ef_start(ef, 1, 2), TAKT_OUTCOME_ACCEPTED);
	expect_runs_once(ef);
}

/* After a power loss even its directory may be gone: nothing stands in the way but the word. */
static void test_a_start_of_what_is_gone_starts_nothing(void **state)
{
	struct engine_fixture *ef = *state;

	ef->lines[1] = JOB_LINE;
	ef_recover_staged(ef, 1, 1);
	expect_end(ef, TAKT_END_NEVER_RAN);
	expect_outcome(ef, ef_start_staged(ef, 1, 1), TAKT_OUTCOME_CONFLICT);
	expect_ran(ef, "");
}

static void test_a_stop_behind_a_start_ends_it(void **state)
{
	struct engine_fixture *ef = *state;

	stage(ef);
	ef_start(ef, 1, 1);
	ef_stop(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_ENDED, 1);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_ENDED, 1), 1);
	assert_int_equal(takt_engine_local_count(ef->engine), 0);
}

static void restart(struct engine_fixture *ef)
{
	ef_engine_free(ef);
	ef->event_count = 0;
	ef_engine_new(ef);
}

static void test_a_new_engine_finds_it_waiting(void **state)
{
	struct engine_fixture *ef = *state;
	const struct takt_engine_event *adopted;

	stage(ef);
	restart(ef);
	ef_recover_staged(ef, 1, 1);
	adopted = ef_wait(ef, TAKT_ENGINE_ADOPTED, 1);
	assert_true(adopted->staged);
	expect_outcome(ef, ef_start(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	expect_runs_once(ef);
}

static void test_a_new_engine_calls_it_off(void **state)
{
	struct engine_fixture *ef = *state;

	stage(ef);
	restart(ef);
	ef_recover_staged(ef, 1, 1);
	expect_outcome(ef, ef_stop(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	expect_end(ef, TAKT_END_NEVER_RAN);
	expect_nothing_is_left(ef);
}

/* On record as started, but the word was never given: the job may wait again. */
static void test_a_start_that_was_never_said_is_called_off(void **state)
{
	struct engine_fixture *ef = *state;

	stage(ef);
	restart(ef);
	ef_recover(ef, 1, 1);
	expect_end(ef, TAKT_END_NEVER_RAN);
	expect_nothing_is_left(ef);
}

/* The go is written, nobody could tell the shim. */
static void test_a_go_that_was_not_heard_is_said_again(void **state)
{
	struct engine_fixture *ef = *state;

	stage(ef);
	launcher_kill(ef->launch, SIGKILL);
	ef_pump(ef);
	expect_outcome(ef, ef_start(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	assert_true(status_of(ef->launch, 1, 1).handed_over);
	expect_ran(ef, "");
	restart(ef);
	ef_recover(ef, 1, 1);
	ef_pump_ms(ef, 50);
	launcher_start(ef->launch, NULL, NULL);
	takt_launch_client_free(ef->launch->client);
	ef->launch->client = NULL;
	expect_runs_once(ef);
}

static void test_a_killed_shims_prefetch_goes_too(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_attempt_status status;
	char *text, path[40];
	FILE *file;
	int hidden;

	ef->prefetch = "setsid sleep 1000 & echo $! > x; mv x hidden; wait";
	status = stage(ef);
	wait_file(ef->launch, "hidden");
	text = slurp(ef->launch, "hidden");
	hidden = atoi(text);
	takt_free(text);
	assert_int_equal(kill(status.shim.pid, SIGKILL), 0);
	expect_end(ef, TAKT_END_NEVER_RAN);
	expect_nothing_is_left(ef);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", hidden);
	file = fopen(path, "r");
	assert_true(!file || fgetc(file) == EOF); /* gone, or dead and not yet collected */
	if (file)
		fclose(file);
}

static void test_what_cannot_be_handed_over_fails(void **state)
{
	struct engine_fixture *ef = *state;
	char path[128];

	stage(ef);
	snprintf(path, sizeof(path), "%s/1.1/go", ef->launch->jobs);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_outcome(ef, ef_start(ef, 1, 1), TAKT_OUTCOME_FAILED);
	expect_ran(ef, "");
}

static void test_what_cannot_be_described_fails(void **state)
{
	struct engine_fixture *ef = *state;

	stage(ef);
	ef->describe_rc = -EINVAL;
	expect_outcome(ef, ef_start(ef, 1, 1), TAKT_OUTCOME_FAILED);
	expect_nothing_is_left(ef);
}

/* Its owner may say the word himself: then it is ended and reported like what it is. */
static void test_one_that_starts_by_itself_is_ended(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_attempt_status status;
	char command[512];

	ef->lines[1] = "sleep 1000";
	expect_outcome(ef, ef_stage(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	wait_file(ef->launch, "jobs/1.1/staged");
	status = status_of(ef->launch, 1, 1);
	snprintf(command, sizeof(command), "cp %s/1.1/spec %s/1.1/go", ef->launch->jobs,
		 ef->launch->jobs);
	assert_int_equal(system(command), 0);
	assert_int_equal(kill(status.shim.pid, TAKT_SHIM_LOOK_SIGNAL), 0);
	wait_file(ef->launch, "jobs/1.1/started");
	expect_end(ef, TAKT_END_SIGNALED);
}

/* Four times a lease it is said that it is wanted; who is not told so goes. */
static void test_it_is_kept_as_long_as_there_is_an_engine(void **state)
{
	struct engine_fixture *ef = *state;

	ef->stage_lease_ms = 3000;
	restart(ef);
	stage(ef);
	ef_pump_ms(ef, 4500);
	assert_int_equal(status_of(ef->launch, 1, 1).state, TAKT_ATTEMPT_ALIVE);
	ef_engine_free(ef);
	assert_int_equal(wait_state(ef->launch, 1, 1, TAKT_ATTEMPT_EXITED).exit_kind,
			 TAKT_EXIT_VOID);
	ef_engine_new(ef);
	ef_recover_staged(ef, 1, 1);
	expect_end(ef, TAKT_END_NEVER_RAN);
	expect_ran(ef, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, ef_up, ef_down)
		CASE(test_waits_for_its_start),
		CASE(test_start_right_behind),
		CASE(test_only_one_start),
		CASE(test_called_off_nothing_is_left),
		CASE(test_called_off_before_it_is_made),
		CASE(test_a_start_behind_a_stop_fails),
		CASE(test_a_start_that_comes_late_starts_nothing),
		CASE(test_a_start_of_what_is_gone_starts_nothing),
		CASE(test_a_stop_behind_a_start_ends_it),
		CASE(test_a_new_engine_finds_it_waiting),
		CASE(test_a_new_engine_calls_it_off),
		CASE(test_a_start_that_was_never_said_is_called_off),
		CASE(test_a_go_that_was_not_heard_is_said_again),
		CASE(test_a_killed_shims_prefetch_goes_too),
		CASE(test_what_cannot_be_handed_over_fails),
		CASE(test_what_cannot_be_described_fails),
		CASE(test_one_that_starts_by_itself_is_ended),
		CASE(test_it_is_kept_as_long_as_there_is_an_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
