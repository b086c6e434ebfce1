/* SPDX-License-Identifier: Apache-2.0 */
/* A staged attempt waits, starts once when its turn has come, or leaves nothing. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "launch_fixture.h"

enum {
	LEASE_MS = 600000
};

#define JOB_LINE "echo ran >> ran; echo \"gpus=$CUDA_VISIBLE_DEVICES\" > gpus"

/* As the engine would write it: nobody has given it a GPU yet. */
static struct takt_attempt_spec staged_spec(const struct fixture *fixture, const char *prefetch)
{
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 1, JOB_LINE);

	spec_add_env(&spec, "CUDA_VISIBLE_DEVICES=");
	spec.stage_lease_ms = LEASE_MS;
	if (!prefetch)
		return spec;
	spec.prefetch_limit_ms = LEASE_MS;
	spec.prefetch = takt_calloc(4, sizeof(*spec.prefetch));
	assert_non_null(spec.prefetch);
	spec.prefetch[0] = takt_strdup("sh");
	spec.prefetch[1] = takt_strdup("-c");
	spec.prefetch[2] = takt_strdup(prefetch);
	return spec;
}

static void create(const struct fixture *fixture, struct takt_attempt_spec spec)
{
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
}

static struct takt_attempt_status wait_staged(const struct fixture *fixture)
{
	struct takt_attempt_status status;

	wait_file(fixture, "jobs/1.1/staged");
	status = status_of(fixture, 1, 1);
	assert_int_equal(status.state, TAKT_ATTEMPT_ALIVE);
	assert_int_equal(status.staged, TAKT_STAGED_READY);
	assert_false(status.started);
	return status;
}

static pid_t stage(const struct fixture *fixture, const char *prefetch, const char *crash_at)
{
	create(fixture, staged_spec(fixture, prefetch));
	return shim_start(fixture, 1, 1, crash_at);
}

static void write_go(const struct fixture *fixture)
{
	struct takt_attempt_spec go = staged_spec(fixture, NULL);

	takt_free(go.env[2]);
	go.env[2] = takt_strdup("CUDA_VISIBLE_DEVICES=3,5");
	assert_int_equal(takt_attempt_hand_over(fixture->sys, fixture->jobs_dirfd, &go, NULL), 0);
	takt_attempt_spec_fini(&go);
}

static void go(const struct fixture *fixture, pid_t shim)
{
	write_go(fixture);
	assert_int_equal(kill(shim, TAKT_SHIM_LOOK_SIGNAL), 0);
}

static bool is_there(const struct fixture *fixture, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
	return access(path, F_OK) == 0;
}

static void expect_text(const struct fixture *fixture, const char *name, const char *want)
{
	char *text = slurp(fixture, name);

	assert_string_equal(text, want);
	takt_free(text);
}

static void expect_in_log(const struct fixture *fixture, const char *want)
{
	char *log = slurp_log(fixture, 1, 1);

	if (!strstr(log, want))
		fail_msg("'%s' is not in the log: %s", want, log);
	takt_free(log);
}

static void expect_no_survivors(const struct fixture *fixture)
{
	struct takt_attempt_spec spec = staged_spec(fixture, NULL);

	assert_int_equal(takt_attempt_survivors(spec.id, getuid(), "", NULL, 0, NULL), 0);
	takt_attempt_spec_fini(&spec);
}

/* It ran, once, and ended well. */
static void expect_ran(const struct fixture *fixture, pid_t shim)
{
	struct takt_attempt_status status;

	assert_int_equal(wait_pid(shim), 0);
	status = status_of(fixture, 1, 1);
	assert_int_equal(status.state, TAKT_ATTEMPT_EXITED);
	assert_int_equal(status.exit_kind, TAKT_EXIT_EXITED);
	assert_int_equal(status.exit_code, 0);
	expect_text(fixture, "ran", "ran\n");
	expect_text(fixture, "gpus", "gpus=3,5\n");
	expect_no_survivors(fixture);
}

static void expect_void(const struct fixture *fixture, pid_t shim)
{
	struct takt_attempt_status status;

	assert_int_equal(wait_pid(shim), 0);
	status = status_of(fixture, 1, 1);
	assert_int_equal(status.state, TAKT_ATTEMPT_EXITED);
	assert_int_equal(status.exit_kind, TAKT_EXIT_VOID);
	assert_false(status.started);
	assert_false(is_there(fixture, "ran"));
	expect_no_survivors(fixture);
}

static void test_waits_for_its_turn_and_gets_its_gpus_then(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, NULL, NULL);

	wait_staged(fixture);
	assert_int_equal(kill(shim, TAKT_SHIM_LOOK_SIGNAL), 0); /* it is not its turn yet */
	sleep_ms(50);
	wait_staged(fixture);
	assert_false(is_there(fixture, "ran"));
	go(fixture, shim);
	assert_int_equal(kill(shim, TAKT_SHIM_LOOK_SIGNAL), 0); /* told twice, it runs once */
	expect_ran(fixture, shim);
}

static void test_called_off_it_leaves_nothing(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, "sleep 1000 & sleep 1000", NULL);

	wait_staged(fixture);
	kill(shim, SIGTERM);
	expect_void(fixture, shim);
	expect_in_log(fixture, "called off before its turn");
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)) != 0, 1); /* used once */
	assert_false(is_there(fixture, "ran"));
}

/* A go that is there but was not announced does not count any more. */
static void test_called_off_with_its_go_unread_it_does_not_run(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, NULL, NULL);

	wait_staged(fixture);
	write_go(fixture);
	assert_true(status_of(fixture, 1, 1).handed_over);
	kill(shim, SIGTERM);
	expect_void(fixture, shim);
}

static void test_goes_when_nobody_wants_it_any_more(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = staged_spec(fixture, NULL);

	spec.stage_lease_ms = 50;
	create(fixture, spec);
	expect_void(fixture, shim_start(fixture, 1, 1, NULL));
	expect_in_log(fixture, "takt has not been heard of for too long");
}

static void test_a_go_of_another_attempt_is_not_taken(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = staged_spec(fixture, NULL);
	pid_t shim = stage(fixture, NULL, NULL);

	wait_staged(fixture);
	snprintf(spec.id, sizeof(spec.id), "1.1.other");
	takt_free(spec.env[1]);
	spec.env[1] = takt_strdup("TAKT_ATTEMPT=1.1.other");
	assert_int_equal(takt_attempt_hand_over(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
	assert_int_equal(kill(shim, TAKT_SHIM_LOOK_SIGNAL), 0);
	expect_void(fixture, shim);
}

static void test_prefetch_runs_apart_and_low(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture,
			   "echo \"gpus=[$CUDA_VISIBLE_DEVICES]\"; cut -d' ' -f19,41 "
			   "/proc/$$/stat > prio.new; mv prio.new prio; exit 3",
			   NULL);

	wait_staged(fixture);
	wait_file(fixture, "prio");
	go(fixture, shim);
	expect_ran(fixture, shim);
	expect_text(fixture, "prio", "19 5\n"); /* nice, SCHED_IDLE */
	expect_in_log(fixture, "gpus=[]\n");
}

static void test_a_prefetch_that_fails_is_noted_and_the_job_runs(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, "touch fetched; exit 3", NULL);

	wait_staged(fixture);
	for (int i = 0; i < 5000 && status_of(fixture, 1, 1).staged; i++) {
		char *log = slurp_log(fixture, 1, 1);
		bool said = strstr(log, "prefetch: exit status 3; the job is not affected");

		takt_free(log);
		if (said)
			break;
		sleep_ms(2);
	}
	go(fixture, shim);
	expect_ran(fixture, shim);
	expect_in_log(fixture, "prefetch: exit status 3; the job is not affected");
}

/* Whatever it has started, and however it hides. */
static void test_prefetch_is_over_before_the_job_runs(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_status status;
	pid_t shim = stage(fixture,
			   "setsid sleep 1000 & echo $! > hidden.new; mv hidden.new hidden; "
			   "sleep 1000",
			   NULL);
	int hidden;
	char *text;

	wait_staged(fixture);
	wait_file(fixture, "hidden");
	text = slurp(fixture, "hidden");
	hidden = atoi(text);
	takt_free(text);
	assert_int_equal(kill(hidden, 0), 0);
	go(fixture, shim);
	do {
		status = status_of(fixture, 1, 1);
	} while (!status.started);
	assert_int_equal(kill(hidden, 0), -1);
	expect_ran(fixture, shim);
	expect_in_log(fixture, "prefetch: ended by signal 9");
}

static void test_prefetch_has_a_limit(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = staged_spec(fixture, "sleep 1000");
	pid_t shim;

	spec.prefetch_limit_ms = 20;
	create(fixture, spec);
	shim = shim_start(fixture, 1, 1, NULL);
	wait_staged(fixture);
	for (int i = 0; i < 5000; i++) {
		char *log = slurp_log(fixture, 1, 1);
		bool said = strstr(log, "took longer than 20 ms");

		takt_free(log);
		if (said)
			break;
		sleep_ms(2);
	}
	expect_in_log(fixture, "took longer than 20 ms");
	wait_staged(fixture); /* the job's place is kept */
	go(fixture, shim);
	expect_ran(fixture, shim);
}

static void test_what_waits_is_killed(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, NULL, NULL);
	char *text;
	int pid = 0;

	wait_staged(fixture);
	text = slurp(fixture, "jobs/1.1/staged");
	assert_int_equal(sscanf(text, "takt-staged 1 pid=%d", &pid), 1);
	takt_free(text);
	assert_int_equal(kill(pid, SIGKILL), 0);
	expect_void(fixture, shim);
}

/* A later build's: its process may only be called off. */
static void test_a_record_of_another_version_is_not_taken_for_ready(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, NULL, NULL);
	char path[128];
	int fd;

	wait_staged(fixture);
	snprintf(path, sizeof(path), "%s/jobs/1.1/staged", fixture->dir);
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "takt-staged 2 x=1\n", 18), 18);
	close(fd);
	assert_int_equal(status_of(fixture, 1, 1).staged, TAKT_STAGED_UNKNOWN);
	kill(shim, SIGTERM);
	expect_void(fixture, shim);
}

/* Killed at each step before its turn nothing ran, and nothing of it will. */
static void test_a_shim_killed_while_it_waits_ran_nothing(void **state)
{
	static const char *const points[] = {"shim.after_fork", "shim.before_staged",
					     "shim.after_staged", "shim.after_prefetch"};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(points); i++) {
		struct takt_attempt_status status;
		/* By itself: what it had started would outlive it until somebody looks. */
		pid_t shim = stage(fixture, "exec sleep 1000", points[i]);

		assert_int_equal(WTERMSIG(wait_pid(shim)), SIGKILL);
		status = wait_state(fixture, 1, 1, TAKT_ATTEMPT_NOT_STARTED);
		assert_false(status.started);
		assert_int_equal(takt_attempt_void(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL),
				 0);
		for (int tries = 0; tries < 5000; tries++) {
			struct takt_attempt_spec spec = staged_spec(fixture, NULL);
			int left = takt_attempt_survivors(spec.id, getuid(), "", NULL, 0, NULL);

			takt_attempt_spec_fini(&spec);
			if (left == 0)
				break;
			sleep_ms(2);
		}
		expect_no_survivors(fixture);
		assert_false(is_there(fixture, "ran"));
		assert_int_equal(takt_attempt_remove(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL),
				 0);
	}
}

static void test_a_shim_killed_between_its_turn_and_the_record_ran_nothing(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, NULL, "shim.after_wait");

	wait_staged(fixture);
	go(fixture, shim);
	assert_int_equal(WTERMSIG(wait_pid(shim)), SIGKILL);
	assert_false(wait_state(fixture, 1, 1, TAKT_ATTEMPT_NOT_STARTED).started);
	sleep_ms(20);
	assert_false(is_there(fixture, "ran"));
}

static void test_a_shim_killed_as_it_voids_ran_nothing(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = stage(fixture, NULL, "shim.before_void");

	wait_staged(fixture);
	kill(shim, SIGTERM);
	assert_int_equal(WTERMSIG(wait_pid(shim)), SIGKILL);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_NOT_STARTED);
	assert_int_equal(takt_attempt_void(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL), 0);
	assert_false(is_there(fixture, "ran"));
}

/* The same by way of a launcher; what its shims prefetched ends with them. */
static void test_a_launcher_passes_the_word_on(void **state)
{
	struct fixture *fixture = *state;
	struct takt_launch_request look = {
		.op = TAKT_LAUNCH_LOOK, .job_id = 1, .attempt = 1, .uid = getuid()};
	struct takt_launch_reply reply;
	int rc;

	create(fixture, staged_spec(fixture, NULL));
	launcher_start(fixture, NULL, NULL);
	launcher_connect(fixture);
	reply = ask_start(fixture, 1, 1);
	assert_int_equal(reply.rc, 0);
	look.target = wait_staged(fixture).shim;
	assert_int_equal(ask(fixture, look).rc, 0); /* no go yet: it is still wanted */
	wait_staged(fixture);
	write_go(fixture);
	assert_int_equal(ask(fixture, look).rc, 0);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	expect_text(fixture, "gpus", "gpus=3,5\n");
	while ((rc = ask(fixture, look).rc) == 0)
		sleep_ms(2); /* its end is on record before it is gone */
	assert_int_equal(rc, -ESRCH);
}

static void test_a_dead_shims_prefetch_is_reaped(void **state)
{
	struct fixture *fixture = *state;
	struct takt_launch_request reap = {
		.op = TAKT_LAUNCH_REAP, .job_id = 1, .attempt = 1, .uid = getuid()};
	struct takt_launch_reply reply;

	create(fixture,
	       staged_spec(fixture, "setsid sleep 1000 & echo $! > x.new; mv x.new hidden; wait"));
	launcher_start(fixture, NULL, NULL);
	launcher_connect(fixture);
	assert_int_equal(ask_start(fixture, 1, 1).rc, 0);
	reply.shim = wait_staged(fixture).shim;
	wait_file(fixture, "hidden");
	assert_int_equal(kill(reply.shim.pid, SIGKILL), 0);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_NOT_STARTED);
	do {
		reply = ask(fixture, reap);
		sleep_ms(2);
	} while (reply.rc > 0 || reply.rc == -TAKT_E_CONFLICT);
	assert_int_equal(reply.rc, 0);
	expect_no_survivors(fixture);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_up, fixture_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_waits_for_its_turn_and_gets_its_gpus_then),
		TEST(test_called_off_it_leaves_nothing),
		TEST(test_called_off_with_its_go_unread_it_does_not_run),
		TEST(test_goes_when_nobody_wants_it_any_more),
		TEST(test_a_go_of_another_attempt_is_not_taken),
		TEST(test_prefetch_runs_apart_and_low),
		TEST(test_a_prefetch_that_fails_is_noted_and_the_job_runs),
		TEST(test_prefetch_is_over_before_the_job_runs),
		TEST(test_prefetch_has_a_limit),
		TEST(test_what_waits_is_killed),
		TEST(test_a_record_of_another_version_is_not_taken_for_ready),
		TEST(test_a_shim_killed_while_it_waits_ran_nothing),
		TEST(test_a_shim_killed_between_its_turn_and_the_record_ran_nothing),
		TEST(test_a_shim_killed_as_it_voids_ran_nothing),
		TEST(test_a_launcher_passes_the_word_on),
		TEST(test_a_dead_shims_prefetch_is_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
