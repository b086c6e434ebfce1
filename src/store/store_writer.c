/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer thread: one transaction for everything posted since the last one, then word to those
 * who wait. The slower the disk, the more fits into one sync.
 *
 * A row that is refused (job known already, job unknown) fails alone; the statement undoes itself.
 * Anything else (full disk, I/O error, memory) rolls the transaction back and fails every change
 * in it.
 *
 * A commit can fail after its frames reached the log, when only the sync failed. SQLite takes them
 * back in memory, but a log read anew by the next process would hold them: a change reported as
 * failed would rise again. So a failed commit is followed by a tiny one of no meaning (the fence),
 * which overwrites those frames, before anybody is told.
 *
 * The log is copied back into the database (checkpoint) after the report, so that its two syncs are
 * not part of anybody's wait unless the next batch is there already.
 */
#include <errno.h>
#include <stdio.h>

#include "base/sys.h"
#include "store/store_impl.h"

static const char *const stmt_sql[TAKT_STMT_COUNT] = {
	[TAKT_STMT_BEGIN] = "BEGIN IMMEDIATE",
	[TAKT_STMT_COMMIT] = "COMMIT",
	[TAKT_STMT_INSERT_JOB] = takt_sql_insert_job,
	[TAKT_STMT_INSERT_SPEC] = "INSERT INTO spec(job_id, json) VALUES(?1, ?2)",
	[TAKT_STMT_INSERT_ENV] = "INSERT INTO environment(job_id, json) VALUES(?1, ?2)",
	[TAKT_STMT_UPDATE_JOB] = takt_sql_update_job,
	[TAKT_STMT_INSERT_DECISION] =
		"INSERT INTO decision(version, snapshot, plan) VALUES(?1, ?2, ?3)",
	[TAKT_STMT_KEEP] = "INSERT OR REPLACE INTO kept(key, text) VALUES(?1, ?2)",
	[TAKT_STMT_FORGET] = "DELETE FROM kept WHERE key = ?1",
	[TAKT_STMT_TRIM_DECISIONS] = "DELETE FROM decision WHERE id <= ?1",
	[TAKT_STMT_FENCE] = "UPDATE fence SET n = n + 1",
	[TAKT_STMT_PRUNE] = "DELETE FROM job WHERE id IN (SELECT id FROM job WHERE " TAKT_SQL_ENDED
			    " ORDER BY submit_seq DESC LIMIT 1024 OFFSET ?1) RETURNING id, attempt",
};

static int note_frames(void *ctx, sqlite3 *db, const char *name, int frames)
{
	struct takt_store *store = ctx;

	store->wal_frames = (uint32_t)frames;
	return SQLITE_OK;
}

int takt_store_writer_prepare(struct takt_store *store, struct takt_err *err)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < TAKT_STMT_COUNT && rc == SQLITE_OK; i++)
		rc = sqlite3_prepare_v3(store->writer, stmt_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
					&store->stmt[i], NULL);
	if (rc != SQLITE_OK)
		return takt_sqlite_err(err, store->writer, rc, "prepare database", store->path);
	sqlite3_wal_hook(store->writer, note_frames, store);
	store->ended_unpruned =
		TAKT_STORE_PRUNE_EVERY; /* keep_ended may be smaller than last time */
	return 0;
}

static int insert_text(sqlite3_stmt *stmt, uint64_t job_id, const char *text)
{
	sqlite3_bind_int64(stmt, 1, (int64_t)job_id);
	sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
	return takt_sqlite_run(stmt);
}

static int apply_insert(struct takt_store *store, const struct takt_job *job)
{
	sqlite3_stmt *stmt = store->stmt[TAKT_STMT_INSERT_JOB];
	int rc;

	takt_job_bind(stmt, job, true);
	rc = takt_sqlite_run(stmt);
	if (rc == 0)
		rc = insert_text(store->stmt[TAKT_STMT_INSERT_SPEC], job->id, job->spec_json);
	if (rc == 0 && job->env_json)
		rc = insert_text(store->stmt[TAKT_STMT_INSERT_ENV], job->id, job->env_json);
	return rc;
}

static int apply_update(struct takt_store *store, const struct takt_job *job)
{
	sqlite3_stmt *stmt = store->stmt[TAKT_STMT_UPDATE_JOB];
	int rc;

	takt_job_bind(stmt, job, false);
	rc = takt_sqlite_run(stmt);
	if (rc == 0 && sqlite3_changes(store->writer) == 0)
		return -TAKT_E_NOT_FOUND;
	if (rc == 0 && takt_job_state_ended(job->state))
		store->ended_unpruned++;
	return rc;
}

static int apply_decision(struct takt_store *store, const struct takt_store_change *change)
{
	sqlite3_stmt *stmt = store->stmt[TAKT_STMT_INSERT_DECISION];
	int rc;

	sqlite3_bind_int64(stmt, 1, (int64_t)change->u.decision.version);
	sqlite3_bind_text(stmt, 2, change->u.decision.snapshot_json, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 3, change->u.decision.plan_json, -1, SQLITE_STATIC);
	rc = takt_sqlite_run(stmt);
	if (rc < 0)
		return rc;
	stmt = store->stmt[TAKT_STMT_TRIM_DECISIONS];
	sqlite3_bind_int64(stmt, 1,
			   sqlite3_last_insert_rowid(store->writer) - TAKT_STORE_KEEP_DECISIONS);
	return takt_sqlite_run(stmt);
}

static int apply_keep(struct takt_store *store, const struct takt_store_change *change)
{
	const char *text = change->u.kept.text;
	sqlite3_stmt *stmt = store->stmt[text ? TAKT_STMT_KEEP : TAKT_STMT_FORGET];

	sqlite3_bind_text(stmt, 1, change->u.kept.key, -1, SQLITE_STATIC);
	if (text)
		sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
	return takt_sqlite_run(stmt);
}

static int apply(struct takt_store *store, const struct takt_store_change *change)
{
	switch (change->kind) {
	case TAKT_STORE_INSERT:
		store->bytes_unpruned += change->bytes;
		return apply_insert(store, &change->u.job);
	case TAKT_STORE_UPDATE:
		return apply_update(store, &change->u.job);
	case TAKT_STORE_KEEP:
		return apply_keep(store, change);
	default:
		return apply_decision(store, change);
	}
}

/* The row's own fault, the transaction goes on; 0 when it is not. */
static const char *row_fault(const struct takt_store_change *change, int rc)
{
	if (change->kind == TAKT_STORE_INSERT && rc == -EEXIST)
		return "is in the database already, or its submit_seq is";
	if (change->kind == TAKT_STORE_UPDATE && rc == -TAKT_E_NOT_FOUND)
		return "is not in the database";
	return NULL;
}

static int write_batch(struct takt_store *store, struct takt_store_list *batch)
{
	struct takt_store_change *change;
	int rc = takt_sqlite_run(store->stmt[TAKT_STMT_BEGIN]);

	for (change = batch->first; rc == 0 && change; change = change->next) {
		if (change->put_off)
			continue;
		change->rc = apply(store, change);
		if (change->rc < 0 && !row_fault(change, change->rc))
			rc = change->rc;
	}
	if (rc < 0)
		return rc;
	takt_crash_point("store.before_commit");
	rc = takt_sqlite_run(store->stmt[TAKT_STMT_COMMIT]);
	if (rc == 0)
		takt_crash_point("store.after_commit");
	return rc;
}

static void finish_batch(struct takt_store *store, struct takt_store_list *batch, int rc,
			 int vendor)
{
	struct takt_store_change *change;
	char message[160];

	for (change = batch->first; change; change = change->next) {
		message[0] = '\0';
		if (change->put_off) {
			snprintf(message, sizeof(message), "no room for new jobs: '%.100s'",
				 store->path);
			takt_store_change_finish(change, -ENOSPC, message);
			continue;
		}
		if (change->rc < 0 && row_fault(change, change->rc))
			snprintf(message, sizeof(message), "job %llu %s",
				 (unsigned long long)change->u.job.id,
				 row_fault(change, change->rc));
		else if (rc < 0)
			snprintf(message, sizeof(message), "write database '%.100s' (SQLite %d)",
				 store->path, vendor);
		takt_store_change_finish(change, message[0] && rc == 0 ? change->rc : rc, message);
	}
}

static void undo_batch(struct takt_store *store)
{
	if (!sqlite3_get_autocommit(store->writer))
		(void)takt_sqlite_exec(store->writer, "ROLLBACK");
	(void)takt_sqlite_run(store->stmt[TAKT_STMT_FENCE]);
}

/* What nobody was promised waits for better times: new jobs, and decisions. */
static void put_off(struct takt_store_list *batch)
{
	struct takt_store_change *change;

	for (change = batch->first; change; change = change->next)
		change->put_off =
			change->kind == TAKT_STORE_INSERT || change->kind == TAKT_STORE_DECISION;
}

/* On a full disk again and again, with ever less set aside. */
static int write_somehow(struct takt_store *store, struct takt_store_list *batch, int *ret_vendor)
{
	int rc;

	if (takt_store_is_short(store))
		put_off(batch);
	while ((rc = write_batch(store, batch)) < 0) {
		*ret_vendor = sqlite3_extended_errcode(store->writer);
		undo_batch(store);
		if ((rc != -ENOSPC && rc != -EDQUOT) || !takt_store_reserve_give(store))
			return rc;
		put_off(batch);
	}
	return 0;
}

static void run_batch(struct takt_store *store, struct takt_store_list *batch)
{
	int vendor = 0;
	int rc = write_somehow(store, batch, &vendor);

	finish_batch(store, batch, rc, vendor);
	takt_crash_point("store.before_report");
	takt_store_report(store, batch);
	takt_crash_point("store.after_report");
}

static void checkpoint(struct takt_store *store)
{
	if (store->wal_frames < store->checkpoint_frames)
		return;
	takt_crash_point("store.before_checkpoint");
	(void)sqlite3_wal_checkpoint_v2(store->writer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	takt_crash_point("store.after_checkpoint");
}

void *takt_store_writer_main(void *arg)
{
	struct takt_store *store = arg;
	struct takt_store_list batch;

	while (takt_store_take_batch(store, &batch)) {
		takt_store_reserve_tend(store);
		if (batch.len == 0)
			continue;
		run_batch(store, &batch);
		takt_store_prune(store);
		checkpoint(store);
	}
	return NULL;
}
