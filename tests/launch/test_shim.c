/* SPDX-License-Identifier: Apache-2.0 */
/* takt-shim with real small jobs: what they get, how they end, how they are ended. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "launch_fixture.h"
#include "sanitized.h"

static void test_exit_code_is_recorded(void **state)
{
	struct takt_attempt_status status = run_sh(*state, 1, "exit 7");

	assert_int_equal(status.state, TAKT_ATTEMPT_EXITED);
	assert_int_equal(status.exit_kind, TAKT_EXIT_EXITED);
	assert_int_equal(status.exit_code, 7);
	assert_true(status.started);
	assert_true(status.job.pid > 0);
	assert_true(status.shim.pid > 0);
	assert_true(status.ended_at.ns >= status.started_at.ns);
	assert_true(status.run_ns > 0);
}

static void test_death_by_signal_is_recorded(void **state)
{
	struct takt_attempt_status status = run_sh(*state, 1, "kill -SEGV $$");

	assert_int_equal(status.exit_kind, TAKT_EXIT_SIGNALED);
	assert_int_equal(status.exit_code, SIGSEGV);
}

static void test_output_goes_to_the_log(void **state)
{
	struct fixture *fixture = *state;
	char *log;

	run_sh(fixture, 1, "echo out; echo err >&2; cat; pwd");
	log = slurp_log(fixture, 1, 1);
	assert_non_null(strstr(log, "out\nerr\n"));
	assert_non_null(strstr(log, fixture->dir));
	takt_free(log);
}

/* The job gets the given environment and nothing of the shim's, three descriptors, default signals,
 * its own session, and a umask. */
static void test_job_finds_a_clean_place(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = spec_sh(
		fixture, 1, 1,
		"env > env; ls -l /proc/self/fd > fds; umask > mask;"
		"grep -E '^Sig(Blk|Ign)' /proc/self/status > sig;"
		"cut -d' ' -f1,5,6 /proc/self/stat | { read p g s; echo $((g == s)) > session; }");
	char *env, *fds, *sig, *text;

	spec_add_env(&spec, "FLAVOUR=a b%c\nd");
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
	setenv("OF_THE_SHIM", "1", 1);
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	env = slurp(fixture, "env");
	assert_non_null(strstr(env, "FLAVOUR=a b%c\nd\n"));
	assert_non_null(strstr(env, "TAKT_ATTEMPT=1.1."));
	assert_null(strstr(env, "OF_THE_SHIM"));
	fds = slurp(fixture, "fds");
	assert_non_null(strstr(fds, " 0 -> /dev/null"));
	assert_non_null(strstr(fds, "/1.1/log"));
	assert_null(strstr(fds, "/1.1/lock"));
	assert_null(strstr(fds, " 4 ->"));
	sig = slurp(fixture, "sig");
	assert_string_equal(sig, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	text = slurp(fixture, "mask");
	assert_string_equal(text, "0022\n");
	takt_free(text);
	text = slurp(fixture, "session");
	assert_string_equal(text, "1\n");
	takt_free(text);
	takt_free(env);
	takt_free(fds);
	takt_free(sig);
}

static void expect_exec_failure(struct fixture *fixture, uint64_t job,
				struct takt_attempt_spec spec, int error, const char *message)
{
	struct takt_attempt_status status;
	char *log;

	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
	assert_int_equal(wait_pid(shim_start(fixture, job, 1, NULL)), 0);
	status = status_of(fixture, job, 1);
	assert_int_equal(status.state, TAKT_ATTEMPT_EXITED);
	assert_int_equal(status.exit_kind, TAKT_EXIT_EXEC_FAILED);
	assert_int_equal(status.exit_code, error);
	assert_string_equal(status.message, message);
	log = slurp_log(fixture, job, 1);
	assert_non_null(strstr(log, message));
	takt_free(log);
}

static void test_what_cannot_be_executed_says_why(void **state)
{
	struct fixture *fixture = *state;
	char *const missing[] = {(char[]){"./train.sh"}, NULL};
	char *const directory[] = {(char[]){"/tmp"}, NULL};
	struct takt_attempt_spec spec;

	expect_exec_failure(fixture, 1, spec_argv(fixture, 1, 1, missing), ENOENT,
			    "exec './train.sh': No such file or directory");
	expect_exec_failure(fixture, 2, spec_argv(fixture, 2, 1, directory), EACCES,
			    "exec '/tmp': Permission denied");
	spec = spec_sh(fixture, 3, 1, "true");
	takt_free(spec.cwd);
	spec.cwd = takt_strdup("/nowhere/at/all");
	expect_exec_failure(fixture, 3, spec, ENOENT,
			    "change to directory '/nowhere/at/all': No such file or directory");
}

static void test_job_is_bound_to_its_cpus(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec =
		spec_sh(fixture, 1, 1, "grep Cpus_allowed_list /proc/self/status > cpus");
	char want[64], *cpus;
	cpu_set_t mine;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	while (!CPU_ISSET(cpu, &mine))
		cpu++;
	spec.cpu_count = 1;
	spec.cpus[cpu / 64] = 1ull << (cpu % 64);
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	snprintf(want, sizeof(want), "Cpus_allowed_list:\t%d\n", cpu);
	cpus = slurp(fixture, "cpus");
	assert_string_equal(cpus, want);
	takt_free(cpus);
}

static void test_cpus_that_do_not_exist_are_said_not_fatal(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 1, "exit 3");
	char *log;

	spec.cpu_count = 1;
	spec.cpus[15] = 1ull << 63;
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 3);
	log = slurp_log(fixture, 1, 1);
	assert_non_null(strstr(log, "runs on any CPU"));
	takt_free(log);
}

static void test_sigterm_gives_grace(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_status status;
	pid_t shim;

	create_sh(fixture, 1, 1, 5000,
		  "trap 'echo saved > saved; exit 9' TERM; echo x > ready;"
		  "while :; do sleep 0.01; done");
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	kill(shim, SIGTERM);
	assert_int_equal(wait_pid(shim), 0);
	wait_file(fixture, "saved");
	status = status_of(fixture, 1, 1);
	assert_int_equal(status.exit_kind, TAKT_EXIT_EXITED);
	assert_int_equal(status.exit_code, 9);
}

/* Ignores SIGTERM, with children in sessions of their own that do too: none is left after it. */
static void test_after_grace_nothing_is_left(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec =
		spec_sh(fixture, 1, 1,
			"trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &"
			"echo x > ready; while :; do sleep 1; done");
	struct takt_attempt_status status;
	int left = 0;
	pid_t shim;

	spec.grace_ms = 100;
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	for (int i = 0; i < 12000 && left < 2; i++) {
		left = takt_attempt_survivors(spec.id, getuid(), "", NULL, 0, NULL);
		sleep_ms(10);
	}
	assert_true(left >= 2);
	kill(shim, SIGTERM);
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(takt_attempt_survivors(spec.id, getuid(), "", NULL, 0, NULL), 0);
	takt_attempt_spec_fini(&spec);
	status = status_of(fixture, 1, 1);
	assert_int_equal(status.exit_kind, TAKT_EXIT_SIGNALED);
	assert_int_equal(status.exit_code, SIGKILL);
}

static void test_stopped_job_still_dies_of_sigterm(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim;

	create_sh(fixture, 1, 1, 5000, "echo x > ready; kill -STOP $$; sleep 30");
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	sleep_ms(20);
	kill(shim, SIGTERM);
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, SIGTERM);
}

static void test_signals_are_passed_on(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim;

	create_sh(fixture, 1, 1, 2000,
		  "trap 'echo u1 >> got' USR1; trap 'echo u2 >> got' USR2;"
		  "trap 'echo term >> got; exit 5' TERM; echo x > ready;"
		  "while :; do sleep 0.01; done");
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	kill(shim, SIGUSR1);
	wait_file(fixture, "got");
	/* By value, as the launcher does: a plain SIGTERM of the user's, without SIGKILL to follow.
	 */
	sigqueue(shim, TAKT_SHIM_FORWARD_SIGNAL, (union sigval){.sival_int = SIGUSR2});
	wait_text(fixture, "got", "u2");
	sigqueue(shim, TAKT_SHIM_FORWARD_SIGNAL, (union sigval){.sival_int = SIGTERM});
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 5);
	{
		char *got = slurp(fixture, "got");

		assert_string_equal(got, "u1\nu2\nterm\n");
		takt_free(got);
	}
}

static void test_forwarded_sigkill_ends_the_job(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim;

	create_sh(fixture, 1, 1, 60000, "trap '' TERM; echo x > ready; while :; do sleep 1; done");
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	sigqueue(shim, TAKT_SHIM_FORWARD_SIGNAL, (union sigval){.sival_int = SIGKILL});
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, SIGKILL);
}

/* The job is over when its first process is; what it leaves may finish within a moment. */
static void test_leftover_may_finish_by_itself(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_status status;

	create_sh(fixture, 1, 1, 120000, "(setsid sh -c 'sleep 0.2; echo done > late' &) ; exit 4");
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	status = status_of(fixture, 1, 1);
	assert_int_equal(status.exit_code, 4);
	wait_file(fixture, "late");
	assert_true(status.run_ns >= 190 * TAKT_NS_PER_MS);
}

/* A daemon that will not go is ended before the attempt counts as over. */
static void test_daemon_left_behind_is_ended(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec =
		spec_sh(fixture, 1, 1,
			"(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; exit 4");

	spec.grace_ms = 100;
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 4);
	assert_int_equal(takt_attempt_survivors(spec.id, getuid(), "", NULL, 0, NULL), 0);
	takt_attempt_spec_fini(&spec);
}

static void test_second_shim_runs_nothing(void **state)
{
	struct fixture *fixture = *state;
	pid_t first, second;

	create_sh(fixture, 1, 1, 2000, "echo x >> ran; sleep 0.3");
	first = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ran");
	second = shim_start(fixture, 1, 1, NULL);
	assert_int_equal(wait_pid(first), 0);
	assert_int_not_equal(wait_pid(second), 0);
	assert_int_not_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	{
		char *ran = slurp(fixture, "ran");

		assert_string_equal(ran, "x\n");
		takt_free(ran);
	}
}

static void test_void_attempt_runs_nothing(void **state)
{
	struct fixture *fixture = *state;
	char *ran;

	create_sh(fixture, 1, 1, 2000, "echo x >> ran");
	assert_int_equal(takt_attempt_void(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL), 0);
	assert_int_equal(takt_attempt_void(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL), 0);
	assert_int_not_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	ran = slurp(fixture, "ran");
	assert_string_equal(ran, "");
	takt_free(ran);
	assert_int_equal(status_of(fixture, 1, 1).exit_kind, TAKT_EXIT_VOID);
}

/* A shim whose job was to be in this cgroup: its wait status. */
static int shim_with_cgroup(const struct fixture *fixture, const char *cgroup)
{
	char dir[160];
	pid_t pid = fork();

	assert_true(pid >= 0);
	snprintf(dir, sizeof(dir), "%s/1.1", fixture->jobs);
	if (pid == 0) {
		if (freopen("/dev/null", "w", stderr))
			execl(getenv("TAKT_TEST_SHIM"), "takt-shim", dir, fixture->jobs, cgroup,
			      NULL);
		_exit(126);
	}
	return wait_pid(pid);
}

/* Somebody removed it while it was empty. Nothing has run, so the same attempt may be started. */
static void test_without_its_cgroup_nothing_runs(void **state)
{
	struct fixture *fixture = *state;
	char *text;

	create_sh(fixture, 1, 1, 2000, "echo x >> ran; exit 4");
	assert_int_not_equal(shim_with_cgroup(fixture, "/nowhere"), 0);
	text = slurp(fixture, "ran");
	assert_string_equal(text, "");
	takt_free(text);
	text = slurp_log(fixture, 1, 1);
	assert_non_null(strstr(text, "nothing was run: enter cgroup '/nowhere'"));
	takt_free(text);
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_NOT_STARTED);
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 4);
}

static void test_a_cgroup_that_it_may_not_enter_is_said_not_fatal(void **state)
{
	struct fixture *fixture = *state;
	char path[96], *text;

	create_sh(fixture, 1, 1, 2000, "exit 4");
	snprintf(path, sizeof(path), "%s/cgroup.procs", fixture->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(shim_with_cgroup(fixture, fixture->dir), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 4);
	text = slurp_log(fixture, 1, 1);
	assert_non_null(strstr(text, "stays in the cgroup of its shim"));
	takt_free(text);
}

static void test_alive_or_ended_cannot_be_voided(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec;
	pid_t shim;

	create_sh(fixture, 1, 1, 2000, "echo x > ready; until [ -e on ]; do sleep 0.01; done");
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_ALIVE);
	assert_int_equal(takt_attempt_void(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL),
			 -TAKT_E_CONFLICT);
	put_file(fixture, "on");
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(takt_attempt_void(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL),
			 -TAKT_E_CONFLICT);
	spec = spec_sh(fixture, 1, 1, "true");
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL),
			 -TAKT_E_CONFLICT);
	takt_attempt_spec_fini(&spec);
}

/* A disk that is full when the job ends: the shim waits, and the end is recorded once there is
 * room. */
static void test_end_on_a_full_disk_is_waited_out(void **state)
{
	struct fixture *fixture = *state;
	char path[96];
	pid_t shim;

	create_sh(fixture, 1, 1, 2000,
		  "echo x > ready; until test -d jobs/1.1/exit.tmp; do sleep 0.01; done; exit 5");
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	/* What stands in for ENOSPC: the name that the record is written under is taken. */
	snprintf(path, sizeof(path), "%s/1.1/exit.tmp", fixture->jobs);
	assert_int_equal(mkdir(path, 0700), 0);
	sleep_ms(300);
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_ALIVE);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 5);
}

enum {
	SHIM_MAX_KB = SANITIZED ? 1024 * 1024 : 1024 /* the sanitizer's own */
};

/* Private memory of a waiting shim, from its smaps: it is there once a job. */
static void test_waiting_shim_is_small(void **state)
{
	struct fixture *fixture = *state;
	char path[64], line[128];
	long kb = 0, part;
	pid_t shim;
	FILE *smaps;

	create_sh(fixture, 1, 1, 2000, "echo x > ready; sleep 30");
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "ready");
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", shim);
	smaps = fopen(path, "re");
	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps))
		if (sscanf(line, "Private_Clean: %ld", &part) == 1 ||
		    sscanf(line, "Private_Dirty: %ld", &part) == 1)
			kb += part;
	fclose(smaps);
	kill(shim, SIGTERM);
	wait_pid(shim);
	print_message("# private memory of a shim: %ld KiB\n", kb);
	assert_true(kb > 0 && kb < SHIM_MAX_KB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_up, fixture_down)
		CASE(test_exit_code_is_recorded),
		CASE(test_death_by_signal_is_recorded),
		CASE(test_output_goes_to_the_log),
		CASE(test_job_finds_a_clean_place),
		CASE(test_what_cannot_be_executed_says_why),
		CASE(test_job_is_bound_to_its_cpus),
		CASE(test_cpus_that_do_not_exist_are_said_not_fatal),
		CASE(test_sigterm_gives_grace),
		CASE(test_after_grace_nothing_is_left),
		CASE(test_stopped_job_still_dies_of_sigterm),
		CASE(test_signals_are_passed_on),
		CASE(test_forwarded_sigkill_ends_the_job),
		CASE(test_leftover_may_finish_by_itself),
		CASE(test_daemon_left_behind_is_ended),
		CASE(test_second_shim_runs_nothing),
		CASE(test_void_attempt_runs_nothing),
		CASE(test_without_its_cgroup_nothing_runs),
		CASE(test_a_cgroup_that_it_may_not_enter_is_said_not_fatal),
		CASE(test_alive_or_ended_cannot_be_voided),
		CASE(test_end_on_a_full_disk_is_waited_out),
		CASE(test_waiting_shim_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
