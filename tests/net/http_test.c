/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP over TCP as strangers would misuse it: heads that two readers understand differently, heads
 * that never end, connections that are held and not used. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/http.h"

enum {
	ROUNDS = 20000, /* of a millisecond */
	MOST = 6,
};

static struct takt_http *http;
static char large[64 << 20];
static uint16_t port;
static unsigned asked;
static struct takt_http_request *held; /* one of /hold that waits */
static char heard[4096];

static void on_request(void *ctx, struct takt_http_request *request)
{
	asked++;
	if (strcmp(request->path, "/hold") == 0)
		held = request;
	else if (strcmp(request->path, "/large") == 0)
		takt_http_answer(request, 200, "text/plain", large, sizeof(large), NULL, NULL);
	else
		takt_http_answer(request, 200, "text/plain", "yes", 3, NULL, NULL);
}

static void on_gone(void *ctx, struct takt_http_request *request)
{
	held = NULL;
}

static void serve(struct takt_http_config config)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_ANY); /* 127.0.0.2, too */
	config.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	config.request = on_request;
	config.gone = on_gone;
	config.max_body = 1000;
	assert_int_equal(bind(config.listen_fd, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(config.listen_fd, 50), 0);
	assert_int_equal(getsockname(config.listen_fd, (struct sockaddr *)&at, &size), 0);
	port = ntohs(at.sin_port);
	assert_int_equal(takt_http_new(&config, &http, NULL), 0);
	asked = 0;
}

static int teardown(void **state)
{
	takt_http_free(http);
	http = NULL;
	held = NULL;
	return 0;
}

static void pump(void)
{
	struct pollfd fd = {.fd = takt_http_fd(http), .events = POLLIN};
	int ms;

	(void)poll(&fd, 1, 1);
	assert_int_equal(takt_http_pump(http, &ms, NULL), 0);
}

/* From 127.0.0.N. */
static int dial(int n)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr = {htonl(0x7f000000u + (uint32_t)n)}};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	for (int i = 0; i < 3; i++)
		pump();
	return fd;
}

/* True: it was closed. What came before that is heard. */
static bool is_closed(int fd)
{
	size_t len = strlen(heard);
	ssize_t n = recv(fd, heard + len, sizeof(heard) - 1 - len, MSG_DONTWAIT);

	if (n > 0)
		heard[len + (size_t)n] = '\0';
	return n == 0 || (n < 0 && errno != EAGAIN);
}

/* '\a' stands for a NUL. */
static void say(int fd, const char *text)
{
	size_t len = strlen(text);
	char bytes[4096];

	assert_true(len < sizeof(bytes));
	memcpy(bytes, text, len);
	for (char *at = memchr(bytes, '\a', len); at; at = memchr(bytes, '\a', len))
		*at = '\0';
	(void)send(fd, bytes, len, MSG_NOSIGNAL);
}

/* The status of the answer to these bytes. */
static int talk_on(int fd, const char *text)
{
	int status = 0;

	heard[0] = '\0';
	say(fd, text);
	for (int i = 0; i < ROUNDS && !strstr(heard, "\r\n\r\n"); i++) {
		pump();
		if (is_closed(fd))
			break;
	}
	(void)sscanf(heard, "HTTP/1.1 %d", &status);
	return status;
}

static int talk(const char *text)
{
	int fd = dial(1), status = talk_on(fd, text);

	close(fd);
	return status;
}

static void must_close(int fd)
{
	for (int i = 0; i < ROUNDS; i++) {
		pump();
		if (is_closed(fd))
			return;
	}
	fail_msg("it is still open");
}

#define GET  "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"

static const struct takt_http_config plain = {.max_connections = MOST, .idle_s = 30};

static void a_head_of_two_meanings_is_refused(void **state)
{
	static const struct {
		const char *text, *said;
	} wrong[] = {
		{GET "Host: b\r\n\r\n", "two Host"},
		{GET "host: a\r\n\r\n", "two Host"},
		{GET "Origin: http://a\r\nOrigin: http://b\r\n\r\n", "two Origin"},
		{GET "Authorization: x\r\nauthorization: y\r\n\r\n", "two Authorization"},
		{GET "Sec-Fetch-Site: none\r\nSec-Fetch-Site: x\r\n\r\n", "two Sec-Fetch-Site"},
		{POST "Content-Type: a/b\r\nContent-Type: c/d\r\n\r\n", "two Content-Type"},
		{POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "two Content-Length"},
		{POST "Content-Length: 2\r\ncontent-length: 2\r\n\r\nab", "two Content-Length"},
		{POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"},
		{POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "both"},
		{POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "must be 'chunked'"},
		{POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n", "'chunked'"},
		{"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1"},
		{"GET / HTTP/1.1\nHost: a\n\n", "CR LF"},
		{"GET / HTTP/1.1\nHost: a\r\n\r\n", "CR LF"},
		{"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "CR LF"},
		{GET "X:\nY: b\r\n\r\n", "CR LF"},
		{GET "X: b\n\r\n", "CR LF"},
		{GET "\n", "CR LF"},
		{GET "X: b\r\n\n", "CR LF"},
		{GET "X: b\r\n  more\r\n\r\n", "CR LF"},
		{GET "X: b\rY: c\r\n\r\n", "control character"},
		{GET "X: b\001\r\n\r\n", "control character"},
		{GET "X(: b\r\n\r\n", "character that it may not"},
		{"GET /\a HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET /a\aHTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET /a\a?b=c HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET /a?b%00 HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET /a\001 HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET /a\t HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"G\aT / HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
		{"GET / HTTP/1.1\aX\r\nHost: a\r\n\r\n", ""},
		/* libmicrohttpd says these. */
		{GET "X : b\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nX: b\r\n\r\n", ""},
		{POST "Content-Length: +2\r\n\r\nab", ""},
		{POST "Content-Length: 2x\r\n\r\nab", ""},
	};

	serve(plain);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (talk(wrong[i].text) != 400 || !strstr(heard, wrong[i].said))
			fail_msg("%s is answered %s", wrong[i].text, heard);
	assert_int_equal(asked, 0);
}

/* Nothing behind such a head is taken for a request. */
static void after_a_wrong_head_there_is_no_more(void **state)
{
	int fd;

	serve(plain);
	fd = dial(1);
	assert_int_equal(
		talk_on(fd, POST "Content-Length: 0\r\nContent-Length: 30\r\n\r\n" GET "\r\n"),
		400);
	must_close(fd);
	close(fd);
	assert_int_equal(asked, 0);
}

static void other_heads_are_taken(void **state)
{
	static const char *const right[] = {
		GET "\r\n",
		"\r\n" GET "\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		GET "X:\r\nY: b \r\nCookie: a=b; c=d\r\nAccept: a/b;q=0.5, c/*\r\n\r\n",
		GET "X: \xc3\xa4\tb\r\n\r\n",
		POST "Content-Length: 2\r\n\r\nab",
		POST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
		"GET /?a=b&c HTTP/1.1\r\nHost: a:1\r\nConnection: keep-alive\r\n\r\n",
	};
	int fd;

	serve(plain);
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
		if (talk(right[i]) != 200)
			fail_msg("%s is answered %s", right[i], heard);
	fd = dial(1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(talk_on(fd, GET "X: y\r\n\r\n"), 200);
	close(fd);
}

/* However often a byte of it comes. */
static void a_head_has_to_end(void **state)
{
	int fd;

	serve((struct takt_http_config){.max_connections = MOST, .idle_s = 30, .first_s = 1});
	fd = dial(1);
	say(fd, "GET / HTTP/1.1\r\nX: ");
	heard[0] = '\0';
	for (int i = 0; i < ROUNDS && !is_closed(fd); i++) {
		say(fd, "x");
		pump();
		assert_true(i < ROUNDS - 1);
	}
	close(fd);
	assert_int_equal(talk(GET "\r\n"), 200);
}

static void so_has_a_body(void **state)
{
	int fd;

	serve((struct takt_http_config){.max_connections = MOST, .idle_s = 1});
	fd = dial(1);
	say(fd, POST "Content-Length: 1000000\r\n\r\n");
	close(fd);
	fd = dial(1);
	say(fd, POST "Content-Length: 900\r\n\r\n");
	heard[0] = '\0';
	for (int i = 0; i < 890 && !is_closed(fd); i++) {
		say(fd, "x");
		for (int k = 0; k < 20; k++)
			pump();
		assert_true(i < 889);
	}
	close(fd);
	assert_int_equal(asked, 1); /* that of the length that is refused */
}

static const struct takt_http_config full = {
	.max_connections = MOST, .user_share = 4, .idle_s = 30, .oldest_goes = true};

/* Nobody is kept out by who came before and asks nothing; who waits for an answer stays. */
static void the_oldest_that_is_idle_goes(void **state)
{
	int fds[50], waits;

	serve((struct takt_http_config){
		.max_connections = MOST, .idle_s = 30, .oldest_goes = true});
	waits = dial(3);
	say(waits, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < ROUNDS && !held; i++)
		pump();
	fds[0] = dial(2);
	assert_int_equal(talk_on(fds[0], GET "\r\n"), 200);
	for (int i = 1; i < 50; i++)
		fds[i] = dial(i % 20 + 4);
	must_close(fds[0]);
	must_close(fds[1]);
	assert_int_equal(talk_on(fds[49], GET "\r\n"), 200);
	assert_false(is_closed(waits));
	assert_non_null(held);
	takt_http_answer(held, 200, "text/plain", "late", 4, NULL, NULL);
	assert_int_equal(talk_on(waits, ""), 200);
	for (int i = 0; i < 50; i++)
		close(fds[i]);
	close(waits);
}

/* Who has his share loses his own, by whichever of this machine's addresses he comes. */
static void an_address_has_its_share(void **state)
{
	int fds[100];

	serve(full);
	for (int i = 0; i < 100; i++)
		fds[i] = dial(i % 20 + 1);
	for (int i = 0; i < 96; i++)
		must_close(fds[i]);
	assert_int_equal(talk_on(fds[99], GET "\r\n"), 200);
	for (int i = 0; i < 100; i++)
		close(fds[i]);
}

/* However steadily it is: the only connection that there is becomes free before it has come to its
 * end. */
static void an_answer_has_to_be_read(void **state)
{
	bool is_free = false;
	size_t taken = 0;
	ssize_t n;
	int fd;

	serve((struct takt_http_config){.max_connections = 1, .idle_s = 1, .least_rate = 1u << 30});
	fd = dial(1);
	say(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 1; i < ROUNDS && !is_free; i++) {
		pump();
		(void)poll(NULL, 0, 1);
		n = recv(fd, heard, sizeof(heard), MSG_DONTWAIT);
		taken += n > 0 ? (size_t)n : 0;
		is_free = i % 100 == 0 && talk(GET "\r\n") == 200;
	}
	assert_true(is_free);
	assert_in_range(taken, 1, sizeof(large) - 1);
	close(fd);
}

/* Who would read it comes in, though all that there are read nothing. */
static void who_reads_nothing_keeps_nobody_out(void **state)
{
	int fds[MOST];

	serve((struct takt_http_config){
		.max_connections = MOST, .user_share = 4, .idle_s = 30, .oldest_goes = true});
	for (int i = 0; i < 4; i++) {
		unsigned before = asked;

		fds[i] = dial(i + 1);
		say(fds[i], "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
		for (int k = 0; k < ROUNDS && asked == before; k++)
			pump();
	}
	assert_int_equal(talk(GET "\r\n"), 200);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

/* Where all of an address wait for an answer, the next is told. */
static void busy_connections_stay(void **state)
{
	int fds[5];

	serve(full);
	for (int i = 0; i < 4; i++) {
		unsigned before = asked;

		fds[i] = dial(1);
		say(fds[i], "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
		for (int k = 0; k < ROUNDS && asked == before; k++)
			pump();
	}
	fds[4] = dial(1);
	assert_int_equal(talk_on(fds[4], GET "\r\n"), 503);
	assert_non_null(strstr(heard, "an address may hold 4 of the 6"));
	for (int i = 0; i < 5; i++)
		close(fds[i]);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_teardown(fn, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_head_of_two_meanings_is_refused),
		CASE(after_a_wrong_head_there_is_no_more),
		CASE(other_heads_are_taken),
		CASE(a_head_has_to_end),
		CASE(so_has_a_body),
		CASE(the_oldest_that_is_idle_goes),
		CASE(an_address_has_its_share),
		CASE(busy_connections_stay),
		CASE(an_answer_has_to_be_read),
		CASE(who_reads_nothing_keeps_nobody_out),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
