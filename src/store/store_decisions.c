/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of a database that is looked at only: somebody's report, or the one of a daemon that
 * runs. No lock is taken and nothing is migrated or written. */
#include <errno.h>
#include <string.h>

#include "store/store_impl.h"

static int hand_row(sqlite3_stmt *stmt,
		    int (*each)(void *ctx, const struct takt_store_decision_row *row), void *ctx)
{
	struct takt_store_decision_row row = {
		.version = (uint64_t)sqlite3_column_int64(stmt, 0),
		.snapshot_json = (const char *)sqlite3_column_text(stmt, 1),
		.plan_json = (const char *)sqlite3_column_text(stmt, 2),
	};

	return row.snapshot_json && row.plan_json ? each(ctx, &row) : -ENOMEM;
}

static int walk_file(sqlite3 *db, const char *path, uint32_t limit,
		     int (*each)(void *ctx, const struct takt_store_decision_row *row), void *ctx,
		     struct takt_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db,
				      "SELECT version, snapshot, plan FROM decision ORDER BY id "
				      "DESC LIMIT ?1",
				      -1, &stmt, NULL);
	int rc = 0;

	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(stmt, 1, limit);
	while (code == SQLITE_OK && rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = hand_row(stmt, each, ctx);
		code = SQLITE_OK;
	}
	if (code != SQLITE_OK && code != SQLITE_DONE)
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "read decisions from '%s': %s", path,
				  sqlite3_errmsg(db));
	sqlite3_finalize(stmt);
	return rc;
}

int takt_store_file_decisions(const char *path, uint32_t limit,
			      int (*each)(void *ctx, const struct takt_store_decision_row *row),
			      void *ctx, struct takt_err *err)
{
	struct takt_store_source source;
	sqlite3 *db = NULL;
	int rc = takt_store_sqlite_init(err);

	if (rc == 0)
		rc = takt_store_source_open(path, &source, err);
	if (rc == -ENOENT || rc == -EACCES)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "open '%s': %s", path, strerror(-rc));
	if (rc < 0)
		return rc;
	if (sqlite3_open_v2(source.at, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		rc = takt_err_set(err, -TAKT_E_UNAVAILABLE, "open '%s': %s", path,
				  db ? sqlite3_errmsg(db) : "no memory");
	else
		rc = walk_file(db, path, limit, each, ctx, err);
	sqlite3_close(db);
	takt_store_source_close(&source);
	return rc;
}
