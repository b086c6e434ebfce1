/* SPDX-License-Identifier: Apache-2.0 */
/* What takt_store_open refuses, that it says why and what to do, and that it touches nothing. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store_impl.h"
#include "store_fixture.h"

struct bytes {
	unsigned char *at;
	size_t len;
};

static struct store_place place;

static int setup(void **state)
{
	store_place_init(&place);
	return 0;
}

static int teardown(void **state)
{
	store_place_fini(&place);
	return 0;
}

static int try_open(const char *path, struct takt_err *err)
{
	struct takt_store_config config = {.path = path};
	struct takt_store *store = NULL;
	int rc = takt_store_open(&config, &store, err);

	if (rc == 0)
		takt_store_close(store);
	else
		assert_null(store);
	return rc;
}

static const char *beside(const char *suffix)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s%s", place.path, suffix);
	return path;
}

static struct bytes slurp(const char *path)
{
	struct bytes bytes = {0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	bytes.len = (size_t)st.st_size;
	bytes.at = malloc(bytes.len + 1);
	assert_non_null(bytes.at);
	assert_int_equal(read(fd, bytes.at, bytes.len), st.st_size);
	close(fd);
	return bytes;
}

static void spill(const char *path, const struct bytes *bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes->at, bytes->len), bytes->len);
	close(fd);
}

static void assert_file_is(const char *path, const struct bytes *want)
{
	struct bytes got = slurp(path);

	assert_int_equal(got.len, want->len);
	assert_memory_equal(got.at, want->at, want->len);
	free(got.at);
}

static void sql(const char *text)
{
	sqlite3 *db;

	assert_int_equal(takt_store_sqlite_init(NULL), 0);
	assert_int_equal(sqlite3_open(place.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* A database with jobs in it, closed; with `hot`, as a killed daemon leaves it: with a log. */
static void make_database(bool hot)
{
	struct takt_store *store = store_open_ok(place.path);
	struct bytes db, wal;
	struct takt_job job;
	int64_t ticket = 0;
	uint64_t id, seq;

	assert_int_equal(takt_store_next_ids(store, &id, &seq, NULL), 0);
	for (uint64_t i = id; i < id + 200; i++) {
		job = store_job(i);
		ticket = takt_store_insert(store, &job, 0, NULL);
	}
	assert_int_equal(store_wait(store, ticket).rc, 0);
	db = slurp(place.path);
	wal = slurp(beside("-wal"));
	takt_store_close(store);
	if (hot) {
		spill(place.path, &db);
		spill(beside("-wal"), &wal);
	}
	free(db.at);
	free(wal.at);
}

static void assert_refused_untouched(int want, const char *says)
{
	struct bytes db = slurp(place.path);
	bool hot = access(beside("-wal"), F_OK) == 0;
	struct bytes wal = hot ? slurp(beside("-wal")) : (struct bytes){0};
	struct takt_err err;

	assert_int_equal(try_open(place.path, &err), want);
	assert_non_null(strstr(err.msg, place.path));
	if (!strstr(err.msg, says))
		fail_msg("'%s' does not say '%s'", err.msg, says);
	assert_file_is(place.path, &db);
	if (hot)
		assert_file_is(beside("-wal"), &wal);
	free(db.at);
	free(wal.at);
}

static void refuses_a_damaged_page(void **state)
{
	struct bytes db;

	make_database(false);
	db = slurp(place.path);
	assert_true(db.len > 8 * 4096);
	memset(db.at + 2 * 4096, 0xff, 4096);
	spill(place.path, &db);
	assert_refused_untouched(-TAKT_E_CORRUPT, "takt admin restore");
	free(db.at);
}

/* As a daemon leaves it that was killed in its second life: a database with pages of its own, and
 * a log over it. */
static void refuses_a_damaged_page_under_a_log(void **state)
{
	struct bytes db;

	make_database(false);
	make_database(true);
	db = slurp(beside("-wal"));
	assert_true(db.len > 0);
	free(db.at);
	db = slurp(place.path);
	for (size_t at = 4096; at < db.len; at += 4096)
		memset(db.at + at, 0xee, 64);
	spill(place.path, &db);
	assert_refused_untouched(-TAKT_E_CORRUPT, "is damaged");
	free(db.at);
}

static void refuses_a_truncated_file(void **state)
{
	struct bytes db;

	make_database(false);
	db = slurp(place.path);
	db.len = 3 * 4096 + 100;
	spill(place.path, &db);
	assert_refused_untouched(-TAKT_E_CORRUPT, "is damaged");
	free(db.at);
}

static void refuses_what_is_no_database(void **state)
{
	struct bytes text = {(unsigned char *)"this is a letter to my aunt, not a database at all",
			     50};

	spill(place.path, &text);
	assert_refused_untouched(-TAKT_E_CORRUPT, "is damaged");
}

static void refuses_a_foreign_database(void **state)
{
	sql("CREATE TABLE recipe(name TEXT); INSERT INTO recipe VALUES('soup')");
	assert_refused_untouched(-TAKT_E_CORRUPT, "database of some other program");
}

static void refuses_a_newer_schema(void **state)
{
	make_database(false);
	sql("PRAGMA user_version=99");
	assert_refused_untouched(-TAKT_E_VERSION, "has schema 99");
}

/* Steps 4 to 10 are taken out again. */
#define OWN_ENVIRONMENTS                                                                \
	"DROP TRIGGER job_over;"                                                        \
	"CREATE TRIGGER job_over AFTER UPDATE OF state ON job WHEN new." TAKT_SQL_ENDED \
	" BEGIN DELETE FROM environment WHERE job_id = new.id; END;"
#define WITHOUT_10 "ALTER TABLE job DROP COLUMN time_limit_ms;"
#define WITHOUT_9 \
	WITHOUT_10 OWN_ENVIRONMENTS "DROP INDEX job_env; ALTER TABLE job DROP COLUMN env_of;"
#define WITHOUT_8                                                                   \
	WITHOUT_9                                                                   \
	"ALTER TABLE job DROP COLUMN cause; ALTER TABLE job DROP COLUMN cause_gpu;" \
	"ALTER TABLE job DROP COLUMN cause_xid; ALTER TABLE job DROP COLUMN cause_at_ns;"
#define WITHOUT_7 WITHOUT_8 "ALTER TABLE job DROP COLUMN gpu_uuids;"
#define WITHOUT_6                                                                         \
	WITHOUT_7                                                                         \
	"ALTER TABLE job DROP COLUMN max_slowdown_permille; ALTER TABLE job DROP COLUMN " \
	"clock_policy; ALTER TABLE job DROP COLUMN sm_spread_mhz;"
#define WITHOUT_5                                                                          \
	WITHOUT_6                                                                          \
	"ALTER TABLE job DROP COLUMN governor; ALTER TABLE job DROP COLUMN work_signal;"   \
	"ALTER TABLE job DROP COLUMN governed_mj; ALTER TABLE job DROP COLUMN highest_mj;" \
	"ALTER TABLE job DROP COLUMN highest_error_permille;"                              \
	"ALTER TABLE job DROP COLUMN slowdown_permille;"                                   \
	"ALTER TABLE job DROP COLUMN slowdown_error_permille;"
#define WITHOUT_4                                                                                \
	WITHOUT_5                                                                                \
	"ALTER TABLE job DROP COLUMN share_milli; ALTER TABLE job DROP COLUMN mig; ALTER TABLE " \
	"job DROP COLUMN mem_held_mib;"                                                          \
	"ALTER TABLE job DROP COLUMN preemptions; ALTER TABLE job DROP COLUMN frozen;"           \
	"ALTER TABLE job DROP COLUMN mps_limited;"                                               \
	"ALTER TABLE job DROP COLUMN lost_ns; ALTER TABLE job DROP COLUMN mean_util_permille;"   \
	"ALTER TABLE job DROP COLUMN evict; ALTER TABLE job DROP COLUMN evict_for;"              \
	"ALTER TABLE job DROP COLUMN evict_at_ns; ALTER TABLE job DROP COLUMN checkpoint_ns;"    \
	"ALTER TABLE job DROP COLUMN idle_ns; ALTER TABLE job DROP COLUMN staged; "              \
	"ALTER TABLE job DROP COLUMN gap_driver_ns; ALTER TABLE job DROP COLUMN gap_start_ns; "  \
	"ALTER TABLE job DROP COLUMN gap_scheduler_ns; "                                         \
	"DROP TABLE kept; DROP TRIGGER job_over; DROP TABLE environment;"

/* The database as the first takt wrote it: what came later is taken out again. */
static void make_first_schema(void)
{
	make_database(false);
	sql("UPDATE spec SET json = '{\"argv\":[\"a\"],\"cwd\":\"/\",\"priority\":-7}' WHERE "
	    "job_id = 3;"
	    "ALTER TABLE job DROP COLUMN held; ALTER TABLE job DROP COLUMN priority;"
	    "ALTER TABLE job DROP COLUMN timed_out; ALTER TABLE job DROP COLUMN restarts;"
	    "ALTER TABLE job DROP COLUMN failures; ALTER TABLE job DROP COLUMN "
	    "retry_at_ns;" WITHOUT_4 "PRAGMA user_version=1");
}

static void takes_over_the_first_schema(void **state)
{
	struct takt_store *store;
	struct takt_job job;

	make_first_schema();
	store = store_open_ok(place.path);
	assert_int_equal(takt_store_get(store, 3, &job, NULL), 0);
	assert_int_equal(job.priority, -7);
	assert_int_equal(job.held, TAKT_HOLD_NONE);
	takt_job_fini(&job);
	assert_int_equal(takt_store_get(store, 200, &job, NULL), 0);
	assert_int_equal(job.priority, 0);
	takt_job_fini(&job);
	takt_store_close(store);
}

/* Of jobs that had none on record it is empty. */
static int check_env(void *ctx, const struct takt_job *job)
{
	assert_string_equal(job->env_json, job->id == 3 ? "{\"env\":[\"A=1\"]}" : "{\"env\":[]}");
	return 0;
}

/* Jobs of a takt that gave out whole GPUs only held whole GPUs. */
static void takes_over_the_third_schema(void **state)
{
	struct takt_store *store;
	struct takt_job job;

	make_database(false);
	sql("UPDATE job SET gpu_mask = 6 WHERE id = 3;"
	    "UPDATE spec SET json = '{\"argv\":[\"a\"],\"env\":[\"A=1\"]}'"
	    " WHERE job_id = 3;" WITHOUT_4 "PRAGMA user_version=3");
	store = store_open_ok(place.path);
	assert_int_equal(takt_store_get(store, 3, &job, NULL), 0);
	assert_int_equal(job.gpu_mask, 6);
	assert_int_equal(job.share_milli, 1000);
	assert_string_equal(job.spec_json, "{\"argv\":[\"a\"]}");
	assert_string_equal(job.mig, "");
	assert_false(job.frozen);
	assert_int_equal(job.preemptions, 0);
	assert_int_equal(job.stood_ns, 0);
	takt_job_fini(&job);
	assert_int_equal(takt_store_each_live(store, check_env, NULL, NULL), 0);
	takt_store_close(store);
}

/* Which GPUs an attempt had was not on record: none are made up. */
static void takes_over_the_sixth_schema(void **state)
{
	struct takt_store *store;
	struct takt_job job;

	make_database(false);
	sql("UPDATE job SET gpu_mask = 6 WHERE id = 3;" WITHOUT_7 "PRAGMA user_version=6");
	store = store_open_ok(place.path);
	assert_int_equal(takt_store_get(store, 3, &job, NULL), 0);
	assert_int_equal(job.gpu_mask, 6);
	assert_string_equal(job.gpu_uuids, "");
	takt_job_fini(&job);
	takt_store_close(store);
	sql("PRAGMA user_version=11");
	assert_refused_untouched(-TAKT_E_VERSION, "has schema 11");
}

static void must_have_ended_of(struct takt_store *store, uint64_t id, enum takt_cause cause)
{
	struct takt_job job;

	assert_int_equal(takt_store_get(store, id, &job, NULL), 0);
	assert_string_equal(takt_cause_name(job.cause.cause), takt_cause_name(cause));
	takt_job_fini(&job);
}

/* What ended a job is known as far as its state tells. */
static void takes_over_the_seventh_schema(void **state)
{
	struct takt_store *store;

	make_database(false);
	sql("UPDATE job SET state = 'interrupted' WHERE id = 3;"
	    "UPDATE job SET timed_out = 1 WHERE id = 200;" WITHOUT_8 "PRAGMA user_version=7");
	store = store_open_ok(place.path);
	must_have_ended_of(store, 3, TAKT_CAUSE_NODE_REBOOT);
	must_have_ended_of(store, 200, TAKT_CAUSE_TIME_LIMIT);
	takt_store_close(store);
	sql("UPDATE job SET cause = 'sunspots' WHERE id = 3");
	store = store_open_ok(place.path);
	assert_int_equal(takt_store_get(store, 3, &(struct takt_job){0}, NULL), -TAKT_E_CORRUPT);
	takt_store_close(store);
}

static int see_own_env(void *ctx, const struct takt_job *job)
{
	assert_int_equal(job->env_of, 0);
	*(bool *)ctx = job->env_json && strcmp(job->env_json, "{\"env\":[\"A=1\"]}") == 0;
	return 0;
}

/* Each job keeps the environment of its own that it had, to its end. */
static void takes_over_the_eighth_schema(void **state)
{
	struct takt_store *store;
	bool seen = false;

	make_database(false);
	sql("DELETE FROM job WHERE id <> 3; UPDATE job SET state = 'waiting' WHERE id = 3;"
	    "INSERT INTO environment VALUES(3, '{\"env\":[\"A=1\"]}');" WITHOUT_9
	    "PRAGMA user_version=8");
	store = store_open_ok(place.path);
	assert_int_equal(takt_store_each_live(store, see_own_env, &seen, NULL), 0);
	assert_true(seen);
	takt_store_close(store);
	sql("UPDATE job SET state = 'done' WHERE id = 3;"
	    "INSERT INTO environment VALUES(3, 'it is free')");
}

static void takes_an_empty_file_and_opens_again(void **state)
{
	struct bytes none = {(unsigned char *)"", 0};
	struct stat st;

	spill(place.path, &none);
	assert_int_equal(chmod(place.path, 0644), 0);
	assert_int_equal(try_open(place.path, NULL), 0);
	assert_int_equal(stat(place.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(try_open(place.path, NULL), 0);
}

static void recovers_the_log_of_a_killed_daemon(void **state)
{
	struct takt_store *store;
	struct takt_job got;

	make_database(true);
	store = store_open_ok(place.path);
	assert_int_equal(takt_store_get(store, 200, &got, NULL), 0);
	takt_job_fini(&got);
	takt_store_close(store);
}

static void one_owner_at_a_time(void **state)
{
	struct takt_store *store = store_open_ok(place.path);
	struct takt_err err;
	char says[64];

	snprintf(says, sizeof(says), "in use by another takt, process %d", (int)getpid());
	assert_int_equal(try_open(place.path, &err), -TAKT_E_BUSY);
	assert_non_null(strstr(err.msg, says));
	takt_store_close(store);
	assert_int_equal(try_open(place.path, NULL), 0);
}

static void a_missing_directory_is_named(void **state)
{
	struct takt_err err;

	assert_int_equal(try_open("/nonexistent/place/takt.db", &err), -ENOENT);
	assert_string_equal(err.msg, "open directory '/nonexistent/place' of the database");
}

static void a_directory_is_no_database(void **state)
{
	struct takt_err err;
	char path[300];

	snprintf(path, sizeof(path), "%s/", place.dir);
	assert_int_equal(try_open(path, &err), -EINVAL);
	assert_int_equal(mkdir(place.path, 0700), 0);
	assert_int_equal(try_open(place.path, &err), -EISDIR);
	assert_non_null(strstr(err.msg, place.path));
	assert_int_equal(rmdir(place.path), 0);
}

static void a_symbolic_link_is_not_followed(void **state)
{
	struct takt_err err;

	assert_int_equal(symlink("/etc/passwd", place.path), 0);
	assert_int_equal(try_open(place.path, &err), -ELOOP);
}

static void knows_network_file_systems(void **state)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} rows[] = {
		{0x6969, "NFS"},	{0xff534d42, "CIFS"}, {0x517b, "SMB"},
		{0xfe534d42, "SMB2"},	{0x65735546, "FUSE"}, {0x01021997, "9P"},
		{0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"},
		{0x00c36400, "Ceph"},	{0xef53, NULL},	      {0x58465342, NULL},
		{0x9123683e, NULL},	{0x01021994, NULL},   {0x794c7630, NULL},
	}; /* the last five: ext4, XFS, btrfs, tmpfs, overlayfs */

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		const char *name = takt_store_network_fs(rows[i].magic);

		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_null(name);
	}
}

/* Nobody is told that his jobs are gone by a queue that is empty. */
static void one_that_is_gone_is_not_begun_anew(void **state)
{
	char made[300];
	struct takt_err err;

	takt_store_close(store_open_ok(place.path));
	assert_int_equal(unlink(place.path), 0);
	assert_int_equal(try_open(place.path, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "takt admin restore"));
	assert_int_equal(access(place.path, F_OK), -1); /* as it was left */
	assert_int_equal(close(open(place.path, O_WRONLY | O_CREAT, 0600)), 0);
	assert_int_equal(try_open(place.path, &err), -ENOENT); /* an empty file is none */
	snprintf(made, sizeof(made), "%s.made", place.path);
	assert_non_null(strstr(err.msg, made)); /* what to remove to begin anew */
	assert_int_equal(unlink(made), 0);
	takt_store_close(store_open_ok(place.path));
	assert_int_equal(access(made, F_OK), 0);
}

static void files_that_are_not_the_open_ones_are_named(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
	struct takt_store *store = store_open_ok(place.path);
	char path[300], aside[320];
	struct takt_err err;

	assert_int_equal(takt_store_look(store, &err), 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(suffixes); i++) {
		snprintf(path, sizeof(path), "%s%s", place.path, suffixes[i]);
		snprintf(aside, sizeof(aside), "%s.away", path);
		assert_int_equal(rename(path, aside), 0);
		assert_int_equal(takt_store_look(store, &err), -TAKT_E_MOVED);
		assert_non_null(strstr(err.msg, path));
		assert_int_equal(link(aside, path), 0); /* another name of it does not matter */
		assert_int_equal(takt_store_look(store, &err), 0);
		assert_int_equal(unlink(aside), 0);
	}
	takt_store_close(store);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(refuses_a_damaged_page),
		CASE(refuses_a_damaged_page_under_a_log),
		CASE(refuses_a_truncated_file),
		CASE(refuses_what_is_no_database),
		CASE(refuses_a_foreign_database),
		CASE(refuses_a_newer_schema),
		CASE(takes_over_the_first_schema),
		CASE(takes_over_the_third_schema),
		CASE(takes_over_the_sixth_schema),
		CASE(takes_over_the_seventh_schema),
		CASE(takes_over_the_eighth_schema),
		CASE(takes_an_empty_file_and_opens_again),
		CASE(recovers_the_log_of_a_killed_daemon),
		CASE(one_owner_at_a_time),
		CASE(a_missing_directory_is_named),
		CASE(a_directory_is_no_database),
		CASE(a_symbolic_link_is_not_followed),
		CASE(knows_network_file_systems),
		CASE(one_that_is_gone_is_not_begun_anew),
		CASE(files_that_are_not_the_open_ones_are_named),
	};

	return cmocka_run_group_tests_name("store open", tests, NULL, NULL);
}
