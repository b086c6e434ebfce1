/* SPDX-License-Identifier: Apache-2.0 */
/* The server over raw sockets: every route, every refusal, and clients that behave badly. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "fake_backend.h"
#include "net/listen.h"

enum {
	ROUNDS = 2000
};

static struct fake fake;
static char answer[1 << 20];
static size_t answer_len;

static int set_up(void **state)
{
	fake_start(&fake, false, true);
	return 0;
}

static int tear_down(void **state)
{
	fake_stop(&fake);
	assert_int_equal(fake.pages_out, 0);
	return 0;
}

static int dial(void)
{
	int fd = -1;

	assert_int_equal(takt_net_connect_unix(fake.socket, &fd, NULL), 0);
	return fd;
}

static int dial_tcp(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)fake.tcp_port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	return fd;
}

static void send_all(int fd, const char *text, size_t len)
{
	size_t done = 0;

	for (int round = 0; done < len && round < ROUNDS; round++) {
		ssize_t n = send(fd, text + done, len - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return; /* the server may refuse before it has read everything */
		done += n > 0 ? (size_t)n : 0;
		fake_pump(&fake, 1);
	}
}

/* Length of the first whole answer in the buffer, 0 if it is not complete. */
static size_t whole(void)
{
	const char *end = strstr(answer, "\r\n\r\n"), *field;
	size_t head, len = 0;

	if (!end)
		return 0;
	head = (size_t)(end - answer) + 4;
	field = strcasestr(answer, "Content-Length:");
	if (field && field < end)
		len = (size_t)strtoul(field + 15, NULL, 10);
	return answer_len >= head + len ? head + len : 0;
}

/* Reads until a whole answer is there; false when the connection ended first or nothing came. */
static bool receive(int fd, int rounds)
{
	for (int round = 0; round < rounds; round++) {
		ssize_t n = recv(fd, answer + answer_len, sizeof(answer) - 1 - answer_len,
				 MSG_DONTWAIT);

		if (n == 0)
			return whole() > 0;
		answer_len += n > 0 ? (size_t)n : 0;
		answer[answer_len] = '\0';
		if (whole())
			return true;
		fake_pump(&fake, 1);
	}
	return false;
}

static void forget(void)
{
	answer_len = 0;
	answer[0] = '\0';
}

static int status_of(void)
{
	return answer_len > 12 ? atoi(answer + 9) : -1;
}

static int talk_on(int fd, const char *text)
{
	forget();
	send_all(fd, text, strlen(text));
	(void)receive(fd, ROUNDS);
	return status_of();
}

static int talk(const char *text)
{
	int fd = dial(), status = talk_on(fd, text);

	close(fd);
	fake_pump(&fake, 0);
	return status;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: takt\r\n\r\n"

static int post(const char *path, const char *body)
{
	char text[8192];

	snprintf(text, sizeof(text),
		 "POST %s HTTP/1.1\r\nHost: takt\r\nContent-Type: application/json\r\n"
		 "Content-Length: %zu\r\n\r\n%s",
		 path, strlen(body), body);
	return talk(text);
}

static void assert_answer_has(const char *part)
{
	if (!strstr(answer, part))
		fail_msg("'%s' is not in: %s", part, answer);
}

static void submit(const char *words, uint64_t expected_id)
{
	char body[256], id[32];

	snprintf(body, sizeof(body), "{\"argv\":[%s],\"cwd\":\"/\",\"gpus\":2}", words);
	snprintf(id, sizeof(id), "\"id\":%d,", (int)expected_id);
	assert_int_equal(post("/v1/jobs", body), 201);
	assert_answer_has(id);
}

static void every_view_is_served(void **state)
{
	submit("\"hang\"", 1);
	assert_int_equal(talk(GET("/v1/version")), 200);
	assert_answer_has("\"api\":1");
	assert_int_equal(talk(GET("/v1/status")), 200);
	assert_answer_has("Content-Type: application/json");
	assert_answer_has("\"hostname\":\"box\"");
	assert_int_equal(talk(GET("/v1/topology")), 200);
	assert_answer_has("\"best2\":[0,1]");
	assert_int_equal(talk(GET("/v1/jobs")), 200);
	assert_answer_has("\"total\":1}");
	assert_int_equal(talk(GET("/v1/jobs?history=1&limit=5")), 200);
	assert_answer_has("\"total\":0}");
	assert_int_equal(talk(GET("/v1/jobs/1")), 200);
	assert_answer_has("\"state\":\"running\"");
	assert_int_equal(talk(GET("/v1/jobs/1/explain")), 200);
	assert_int_equal(talk(GET("/v1/jobs/1/wait?timeout_ms=0")), 200);
	assert_int_equal(talk(GET("/v1/clocks")), 200);
	assert_answer_has("\"list_max_mhz\":1980");
	assert_int_equal(talk(GET("/metrics")), 200);
	assert_answer_has("takt_up 1\n");
	assert_answer_has("version=0.0.4");
	talk("GET /metrics HTTP/1.1\r\nHost: takt\r\nAccept: application/"
	     "openmetrics-text\r\n\r\n");
	assert_answer_has("Content-Type: application/openmetrics-text; version=1.0.0; charset");
	assert_answer_has("takt_up 1\n# EOF\n");
	assert_int_equal(talk("HEAD /v1/status HTTP/1.1\r\nHost: takt\r\n\r\n"), 200);
}

/* How many of so many requests for the live jobs the backend had to answer. */
static unsigned lists_made_for(unsigned requests)
{
	unsigned before = fake.lists_made;

	for (unsigned i = 0; i < requests; i++)
		assert_int_equal(talk(GET("/v1/jobs")), 200);
	return fake.lists_made - before;
}

static void a_list_is_told_again_while_nothing_changes(void **state)
{
	fake.keeps_lists = true;
	submit("\"hang\"", 1);
	assert_true(lists_made_for(50) < 50); /* a slow machine makes some of them anew */
	submit("\"hang\"", 2);
	fake.live_version++;
	assert_int_equal(lists_made_for(1), 1);
	assert_answer_has("\"total\":2}");
	assert_int_equal(talk(GET("/v1/jobs?limit=1")), 200);
	assert_null(strstr(answer, "\"id\":2"));
	assert_int_equal(talk(GET("/v1/jobs?limit=2")), 200);
	assert_answer_has("\"id\":2");
}

static void lists_are_made_anew_when_jobs_change(void **state)
{
	assert_int_equal(lists_made_for(20), 20);
}

static void changes_reach_the_backend(void **state)
{
	submit("\"hang\"", 1);
	assert_int_equal(post("/v1/jobs/1/signal", "{\"signal\":10}"), 200);
	assert_int_equal(fake.last_signal, 10);
	assert_int_equal(post("/v1/jobs/batch", "{\"jobs\":[]}"), 400);
	assert_answer_has("a list of 1 to 1000 job descriptions");
	assert_int_equal(post("/v1/jobs/batch",
			      "{\"jobs\":[{\"argv\":[\"a\"],\"cwd\":\"/\"},{\"argv\":[\"a\"]}]}"),
			 400);
	assert_answer_has("jobs[1]: field 'cwd' is missing");
	assert_int_equal(post("/v1/jobs/1/change", "{\"held\":true,\"priority\":-5}"), 200);
	assert_answer_has("\"held\":\"owner\"");
	assert_answer_has("\"priority\":-5");
	assert_int_equal(post("/v1/jobs/1/change", "{\"held\":false}"), 200);
	assert_null(strstr(answer, "\"held\""));
	assert_answer_has("\"priority\":-5");
	assert_int_equal(post("/v1/jobs/1/cancel", ""), 200);
	assert_answer_has("\"state\":\"cancelled\"");
	assert_int_equal(post("/v1/clocks/set", "{\"gpus\":[0,3],\"max_mhz\":1410}"), 200);
	assert_int_equal(fake.last_mask, 9);
	assert_int_equal(fake.last_mhz, 1410);
	assert_answer_has("\"lease_max_mhz\":1410");
	assert_int_equal(post("/v1/clocks/reset", "{\"gpus\":[0]}"), 200);
	assert_int_equal(fake.last_mhz, 0);
	assert_int_equal(post("/v1/clocks/cpu", "{\"max_mhz\":2400}"), 200);
	assert_int_equal(fake.last_mhz, 2400);
	assert_int_equal(post("/v1/gpus/drain", "{\"gpus\":[2],\"reason\":\"fan\"}"), 200);
	assert_answer_has("\"set_aside\":[{\"index\":2,\"state\":\"drained\",\"reason\":\"fan\"");
	assert_int_equal(post("/v1/gpus/reserve",
			      "{\"gpus\":[0,1],\"user\":\"ada\",\"from_ms\":5,\"until_ms\":9}"),
			 200);
	assert_answer_has("\"reservations\":[{\"id\":1,\"gpus\":[0,1],\"uid\":1000,");
	assert_int_equal(talk(GET("/v1/gpus")), 200);
	assert_answer_has("\"until_ms\":9");
	assert_int_equal(post("/v1/gpus/release", "{\"id\":1}"), 200);
	assert_int_equal(post("/v1/gpus/resume", "{\"gpus\":[2]}"), 200);
	assert_answer_has("\"set_aside\":[],\"reservations\":[]");
	assert_true(fake.last_peer.admin);
	assert_int_equal(fake.last_peer.uid, getuid());
	assert_int_equal(fake.last_peer.pid, getpid());
}

static void refusals_say_why(void **state)
{
	static const struct {
		const char *request;
		int status;
		const char *part;
	} rows[] = {
		{GET("/v1/nothing"), 404, "'/v1/nothing'; docs/api.md lists what there is"},
		{GET("/v1/jobs/0"), 404, "no such path"},
		{GET("/v1/jobs/01"), 404, "no such path"},
		{GET("/v1/jobs/99999999999999999999999"), 404, "no such path"},
		{GET("/v1/jobs/7/"), 404, "no such path"},
		{GET("/v1/jobs/7"), 404, "there is no job 7"},
		{GET("/v1/jobs/7/explain"), 404, "there is no job 7"},
		{GET("/v1/jobs/7/log"), 404, "there is no job 7"},
		{GET("/v1/jobs/7/wait"), 404, "there is no job 7"},
		{GET("/v1/jobs?limt=3"), 400, "'limt' is not known"},
		{GET("/v1/jobs?limit=0"), 400, "number from 1 to 10000, not '0'"},
		{GET("/v1/jobs?limit"), 400, "not ''"},
		{GET("/v1/jobs/1/cancel"), 405, "Allow: POST"},
		{"DELETE /v1/jobs HTTP/1.1\r\nHost: takt\r\n\r\n", 405, "GET, HEAD, POST"},
		{"POST /v1/jobs HTTP/1.1\r\nHost: takt\r\nContent-Length: 2\r\n\r\n{}", 415,
		 "application/json"},
		{"GET /v1/status HTTP/1.1\r\nHost: takt\r\nContent-Length: 2\r\n\r\n{}", 400,
		 "takes no body"},
		{"POST /v1/jobs HTTP/1.1\r\nHost: takt\r\nContent-Type: application/json\r\n"
		 "Content-Length: 3000000\r\n\r\n",
		 413, "over 2097152 bytes"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		int status = talk(rows[i].request);

		if (status != rows[i].status || !strstr(answer, rows[i].part))
			fail_msg("%s: %s", rows[i].request, answer);
		assert_answer_has("{\"error\":{\"name\":\"");
	}
}

static void bad_bodies_are_named(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
		const char *part;
	} rows[] = {
		{"/v1/jobs", "", 400, "not valid JSON"},
		{"/v1/jobs", "{\"argv\":[\"x\"],\"cwd\":\"/\",\"gpu\":1}", 400,
		 "field 'gpu' is not known"},
		{"/v1/jobs", "{\"argv\":[\"x\"],\"cwd\":\"/\",\"gpus\":9}", 422,
		 "asks for 9 GPUs, the largest node has 8"},
		{"/v1/clocks/set", "{\"gpus\":[0]}", 400, "field 'max_mhz' is missing"},
		{"/v1/clocks/set", "{\"gpus\":[],\"max_mhz\":1}", 400, "at least one GPU"},
		{"/v1/clocks/set", "{\"gpus\":[0],\"max_mhz\":1410,\"power_limit_mw\":10}", 400,
		 "'power_limit_mw'"},
		{"/v1/clocks/set", "{\"gpus\":[64],\"max_mhz\":1}", 400, "GPU indices (0 to 63)"},
		{"/v1/clocks/set", "{\"gpus\":[0],\"max_mhz\":5000}", 422, "210 to 1980"},
		{"/v1/clocks/reset", "{\"gpus\":[0,0]}", 400, "none twice"},
		{"/v1/clocks/cpu", "{}", 400, "field 'max_mhz' is missing"},
		{"/v1/clocks/cpu", "{\"max_mhz\":90000}", 400, "'max_mhz'"},
		{"/v1/gpus/drain", "{\"gpus\":[1]}", 400, "must say why"},
		{"/v1/gpus/drain", "{\"gpus\":[],\"reason\":\"x\"}", 400, "at least one GPU"},
		{"/v1/gpus/resume", "{\"gpus\":[1],\"reason\":\"x\"}", 400,
		 "field 'reason' is not known"},
		{"/v1/gpus/reserve", "{\"gpus\":[1],\"from_ms\":9,\"until_ms\":9}", 400,
		 "'until_ms' must be after 'from_ms'"},
		{"/v1/gpus/reserve", "{\"gpus\":[1],\"from_ms\":9}", 400,
		 "field 'until_ms' is missing"},
		{"/v1/gpus/release", "{}", 400, "field 'id' is missing"},
		{"/v1/jobs/1/signal", "{\"signal\":0}", 400, "from 1 to 64"},
		{"/v1/jobs/1/signal", "{\"signal\":\"INT\"}", 400, "not text"},
		{"/v1/jobs/9/signal", "{\"signal\":2}", 404, "there is no job 9"},
		{"/v1/jobs/9/cancel", "", 404, "there is no job 9"},
	};

	submit("\"hang\"", 1);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		int status = post(rows[i].path, rows[i].body);

		if (status != rows[i].status || !strstr(answer, rows[i].part))
			fail_msg("%s %s: %s", rows[i].path, rows[i].body, answer);
	}
}

static void answers_that_wait(void **state)
{
	const char *text = GET("/v1/jobs/1/wait?timeout_ms=60000");
	int fd = dial();

	submit("\"hang\"", 1);
	forget();
	send_all(fd, text, strlen(text));
	assert_false(receive(fd, 20));
	fake_end(&fake, 1, 3, 0);
	assert_true(receive(fd, ROUNDS));
	assert_answer_has("\"exit_code\":3");
	close(fd);
}

static void a_wait_gives_up_in_time(void **state)
{
	submit("\"hang\"", 1);
	assert_int_equal(talk(GET("/v1/jobs/1/wait?timeout_ms=20")), 200);
	assert_answer_has("\"state\":\"running\"");
}

static void a_hang_up_is_told_to_the_backend(void **state)
{
	const char *text = GET("/v1/jobs/1/wait?timeout_ms=60000");
	int fd = dial();

	submit("\"hang\"", 1);
	send_all(fd, text, strlen(text));
	for (int i = 0; i < 20; i++)
		fake_pump(&fake, 1);
	assert_int_equal(fake.cancelled, 0);
	close(fd);
	for (int i = 0; i < ROUNDS && fake.cancelled == 0; i++)
		fake_pump(&fake, 1);
	assert_int_equal(fake.cancelled, 1);
	assert_int_equal(talk(GET("/v1/status")), 200);
}

/* He who has only stopped sending still wants his answer. */
static void half_closed_is_not_gone(void **state)
{
	const char *text = GET("/v1/jobs/1/wait?timeout_ms=60000");
	int fd = dial();

	submit("\"hang\"", 1);
	forget();
	send_all(fd, text, strlen(text));
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < 20; i++)
		fake_pump(&fake, 1);
	fake_end(&fake, 1, 0, 0);
	assert_true(receive(fd, ROUNDS));
	assert_int_equal(fake.cancelled, 0);
	close(fd);
}

static void a_submit_is_answered_when_it_is_durable(void **state)
{
	const char *body = "{\"argv\":[\"never\"],\"cwd\":\"/\"}";
	char text[512];
	int fd = dial();

	snprintf(text, sizeof(text),
		 "POST /v1/jobs HTTP/1.1\r\nHost: takt\r\nContent-Type: application/json\r\n"
		 "Content-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	forget();
	send_all(fd, text, strlen(text));
	assert_false(receive(fd, 20));
	fake_accept(&fake);
	assert_true(receive(fd, ROUNDS));
	assert_int_equal(status_of(), 201);
	close(fd);
}

static void logs_are_read_by_offset(void **state)
{
	submit("\"echo\",\"one\",\"two\"", 1);
	assert_int_equal(talk(GET("/v1/jobs/1/log")), 200);
	assert_answer_has("\r\n\r\none\ntwo\n");
	assert_answer_has("Takt-Log-Offset: 8\r\n");
	assert_answer_has("Takt-Log-Attempt: 1\r\n");
	assert_answer_has("Takt-Log-Live: true\r\n");
	assert_int_equal(talk(GET("/v1/jobs/1/log?offset=4&attempt=1")), 200);
	assert_answer_has("\r\n\r\ntwo\n");
	assert_int_equal(talk(GET("/v1/jobs/1/log?offset=8&attempt=1")), 200);
	assert_answer_has("Content-Length: 0");
	fake_end(&fake, 1, 0, 0);
	assert_int_equal(talk(GET("/v1/jobs/1/log?offset=8&attempt=1&follow=1")), 200);
	assert_answer_has("Takt-Log-Live: false\r\n");
}

static void a_new_attempt_is_a_new_log(void **state)
{
	submit("\"echo\",\"one\"", 1);
	fake.jobs[0].view.attempt = 2;
	assert_int_equal(talk(GET("/v1/jobs/1/log?offset=4&attempt=1")), 200);
	assert_answer_has("\r\n\r\none\n");
	assert_answer_has("Takt-Log-Attempt: 2\r\n");
	assert_int_equal(talk(GET("/v1/jobs/1/log?attempt=3&offset=3")), 200); /* may come */
	assert_answer_has("Content-Length: 0");
	assert_int_equal(talk(GET("/v1/jobs/1/log?attempt=7")), 404);
	assert_answer_has("job 1 has no attempt 7; the latest is 2");
}

static void followers_get_news(void **state)
{
	const char *text = GET("/v1/jobs/1/log?follow=1&timeout_ms=60000");
	int fd = dial();

	submit("\"hang\"", 1);
	forget();
	send_all(fd, text, strlen(text));
	assert_false(receive(fd, 20));
	fake_log(&fake, 1, "a\0b\xff", 4);
	assert_true(receive(fd, ROUNDS));
	assert_answer_has("Content-Length: 4\r\n");
	assert_memory_equal(answer + answer_len - 4, "a\0b\xff", 4);
	close(fd);
}

static void followers_hear_of_the_end(void **state)
{
	const char *text = GET("/v1/jobs/1/log?follow=1&timeout_ms=60000");
	int fd = dial();

	submit("\"hang\"", 1);
	forget();
	send_all(fd, text, strlen(text));
	assert_false(receive(fd, 20));
	fake_end(&fake, 1, 0, 0);
	assert_true(receive(fd, ROUNDS));
	assert_answer_has("Takt-Log-Live: false\r\n");
	close(fd);
}

static void followers_may_hang_up(void **state)
{
	const char *text = GET("/v1/jobs/1/log?follow=1&timeout_ms=60000");
	int fd = dial();

	submit("\"hang\"", 1);
	send_all(fd, text, strlen(text));
	close(fd);
	for (int i = 0; i < 20; i++)
		fake_pump(&fake, 1);
	fake_log(&fake, 1, "x", 1);
	assert_int_equal(talk(GET("/v1/status")), 200);
}

static void following_ends_after_its_time(void **state)
{
	submit("\"hang\"", 1);
	assert_int_equal(talk(GET("/v1/jobs/1/log?follow=1&timeout_ms=30")), 200);
	assert_answer_has("Takt-Log-Live: true\r\n");
}

static void a_stopping_server_answers_those_who_wait(void **state)
{
	const char *wait = GET("/v1/jobs/1/wait?timeout_ms=60000");
	const char *follow = GET("/v1/jobs/1/log?follow=1");
	int fd_wait = dial(), fd_follow = dial();

	submit("\"hang\"", 1);
	send_all(fd_wait, wait, strlen(wait));
	send_all(fd_follow, follow, strlen(follow));
	for (int i = 0; i < 20; i++)
		fake_pump(&fake, 1);
	fake.waiters[0].pending = NULL;
	fake_restart(&fake);
	forget();
	assert_true(receive(fd_wait, ROUNDS));
	assert_int_equal(status_of(), 503);
	forget();
	assert_true(receive(fd_follow, ROUNDS));
	assert_int_equal(status_of(), 503);
	close(fd_wait);
	close(fd_follow);
}

/* What is asked in the last moment may not keep the server from stopping. */
static void a_request_in_the_last_moment_is_dropped(void **state)
{
	const char *text = GET("/v1/jobs/1/wait?timeout_ms=60000");
	int fd = dial();

	submit("\"hang\"", 1);
	fake_pump(&fake, 1);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	fake_stop_server(&fake);
	fake_restart(&fake);
	assert_int_equal(talk(GET("/v1/version")), 200);
	close(fd);
}

static void one_connection_many_requests(void **state)
{
	const char *text = GET("/v1/version") GET("/v1/nothing") GET("/v1/version");
	int fd = dial(), n = 0;

	forget();
	send_all(fd, text, strlen(text));
	for (int i = 0; i < 3; i++) {
		assert_true(receive(fd, ROUNDS));
		n += status_of() == (i == 1 ? 404 : 200);
		answer_len -= whole();
		memmove(answer, answer + whole(), answer_len + 1);
		answer[answer_len] = '\0';
	}
	assert_int_equal(n, 3);
	close(fd);
}

/* The answer to the first one has to wait; the second one must neither overtake nor be lost. */
static void pipelined_behind_a_wait(void **state)
{
	const char *text = GET("/v1/jobs/1/wait?timeout_ms=30") GET("/v1/version");
	const char *second;
	int fd = dial();

	submit("\"hang\"", 1);
	forget();
	send_all(fd, text, strlen(text));
	assert_true(receive(fd, ROUNDS));
	for (int i = 0; i < 50; i++)
		(void)receive(fd, 1);
	second = strstr(answer, "\"api\":1");
	for (int i = 0; i < ROUNDS && !second; i++) {
		ssize_t n = recv(fd, answer + answer_len, sizeof(answer) - 1 - answer_len,
				 MSG_DONTWAIT);

		answer_len += n > 0 ? (size_t)n : 0;
		answer[answer_len] = '\0';
		second = strstr(answer, "\"api\":1");
		fake_pump(&fake, 1);
	}
	assert_non_null(second);
	assert_true(strstr(answer, "\"state\":\"running\"") < second);
	close(fd);
}

static void slow_clients_hold_up_nobody(void **state)
{
	const char *text = GET("/v1/version");
	int slow = dial();

	for (size_t i = 0; i < strlen(text); i++) {
		forget();
		send_all(slow, text + i, 1);
		if (i % 8 == 0)
			assert_int_equal(talk(GET("/v1/version")), 200);
	}
	forget();
	assert_true(receive(slow, ROUNDS));
	close(slow);
}

static void too_many_connections_are_told(void **state)
{
	int fds[30];

	for (int i = 0; i < 30; i++) {
		fds[i] = dial();
		fake_pump(&fake, 1);
	}
	assert_int_equal(talk_on(fds[25], GET("/v1/version")), 503);
	assert_answer_has("too many connections: there are 20, 5 of them for administrators");
	for (int i = 0; i < 30; i++)
		close(fds[i]);
	for (int i = 0; i < 50; i++)
		fake_pump(&fake, 1);
	assert_int_equal(talk(GET("/v1/version")), 200);
}

enum {
	ALICE = 4242, /* and the numbers after it; no account is needed */
};

/* The kernel tells the server of the user who connects. */
static int dial_as(uid_t uid)
{
	int fd;

	assert_int_equal(seteuid(uid), 0);
	fd = dial();
	assert_int_equal(seteuid(0), 0);
	fake_pump(&fake, 1);
	return fd;
}

static void let_everybody_in(void)
{
	if (geteuid() != 0)
		skip();
	fake.many_users = true;
	fake_restart(&fake);
	assert_int_equal(chmod(fake.dir, 0711), 0);
}

static void root_others_cannot_be_shut_out(void **state)
{
	int fds[60];

	let_everybody_in();
	for (int i = 0; i < 60; i++)
		fds[i] = dial_as(ALICE);
	assert_int_equal(talk_on(fds[4], GET("/v1/version")), 200);
	assert_int_equal(talk_on(fds[5], GET("/v1/version")), 503);
	assert_answer_has("a user may hold 5 of the 20");
	assert_answer_has("\"UNAVAILABLE\"");
	forget();
	assert_true(receive(fds[59], ROUNDS));
	assert_int_equal(status_of(), 503);
	assert_answer_has("a user may hold 5 of the 20");
	fds[59] = (close(fds[59]), dial_as(ALICE + 1));
	assert_int_equal(talk_on(fds[59], GET("/v1/version")), 200);
	assert_int_equal(talk(GET("/v1/version")), 200);
	/* One given back is one more. */
	close(fds[0]);
	for (int i = 0; i < 20; i++)
		fake_pump(&fake, 1);
	fds[0] = dial_as(ALICE);
	assert_int_equal(talk_on(fds[0], GET("/v1/version")), 200);
	for (int i = 0; i < 60; i++)
		close(fds[i]);
}

static void root_has_connections_kept_for_it(void **state)
{
	int fds[20], late;

	let_everybody_in();
	for (int i = 0; i < 15; i++)
		fds[i] = dial_as(ALICE + (uid_t)i / 5);
	assert_int_equal(talk_on(fds[14], GET("/v1/version")), 200);
	late = dial_as(ALICE + 3);
	assert_int_equal(talk_on(late, GET("/v1/version")), 503);
	assert_answer_has("5 of them for administrators only");
	for (int i = 15; i < 20; i++)
		fds[i] = dial_as(0);
	assert_int_equal(talk_on(fds[19], GET("/v1/version")), 200);
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	close(late);
}

/* The last descriptor is for an administrator; anybody else is told. */
static void root_comes_in_by_the_last_descriptor(void **state)
{
	struct rlimit limit, few;
	int in, out;

	let_everybody_in();
	in = dup(0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = (rlim_t)in + 1; /* what dial() takes is what was there */
	close(in);
	for (int as_root = 0; as_root < 2; as_root++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		out = dial_as(as_root ? 0 : ALICE);
		assert_int_equal(talk_on(out, GET("/v1/version")), as_root ? 200 : 503);
		if (!as_root)
			assert_answer_has("no file descriptor left");
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		close(out);
		for (int i = 0; i < 120; i++)
			fake_pump(&fake, 1);
	}
}

/* No descriptor left: those who are in are served, the others wait until there is one. */
static void running_out_of_descriptors(void **state)
{
	struct rlimit limit, few;
	int fds[8], in = dial(), lowest_free;

	assert_int_equal(talk_on(in, GET("/v1/version")), 200);
	for (int i = 0; i < 8; i++)
		fds[i] = dial();
	lowest_free = dup(in);
	close(lowest_free);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = (rlim_t)lowest_free + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	/* Not spinning on what cannot be accepted: the first pause is of 100 ms. */
	for (int i = 0; fake_rest_ms(&fake) < 50; i++)
		assert_true(i < ROUNDS);
	assert_int_equal(talk_on(in, GET("/v1/version")), 200);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	close(in);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(talk_on(fds[7], GET("/v1/version")), 200);
	for (int i = 2; i < 8; i++)
		close(fds[i]);
}

static void garbage_costs_only_its_connection(void **state)
{
	static const char *const rows[] = {
		"\r\n\r\n\r\n\r\n",
		"GET\r\n\r\n",
		"GET / HTTP/9.9\r\n\r\n",
		"\x16\x03\x01\x02\x01\x01\xfc",
		"POST /v1/jobs HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
		"POST /v1/jobs HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"POST /v1/jobs HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET /%00 HTTP/1.1\r\nHost: t\r\n\r\n",
		"GET /v1/jobs/%31%00 HTTP/1.1\r\nHost: t\r\n\r\n",
		"GET /v1/../metrics HTTP/1.1\r\nHost: t\r\n\r\n",
		"GET * HTTP/1.1\r\nHost: t\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	};
	static char long_header[40000];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		int fd = dial();

		forget();
		send_all(fd, rows[i], strlen(rows[i]));
		(void)receive(fd, 20);
		assert_true(status_of() != 200);
		close(fd);
		assert_int_equal(talk(GET("/v1/version")), 200);
	}
	memset(long_header, 'a', sizeof(long_header) - 1);
	memcpy(long_header, "GET / HTTP/1.1\r\nX: ", 19);
	assert_true(talk(long_header) != 200);
	assert_int_equal(talk(GET("/v1/version")), 200);
}

static int talk_tcp(const char *text)
{
	int fd = dial_tcp(), status = talk_on(fd, text);

	close(fd);
	return status;
}

static void tcp_serves_metrics_only(void **state)
{
	assert_int_equal(talk_tcp("GET /metrics HTTP/1.1\r\nHost: localhost:1\r\n\r\n"), 200);
	assert_answer_has("takt_up 1");
	assert_int_equal(talk_tcp("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), 200);
	assert_answer_has("/metrics");
	assert_int_equal(talk_tcp("GET /v1/status HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 403);
	assert_answer_has("on the Unix socket only");
	assert_int_equal(talk_tcp("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404);
	assert_int_equal(talk_tcp("POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
				  "Content-Length: 0\r\n\r\n"),
			 405);
}

#define FOR(host) "GET /metrics HTTP/1.1\r\nHost: " host "\r\n\r\n"
static void tcp_checks_host(void **state)
{
	assert_int_equal(talk_tcp(FOR("evil.example")), 403);
	assert_answer_has("metrics_hosts");
	assert_int_equal(talk_tcp(FOR("localhost:1@evil.example")), 403);
	assert_int_equal(talk_tcp(FOR("[::1].evil.example")), 403);
	assert_int_equal(talk_tcp(FOR("GPU.example:9830")), 200);
}

/* Every allocation in turn fails; whatever is answered, the server goes on. */
static void runs_out_of_memory_and_goes_on(void **state)
{
	static const char *const requests[] = {
		GET("/v1/status"),
		GET("/v1/topology"),
		GET("/v1/jobs"),
		GET("/v1/jobs/1"),
		GET("/v1/jobs/1/log"),
		GET("/v1/jobs/1/log?offset=9&follow=1&timeout_ms=1"),
		GET("/v1/jobs/1/wait?timeout_ms=0"),
		GET("/v1/clocks"),
		("POST /v1/jobs HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
		 "Content-Length: 28\r\n\r\n{\"argv\":[\"hang\"],\"cwd\":\"/\"} "),
	};

	submit("\"echo\",\"x\"", 1);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(requests); i++) {
		for (unsigned long nth = 1; nth < 25; nth++) {
			int fd = dial();

			forget();
			takt_alloc_fail_nth(nth, 0);
			send_all(fd, requests[i], strlen(requests[i]));
			(void)receive(fd, 20);
			takt_alloc_fail_nth(0, 0);
			close(fd);
			fake_pump(&fake, 0);
			/* The fake remembers at most so many jobs. */
			fake.job_count = 1;
		}
		assert_int_equal(talk(GET("/v1/version")), 200);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_view_is_served),
		CASE(a_list_is_told_again_while_nothing_changes),
		CASE(lists_are_made_anew_when_jobs_change),
		CASE(changes_reach_the_backend),
		CASE(refusals_say_why),
		CASE(bad_bodies_are_named),
		CASE(answers_that_wait),
		CASE(a_wait_gives_up_in_time),
		CASE(a_hang_up_is_told_to_the_backend),
		CASE(half_closed_is_not_gone),
		CASE(a_submit_is_answered_when_it_is_durable),
		CASE(logs_are_read_by_offset),
		CASE(a_new_attempt_is_a_new_log),
		CASE(followers_get_news),
		CASE(followers_hear_of_the_end),
		CASE(followers_may_hang_up),
		CASE(following_ends_after_its_time),
		CASE(a_stopping_server_answers_those_who_wait),
		CASE(a_request_in_the_last_moment_is_dropped),
		CASE(one_connection_many_requests),
		CASE(pipelined_behind_a_wait),
		CASE(slow_clients_hold_up_nobody),
		CASE(too_many_connections_are_told),
		CASE(root_others_cannot_be_shut_out),
		CASE(root_has_connections_kept_for_it),
		CASE(root_comes_in_by_the_last_descriptor),
		CASE(running_out_of_descriptors),
		CASE(garbage_costs_only_its_connection),
		CASE(tcp_serves_metrics_only),
		CASE(tcp_checks_host),
		CASE(runs_out_of_memory_and_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
