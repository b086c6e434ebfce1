/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_admin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/hmac.h>

#include "base/str.h"
#include "store/store_impl.h"

enum {
	BUSY_MS = 10000,
	PAGES_AT_ONCE = 1024,
	STEPS_BETWEEN_LOOKS = 100000, /* of SQLite's machine */
	PATH_BYTES = 600,
	ENVIRONMENTS_APART = 4,	 /* the schema that has a table of them */
	ENVIRONMENTS_SHARED = 9, /* in which an array has one */
};

static int open_file(const char *path, int flags, sqlite3 **ret, struct takt_err *err)
{
	int rc = takt_store_sqlite_init(err);

	if (rc < 0)
		return rc;
	rc = sqlite3_open_v2(path, ret, flags, NULL);
	if (rc != SQLITE_OK)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "open '%s': %s", path,
				    *ret ? sqlite3_errmsg(*ret) : "no memory");
	sqlite3_busy_timeout(*ret, BUSY_MS);
	return 0;
}

/* The file is ours and for our eyes before anything is in it. */
static int make_file(const char *path, struct takt_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return takt_err_set(err, -errno, "make '%s'", path);
	close(fd);
	return 0;
}

static int is_stopped(void *stop)
{
	return stop && *(const atomic_bool *)stop;
}

/* One reading of `from`, so that a writer beside it does not make it begin again. */
static int copy_pages(sqlite3 *from, sqlite3 *to, const char *to_path, const atomic_bool *stop,
		      struct takt_err *err)
{
	int step =
		sqlite3_exec(from, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
	sqlite3_backup *backup =
		step == SQLITE_OK ? sqlite3_backup_init(to, "main", from, "main") : NULL;

	step = SQLITE_ERROR;
	if (backup) {
		do
			step = sqlite3_backup_step(backup, PAGES_AT_ONCE);
		while (step == SQLITE_OK && !is_stopped((void *)stop));
		sqlite3_backup_finish(backup);
	}
	(void)takt_sqlite_exec(from, "COMMIT");
	if (step == SQLITE_OK)
		return takt_err_set(err, -ECANCELED, "'%s' was broken off", to_path);
	if (step != SQLITE_DONE)
		return takt_sqlite_err(err, to, backup ? step : sqlite3_errcode(to), "write",
				       to_path);
	return 0;
}

static int run_sql(sqlite3 *db, const char *sql, const char *path, struct takt_err *err)
{
	if (takt_sqlite_exec(db, sql) < 0)
		return takt_sqlite_err(err, db, sqlite3_errcode(db), "write", path);
	return 0;
}

/* A database: where SQLite finds it, and what it is called. */
struct place {
	const char *at, *said;
};

/* All of `from` and then `sql` in `to`, which is there and empty. */
static int copy_into(sqlite3 *source, struct place to, const char *sql, const atomic_bool *stop,
		     struct takt_err *err)
{
	sqlite3 *target = NULL;
	int rc = open_file(to.at, SQLITE_OPEN_READWRITE, &target, err);

	if (rc == 0)
		rc = copy_pages(source, target, to.said, stop, err);
	if (rc == 0)
		rc = run_sql(target, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;",
			     to.said, err);
	if (rc == 0 && stop)
		sqlite3_progress_handler(target, STEPS_BETWEEN_LOOKS, is_stopped, (void *)stop);
	if (rc == 0)
		rc = run_sql(target, sql, to.said, err);
	sqlite3_close(target);
	return rc;
}

static int open_source(struct place from, sqlite3 **ret, struct takt_err *err)
{
	int64_t version;
	int rc = open_file(from.at, SQLITE_OPEN_READONLY, ret, err);

	return rc < 0 ? rc : takt_store_schema_look(*ret, from.said, &version, err);
}

/* A copy of `from` at `to`, which is in a folder of ours, changed by `sql`. VACUUM leaves nothing
 * behind of what was deleted. */
static int copy_file(struct place from, const char *to, const char *sql, const atomic_bool *stop,
		     struct takt_err *err)
{
	sqlite3 *source = NULL;
	int rc = open_source(from, &source, err);

	if (rc == 0)
		rc = make_file(to, err);
	if (rc == 0) {
		rc = copy_into(source, (struct place){to, to}, sql, stop, err);
		if (rc < 0)
			(void)unlink(to);
	}
	sqlite3_close(source);
	return rc;
}

#define WITHOUT_ENVIRONMENTS                                                               \
	"DELETE FROM environment;"                                                         \
	"UPDATE spec SET json = json_remove(json, '$.env') WHERE json_type(json, '$.env')" \
	" IS NOT NULL;"                                                                    \
	"VACUUM;"

int takt_store_file_backup(const char *path, struct takt_store_copy *to, struct takt_err *err)
{
	struct takt_store_scratch scratch = {.fd = -1};
	sqlite3 *source = NULL;
	int rc = open_source((struct place){path, path}, &source, err);

	if (rc == 0)
		rc = takt_store_scratch_make(&scratch, err);
	if (rc == 0)
		rc = copy_into(source, (struct place){scratch.db, to->path}, WITHOUT_ENVIRONMENTS,
			       NULL, err);
	if (rc == 0)
		rc = takt_store_copy_fill(to, &scratch, err);
	sqlite3_close(source);
	takt_store_scratch_drop(&scratch);
	return rc;
}

int takt_store_file_backup_until(const char *path, const char *to, const atomic_bool *stop,
				 struct takt_err *err)
{
	return copy_file((struct place){path, path}, to, WITHOUT_ENVIRONMENTS, stop, err);
}

/*
 * Back again.
 */

#define ATTEMPTED "state IN ('starting', 'running', 'stopping')"
#define ALIVE	  "EXISTS(SELECT 1 FROM alive WHERE job_id = id AND alive.attempt = job.attempt)"

static const char after_restore[] =
	"UPDATE job SET state = 'lost', message = 'it ran when the backup was made', ended_ns ="
	" coalesce(started_ns, submitted_ns) WHERE " ATTEMPTED " AND NOT " ALIVE ";"
	"UPDATE job SET held = 2 WHERE " ATTEMPTED ";"
	"UPDATE job SET held = 2, message = 'restored without its environment: submit it again, or "
	"let it go with takt release' WHERE state = 'waiting';" WITHOUT_ENVIRONMENTS;

static int list_alive(sqlite3 *db, const char *path, const struct takt_store_alive *alive,
		      size_t count, struct takt_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = run_sql(db, "CREATE TEMP TABLE alive(job_id INTEGER, attempt INTEGER)", path, err);

	if (rc == 0 && sqlite3_prepare_v2(db, "INSERT INTO alive VALUES(?1, ?2)", -1, &stmt, NULL))
		rc = takt_sqlite_err(err, db, sqlite3_errcode(db), "write", path);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		sqlite3_bind_int64(stmt, 1, (int64_t)alive[i].job_id);
		sqlite3_bind_int64(stmt, 2, alive[i].attempt);
		if (takt_sqlite_run(stmt) < 0)
			rc = takt_sqlite_err(err, db, sqlite3_errcode(db), "write", path);
	}
	sqlite3_finalize(stmt);
	return rc;
}

/* A job that runs and would be given another attempt, or forgotten, is not to be overlooked. */
static int refuse_unknown(sqlite3 *db, const char *path, struct takt_err *err)
{
	int64_t job = 0;
	int rc = takt_sqlite_int(db,
				 "SELECT job_id FROM alive WHERE NOT EXISTS(SELECT 1 FROM job WHERE"
				 " id = job_id AND job.attempt = alive.attempt AND " ATTEMPTED
				 ") ORDER BY job_id",
				 &job);

	if (rc < 0)
		return takt_sqlite_err(err, db, sqlite3_errcode(db), "read", path);
	return job == 0 ? 0
			: takt_err_set(err, -TAKT_E_CONFLICT,
				       "job %lld runs (its shim lives), but did not when the "
				       "backup was made: let it end or end its takt-shim, then "
				       "restore again; nothing was changed",
				       (long long)job);
}

/* Makes of the copy of a backup what the next daemon is to find. */
static int settle(const char *path, const struct takt_store_alive *alive, size_t count,
		  struct takt_err *err)
{
	sqlite3 *db = NULL;
	int rc = open_file(path, SQLITE_OPEN_READWRITE, &db, err);

	if (rc == 0)
		rc = list_alive(db, path, alive, count, err);
	if (rc == 0)
		rc = refuse_unknown(db, path, err);
	if (rc == 0)
		rc = run_sql(db, after_restore, path, err);
	sqlite3_close(db);
	return rc;
}

/* The files of a database. */
static const char *const parts[] = {"", "-wal", "-shm"};

enum {
	PARTS = sizeof(parts) / sizeof(parts[0])
};

static void name_part(const char *path, size_t part, char *ret_at, char *ret_aside)
{
	snprintf(ret_at, PATH_BYTES, "%s%s", path, parts[part]);
	snprintf(ret_aside, PATH_BYTES, "%s.before-restore%s", path, parts[part]);
}

static int move_aside(const char *path, bool ret_moved[PARTS], struct takt_err *err)
{
	char at[PATH_BYTES], aside[PATH_BYTES];

	for (size_t i = 0; i < PARTS; i++) {
		name_part(path, i, at, aside);
		ret_moved[i] = rename(at, aside) == 0;
		if (!ret_moved[i] && errno != ENOENT)
			return takt_err_set(err, -errno, "move '%s' aside", at);
	}
	return 0;
}

/* What was aside is where it was; what lies there now is a copy of the backup. */
static void move_back(const char *path, const bool moved[PARTS])
{
	char at[PATH_BYTES], aside[PATH_BYTES];

	for (size_t i = 0; i < PARTS; i++) {
		name_part(path, i, at, aside);
		if (moved[i])
			(void)rename(aside, at);
	}
}

static int put_in_place(const char *path, const char *made, struct takt_err *err)
{
	bool moved[PARTS] = {false}, placed = false;
	int rc = move_aside(path, moved, err);

	if (rc == 0) {
		placed = rename(made, path) == 0;
		rc = placed ? takt_store_sync_dir(path, takt_sys_real(), err)
			    : takt_err_set(err, -errno, "put '%s' in its place", path);
	}
	if (rc < 0 && placed && !moved[0])
		(void)unlink(path);
	if (rc < 0)
		move_back(path, moved);
	return rc;
}

int takt_store_file_restore(const char *path, const char *from,
			    const struct takt_store_alive *alive, size_t alive_count,
			    struct takt_err *err)
{
	const struct takt_store_config config = {.path = path};
	const struct takt_sys *sys = takt_sys_real();
	struct takt_store_source source;
	char made[PATH_BYTES];
	int lock_fd = -1, rc;

	if (snprintf(made, sizeof(made), "%s.restoring", path) >= PATH_BYTES - 32)
		return takt_err_set(err, -ENAMETOOLONG, "path '%.80s...'", path);
	rc = takt_store_source_open(from, &source, err);
	if (rc < 0)
		return rc;
	rc = takt_store_claim(&config, sys, false, &lock_fd, err);
	if (rc == 0) {
		(void)unlink(made); /* of a restore that was broken off */
		rc = copy_file((struct place){source.at, from}, made, "", NULL, err);
		if (rc == 0)
			rc = settle(made, alive, alive_count, err);
		if (rc == 0)
			rc = put_in_place(path, made, err);
		if (rc < 0)
			(void)unlink(made);
		(void)sys->close(sys, lock_fd);
	}
	takt_store_source_close(&source);
	return rc;
}

/*
 * Looked at.
 */

static int each_row(const char *path, const char *sql,
		    int (*row)(sqlite3_stmt *stmt, void *ctx, struct takt_err *err), void *ctx,
		    struct takt_err *err)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_ERROR, rc = open_file(path, SQLITE_OPEN_READONLY, &db, err);

	if (rc == 0) {
		step = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
		while (rc == 0 && (step == SQLITE_OK || step == SQLITE_ROW)) {
			step = sqlite3_step(stmt);
			if (step == SQLITE_ROW)
				rc = row(stmt, ctx, err);
		}
		if (rc == 0 && step != SQLITE_DONE)
			rc = takt_sqlite_err(err, db, step, "read database", path);
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return rc;
}

static int is_ok(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	const char *said = (const char *)sqlite3_column_text(stmt, 0);

	return said && strcmp(said, "ok") == 0 ? 0
					       : takt_store_corrupt(err, ctx, said ? said : "?");
}

static int hand_job(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	const struct takt_store_file_look *look = ctx;

	look->job(look->ctx, (uint64_t)sqlite3_column_int64(stmt, 0),
		  (uint32_t)sqlite3_column_int64(stmt, 1), sqlite3_column_int(stmt, 2) != 0);
	return 0;
}

static int hand_environment(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	const struct takt_store_file_look *look = ctx;

	look->environment(look->ctx, (uint64_t)sqlite3_column_int64(stmt, 0));
	return 0;
}

static int hand_over(const char *path, int64_t schema, const struct takt_store_file_look *look,
		     struct takt_err *err)
{
	int rc = !look->job
			 ? 0
			 : each_row(path,
				    "SELECT id, attempt, state IN ('running', 'stopping') FROM job",
				    hand_job, (void *)look, err);

	if (rc < 0 || schema < ENVIRONMENTS_APART || !look->environment)
		return rc;
	return each_row(path,
			schema < ENVIRONMENTS_SHARED
				? "SELECT job_id FROM environment WHERE job_id NOT IN"
				  " (SELECT id FROM job WHERE " TAKT_SQL_LIVE ")"
				: "SELECT job_id FROM environment WHERE job_id NOT IN"
				  " (SELECT coalesce(env_of, id) FROM job WHERE " TAKT_SQL_LIVE ")",
			hand_environment, (void *)look, err);
}

static int take_number(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	*(int64_t *)ctx = sqlite3_column_int64(stmt, 0);
	return 0;
}

int takt_store_file_check(const char *path, int64_t *ret_schema, uint64_t *ret_jobs,
			  const struct takt_store_file_look *look, struct takt_err *err)
{
	sqlite3 *db = NULL;
	int64_t jobs = 0;
	int rc = open_file(path, SQLITE_OPEN_READONLY, &db, err);

	if (rc == 0)
		rc = takt_store_schema_look(db, path, ret_schema, err);
	sqlite3_close(db);
	if (rc == 0)
		rc = each_row(path, "PRAGMA integrity_check(1)", is_ok, (void *)path, err);
	if (rc == 0)
		rc = each_row(path, "SELECT count(*) FROM job JOIN spec ON job_id = id",
			      take_number, &jobs, err);
	*ret_jobs = (uint64_t)jobs;
	return rc < 0 ? rc : hand_over(path, *ret_schema, look, err);
}

/*
 * Shown to others.
 */

static void digest(const char *key, const char *kind, const char *text,
		   uint8_t ret[SHA256_DIGEST_SIZE])
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, strlen(key), (const uint8_t *)key);
	hmac_sha256_update(&hmac, strlen(kind) + 1, (const uint8_t *)kind);
	hmac_sha256_update(&hmac, strlen(text), (const uint8_t *)text);
	hmac_sha256_digest(&hmac, SHA256_DIGEST_SIZE, ret);
}

void takt_pseudonym(const char *key, const char *kind, const char *text, char ret[40])
{
	uint8_t bytes[SHA256_DIGEST_SIZE];

	digest(key, kind, text, bytes);
	snprintf(ret, 40, "%.20s-%02x%02x%02x%02x%02x%02x", kind, bytes[0], bytes[1], bytes[2],
		 bytes[3], bytes[4], bytes[5]);
}

static void sql_pseudonym(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *kind = (const char *)sqlite3_value_text(values[0]);
	const char *text = (const char *)sqlite3_value_text(values[1]);
	char name[40];

	if (!kind || !text) {
		sqlite3_result_null(context);
		return;
	}
	takt_pseudonym(sqlite3_user_data(context), kind, text, name);
	sqlite3_result_text(context, name, -1, SQLITE_TRANSIENT);
}

/* Owners in the inputs of decisions are numbers, and stay numbers. */
static void add_snapshot(struct takt_str *out, const char *key, const char *json)
{
	static const char field[] = "\"owner\":";
	const char *at;

	for (; (at = strstr(json, field)); json = at + strspn(at, "0123456789")) {
		uint8_t bytes[SHA256_DIGEST_SIZE];
		char number[24];

		at += sizeof(field) - 1;
		takt_str_addn(out, json, (size_t)(at - json));
		snprintf(number, sizeof(number), "%.*s", (int)strspn(at, "0123456789"), at);
		digest(key, "owner", number, bytes);
		takt_str_addf(out, "%u",
			      1u + (((unsigned)bytes[0] << 16) | (bytes[1] << 8) | bytes[2]));
	}
	takt_str_add(out, json);
}

static void sql_snapshot(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *json = (const char *)sqlite3_value_text(values[0]);
	struct takt_str text = TAKT_STR(4 * TAKT_STORE_MAX_DECISION);

	add_snapshot(&text, sqlite3_user_data(context), json ? json : "");
	if (text.rc < 0)
		sqlite3_result_error_nomem(context);
	else
		sqlite3_result_text(context, takt_str_text(&text), -1, SQLITE_TRANSIENT);
	takt_str_fini(&text);
}

/* What is shown is named here; whatever else there is stays away. */
static const char make_report[] =
	"CREATE TABLE fact(name TEXT, value TEXT);"
	"CREATE TABLE decision(id INTEGER PRIMARY KEY, version INTEGER, snapshot TEXT, plan TEXT);"
	"INSERT INTO decision SELECT id, version, anonymous(snapshot), plan FROM whole.decision"
	" ORDER BY id DESC LIMIT 500;"
	"CREATE TABLE job AS SELECT id, state, attempt, gpu_mask, submitted_ns, started_ns, "
	"ended_ns,"
	" exit_code, exit_signal, cancel_wanted, timed_out, restarts, failures, held, priority,"
	" wall_ns, energy_mj, mean_sm_mhz, throttled_ns, peak_memory_bytes, mean_util_permille,"
	" pseudonym('user', uid) AS user, pseudonym('name', json_extract(json, '$.name')) AS name,"
	" json_extract(json, '$.gpus') AS gpus, json_extract(json, '$.gpu_milli') AS gpu_milli,"
	" coalesce(time_limit_ms, json_extract(json, '$.time_limit_ms')) AS time_limit_ms,"
	" length(message) AS message_bytes"
	" FROM whole.job JOIN whole.spec ON job_id = id;";

static int add_facts(sqlite3 *db, const char *const *facts, const char *to, struct takt_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = takt_sqlite_code(
		db, sqlite3_prepare_v2(db, "INSERT INTO fact VALUES(?1, ?2)", -1, &stmt, NULL));

	for (; rc == 0 && facts[0]; facts += 2) {
		sqlite3_bind_text(stmt, 1, facts[0], -1, SQLITE_STATIC);
		sqlite3_bind_text(stmt, 2, facts[1], -1, SQLITE_STATIC);
		rc = takt_sqlite_run(stmt);
	}
	sqlite3_finalize(stmt);
	return rc < 0 ? takt_sqlite_err(err, db, sqlite3_errcode(db), "write", to) : 0;
}

static int fill_report(sqlite3 *db, const char *path, const char *to, const char *key,
		       const char *const *facts, struct takt_err *err)
{
	char *attach = sqlite3_mprintf("ATTACH %Q AS whole", path);
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC, rc;

	sqlite3_create_function(db, "pseudonym", 2, flags, (void *)key, sql_pseudonym, NULL, NULL);
	sqlite3_create_function(db, "anonymous", 1, flags, (void *)key, sql_snapshot, NULL, NULL);
	rc = attach ? run_sql(db, attach, to, err) : takt_err_set(err, -ENOMEM, "the report");
	sqlite3_free(attach);
	if (rc == 0)
		rc = run_sql(db, make_report, to, err);
	return rc < 0 ? rc : add_facts(db, facts, to, err);
}

static int make_in(const char *at, const char *path, const char *to, const char *key,
		   const char *const *facts, struct takt_err *err)
{
	sqlite3 *db = NULL;
	int rc = open_file(at, SQLITE_OPEN_READWRITE, &db, err);

	if (rc == 0)
		rc = fill_report(db, path, to, key, facts, err);
	sqlite3_close(db);
	return rc;
}

int takt_store_file_report(const char *path, const char *to, const char *key,
			   const char *const *facts, struct takt_err *err)
{
	struct takt_store_scratch scratch = {.fd = -1};
	struct takt_store_copy copy;
	int rc = takt_store_copy_make(to, &copy, err);

	if (rc == 0)
		rc = takt_store_scratch_make(&scratch, err);
	if (rc == 0)
		rc = make_in(scratch.db, path, to, key, facts, err);
	if (rc == 0)
		rc = takt_store_copy_fill(&copy, &scratch, err);
	takt_store_scratch_drop(&scratch);
	return takt_store_copy_end(&copy, rc, err);
}
