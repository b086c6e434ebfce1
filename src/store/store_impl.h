/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store share, and nobody else reads: the object, the queue between posters
 * and the writer, and the few helpers around SQLite.
 *
 * Two connections. The writer's belongs to the writer thread once that runs. The reader's is
 * guarded by `reader_lock`, recursive so that a walk's callback may read too. `lock` guards the
 * queue and is never held while SQLite works, so that posting never waits for the disk.
 */
#ifndef TAKT_STORE_STORE_IMPL_H
#define TAKT_STORE_STORE_IMPL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "store/store.h"
#include "store/store_admin.h"

enum takt_store_kind {
	TAKT_STORE_INSERT,
	TAKT_STORE_UPDATE,
	TAKT_STORE_DECISION,
	TAKT_STORE_KEEP,
	TAKT_STORE_FINISHED, /* of any kind: only the outcome is left */
};

/* One posted change, first with what to write, later with how it went; the same memory serves
 * both, so that reporting an outcome cannot run out of it. */
struct takt_store_change {
	struct takt_store_change *next;
	enum takt_store_kind kind;
	int64_t ticket; /* 0: nobody waits for it (a decision) */
	uint64_t tag;
	int rc;	      /* of the row itself, once applied */
	bool put_off; /* what there is room for is for others */
	size_t bytes; /* its share of queued_bytes */
	union {
		struct takt_job job; /* owns its strings */
		struct {
			uint64_t version;
			char *snapshot_json, *plan_json; /* owned */
		} decision;
		struct {
			char *key, *text; /* owned; text NULL = forget */
		} kept;
		char message[160]; /* once finished */
	} u;
};

struct takt_store_list {
	struct takt_store_change *first, **end; /* end: where the next one is linked */
	size_t len;
};

enum takt_store_stmt {
	TAKT_STMT_BEGIN,
	TAKT_STMT_COMMIT,
	TAKT_STMT_INSERT_JOB,
	TAKT_STMT_INSERT_SPEC,
	TAKT_STMT_INSERT_ENV,
	TAKT_STMT_UPDATE_JOB,
	TAKT_STMT_INSERT_DECISION,
	TAKT_STMT_KEEP,
	TAKT_STMT_FORGET,
	TAKT_STMT_TRIM_DECISIONS,
	TAKT_STMT_FENCE,
	TAKT_STMT_PRUNE,
	TAKT_STMT_COUNT
};

enum {
	TAKT_STORE_FILES = 4
};

/* Which file a name led to; inode 0 = none. */
struct takt_store_mark {
	dev_t device;
	ino_t inode;
};

/* See store_reserve.c. */
struct takt_store_reserve {
	uint64_t bytes; /* when it is whole; 0 = there is none */
	uint64_t held;	/* now */
	int fd;		/* -1 = none */
	_Atomic bool short_of_room;
	_Atomic enum takt_store_errand errand;
};

struct takt_store {
	char *path; /* owned */
	const struct takt_sys *sys;
	_Atomic uint32_t keep_ended;
	_Atomic uint64_t keep_bytes;
	uint32_t checkpoint_frames;
	int lock_fd;
	struct takt_store_mark marks[TAKT_STORE_FILES]; /* as they were when it was opened */

	sqlite3 *writer;
	sqlite3_stmt *stmt[TAKT_STMT_COUNT]; /* of writer */
	uint32_t wal_frames;		     /* in the WAL after the last commit */
	struct takt_store_reserve reserve;   /* the writer's, but for what is atomic */
	size_t bytes_unpruned;		     /* of jobs inserted since then */
	uint32_t ended_unpruned;	     /* jobs ended since history was last cut to size */

	sqlite3 *reader;
	pthread_mutex_t reader_lock;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct takt_store_list pending, done;
	size_t outstanding;		       /* tickets posted and not taken back */
	size_t queued_bytes;		       /* texts of pending */
	size_t pending_decisions;	       /* of pending */
	TAKT_VEC(struct takt_store_gone) gone; /* cut from history and not yet taken */
	int64_t last_ticket;
	bool stopping;
	int event_fd; /* readable while done is not empty */

	pthread_t thread;
	bool thread_runs;
};

/* store_sqlite.c */
/* Our code for an SQLite result: FULL is -ENOSPC, and so on; 0 for OK, ROW and DONE. */
int takt_sqlite_code(sqlite3 *db, int sqlite_rc);
/* The error of a damaged database: what is wrong with it, and what to do. */
int takt_store_corrupt(struct takt_err *err, const char *path, const char *what);
/* Sets err from the connection's last error: "<what> '<path>' (SQLite <extended code>)". */
int takt_sqlite_err(struct takt_err *err, sqlite3 *db, int sqlite_rc, const char *what,
		    const char *path);
/* Runs SQL that returns no rows; 0 or our code. */
int takt_sqlite_exec(sqlite3 *db, const char *sql);
/* First column of the first row; *ret untouched and 0 when there is none. */
int takt_sqlite_int(sqlite3 *db, const char *sql, int64_t *ret);
/* Runs a prepared statement to its end and resets it; 0 or our code. */
int takt_sqlite_run(sqlite3_stmt *stmt);

/* store_prune.c */
enum {
	TAKT_STORE_PRUNE_EVERY = 256,		  /* ended jobs */
	TAKT_STORE_PRUNE_BYTES = 4 * 1024 * 1024, /* or of descriptions */
};
/* The writer's; best effort, since the next round tries again. */
void takt_store_prune(struct takt_store *store);
/* Those that were cut before this start and of whom something may be left. */
int takt_store_load_gone(struct takt_store *store, struct takt_err *err);

/* store_place.c */
/* Name of a network file system by statfs magic, NULL for others. */
const char *takt_store_network_fs(unsigned long magic);
/* Checks the file system and takes the lock; with `make` there is then a database file, 0600, which
 * may be empty where there was none before: else -ENOENT. *ret_lock_fd: the caller closes. */
int takt_store_claim(const struct takt_store_config *config, const struct takt_sys *sys, bool make,
		     int *ret_lock_fd, struct takt_err *err);
/* Makes the names of the database's files in their directory durable. */
int takt_store_sync_dir(const char *path, const struct takt_sys *sys, struct takt_err *err);
/* On record, durably, from now on: there is a database. After takt_store_sync_dir. */
int takt_store_note_made(const char *path, const struct takt_sys *sys, struct takt_err *err);

/* store_reserve.c: makes or finds the file and fills it as far as there is room; gives a part of it
 * back, false = there is none; does what it was asked to, and makes it whole if it can. */
int takt_store_reserve_open(struct takt_store *store, struct takt_err *err);
void takt_store_reserve_close(struct takt_store *store);
bool takt_store_reserve_give(struct takt_store *store);
void takt_store_reserve_tend(struct takt_store *store);

/* store_look.c: remembers which files it has open. */
int takt_store_mark_files(struct takt_store *store, struct takt_err *err);

/* store_schema.c */
/* Of what an open database may be made usable: checks it, then brings it to the newest schema. */
int takt_store_schema_ready(sqlite3 *db, const char *path, bool no_sync, struct takt_err *err);

/* Whose it is and whether it is sound; changes nothing. Refuses one of a newer takt. */
int takt_store_schema_look(sqlite3 *db, const char *path, int64_t *ret_version,
			   struct takt_err *err);

/* job_row.c */
#define TAKT_SQL_LIVE  "state IN ('waiting', 'starting', 'running', 'stopping')"
#define TAKT_SQL_ENDED "state IN ('done', 'failed', 'cancelled', 'lost', 'interrupted')"
extern const char takt_sql_insert_job[], takt_sql_update_job[];
#define TAKT_SQL_JOB_COLUMNS                                                                     \
	"state, attempt, gpu_mask, submitted_ns, started_ns, ended_ns, exit_code, exit_signal, " \
	"message, cancel_wanted, simulated, wall_ns, energy_mj, energy_why_not, mean_sm_mhz, "   \
	"throttled_ns, throttle_reasons, peak_memory_bytes, held, priority, "                    \
	"timed_out, restarts, failures, retry_at_ns, mean_util_permille, idle_ns, "              \
	"share_milli, mem_held_mib, mig, mps_limited, preemptions, frozen, lost_ns, staged, "    \
	"evict, "                                                                                \
	"evict_for, evict_at_ns, checkpoint_ns, "                                                \
	"gap_driver_ns, gap_scheduler_ns, gap_start_ns, "                                        \
	"governor, work_signal, governed_mj, highest_mj, highest_error_permille, "               \
	"slowdown_permille, slowdown_error_permille, "                                           \
	"max_slowdown_permille, clock_policy, sm_spread_mhz, gpu_uuids, "                        \
	"cause, cause_gpu, cause_xid, cause_at_ns, time_limit_ms"
#define TAKT_SQL_SELECT_JOB                                                    \
	"SELECT id, " TAKT_SQL_JOB_COLUMNS                                     \
	", submit_seq, uid, gid, env_of, spec.json, environment.json FROM job" \
	" JOIN spec ON spec.job_id = id LEFT JOIN environment ON environment.job_id = id "
/* Binds what both the insert and the update take; texts are borrowed until the statement ran. */
void takt_job_bind(sqlite3_stmt *stmt, const struct takt_job *job, bool whole);
/* Fills *ret from the current row of a TAKT_SQL_SELECT_JOB; its strings are borrowed until the next
 * step. -TAKT_E_CORRUPT. */
int takt_job_from_row(sqlite3_stmt *stmt, struct takt_job *ret, struct takt_err *err);

/* store_queue.c */
void takt_store_list_init(struct takt_store_list *list);
void takt_store_list_free(struct takt_store_list *list);
/* Waits for work and moves one batch out of `pending`, an empty one for an errand; false when
 * stopping and nothing is left. */
bool takt_store_take_batch(struct takt_store *store, struct takt_store_list *ret_batch);
/* Notes the outcome in the change and lets go of its texts. */
void takt_store_change_finish(struct takt_store_change *change, int rc, const char *message);
/* Hands finished changes to takt_store_completions. Empties *batch. */
void takt_store_report(struct takt_store *store, struct takt_store_list *batch);

/* store_writer.c */
int takt_store_writer_prepare(struct takt_store *store, struct takt_err *err);
void *takt_store_writer_main(void *store);

/* store_copy.c */
/* A database in a folder of the caller's alone, 0700, for what SQLite has to do. */
struct takt_store_scratch {
	char dir[32], db[48];
	int fd; /* of the database, empty at first */
};
int takt_store_scratch_make(struct takt_store_scratch *ret, struct takt_err *err);
/* Nothing is left of it; also of one that could not be made. */
void takt_store_scratch_drop(struct takt_store_scratch *scratch);

/* A database that a user has named, at a name that SQLite may open: its own where none but the
 * caller and root may write, else that of a copy. */
struct takt_store_source {
	const char *at; /* borrowed, or the scratch's: the struct stays where it is */
	int fd;
	struct takt_store_scratch scratch;
};
/* -TAKT_E_CORRUPT for what is no regular file. */
int takt_store_source_open(const char *path, struct takt_store_source *ret, struct takt_err *err);
void takt_store_source_close(struct takt_store_source *source);

/* The bytes of a database that is done, on disk. */
int takt_store_copy_fill(struct takt_store_copy *copy, const struct takt_store_scratch *from,
			 struct takt_err *err);

#endif
