/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a real server: every call, and a daemon that is not there or goes away. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "client/client.h"
#include "fake_backend.h"

#define WORD(text) ((char[]){text})

static struct fake fake;
static struct takt_client *client;

static int set_up(void **state)
{
	unsetenv("TAKT_SOCKET");
	fake_start(&fake, true, false);
	fake_run(&fake);
	return takt_client_connect(fake.socket, &client, NULL);
}

static int tear_down(void **state)
{
	takt_client_free(client);
	client = NULL;
	fake_halt(&fake);
	fake_stop(&fake);
	return 0;
}

static uint64_t submit(char *const *argv)
{
	static struct takt_job_view job;
	struct takt_jobspec spec;
	struct takt_err err;

	takt_jobspec_init(&spec);
	spec.argv = (char **)(uintptr_t)argv;
	spec.cwd = WORD("/");
	spec.gpus = 2;
	if (takt_client_submit(client, &spec, &job, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(job.simulated);
	return job.id;
}

static int ask_path(const char *path)
{
	return takt_client_ask(client, path, NULL, NULL);
}

static void histories_are_asked_for(void **state)
{
	struct takt_history_view view;
	struct takt_err err;

	assert_int_equal(takt_client_history(client, 2, "fan", "1m", 5, 9, &view, &err), 0);
	assert_string_equal(view.metric, "fan");
	assert_true(view.gpu == 2 && view.step_ms == 60000 && view.until_ms == 9);
	assert_int_equal(view.point_count, 1);
	assert_true(view.points[0].at_ms == 5 && view.points[0].mean == 2);
	takt_history_view_fini(&view);
	assert_int_equal(takt_client_history(client, 4, "fan", NULL, 5, 9, &view, &err),
			 -TAKT_E_NOT_FOUND);
	assert_int_equal(takt_client_history(client, 0, "a&b", NULL, 5, 9, &view, &err),
			 -TAKT_E_USAGE);
	assert_int_equal(takt_client_history(client, 0, "fan", "1 m", 5, 9, &view, &err),
			 -TAKT_E_USAGE);
	assert_int_equal(ask_path("/v1/history"), 0);
	assert_int_equal(ask_path("/v1/history?gpu=x"), -TAKT_E_USAGE);
	assert_int_equal(ask_path("/v1/history?since_ms=-1"), -TAKT_E_USAGE);
	assert_int_equal(ask_path("/v1/history?colour=red"), -TAKT_E_USAGE);
}

static void views_arrive(void **state)
{
	static struct takt_topo_view topo;
	static struct takt_clock_view clocks;
	struct takt_status_view status;

	assert_int_equal(takt_client_status(client, &status, NULL), 0);
	assert_int_equal(status.gpu_count, 3);
	assert_int_equal(status.gpus[0].sm_mhz, 1410);
	assert_int_equal(status.gpus[2].has, 0);
	assert_non_null(strstr(takt_client_json(client), "\"hostname\":\"box\""));
	takt_status_view_fini(&status);
	assert_int_equal(takt_client_topology(client, &topo, NULL), 0);
	assert_string_equal(topo.link[0][1], "NV18");
	assert_int_equal(takt_client_clocks(client, &clocks, NULL), 0);
	assert_int_equal(clocks.gpu_count, 2);
	assert_int_equal(takt_client_clock_set(client, 1 | UINT64_C(1) << 63,
					       &(struct takt_clock_order){.max_mhz = 1410}, &clocks,
					       NULL),
			 0);
	assert_true(fake.last_mask == (1 | UINT64_C(1) << 63));
	assert_int_equal(takt_client_clock_reset(client, 1, &clocks, NULL), 0);
}

static void a_job_is_followed_to_its_end(void **state)
{
	char *argv[] = {WORD("exit"), WORD("3"), NULL};
	static struct takt_job_view job;
	uint64_t id = submit(argv);

	assert_int_equal(takt_client_wait(client, id, 10000, &job, NULL), 0);
	assert_true(takt_client_job_ended(&job));
	assert_int_equal(takt_client_exit_status(&job), 3);
	assert_int_equal(job.report.energy_mj, 1234567);
}

static void a_log_is_read_to_its_end(void **state)
{
	char *argv[] = {WORD("binary"), NULL};
	struct takt_log_place place = {.offset = 0};
	uint64_t id = submit(argv);
	unsigned char all[1024];
	size_t used = 0;

	while (!place.over) {
		const char *bytes;
		size_t len;

		assert_int_equal(takt_client_log(client, id, 1000, &place, &bytes, &len, NULL), 0);
		memcpy(all + used, bytes, len);
		used += len;
	}
	assert_int_equal(used, 256);
	for (unsigned i = 0; i < 256; i++)
		assert_int_equal(all[i], i);
}

static void errors_keep_their_code_and_words(void **state)
{
	static struct takt_job_view job;
	struct takt_explain_view explain;
	struct takt_jobspec spec;
	struct takt_err err;
	char *argv[] = {WORD("x"), NULL};

	assert_int_equal(takt_client_job(client, 99, &job, &err), -TAKT_E_NOT_FOUND);
	assert_string_equal(err.msg, "there is no job 99");
	assert_int_equal(takt_client_explain(client, 99, &explain, &err), -TAKT_E_NOT_FOUND);
	takt_jobspec_init(&spec);
	spec.argv = argv;
	spec.cwd = WORD("/");
	spec.gpus = 9;
	assert_int_equal(takt_client_submit(client, &spec, &job, &err), -TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "the largest node has 8"));
	spec.gpus = 65;
	assert_int_equal(takt_client_submit(client, &spec, &job, &err), -TAKT_E_USAGE);
}

static void the_environment_is_carried(void **state)
{
	char *argv[] = {WORD("x"), NULL}, *env[] = {WORD("A=\xc3\xa9\n"), NULL};
	static struct takt_job_view job;
	struct takt_jobspec spec;

	takt_jobspec_init(&spec);
	spec.argv = argv;
	spec.env = env;
	spec.cwd = WORD("/");
	assert_int_equal(takt_client_submit(client, &spec, &job, NULL), 0);
	assert_string_equal(fake.last_env, "A=\xc3\xa9\n");
}

static void cancel_and_signal(void **state)
{
	char *argv[] = {WORD("hang"), NULL};
	static struct takt_job_view job;
	uint64_t id = submit(argv);

	assert_int_equal(takt_client_signal(client, id, 10, NULL), 0);
	assert_int_equal(fake.last_signal, 10);
	assert_int_equal(takt_client_cancel(client, id, &job, NULL), 0);
	assert_string_equal(job.state, "cancelled");
	assert_int_equal(takt_client_exit_status(&job), 128 + 15);
}

static void the_queue_arrives(void **state)
{
	char *argv[] = {WORD("hang"), NULL};
	struct takt_queue_view queue;

	submit(argv);
	submit(argv);
	assert_int_equal(takt_client_queue(client, false, 1, &queue, NULL), 0);
	assert_int_equal(queue.count, 1);
	assert_int_equal(queue.total, 2);
	takt_queue_view_fini(&queue);
}

static void nobody_there_is_said(void **state)
{
	struct takt_client *other = NULL;
	struct takt_err err;
	char path[200];

	setenv("TAKT_SOCKET", "/nonexistent/takt.sock", 1);
	assert_int_equal(takt_client_connect(NULL, &other, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "/nonexistent/takt.sock"));
	assert_non_null(strstr(err.msg, "'takt serve' starts one"));
	unsetenv("TAKT_SOCKET");
	setenv("XDG_RUNTIME_DIR", fake.dir, 1);
	if (access("/run/takt/takt.sock", F_OK) != 0) {
		assert_int_equal(takt_client_connect(NULL, &other, &err), -TAKT_E_UNAVAILABLE);
		assert_non_null(strstr(err.msg, "tried /tmp/"));
		assert_non_null(strstr(err.msg, "/run/takt/takt.sock"));
	}
	memset(path, 'a', sizeof(path));
	path[199] = '\0';
	assert_int_equal(takt_client_connect(path, &other, &err), -ENAMETOOLONG);
	assert_null(other);
}

static void the_environment_names_the_socket(void **state)
{
	struct takt_client *other;

	setenv("TAKT_SOCKET", fake.socket, 1);
	assert_int_equal(takt_client_connect(NULL, &other, NULL), 0);
	assert_string_equal(takt_client_socket(other), fake.socket);
	takt_client_free(other);
}

static void a_restart_is_survived(void **state)
{
	static struct takt_job_view job;
	char *argv[] = {WORD("hang"), NULL};
	uint64_t id = submit(argv);
	struct takt_err err;

	fake_halt(&fake);
	fake_stop_server(&fake);
	assert_int_equal(takt_client_job(client, id, &job, &err), -TAKT_E_UNAVAILABLE);
	fake_restart(&fake);
	fake_run(&fake);
	assert_int_equal(takt_client_job(client, id, &job, &err), 0);
}

static int stop_waiting(void *ctx)
{
	char byte;

	return read(*(int *)ctx, &byte, 1) == 1 ? -1 : 0;
}

static void a_wait_can_be_woken(void **state)
{
	static struct takt_job_view job;
	char *argv[] = {WORD("hang"), NULL};
	uint64_t id = submit(argv);
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	takt_client_wake_on(client, fds[0], stop_waiting, &fds[0]);
	assert_int_equal(takt_client_wait(client, id, 60000, &job, NULL), -ECANCELED);
	takt_client_wake_on(client, -1, NULL, NULL);
	assert_int_equal(takt_client_job(client, id, &job, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

static void a_proxy_of_the_environment_is_ignored(void **state)
{
	struct takt_status_view status;

	setenv("http_proxy", "http://127.0.0.1:1", 1);
	assert_int_equal(takt_client_status(client, &status, NULL), 0);
	takt_status_view_fini(&status);
	unsetenv("http_proxy");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(histories_are_asked_for),
		CASE(views_arrive),
		CASE(a_job_is_followed_to_its_end),
		CASE(a_log_is_read_to_its_end),
		CASE(errors_keep_their_code_and_words),
		CASE(the_environment_is_carried),
		CASE(cancel_and_signal),
		CASE(the_queue_arrives),
		CASE(nobody_there_is_said),
		CASE(the_environment_names_the_socket),
		CASE(a_restart_is_survived),
		CASE(a_wait_can_be_woken),
		CASE(a_proxy_of_the_environment_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
