/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture of the launch tests. */
#include "launch_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

enum {
	PATIENCE_MS = 120000,
	STEP_MS = 2,
	SLURP_MAX = 1024 * 1024,
};

void sleep_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

int fixture_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	if (!getenv("TAKT_TEST_SHIM") || !getenv("TAKT_TEST_LAUNCH"))
		fail_msg("TAKT_TEST_SHIM and TAKT_TEST_LAUNCH must name the programs: see "
			 "meson.build");
	fixture->sys = takt_sys_real();
	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/takt-launch-XXXXXX");
	assert_non_null(mkdtemp(fixture->dir));
	assert_int_equal(chmod(fixture->dir, 0755), 0);
	snprintf(fixture->jobs, sizeof(fixture->jobs), "%s/jobs", fixture->dir);
	snprintf(fixture->socket, sizeof(fixture->socket), "%s/launch.sock", fixture->dir);
	assert_int_equal(mkdir(fixture->jobs, 0711), 0);
	fixture->jobs_dirfd = open(fixture->jobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fixture->jobs_dirfd >= 0);
	*state = fixture;
	return 0;
}

int fixture_down(void **state)
{
	struct fixture *fixture = *state;
	char *argv[] = {(char[]){"rm"}, (char[]){"-rf"}, fixture->dir, NULL};
	pid_t pid;

	launcher_kill(fixture, SIGTERM);
	close(fixture->jobs_dirfd);
	pid = fork();
	if (pid == 0) {
		execvp("rm", argv);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	free(fixture);
	return 0;
}

/* NULL where a test makes an allocation fail: the spec is then refused. */
static char **copy_strings(char *const *strings, size_t room)
{
	size_t n = 0;
	char **copy;

	while (strings[n])
		n++;
	copy = takt_calloc(n + room + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = takt_strdup(strings[i]);
		if (copy[i])
			continue;
		while (i-- > 0)
			takt_free(copy[i]);
		takt_free(copy);
		return NULL;
	}
	return copy;
}

struct takt_attempt_spec spec_argv(const struct fixture *fixture, uint64_t job_id, uint32_t attempt,
				   char *const *argv)
{
	struct takt_attempt_spec spec = {.job_id = job_id, .attempt = attempt, .grace_ms = 2000};
	char path[512], name[128];
	char *const env[] = {path, name, NULL};

	snprintf(spec.id, sizeof(spec.id), "%llu.%u.%s", (unsigned long long)job_id, attempt,
		 fixture->dir + sizeof("/tmp/takt-launch"));
	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	snprintf(name, sizeof(name), "TAKT_ATTEMPT=%s", spec.id);
	spec.env = copy_strings(env, 16);
	spec.argv = copy_strings(argv, 0);
	spec.cwd = takt_strdup(fixture->dir);
	return spec;
}

struct takt_attempt_spec spec_sh(const struct fixture *fixture, uint64_t job_id, uint32_t attempt,
				 const char *line)
{
	char *script = strdup(line);
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, script, NULL};
	struct takt_attempt_spec spec = spec_argv(fixture, job_id, attempt, argv);

	free(script);
	return spec;
}

void spec_add_env(struct takt_attempt_spec *spec, const char *assignment)
{
	char **env = spec->env;

	while (*env)
		env++;
	*env = takt_strdup(assignment);
}

void create_sh(const struct fixture *fixture, uint64_t job_id, uint32_t attempt, uint32_t grace_ms,
	       const char *line)
{
	struct takt_attempt_spec spec = spec_sh(fixture, job_id, attempt, line);

	spec.grace_ms = grace_ms;
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
}

pid_t shim_start(const struct fixture *fixture, uint64_t job_id, uint32_t attempt,
		 const char *crash_at)
{
	char dir[160];
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/%llu.%u", fixture->jobs, (unsigned long long)job_id,
		 attempt);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (crash_at)
			setenv("TAKT_CRASH_AT", crash_at, 1);
		if (freopen("/dev/null", "w", stderr))
			execl(getenv("TAKT_TEST_SHIM"), "takt-shim", dir, NULL);
		_exit(126);
	}
	return pid;
}

int wait_pid(pid_t pid)
{
	int status;

	for (int ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		sleep_ms(STEP_MS);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	fail_msg("process %d did not end", (int)pid);
	return status;
}

struct takt_attempt_status run_sh(const struct fixture *fixture, uint64_t job_id, const char *line)
{
	int status;

	create_sh(fixture, job_id, 1, 2000, line);
	status = wait_pid(shim_start(fixture, job_id, 1, NULL));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return status_of(fixture, job_id, 1);
}

struct takt_attempt_status status_of(const struct fixture *fixture, uint64_t job_id,
				     uint32_t attempt)
{
	struct takt_attempt_status status;

	assert_int_equal(takt_attempt_status(fixture->sys, fixture->jobs_dirfd, job_id, attempt,
					     &status, NULL),
			 0);
	return status;
}

struct takt_attempt_status wait_state(const struct fixture *fixture, uint64_t job_id,
				      uint32_t attempt, enum takt_attempt_state state)
{
	struct takt_attempt_status status = {0};

	for (int ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
		status = status_of(fixture, job_id, attempt);
		if (status.state == state)
			return status;
		sleep_ms(STEP_MS);
	}
	fail_msg("attempt %llu.%u is in state %d, not %d", (unsigned long long)job_id, attempt,
		 (int)status.state, (int)state);
	return status;
}

char *slurp(const struct fixture *fixture, const char *name)
{
	char path[256];
	char *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
	if (takt_file_read(fixture->sys, AT_FDCWD, path, SLURP_MAX, &text, &len, NULL) < 0)
		text = takt_strdup("");
	return text;
}

char *slurp_log(const struct fixture *fixture, uint64_t job_id, uint32_t attempt)
{
	char name[64];

	snprintf(name, sizeof(name), "jobs/%llu.%u/log", (unsigned long long)job_id, attempt);
	return slurp(fixture, name);
}

void wait_text(const struct fixture *fixture, const char *name, const char *want)
{
	bool there = false;
	char *text;

	for (int ms = 0; ms < PATIENCE_MS && !there; ms += STEP_MS) {
		text = slurp(fixture, name);
		there = text[0] != '\0' && strstr(text, want);
		takt_free(text);
		if (!there)
			sleep_ms(STEP_MS);
	}
	if (!there)
		fail_msg("'%s' did not appear in '%s'", want, name);
}

void wait_file(const struct fixture *fixture, const char *name)
{
	wait_text(fixture, name, "");
}

void put_file(const struct fixture *fixture, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

enum {
	MAX_ARGS = 24
};

static _Noreturn void exec_launcher(const struct fixture *fixture, const char *crash_at,
				    const char *const *more_args)
{
	const char *argv[MAX_ARGS] = {"takt-launch", "--socket", fixture->socket,	  "--jobs",
				      fixture->jobs, "--shim",	 getenv("TAKT_TEST_SHIM")};
	int n = 7;

	for (; more_args && *more_args && n < MAX_ARGS - 1; more_args++)
		argv[n++] = *more_args;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (crash_at)
		setenv("TAKT_CRASH_AT", crash_at, 1);
	execv(getenv("TAKT_TEST_LAUNCH"), (char *const *)argv);
	_exit(126);
}

void launcher_connect(struct fixture *fixture)
{
	struct takt_err err = {0};

	takt_launch_client_free(fixture->client);
	fixture->client = NULL;
	for (int ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
		if (takt_launch_connect(fixture->socket, &fixture->client, &err) == 0)
			return;
		sleep_ms(STEP_MS);
	}
	fail_msg("%s", err.msg);
}

void launcher_start(struct fixture *fixture, const char *crash_at, const char *const *more_args)
{
	fixture->launcher = fork();
	assert_true(fixture->launcher >= 0);
	if (fixture->launcher == 0)
		exec_launcher(fixture, crash_at, more_args);
	launcher_connect(fixture);
}

void launcher_kill(struct fixture *fixture, int sig)
{
	takt_launch_client_free(fixture->client);
	fixture->client = NULL;
	if (fixture->launcher == 0)
		return;
	kill(fixture->launcher, sig);
	wait_pid(fixture->launcher);
	fixture->launcher = 0;
}

struct takt_launch_reply ask(struct fixture *fixture, struct takt_launch_request request)
{
	struct pollfd fd = {.fd = takt_launch_fd(fixture->client), .events = POLLIN};
	struct takt_launch_reply reply = {0};
	int rc;

	request.seq = ++fixture->seq;
	assert_int_equal(takt_launch_send(fixture->client, request, NULL), 0);
	do {
		assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
		rc = takt_launch_recv(fixture->client, &reply, NULL);
	} while (rc == 0);
	if (rc < 0) {
		reply.rc = rc;
		return reply;
	}
	assert_int_equal(reply.seq, request.seq);
	return reply;
}

struct takt_launch_reply ask_start(struct fixture *fixture, uint64_t job_id, uint32_t attempt)
{
	return ask(fixture, (struct takt_launch_request){.op = TAKT_LAUNCH_START,
							 .job_id = job_id,
							 .attempt = attempt,
							 .uid = getuid(),
							 .gid = getgid()});
}
