/* SPDX-License-Identifier: Apache-2.0 */
/* Where the environments of jobs are while they wait, and that each has its own when it starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/mem.h"
#include "queue/queue_impl.h"
#include "queue_kit.h"

static struct kit kit;

static int setup(void **state)
{
	kit_open(&kit);
	return 0;
}

static int teardown(void **state)
{
	kit_close(&kit);
	return 0;
}

/* `sleep 1` on all GPUs, with one variable. */
static struct takt_jobspec spec_with(const char *variable)
{
	struct takt_jobspec spec = kit_spec(8);

	takt_free(spec.env); /* an empty list */
	spec.env = takt_calloc(2, sizeof(*spec.env));
	assert_non_null(spec.env);
	spec.env[0] = takt_strdup(variable);
	assert_non_null(spec.env[0]);
	return spec;
}

static const struct takt_queue_job *find(uint64_t id)
{
	const struct takt_queue_job *job = takt_queue_find(kit.queue, id);

	assert_non_null(job);
	return job;
}

static void must_have(uint64_t id, const char *variable)
{
	char **env = find(id)->spec.env;

	assert_non_null(env);
	assert_string_equal(env[0], variable);
	assert_null(env[1]);
}

static void let_end(uint64_t id)
{
	kit_started(&kit, id);
	kit_end_cleanly(&kit, id, TAKT_END_EXITED, 0);
	kit_settle(&kit);
}

static void waiting_jobs_leave_theirs_on_disk_after_a_restart(void **state)
{
	uint64_t runs = kit_accept_spec(&kit, spec_with("WHO=first"));
	uint64_t second = kit_accept_spec(&kit, spec_with("WHO=second"));
	uint64_t third = kit_accept_spec(&kit, spec_with("WHO=third"));

	kit_settle(&kit);
	kit_started(&kit, runs);
	kit_restart(&kit);
	must_have(runs, "WHO=first");
	assert_null(find(second)->spec.env);
	assert_null(find(third)->spec.env);
	assert_true(find(second)->bytes >= strlen("WHO=second")); /* it counts all the same */
	kit_adopted(&kit, runs);
	kit_end_cleanly(&kit, runs, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, second));
	must_have(second, "WHO=second");
	let_end(second);
	assert_true(kit_is_started(&kit, third));
	must_have(third, "WHO=third");
	let_end(third);
	assert_int_equal(kit.queue->bytes, 0);
}

/* Its end takes the environment out of the store before the hook is told of that. */
static void one_with_a_hook_has_it_at_once(void **state)
{
	uint64_t runs = kit_accept_spec(&kit, spec_with("WHO=first"));
	struct takt_jobspec spec = spec_with("WHO=hooked");
	uint64_t hooked;

	spec.hook = takt_strdup("true");
	hooked = kit_accept_spec(&kit, spec);
	kit_settle(&kit);
	kit_started(&kit, runs);
	kit_restart(&kit);
	must_have(hooked, "WHO=hooked");
}

static void run_sql(const char *sql)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/takt.db", kit.dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void one_that_cannot_be_read_holds_its_job_and_nobody_else(void **state)
{
	uint64_t runs = kit_accept_spec(&kit, spec_with("WHO=first"));
	uint64_t gone = kit_accept_spec(&kit, spec_with("WHO=gone"));
	uint64_t torn = kit_accept_spec(&kit, spec_with("WHO=torn"));
	uint64_t last = kit_accept_spec(&kit, spec_with("WHO=last"));

	kit_settle(&kit);
	kit_started(&kit, runs);
	kit_restart(&kit);
	run_sql("DELETE FROM environment WHERE job_id = 2;"
		"UPDATE environment SET json = '{\"env\":[' WHERE job_id = 3;");
	kit_adopted(&kit, runs);
	kit_end_cleanly(&kit, runs, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, last));
	must_have(last, "WHO=last");
	assert_int_equal(find(gone)->row.held, TAKT_HOLD_OWNER);
	assert_int_equal(find(torn)->row.held, TAKT_HOLD_OWNER);
	assert_non_null(strstr(find(torn)->row.message, "its environment is not in this database"));
	let_end(last);
	assert_false(kit_is_started(&kit, gone));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(waiting_jobs_leave_theirs_on_disk_after_a_restart),
		CASE(one_with_a_hook_has_it_at_once),
		CASE(one_that_cannot_be_read_holds_its_job_and_nobody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
