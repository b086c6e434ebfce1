/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of a job, seen from its socket. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/terminal.h"
#include "launch_fixture.h"

enum {
	PATIENCE_MS = 60000
};

static pid_t start(const struct fixture *fixture, const char *line)
{
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 1, line);

	spec.pty = true;
	spec.grace_ms = 2000;
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
	return shim_start(fixture, 1, 1, NULL);
}

static int sit_down(const struct fixture *fixture)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc = -1;

	wait_state(fixture, 1, 1, TAKT_ATTEMPT_ALIVE);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/1.1/tty", fixture->jobs);
	for (int i = 0; i < 1000 && rc < 0; i++) {
		rc = connect(fd, (struct sockaddr *)&address, sizeof(address));
		if (rc < 0)
			sleep_ms(10);
	}
	assert_int_equal(rc, 0);
	return fd;
}

static void type(int fd, const char *text)
{
	char message[TAKT_TERMINAL_MAX] = "d";

	takt_strcpy(message + 1, sizeof(message) - 1, text);
	assert_int_equal(send(fd, message, 1 + strlen(text), MSG_NOSIGNAL), 1 + strlen(text));
}

/* The next message, NUL-terminated; 0 when the other end has closed. */
static size_t hear(int fd, char ret[TAKT_TERMINAL_MAX + 2])
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	ssize_t got;

	assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
	got = recv(fd, ret, TAKT_TERMINAL_MAX + 1, 0);
	assert_true(got >= 0);
	ret[got] = '\0';
	return (size_t)got;
}

/* Until the data so far holds it. */
static void expect(int fd, const char *what)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	char message[TAKT_TERMINAL_MAX + 2];

	while (!strstr(takt_str_text(&text), what)) {
		if (hear(fd, message) == 0)
			fail_msg("it was closed after: %s", takt_str_text(&text));
		if (message[0] == TAKT_TERMINAL_DATA)
			takt_str_add(&text, message + 1);
	}
}

static void expect_message(int fd, char what)
{
	char message[TAKT_TERMINAL_MAX + 2];

	do
		assert_true(hear(fd, message) > 0);
	while (message[0] != what);
}

static void resize(int fd, uint16_t rows, uint16_t columns)
{
	struct takt_terminal_size size = {rows, columns};
	char message[1 + sizeof(size)] = {TAKT_TERMINAL_SIZE};

	memcpy(message + 1, &size, sizeof(size));
	assert_int_equal(send(fd, message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
}

static void test_job_has_a_terminal_and_its_log(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = start(fixture, "test -t 0 && test -t 1 && test -t 2 && tty >name;"
				    "stty size >size; read x; echo got-$x; exit 5");
	int fd = sit_down(fixture);
	char *text;

	type(fd, "hello\n");
	expect(fd, "got-hello");
	expect_message(fd, TAKT_TERMINAL_OVER);
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 5);
	close(fd);
	text = slurp(fixture, "name");
	assert_memory_equal(text, "/dev/pts/", 9);
	takt_free(text);
	text = slurp(fixture, "size");
	assert_string_equal(text, "24 80\n");
	takt_free(text);
	text = slurp_log(fixture, 1, 1);
	assert_non_null(strstr(text, "got-hello"));
	takt_free(text);
}

static void test_size_and_interrupt_reach_the_job(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = start(fixture, "trap 'stty size' WINCH; trap 'echo interrupted; exit 0' INT;"
				    "echo ready; while :; do sleep 0.05; done");
	int fd = sit_down(fixture);

	expect(fd, "ready");
	resize(fd, 40, 132);
	expect(fd, "40 132");
	resize(fd, 40, 132); /* who comes anew wants the picture drawn */
	expect(fd, "40 132");
	type(fd, "\003");
	expect(fd, "interrupted");
	assert_int_equal(wait_pid(shim), 0);
	close(fd);
}

static void test_job_outlives_who_sits_at_it(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = start(fixture, "echo first; read a; echo one-$a; read b; echo two-$b");
	int fd = sit_down(fixture);

	expect(fd, "first");
	close(fd);
	fd = sit_down(fixture);
	expect(fd, "first"); /* what he missed */
	type(fd, "x\n");
	expect(fd, "one-x");
	close(fd);
	fd = sit_down(fixture);
	type(fd, "y\n");
	expect(fd, "two-y");
	close(fd);
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 0);
}

static void test_who_comes_later_takes_the_place(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = start(fixture, "echo ready; read a; echo from-$a");
	int first = sit_down(fixture), second;
	char message[TAKT_TERMINAL_MAX + 2];

	expect(first, "ready");
	second = sit_down(fixture);
	expect_message(first, TAKT_TERMINAL_TAKEN);
	assert_int_equal(hear(first, message), 0);
	type(second, "second\n");
	expect(second, "from-second");
	assert_int_equal(wait_pid(shim), 0);
	close(first);
	close(second);
}

/* He sleeps; the job writes more than the socket holds and must not stand still for ever. */
static void test_client_that_does_not_read_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim =
		start(fixture, "echo ready; read a; head -c 700000 /dev/zero | tr '\\0' x; echo;"
			       "echo written");
	int fd = sit_down(fixture);
	char *log;

	expect(fd, "ready");
	type(fd, "go\n");
	assert_int_equal(wait_pid(shim), 0);
	log = slurp_log(fixture, 1, 1);
	assert_true(strlen(log) > 700000);
	assert_non_null(strstr(log, "written"));
	takt_free(log);
	close(fd);
}

static void test_socket_is_the_users_alone_and_goes_with_the_job(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = start(fixture, "echo ready; read a");
	int fd = sit_down(fixture);
	char path[120];
	struct stat st;

	snprintf(path, sizeof(path), "%s/1.1/tty", fixture->jobs);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	type(fd, "\n");
	assert_int_equal(wait_pid(shim), 0);
	close(fd);
	assert_int_equal(stat(path, &st), -1);
}

static void test_killed_shim_leaves_nothing_that_hinders_removal(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = start(fixture, "echo ready; exec sleep 1000");
	int fd = sit_down(fixture);

	expect(fd, "ready");
	kill(shim, SIGKILL);
	wait_pid(shim);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_ORPHANED);
	assert_int_equal(takt_attempt_remove(fixture->sys, fixture->jobs_dirfd, 1, 1, NULL), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_job_has_a_terminal_and_its_log, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_size_and_interrupt_reach_the_job, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_job_outlives_who_sits_at_it, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_who_comes_later_takes_the_place, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_client_that_does_not_read_is_dropped,
						fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(
			test_socket_is_the_users_alone_and_goes_with_the_job, fixture_up,
			fixture_down),
		cmocka_unit_test_setup_teardown(
			test_killed_shim_leaves_nothing_that_hinders_removal, fixture_up,
			fixture_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
