/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database's shape, as the list of steps that led to it. A database at version N (SQLite's
 * user_version) has had the first N steps; each is one transaction. Steps are only ever appended.
 *
 * A job's description is in a table of its own: it is written once and may be large, the job's row
 * is small and is rewritten a few times, and SQLite rewrites a row as a whole. Its environment, in
 * which people keep secrets, is in another, and goes with the job's end; what is deleted is
 * overwritten (secure_delete).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "store/store_impl.h"

enum {
	APPLICATION_ID = 0x54414b54 /* "TAKT" in the file's header */
};

static const char *const steps[] = {
	"CREATE TABLE job("
	" id INTEGER PRIMARY KEY,"
	" submit_seq INTEGER NOT NULL UNIQUE,"
	" uid INTEGER NOT NULL,"
	" gid INTEGER NOT NULL,"
	" state TEXT NOT NULL CHECK(" TAKT_SQL_LIVE " OR " TAKT_SQL_ENDED "),"
	" attempt INTEGER NOT NULL,"
	" gpu_mask INTEGER NOT NULL,"
	" submitted_ns INTEGER,"
	" started_ns INTEGER,"
	" ended_ns INTEGER,"
	" exit_code INTEGER NOT NULL,"
	" exit_signal INTEGER NOT NULL,"
	" message TEXT NOT NULL,"
	" cancel_wanted INTEGER NOT NULL,"
	" simulated INTEGER NOT NULL,"
	" wall_ns INTEGER,"
	" energy_mj INTEGER,"
	" energy_why_not TEXT NOT NULL,"
	" mean_sm_mhz INTEGER,"
	" throttled_ns INTEGER,"
	" throttle_reasons INTEGER,"
	" peak_memory_bytes INTEGER"
	") STRICT;"
	"CREATE INDEX job_live ON job(submit_seq) WHERE " TAKT_SQL_LIVE ";"
	"CREATE INDEX job_ended ON job(submit_seq) WHERE " TAKT_SQL_ENDED ";"
	"CREATE TABLE spec(job_id INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;"
	"CREATE TRIGGER job_gone AFTER DELETE ON job BEGIN"
	" DELETE FROM spec WHERE job_id = old.id;"
	"END;"
	"CREATE TABLE decision("
	" id INTEGER PRIMARY KEY,"
	" version INTEGER NOT NULL,"
	" snapshot TEXT NOT NULL,"
	" plan TEXT NOT NULL"
	") STRICT;"
	"CREATE TABLE fence(n INTEGER NOT NULL) STRICT;"
	"INSERT INTO fence VALUES(0);",

	/* 2: jobs can be held, and their priority can change. */
	"ALTER TABLE job ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK(held IN (0, 1, 2));"
	"ALTER TABLE job ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;"
	"UPDATE job SET priority = coalesce((SELECT json_extract(json, '$.priority') FROM spec"
	" WHERE job_id = id), 0);",

	/* 3: time limits, and attempts that are followed by another. */
	"ALTER TABLE job ADD COLUMN timed_out INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN retry_at_ns INTEGER;",

	/* 4: how well jobs used their GPUs; what administrators have said; shares of GPUs and MIG
	 * instances; preemption; environments apart. */
	"ALTER TABLE job ADD COLUMN mean_util_permille INTEGER;"
	"ALTER TABLE job ADD COLUMN idle_ns INTEGER;"
	"CREATE TABLE kept(key TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;"
	"ALTER TABLE job ADD COLUMN share_milli INTEGER NOT NULL DEFAULT 1000;"
	"ALTER TABLE job ADD COLUMN mem_held_mib INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN mig TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE job ADD COLUMN mps_limited INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN preemptions INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN frozen INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN lost_ns INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN staged INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN evict INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN evict_for INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE job ADD COLUMN evict_at_ns INTEGER;"
	"ALTER TABLE job ADD COLUMN checkpoint_ns INTEGER;"
	"ALTER TABLE job ADD COLUMN gap_driver_ns INTEGER;"
	"ALTER TABLE job ADD COLUMN gap_scheduler_ns INTEGER;"
	"ALTER TABLE job ADD COLUMN gap_start_ns INTEGER;"
	"CREATE TABLE environment(job_id INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;"
	"INSERT INTO environment SELECT spec.job_id, json_object('env',"
	" coalesce(json_extract(spec.json, '$.env'), json('[]')))"
	" FROM spec JOIN job ON job.id = spec.job_id WHERE " TAKT_SQL_LIVE ";"
	"UPDATE spec SET json = json_remove(json, '$.env')"
	" WHERE json_type(json, '$.env') IS NOT NULL;"
	"CREATE TRIGGER job_over AFTER UPDATE OF state ON job WHEN new." TAKT_SQL_ENDED " BEGIN"
	" DELETE FROM environment WHERE job_id = new.id;"
	"END;",
	/* What a governor saved, NULL where that is not known. */
	"ALTER TABLE job ADD COLUMN governor TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE job ADD COLUMN work_signal INTEGER;"
	"ALTER TABLE job ADD COLUMN governed_mj INTEGER;"
	"ALTER TABLE job ADD COLUMN highest_mj INTEGER;"
	"ALTER TABLE job ADD COLUMN highest_error_permille INTEGER;"
	"ALTER TABLE job ADD COLUMN slowdown_permille INTEGER;"
	"ALTER TABLE job ADD COLUMN slowdown_error_permille INTEGER;",
	/* What was promised anew, NULL where that is as described. */
	"ALTER TABLE job ADD COLUMN max_slowdown_permille INTEGER;"
	"ALTER TABLE job ADD COLUMN clock_policy TEXT;"
	"ALTER TABLE job ADD COLUMN sm_spread_mhz INTEGER;",
	/* Which GPUs they were; of attempts before that, not known. */
	"ALTER TABLE job ADD COLUMN gpu_uuids TEXT NOT NULL DEFAULT '';",
	/* What ended the attempt; of jobs before that as far as their states tell. */
	"ALTER TABLE job ADD COLUMN cause TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE job ADD COLUMN cause_gpu INTEGER;"
	"ALTER TABLE job ADD COLUMN cause_xid INTEGER;"
	"ALTER TABLE job ADD COLUMN cause_at_ns INTEGER;"
	"UPDATE job SET cause = CASE"
	" WHEN state = 'interrupted' THEN 'node_reboot' WHEN state = 'lost' THEN 'takt_died'"
	" WHEN cancel_wanted THEN 'cancelled' ELSE 'time_limit' END"
	" WHERE state IN ('interrupted', 'lost') OR cancel_wanted OR timed_out;",
	/* Jobs of an array have one environment together, under the number of the first of them; of
	 * jobs before that each has its own. It goes with the last that lives. */
	"ALTER TABLE job ADD COLUMN env_of INTEGER;"
	"CREATE INDEX job_env ON job(env_of) WHERE env_of IS NOT NULL AND " TAKT_SQL_LIVE ";"
	"DROP TRIGGER job_over;"
	"CREATE TRIGGER job_over AFTER UPDATE OF state ON job WHEN new." TAKT_SQL_ENDED " BEGIN"
	" DELETE FROM environment WHERE job_id = coalesce(new.env_of, new.id) AND NOT EXISTS("
	"SELECT 1 FROM job WHERE env_of = new.env_of AND " TAKT_SQL_LIVE ");"
	"END;",
	/* Another time limit than the described one, NULL where that counts; 0 = none. */
	"ALTER TABLE job ADD COLUMN time_limit_ms INTEGER;",
};

/* One line of quick_check: "ok" or the first thing that is wrong. */
static int quick_check(sqlite3 *db, const char *path, struct takt_err *err)
{
	sqlite3_stmt *stmt = NULL;
	const char *said = NULL;
	int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		said = (const char *)sqlite3_column_text(stmt, 0);
	rc = takt_sqlite_code(db, rc);
	if (rc < 0 || !said)
		rc = takt_sqlite_err(err, db, rc < 0 ? sqlite3_errcode(db) : SQLITE_NOMEM,
				     "check database", path);
	else if (strcmp(said, "ok") != 0)
		rc = takt_store_corrupt(err, path, said);
	sqlite3_finalize(stmt);
	return rc;
}

/* Whose it is and how old; *ret_version 0 for an empty file. */
static int identify(sqlite3 *db, const char *path, int64_t *ret_version, struct takt_err *err)
{
	int64_t app = 0, version = 0, things = 0;
	int rc = takt_sqlite_int(db, "PRAGMA application_id", &app);

	if (rc == 0)
		rc = takt_sqlite_int(db, "PRAGMA user_version", &version);
	if (rc == 0)
		rc = takt_sqlite_int(db, "SELECT count(*) FROM sqlite_schema", &things);
	if (rc < 0)
		return takt_sqlite_err(err, db, sqlite3_errcode(db), "read database", path);
	if (app != APPLICATION_ID && (app != 0 || version != 0 || things != 0))
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "'%s' is a database of some other program and was left as it "
				    "is; name another file",
				    path);
	if (version > (int64_t)TAKT_ARRAY_LEN(steps) || version < 0)
		return takt_err_set(err, -TAKT_E_VERSION,
				    "database '%s' has schema %" PRId64
				    ", this takt knows up to %zu; start the takt that wrote it, or "
				    "a newer one",
				    path, version, TAKT_ARRAY_LEN(steps));
	*ret_version = version;
	return 0;
}

static int set_wal(sqlite3 *db, const char *path, bool no_sync, struct takt_err *err)
{
	sqlite3_stmt *stmt = NULL;
	const char *mode = "";
	int rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode=WAL", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		mode = (const char *)sqlite3_column_text(stmt, 0);
	if (takt_sqlite_code(db, rc) < 0)
		rc = takt_sqlite_err(err, db, rc, "prepare database", path);
	else if (!mode || strcmp(mode, "wal") != 0)
		rc = takt_err_set(err, -TAKT_E_UNSUPPORTED, "no write-ahead log for '%s' here",
				  path);
	else
		rc = 0;
	sqlite3_finalize(stmt);
	if (rc == 0 && takt_sqlite_exec(db, no_sync ? "PRAGMA synchronous=OFF"
						    : "PRAGMA synchronous=FULL") < 0)
		rc = takt_sqlite_err(err, db, sqlite3_errcode(db), "prepare database", path);
	return rc;
}

static int run_step(sqlite3 *db, size_t number)
{
	char done[96];
	int rc;

	sqlite3_snprintf(sizeof(done), done, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
			 APPLICATION_ID, (int)number);
	rc = takt_sqlite_exec(db, "BEGIN IMMEDIATE");
	if (rc == 0)
		rc = takt_sqlite_exec(db, steps[number - 1]);
	if (rc == 0)
		rc = takt_sqlite_exec(db, done);
	takt_crash_point("store.before_migrate");
	return rc == 0 ? takt_sqlite_exec(db, "COMMIT") : rc;
}

int takt_store_schema_ready(sqlite3 *db, const char *path, bool no_sync, struct takt_err *err)
{
	int64_t version = 0;
	int rc = identify(db, path, &version, err);

	if (rc == 0)
		rc = quick_check(db, path, err);
	if (rc == 0)
		rc = set_wal(db, path, no_sync, err);
	for (size_t i = (size_t)version; rc == 0 && i < TAKT_ARRAY_LEN(steps); i++)
		if (run_step(db, i + 1) < 0)
			rc = takt_sqlite_err(err, db, sqlite3_errcode(db), "set up database", path);
	return rc;
}

int takt_store_schema_look(sqlite3 *db, const char *path, int64_t *ret_version,
			   struct takt_err *err)
{
	int rc = identify(db, path, ret_version, err);

	return rc < 0 ? rc : quick_check(db, path, err);
}
