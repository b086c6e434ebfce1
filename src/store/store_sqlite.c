/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite made to fit: its memory through base/mem.h, its results as our codes.
 *
 * SQLite asks an allocator for the size of what it handed out, which base/mem.h does not know, so
 * eight bytes before each block hold it.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "store/store_impl.h"

enum {
	SIZE_BYTES = 8
};

static void *sized(unsigned char *block, int size)
{
	int64_t kept = size;

	if (!block)
		return NULL;
	memcpy(block, &kept, sizeof(kept));
	return block + SIZE_BYTES;
}

static void *mem_alloc(int size)
{
	return sized(takt_alloc((size_t)size + SIZE_BYTES), size);
}

static void mem_free(void *p)
{
	if (p)
		takt_free((unsigned char *)p - SIZE_BYTES);
}

static void *mem_realloc(void *p, int size)
{
	return sized(takt_realloc((unsigned char *)p - SIZE_BYTES, (size_t)size + SIZE_BYTES),
		     size);
}

static int mem_size(void *p)
{
	int64_t kept;

	if (!p)
		return 0;
	memcpy(&kept, (unsigned char *)p - SIZE_BYTES, sizeof(kept));
	return (int)kept;
}

static int mem_roundup(int size)
{
	return (size + 7) & ~7;
}

static int mem_init(void *unused)
{
	return SQLITE_OK;
}

static void mem_shutdown(void *unused)
{
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int configured; /* SQLite's answer */

static void configure(void)
{
	static const sqlite3_mem_methods methods = {
		.xMalloc = mem_alloc,
		.xFree = mem_free,
		.xRealloc = mem_realloc,
		.xSize = mem_size,
		.xRoundup = mem_roundup,
		.xInit = mem_init,
		.xShutdown = mem_shutdown,
	};

	configured = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

int takt_store_sqlite_init(struct takt_err *err)
{
	pthread_once(&once, configure);
	if (configured != SQLITE_OK)
		return takt_err_set(err, -TAKT_E_BUSY,
				    "SQLite was in use before the store set it up");
	return sqlite3_initialize() == SQLITE_OK ? 0 : takt_err_set(err, -ENOMEM, "start SQLite");
}

static int io_code(sqlite3 *db)
{
	int os = db ? sqlite3_system_errno(db) : 0;

	return os > 0 ? -os : -EIO;
}

int takt_sqlite_code(sqlite3 *db, int sqlite_rc)
{
	switch (sqlite_rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CONSTRAINT:
		return -EEXIST;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -TAKT_E_BUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -TAKT_E_CORRUPT;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_IOERR:
		if (sqlite_rc == SQLITE_IOERR_NOMEM)
			return -ENOMEM;
		return io_code(db);
	default:
		return io_code(db);
	}
}

int takt_store_corrupt(struct takt_err *err, const char *path, const char *what)
{
	return takt_err_set(err, -TAKT_E_CORRUPT,
			    "database '%s' is damaged (%s) and was left as it is; 'takt admin "
			    "restore' puts the newest backup in its place",
			    path, what);
}

int takt_sqlite_err(struct takt_err *err, sqlite3 *db, int sqlite_rc, const char *what,
		    const char *path)
{
	int extended = db ? sqlite3_extended_errcode(db) : sqlite_rc;
	int rc = takt_sqlite_code(db, sqlite_rc);

	if (rc == -TAKT_E_CORRUPT)
		rc = takt_store_corrupt(err, path, sqlite3_errstr(extended));
	else
		rc = takt_err_set(err, rc, "%s '%s' (SQLite %d)", what, path, extended);
	if (err)
		err->vendor = extended;
	return rc;
}

int takt_sqlite_exec(sqlite3 *db, const char *sql)
{
	return takt_sqlite_code(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int takt_sqlite_int(sqlite3 *db, const char *sql, int64_t *ret)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	rc = takt_sqlite_code(db, rc);
	sqlite3_finalize(stmt);
	return rc;
}

int takt_sqlite_run(sqlite3_stmt *stmt)
{
	int rc;

	do
		rc = sqlite3_step(stmt);
	while (rc == SQLITE_ROW);
	rc = takt_sqlite_code(sqlite3_db_handle(stmt), rc);
	sqlite3_reset(stmt);
	return rc;
}
