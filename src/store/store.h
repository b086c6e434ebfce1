/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: jobs on disk before they are accepted. SQLite in WAL mode with synchronous=FULL, one
 * writer thread that takes everything posted since its last commit into one transaction (group
 * commit) and then reports all of it as durable. The daemon keeps the live queue in memory; the
 * store is what it is rebuilt from, and the history.
 *
 * Refuses network file systems (locks and fsync are not to be trusted there), a database of a newer
 * schema, and one that fails its check. All SQLite memory comes from base/mem.h; its files go
 * through a VFS that tests replace. docs/store.md has the file's format and what survives what.
 */
#ifndef TAKT_STORE_STORE_H
#define TAKT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/policy_text.h"
#include "base/sys.h"
#include "base/timetypes.h"

enum {
	TAKT_STORE_MAX_OUTSTANDING = 100000,		/* changes posted and not yet taken back */
	TAKT_STORE_MAX_QUEUED_BYTES = 32 * 1024 * 1024, /* texts that wait for their commit */
	TAKT_STORE_MAX_SPEC = 2 * 1024 * 1024, /* bytes of one spec_json, of one env_json */
	TAKT_STORE_MAX_DECISION = 1024 * 1024, /* bytes of a decision's two texts together */
	TAKT_STORE_MAX_BATCH = 4096,	       /* changes in one commit */
	TAKT_STORE_KEEP_DECISIONS = 4000,
	TAKT_STORE_MAX_KEY = 200,
	TAKT_STORE_MAX_KEPT = 256 * 1024,
	TAKT_STORE_KEEP_ENDED = 100000, /* default of takt_store_config.keep_ended */
};

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

/* What ended an attempt, beside how it exited. */
enum takt_cause {
	TAKT_CAUSE_NONE,	/* nothing is known but how it exited */
	TAKT_CAUSE_GPU_LOST,	/* a GPU of it is lost */
	TAKT_CAUSE_GPU_FAULT,	/* an XID that is the GPU's fault, or its board's */
	TAKT_CAUSE_GPU_ERROR,	/* an XID that programs bring about: a wrong address, say */
	TAKT_CAUSE_GPU_MEMORY,	/* it could not have as much GPU memory as it asked for */
	TAKT_CAUSE_HOST_MEMORY, /* the kernel ended it for want of memory */
	TAKT_CAUSE_TIME_LIMIT,
	TAKT_CAUSE_NODE_REBOOT,
	TAKT_CAUSE_IDLE_RELEASE,
	TAKT_CAUSE_PREEMPTED,	/* for the job in evict_for */
	TAKT_CAUSE_MAINTENANCE, /* its GPUs are kept from now on */
	TAKT_CAUSE_REQUEUED,	/* somebody wanted it to begin anew */
	TAKT_CAUSE_CANCELLED,
	TAKT_CAUSE_DEPENDENCY,	/* what it comes after ended badly */
	TAKT_CAUSE_NOT_STARTED, /* its program could not be executed */
	TAKT_CAUSE_TAKT_DIED,	/* what takt had watch over it was killed */
	TAKT_CAUSE_COUNT
};
const char *takt_cause_name(enum takt_cause cause); /* "", "gpu_lost", ... */

struct takt_job_cause {
	enum takt_cause cause;
	int32_t gpu;	     /* of GPU_*; -1 = which one is not known */
	uint32_t xid;	     /* of GPU_*; 0 = none was heard */
	struct takt_wall at; /* of GPU_*: when takt saw it; 0 = not known */
};

/* Who keeps a waiting job from starting. An administrator's hold is not the owner's to lift. */
enum takt_job_hold {
	TAKT_HOLD_NONE,
	TAKT_HOLD_OWNER,
	TAKT_HOLD_ADMIN,
	TAKT_HOLD_COUNT
};
const char *takt_job_hold_name(enum takt_job_hold hold); /* "", "owner", "admin" */

/* What the report says; each with its valid bit. */
enum takt_report_has {
	TAKT_REPORT_ENERGY = 1u << 0,
	TAKT_REPORT_MEAN_SM = 1u << 1,
	TAKT_REPORT_THROTTLED = 1u << 2,
	TAKT_REPORT_PEAK_MEMORY = 1u << 3,
	TAKT_REPORT_WALL = 1u << 4,
	TAKT_REPORT_UTIL = 1u << 5,
	TAKT_REPORT_HANDOVER = 1u << 6,
	TAKT_REPORT_SAVED = 1u << 7,
	TAKT_REPORT_SM_SPREAD = 1u << 8,
};
struct takt_job_report {
	uint32_t has;
	bool simulated;
	uint64_t wall_ns;
	uint64_t energy_mj;	 /* all its GPUs */
	char energy_why_not[64]; /* "shared GPU", "shorter than 20 counter periods", ... when ENERGY
				    is absent */
	uint32_t mean_sm_mhz;
	uint32_t sm_spread_mhz; /* of several GPUs: the highest of their means less the lowest */
	uint64_t throttled_ns;	/* summed over its GPUs, idle not counted */
	/* HANDOVER, of a job that waited for a GPU to become clean: from the end of the one before
	 * it until that was so; from there until the engine had its start; until it ran. */
	uint64_t gap_driver_ns, gap_scheduler_ns, gap_start_ns;
	uint64_t throttle_reasons;   /* enum takt_throttle bits seen */
	uint64_t peak_memory_bytes;  /* largest of one GPU */
	uint32_t mean_util_permille; /* UTIL: of its GPUs, over time */
	uint64_t idle_ns;	     /* UTIL: summed over its GPUs, held and nothing ran */
	char governor[32];	     /* that chose its clocks; "" = none did */
	/* SAVED: what that came to, over the epochs that tell (clock/savings.h). */
	uint32_t work_signal; /* enum takt_governor_signal that it rests on */
	uint64_t governed_mj; /* measured, all its GPUs */
	uint64_t highest_mj;  /* modelled: the same work at the highest clock */
	uint32_t highest_error_permille;
	int32_t slowdown_permille; /* negative: it was faster */
	uint32_t slowdown_error_permille;
};

/* A row: everything about a job that survives. Strings owned. id and submit_seq are 1..INT64_MAX.
 */
struct takt_job {
	uint64_t id;
	uint64_t submit_seq;
	uid_t uid;
	gid_t gid;
	enum takt_job_state state;
	char *spec_json;   /* codec/jobspec.h form, without the environment */
	char *env_json;	   /* the environment, kept apart until the end; NULL = none on record */
	uint64_t env_of;   /* whose environment it has: that of the job of this number, which may
			      be over; 0 = its own */
	uint32_t attempt;  /* 0 before the first */
	uint64_t gpu_mask; /* of the latest attempt */
	char *gpu_uuids; /* of gpu_mask, lowest first, separated by commas: numbers may change over
			    a reboot; NULL = "", not on record */
	uint32_t share_milli;  /* held of each GPU of gpu_mask; 1000 = whole, 0 = MIG instances */
	uint32_t mem_held_mib; /* reserved on each, of a share; 0 = not counted */
	char *mig;	       /* their UUIDs, separated by commas; NULL = "", none */
	struct takt_wall submitted, started, ended; /* 0 = not yet */
	int exit_code;				    /* DONE, FAILED */
	int exit_signal;			    /* 0 = none */
	char *message;	    /* what went wrong, "" when nothing; NULL = "" */
	bool cancel_wanted; /* somebody asked; kept over a restart */
	enum takt_job_hold held;
	int32_t priority; /* as it is now; the description has what was asked for */
	struct takt_job_promise {
		bool changed; /* what follows counts, not the description */
		uint32_t max_slowdown_permille;
		char clock_policy[TAKT_POLICY_TEXT];
	} promise;
	struct takt_job_limit {
		bool changed;	  /* what follows counts, not the description */
		uint64_t time_ms; /* of each attempt; 0 = none */
	} limit;
	bool timed_out; /* stopped because its time limit was over */
	/* Why it is being ended, or of the attempt that ended last, why that did. */
	struct takt_job_cause cause;
	uint32_t restarts;	   /* attempts that ran, or may have, before the latest */
	uint32_t failures;	   /* of those, ended badly by themselves */
	struct takt_wall retry_at; /* not tried again before; 0 = no such wait */
	bool mps_limited;	   /* the latest attempt is held to mem_held_mib by MPS */
	uint32_t preemptions;	   /* attempts that were ended for other jobs */
	bool frozen;		   /* its processes stand still, because somebody said so */
	uint64_t stood_ns; /* of this attempt's time, frozen for other jobs; once it is over, by
			      its owner too, INT64_MAX = nobody knows */
	bool staged;	/* WAITING: the latest attempt has no GPUs yet, but may be there and wait */
	uint32_t evict; /* it has to go for others: 1 decided (or was, and an earlier takt may have
			   told it), 2 told, 3 told for good; 4 to be frozen instead, 5 frozen;
			   6 it is to begin anew, as was asked */
	uint64_t evict_for;		/* the job that it makes, or made, room for; 0 = none */
	struct takt_wall evict_at;	/* when that was decided, told or done; 0 = it was not */
	struct takt_wall checkpoint_at; /* of this run: what it did until then is safe; 0 = none */
	struct takt_job_report report;	/* has = 0 before the end */
};
void takt_job_fini(struct takt_job *job);

struct takt_store;

struct takt_store_config {
	const char *path;	    /* of the database file; its directory must exist */
	const struct takt_sys *sys; /* NULL = the real one; borrowed until close */
	uint64_t keep_bytes;	    /* of the database before the oldest go; 0 = any */
	uint32_t keep_ended;	    /* newest ended jobs that history keeps; 0 = the default */
	uint64_t reserve_bytes;	    /* set aside for a full disk; 0 = nothing is */
	uint32_t checkpoint_frames; /* pages in the log that start a checkpoint; 0 = 1,000 */
	const char *vfs;	    /* NULL = SQLite's default; tests name theirs */
	bool allow_network_fs;	    /* tests only */
	bool unsafe_no_sync;	    /* tests only: proves that the power-loss campaign can fail */
};

/*
 * Gives SQLite takt's allocator. Must come before any other use of SQLite in the process, once;
 * further calls do nothing. takt_store_open does it itself, so only who touches SQLite earlier (a
 * test that registers a VFS) calls it. -TAKT_E_BUSY: SQLite was in use already.
 */
int takt_store_sqlite_init(struct takt_err *err);

/*
 * Opens, checks, migrates, starts the writer. Creates "<path>", 0600, and beside it "<path>.lock"
 * (whose holder owns the store), "<path>-wal" and "<path>-shm". -TAKT_E_CORRUPT: damaged, or not a
 * database of takt's; the message says what to do and database and WAL are as they were.
 * -TAKT_E_VERSION: written by a newer takt. -TAKT_E_UNSUPPORTED: network file system. -TAKT_E_BUSY:
 * another daemon has it.
 */
int takt_store_open(const struct takt_store_config *config, struct takt_store **ret,
		    struct takt_err *err);
/* So many of the newest ended jobs from the next cut on; 0 = the default. */
void takt_store_keep_ended(struct takt_store *store, uint32_t keep_ended);
void takt_store_keep_bytes(struct takt_store *store, uint64_t keep_bytes);
/* Whether the names of its files still lead to the files that it has open. -TAKT_E_MOVED: one does
 * not, which one, and what to do. */
int takt_store_look(const struct takt_store *store, struct takt_err *err);
/*
 * The disk is full: what was set aside is in use, and until it is whole again inserts are refused
 * (-ENOSPC), while updates are written. Somebody has to ask now and then whether it can be: with
 * MAKE_WHOLE. GIVE_ROOM gives a part of it to others who have promises to keep on this disk. Both
 * only ask; from any thread.
 */
enum takt_store_errand {
	TAKT_STORE_NO_ERRAND,
	TAKT_STORE_MAKE_WHOLE,
	TAKT_STORE_GIVE_ROOM,
};
bool takt_store_is_short(const struct takt_store *store);
void takt_store_ask(struct takt_store *store, enum takt_store_errand errand);
/* Commits what was posted, then closes. NULL is fine. */
void takt_store_close(struct takt_store *store);

/*
 * Post a change; it is durable when takt_store_completions() reports its ticket. Changes are
 * applied in the order they were posted, from any thread. The job is copied. insert: a new row (id
 * and submit_seq chosen by the caller from takt_store_next_ids; spec_json not NULL). update:
 * replaces the row with that id but for submit_seq, uid, gid, env_of, spec_json and env_json (which
 * may be NULL); one that ends the job deletes its environment, a shared one with the last job that
 * has it.
 * `tag` is the poster's own word and comes back with the outcome, so that he needs no table of
 * tickets. Returns a ticket > 0, or -TAKT_E_LIMIT (see the limits above), -EINVAL (a field is out
 * of range), -ENOMEM; never waits for the disk.
 */
int64_t takt_store_insert(struct takt_store *store, const struct takt_job *job, uint64_t tag,
			  struct takt_err *err);
int64_t takt_store_update(struct takt_store *store, const struct takt_job *job, uint64_t tag,
			  struct takt_err *err);

/*
 * What an administrator has said and what outlives the daemon: a small text by key ("gpu/UUID").
 * `text` replaces what the key had, NULL forgets it. Otherwise as the changes above; a key has at
 * most TAKT_STORE_MAX_KEY bytes, a text TAKT_STORE_MAX_KEPT.
 */
int64_t takt_store_keep(struct takt_store *store, const char *key, const char *text, uint64_t tag,
			struct takt_err *err);
/* All whose key begins with `prefix`, by key. As the reads below. */
int takt_store_each_kept(struct takt_store *store, const char *prefix,
			 int (*each)(void *ctx, const char *key, const char *text), void *ctx,
			 struct takt_err *err);

/* Readable when completions are waiting. Borrowed until close. */
int takt_store_fd(const struct takt_store *store);

struct takt_store_completion {
	int64_t ticket;
	uint64_t tag; /* as posted */
	/*
	 * 0: durable. -EEXIST (insert), -TAKT_E_NOT_FOUND (update): this change alone was refused.
	 * -ENOSPC of an insert: no room for new jobs; others of its commit may be durable.
	 * -ENOSPC, -EIO, -ENOMEM, ...: its whole commit failed; nothing of the change is in effect,
	 * later commits are tried as usual, and posting it again is right.
	 */
	int rc;
	char message[160]; /* as takt_err.msg; "" when durable */
};
/* Takes up to max finished tickets, in posting order; returns how many. Never waits for the disk.
 */
size_t takt_store_completions(struct takt_store *store, struct takt_store_completion *ret,
			      size_t max);

/* Tickets given and not yet taken back; 0 = everything posted was answered. */
size_t takt_store_outstanding(struct takt_store *store);

/* A job that history has let go of, with how many attempts it had. */
struct takt_store_gone {
	uint64_t job_id;
	uint32_t attempts;
};
/* Takes up to max of those that were cut from history, for whoever keeps something of theirs
 * elsewhere; returns how many. At most 65,536 wait to be taken. Each that had attempts is said
 * again after the next start, until it is forgotten. */
size_t takt_store_gone(struct takt_store *store, struct takt_store_gone *ret, size_t max);

/* Nothing of it is left elsewhere. 0, or why that could not be posted (tag 0). */
int takt_store_forget_gone(struct takt_store *store, uint64_t job_id, struct takt_err *err);

/* Whether so many bytes more of texts would leave room for those of others: half of what may wait
 * for the disk is not used then. */
bool takt_store_has_room(struct takt_store *store, size_t bytes);

/* First free job id and submit_seq (both rise by one a job). Ask once after open. */
int takt_store_next_ids(struct takt_store *store, uint64_t *ret_job_id, uint64_t *ret_submit_seq,
			struct takt_err *err);

/*
 * Reads see committed rows only; synchronous, from any thread, and do not wait for a commit. What
 * `each` is handed is borrowed for the call; it must not dawdle (other readers wait, the WAL
 * grows). A negative return of its ends the walk and is returned, err left to it. live: every job
 * that has not ended, by submit_seq. history: ended jobs, the last submitted first, but for those
 * whose description is over `spec_most` bytes (0: all), which is not read. A row that makes no
 * sense is -TAKT_E_CORRUPT with the job's id.
 */
int takt_store_each_live(struct takt_store *store,
			 int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			 struct takt_err *err);
int takt_store_each_history(struct takt_store *store, uint32_t limit, uint32_t spec_most,
			    int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			    struct takt_err *err);
/* Of the ended jobs those that fit, by number from the highest down; as the reads above, but a part
 * at a time: it ends after `limit` of them, some 20,000 that were looked at, 5 MiB that were read
 * or 50 ms, and at least one was looked at. *ret_next is the number below which there may be more
 * (the next part's before_id), 0 when there is none. */
struct takt_store_past {
	uint64_t before_id;	/* lower numbers only; 0 = from the newest */
	struct takt_wall since; /* ended, or else started or submitted, not before; 0 = any */
	struct takt_wall until; /* and before this; 0 = any */
	int64_t uid;		/* -1 = any */
	int32_t gpu;		/* that the latest attempt had; -1 = any */
	const char *states;	/* names, commas between them; NULL = any */
	uint32_t limit;
};
int takt_store_each_past(struct takt_store *store, const struct takt_store_past *past,
			 int (*each)(void *ctx, const struct takt_job *job), void *ctx,
			 uint64_t *ret_next, struct takt_err *err);
/* An environment that jobs share (env_of), as JSON; owned by the caller, NULL = none on record. May
 * be asked from within a walk. */
int takt_store_environment(struct takt_store *store, uint64_t env_of, char **ret,
			   struct takt_err *err);
/* One row. *ret is filled (caller finis). -TAKT_E_NOT_FOUND. */
int takt_store_get(struct takt_store *store, uint64_t job_id, struct takt_job *ret,
		   struct takt_err *err);

/*
 * Inputs of decisions, kept bounded (newest 4,000): the scheduler's snapshot in codec form when a
 * plan was made of it. Best effort: not awaited by anybody. They ride on the next commit of a job
 * and cause one of their own only when several wait or the store closes.
 */
int takt_store_decision(struct takt_store *store, uint64_t version, const char *snapshot_json,
			const char *plan_json, struct takt_err *err);
struct takt_store_decision_row {
	uint64_t version;
	const char *snapshot_json, *plan_json;
};
/* Newest first; as the reads above. */
int takt_store_each_decision(struct takt_store *store, uint32_t limit,
			     int (*each)(void *ctx, const struct takt_store_decision_row *row),
			     void *ctx, struct takt_err *err);

/* The same of a database that is only looked at, by its path: no store is opened, nothing locked,
 * migrated or written, and a daemon may be using it. A negative return of `each` ends the walk and
 * is returned. */
int takt_store_file_decisions(const char *path, uint32_t limit,
			      int (*each)(void *ctx, const struct takt_store_decision_row *row),
			      void *ctx, struct takt_err *err);

#endif
