/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server that says exactly what a test wants, and hangs up when it wants. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "client/client.h"

#define OK(body) "HTTP/1.1 200 OK\r\nContent-Length: " body

struct turn {
	const char *answer; /* NULL = hangs up without a word */
	bool hang_up;	    /* afterwards, whatever the answer said */
	bool impatient;	    /* answers when it has seen the head */
};

static struct {
	char dir[64], path[80];
	int listens;
	pthread_t thread;
	const struct turn *turns;
	size_t left;
	unsigned connections, requests;
	char last[4096];
} server;

static struct takt_client *client;

static size_t length_of(const char *head)
{
	const char *line = strcasestr(head, "\r\nContent-Length: ");

	return line ? strtoul(line + 18, NULL, 10) : 0;
}

/* False: the other end has hung up. */
static bool read_request(int fd, bool impatient)
{
	char bytes[65536];
	size_t used = 0, want = 0;
	const char *end;
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		if (used < sizeof(server.last) - 1) {
			size_t room = sizeof(server.last) - 1 - used;

			memcpy(server.last + used, bytes, (size_t)n < room ? (size_t)n : room);
			server.last[used + ((size_t)n < room ? (size_t)n : room)] = '\0';
		}
		used += (size_t)n;
		end = strstr(server.last, "\r\n\r\n");
		want = end ? (size_t)(end - server.last) + 4 + length_of(server.last) : 0;
		if (end && (impatient || used >= want))
			return true;
	}
	return false;
}

static void serve_one(int fd)
{
	bool more = true;

	while (more && server.left && read_request(fd, server.turns->impatient)) {
		const struct turn *turn = server.turns++;

		server.left--;
		server.requests++;
		if (turn->answer)
			assert_true(write(fd, turn->answer, strlen(turn->answer)) > 0);
		more = turn->answer && !turn->hang_up;
	}
	close(fd);
}

static void *serve(void *ctx)
{
	while (server.left) {
		int fd = accept4(server.listens, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			break;
		server.connections++;
		serve_one(fd);
	}
	return NULL;
}

static void start(const struct turn *turns, size_t count)
{
	server.turns = turns;
	server.left = count;
	server.connections = server.requests = 0;
	assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
	assert_int_equal(takt_client_connect(server.path, &client, NULL), 0);
}
#define START(...)                                        \
	static const struct turn turns[] = {__VA_ARGS__}; \
	start(turns, TAKT_ARRAY_LEN(turns))

/* All turns have been taken. */
static void stop(void)
{
	takt_client_free(client);
	pthread_join(server.thread, NULL);
	assert_int_equal(server.left, 0);
}

static int set_up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(server.dir, sizeof(server.dir), "/tmp/takt-exchange-XXXXXX");
	assert_non_null(mkdtemp(server.dir));
	snprintf(server.path, sizeof(server.path), "%s/sock", server.dir);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", server.path);
	server.listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server.listens, (struct sockaddr *)&address, sizeof(address)), 0);
	return listen(server.listens, 8);
}

static int tear_down(void **state)
{
	close(server.listens);
	unlink(server.path);
	return rmdir(server.dir);
}

static int ask(const char *body)
{
	return takt_client_ask(client, "/v1/x", body, NULL);
}

static void a_question_keeps_its_connection_a_change_has_its_own(void **state)
{
	START({OK("1\r\n\r\na")}, {OK("1\r\n\r\nb")}, {OK("1\r\n\r\nc")}, {OK("1\r\n\r\nd")});
	assert_int_equal(ask(NULL), 0);
	assert_int_equal(ask(NULL), 0);
	assert_string_equal(takt_client_json(client), "b");
	assert_string_equal(server.last, "GET /v1/x HTTP/1.1\r\nHost: takt\r\n\r\n");
	assert_int_equal(ask("{}"), 0);
	assert_string_equal(server.last, "POST /v1/x HTTP/1.1\r\nHost: takt\r\nContent-Type: "
					 "application/json\r\nContent-Length: 2\r\n\r\n{}");
	assert_int_equal(ask(NULL), 0);
	assert_string_equal(takt_client_json(client), "d");
	stop();
	assert_int_equal(server.connections, 2);
}

static void a_connection_that_ended_meanwhile_is_made_anew(void **state)
{
	START({OK("1\r\n\r\na"), .hang_up = true}, {OK("1\r\n\r\nb")}, {NULL}, {OK("1\r\n\r\nc")},
	      {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nd"},
	      {OK("1\r\n\r\ne")});
	for (const char *expected = "abcde"; *expected; expected++) {
		assert_int_equal(ask(NULL), 0);
		assert_int_equal(takt_client_json(client)[0], *expected);
	}
	stop();
	assert_int_equal(server.requests, 6);
}

static unsigned did;

static void do_something(void)
{
	did++;
}

static void what_is_to_be_done_meanwhile_is_done_once(void **state)
{
	START({OK("1\r\n\r\na")}, {OK("1\r\n\r\nb")});
	did = 0;
	takt_client_meanwhile(client, do_something);
	assert_int_equal(did, 0);
	assert_int_equal(ask(NULL), 0);
	assert_int_equal(did, 1);
	assert_int_equal(ask(NULL), 0);
	assert_int_equal(did, 1);
	stop();
}

static void a_change_is_never_sent_twice(void **state)
{
	struct takt_err err;

	START({OK("1\r\n\r\na")}, {NULL}, {OK("1\r\n\r\nb")});
	assert_int_equal(ask(NULL), 0);
	assert_int_equal(takt_client_ask(client, "/v1/x", "{}", &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "lost the connection to takt on '/tmp/takt-exchange-"));
	assert_int_equal(server.requests, 2);
	assert_int_equal(ask(NULL), 0);
	stop();
}

static void bodies_come_in_any_form(void **state)
{
	START({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	       "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"},
	      {"HTTP/1.1 204 No Content\r\n\r\n"},
	      {"HTTP/1.0 200 OK\r\n\r\nto the end", .hang_up = true}, {OK("0\r\n\r\n")});
	assert_int_equal(ask(NULL), 0);
	assert_string_equal(takt_client_json(client), "abcdefg");
	assert_int_equal(ask(NULL), 0);
	assert_string_equal(takt_client_json(client), "");
	assert_int_equal(ask(NULL), 0);
	assert_string_equal(takt_client_json(client), "to the end");
	assert_int_equal(ask(NULL), 0);
	assert_string_equal(takt_client_json(client), "");
	stop();
}

static void what_is_no_answer_is_told(void **state)
{
	struct takt_err err;

	START({OK("10\r\n\r\nabc"), .hang_up = true}, {"SSH-2.0-OpenSSH_9.2\r\n", .hang_up = true},
	      {"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n<html>no>"});
	assert_int_equal(takt_client_ask(client, "/v1/x", NULL, &err), -TAKT_E_UNAVAILABLE);
	assert_int_equal(takt_client_ask(client, "/v1/x", NULL, &err), -TAKT_E_UNAVAILABLE);
	assert_int_equal(takt_client_ask(client, "/v1/x", NULL, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "is no takt (HTTP status 404)"));
	stop();
}

static void a_log_says_where_it_is(void **state)
{
	struct takt_log_place place = {.offset = 5, .attempt = 1};
	const char *bytes;
	size_t len;

	START({"HTTP/1.1 200 OK\r\nX-A-Header-Much-Longer-Than-Any-That-Is-Known: 1\r\n"
	       "takt-log-offset: 12\r\nTakt-Log-Attempt:   2\r\nX-Empty:\r\nTakt-Log-Live: "
	       "true\r\nContent-Length: 3\r\n\r\nabc"},
	      {OK("0\r\n\r\n")});
	assert_int_equal(takt_client_log(client, 7, 0, &place, &bytes, &len, NULL), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "abc", 3);
	assert_int_equal(place.offset, 12);
	assert_int_equal(place.attempt, 2);
	assert_false(place.over);
	assert_int_equal(takt_client_log(client, 7, 0, &place, &bytes, &len, NULL), 0);
	assert_int_equal(place.offset, 12);
	assert_int_equal(place.attempt, 2);
	assert_true(place.over);
	stop();
}

/* More than a socket holds, so that the client still writes when the answer is there. */
static void an_answer_before_the_end_of_the_question_is_heard(void **state)
{
	enum {
		MUCH = 8 << 20
	};
	char *body = malloc(MUCH + 1);
	struct takt_err err;

	START({"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 63\r\n\r\n"
	       "{\"error\":{\"name\":\"LIMIT\",\"message\":\"too much is what that is\"}}",
	       .hang_up = true, .impatient = true});
	assert_non_null(body);
	memset(body, ' ', MUCH);
	body[MUCH] = '\0';
	assert_int_equal(takt_client_ask(client, "/v1/x", body, &err), -TAKT_E_LIMIT);
	assert_string_equal(err.msg, "too much is what that is");
	free(body);
	stop();
}

static void memory_that_is_missing_is_told(void **state)
{
	bool failed = true;

	START({OK("1\r\n\r\na")}, {OK("1\r\n\r\nb")}, {OK("1\r\n\r\nc")}, {OK("1\r\n\r\nd")});
	for (unsigned nth = 1; failed && server.left; nth++) {
		int rc;

		takt_alloc_fail_nth(nth, 0);
		rc = ask(NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		failed = rc < 0;
		assert_true(nth > 1 || failed);
	}
	while (server.left)
		assert_int_equal(ask(NULL), 0);
	stop();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_question_keeps_its_connection_a_change_has_its_own),
		CASE(a_connection_that_ended_meanwhile_is_made_anew),
		CASE(what_is_to_be_done_meanwhile_is_done_once),
		CASE(a_change_is_never_sent_twice),
		CASE(bodies_come_in_any_form),
		CASE(what_is_no_answer_is_told),
		CASE(a_log_says_where_it_is),
		CASE(an_answer_before_the_end_of_the_question_is_heard),
		CASE(memory_that_is_missing_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
