/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end: what it sends, what it makes of answers, silence and a peer that is gone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "actuate/actuate.h"
#include "base/mem.h"

static char folder[] = "/tmp/takt-client-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct takt_actuate_client *client;
static int listening, peer;

static int setup(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/takt-client-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", folder);
	listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listening, 4), 0);
	assert_int_equal(takt_actuate_connect(address.sun_path, &client, NULL), 0);
	peer = accept(listening, NULL, NULL);
	return peer < 0;
}

static int teardown(void **state)
{
	takt_actuate_client_free(client);
	close(peer);
	close(listening);
	unlink(address.sun_path);
	return rmdir(folder);
}

static void a_request_arrives_whole_with_its_version(void **state)
{
	struct takt_actuate_request sent = {.op = TAKT_ACTUATE_SET, .seq = 9, .max_mhz = 5}, got;

	assert_int_equal(takt_actuate_send(client, sent, NULL), 0);
	assert_int_equal(recv(peer, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(got.version, TAKT_ACTUATE_VERSION);
	assert_int_equal(got.seq, 9);
	assert_int_equal(got.max_mhz, 5);
}

static void no_answer_yet_is_no_error(void **state)
{
	struct takt_actuate_reply reply = {.seq = 77};

	assert_int_equal(takt_actuate_recv(client, &reply, NULL), 0);
	assert_int_equal(reply.seq, 77);
}

static void an_answer_is_handed_over_and_its_texts_end(void **state)
{
	struct takt_actuate_reply sent = {.version = TAKT_ACTUATE_VERSION, .seq = 4}, got;

	memset(sent.uuid, 'u', sizeof(sent.uuid));
	memset(sent.message, 'm', sizeof(sent.message));
	assert_int_equal(send(peer, &sent, sizeof(sent), 0), sizeof(sent));
	assert_int_equal(takt_actuate_recv(client, &got, NULL), 1);
	assert_int_equal(got.seq, 4);
	assert_int_equal(strlen(got.uuid), sizeof(got.uuid) - 1);
	assert_int_equal(strlen(got.message), sizeof(got.message) - 1);
}

static void another_version_is_refused(void **state)
{
	struct takt_actuate_reply sent = {.version = TAKT_ACTUATE_VERSION + 1}, got = {.seq = 77};
	struct takt_err err;

	assert_int_equal(send(peer, &sent, sizeof(sent), 0), sizeof(sent));
	assert_int_equal(takt_actuate_recv(client, &got, &err), -TAKT_E_VERSION);
	sent.version = TAKT_ACTUATE_VERSION;
	assert_int_equal(send(peer, &sent, sizeof(sent) - 1, 0), sizeof(sent) - 1);
	assert_int_equal(takt_actuate_recv(client, &got, &err), -TAKT_E_VERSION);
	assert_int_equal(got.seq, 77);
}

static void a_peer_that_is_gone_is_told_apart(void **state)
{
	struct takt_actuate_request request = {.op = TAKT_ACTUATE_HELLO};
	struct takt_actuate_reply reply;

	close(peer);
	peer = -1;
	assert_int_equal(takt_actuate_recv(client, &reply, NULL), -EPIPE);
	assert_int_equal(takt_actuate_send(client, request, NULL), -EPIPE);
}

static void a_full_socket_says_so_and_does_not_wait(void **state)
{
	struct takt_actuate_request request = {.op = TAKT_ACTUATE_HELLO};
	int rc = 0;

	for (int i = 0; rc == 0 && i < 100000; i++)
		rc = takt_actuate_send(client, request, NULL);
	assert_int_equal(rc, -EAGAIN);
}

static void nobody_there_is_an_error_that_names_the_socket(void **state)
{
	struct takt_actuate_client *none = NULL;
	struct takt_err err;
	char path[200];

	assert_int_equal(takt_actuate_connect("/tmp/takt-no-such-socket", &none, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "'/tmp/takt-no-such-socket'"));
	memset(path, 'p', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(takt_actuate_connect(path, &none, &err), -ENAMETOOLONG);
	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_actuate_connect(address.sun_path, &none, &err), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	assert_null(none);
	takt_actuate_client_free(NULL);
}

static void states_have_names(void **state)
{
	assert_string_equal(takt_actuate_gpu_state_name(TAKT_ACTUATE_CLEAN), "clean");
	assert_string_equal(takt_actuate_gpu_state_name(TAKT_ACTUATE_LEASED), "leased");
	assert_string_equal(takt_actuate_gpu_state_name(TAKT_ACTUATE_CHANGED), "changed");
	assert_string_equal(takt_actuate_gpu_state_name(TAKT_ACTUATE_ADVISE), "advise");
	assert_string_equal(takt_actuate_gpu_state_name(TAKT_ACTUATE_UNKNOWN), "unknown");
	assert_string_equal(takt_actuate_gpu_state_name((enum takt_actuate_gpu_state)99),
			    "unknown");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_request_arrives_whole_with_its_version),
		CASE(no_answer_yet_is_no_error),
		CASE(an_answer_is_handed_over_and_its_texts_end),
		CASE(another_version_is_refused),
		CASE(a_peer_that_is_gone_is_told_apart),
		CASE(a_full_socket_says_so_and_does_not_wait),
		CASE(nobody_there_is_an_error_that_names_the_socket),
		CASE(states_have_names),
	};

	return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
