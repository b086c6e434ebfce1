/* SPDX-License-Identifier: Apache-2.0 */
/* takt-launch over its socket: what it starts, whom it refuses, what it survives. */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file_whose.h"
#include "base/mem.h"
#include "launch_fixture.h"

enum {
	NOBODY = 65534
};

static void expect_file(const struct fixture *fixture, const char *name, const char *want)
{
	char *text = slurp(fixture, name);

	assert_string_equal(text, want);
	takt_free(text);
}

static void test_starts_a_shim_and_names_it(void **state)
{
	struct fixture *fixture = *state;
	struct takt_launch_reply reply;
	struct takt_attempt_status status;

	launcher_start(fixture, NULL, NULL);
	create_sh(fixture, 1, 1, 2000, "exit 3");
	reply = ask_start(fixture, 1, 1);
	assert_int_equal(reply.rc, 0);
	status = wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	assert_int_equal(status.exit_code, 3);
	assert_int_equal(status.shim.pid, reply.shim.pid);
	assert_int_equal(status.shim.start_ticks, reply.shim.start_ticks);
	assert_string_equal(status.shim.boot_id, reply.shim.boot_id);
}

static void test_never_starts_an_attempt_twice(void **state)
{
	struct fixture *fixture = *state;

	launcher_start(fixture, NULL, NULL);
	create_sh(fixture, 1, 1, 2000, "echo x >> ran; sleep 0.2");
	assert_int_equal(ask_start(fixture, 1, 1).rc, 0);
	wait_file(fixture, "ran");
	assert_int_equal(ask_start(fixture, 1, 1).rc, -TAKT_E_CONFLICT);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	assert_int_equal(ask_start(fixture, 1, 1).rc, -TAKT_E_CONFLICT);
	expect_file(fixture, "ran", "x\n");
}

/* Twenty requests for one attempt in a row, before the first shim has its lock. */
static void test_a_burst_of_the_same_request_runs_once(void **state)
{
	struct fixture *fixture = *state;
	struct takt_launch_request request = {.op = TAKT_LAUNCH_START,
					      .job_id = 1,
					      .attempt = 1,
					      .uid = getuid(),
					      .gid = getgid()};
	struct takt_launch_reply reply;
	struct pollfd fd;
	int replies = 0, started = 0;

	launcher_start(fixture, NULL, NULL);
	create_sh(fixture, 1, 1, 2000, "echo x >> ran");
	for (request.seq = 1; request.seq <= 20; request.seq++)
		assert_int_equal(takt_launch_send(fixture->client, request, NULL), 0);
	fd = (struct pollfd){.fd = takt_launch_fd(fixture->client), .events = POLLIN};
	while (replies < 20) {
		assert_int_equal(poll(&fd, 1, 120000), 1);
		while (takt_launch_recv(fixture->client, &reply, NULL) == 1) {
			replies++;
			started += reply.rc == 0;
		}
	}
	assert_true(started >= 1);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	sleep_ms(100);
	expect_file(fixture, "ran", "x\n");
}

static void test_refuses_what_has_no_spec(void **state)
{
	struct fixture *fixture = *state;

	launcher_start(fixture, NULL, NULL);
	assert_int_equal(ask_start(fixture, 1, 1).rc, -TAKT_E_NOT_FOUND);
	assert_int_equal(ask(fixture, (struct takt_launch_request){.op = 99}).rc,
			 -TAKT_E_UNSUPPORTED);
	assert_int_equal(ask(fixture, (struct takt_launch_request){.op = TAKT_LAUNCH_HELLO}).rc, 0);
}

static void test_stop_and_signal_reach_the_job(void **state)
{
	struct fixture *fixture = *state;
	struct takt_launch_request request = {
		.op = TAKT_LAUNCH_SIGNAL, .job_id = 1, .attempt = 1, .uid = getuid()};

	launcher_start(fixture, NULL, NULL);
	create_sh(fixture, 1, 1, 5000,
		  "trap 'echo u >> got' USR2; trap 'exit 4' TERM; echo x > ready;"
		  "while :; do sleep 0.01; done");
	request.target = ask_start(fixture, 1, 1).shim;
	wait_file(fixture, "ready");
	request.signal = SIGUSR2;
	assert_int_equal(ask(fixture, request).rc, 0);
	wait_file(fixture, "got");
	request.signal = 0;
	assert_int_equal(ask(fixture, request).rc, -EINVAL);
	request.signal = 10000;
	assert_int_equal(ask(fixture, request).rc, -EINVAL);
	request.op = TAKT_LAUNCH_STOP;
	assert_int_equal(ask(fixture, request).rc, 0);
	assert_int_equal(wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED).exit_code, 4);
	for (int i = 0; i < 6000 && ask(fixture, request).rc == 0; i++)
		sleep_ms(10); /* its record is there a moment before it is gone */
	assert_int_equal(ask(fixture, request).rc, -ESRCH);
}

/* A pid alone is not who it was. */
static void test_does_not_signal_a_reused_pid(void **state)
{
	struct fixture *fixture = *state;
	struct takt_launch_request request = {
		.op = TAKT_LAUNCH_STOP, .job_id = 1, .attempt = 1, .uid = getuid()};
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	launcher_start(fixture, NULL, NULL);
	assert_int_equal(takt_proc_identify(child, &request.target, NULL), 0);
	request.target.start_ticks++;
	assert_int_equal(ask(fixture, request).rc, -ESRCH);
	request.target.start_ticks--;
	snprintf(request.target.boot_id, sizeof(request.target.boot_id), "another");
	assert_int_equal(ask(fixture, request).rc, -ESRCH);
	assert_int_equal(kill(child, 0), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static pid_t fork_with_words(uid_t uid, const char *words)
{
	char sleeps[] = "sleep", seconds[] = "600";
	char *const argv[] = {sleeps, seconds, NULL}, *const env[] = {(char *)words, NULL};
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		if (uid != getuid() && setresuid(uid, uid, uid) < 0)
			_exit(1);
		execve("/bin/sleep", argv, env);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0); /* it has begun its program */
	close(ready[0]);
	return child;
}

static void expect_whose(struct fixture *fixture, uid_t as, uid_t uid, const char *words, int rc,
			 const char *named)
{
	struct takt_launch_request request = {.op = TAKT_LAUNCH_WHOSE, .uid = uid};
	pid_t child = fork_with_words(as, words);
	struct takt_launch_reply reply;

	assert_int_equal(takt_proc_identify(child, &request.target, NULL), 0);
	reply = ask(fixture, request);
	request.target.start_ticks++;
	assert_int_equal(ask(fixture, request).rc, -ESRCH);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(reply.rc, rc);
	if (rc == 0)
		assert_string_equal(reply.message, named);
	else
		assert_null(strstr(reply.message, "secret"));
}

/* Of a process's environment the launcher says one variable, if it is no longer than an id. */
static void test_tells_whose_a_process_is(void **state)
{
	struct fixture *fixture = *state;
	char longer[200] = "TAKT_ATTEMPT=";

	memset(longer + strlen(longer), 'x', TAKT_ATTEMPT_ID_MAX);
	launcher_start(fixture, NULL, NULL);
	expect_whose(fixture, getuid(), getuid(), "TAKT_ATTEMPT=7.1.ab", 0, "7.1.ab");
	expect_whose(fixture, getuid(), getuid(), "TAKT_ATTEMPTS=secret", 0, "");
	expect_whose(fixture, getuid(), getuid(), longer, 0, "");
}

static void test_reaps_what_a_killed_shim_leaves(void **state)
{
	struct fixture *fixture = *state;
	struct takt_launch_request request = {
		.op = TAKT_LAUNCH_REAP, .job_id = 1, .attempt = 1, .uid = getuid()};
	struct takt_proc_id shim;
	int left = -1;

	launcher_start(fixture, NULL, NULL);
	create_sh(fixture, 1, 1, 2000,
		  "setsid sh -c 'while :; do echo x >> beat; sleep 0.01; done' & sleep 60");
	shim = ask_start(fixture, 1, 1).shim;
	wait_file(fixture, "beat");
	assert_int_equal(ask(fixture, request).rc, -TAKT_E_CONFLICT); /* it lives */
	kill(shim.pid, SIGKILL);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_ORPHANED);
	for (int i = 0; i < 24000 && left != 0; i++) {
		left = ask(fixture, request).rc;
		sleep_ms(5);
	}
	assert_int_equal(left, 0);
	{
		char *beats = slurp(fixture, "beat");

		sleep_ms(60);
		expect_file(fixture, "beat", beats);
		takt_free(beats);
	}
}

/* An update of the package takes the shim away, or puts something else in its place. */
static void test_missing_shim_is_reported(void **state)
{
	struct fixture *fixture = *state;
	char path[96];
	const char *const args[] = {"--shim", path, NULL};
	struct takt_launch_reply reply;

	snprintf(path, sizeof(path), "%s/shim", fixture->dir);
	assert_int_equal(symlink("/bin/true", path), 0);
	launcher_start(fixture, NULL, args);
	create_sh(fixture, 1, 1, 2000, "true");
	assert_int_equal(ask_start(fixture, 1, 1).rc, 0); /* runs, but is no shim */
	assert_int_equal(unlink(path), 0);
	reply = ask_start(fixture, 1, 1);
	assert_int_equal(reply.rc, -ENOENT);
	assert_int_equal(reply.refusal, TAKT_REFUSAL_LAUNCHER);
	assert_non_null(strstr(reply.message, path));
	assert_non_null(strstr(reply.message, "No such file"));
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_NOT_STARTED);
}

static void test_jobs_go_on_without_launcher(void **state)
{
	struct fixture *fixture = *state;

	launcher_start(fixture, NULL, NULL);
	create_sh(fixture, 1, 1, 2000,
		  "echo x > ready; until [ -e on ]; do sleep 0.01; done; exit 6");
	assert_int_equal(ask_start(fixture, 1, 1).rc, 0);
	wait_file(fixture, "ready");
	launcher_kill(fixture, SIGKILL);
	put_file(fixture, "on");
	assert_int_equal(wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED).exit_code, 6);
	launcher_start(fixture, NULL, NULL); /* over the dead socket's name */
	create_sh(fixture, 2, 1, 2000, "true");
	assert_int_equal(ask_start(fixture, 2, 1).rc, 0);
	wait_state(fixture, 2, 1, TAKT_ATTEMPT_EXITED);
}

static void test_serves_the_next_client(void **state)
{
	struct fixture *fixture = *state;

	launcher_start(fixture, NULL, NULL);
	launcher_connect(fixture); /* frees the first */
	assert_int_equal(ask(fixture, (struct takt_launch_request){.op = TAKT_LAUNCH_HELLO}).rc, 0);
}

static void test_ends_when_nobody_comes(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--idle-ms", "50", NULL};
	int status;

	launcher_start(fixture, NULL, args);
	takt_launch_client_free(fixture->client);
	fixture->client = NULL;
	status = wait_pid(fixture->launcher);
	fixture->launcher = 0;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_two_cannot_listen(void **state)
{
	struct fixture *fixture = *state;
	struct takt_err err;

	launcher_start(fixture, NULL, NULL);
	assert_int_equal(takt_launch_listen(fixture->socket, &err), -TAKT_E_BUSY);
	assert_non_null(strstr(err.msg, fixture->socket));
}

/* Garbage ends the connection, not the launcher. */
static void test_foreign_messages_end_the_connection(void **state)
{
	struct fixture *fixture = *state;
	char byte = 0;
	struct pollfd fd;

	launcher_start(fixture, NULL, NULL);
	fd = (struct pollfd){.fd = takt_launch_fd(fixture->client), .events = POLLIN};
	assert_int_equal(send(fd.fd, "hello", 5, 0), 5);
	assert_int_equal(poll(&fd, 1, 5000), 1);
	assert_int_equal(recv(fd.fd, &byte, 1, 0), 0);
	launcher_connect(fixture);
	assert_int_equal(ask(fixture, (struct takt_launch_request){.op = TAKT_LAUNCH_HELLO}).rc, 0);
}

static void need_root(void)
{
	if (geteuid() != 0) {
		print_message("# skipped: needs root to become another user\n");
		skip();
	}
}

static struct takt_launch_reply start_as(struct fixture *fixture, uint64_t job, uid_t uid,
					 gid_t gid)
{
	return ask(fixture, (struct takt_launch_request){.op = TAKT_LAUNCH_START,
							 .job_id = job,
							 .attempt = 1,
							 .uid = uid,
							 .gid = gid});
}

/* The launcher is root's, the daemon another user's: its jobs never run as root or a system user.
 */
static void test_root_launcher_refuses_system_users(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--min-uid", "1000", NULL};

	need_root();
	launcher_start(fixture, NULL, args);
	create_sh(fixture, 1, 1, 2000, "echo x >> /tmp/never");
	assert_int_equal(start_as(fixture, 1, 0, 0).rc, -EPERM);
	assert_int_equal(start_as(fixture, 1, 999, 999).rc, -EPERM);
	assert_int_equal(start_as(fixture, 1, 999, 999).refusal, TAKT_REFUSAL_USER);
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_NOT_STARTED);
}

static void give_away(const struct fixture *fixture, uid_t uid)
{
	static const char *const names[] = {"", "/lock", "/spec"};
	char path[128];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/1.1%s", fixture->jobs, names[i]);
		assert_int_equal(chown(path, uid, uid), 0);
	}
}

static void test_job_runs_as_the_other_user(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--allow-weak-isolation",
				    "--allow-system-users", NULL};
	struct stat st;
	char path[128];
	char *log;
	int fd;

	need_root();
	launcher_start(fixture, NULL, args);
	create_sh(fixture, 1, 1, 2000, "id -u; id -g; id -G; grep CapEff /proc/self/status");
	give_away(fixture, 4321); /* as the daemon would have made it */
	assert_int_equal(start_as(fixture, 1, NOBODY, NOBODY).rc, 0);
	assert_int_equal(wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED).exit_code, 0);
	log = slurp_log(fixture, 1, 1);
	assert_string_equal(log, "65534\n65534\n65534\nCapEff:\t0000000000000000\n");
	takt_free(log);
	/* Records are root's, and the daemon's group may read them; the log was lent to the user.
	 */
	snprintf(path, sizeof(path), "%s/1.1/exit", fixture->jobs);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_gid, 4321);
	assert_int_equal(st.st_mode & 0777, 0640);
	snprintf(path, sizeof(path), "%s/1.1/log", fixture->jobs);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(takt_file_whose(fd, &st), NOBODY);
	assert_int_equal(st.st_gid, 4321);
	close(fd);
}

/* What it can reach of its own attempt is its log; its shim it can neither stop nor end. */
static void test_a_job_has_no_power_over_its_attempt(void **state)
{
	static const char script[] =
		"cd %s/1.1 || echo no way\n"
		"for sig in STOP TERM KILL; do kill -$sig $PPID 2>/dev/null && echo $sig; done\n"
		"for name in exit started go tty log; do\n"
		"  ln -s /etc/passwd $name 2>/dev/null && echo linked $name\n"
		"  mv $name other 2>/dev/null && echo moved $name\n"
		"done\n"
		"for name in lock spec shim isolation started; do\n"
		"  cat $name 2>/dev/null && echo read $name\n"
		"  rm -f $name 2>/dev/null && [ ! -e $name ] && echo removed $name\n"
		"  { echo takt-exit > $name; } 2>/dev/null && echo wrote $name\n"
		"done\n"
		"ls . 2>/dev/null; chmod 777 . 2>/dev/null && echo opened\n"
		"echo mine >> log; echo standard >> /dev/stderr; exit 7";
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--allow-weak-isolation",
				    "--allow-system-users", NULL};
	struct takt_attempt_status status;
	char text[1024], *log;

	need_root();
	launcher_start(fixture, NULL, args);
	snprintf(text, sizeof(text), script, fixture->jobs);
	create_sh(fixture, 1, 1, 2000, text);
	give_away(fixture, 4321);
	assert_int_equal(start_as(fixture, 1, NOBODY, NOBODY).rc, 0);
	status = wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	assert_int_equal(status.exit_kind, TAKT_EXIT_EXITED);
	assert_int_equal(status.exit_code, 7);
	log = slurp_log(fixture, 1, 1);
	assert_string_equal(log, "mine\nstandard\n");
	takt_free(log);
}

/* A request that is repeated takes nothing back of what the shim at work has given its user. */
static void test_a_burst_of_requests_shuts_no_user_out(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--allow-weak-isolation",
				    "--allow-system-users", NULL};
	struct takt_launch_request request = {
		.op = TAKT_LAUNCH_START, .job_id = 1, .attempt = 1, .uid = NOBODY, .gid = NOBODY};
	char text[256], *log;

	need_root();
	launcher_start(fixture, NULL, args);
	snprintf(text, sizeof(text), "sleep 0.5; cd %s/1.1 && echo mine >> log", fixture->jobs);
	create_sh(fixture, 1, 1, 2000, text);
	give_away(fixture, 4321);
	for (request.seq = 1; request.seq <= 20; request.seq++)
		assert_int_equal(takt_launch_send(fixture->client, request, NULL), 0);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	log = slurp_log(fixture, 1, 1);
	assert_string_equal(log, "mine\n");
	takt_free(log);
}

/* A set-group-ID program of the system's gives nobody its group for his jobs. */
static void test_groups_are_those_of_the_data_base(void **state)
{
	enum {
		UNKNOWN = 54321
	};
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--allow-weak-isolation",
				    "--allow-system-users", NULL};
	char *log;

	need_root();
	launcher_start(fixture, NULL, args);
	create_sh(fixture, 1, 1, 2000, "id -u; id -g; id -G");
	give_away(fixture, 4321);
	assert_int_equal(start_as(fixture, 1, UNKNOWN, 0).rc, -EPERM);
	assert_int_equal(start_as(fixture, 1, UNKNOWN, 0).refusal, TAKT_REFUSAL_USER);
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_NOT_STARTED);
	give_away(fixture, 4321);
	assert_int_equal(start_as(fixture, 1, NOBODY, 0).rc, 0);
	assert_int_equal(wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED).exit_code, 0);
	log = slurp_log(fixture, 1, 1);
	assert_string_equal(log, "65534\n65534\n65534\n");
	takt_free(log);
}

/* Nobody's but that user's, who is one that may run jobs. */
static void test_tells_of_processes_of_the_named_user(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--allow-weak-isolation", NULL};

	need_root();
	launcher_start(fixture, NULL, args);
	expect_whose(fixture, 4343, 4343, "TAKT_ATTEMPT=7.1.ab", 0, "7.1.ab");
	expect_whose(fixture, 4242, 4343, "TAKT_ATTEMPT=secret", -EPERM, NULL);
	expect_whose(fixture, 0, 4343, "TAKT_ATTEMPT=secret", -EPERM, NULL);
}

/* The spec is the user's by then: what he writes into it as cgroup is not root's to remove. */
static void test_root_does_not_touch_a_cgroup_that_the_user_names(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--allow-weak-isolation",
				    "--allow-system-users", NULL};
	struct takt_launch_request request = {
		.op = TAKT_LAUNCH_REAP, .job_id = 1, .attempt = 1, .uid = NOBODY};
	struct takt_attempt_spec spec;

	need_root();
	launcher_start(fixture, NULL, args);
	spec = spec_sh(fixture, 1, 1, "true");
	snprintf(spec.cgroup, sizeof(spec.cgroup), "%s/victim", fixture->dir);
	assert_int_equal(mkdir(spec.cgroup, 0700), 0);
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	give_away(fixture, NOBODY);
	assert_int_equal(ask(fixture, request).rc, 0);
	assert_int_equal(access(spec.cgroup, F_OK), 0);
	takt_attempt_spec_fini(&spec);
}

/* A directory that is neither the daemon's nor root's was put there by somebody else. */
static void test_foreign_attempt_is_not_taken_over(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid", "4321", "--allow-weak-isolation",
				    "--allow-system-users", NULL};
	struct takt_launch_reply reply;

	need_root();
	launcher_start(fixture, NULL, args);
	create_sh(fixture, 1, 1, 2000, "true");
	give_away(fixture, NOBODY);
	reply = start_as(fixture, 1, NOBODY, NOBODY);
	assert_int_equal(reply.rc, -EPERM);
	assert_int_equal(reply.refusal, TAKT_REFUSAL_ATTEMPT);
}

/* Jobs of other users run where they are kept from each other's GPUs, or somebody has said that
 * they need not be. */
static void test_weak_isolation_has_to_be_allowed(void **state)
{
	struct fixture *fixture = *state;
	const char *const args[] = {"--client-uid",	    "4321", "--cgroup", "/nowhere",
				    "--allow-system-users", NULL};
	struct takt_launch_reply reply;

	need_root();
	launcher_start(fixture, NULL, args);
	create_sh(fixture, 1, 1, 2000, "true");
	give_away(fixture, 4321);
	reply = start_as(fixture, 1, NOBODY, NOBODY);
	assert_int_equal(reply.rc, -EPERM);
	assert_non_null(strstr(reply.message, "/nowhere"));
	assert_int_equal(reply.refusal, TAKT_REFUSAL_ISOLATION);
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_NOT_STARTED);
}

static void test_strangers_are_not_served(void **state)
{
	struct fixture *fixture = *state;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	pid_t child;
	int status;

	need_root();
	launcher_start(fixture, NULL, NULL);
	takt_launch_client_free(fixture->client);
	fixture->client = NULL;
	assert_int_equal(chmod(fixture->socket, 0777), 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", fixture->socket);
	child = fork();
	if (child == 0) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		char byte;

		if (setuid(NOBODY) < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
			_exit(1);
		_exit(recv(fd, &byte, 1, 0) == 0 ? 42 : 2); /* hung up on */
	}
	status = wait_pid(child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	launcher_connect(fixture);
	assert_int_equal(ask(fixture, (struct takt_launch_request){.op = TAKT_LAUNCH_HELLO}).rc, 0);
}

/* Killed at each of its points: whatever it left, asking its successor leads to one run. */
static void crash_launcher_at(struct fixture *fixture, uint64_t job, const char *point)
{
	char name[32];

	launcher_start(fixture, point, NULL);
	snprintf(name, sizeof(name), "ran%llu", (unsigned long long)job);
	{
		char line[64];

		snprintf(line, sizeof(line), "echo x >> %s", name);
		create_sh(fixture, job, 1, 2000, line);
	}
	assert_int_equal(ask_start(fixture, job, 1).rc, -EPIPE);
	wait_pid(fixture->launcher);
	fixture->launcher = 0;
	launcher_start(fixture, NULL, NULL);
	(void)ask_start(fixture, job, 1);
	wait_state(fixture, job, 1, TAKT_ATTEMPT_EXITED);
	sleep_ms(50);
	expect_file(fixture, name, "x\n");
	launcher_kill(fixture, SIGTERM);
}

static void test_killed_at_every_point(void **state)
{
	crash_launcher_at(*state, 1, "launch.before_fork");
	crash_launcher_at(*state, 2, "launch.after_fork");
	crash_launcher_at(*state, 3, "launch.before_reply");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_up, fixture_down)
		CASE(test_starts_a_shim_and_names_it),
		CASE(test_never_starts_an_attempt_twice),
		CASE(test_a_burst_of_the_same_request_runs_once),
		CASE(test_refuses_what_has_no_spec),
		CASE(test_stop_and_signal_reach_the_job),
		CASE(test_does_not_signal_a_reused_pid),
		CASE(test_tells_whose_a_process_is),
		CASE(test_tells_of_processes_of_the_named_user),
		CASE(test_reaps_what_a_killed_shim_leaves),
		CASE(test_missing_shim_is_reported),
		CASE(test_jobs_go_on_without_launcher),
		CASE(test_serves_the_next_client),
		CASE(test_ends_when_nobody_comes),
		CASE(test_two_cannot_listen),
		CASE(test_foreign_messages_end_the_connection),
		CASE(test_root_launcher_refuses_system_users),
		CASE(test_job_runs_as_the_other_user),
		CASE(test_a_job_has_no_power_over_its_attempt),
		CASE(test_a_burst_of_requests_shuts_no_user_out),
		CASE(test_groups_are_those_of_the_data_base),
		CASE(test_foreign_attempt_is_not_taken_over),
		CASE(test_root_does_not_touch_a_cgroup_that_the_user_names),
		CASE(test_weak_isolation_has_to_be_allowed),
		CASE(test_strangers_are_not_served),
		CASE(test_killed_at_every_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
