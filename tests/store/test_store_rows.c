/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon does with the store all day: post, be told, read back, reopen. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/mem.h"
#include "store_fixture.h"

static struct store_place place;

static int setup(void **state)
{
	store_place_init(&place);
	*state = store_open_ok(place.path);
	return 0;
}

static int teardown(void **state)
{
	takt_store_close(*state);
	store_place_fini(&place);
	return 0;
}

static void reopen(void **state)
{
	takt_store_close(*state);
	*state = store_open_ok(place.path);
}

static void assert_stored(struct takt_store *store, const struct takt_job *want)
{
	struct takt_job got;
	struct takt_err err;

	assert_int_equal(takt_store_get(store, want->id, &got, &err), 0);
	assert_string_equal(store_job_text(&got), store_job_text(want));
	takt_job_fini(&got);
}

static void insert_ok(struct takt_store *store, const struct takt_job *job)
{
	int64_t ticket = takt_store_insert(store, job, 0, NULL);

	assert_true(ticket > 0);
	assert_int_equal(store_wait(store, ticket).rc, 0);
}

static void update_ok(struct takt_store *store, const struct takt_job *job)
{
	int64_t ticket = takt_store_update(store, job, 0, NULL);

	assert_true(ticket > 0);
	assert_int_equal(store_wait(store, ticket).rc, 0);
}

/* Every field at a value that a wrong column, a sign or a lost bit would change. */
static struct takt_job extreme_job(void)
{
	struct takt_job job = store_job(INT64_MAX - 1);

	job.submit_seq = INT64_MAX - 7;
	job.uid = UINT32_MAX - 1;
	job.gid = UINT32_MAX - 2;
	job.spec_json = (char *)"{\"env\":[\"A=\xff\xfe'\\\"\"]}";
	job.state = TAKT_JOB_FAILED;
	job.attempt = UINT32_MAX;
	job.gpu_mask = 0xf00000000000000f;
	job.submitted.ns = 11;
	job.started.ns = -12;
	job.ended.ns = INT64_MAX;
	job.exit_code = -1;
	job.exit_signal = 9;
	job.message = (char *)"exec './train.sh': it's not there";
	job.cancel_wanted = true;
	job.held = TAKT_HOLD_ADMIN;
	job.priority = -12;
	job.timed_out = true;
	job.restarts = 4;
	job.failures = 3;
	job.retry_at.ns = 1234567890123456789;
	job.share_milli = 250;
	job.mps_limited = true;
	job.mem_held_mib = UINT32_MAX;
	job.mig = (char *)"MIG-1,MIG-2";
	job.gpu_uuids = (char *)"GPU-1,,GPU-3";
	job.promise = (struct takt_job_promise){true, 500, "ladder"};
	job.limit = (struct takt_job_limit){true, 0};
	job.cause = (struct takt_job_cause){TAKT_CAUSE_GPU_LOST, 0, UINT32_MAX, {INT64_MAX - 6}};
	job.preemptions = 5;
	job.frozen = true;
	job.stood_ns = UINT64_MAX - 5;
	job.staged = true;
	job.evict = 3;
	job.evict_for = INT64_MAX;
	job.evict_at.ns = 1234567890123456790;
	job.checkpoint_at.ns = 1234567890123456791;
	job.report = (struct takt_job_report){
		.has = TAKT_REPORT_ENERGY | TAKT_REPORT_MEAN_SM | TAKT_REPORT_THROTTLED |
		       TAKT_REPORT_PEAK_MEMORY | TAKT_REPORT_WALL | TAKT_REPORT_UTIL |
		       TAKT_REPORT_HANDOVER | TAKT_REPORT_SAVED | TAKT_REPORT_SM_SPREAD,
		.sm_spread_mhz = UINT32_MAX - 12,
		.governor = "assured",
		.work_signal = 3,
		.governed_mj = UINT64_MAX - 7,
		.highest_mj = UINT64_MAX - 8,
		.highest_error_permille = UINT32_MAX - 9,
		.slowdown_permille = -10,
		.slowdown_error_permille = UINT32_MAX - 11,
		.gap_driver_ns = 11,
		.gap_scheduler_ns = 12,
		.gap_start_ns = UINT64_MAX,
		.simulated = true,
		.wall_ns = UINT64_MAX,
		.energy_mj = UINT64_MAX - 1,
		.energy_why_not = "why",
		.mean_sm_mhz = UINT32_MAX,
		.throttled_ns = UINT64_MAX - 2,
		.throttle_reasons = UINT64_MAX - 3,
		.peak_memory_bytes = UINT64_MAX - 4,
		.mean_util_permille = UINT32_MAX - 5,
		.idle_ns = UINT64_MAX - 6,
	};
	return job;
}

struct kept {
	char text[256];
};

static int note_kept(void *ctx, const char *key, const char *text)
{
	struct kept *kept = ctx;
	size_t used = strlen(kept->text);

	snprintf(kept->text + used, sizeof(kept->text) - used, "%s=%s;", key, text);
	return 0;
}

static void assert_kept(struct takt_store *store, const char *prefix, const char *want)
{
	struct kept kept = {""};

	assert_int_equal(takt_store_each_kept(store, prefix, note_kept, &kept, NULL), 0);
	assert_string_equal(kept.text, want);
}

static void keep_ok(struct takt_store *store, const char *key, const char *text)
{
	int64_t ticket = takt_store_keep(store, key, text, 0, NULL);

	assert_true(ticket > 0);
	assert_int_equal(store_wait(store, ticket).rc, 0);
}

static void keeps_texts_by_key_until_told_to_forget(void **state)
{
	static char huge[TAKT_STORE_MAX_KEPT + 2];

	keep_ok(*state, "gpu/b", "1");
	keep_ok(*state, "gpu/a", "2");
	keep_ok(*state, "other", "3");
	keep_ok(*state, "gpu/b", "4");
	reopen(state);
	assert_kept(*state, "gpu/", "gpu/a=2;gpu/b=4;");
	keep_ok(*state, "gpu/b", NULL);
	keep_ok(*state, "never", NULL);
	reopen(state);
	assert_kept(*state, "", "gpu/a=2;other=3;");
	memset(huge, 'x', sizeof(huge) - 1);
	assert_int_equal(takt_store_keep(*state, "k", huge, 0, NULL), -TAKT_E_LIMIT);
}

static void keeps_every_field(void **state)
{
	struct takt_job job = extreme_job();

	insert_ok(*state, &job);
	assert_stored(*state, &job);
	reopen(state);
	assert_stored(*state, &job);
}

static void absent_report_values_stay_absent(void **state)
{
	struct takt_job job = store_job(1);

	job.state = TAKT_JOB_DONE;
	job.report.has = TAKT_REPORT_ENERGY;
	job.report.energy_mj = 0; /* measured, and zero */
	insert_ok(*state, &job);
	assert_stored(*state, &job);
}

static void update_keeps_identity(void **state)
{
	struct takt_job job = store_job(5);
	struct takt_job change = extreme_job();

	insert_ok(*state, &job);
	change.id = 5;
	change.spec_json = NULL;
	update_ok(*state, &change);
	change.submit_seq = job.submit_seq;
	change.uid = job.uid;
	change.gid = job.gid;
	change.spec_json = job.spec_json;
	assert_stored(*state, &change);
}

static void null_message_reads_as_empty(void **state)
{
	struct takt_job job = store_job(1), got;

	job.message = NULL;
	insert_ok(*state, &job);
	assert_int_equal(takt_store_get(*state, 1, &got, NULL), 0);
	assert_string_equal(got.message, "");
	takt_job_fini(&got);
}

static void missing_job_is_not_found(void **state)
{
	struct takt_job got = {.id = 77};
	struct takt_err err;

	assert_int_equal(takt_store_get(*state, 4, &got, &err), -TAKT_E_NOT_FOUND);
	assert_string_equal(err.msg, "job 4");
	assert_int_equal(got.id, 77);
	assert_int_equal(takt_store_get(*state, UINT64_MAX, &got, &err), -TAKT_E_NOT_FOUND);
}

static void ids_go_on_after_reopen(void **state)
{
	uint64_t id, seq;
	struct takt_job job = store_job(41);

	assert_int_equal(takt_store_next_ids(*state, &id, &seq, NULL), 0);
	assert_int_equal(id, 1);
	assert_int_equal(seq, 1);
	insert_ok(*state, &job);
	reopen(state);
	assert_int_equal(takt_store_next_ids(*state, &id, &seq, NULL), 0);
	assert_int_equal(id, 42);
	assert_int_equal(seq, 1042);
}

struct seen {
	uint64_t ids[64];
	size_t n;
	size_t stop_after;
};

static int see(void *ctx, const struct takt_job *job)
{
	struct seen *seen = ctx;

	seen->ids[seen->n++] = job->id;
	return seen->n == seen->stop_after ? -ECANCELED : 0;
}

/* Jobs 1..9 in each of the nine states; live ones by submission, ended ones backwards. */
static void walks_live_and_history(void **state)
{
	struct seen live = {0}, ended = {0}, two = {0}, stopped = {.stop_after = 1};
	struct takt_job job;

	for (unsigned i = TAKT_JOB_STATE_COUNT; i > 0; i--) {
		job = store_job(i);
		job.state = (enum takt_job_state)(i - 1);
		insert_ok(*state, &job);
	}
	assert_int_equal(takt_store_each_live(*state, see, &live, NULL), 0);
	assert_int_equal(live.n, 4);
	for (size_t i = 0; i < live.n; i++)
		assert_int_equal(live.ids[i], i + 1);
	assert_int_equal(takt_store_each_history(*state, 100, 0, see, &ended, NULL), 0);
	assert_int_equal(ended.n, 5);
	for (size_t i = 0; i < ended.n; i++)
		assert_int_equal(ended.ids[i], 9 - i);
	assert_int_equal(takt_store_each_history(*state, 2, 0, see, &two, NULL), 0);
	assert_int_equal(two.n, 2);
	assert_int_equal(takt_store_each_live(*state, see, &stopped, NULL), -ECANCELED);
	assert_int_equal(stopped.n, 1);
}

/* What a part of history costs. */
struct parts {
	uint64_t last_id;
	size_t jobs, bytes, largest;
};

static int weigh(void *ctx, const struct takt_job *job)
{
	struct parts *parts = ctx;

	assert_true(parts->last_id == 0 || job->id < parts->last_id);
	parts->last_id = job->id;
	parts->jobs++;
	parts->bytes += strlen(job->spec_json);
	return 0;
}

/* Asks on until there is no more; how many parts there were. */
static unsigned read_parts(struct takt_store *store, struct takt_store_past past, struct parts *ret)
{
	unsigned count = 0;

	do {
		size_t before = ret->bytes;

		assert_int_equal(
			takt_store_each_past(store, &past, weigh, ret, &past.before_id, NULL), 0);
		if (ret->bytes - before > ret->largest)
			ret->largest = ret->bytes - before;
		count++;
	} while (past.before_id);
	return count;
}

/* However long descriptions are and however many were asked for. */
static void history_is_read_in_parts(void **state)
{
	static char spec[1900 * 1024];
	struct parts all = {0}, one = {0}, small = {0};
	struct takt_job job;

	memset(spec, 'x', sizeof(spec) - 1);
	for (uint64_t id = 1; id <= 20; id++) {
		job = store_job(id);
		job.state = TAKT_JOB_DONE;
		if (id % 2)
			job.spec_json = spec;
		insert_ok(*state, &job);
	}
	assert_in_range(read_parts(*state,
				   (struct takt_store_past){.uid = -1, .gpu = -1, .limit = 10000},
				   &all),
			4, 20);
	assert_int_equal(all.jobs, 20);
	assert_in_range(all.largest, 1, 8 << 20);
	assert_in_range(read_parts(*state,
				   (struct takt_store_past){.uid = -1, .gpu = -1, .limit = 1},
				   &one),
			20, 21);
	assert_int_equal(one.jobs, 20);
	assert_int_equal(takt_store_each_history(*state, 100, 4096, weigh, &small, NULL), 0);
	assert_int_equal(small.jobs, 10);
	assert_in_range(small.bytes, 1, 10 * 4096);
}

/* What fits nothing has to look at all rows; nobody waits for that. */
static void a_part_looks_at_so_many_rows(void **state)
{
	struct parts none = {0};
	struct takt_job job;
	int64_t ticket = 0;

	for (uint64_t id = 1; id <= 25000; id++) {
		job = store_job(id);
		job.state = TAKT_JOB_DONE;
		ticket = takt_store_insert(*state, &job, 0, NULL);
	}
	assert_int_equal(store_wait(*state, ticket).rc, 0);
	assert_in_range(read_parts(*state,
				   (struct takt_store_past){.uid = 77, .gpu = -1, .limit = 1},
				   &none),
			2, 25000);
	assert_int_equal(none.jobs, 0);
}

static int get_inside(void *ctx, const struct takt_job *job)
{
	struct takt_job got;

	assert_int_equal(takt_store_get(ctx, job->id, &got, NULL), 0);
	takt_job_fini(&got);
	return 0;
}

static void a_walk_may_read(void **state)
{
	struct takt_job job = store_job(1);

	insert_ok(*state, &job);
	assert_int_equal(takt_store_each_live(*state, get_inside, *state, NULL), 0);
}

/* A duplicate and an unknown job, posted between good ones, fail alone and say which. */
static void a_bad_row_fails_alone(void **state)
{
	struct takt_job a = store_job(1), b = store_job(2), unknown = store_job(99);
	struct takt_store_completion done[5];
	struct takt_store *store = *state;
	size_t n = 0;
	int64_t last;

	insert_ok(store, &a);
	assert_true(takt_store_insert(store, &b, 10, NULL) > 0);
	assert_true(takt_store_insert(store, &a, UINT64_MAX, NULL) > 0);
	assert_true(takt_store_update(store, &unknown, 12, NULL) > 0);
	b.attempt = 3;
	last = takt_store_update(store, &b, 13, NULL);
	while (n < 4) {
		struct pollfd fd = {.fd = takt_store_fd(store), .events = POLLIN};

		assert_int_equal(poll(&fd, 1, 20000), 1);
		n += takt_store_completions(store, done + n, 4 - n);
	}
	assert_int_equal(done[3].ticket, last);
	assert_int_equal(done[0].tag, 10);
	assert_int_equal(done[1].tag, UINT64_MAX);
	assert_int_equal(done[3].tag, 13);
	assert_int_equal(done[0].rc, 0);
	assert_string_equal(done[0].message, "");
	assert_int_equal(done[1].rc, -EEXIST);
	assert_string_equal(done[1].message,
			    "job 1 is in the database already, or its submit_seq is");
	assert_int_equal(done[2].rc, -TAKT_E_NOT_FOUND);
	assert_string_equal(done[2].message, "job 99 is not in the database");
	assert_int_equal(done[3].rc, 0);
	assert_stored(store, &b);
}

static void a_second_submit_seq_is_refused_whole(void **state)
{
	struct takt_job a = store_job(1), b = store_job(2), got;

	insert_ok(*state, &a);
	b.submit_seq = a.submit_seq;
	assert_int_equal(store_wait(*state, takt_store_insert(*state, &b, 0, NULL)).rc, -EEXIST);
	assert_int_equal(takt_store_get(*state, 2, &got, NULL), -TAKT_E_NOT_FOUND);
	b.submit_seq++;
	insert_ok(*state, &b);
}

static void refuses_senseless_jobs_at_once(void **state)
{
	struct takt_job job = store_job(0);
	struct takt_err err;

	assert_int_equal(takt_store_insert(*state, &job, 0, &err), -EINVAL);
	assert_string_equal(err.msg, "job id 0 is not in 1..9223372036854775807");
	job = store_job(1);
	job.state = TAKT_JOB_STATE_COUNT;
	assert_int_equal(takt_store_update(*state, &job, 0, &err), -EINVAL);
	assert_string_equal(err.msg, "job 1 has no known state");
	job = store_job(1);
	job.submit_seq = 0;
	assert_int_equal(takt_store_insert(*state, &job, 0, &err), -EINVAL);
	job = store_job(1);
	job.spec_json = NULL;
	assert_int_equal(takt_store_insert(*state, &job, 0, &err), -EINVAL);
	assert_string_equal(err.msg, "job 1 has no description");
}

static void refuses_overlong_descriptions(void **state)
{
	struct takt_job job = store_job(1);
	struct takt_err err;

	job.spec_json = malloc(TAKT_STORE_MAX_SPEC + 2);
	memset(job.spec_json, 'x', TAKT_STORE_MAX_SPEC + 1);
	job.spec_json[TAKT_STORE_MAX_SPEC + 1] = '\0';
	assert_int_equal(takt_store_insert(*state, &job, 0, &err), -TAKT_E_LIMIT);
	assert_string_equal(err.msg, "description of job 1 is over 2097152 bytes");
	job.spec_json[TAKT_STORE_MAX_SPEC] = '\0';
	insert_ok(*state, &job);
	assert_stored(*state, &job);
	free(job.spec_json);
}

static void too_many_outstanding_is_a_limit(void **state)
{
	struct takt_job job = store_job(1);
	struct takt_store_completion done;
	struct takt_err err;
	int64_t rc = 1, n = 0;

	insert_ok(*state, &job);
	while ((rc = takt_store_update(*state, &job, 0, &err)) > 0)
		n++;
	assert_int_equal(rc, -TAKT_E_LIMIT);
	assert_int_equal(n, TAKT_STORE_MAX_OUTSTANDING);
	while (takt_store_completions(*state, &done, 1) == 0)
		;
	assert_true(takt_store_update(*state, &job, 0, &err) > 0);
	store_wait(*state, n + 2);
}

/* The descriptor says no more than what is left to take. */
static void descriptor_follows_completions(void **state)
{
	struct takt_job job = store_job(1);
	struct pollfd fd = {.fd = takt_store_fd(*state), .events = POLLIN};
	struct takt_store_completion done;

	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(takt_store_completions(*state, &done, 1), 0);
	assert_int_equal(takt_store_outstanding(*state), 0);
	assert_true(takt_store_insert(*state, &job, 0, NULL) > 0);
	assert_int_equal(poll(&fd, 1, 20000), 1);
	assert_int_equal(takt_store_outstanding(*state), 1);
	assert_int_equal(takt_store_completions(*state, &done, 0), 0);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(takt_store_completions(*state, &done, 1), 1);
	assert_int_equal(takt_store_outstanding(*state), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
}

/* A person's sqlite3 shell holds the write lock: commits wait for it, posts and reads do not. */
static void only_commits_wait_for_a_writing_shell(void **state)
{
	struct takt_job old = store_job(1), new = store_job(2), got;
	struct takt_store_completion done;
	sqlite3 *shell;
	int64_t ticket;

	insert_ok(*state, &old);
	assert_int_equal(sqlite3_open(place.path, &shell), SQLITE_OK);
	sqlite3_busy_timeout(shell, 20000); /* history is cut to size after the first commit */
	assert_int_equal(sqlite3_exec(shell, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	ticket = takt_store_insert(*state, &new, 0, NULL);
	assert_true(ticket > 0);
	assert_stored(*state, &old);
	assert_int_equal(takt_store_get(*state, 2, &got, NULL), -TAKT_E_NOT_FOUND);
	assert_int_equal(takt_store_completions(*state, &done, 1), 0);
	assert_int_equal(sqlite3_exec(shell, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(shell);
	assert_int_equal(store_wait(*state, ticket).rc, 0);
	assert_stored(*state, &new);
}

static void close_commits_what_was_posted(void **state)
{
	struct takt_job job;

	for (uint64_t id = 1; id <= 50; id++) {
		job = store_job(id);
		assert_true(takt_store_insert(*state, &job, 0, NULL) > 0);
	}
	reopen(state);
	for (uint64_t id = 1; id <= 50; id++) {
		job = store_job(id);
		assert_stored(*state, &job);
	}
}

/* Live jobs stay however old; of the ended ones the newest do. */
static void keeps_the_newest_ended_jobs(void **state)
{
	struct takt_store_config config = {.path = place.path, .keep_ended = 100};
	struct takt_store_gone some[10];
	size_t n, gone = 0;
	struct takt_job job, got;
	int64_t ticket = 0;

	takt_store_close(*state);
	assert_int_equal(takt_store_open(&config, (struct takt_store **)state, NULL), 0);
	for (uint64_t id = 1; id <= 1000; id++) {
		job = store_job(id);
		assert_true(takt_store_insert(*state, &job, 0, NULL) > 0);
		job.state = id == 1 ? TAKT_JOB_RUNNING : TAKT_JOB_DONE;
		ticket = takt_store_update(*state, &job, 0, NULL);
	}
	assert_int_equal(store_wait(*state, ticket).rc, 0);
	insert_ok(*state, /* answered only after the cut that followed the one before */
		  &(struct takt_job){.id = 2001, .submit_seq = 5001, .spec_json = (char *)""});
	while ((n = takt_store_gone(*state, some, TAKT_ARRAY_LEN(some))) > 0)
		for (size_t i = 0; i < n; i++) {
			assert_in_range(some[i].job_id, 2, 900);
			gone++;
		}
	assert_true(gone > 0);
	takt_store_close(*state);
	assert_int_equal(takt_store_open(&config, (struct takt_store **)state, NULL), 0);
	insert_ok(*state,
		  &(struct takt_job){.id = 2000, .submit_seq = 5000, .spec_json = (char *)""});
	takt_store_close(*state);
	*state = store_open_ok(place.path);
	assert_int_equal(takt_store_get(*state, 1, &got, NULL), 0);
	takt_job_fini(&got);
	for (uint64_t id = 2; id <= 1000; id++) {
		int want = id <= 900 ? -TAKT_E_NOT_FOUND : 0;

		assert_int_equal(takt_store_get(*state, id, &got, NULL), want);
		if (want == 0)
			takt_job_fini(&got);
	}
}

/* However few there are: what they take counts, and who lives stays. */
static void a_database_that_gets_too_large_forgets_the_oldest(void **state)
{
	struct takt_store_config config = {.path = place.path, .keep_bytes = 16 << 20};
	static char spec[64 * 1024];
	struct takt_job job, got;
	struct stat st;

	memset(spec, 'x', sizeof(spec) - 1);
	takt_store_close(*state);
	assert_int_equal(takt_store_open(&config, (struct takt_store **)state, NULL), 0);
	for (uint64_t id = 1; id <= 1500; id++) {
		job = store_job(id);
		job.spec_json = spec;
		assert_int_equal(store_wait(*state, takt_store_insert(*state, &job, 0, NULL)).rc,
				 0);
		job.state = id == 1 ? TAKT_JOB_RUNNING : TAKT_JOB_DONE;
		assert_int_equal(store_wait(*state, takt_store_update(*state, &job, 0, NULL)).rc,
				 0);
	}
	assert_int_equal(stat(place.path, &st), 0);
	assert_in_range(st.st_size, 8 << 20, 48 << 20); /* of 94 MiB that were handed in */
	assert_int_equal(takt_store_get(*state, 2, &got, NULL), -TAKT_E_NOT_FOUND);
	for (uint64_t id = 1; id <= 1500; id += 1499) {
		assert_int_equal(takt_store_get(*state, id, &got, NULL), 0);
		takt_job_fini(&got);
	}
}

/* All of takt is to live in 12 MiB; SQLite's part, both connections, is below one. */
static void sqlite_stays_below_a_mebibyte(void **state)
{
	static char spec[4001];
	struct seen seen = {0};
	struct takt_job job;
	int64_t ticket = 0;

	memset(spec, 'x', sizeof(spec) - 1);
	(void)sqlite3_memory_highwater(1);
	for (uint64_t id = 1; id <= 3000; id++) {
		job = store_job(id);
		job.spec_json = spec;
		job.state = TAKT_JOB_DONE;
		ticket = takt_store_insert(*state, &job, 0, NULL);
	}
	assert_int_equal(store_wait(*state, ticket).rc, 0);
	assert_int_equal(takt_store_each_history(*state, 64, 0, see, &seen, NULL), 0);
	print_message("# SQLite held at most %lld bytes\n", (long long)sqlite3_memory_highwater(0));
	assert_true(sqlite3_memory_highwater(0) < 1024 * 1024);
}

static int count_decision(void *ctx, const struct takt_store_decision_row *row)
{
	struct seen *seen = ctx;

	if (seen->n < TAKT_ARRAY_LEN(seen->ids))
		seen->ids[seen->n] = row->version;
	seen->n++;
	return 0;
}

static void keeps_the_newest_decisions(void **state)
{
	struct seen seen = {0}, one = {0};

	for (uint64_t v = 1; v <= TAKT_STORE_KEEP_DECISIONS + 100; v++)
		assert_int_equal(takt_store_decision(*state, v, "{}", "[]", NULL), 0);
	reopen(state);
	assert_int_equal(takt_store_each_decision(*state, UINT32_MAX, count_decision, &seen, NULL),
			 0);
	assert_int_equal(seen.n, TAKT_STORE_KEEP_DECISIONS);
	assert_int_equal(seen.ids[0], TAKT_STORE_KEEP_DECISIONS + 100);
	assert_int_equal(takt_store_each_decision(*state, 1, count_decision, &one, NULL), 0);
	assert_int_equal(one.n, 1);
}

static void files_are_the_owners_only(void **state)
{
	static const char *const suffix[] = {"", "-wal", "-shm", ".lock", ".made"};
	struct takt_job job = store_job(1);
	char path[300];
	struct stat st;

	insert_ok(*state, &job);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(suffix); i++) {
		snprintf(path, sizeof(path), "%s%s", place.path, suffix[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* How often the text stands in the database's files. */
static size_t count_in_files(const char *text)
{
	static const char *const suffixes[] = {"", "-wal"};
	char path[256], *bytes;
	size_t found = 0, len;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(suffixes); i++) {
		snprintf(path, sizeof(path), "%s%s", place.path, suffixes[i]);
		if (takt_file_read(takt_sys_real(), AT_FDCWD, path, 1 << 26, &bytes, &len, NULL) <
		    0)
			continue;
		found += memmem(bytes, len, text, strlen(text)) != NULL;
		takt_free(bytes);
	}
	return found;
}

static int see_env(void *ctx, const struct takt_job *job)
{
	*(bool *)ctx = job->env_json && strstr(job->env_json, "swordfish");
	return 0;
}

static void an_environment_goes_with_the_job(void **state)
{
	struct takt_store *store = *state;
	struct takt_job job = store_job(1);
	bool seen = false;

	job.state = TAKT_JOB_RUNNING;
	job.env_json = (char *)"{\"env\":[\"TOKEN=swordfish\"]}";
	insert_ok(store, &job);
	assert_int_equal(takt_store_each_live(store, see_env, &seen, NULL), 0);
	assert_true(seen);
	assert_true(count_in_files("swordfish") > 0);
	job.env_json = NULL;
	update_ok(store, &job);
	assert_int_equal(takt_store_each_live(store, see_env, &seen, NULL), 0);
	assert_true(seen);
	job.state = TAKT_JOB_DONE;
	update_ok(store, &job);
	assert_int_equal(takt_store_each_history(store, 10, 0, see_env, &seen, NULL), 0);
	assert_false(seen);
	reopen(state); /* the log goes into the file */
	assert_int_equal(count_in_files("swordfish"), 0);
}

static int count_env(void *ctx, const struct takt_job *job)
{
	*(unsigned *)ctx += job->env_json != NULL;
	return 0;
}

/* One copy, which is there until the last job that has it is over. */
static void a_shared_environment_goes_with_the_last_job(void **state)
{
	static const uint64_t in_order[] = {2, 1, 3};
	struct takt_store *store = *state;
	char *text = NULL;
	unsigned copies = 0;

	for (uint64_t id = 1; id <= 3; id++) {
		struct takt_job job = store_job(id);

		job.env_of = 1;
		job.env_json = id == 1 ? (char *)"{\"env\":[\"TOKEN=swordfish\"]}" : NULL;
		insert_ok(store, &job);
	}
	reopen(state);
	store = *state;
	assert_int_equal(takt_store_each_live(store, count_env, &copies, NULL), 0);
	assert_int_equal(copies, 1);
	for (size_t i = 0; i < 3; i++) {
		struct takt_job job = store_job(in_order[i]);

		assert_int_equal(takt_store_environment(store, 1, &text, NULL), 0);
		assert_string_equal(text, "{\"env\":[\"TOKEN=swordfish\"]}");
		takt_free(text);
		job.state = TAKT_JOB_DONE;
		update_ok(store, &job);
	}
	assert_int_equal(takt_store_environment(store, 1, &text, NULL), 0);
	assert_null(text);
	reopen(state);
	assert_int_equal(count_in_files("swordfish"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(keeps_texts_by_key_until_told_to_forget),
		CASE(keeps_every_field),
		CASE(absent_report_values_stay_absent),
		CASE(update_keeps_identity),
		CASE(null_message_reads_as_empty),
		CASE(missing_job_is_not_found),
		CASE(ids_go_on_after_reopen),
		CASE(walks_live_and_history),
		CASE(history_is_read_in_parts),
		CASE(a_part_looks_at_so_many_rows),
		CASE(a_walk_may_read),
		CASE(a_bad_row_fails_alone),
		CASE(a_second_submit_seq_is_refused_whole),
		CASE(refuses_senseless_jobs_at_once),
		CASE(refuses_overlong_descriptions),
		CASE(too_many_outstanding_is_a_limit),
		CASE(descriptor_follows_completions),
		CASE(only_commits_wait_for_a_writing_shell),
		CASE(close_commits_what_was_posted),
		CASE(keeps_the_newest_ended_jobs),
		CASE(a_database_that_gets_too_large_forgets_the_oldest),
		CASE(sqlite_stays_below_a_mebibyte),
		CASE(keeps_the_newest_decisions),
		CASE(files_are_the_owners_only),
		CASE(an_environment_goes_with_the_job),
		CASE(a_shared_environment_goes_with_the_last_job),
	};

	return cmocka_run_group_tests_name("store rows", tests, NULL, NULL);
}
