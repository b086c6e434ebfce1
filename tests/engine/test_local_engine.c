/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine with a real launcher and real small jobs. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine_fixture.h"

static void expect_outcome(struct engine_fixture *ef, uint64_t action, enum takt_outcome outcome)
{
	const struct takt_engine_event *event = ef_wait(ef, TAKT_ENGINE_OUTCOME, action);

	if (event->outcome != outcome)
		fail_msg("outcome %d, not %d: %s", (int)event->outcome, (int)outcome,
			 event->message);
}

static const struct takt_engine_event *expect_end(struct engine_fixture *ef, uint64_t job,
						  enum takt_end end, int code)
{
	const struct takt_engine_event *event = ef_wait(ef, TAKT_ENGINE_ENDED, job);

	if (event->end != end || event->code != code)
		fail_msg("end %d code %d, not %d and %d: %s", (int)event->end, event->code,
			 (int)end, code, event->message);
	return event;
}

static void test_job_runs_from_outcome_to_end(void **state)
{
	struct engine_fixture *ef = *state;
	const struct takt_engine_event *end;
	uint64_t action;

	ef->lines[1] = "sleep 0.05; exit 6";
	action = ef_start(ef, 1, 1);
	end = expect_end(ef, 1, TAKT_END_EXITED, 6);
	assert_true(end->run_ns >= 50 * TAKT_NS_PER_MS);
	assert_int_equal(ef->event_count, 3);
	assert_int_equal(ef->events[0].kind, TAKT_ENGINE_OUTCOME);
	assert_int_equal(ef->events[0].action_id, action);
	assert_int_equal(ef->events[0].outcome, TAKT_OUTCOME_ACCEPTED);
	assert_int_equal(ef->events[1].kind, TAKT_ENGINE_STARTED);
	assert_true(ef->events[1].pid > 0);
	assert_true(ef->events[1].at.ns > 0);
	for (size_t i = 0; i < ef->event_count; i++)
		assert_int_equal(ef->events[i].seq, i + 1);
	assert_int_equal(takt_engine_local_count(ef->engine), 0);
}

static void test_exec_failure_is_the_jobs_own(void **state)
{
	struct engine_fixture *ef = *state;

	ef->lines[1] = "exec /no/such/program";
	ef_start(ef, 1, 1);
	expect_end(ef, 1, TAKT_END_EXITED, 127);
}

static void test_stop_ends_it(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t stop;

	ef->lines[1] = "sleep 60";
	ef_start(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_STARTED, 1);
	stop = ef_stop(ef, 1, 1);
	expect_outcome(ef, stop, TAKT_OUTCOME_ACCEPTED);
	expect_end(ef, 1, TAKT_END_SIGNALED, SIGTERM);
}

/* A grace of an hour, and nothing of the job listens: the launcher ends it by itself. */
static void test_what_outlives_its_grace_is_ended(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_boot now;
	uint64_t next_ns;

	ef->grace_ms = 3600 * 1000;
	ef->lines[1] = "trap '' TERM; setsid sleep 600 & while :; do sleep 600; done";
	ef_start(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_STARTED, 1);
	expect_outcome(ef, ef_stop(ef, 1, 1), TAKT_OUTCOME_ACCEPTED);
	now = takt_boot_now(takt_sys_real());
	now.ns += 90 * TAKT_NS_PER_S;
	assert_int_equal(takt_engine_pump(ef->engine, now, &next_ns, NULL), 0);
	ef_pump_ms(ef, 100);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_ENDED, 1), 0);
	now.ns += 31 * TAKT_NS_PER_S;
	assert_int_equal(takt_engine_pump(ef->engine, now, &next_ns, NULL), 0);
	expect_end(ef, 1, TAKT_END_SIGNALED, SIGKILL);
}

static void test_stop_right_behind_start(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t stop;

	ef->lines[1] = "sleep 60";
	ef_start(ef, 1, 1);
	stop = ef_stop(ef, 1, 1);
	expect_outcome(ef, stop, TAKT_OUTCOME_ACCEPTED);
	ef_wait(ef, TAKT_ENGINE_ENDED, 1);
}

static void test_stop_without_launcher_voids(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t start, stop;

	launcher_kill(ef->launch, SIGKILL);
	start = ef_start(ef, 1, 1);
	ef_pump(ef);
	stop = ef_stop(ef, 1, 1);
	expect_outcome(ef, start, TAKT_OUTCOME_FAILED);
	expect_outcome(ef, stop, TAKT_OUTCOME_ACCEPTED);
	assert_int_equal(status_of(ef->launch, 1, 1).exit_kind, TAKT_EXIT_VOID);
}

/* The launcher was asked, then stopped, then died: the start is not sent again. */
static void test_stop_while_the_launcher_was_asked_voids(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t start, stop, began = takt_boot_now(takt_sys_real()).ns;

	ef_start(ef, 2, 1);
	ef_wait(ef, TAKT_ENGINE_ENDED, 2);
	assert_int_equal(kill(ef->launch->launcher, SIGSTOP), 0);
	start = ef_start(ef, 1, 1);
	ef_pump(ef);
	stop = ef_stop(ef, 1, 1);
	ef_pump(ef);
	launcher_kill(ef->launch, SIGKILL);
	expect_outcome(ef, start, TAKT_OUTCOME_FAILED);
	expect_outcome(ef, stop, TAKT_OUTCOME_ACCEPTED);
	assert_int_equal(status_of(ef->launch, 1, 1).exit_kind, TAKT_EXIT_VOID);
	assert_true(takt_boot_now(takt_sys_real()).ns - began < 5 * TAKT_NS_PER_S);
}

static void test_signal_reaches_the_job(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t sig;

	ef->lines[1] = "trap 'exit 11' USR1; echo x > ready; while :; do sleep 0.01; done";
	ef_start(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_STARTED, 1);
	wait_file(ef->launch, "ready");
	sig = ef_signal(ef, 1, 1, SIGUSR1);
	expect_outcome(ef, sig, TAKT_OUTCOME_ACCEPTED);
	expect_end(ef, 1, TAKT_END_EXITED, 11);
}

static void test_the_same_action_twice_is_one(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_action action = {
		.id = 99, .kind = TAKT_ACTION_START, .job_id = 1, .attempt = 1};
	char *ran;

	ef->lines[1] = "echo x >> ran";
	assert_int_equal(takt_engine_apply(ef->engine, &action, 1, NULL), 0);
	assert_int_equal(takt_engine_apply(ef->engine, &action, 1, NULL), 0);
	expect_end(ef, 1, TAKT_END_EXITED, 0);
	assert_int_equal(takt_engine_apply(ef->engine, &action, 1, NULL), 0);
	ef_pump_ms(ef, 50);
	ran = slurp(ef->launch, "ran");
	assert_string_equal(ran, "x\n");
	takt_free(ran);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_OUTCOME, 99), 2); /* said again, not done again */
	assert_int_equal(ef_count(ef, TAKT_ENGINE_ENDED, 1), 1);
}

static void test_contradictions_are_conflicts(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t again, other, late;

	ef->lines[1] = "sleep 0.2";
	ef_start(ef, 1, 1);
	again = ef_start(ef, 1, 1);
	other = ef_start(ef, 1, 2);
	expect_outcome(ef, again, TAKT_OUTCOME_CONFLICT);
	expect_outcome(ef, other, TAKT_OUTCOME_CONFLICT);
	expect_end(ef, 1, TAKT_END_EXITED, 0);
	late = ef_start(ef, 1, 1); /* has ended: never again */
	expect_outcome(ef, late, TAKT_OUTCOME_CONFLICT);
	late = ef_stop(ef, 1, 1);
	expect_outcome(ef, late, TAKT_OUTCOME_CONFLICT);
}

static void test_what_cannot_be_described_fails(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t action;

	ef->describe_rc = -TAKT_E_NOT_FOUND;
	action = ef_start(ef, 1, 1);
	expect_outcome(ef, action, TAKT_OUTCOME_FAILED);
	assert_non_null(strstr(ef_wait(ef, TAKT_ENGINE_OUTCOME, action)->message, "no such job"));
	assert_int_equal(ef_wait(ef, TAKT_ENGINE_OUTCOME, action)->refusal, TAKT_REFUSAL_ATTEMPT);
	assert_int_equal(takt_engine_local_count(ef->engine), 0);
}

static void test_missing_launcher_fails_the_start_for_good(void **state)
{
	struct engine_fixture *ef = *state;
	const struct takt_engine_event *event;
	uint64_t action;

	launcher_kill(ef->launch, SIGKILL);
	ef_engine_free(ef);
	ef->patience_ms = 50;
	ef_engine_new(ef);
	ef->lines[1] = "echo x >> ran";
	action = ef_start(ef, 1, 1);
	expect_outcome(ef, action, TAKT_OUTCOME_FAILED);
	event = ef_wait(ef, TAKT_ENGINE_OUTCOME, action);
	assert_int_equal(event->refusal, TAKT_REFUSAL_LAUNCHER);
	assert_non_null(strstr(event->message, "connect to the launcher"));
	assert_int_equal(status_of(ef->launch, 1, 1).exit_kind, TAKT_EXIT_VOID);
}

static void test_start_waits_for_a_launcher_to_come_back(void **state)
{
	struct engine_fixture *ef = *state;
	uint64_t action;

	launcher_kill(ef->launch, SIGKILL);
	action = ef_start(ef, 1, 1);
	ef_pump_ms(ef, 50);
	launcher_start(ef->launch, NULL, NULL);
	takt_launch_client_free(ef->launch->client);
	ef->launch->client = NULL;
	expect_outcome(ef, action, TAKT_OUTCOME_ACCEPTED);
	expect_end(ef, 1, TAKT_END_EXITED, 0);
}

static void test_job_outlives_engine_and_launcher(void **state)
{
	struct engine_fixture *ef = *state;

	ef->lines[1] = "echo x > ready; until [ -e on ]; do sleep 0.01; done; exit 8";
	ef_start(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_STARTED, 1);
	ef_engine_free(ef);
	launcher_kill(ef->launch, SIGKILL);
	ef->event_count = 0;
	ef_engine_new(ef);
	ef_recover(ef, 1, 1);
	assert_true(ef_wait(ef, TAKT_ENGINE_ADOPTED, 1)->pid > 0);
	put_file(ef->launch, "on");
	expect_end(ef, 1, TAKT_END_EXITED, 8);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_STARTED, 1), 0);
}

static void test_end_while_the_engine_was_away(void **state)
{
	struct engine_fixture *ef = *state;

	ef->lines[1] = "exit 5";
	ef_start(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_OUTCOME, 1);
	ef_engine_free(ef);
	wait_state(ef->launch, 1, 1, TAKT_ATTEMPT_EXITED);
	ef->event_count = 0;
	ef_engine_new(ef);
	ef_recover(ef, 1, 1);
	expect_end(ef, 1, TAKT_END_EXITED, 5);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_ADOPTED, 1), 0);
}

/* A disk that answers nothing while it is `out`, and who asked it. */
static struct {
	struct takt_sys sys;
	const struct takt_sys *real;
	bool out;
	unsigned asked;
} disk;

static int openat_or_not(const struct takt_sys *sys, int dirfd, const char *path, int flags,
			 mode_t mode)
{
	if (!disk.out)
		return disk.real->openat(disk.real, dirfd, path, flags, mode);
	disk.asked++;
	return -EIO;
}

/* Pumps whenever the engine wants it, for so long by a clock of our own. */
static void live_for(struct engine_fixture *ef, struct takt_boot *now, uint64_t seconds)
{
	uint64_t end_ns = now->ns + seconds * TAKT_NS_PER_S, next_ns;

	while (now->ns < end_ns) {
		next_ns = 0;
		assert_int_equal(takt_engine_pump(ef->engine, *now, &next_ns, NULL), 0);
		if (next_ns == 0 || next_ns > end_ns)
			next_ns = end_ns;
		now->ns = next_ns > now->ns ? next_ns : now->ns + 1;
	}
}

static void test_hours_without_a_disk_are_few_looks(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_boot now = takt_boot_now(takt_sys_real());

	disk.real = ef->launch->sys;
	disk.sys = *disk.real;
	disk.sys.openat = openat_or_not;
	disk.out = false;
	ef_engine_free(ef);
	ef->launch->sys = &disk.sys;
	ef_engine_new(ef);
	disk.out = true;
	disk.asked = 0;
	ef_recover(ef, 1, 1);
	live_for(ef, &now, 1);
	assert_in_range(disk.asked, 5, 15);
	live_for(ef, &now, 6 * 3600);
	assert_in_range(disk.asked, 100, 6 * 3600 + 15);
	disk.out = false;
	live_for(ef, &now, 2);
	assert_int_equal(ef_count(ef, TAKT_ENGINE_ENDED, 1), 1);
	ef->launch->sys = disk.real;
}

static void test_recovered_attempts_that_never_ran(void **state)
{
	struct engine_fixture *ef = *state;

	create_sh(ef->launch, 1, 1, 2000, "echo x >> ran"); /* a spec, never asked for */
	ef_recover(ef, 1, 1);
	ef_recover(ef, 2, 3); /* not even a directory */
	expect_end(ef, 1, TAKT_END_NEVER_RAN, 0);
	expect_end(ef, 2, TAKT_END_NEVER_RAN, 0);
	assert_int_equal(status_of(ef->launch, 1, 1).exit_kind, TAKT_EXIT_VOID);
}

/* A start on its way when the daemon died must not run once the attempt counts as never run. */
static void test_late_request_for_a_voided_attempt_is_refused(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_launch_reply reply;
	char *ran;

	create_sh(ef->launch, 1, 1, 2000, "echo x >> ran");
	ef_recover(ef, 1, 1);
	expect_end(ef, 1, TAKT_END_NEVER_RAN, 0);
	ef_engine_free(ef);
	launcher_connect(ef->launch);
	reply = ask_start(ef->launch, 1, 1);
	assert_int_equal(reply.rc, -TAKT_E_CONFLICT);
	assert_int_not_equal(wait_pid(shim_start(ef->launch, 1, 1, NULL)), 0);
	ran = slurp(ef->launch, "ran");
	assert_string_equal(ran, "");
	takt_free(ran);
}

/* The witness is a heartbeat in a file, not our own way of finding processes. */
static void test_lost_shim_is_said_after_its_survivors_are_gone(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_attempt_status status;
	char *beats, *later;

	ef->lines[1] = "setsid sh -c 'while :; do echo x >> beat; sleep 0.01; done' & sleep 60";
	ef_start(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_STARTED, 1);
	wait_file(ef->launch, "beat");
	status = status_of(ef->launch, 1, 1);
	kill(status.shim.pid, SIGKILL);
	expect_end(ef, 1, TAKT_END_LOST, 0);
	beats = slurp(ef->launch, "beat");
	sleep_ms(100);
	later = slurp(ef->launch, "beat");
	assert_string_equal(beats, later);
	takt_free(beats);
	takt_free(later);
}

static void test_other_boot_means_interrupted(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_proc_id job = {.pid = 1234, .start_ticks = 5, .boot_id = "another-boot"};
	int dirfd;

	create_sh(ef->launch, 1, 1, 2000, "true");
	dirfd = takt_attempt_open(ef->launch->sys, ef->launch->jobs_dirfd, 1, 1, NULL);
	assert_int_equal(takt_attempt_record_started(ef->launch->sys, dirfd, &job,
						     (struct takt_wall){77}, NULL),
			 0);
	close(dirfd);
	ef_recover(ef, 1, 1);
	expect_end(ef, 1, TAKT_END_INTERRUPTED, 0);
}

/* Where the boot could not be told, what may still run is looked for. */
static void test_unknown_boot_is_not_another(void **state)
{
	struct engine_fixture *ef = *state;
	struct takt_proc_id job = {
		.pid = 1234, .start_ticks = 5, .boot_id = "00000000-0000-0000-0000-000000000000"};
	int dirfd;

	create_sh(ef->launch, 1, 1, 2000, "true");
	dirfd = takt_attempt_open(ef->launch->sys, ef->launch->jobs_dirfd, 1, 1, NULL);
	assert_int_equal(takt_attempt_record_started(ef->launch->sys, dirfd, &job,
						     (struct takt_wall){77}, NULL),
			 0);
	close(dirfd);
	ef_recover(ef, 1, 1);
	expect_end(ef, 1, TAKT_END_LOST, 0);
}

static void test_snapshot_tells_what_is_alive(void **state)
{
	struct engine_fixture *ef = *state;

	ef->lines[1] = "sleep 60";
	ef_start(ef, 1, 1);
	ef_start(ef, 2, 1);
	ef_wait(ef, TAKT_ENGINE_STARTED, 1);
	ef_wait(ef, TAKT_ENGINE_ENDED, 2);
	ef->event_count = 0;
	takt_engine_snapshot(ef->engine);
	ef_wait(ef, TAKT_ENGINE_SNAPSHOT_END, 0);
	assert_int_equal(ef->event_count, 3);
	assert_int_equal(ef->events[0].kind, TAKT_ENGINE_SNAPSHOT);
	assert_int_equal(ef->events[0].seq, 1);
	assert_int_equal(ef->events[1].kind, TAKT_ENGINE_ADOPTED);
	assert_int_equal(ef->events[1].job_id, 1);
	ef_stop(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_ENDED, 1);
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void test_hundred_jobs_leave_no_descriptor(void **state)
{
	struct engine_fixture *ef = *state;
	size_t before;

	ef_start(ef, 1000, 1);
	ef_wait(ef, TAKT_ENGINE_ENDED, 1000);
	before = count_fds();
	for (uint64_t job = 1001; job <= 1100; job++)
		ef_start(ef, job, 1);
	for (uint64_t job = 1001; job <= 1100; job++) {
		expect_end(ef, job, TAKT_END_EXITED, 0);
		assert_int_equal(ef_count(ef, TAKT_ENGINE_ENDED, job), 1);
		assert_int_equal(ef_count(ef, TAKT_ENGINE_STARTED, job), 1);
	}
	assert_int_equal(count_fds(), before);
}

/* With no descriptor left: a start fails cleanly, a running job is still seen to its end. */
static void test_descriptors_exhausted(void **state)
{
	struct engine_fixture *ef = *state;
	struct rlimit old, none = {0};
	uint64_t action;

	ef->lines[1] = "sleep 0.2; exit 3";
	ef_start(ef, 1, 1);
	ef_wait(ef, TAKT_ENGINE_STARTED, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	action = ef_start(ef, 2, 1);
	for (int i = 0; i < 300; i++) {
		uint64_t next;

		(void)takt_engine_pump(ef->engine, takt_boot_now(ef->launch->sys), &next, NULL);
		sleep_ms(1);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	expect_outcome(ef, action, TAKT_OUTCOME_FAILED);
	expect_end(ef, 1, TAKT_END_EXITED, 3);
}

/* One allocation fails, each in turn: the START is refused or the job runs; never neither, never
 * both, and a refused one stays void. */
static void test_every_allocation_failing(void **state)
{
	struct engine_fixture *ef = *state;
	const struct takt_engine_event *outcome;
	unsigned long before, used = ULONG_MAX;

	for (unsigned long nth = 1; nth <= used; nth++) {
		uint64_t job = 100 + nth, action;

		ef->event_count = 0;
		before = takt_alloc_count();
		takt_alloc_fail_nth(nth, 0);
		action = ++ef->next_action;
		if (takt_engine_apply(ef->engine,
				      &(struct takt_action){.id = action,
							    .kind = TAKT_ACTION_START,
							    .job_id = job,
							    .attempt = 1},
				      1, NULL) < 0)
			continue;
		outcome = ef_wait(ef, TAKT_ENGINE_OUTCOME, action);
		if (outcome->outcome == TAKT_OUTCOME_ACCEPTED)
			expect_end(ef, job, TAKT_END_EXITED, 0);
		else
			assert_int_equal(ef_count(ef, TAKT_ENGINE_ENDED, job), 0);
		used = takt_alloc_count() - before;
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(takt_engine_local_count(ef->engine), 0);
		assert_int_equal(ef_count(ef, TAKT_ENGINE_OUTCOME, action), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, ef_up, ef_down)
		CASE(test_job_runs_from_outcome_to_end),
		CASE(test_exec_failure_is_the_jobs_own),
		CASE(test_stop_ends_it),
		CASE(test_what_outlives_its_grace_is_ended),
		CASE(test_stop_right_behind_start),
		CASE(test_stop_without_launcher_voids),
		CASE(test_stop_while_the_launcher_was_asked_voids),
		CASE(test_signal_reaches_the_job),
		CASE(test_the_same_action_twice_is_one),
		CASE(test_contradictions_are_conflicts),
		CASE(test_what_cannot_be_described_fails),
		CASE(test_missing_launcher_fails_the_start_for_good),
		CASE(test_start_waits_for_a_launcher_to_come_back),
		CASE(test_job_outlives_engine_and_launcher),
		CASE(test_end_while_the_engine_was_away),
		CASE(test_hours_without_a_disk_are_few_looks),
		CASE(test_recovered_attempts_that_never_ran),
		CASE(test_late_request_for_a_voided_attempt_is_refused),
		CASE(test_lost_shim_is_said_after_its_survivors_are_gone),
		CASE(test_other_boot_means_interrupted),
		CASE(test_unknown_boot_is_not_another),
		CASE(test_snapshot_tells_what_is_alive),
		CASE(test_hundred_jobs_leave_no_descriptor),
		CASE(test_descriptors_exhausted),
		CASE(test_every_allocation_failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
