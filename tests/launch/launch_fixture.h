/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of launching share: a temporary directory of attempts, specs from a shell line, real
 * takt-shim and takt-launch processes (paths in TAKT_TEST_SHIM and TAKT_TEST_LAUNCH), and waiting
 * with a limit. Failing here fails the test that asked.
 */
#ifndef TAKT_TESTS_LAUNCH_FIXTURE_H
#define TAKT_TESTS_LAUNCH_FIXTURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "launch/attempt.h"
#include "launch/launch.h"

struct fixture {
	const struct takt_sys *sys;
	char dir[64];	 /* temporary, removed by fixture_down */
	char jobs[80];	 /* dir/jobs */
	char socket[80]; /* dir/launch.sock */
	int jobs_dirfd;
	pid_t launcher;			   /* 0 = none */
	struct takt_launch_client *client; /* NULL = none */
	uint64_t seq;
};

int fixture_up(void **state);	/* cmocka setup; *state is a struct fixture */
int fixture_down(void **state); /* ends what is left, removes the directory */

/* A spec that runs `sh -c line` in the temporary directory; the caller finis it. */
struct takt_attempt_spec spec_sh(const struct fixture *fixture, uint64_t job_id, uint32_t attempt,
				 const char *line);
struct takt_attempt_spec spec_argv(const struct fixture *fixture, uint64_t job_id, uint32_t attempt,
				   char *const *argv);
void spec_add_env(struct takt_attempt_spec *spec, const char *assignment);
/* Create the attempt from spec_sh with this grace. */
void create_sh(const struct fixture *fixture, uint64_t job_id, uint32_t attempt, uint32_t grace_ms,
	       const char *line);

/* Start takt-shim on an attempt; crash_at may be NULL. */
pid_t shim_start(const struct fixture *fixture, uint64_t job_id, uint32_t attempt,
		 const char *crash_at);
/* Wait for a child of ours to end, at most 10 s: its wait status. */
int wait_pid(pid_t pid);
/* create_sh with 2 s of grace, run the shim to its end, return the status of the attempt. */
struct takt_attempt_status run_sh(const struct fixture *fixture, uint64_t job_id, const char *line);

struct takt_attempt_status status_of(const struct fixture *fixture, uint64_t job_id,
				     uint32_t attempt);
/* Wait until the attempt is in this state. */
struct takt_attempt_status wait_state(const struct fixture *fixture, uint64_t job_id,
				      uint32_t attempt, enum takt_attempt_state state);
/* Wait until a file exists and is not empty; relative to the temporary directory. */
void wait_file(const struct fixture *fixture, const char *name);
/* And that this is in it. */
void wait_text(const struct fixture *fixture, const char *name, const char *want);

/* An empty one, for a job that waits until it is there. */
void put_file(const struct fixture *fixture, const char *name);
/* Whole file as text, "" when absent; takt_free. */
char *slurp(const struct fixture *fixture, const char *name);
char *slurp_log(const struct fixture *fixture, uint64_t job_id, uint32_t attempt);
void sleep_ms(long ms);

/* Start takt-launch and connect. */
void launcher_start(struct fixture *fixture, const char *crash_at, const char *const *more_args);
void launcher_connect(struct fixture *fixture);
void launcher_kill(struct fixture *fixture, int sig);
/* Ask and wait for the reply. */
struct takt_launch_reply ask(struct fixture *fixture, struct takt_launch_request request);
struct takt_launch_reply ask_start(struct fixture *fixture, uint64_t job_id, uint32_t attempt);

#endif
