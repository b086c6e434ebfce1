/* SPDX-License-Identifier: Apache-2.0 */
/* What may be handed in at once, what that costs, and who waits meanwhile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/mem.h"
#include "queue/queue_impl.h"
#include "queue_kit.h"

enum {
	LARGE = 1800 * 1000, /* bytes of an environment, */
	TEXTS = 18,	     /* in so many texts */
};

static struct kit kit;

static int setup(void **state)
{
	kit_open(&kit);
	return 0;
}

static int teardown(void **state)
{
	takt_alloc_fail_nth(0, 0);
	kit_close(&kit);
	return 0;
}

/* "NAME=xxxx..." */
static char *long_text(const char *name, size_t len)
{
	char *text = takt_alloc(len + 1);

	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	memcpy(text, name, strlen(name));
	return text;
}

static struct takt_jobspec array_of(uint32_t jobs)
{
	struct takt_jobspec spec = kit_spec(1);

	spec.has_array = true;
	spec.array_last = jobs - 1;
	return spec;
}

static void add_env(struct takt_jobspec *spec, size_t len)
{
	takt_free(spec->env); /* an empty list */
	spec->env = takt_calloc(TEXTS + 1, sizeof(*spec->env));
	assert_non_null(spec->env);
	for (int i = 0; i < TEXTS; i++)
		spec->env[i] = long_text("TOKEN=", len / TEXTS);
}

static void add_argument(struct takt_jobspec *spec, char *argument)
{
	spec->argv = takt_reallocarray(spec->argv, 4, sizeof(*spec->argv));
	assert_non_null(spec->argv);
	spec->argv[2] = argument;
	spec->argv[3] = NULL;
}

static int submit_as(uid_t uid, struct takt_jobspec *spec, struct takt_err *err)
{
	int rc = takt_queue_submit(kit.queue, uid, uid, spec, (struct takt_wall){5}, &kit, err);

	takt_jobspec_fini(spec);
	return rc;
}

static int submit(struct takt_jobspec spec, struct takt_err *err)
{
	return submit_as(1000, &spec, err);
}

static off_t bytes_on_disk(void)
{
	static const char *const files[] = {"takt.db", "takt.db-wal"};
	off_t bytes = 0;

	for (size_t i = 0; i < 2; i++) {
		char path[128];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", kit.dir, files[i]);
		if (stat(path, &st) == 0)
			bytes += st.st_size;
	}
	return bytes;
}

static void must_have_cost_nothing(off_t bytes_before)
{
	assert_int_equal(takt_store_outstanding(kit.store), 0);
	assert_int_equal(kit.queue->jobs.len, 0);
	assert_int_equal(kit.queue->bytes, 0);
	assert_int_equal(kit.queue->next_id, 1);
	assert_int_equal(bytes_on_disk(), bytes_before);
}

static void what_is_over_a_limit_writes_nothing(void **state)
{
	off_t before = bytes_on_disk();
	struct takt_jobspec spec = array_of(300);
	struct takt_err err = {0};

	add_argument(&spec, long_text("", 130000)); /* in each job's own description */
	assert_int_equal(submit(spec, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "300 jobs would be"));
	assert_non_null(strstr(err.msg, "over the 33554432 that may be handed in at once"));
	must_have_cost_nothing(before);
}

static void what_the_queue_has_no_room_for_writes_nothing(void **state)
{
	struct takt_err err = {0};
	off_t before;

	kit.max_bytes = 2000;
	kit.max_jobs = 200;
	kit_restart(&kit);
	before = bytes_on_disk();
	assert_int_equal(submit(array_of(100), &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "over 2000 bytes"));
	assert_int_equal(submit(array_of(201), &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "room for 200 more (max_jobs)"));
	must_have_cost_nothing(before);
}

/* Nor is it once a grid's values are in it. */
static void what_cannot_be_executed_is_refused(void **state)
{
	struct takt_jobspec spec = kit_spec(1);
	off_t before = bytes_on_disk();
	char *argument = long_text("", 130998);
	struct takt_err err = {0};

	memcpy(argument + 130000, "{a}", 3);
	add_argument(&spec, argument);
	spec.grid = takt_calloc(2, sizeof(*spec.grid));
	spec.grid[0] = long_text("a=", 252);
	spec.has_array = true;
	assert_int_equal(submit(spec, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "field 'argv[2]' has 131245 bytes"));
	spec = kit_spec(1);
	add_argument(&spec, long_text("", 200000));
	assert_int_equal(submit(spec, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "field 'argv[2]' has 200000 bytes"));
	must_have_cost_nothing(before);
}

/* A few bytes that become many in each job. */
static void the_values_of_a_grid_count(void **state)
{
	struct takt_jobspec spec = kit_spec(1);
	off_t before = bytes_on_disk();
	struct takt_err err = {0};
	char *argument = takt_alloc(3 * 40 + 1);

	for (int i = 0; i < 40; i++)
		memcpy(argument + 3 * i, "{a}", 4);
	add_argument(&spec, argument);
	spec.grid = takt_calloc(3, sizeof(*spec.grid));
	spec.grid[0] = long_text("a=", 250);
	spec.grid[1] = takt_strdup("b=0-9999");
	spec.has_array = true;
	spec.array_last = 9999;
	assert_int_equal(submit(spec, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "may be handed in at once"));
	must_have_cost_nothing(before);
}

static void must_share(uint64_t first, uint64_t last)
{
	char **env = takt_queue_find(kit.queue, first)->spec.env;

	assert_non_null(env);
	assert_int_equal(takt_queue_env_bytes(env), LARGE + TEXTS);
	for (uint64_t id = first; id <= last; id++)
		assert_ptr_equal(takt_queue_find(kit.queue, id)->spec.env, env);
}

/* In memory, on disk, and after a restart, which finds the first of them gone. */
static void an_array_has_one_environment(void **state)
{
	struct takt_jobspec spec = array_of(300);
	char *text = NULL;

	add_env(&spec, LARGE);
	assert_int_equal(submit(spec, NULL), 0);
	kit_settle(&kit);
	assert_int_equal(kit.accepted_count, 1);
	must_share(1, 300);
	assert_true(kit.queue->bytes < 3 * LARGE / 2);
	assert_true(bytes_on_disk() < 8 * LARGE);
	kit_cancel(&kit, 300);
	kit_started(&kit, 1);
	kit_end_cleanly(&kit, 1, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	kit_restart(&kit);
	must_share(2, 299);
	assert_true(kit.queue->bytes < 3 * LARGE / 2);
	for (uint64_t id = 10; id < 300; id++)
		kit_cancel(&kit, id);
	for (uint64_t id = 2; id < 10; id++) {
		kit_adopted(&kit, id);
		kit_end_cleanly(&kit, id, TAKT_END_EXITED, 0);
	}
	kit_settle(&kit);
	kit_settle(&kit);
	assert_int_equal(kit.queue->jobs.len, 0);
	assert_int_equal(kit.queue->bytes, 0);
	assert_int_equal(takt_store_environment(kit.store, 1, &text, NULL), 0);
	assert_null(text);
}

static size_t jobs_here(void)
{
	return kit.queue->jobs.len;
}

/* And who hands in one job meanwhile does not wait for it. */
static void a_large_array_is_made_in_many_turns(void **state)
{
	size_t before, most = 0;
	uint64_t other = 10001;
	struct takt_jobspec one = kit_spec(1);

	assert_int_equal(submit(array_of(10000), NULL), 0);
	assert_true(jobs_here() < 200);
	assert_int_equal(submit_as(1001, &one, NULL), 0);
	while (kit.accepted_count == 0) {
		before = jobs_here();
		(void)kit_pump_in(&kit, 1000);
		most = jobs_here() - before > most ? jobs_here() - before : most;
	}
	assert_int_equal(kit.accepted_id, other);
	assert_true(jobs_here() < 10001);
	while (kit.accepted_count == 1) {
		before = jobs_here();
		(void)kit_pump_in(&kit, 1000);
		if (jobs_here() > before)
			most = jobs_here() - before > most ? jobs_here() - before : most;
	}
	assert_true(most > 0 && most < 200);
	assert_int_equal(kit.accepted_id, 1);
	for (uint64_t id = 1; id <= 10000; id++)
		assert_int_equal(takt_queue_find(kit.queue, id)->spec.array_index, id - 1);
	assert_int_equal(kit.queue->to_come, 0);
}

static void what_is_to_come_counts_against_the_limits(void **state)
{
	struct takt_jobspec one = kit_spec(1);
	struct takt_err err = {0};

	kit.max_jobs = 1000;
	kit_restart(&kit);
	assert_int_equal(submit(array_of(1000), NULL), 0);
	assert_true(jobs_here() < 1000);
	assert_int_equal(submit_as(1001, &one, &err), -TAKT_E_LIMIT);
	kit_settle(&kit);
	assert_int_equal(kit.accepted_count, 1);
	assert_int_equal(jobs_here(), 1000);
}

static int submit_one_as(uid_t uid, struct takt_err *err)
{
	struct takt_jobspec one = kit_spec(1);

	return submit_as(uid, &one, err);
}

static int submit_array_as(uid_t uid, uint32_t jobs, struct takt_err *err)
{
	struct takt_jobspec spec = array_of(jobs);

	return submit_as(uid, &spec, err);
}

/* Nobody can fill the queue for the others, and all of them not for root. */
static void each_user_has_his_share_of_the_queue(void **state)
{
	struct takt_err err = {0};

	kit.shared = true;
	kit.max_jobs = 160;
	kit_restart(&kit);
	assert_int_equal(submit_array_as(1000, 41, &err), -TAKT_E_LIMIT);
	assert_string_equal(err.msg, "41 jobs more: you have 0 that are not over, and a user may "
				     "have 40 (user_max_jobs)");
	assert_int_equal(submit_array_as(1000, 39, NULL), 0);
	assert_int_equal(submit_one_as(1000, NULL), 0);
	assert_int_equal(submit_one_as(1000, &err), -TAKT_E_LIMIT);
	kit_settle(&kit);
	for (uid_t uid = 1001; uid < 1003; uid++)
		assert_int_equal(submit_array_as(uid, 40, NULL), 0);
	assert_int_equal(submit_array_as(1003, 30, NULL), 0);
	assert_int_equal(submit_one_as(1003, &err), -TAKT_E_LIMIT);
	assert_string_equal(err.msg, "the queue is full with 150 jobs, but for what is kept for "
				     "root (max_jobs)");
	assert_int_equal(submit_array_as(0, 10, NULL), 0);
	kit_settle(&kit);
	kit_cancel(&kit, 40);
	kit_settle(&kit);
	assert_int_equal(submit_one_as(1000, NULL), 0); /* what is over does not count */
}

static void each_user_has_his_share_of_the_bytes(void **state)
{
	struct takt_jobspec spec;
	struct takt_err err = {0};

	kit.shared = true;
	kit.max_bytes = 4 * LARGE;
	kit_restart(&kit);
	spec = array_of(3);
	add_env(&spec, LARGE);
	assert_int_equal(submit_as(1000, &spec, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "what a user may have (user_descriptions)"));
	spec = kit_spec(1);
	add_env(&spec, LARGE);
	assert_int_equal(submit_as(1000, &spec, &err), -TAKT_E_LIMIT);
	assert_int_equal(kit.queue->bytes, 0);
	spec = array_of(3);
	add_env(&spec, LARGE / 2);
	assert_int_equal(submit_as(1000, &spec, NULL), 0);
	assert_int_equal(submit_one_as(1001, NULL), 0);
	kit_settle(&kit);
	kit_restart(&kit);
	spec = array_of(3);
	add_env(&spec, LARGE / 2);
	assert_int_equal(submit_as(1000, &spec, &err), -TAKT_E_LIMIT);
}

static unsigned started(uint64_t first, uint64_t last)
{
	unsigned n = 0;

	for (uint64_t id = first; id <= last; id++)
		n += kit_is_started(&kit, id);
	return n;
}

/* Hundreds of jobs that fit at once are not hundreds of starts before anybody else's. */
static void each_user_starts_so_many_at_a_time(void **state)
{
	struct takt_jobspec small = array_of(300);

	small.gpus = 0;
	small.cpu_milli = 1;
	assert_int_equal(submit_as(1000, &small, NULL), 0);
	kit_settle(&kit);
	small = kit_spec(0);
	small.cpu_milli = 1;
	assert_int_equal(submit_as(1001, &small, NULL), 0);
	kit_settle(&kit);
	assert_int_equal(started(1, 300), TAKT_QUEUE_STARTS);
	assert_true(kit_is_started(&kit, 301));
	for (uint64_t id = 1; id <= 300; id++) {
		assert_true(kit_is_started(&kit, id));
		kit_started(&kit, id);
		kit_settle(&kit);
	}
}

/* Whoever hangs up has handed it in all the same; a restart finds it whole. */
static void an_array_half_made_is_finished(void **state)
{
	assert_int_equal(submit(array_of(3000), NULL), 0);
	takt_queue_forget_token(kit.queue, &kit);
	assert_true(jobs_here() < 3000);
	kit_restart(&kit);
	kit_settle(&kit);
	assert_int_equal(jobs_here(), 3000);
	assert_int_equal(kit.accepted_count, 0);
	assert_int_equal(takt_queue_find(kit.queue, 3000)->spec.array_index, 2999);
}

static void must_all_be_cancelled(uint64_t count)
{
	for (uint64_t id = 1; id <= count; id++) {
		struct takt_job row = {0};

		if (takt_store_get(kit.store, id, &row, NULL) == -TAKT_E_NOT_FOUND)
			continue;
		assert_int_equal(row.state, TAKT_JOB_CANCELLED);
		takt_job_fini(&row);
	}
	assert_false(kit_is_started(&kit, 1));
}

/* One failure, wherever: all of them are there, or none stays. True: there was none. */
static bool goes_through_with_failure(unsigned long nth)
{
	struct takt_jobspec spec = array_of(130);
	struct takt_err err = {0};
	int rc;

	add_env(&spec, 1800);
	takt_alloc_fail_nth(nth, 0);
	rc = takt_queue_submit(kit.queue, 1000, 1000, &spec, (struct takt_wall){5}, &kit, &err);
	for (int i = 0; rc == 0 && i < 4; i++) {
		uint64_t next;

		(void)takt_queue_pump(kit.queue, (struct takt_boot){++kit.boot_ns},
				      (struct takt_wall){5}, &next, NULL);
	}
	takt_alloc_fail_nth(0, 0);
	takt_jobspec_fini(&spec);
	kit_later(&kit, 10000000000ull);
	if (rc == 0 && kit.accepted_count == 1)
		return jobs_here() == 130;
	assert_true(rc < 0 ? err.msg[0] != '\0' : kit.refused_count == 1);
	kit_settle(&kit);
	assert_int_equal(jobs_here(), 0);
	assert_int_equal(kit.queue->bytes, 0);
	assert_int_equal(kit.queue->to_come, 0);
	must_all_be_cancelled(130);
	return false;
}

/* Each of the first, then ever fewer. */
static void any_allocation_may_fail(void **state)
{
	unsigned long step = 1;

	for (unsigned long nth = 1; step < 150; nth += step++) {
		kit_close(&kit);
		kit_open(&kit);
		(void)goes_through_with_failure(nth);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(what_is_over_a_limit_writes_nothing),
		CASE(what_the_queue_has_no_room_for_writes_nothing),
		CASE(what_cannot_be_executed_is_refused),
		CASE(the_values_of_a_grid_count),
		CASE(an_array_has_one_environment),
		CASE(a_large_array_is_made_in_many_turns),
		CASE(what_is_to_come_counts_against_the_limits),
		CASE(each_user_has_his_share_of_the_queue),
		CASE(each_user_has_his_share_of_the_bytes),
		CASE(each_user_starts_so_many_at_a_time),
		CASE(an_array_half_made_is_finished),
		CASE(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
