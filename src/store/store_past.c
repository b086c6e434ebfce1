/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through ended jobs. There may be 100,000 of them and a description may be 2 MiB, so a row
 * is looked at without its description first, and whoever asks from a loop that others wait for
 * gets a part and asks on.
 */
#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "store/store_impl.h"

enum {
	PART_COST = 5 * 1024 * 1024, /* of a part: bytes that were read */
	ROW_COST = 4096,	     /* a row that is handed over, beside its texts */
	LOOK_COST = 256,	     /* one that is looked at */
	PART_MS = 50,
};

struct ended_walk {
	struct takt_store *store;
	sqlite3_stmt *scan; /* gives the number of a job and whether it fits */
	sqlite3_stmt *row;  /* the whole job of a number */
	sqlite3_blob *spec; /* NULL = none was opened */
	uint32_t spec_most; /* longer descriptions are passed over; 0 = none is */
	uint32_t limit, handed;
	uint64_t cost, due_ns;
	int (*each)(void *ctx, const struct takt_job *job);
	void *ctx;
};

static int failed(const struct ended_walk *walk, int sqlite_rc, struct takt_err *err)
{
	return takt_sqlite_err(err, walk->store->reader, sqlite_rc, "read database",
			       walk->store->path);
}

/* The length is known without its text being read. */
static int is_too_long(struct ended_walk *walk, int64_t job_id, bool *ret, struct takt_err *err)
{
	int rc = walk->spec ? sqlite3_blob_reopen(walk->spec, job_id)
			    : sqlite3_blob_open(walk->store->reader, "main", "spec", "json", job_id,
						0, &walk->spec);

	*ret = rc == SQLITE_OK && (uint32_t)sqlite3_blob_bytes(walk->spec) > walk->spec_most;
	if (rc == SQLITE_OK)
		return 0;
	sqlite3_blob_close(walk->spec);
	walk->spec = NULL;
	return rc == SQLITE_ERROR ? 0 : failed(walk, rc, err); /* ERROR: it has none */
}

static int hand_over(struct ended_walk *walk, struct takt_err *err)
{
	struct takt_job job;
	int rc = takt_job_from_row(walk->row, &job, err);

	if (rc < 0)
		return rc;
	walk->cost += ROW_COST + strlen(job.spec_json) + (job.env_json ? strlen(job.env_json) : 0);
	walk->handed++;
	return walk->each(walk->ctx, &job);
}

static int read_one(struct ended_walk *walk, int64_t job_id, struct takt_err *err)
{
	bool too_long = false;
	int step, rc = walk->spec_most ? is_too_long(walk, job_id, &too_long, err) : 0;

	if (rc < 0 || too_long)
		return rc;
	sqlite3_bind_int64(walk->row, 1, job_id);
	step = sqlite3_step(walk->row);
	if (step == SQLITE_ROW)
		rc = hand_over(walk, err);
	else if (step != SQLITE_DONE)
		rc = failed(walk, step, err);
	sqlite3_reset(walk->row);
	return rc;
}

static bool is_enough(const struct ended_walk *walk)
{
	return walk->handed >= walk->limit || walk->cost >= PART_COST ||
	       takt_mono_now(walk->store->sys).ns >= walk->due_ns;
}

/* In parts: *ret_next is the number below which there may be more, 0 at the end. */
static int go(struct ended_walk *walk, uint64_t *ret_next, struct takt_err *err)
{
	int rc = 0, step;

	while ((step = sqlite3_step(walk->scan)) == SQLITE_ROW) {
		int64_t job_id = sqlite3_column_int64(walk->scan, 0);

		walk->cost += LOOK_COST;
		if (sqlite3_column_int(walk->scan, 1))
			rc = read_one(walk, job_id, err);
		if (rc < 0)
			return rc;
		if (ret_next && is_enough(walk)) {
			*ret_next = (uint64_t)job_id;
			return 0;
		}
	}
	return step == SQLITE_DONE ? 0 : failed(walk, step, err);
}

static int prepare(struct ended_walk *walk, const char *scan, struct takt_err *err)
{
	sqlite3 *reader = walk->store->reader;
	int rc = sqlite3_prepare_v2(reader, scan, -1, &walk->scan, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(reader, TAKT_SQL_SELECT_JOB "WHERE id = ?1", -1, &walk->row,
					NULL);
	return rc == SQLITE_OK ? 0 : failed(walk, rc, err);
}

static void finish(struct ended_walk *walk)
{
	sqlite3_blob_close(walk->spec);
	sqlite3_finalize(walk->row);
	sqlite3_finalize(walk->scan);
}

int takt_store_each_history(struct takt_store *store, uint32_t limit, uint32_t spec_most,
			    int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			    struct takt_err *err)
{
	struct ended_walk walk = {.store = store, .spec_most = spec_most, .each = each, .ctx = ctx};
	int rc;

	pthread_mutex_lock(&store->reader_lock);
	rc = prepare(&walk,
		     "SELECT id, 1 FROM job WHERE " TAKT_SQL_ENDED
		     " ORDER BY submit_seq DESC LIMIT ?1",
		     err);
	if (rc == 0) {
		sqlite3_bind_int64(walk.scan, 1, limit);
		rc = go(&walk, NULL, err);
	}
	finish(&walk);
	pthread_mutex_unlock(&store->reader_lock);
	return rc;
}

static void bind_past(sqlite3_stmt *stmt, const struct takt_store_past *past)
{
	sqlite3_bind_int64(stmt, 1, past->before_id ? (int64_t)past->before_id : INT64_MAX);
	sqlite3_bind_int64(stmt, 2, past->since.ns);
	sqlite3_bind_int64(stmt, 3, past->until.ns ? past->until.ns : INT64_MAX);
	sqlite3_bind_int64(stmt, 4, past->uid);
	sqlite3_bind_int(stmt, 5, past->gpu);
	sqlite3_bind_text(stmt, 6, past->states, -1, SQLITE_STATIC);
}

int takt_store_each_past(struct takt_store *store, const struct takt_store_past *past,
			 int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			 uint64_t *ret_next, struct takt_err *err)
{
	static const char scan[] =
		"SELECT id, " TAKT_SQL_ENDED
		" AND coalesce(ended_ns, started_ns, submitted_ns, 0) >= ?2"
		" AND coalesce(ended_ns, started_ns, submitted_ns, 0) < ?3"
		" AND (?4 < 0 OR uid = ?4) AND (?5 < 0 OR gpu_mask >> ?5 & 1)"
		" AND (?6 IS NULL OR instr(',' || ?6 || ',', ',' || state || ','))"
		" FROM job WHERE id < ?1 ORDER BY id DESC";
	struct ended_walk walk = {.store = store,
				  .limit = past->limit,
				  .due_ns = takt_mono_now(store->sys).ns + PART_MS * TAKT_NS_PER_MS,
				  .each = each,
				  .ctx = ctx};
	uint64_t next = 0;
	int rc;

	pthread_mutex_lock(&store->reader_lock);
	rc = prepare(&walk, scan, err);
	if (rc == 0) {
		bind_past(walk.scan, past);
		rc = go(&walk, &next, err);
	}
	finish(&walk);
	pthread_mutex_unlock(&store->reader_lock);
	*ret_next = next;
	return rc;
}
