/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of shim, launcher and engine at their named points and at random moments. Judged by a
 * witness that the jobs write, not by what takt says of itself: no job lost, no attempt run twice,
 * never two at once on a GPU or of a job.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "engine_fixture.h"

/* Ends the launcher and starts one that is armed (or not, NULL). */
static void arm_launcher(struct engine_fixture *ef, const char *crash_at)
{
	launcher_kill(ef->launch, SIGKILL);
	launcher_start(ef->launch, crash_at, NULL);
	takt_launch_client_free(ef->launch->client);
	ef->launch->client = NULL;
}

/* What a shim killed at each of its points means, as attempt.h says. */
static void test_shim_killed_at_every_point(void **state)
{
	static const struct {
		const char *point;
		enum takt_end end;
		bool may_have_run;
	} rows[] = {
		{"shim.after_lock", TAKT_END_NEVER_RAN, false},
		{"shim.after_shim_record", TAKT_END_NEVER_RAN, false},
		{"shim.after_fork", TAKT_END_NEVER_RAN, false},
		{"shim.before_started", TAKT_END_NEVER_RAN, false},
		{"shim.after_started", TAKT_END_LOST, false},
		{"shim.after_go", TAKT_END_LOST, true},
		{"shim.before_exit_record", TAKT_END_LOST, true},
		{"shim.after_exit_record", TAKT_END_EXITED, true},
	};
	struct engine_fixture *ef = *state;
	const struct takt_engine_event *end;
	char name[24];
	char *ran;

	for (uint64_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		uint64_t job = i + 1;
		char line[64];

		snprintf(name, sizeof(name), "ran%" PRIu64, job);
		snprintf(line, sizeof(line), "echo x >> %s", name);
		ef->lines[job] = line;
		arm_launcher(ef, rows[i].point);
		ef_start(ef, job, 1);
		end = ef_wait(ef, TAKT_ENGINE_ENDED, job);
		if (end->end != rows[i].end)
			fail_msg("%s: end %d", rows[i].point, (int)end->end);
		ran = slurp(ef->launch, name);
		if (!rows[i].may_have_run)
			assert_string_equal(ran, "");
		takt_free(ran);
		if (end->end == TAKT_END_EXITED)
			continue;
		arm_launcher(ef, NULL);
		ef->event_count = 0;
		ef_start(ef, job, 2);
		assert_int_equal(ef_wait(ef, TAKT_ENGINE_ENDED, job)->end, TAKT_END_EXITED);
	}
}

enum {
	JOBS = 6,
	GPUS = 2,
	RANDOM_KILLS = 12,
};

static pid_t driver_start_as(const struct engine_fixture *ef, const char *crash_at, const char *how)
{
	char jobs[12], gpus[12];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(jobs, sizeof(jobs), "%d", JOBS);
	snprintf(gpus, sizeof(gpus), "%d", GPUS);
	if (crash_at)
		setenv("TAKT_CRASH_AT", crash_at, 1);
	execl(getenv("TAKT_TEST_ENGINE_DRIVER"), "engine-driver", ef->launch->dir, jobs, gpus, how,
	      NULL);
	_exit(126);
}

static pid_t driver_start(const struct engine_fixture *ef, const char *crash_at)
{
	return driver_start_as(ef, crash_at, NULL);
}

/* One START line for each attempt, an end for each job, no clash. */
static void judge(const struct engine_fixture *ef, const char *what)
{
	char *witness = slurp(ef->launch, "witness");
	char *save = NULL;
	int ended[JOBS + 1] = {0};
	unsigned int job;

	if (strstr(witness, "clash"))
		fail_msg("%s: two at once:\n%s", what, witness);
	for (char *line = strstr(witness, "start "); line; line = strstr(line + 1, "start ")) {
		char one[128];

		snprintf(one, sizeof(one), "%.*s\n", (int)strcspn(line, "\n"), line);
		if (strstr(line + 1, one))
			fail_msg("%s: run twice: %s", what, one);
	}
	for (char *line = strtok_r(witness, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "end %u", &job) == 1 && job <= JOBS)
			ended[job]++;
	for (job = 1; job <= JOBS; job++)
		if (ended[job] == 0)
			fail_msg("%s: job %u was lost", what, job);
	takt_free(witness);
}

static void forget_all(const struct engine_fixture *ef)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf %s/jobs/* %s/state %s/witness", ef->launch->dir,
		 ef->launch->dir, ef->launch->dir);
	assert_int_equal(system(command), 0);
}

static void finish_and_judge_as(struct engine_fixture *ef, const char *what, const char *how)
{
	int status = wait_pid(driver_start_as(ef, NULL, how));

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("%s: driver status %d", what, status);
	judge(ef, what);
	forget_all(ef);
}

static void finish_and_judge(struct engine_fixture *ef, const char *what)
{
	finish_and_judge_as(ef, what, NULL);
}

static void test_engine_killed_at_every_point(void **state)
{
	static const char *const points[] = {
		"engine.after_create", "engine.after_create:4", "engine.after_send",
		"engine.after_send:3", "engine.after_reply",	"engine.after_reply:4",
		"engine.before_ended", "engine.before_ended:3",
	};
	struct engine_fixture *ef = *state;
	int status;

	ef_engine_free(ef);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(points); i++) {
		status = wait_pid(driver_start(ef, points[i]));
		if (!WIFSIGNALED(status))
			fail_msg("%s was not reached", points[i]);
		finish_and_judge(ef, points[i]);
	}
}

static void test_launcher_killed_at_every_point(void **state)
{
	static const char *const points[] = {"launch.before_fork:2", "launch.after_fork:2",
					     "launch.before_reply:3"};
	struct engine_fixture *ef = *state;
	pid_t driver;

	ef_engine_free(ef);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(points); i++) {
		arm_launcher(ef, points[i]);
		driver = driver_start(ef, NULL);
		wait_pid(ef->launch->launcher); /* it died of its point */
		ef->launch->launcher = 0;
		arm_launcher(ef, NULL);
		assert_int_equal(wait_pid(driver), 0);
		judge(ef, points[i]);
		forget_all(ef);
	}
}

/* A daemon that stages, and one after it that knows nothing of staging or stages too. */
static void test_engine_killed_while_jobs_are_staged(void **state)
{
	static const char *const points[] = {
		"engine.after_create:3", "engine.after_send:3", "engine.after_reply:3",
		"engine.before_go",	 "engine.before_go:3",	"engine.after_go",
		"engine.after_go:2",	 "engine.before_ended", "engine.after_send:8",
		"engine.after_send:11",
	};
	struct engine_fixture *ef = *state;
	int status;

	ef_engine_free(ef);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(points); i++) {
		status = wait_pid(driver_start_as(ef, points[i], "stage"));
		if (!WIFSIGNALED(status))
			fail_msg("%s was not reached", points[i]);
		finish_and_judge_as(ef, points[i], i % 2 ? "stage" : NULL);
	}
}

/* Shims die at a point, each of them; those of the next launcher live. */
static void test_shims_killed_while_jobs_are_staged(void **state)
{
	static const char *const points[] = {
		"shim.after_lock",     "shim.before_staged", "shim.after_staged",
		"shim.after_prefetch", "shim.after_wait",    "shim.before_started",
		"shim.after_started",  "shim.after_go",	     "shim.before_void"};
	struct engine_fixture *ef = *state;
	pid_t driver;

	ef_engine_free(ef);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(points); i++) {
		arm_launcher(ef, points[i]);
		driver = driver_start_as(ef, NULL, "stage");
		sleep_ms(100);
		arm_launcher(ef, NULL);
		assert_int_equal(wait_pid(driver), 0);
		judge(ef, points[i]);
		forget_all(ef);
	}
}

/* Everything at once: shims dying at a point, then engine and launcher killed at random. */
static void test_killed_at_random_moments(void **state)
{
	static const char *const shim_points[] = {NULL,
						  "shim.after_started",
						  "shim.before_started",
						  "shim.before_exit_record",
						  "shim.after_staged",
						  "shim.after_wait"};
	struct engine_fixture *ef = *state;
	struct takt_rng rng;
	char what[64];
	pid_t driver;

	ef_engine_free(ef);
	takt_rng_init(&rng, 20240607);
	for (uint64_t round = 0; round < RANDOM_KILLS; round++) {
		arm_launcher(ef, shim_points[round % TAKT_ARRAY_LEN(shim_points)]);
		driver = driver_start_as(ef, NULL, round % 3 ? "stage" : NULL);
		sleep_ms((long)takt_rng_range(&rng, 1, 120));
		if (round % 2)
			arm_launcher(ef, NULL);
		sleep_ms((long)takt_rng_range(&rng, 0, 20));
		kill(driver, SIGKILL);
		wait_pid(driver);
		arm_launcher(ef, NULL);
		snprintf(what, sizeof(what), "round %" PRIu64, round);
		finish_and_judge_as(ef, what, round % 4 ? "stage" : NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, ef_up, ef_down)
		CASE(test_shim_killed_at_every_point),
		CASE(test_engine_killed_at_every_point),
		CASE(test_launcher_killed_at_every_point),
		CASE(test_engine_killed_while_jobs_are_staged),
		CASE(test_shims_killed_while_jobs_are_staged),
		CASE(test_killed_at_random_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
