/* SPDX-License-Identifier: Apache-2.0 */
/* A database as a file: what a copy, a restore and a report have in them and have not, and that
 * whatever fails, at any allocation, changes nothing and leaves nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/store_admin.h"
#include "store_fixture.h"

enum {
	STEP = 7, /* of the allocations that are made to fail, in the short form */
};

static const char secret[] = "TOKEN=hunter2";
static const char *const facts[] = {"driver", "550", NULL};

static struct store_place place;
static char copy[300], report[300], aside[300];

static void post(struct takt_store *store, struct takt_job job, const char *spec)
{
	int64_t ticket;

	job.spec_json = (char *)spec;
	job.env_json = (char *)"{\"env\":[\"TOKEN=hunter2\"]}";
	ticket = takt_store_insert(store, &job, 1, NULL);
	assert_true(ticket >= 0);
	assert_int_equal(store_wait(store, ticket).rc, 0);
}

/* Jobs 1 waits, 2 and 3 run; and one decision. */
static void fill(void)
{
	struct takt_store *store = store_open_ok(place.path);
	struct takt_job running = store_job(2), other = store_job(3);

	running.state = other.state = TAKT_JOB_RUNNING;
	running.attempt = other.attempt = 1;
	running.gpu_mask = 1;
	other.gpu_mask = 2;
	post(store, store_job(1),
	     "{\"argv\":[\"/home/ada/train\"],\"name\":\"rocket\",\"gpus\":1}");
	post(store, running, "{\"argv\":[\"x\"],\"name\":\"rocket\",\"gpus\":1}");
	post(store, other, "{\"argv\":[\"x\"],\"name\":\"other\",\"gpus\":1}");
	assert_int_equal(takt_store_decision(store, 1, "{\"jobs\":[{\"owner\":1001}]}", "{}", NULL),
			 0);
	takt_store_close(store);
}

static int setup(void **state)
{
	store_place_init(&place);
	snprintf(copy, sizeof(copy), "%s/copy", place.dir);
	snprintf(report, sizeof(report), "%s/report", place.dir);
	snprintf(aside, sizeof(aside), "%s.before-restore", place.path);
	fill();
	return 0;
}

static int teardown(void **state)
{
	store_place_fini(&place);
	return 0;
}

static int back_up(const char *path, const char *to, struct takt_err *err)
{
	struct takt_store_copy made;
	int rc = takt_store_copy_make(to, &made, err);

	return rc < 0 ? rc
		      : takt_store_copy_end(&made, takt_store_file_backup(path, &made, err), err);
}

static bool holds(const char *path, const char *text)
{
	static char bytes[1 << 20];
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

	if (file)
		(void)fclose(file);
	return n > 0 && memmem(bytes, n, text, strlen(text));
}

static void expect_private(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void nobody(void *ctx, uint64_t job_id, uint32_t attempt, bool runs)
{
}

struct seen {
	unsigned jobs, running;
};

static void count(void *ctx, uint64_t job_id, uint32_t attempt, bool runs)
{
	struct seen *seen = ctx;

	seen->jobs++;
	seen->running += runs;
}

static void no_environment(void *ctx, uint64_t job_id)
{
	fail_msg("environment of job %llu is astray", (unsigned long long)job_id);
}

static struct seen check(const char *path)
{
	struct seen seen = {0};
	const struct takt_store_file_look look = {count, no_environment, &seen};
	struct takt_err err = {0};
	uint64_t jobs;
	int64_t schema;

	if (takt_store_file_check(path, &schema, &jobs, &look, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(jobs, seen.jobs);
	return seen;
}

static void a_copy_has_all_but_what_people_keep_secret(void **state)
{
	struct seen seen;

	assert_true(holds(place.path, secret));
	assert_int_equal(back_up(place.path, copy, NULL), 0);
	expect_private(copy);
	assert_false(holds(copy, secret));
	assert_true(holds(copy, "/home/ada/train"));
	seen = check(copy);
	assert_int_equal(seen.jobs, 3);
	assert_int_equal(seen.running, 2);
	assert_int_equal(back_up(place.path, copy, NULL), -EEXIST);
}

static void a_copy_can_be_made_while_a_daemon_has_it(void **state)
{
	struct takt_store *store = store_open_ok(place.path);

	assert_int_equal(back_up(place.path, copy, NULL), 0);
	assert_int_equal(takt_store_file_restore(place.path, copy, NULL, 0, NULL), -TAKT_E_BUSY);
	takt_store_close(store);
	assert_int_equal(access(aside, F_OK), -1);
}

static struct takt_job row_of(struct takt_store *store, uint64_t id)
{
	struct takt_job row = {0};

	assert_int_equal(takt_store_get(store, id, &row, NULL), 0);
	takt_job_fini(&row); /* the numbers are all that is looked at */
	return row;
}

static void what_is_restored_starts_nothing_by_itself(void **state)
{
	const struct takt_store_alive alive = {.job_id = 2, .attempt = 1};
	struct takt_store *store;

	assert_int_equal(back_up(place.path, copy, NULL), 0);
	assert_int_equal(takt_store_file_restore(place.path, copy, &alive, 1, NULL), 0);
	expect_private(place.path);
	assert_true(holds(aside, secret));
	assert_false(holds(place.path, secret));
	store = store_open_ok(place.path);
	assert_int_equal(row_of(store, 1).state, TAKT_JOB_WAITING);
	assert_int_equal(row_of(store, 1).held, TAKT_HOLD_ADMIN);
	assert_int_equal(row_of(store, 2).state, TAKT_JOB_RUNNING);
	assert_int_equal(row_of(store, 3).state, TAKT_JOB_LOST);
	takt_store_close(store);
}

static void an_attempt_that_the_copy_does_not_know_forbids_it(void **state)
{
	const struct takt_store_alive strangers[] = {{9, 1}, {1, 1}, {2, 7}};

	assert_int_equal(back_up(place.path, copy, NULL), 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(strangers); i++)
		assert_int_equal(takt_store_file_restore(place.path, copy, &strangers[i], 1, NULL),
				 -TAKT_E_CONFLICT);
	assert_int_equal(access(aside, F_OK), -1);
	assert_true(holds(place.path, secret));
}

/* What has the name of a part that is moved aside is a folder. */
static void one_that_cannot_be_finished_changes_nothing(void **state)
{
	char part[sizeof(aside) + 8], folder[sizeof(aside) + 8];
	FILE *file;

	assert_int_equal(back_up(place.path, copy, NULL), 0);
	snprintf(part, sizeof(part), "%s-shm", place.path);
	snprintf(folder, sizeof(folder), "%s-shm", aside);
	file = fopen(part, "we");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(takt_store_file_restore(place.path, copy, NULL, 0, NULL), -EISDIR);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(access(aside, F_OK), -1);
	assert_true(holds(place.path, secret));
	assert_int_equal(unlink(part), 0);
	assert_int_equal(check(place.path).jobs, 3);
}

static void write_garbage(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "no database at all, but long enough", 35), 35);
	assert_int_equal(close(fd), 0);
}

static void what_is_no_database_of_ours_is_refused(void **state)
{
	struct takt_err err = {0};
	const struct takt_store_file_look look = {nobody, no_environment, NULL};
	uint64_t jobs;
	int64_t schema;

	write_garbage(copy);
	assert_int_equal(takt_store_file_check(copy, &schema, &jobs, &look, &err), -TAKT_E_CORRUPT);
	assert_non_null(strstr(err.msg, copy));
	assert_int_equal(takt_store_file_restore(place.path, copy, NULL, 0, NULL), -TAKT_E_CORRUPT);
	assert_int_equal(back_up(copy, report, NULL), -TAKT_E_CORRUPT);
	assert_int_equal(access(report, F_OK), -1);
	assert_int_equal(access(aside, F_OK), -1);
	assert_int_equal(takt_store_file_restore(place.path, "/nowhere/copy", NULL, 0, NULL),
			 -ENOENT);
	assert_int_equal(check(place.path).jobs, 3);
}

static void a_report_names_nobody(void **state)
{
	char name[40], again[40];

	assert_int_equal(takt_store_file_report(place.path, report, "key", facts, NULL), 0);
	expect_private(report);
	assert_false(holds(report, secret));
	assert_false(holds(report, "ada"));
	assert_false(holds(report, "rocket"));
	assert_false(holds(report, "1001"));
	assert_true(holds(report, "550"));
	takt_pseudonym("key", "name", "rocket", name);
	takt_pseudonym("key", "name", "rocket", again);
	assert_string_equal(name, again);
	assert_true(holds(report, name));
	takt_pseudonym("other key", "name", "rocket", again);
	assert_string_not_equal(name, again);
	takt_pseudonym("key", "user", "rocket", again);
	assert_string_not_equal(name + 5, again + 5);
	assert_int_equal(takt_store_file_report(place.path, report, "key", facts, NULL), -EEXIST);
}

/* What is tried with an allocation failing. */
static int do_backup(struct takt_err *err)
{
	return back_up(place.path, copy, err);
}

static int do_report(struct takt_err *err)
{
	return takt_store_file_report(place.path, report, "key", facts, err);
}

static int do_check(struct takt_err *err)
{
	struct seen seen = {0};
	const struct takt_store_file_look look = {count, no_environment, &seen};
	uint64_t jobs;
	int64_t schema;

	return takt_store_file_check(place.path, &schema, &jobs, &look, err);
}

static int do_restore(struct takt_err *err)
{
	return takt_store_file_restore(place.path, copy, NULL, 0, err);
}

/* As it was before an action that succeeded in spite of the failure: SQLite can do without some. */
static void undo(const char *made)
{
	static const char *const of[] = {"", "-wal", "-shm"};
	char from[sizeof(aside) + 8], to[sizeof(aside) + 8];

	if (strcmp(made, aside) != 0) {
		(void)unlink(made);
		return;
	}
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		snprintf(from, sizeof(from), "%s%s", aside, of[i]);
		snprintf(to, sizeof(to), "%s%s", place.path, of[i]);
		if (rename(from, to) < 0)
			assert_int_equal(errno, ENOENT);
	}
}

/* One allocation after the other fails, until more are tried than are made; how many those were. */
static unsigned long tried(int (*action)(struct takt_err *err), const char *made)
{
	const unsigned long step = getenv("TAKT_TEST_LONG") ? 1 : STEP;
	unsigned long nth = 1, before, count_made;

	do {
		struct takt_err err = {0};
		int rc;

		before = takt_alloc_count();
		takt_alloc_fail_nth(nth, 0);
		rc = action(&err);
		takt_alloc_fail_nth(0, 0);
		count_made = takt_alloc_count() - before;
		if (rc < 0 && (!err.msg[0] || access(made, F_OK) == 0))
			fail_msg("%s: allocation %lu: %d '%s'", made, nth, rc, err.msg);
		if (rc < 0 && !holds(place.path, secret))
			fail_msg("%s: allocation %lu changed the database", made, nth);
		if (rc == 0 && count_made >= nth)
			undo(made);
		nth += step;
	} while (count_made + step >= nth);
	return nth;
}

static void any_allocation_may_fail(void **state)
{
	assert_true(tried(do_backup, copy) > 100);
	assert_true(tried(do_report, report) > 100);
	assert_true(tried(do_check, "/nowhere") > 100);
	if (access(copy, F_OK) < 0)
		assert_int_equal(do_backup(NULL), 0);
	assert_true(tried(do_restore, aside) > 100);
	assert_int_equal(check(place.path).jobs, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(a_copy_has_all_but_what_people_keep_secret),
		CASE(a_copy_can_be_made_while_a_daemon_has_it),
		CASE(what_is_restored_starts_nothing_by_itself),
		CASE(an_attempt_that_the_copy_does_not_know_forbids_it),
		CASE(one_that_cannot_be_finished_changes_nothing),
		CASE(what_is_no_database_of_ours_is_refused),
		CASE(a_report_names_nobody),
		CASE(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
