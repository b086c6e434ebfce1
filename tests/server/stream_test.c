/* SPDX-License-Identifier: Apache-2.0 */
/* Live updates: what many listeners cost. And how a job went, over the same raw sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_backend.h"
#include "net/listen.h"

enum {
	ROUNDS = 2000,
	ACCOUNTS = 50,
	MANY = 10,
	ALICE = 4242, /* and the numbers after it; no account is needed */
};

static struct fake fake;

static int set_up(void **state)
{
	fake_start(&fake, false, false);
	return 0;
}

static int tear_down(void **state)
{
	fake_stop(&fake);
	return 0;
}

/* What comes begins so. */
static void hear(int fd, const char *begins)
{
	char answer[64] = "";
	size_t len = 0, wanted = strlen(begins);

	for (int round = 0; round < ROUNDS && len < wanted; round++) {
		ssize_t n = recv(fd, answer + len, wanted - len, MSG_DONTWAIT);

		len += n > 0 ? (size_t)n : 0;
		fake_pump(&fake, 1);
	}
	assert_string_equal(answer, begins);
}

static void say(int fd, const char *request)
{
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
}

static void ask(int fd, const char *request, const char *begins)
{
	say(fd, request);
	hear(fd, begins);
}

static int dial_as(uid_t uid)
{
	int fd = -1;

	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(takt_net_connect_unix(fake.socket, &fd, NULL), 0);
	assert_int_equal(seteuid(0), 0);
	fake_pump(&fake, 1);
	return fd;
}

/* However the listeners came. */
static void root_what_a_user_listens_to_is_made_once_a_round(void **state)
{
	int fds[2 * ACCOUNTS];

	if (geteuid() != 0)
		skip();
	fake.max_connections = 4 * ACCOUNTS;
	fake.many_users = true;
	fake_restart(&fake);
	assert_int_equal(chmod(fake.dir, 0711), 0);
	for (int i = 0; i < 2 * ACCOUNTS; i++) {
		fds[i] = dial_as(ALICE + (uid_t)i % ACCOUNTS);
		ask(fds[i], "GET /v1/stream?of=jobs,status HTTP/1.1\r\nHost: takt\r\n\r\n",
		    "HTTP/1.1 200");
	}
	fake.lists_made = 0;
	for (int round = 0; round < ROUNDS && fake.lists_made == 0; round++)
		fake_pump(&fake, 100);
	assert_int_equal(fake.lists_made, ACCOUNTS);
	for (int i = 0; i < 2 * ACCOUNTS; i++)
		close(fds[i]);
}

/* However many a user asks for, one is made in a turn of the loop, and the next user's comes next.
 */
static void root_what_costs_much_is_made_one_a_turn(void **state)
{
	static const char costly[] =
		"GET /v1/jobs?history=1&limit=10000 HTTP/1.1\r\nHost: t\r\n\r\n";
	int alice[MANY], bob;
	unsigned before;

	if (geteuid() != 0)
		skip();
	fake.max_connections = 8 * MANY;
	fake.many_users = true;
	fake_restart(&fake);
	assert_int_equal(chmod(fake.dir, 0711), 0);
	for (int i = 0; i < MANY; i++)
		alice[i] = dial_as(ALICE);
	bob = dial_as(ALICE + 1);
	for (int i = 0; i < MANY; i++)
		say(alice[i], costly);
	fake_pump(&fake, 1000);
	say(bob, costly);
	fake_pump(&fake, 1000);
	before = fake.pasts_made;
	assert_in_range(before, 1, 2);
	close(alice[MANY - 1]); /* nobody waits for that any more */
	for (unsigned made = before; made < MANY; made = fake.pasts_made) {
		char answer[16];

		fake_pump(&fake, 1000);
		assert_in_range(fake.pasts_made, made, made + 1);
		if (made == before + 2)
			assert_true(recv(bob, answer, sizeof(answer), MSG_DONTWAIT) > 0);
	}
	for (int i = 0; i < MANY - 1; i++) {
		hear(alice[i], "HTTP/1.1 200");
		close(alice[i]);
	}
	assert_int_equal(fake.pasts_made, MANY);
	close(bob);
}

/* Who stops does not forget those who wait for their turn. */
static void whose_turn_does_not_come_is_told(void **state)
{
	static const char costly[] = "GET /v1/jobs?history=1 HTTP/1.1\r\nHost: t\r\n\r\n";
	int fds[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(takt_net_connect_unix(fake.socket, &fds[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		say(fds[i], costly);
	fake_pump(&fake, 1000);
	fake_restart(&fake);
	for (int i = 0; i < 4; i++) {
		char answer[16] = "";

		assert_true(recv(fds[i], answer, 12, MSG_DONTWAIT) == 12);
		assert_true(strcmp(answer, "HTTP/1.1 200") == 0 ||
			    strcmp(answer, "HTTP/1.1 503") == 0);
		close(fds[i]);
	}
}

static void how_a_job_went_is_said_of_jobs_that_are_there(void **state)
{
	int fd = -1;

	assert_int_equal(takt_net_connect_unix(fake.socket, &fd, NULL), 0);
	ask(fd, "GET /v1/jobs/7/course HTTP/1.1\r\nHost: takt\r\n\r\n", "HTTP/1.1 404");
	close(fd);
}

/* Whether who waits for the server's descriptor is woken now. */
static bool wakes(void)
{
	struct pollfd fd = {.fd = takt_server_fd(fake.server), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* The daemon sleeps on the descriptor: what only a timer would send comes late, and what wakes it
 * again and again costs a processor. */
static void an_answer_wakes_the_server_and_a_wait_does_not(void **state)
{
	int fd = -1;

	assert_int_equal(takt_net_connect_unix(fake.socket, &fd, NULL), 0);
	say(fd, "POST /v1/jobs HTTP/1.1\r\nHost: takt\r\nContent-Type: application/json\r\n"
		"Content-Length: 28\r\n\r\n{\"argv\":[\"never\"],\"cwd\":\"/\"}");
	for (int i = 0; i < 20; i++)
		fake_pump(&fake, 1);
	assert_false(wakes());
	fake_accept(&fake);
	assert_true(wakes());
	hear(fd, "HTTP/1.1 201");
	for (int i = 0; i < 20; i++)
		fake_pump(&fake, 1);
	assert_false(wakes());
	close(fd);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(root_what_a_user_listens_to_is_made_once_a_round),
		CASE(root_what_costs_much_is_made_one_a_turn),
		CASE(whose_turn_does_not_come_is_told),
		CASE(how_a_job_went_is_said_of_jobs_that_are_there),
		CASE(an_answer_wakes_the_server_and_a_wait_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
