/* SPDX-License-Identifier: Apache-2.0 */
/*
 * History is cut to size. Whoever keeps something of a job's elsewhere hears of it: that a job was
 * cut is kept with the cut, in one transaction, until he says that nothing of it is left.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/store_impl.h"

enum {
	PRUNE_AT_ONCE = 1024,
	KEY_BYTES = 32,
};

static const char prefix[] = "gone/";

static void key_of(uint64_t job_id, char ret[KEY_BYTES])
{
	snprintf(ret, KEY_BYTES, "%s%" PRIu64, prefix, job_id);
}

/* Said only when it is certain; one for which there is no room is said after the next start. */
static void tell(struct takt_store *store, const struct takt_store_gone *gone, size_t n)
{
	pthread_mutex_lock(&store->lock);
	for (size_t i = 0; i < n && takt_vec_push(&store->gone, gone[i]) == 0; i++)
		;
	pthread_mutex_unlock(&store->lock);
}

/* Pages in use: those of jobs that have gone are used again, the file gets no smaller. */
static bool is_too_large(struct takt_store *store)
{
	int64_t pages = 0, unused = 0, bytes = 0;

	return store->keep_bytes &&
	       takt_sqlite_int(store->writer, "PRAGMA page_count", &pages) == 0 &&
	       takt_sqlite_int(store->writer, "PRAGMA freelist_count", &unused) == 0 &&
	       takt_sqlite_int(store->writer, "PRAGMA page_size", &bytes) == 0 &&
	       (uint64_t)((pages - unused) * bytes) > store->keep_bytes;
}

/* How many ended jobs may stay: of a database that is too large some fewer than there are. */
static int64_t may_stay(struct takt_store *store)
{
	int64_t most = store->keep_ended, ended = 0;

	if (!is_too_large(store) ||
	    takt_sqlite_int(store->writer, "SELECT count(*) FROM job WHERE " TAKT_SQL_ENDED,
			    &ended) < 0)
		return most;
	ended = ended > TAKT_STORE_PRUNE_EVERY ? ended - TAKT_STORE_PRUNE_EVERY : 0;
	return ended < most ? ended : most;
}

static int take_cut(struct takt_store *store, struct takt_store_gone *ret, size_t *ret_n)
{
	sqlite3_stmt *stmt = store->stmt[TAKT_STMT_PRUNE];
	int step;

	*ret_n = 0;
	sqlite3_bind_int64(stmt, 1, may_stay(store));
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW && *ret_n < PRUNE_AT_ONCE)
		ret[(*ret_n)++] = (struct takt_store_gone){(uint64_t)sqlite3_column_int64(stmt, 0),
							   (uint32_t)sqlite3_column_int64(stmt, 1)};
	sqlite3_reset(stmt);
	return step == SQLITE_DONE ? 0 : -1;
}

static int keep_one(struct takt_store *store, const struct takt_store_gone *gone)
{
	sqlite3_stmt *stmt = store->stmt[TAKT_STMT_KEEP];
	char key[KEY_BYTES], text[16];

	key_of(gone->job_id, key);
	snprintf(text, sizeof(text), "%" PRIu32, gone->attempts);
	sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
	return takt_sqlite_run(stmt);
}

static int cut(struct takt_store *store, struct takt_store_gone *ret, size_t *ret_n)
{
	int rc = takt_sqlite_run(store->stmt[TAKT_STMT_BEGIN]);

	if (rc == 0)
		rc = take_cut(store, ret, ret_n);
	for (size_t i = 0; rc == 0 && i < *ret_n; i++)
		if (ret[i].attempts > 0)
			rc = keep_one(store, &ret[i]);
	takt_crash_point("store.before_cut");
	if (rc == 0)
		rc = takt_sqlite_run(store->stmt[TAKT_STMT_COMMIT]);
	if (rc < 0 && !sqlite3_get_autocommit(store->writer))
		(void)takt_sqlite_exec(store->writer, "ROLLBACK");
	return rc;
}

void takt_store_prune(struct takt_store *store)
{
	struct takt_store_gone gone[PRUNE_AT_ONCE];
	size_t n = 0;

	if ((store->ended_unpruned < TAKT_STORE_PRUNE_EVERY &&
	     store->bytes_unpruned < TAKT_STORE_PRUNE_BYTES) ||
	    cut(store, gone, &n) < 0)
		return;
	takt_crash_point("store.after_cut");
	store->bytes_unpruned = 0;
	store->ended_unpruned =
		n < PRUNE_AT_ONCE && !(n > 0 && is_too_large(store)) ? 0 : TAKT_STORE_PRUNE_EVERY;
	tell(store, gone, n);
}

size_t takt_store_gone(struct takt_store *store, struct takt_store_gone *ret, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&store->lock);
	while (n < max && store->gone.len > 0)
		ret[n++] = store->gone.at[--store->gone.len];
	pthread_mutex_unlock(&store->lock);
	return n;
}

int takt_store_forget_gone(struct takt_store *store, uint64_t job_id, struct takt_err *err)
{
	char key[KEY_BYTES];
	int64_t ticket;

	key_of(job_id, key);
	ticket = takt_store_keep(store, key, NULL, 0, err);
	return ticket < 0 ? (int)ticket : 0;
}

static int take_kept(void *ctx, const char *key, const char *text)
{
	unsigned long long job_id = 0, attempts = 0;
	struct takt_store_gone gone;

	if (takt_parse_u64(key + sizeof(prefix) - 1, 1, INT64_MAX, &job_id) < 0 ||
	    takt_parse_u64(text, 1, UINT32_MAX, &attempts) < 0)
		return 0;
	gone = (struct takt_store_gone){.job_id = job_id, .attempts = (uint32_t)attempts};
	tell(ctx, &gone, 1);
	return 0;
}

int takt_store_load_gone(struct takt_store *store, struct takt_err *err)
{
	return takt_store_each_kept(store, prefix, take_kept, store, err);
}
