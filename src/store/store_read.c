/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads, on a connection of their own so that none waits for a commit. Statements are prepared for
 * each walk: walks are rare beside writes, and so a callback may read while one is under way.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_impl.h"

typedef int row_fn(sqlite3_stmt *stmt, void *ctx, struct takt_err *err);

/* Gives the statement its parameters; texts are borrowed until the walk is over. */
typedef void bind_fn(sqlite3_stmt *stmt, const void *params);

/* Calls fn for each row. */
static int walk_bound(struct takt_store *store, const char *sql, bind_fn *bind, const void *params,
		      row_fn *fn, void *ctx, struct takt_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc, step = SQLITE_ROW;

	pthread_mutex_lock(&store->reader_lock);
	rc = sqlite3_prepare_v2(store->reader, sql, -1, &stmt, NULL);
	if (rc != SQLITE_OK) {
		rc = takt_sqlite_err(err, store->reader, rc, "read database", store->path);
		pthread_mutex_unlock(&store->reader_lock);
		return rc;
	}
	bind(stmt, params);
	while (rc >= 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
		rc = fn(stmt, ctx, err);
	if (rc >= 0)
		rc = takt_sqlite_code(store->reader, step) == 0
			     ? 0
			     : takt_sqlite_err(err, store->reader, step, "read database",
					       store->path);
	sqlite3_finalize(stmt);
	pthread_mutex_unlock(&store->reader_lock);
	return rc;
}

static void bind_number(sqlite3_stmt *stmt, const void *params)
{
	if (sqlite3_bind_parameter_count(stmt) > 0)
		sqlite3_bind_int64(stmt, 1, *(const int64_t *)params);
}

/* ?1 is `param` where the SQL has one. */
static int walk(struct takt_store *store, const char *sql, int64_t param, row_fn *fn, void *ctx,
		struct takt_err *err)
{
	return walk_bound(store, sql, bind_number, &param, fn, ctx, err);
}

struct job_walk {
	int (*each)(void *ctx, const struct takt_job *job);
	void *ctx;
};

static int hand_job(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	const struct job_walk *to = ctx;
	struct takt_job job;
	int rc = takt_job_from_row(stmt, &job, err);

	return rc < 0 ? rc : to->each(to->ctx, &job);
}

int takt_store_each_live(struct takt_store *store,
			 int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			 struct takt_err *err)
{
	struct job_walk to = {each, ctx};

	return walk(store, TAKT_SQL_SELECT_JOB "WHERE " TAKT_SQL_LIVE " ORDER BY submit_seq", 0,
		    hand_job, &to, err);
}

struct found {
	struct takt_job job;
	bool any;
};

static int copy_job(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	struct found *found = ctx;
	int rc = takt_job_from_row(stmt, &found->job, err);

	if (rc < 0)
		return rc;
	found->job.spec_json = takt_strdup(found->job.spec_json);
	found->job.env_json = NULL; /* of no use to who asks for one job */
	found->job.message = takt_strdup(found->job.message);
	found->job.mig = takt_strdup(found->job.mig);
	found->job.gpu_uuids = takt_strdup(found->job.gpu_uuids);
	found->any = true;
	if (found->job.spec_json && found->job.message && found->job.mig && found->job.gpu_uuids)
		return 0;
	return takt_err_set(err, -ENOMEM, "read job %llu", (unsigned long long)found->job.id);
}

int takt_store_get(struct takt_store *store, uint64_t job_id, struct takt_job *ret,
		   struct takt_err *err)
{
	struct found found = {.any = false};
	int rc = 0;

	if (job_id <= INT64_MAX)
		rc = walk(store, TAKT_SQL_SELECT_JOB "WHERE id = ?1", (int64_t)job_id, copy_job,
			  &found, err);
	if (rc < 0) {
		if (found.any)
			takt_job_fini(&found.job);
		return rc;
	}
	if (!found.any)
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "job %llu", (unsigned long long)job_id);
	*ret = found.job;
	return 0;
}

static int copy_environment(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	char **copy = ctx;

	*copy = takt_strdup((const char *)sqlite3_column_text(stmt, 0));
	return *copy ? 0 : takt_err_set(err, -ENOMEM, "read an environment");
}

int takt_store_environment(struct takt_store *store, uint64_t env_of, char **ret,
			   struct takt_err *err)
{
	char *json = NULL;
	int rc = walk(store, "SELECT json FROM environment WHERE job_id = ?1", (int64_t)env_of,
		      copy_environment, &json, err);

	if (rc == 0)
		*ret = json;
	return rc;
}

struct ids {
	uint64_t job, seq;
};

static int copy_ids(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	struct ids *ids = ctx;

	ids->job = (uint64_t)sqlite3_column_int64(stmt, 0) + 1;
	ids->seq = (uint64_t)sqlite3_column_int64(stmt, 1) + 1;
	return 0;
}

int takt_store_next_ids(struct takt_store *store, uint64_t *ret_job_id, uint64_t *ret_submit_seq,
			struct takt_err *err)
{
	struct ids ids = {1, 1};
	int rc = walk(store, "SELECT (SELECT max(id) FROM job), (SELECT max(submit_seq) FROM job)",
		      0, copy_ids, &ids, err);

	if (rc < 0)
		return rc;
	*ret_job_id = ids.job;
	*ret_submit_seq = ids.seq;
	return 0;
}

struct decision_walk {
	int (*each)(void *ctx, const struct takt_store_decision_row *row);
	void *ctx;
};

static int hand_decision(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	const struct decision_walk *to = ctx;
	struct takt_store_decision_row row = {
		.version = (uint64_t)sqlite3_column_int64(stmt, 0),
		.snapshot_json = (const char *)sqlite3_column_text(stmt, 1),
		.plan_json = (const char *)sqlite3_column_text(stmt, 2),
	};

	if (!row.snapshot_json || !row.plan_json)
		return takt_err_set(err, -ENOMEM, "read a decision");
	return to->each(to->ctx, &row);
}

int takt_store_each_decision(struct takt_store *store, uint32_t limit,
			     int (*each)(void *ctx, const struct takt_store_decision_row *row),
			     void *ctx, struct takt_err *err)
{
	struct decision_walk to = {each, ctx};

	return walk(store, "SELECT version, snapshot, plan FROM decision ORDER BY id DESC LIMIT ?1",
		    limit, hand_decision, &to, err);
}

struct kept_walk {
	const char *prefix;
	int (*each)(void *ctx, const char *key, const char *text);
	void *ctx;
};

static int hand_kept(sqlite3_stmt *stmt, void *ctx, struct takt_err *err)
{
	const struct kept_walk *to = ctx;
	const char *key = (const char *)sqlite3_column_text(stmt, 0);
	const char *text = (const char *)sqlite3_column_text(stmt, 1);

	if (!key || !text)
		return takt_err_set(err, -ENOMEM, "read what is kept as '%s'", to->prefix);
	return strncmp(key, to->prefix, strlen(to->prefix)) == 0 ? to->each(to->ctx, key, text) : 0;
}

int takt_store_each_kept(struct takt_store *store, const char *prefix,
			 int (*each)(void *ctx, const char *key, const char *text), void *ctx,
			 struct takt_err *err)
{
	struct kept_walk to = {prefix, each, ctx};

	return walk(store, "SELECT key, text FROM kept ORDER BY key", 0, hand_kept, &to, err);
}
