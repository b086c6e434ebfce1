/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing: claim the place, check and migrate, prepare, start the writer; and back. */
#include "store/store.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/store_impl.h"

enum {
	WRITER_STACK = 256 * 1024, /* address space; SQLite touches about 20 KiB of it */
	BUSY_MS = 5000,		   /* for a person's sqlite3 shell; takt's own do not collide */
	CHECKPOINT_FRAMES = 1000,  /* 4 MiB of log */
	MAX_GONE = 65536,
};

/* Both connections together keep about 400 KiB of pages. */
#define COMMON_PRAGMAS "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF;"
static const char writer_pragmas[] =
	COMMON_PRAGMAS "PRAGMA cache_size=-256; PRAGMA wal_autocheckpoint=0;"
		       "PRAGMA journal_size_limit=16777216; PRAGMA secure_delete=ON;";
static const char reader_pragmas[] = COMMON_PRAGMAS "PRAGMA cache_size=-128; PRAGMA query_only=ON;";

/* Until the database is known to be sound, closing it must not write to it: by default the last
 * connection copies the log back. */
static void keep_log_on_close(sqlite3 *db, int keep)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep, NULL);
}

static int connect_db(struct takt_store *store, const struct takt_store_config *config,
		      const char *pragmas, sqlite3 **ret, struct takt_err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(store->path, ret, flags, config->vfs);

	if (rc != SQLITE_OK)
		return takt_sqlite_err(err, *ret, rc, "open database", store->path);
	sqlite3_extended_result_codes(*ret, 1);
	sqlite3_busy_timeout(*ret, BUSY_MS);
	keep_log_on_close(*ret, 1);
	if (takt_sqlite_exec(*ret, pragmas) < 0)
		return takt_sqlite_err(err, *ret, sqlite3_errcode(*ret), "open database",
				       store->path);
	return 0;
}

static int open_db(struct takt_store *store, const struct takt_store_config *config,
		   struct takt_err *err)
{
	int rc = connect_db(store, config, writer_pragmas, &store->writer, err);

	if (rc == 0)
		rc = takt_store_schema_ready(store->writer, store->path, config->unsafe_no_sync,
					     err);
	if (rc == 0)
		rc = takt_store_sync_dir(store->path, store->sys, err);
	if (rc == 0)
		rc = takt_store_note_made(store->path, store->sys, err);
	if (rc == 0)
		rc = takt_store_writer_prepare(store, err);
	if (rc == 0)
		rc = connect_db(store, config, reader_pragmas, &store->reader, err);
	if (rc == 0)
		rc = takt_store_mark_files(store, err);
	if (rc == 0)
		rc = takt_store_reserve_open(store, err);
	return rc;
}

static int init_locks(struct takt_store *store)
{
	pthread_mutexattr_t recursive;
	int rc;

	if (pthread_mutexattr_init(&recursive) != 0)
		return -ENOMEM;
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	rc = pthread_mutex_init(&store->reader_lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	if (rc != 0)
		return -rc;
	pthread_mutex_init(&store->lock, NULL);
	pthread_cond_init(&store->wake, NULL);
	return 0;
}

/* All signals blocked in the writer: they are the main thread's business. */
static int start_writer(struct takt_store *store, struct takt_err *err)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WRITER_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&store->thread, &attr, takt_store_writer_main, store);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0)
		return takt_err_set(err, -rc, "start the database writer");
	pthread_setname_np(store->thread, "takt-store");
	store->thread_runs = true;
	return 0;
}

static int open_all(struct takt_store *store, const struct takt_store_config *config,
		    struct takt_err *err)
{
	int rc;

	store->path = takt_strdup(config->path);
	if (!store->path)
		return takt_err_set(err, -ENOMEM, "open '%s'", config->path);
	store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (store->event_fd < 0)
		return takt_err_set(err, -errno, "open '%s'", config->path);
	rc = takt_store_claim(config, store->sys, true, &store->lock_fd, err);
	if (rc == 0)
		rc = open_db(store, config, err);
	if (rc < 0)
		return rc;
	keep_log_on_close(store->writer, 0);
	keep_log_on_close(store->reader, 0);
	rc = takt_store_load_gone(store, err);
	return rc < 0 ? rc : start_writer(store, err);
}

void takt_store_keep_ended(struct takt_store *store, uint32_t keep_ended)
{
	store->keep_ended = keep_ended ? keep_ended : TAKT_STORE_KEEP_ENDED;
}

void takt_store_keep_bytes(struct takt_store *store, uint64_t keep_bytes)
{
	store->keep_bytes = keep_bytes;
}

int takt_store_open(const struct takt_store_config *config, struct takt_store **ret,
		    struct takt_err *err)
{
	struct takt_store *store;
	int rc = takt_store_sqlite_init(err);

	if (rc < 0)
		return rc;
	store = takt_zalloc(sizeof(*store));
	if (!store)
		return takt_err_set(err, -ENOMEM, "open '%s'", config->path);
	store->sys = config->sys ? config->sys : takt_sys_real();
	takt_store_keep_ended(store, config->keep_ended);
	takt_store_keep_bytes(store, config->keep_bytes);
	store->checkpoint_frames =
		config->checkpoint_frames ? config->checkpoint_frames : CHECKPOINT_FRAMES;
	store->lock_fd = store->event_fd = store->reserve.fd = -1;
	store->reserve.bytes = config->reserve_bytes;
	store->gone.max = MAX_GONE;
	takt_store_list_init(&store->pending);
	takt_store_list_init(&store->done);
	rc = init_locks(store);
	if (rc < 0) {
		takt_free(store);
		return takt_err_set(err, rc, "open '%s'", config->path);
	}
	rc = open_all(store, config, err);
	if (rc < 0) {
		takt_store_close(store);
		return rc;
	}
	*ret = store;
	return 0;
}

static void stop_writer(struct takt_store *store)
{
	if (!store->thread_runs)
		return;
	pthread_mutex_lock(&store->lock);
	store->stopping = true;
	pthread_cond_signal(&store->wake);
	pthread_mutex_unlock(&store->lock);
	pthread_join(store->thread, NULL);
}

void takt_store_close(struct takt_store *store)
{
	if (!store)
		return;
	stop_writer(store);
	for (size_t i = 0; i < TAKT_STMT_COUNT; i++)
		sqlite3_finalize(store->stmt[i]);
	sqlite3_close(store->reader);
	sqlite3_close(store->writer);
	takt_store_reserve_close(store);
	takt_store_list_free(&store->pending);
	takt_store_list_free(&store->done);
	takt_vec_fini(&store->gone);
	pthread_cond_destroy(&store->wake);
	pthread_mutex_destroy(&store->lock);
	pthread_mutex_destroy(&store->reader_lock);
	if (store->event_fd >= 0)
		(void)close(store->event_fd);
	if (store->lock_fd >= 0)
		(void)store->sys->close(store->sys, store->lock_fd);
	takt_free(store->path);
	takt_free(store);
}
