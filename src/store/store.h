/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: jobs on disk before they are accepted. SQLite in WAL mode with synchronous=FULL, one
 * writer thread that takes everything posted since its last commit into one transaction (group
 * commit) and then reports all of it as durable. The daemon keeps the live queue in memory; the
 * store is what it is rebuilt from, and the history.
 *
 * Refuses network file systems (locks and fsync are not to be trusted there), a database of a newer
 * schema, and one that fails its check. All SQLite memory comes from base/mem.h; its files go
 * through a VFS that tests replace.
 */
#ifndef TAKT_STORE_STORE_H
#define TAKT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/timetypes.h"

enum takt_job_state {
	TAKT_JOB_WAITING,
	TAKT_JOB_STARTING, /* an attempt was handed to the engine */
	TAKT_JOB_RUNNING,
	TAKT_JOB_STOPPING, /* cancelled while it ran: SIGTERM sent */
	TAKT_JOB_DONE,	   /* exited 0 */
	TAKT_JOB_FAILED,   /* exited otherwise, or could not be started */
	TAKT_JOB_CANCELLED,
	TAKT_JOB_LOST,	      /* its shim was killed; how it ended is not known */
	TAKT_JOB_INTERRUPTED, /* the machine went down under it */
	TAKT_JOB_STATE_COUNT
};
const char *takt_job_state_name(enum takt_job_state state); /* "waiting", ... */
bool takt_job_state_ended(enum takt_job_state state);

/* What the report says; each with its valid bit. */
enum takt_report_has {
	TAKT_REPORT_ENERGY = 1u << 0,
	TAKT_REPORT_MEAN_SM = 1u << 1,
	TAKT_REPORT_THROTTLED = 1u << 2,
	TAKT_REPORT_PEAK_MEMORY = 1u << 3,
	TAKT_REPORT_WALL = 1u << 4,
};
struct takt_job_report {
	uint32_t has;
	bool simulated;
	uint64_t wall_ns;
	uint64_t energy_mj;	 /* all its GPUs */
	char energy_why_not[64]; /* "shared GPU", "shorter than 20 counter periods", ... when ENERGY
				    is absent */
	uint32_t mean_sm_mhz;
	uint64_t throttled_ns;	    /* summed over its GPUs, idle not counted */
	uint64_t throttle_reasons;  /* enum takt_throttle bits seen */
	uint64_t peak_memory_bytes; /* largest of one GPU */
};

/* A row: everything about a job that survives. Strings owned. */
struct takt_job {
	uint64_t id;
	uint64_t submit_seq;
	uid_t uid;
	gid_t gid;
	enum takt_job_state state;
	char *spec_json;			    /* codec/jobspec.h form, environment included */
	uint32_t attempt;			    /* 0 before the first */
	uint64_t gpu_mask;			    /* of the latest attempt */
	struct takt_wall submitted, started, ended; /* 0 = not yet */
	int exit_code;				    /* DONE, FAILED */
	int exit_signal;			    /* 0 = none */
	char *message;		       /* what went wrong, "" when nothing; NULL = "" */
	bool cancel_wanted;	       /* somebody asked; kept over a restart */
	struct takt_job_report report; /* has = 0 before the end */
};
void takt_job_fini(struct takt_job *job);

struct takt_store;

struct takt_store_config {
	const char *path;      /* of the database file; its directory must exist */
	const char *vfs;       /* NULL = SQLite's default; tests name theirs */
	bool allow_network_fs; /* tests only */
};

/* Opens, checks, migrates, starts the writer. -TAKT_E_CORRUPT: the message says what to do and
 * nothing was touched. -TAKT_E_UNSUPPORTED: network file system. -TAKT_E_BUSY: another daemon has
 * it. */
int takt_store_open(const struct takt_store_config *config, struct takt_store **ret,
		    struct takt_err *err);
/* Commits what was posted, then closes. NULL is fine. */
void takt_store_close(struct takt_store *store);

/*
 * Post a change; it is durable when takt_store_completions() reports its ticket. Changes of one
 * poster are applied in order. The job is copied. insert: a new row (id and submit_seq chosen by
 * the caller from takt_store_next_ids). update: replaces the row with that id but for id,
 * submit_seq, uid, gid and spec_json. Returns a ticket > 0, or -TAKT_E_LIMIT when more than 100,000
 * changes are outstanding, -ENOMEM.
 */
int64_t takt_store_insert(struct takt_store *store, const struct takt_job *job,
			  struct takt_err *err);
int64_t takt_store_update(struct takt_store *store, const struct takt_job *job,
			  struct takt_err *err);

/* Readable when completions are waiting. Borrowed until close. */
int takt_store_fd(const struct takt_store *store);

struct takt_store_completion {
	int64_t ticket;
	int rc; /* 0 durable; -ENOSPC, -EIO, ...: nothing of this change was kept */
	char message[160];
};
/* Takes up to max finished tickets, in posting order; returns how many. Never blocks. */
size_t takt_store_completions(struct takt_store *store, struct takt_store_completion *ret,
			      size_t max);

/* First free job id and submit_seq (both rise by one a job). Ask once after open. */
int takt_store_next_ids(struct takt_store *store, uint64_t *ret_job_id, uint64_t *ret_submit_seq,
			struct takt_err *err);

/* Reads see committed rows only; synchronous, from any thread. The job handed to `each` is borrowed
 * for the call. live: every job that has not ended, by submit_seq. history: newest first. */
int takt_store_each_live(struct takt_store *store,
			 int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			 struct takt_err *err);
int takt_store_each_history(struct takt_store *store, uint32_t limit,
			    int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			    struct takt_err *err);
/* One row. *ret is filled (caller finis). -TAKT_E_NOT_FOUND. */
int takt_store_get(struct takt_store *store, uint64_t job_id, struct takt_job *ret,
		   struct takt_err *err);

/* Inputs of decisions, kept bounded (newest 4,000): the scheduler's snapshot in codec form when a
 * plan was made of it. Best effort: not awaited by anybody. */
int takt_store_decision(struct takt_store *store, uint64_t version, const char *snapshot_json,
			const char *plan_json, struct takt_err *err);

#endif
