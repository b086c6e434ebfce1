/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of one attempt at a job: the only truth about whether it ran.
 *
 *   JOBS/                  the daemon's; 0711 where jobs run as other users
 *   JOBS/<job>.<attempt>/  0700; the daemon's (where jobs run as other users the launcher takes it
 *                          over for root and keeps the daemon's group: 2770)
 *     lock      flock(LOCK_EX) held by the shim from before anything else until it exits; the job
 *               never holds it. Whoever looks holds it shared meanwhile, so that what he reads
 *               belongs together.
 *     spec      what to run (struct takt_attempt_spec)
 *     shim      who the shim is (struct takt_proc_id)
 *     isolation why the attempt is isolated by word alone, if it is
 *     staged    only of an attempt that is made before it is its turn: the process that will be the
 *               job's is there and waits
 *     go        its turn has come: the spec, completed by what was decided meanwhile (GPUs)
 *     started   who the job's first process is; synced BEFORE it becomes the job's program
 *     exit      how it ended; synced after the last process of the job is gone
 *     log       standard output and error of the job, appended; where jobs run as other users it
 *               and `progress` are root's, and the user may write to them while the job runs
 *     cut       what of the log is not kept, if anything (struct takt_output_cut)
 *
 * Recovery reads it in this order:
 *   lock held                      -> the shim lives: adopt
 *   `exit` present                 -> finished: take it over
 *   `started` absent               -> nothing ever ran: void it, then requeue as the next attempt
 *   `started`, no lock, no `exit`  -> the shim was killed: look for survivors (cgroup, and the
 *                                     attempt id in /proc/PID/environ), end them, then by the
 *                                     job's policy
 *
 * Voiding writes an `exit` of kind void under the lock. It is the fence against a start that is
 * still on its way (a request in the launcher's socket, a shim not yet at its lock): a shim that
 * finds `started` or `exit` runs nothing. Only what was voided may be counted as never run.
 *
 * A staged attempt (spec with stage_lease_ms) has not run. Its shim holds the lock, has forked the
 * process and waits for `go` (then all is as above) or for the word that it is off (then it writes
 * a voiding `exit`). Who is not told for stage_lease_ms that it is still wanted goes by itself: of
 * a daemon that never comes back nothing is left. `staged` has a version of its own, so that a
 * daemon which finds a shim of another build waiting knows whether it may give it a `go`; it may
 * always call it off.
 *
 * What must survive power loss is `started`, `exit` and the directory's own name, which the
 * launcher syncs (takt_attempt_sync) before it execs the shim: then a job whose program ran is
 * never mistaken for one that did not. `spec`, `shim`, `staged`, `go` and a voiding `exit` serve
 * one boot only, and are replaced whole (rename) but not synced, so that the daemon never waits for
 * a disk.
 *
 * Records are single lines of text: "takt-NAME VERSION", then "key=value" in a fixed order, then a
 * checksum (CRC-32C of what stands before it). Blanks, '%' and bytes outside 0x21..0x7e are written
 * as %XX:
 *
 *   takt-exit 1 kind=exited code=0 wall_ns=... run_ns=... message= of=7.1.SECRET crc=89abcdef
 *
 * `of` says of which attempt it is: its job, its number, and the secret that is in `spec`, which
 * only root and the daemon can read, where jobs run as other users. A record of another attempt, of
 * one with the same number in an earlier database, or of nobody does not count; `started` counts as
 * damaged then. Specs of older versions have no secret, and records of such attempts no `of`. Once
 * `spec` is gone `of` still has to name the job and the number.
 *
 * A damaged `spec`, `shim`, `go` or `exit` counts as absent: none of them is torn unless it was
 * never relied upon. A damaged `started` counts as present without identity: running twice is worse
 * than not running.
 */
#ifndef TAKT_LAUNCH_ATTEMPT_H
#define TAKT_LAUNCH_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sys.h"
#include "base/timetypes.h"
#include "launch/job_limits.h"

enum {
	TAKT_ATTEMPT_ID_MAX = 64,
	TAKT_ATTEMPT_CPU_WORDS = 16, /* 1024 CPUs */
	TAKT_ATTEMPT_MAX_ARGS = 4096,
	TAKT_ATTEMPT_MAX_ENV = 8192,
	TAKT_ATTEMPT_MAX_RANKS = 1024,
	TAKT_ATTEMPT_MAX_SPEC = 8 * 1024 * 1024, /* bytes of the file */
	TAKT_ATTEMPT_MESSAGE = 160,
	TAKT_ATTEMPT_EVENT = 32,
	TAKT_ATTEMPT_SECRET = 33, /* 128 bits in hex, and the NUL */
};
#define TAKT_ATTEMPT_MAX_OUTPUT ((UINT64_C(1) << 53) - 1) /* bytes; also what JSON holds */

/* Everything the shim needs, in a file it reads itself (environment included, hence 0600). */
struct takt_attempt_spec {
	uint64_t job_id;
	uint32_t attempt;
	char id[TAKT_ATTEMPT_ID_MAX];	  /* "job.attempt.nonce"; env holds it as TAKT_ATTEMPT=id */
	char secret[TAKT_ATTEMPT_SECRET]; /* no process of the job knows it; "" = none, of an
					     attempt of an older version */
	char **argv;			  /* owned, NULL-terminated, at least one */
	char **env;	    /* owned, final environment: CUDA_VISIBLE_DEVICES and so on included */
	char *cwd;	    /* owned, absolute */
	uint32_t grace_ms;  /* SIGTERM to SIGKILL */
	uint32_t cpu_count; /* CPUs to bind to; 0 = leave affinity alone */
	uint64_t cpus[TAKT_ATTEMPT_CPU_WORDS]; /* bit n of word n / 64 */
	char cgroup[256]; /* of attempts of older versions; "" = the launcher's affair */
	struct takt_job_limits limits; /* for the launcher's request; not in the file */
	/* Processes to start, each with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR
	 * and MASTER_PORT; 0 = one, without them. */
	uint32_t ranks;
	bool rank_prefix;     /* each line of output begins with "[rank] " */
	uint32_t master_port; /* with ranks, 1..65535 */
	bool pty;	/* standard input, output and error are a terminal; at most one rank */
	char *output;	/* owned: the file that takes standard output and error, from cwd, opened by
			   the job's user and added to; NULL = the log */
	char **cleanup; /* owned, NULL-terminated: run as the job's user once no process of the job
			   is left, whatever ended it, until it succeeds; NULL = nothing */
	bool progress;	/* the file of TAKT_PROGRESS is made before it starts, to be mounted */
	uint64_t output_limit;	 /* bytes of the log that are kept; 0 = all */
	uint32_t stage_lease_ms; /* 0 = starts at once; else waits for `go`, see above */
	uint32_t prefetch_limit_ms;
	char **prefetch; /* owned, NULL-terminated: run while it waits, ended by then; NULL = none
			  */
	/* Of a hook: the job's event that it is run at ("" = this is no hook), when it is ended if
	 * it is not over, and the attempt at the same job whose log it adds to (0 = none). */
	char hook_event[TAKT_ATTEMPT_EVENT];
	uint32_t hook_limit_ms;
	uint32_t hook_log;
};

/* Of more output than is kept the middle is given back: these bytes of the log are not there. */
struct takt_output_cut {
	uint64_t limit; /* that it is held to; 0 = nothing was cut */
	uint64_t from;
	uint64_t to; /* 0 = the log was cut off at `from`, and how much went is not known */
};

enum takt_attempt_state {
	TAKT_ATTEMPT_ABSENT,	  /* no directory, or no complete spec */
	TAKT_ATTEMPT_NOT_STARTED, /* spec, no lock, no started */
	TAKT_ATTEMPT_ALIVE,	  /* lock held */
	TAKT_ATTEMPT_EXITED,	  /* exit recorded */
	TAKT_ATTEMPT_ORPHANED,	  /* started, no lock, no exit */
};

enum takt_exit_kind {
	TAKT_EXIT_EXITED,
	TAKT_EXIT_SIGNALED,
	TAKT_EXIT_EXEC_FAILED, /* its program could not be executed; nothing of it ran */
	TAKT_EXIT_VOID,	       /* fenced: nothing ran and nothing will */
	TAKT_EXIT_KIND_COUNT
};

enum takt_staged {
	TAKT_STAGED_NO,	     /* as far as is known */
	TAKT_STAGED_READY,   /* a process waits for `go` */
	TAKT_STAGED_UNKNOWN, /* the record is damaged, or of a version that is not known here */
};

struct takt_attempt_status {
	enum takt_attempt_state state;
	struct takt_proc_id shim; /* pid 0 = not recorded */
	struct takt_proc_id job;  /* first process; pid 0 = not recorded */
	bool started;		  /* `started` is there; job and started_at may still be unknown */
	enum takt_staged staged;  /* not looked at once it has started, like the next */
	bool handed_over;	  /* `go` is there */
	struct takt_wall started_at;   /* 0 = not recorded, like the next */
	struct takt_boot started_boot; /* the same instant, by the clock that nobody sets */
	bool foreign_exit;	       /* ORPHANED: `exit` is there, and another attempt's */
	enum takt_exit_kind exit_kind; /* EXITED only, like what follows */
	int exit_code;		       /* code, signal number, or errno of a failed exec */
	struct takt_wall ended_at;
	uint64_t run_ns;	/* from `started` to `exit`, boot clock; 0 = not known */
	bool out_of_memory;	/* the kernel ended processes of the job for want of memory */
	bool out_of_gpu_memory; /* so its program said last */
	char message[TAKT_ATTEMPT_MESSAGE]; /* EXEC_FAILED: "exec './train.sh': No such file or
					       directory" */
};

/* Releases what the spec owns and zeroes it. */
void takt_attempt_spec_fini(struct takt_attempt_spec *spec);

/* Is the spec complete and within the limits? The message names the field. */
int takt_attempt_spec_check(const struct takt_attempt_spec *spec, struct takt_err *err);

/*
 * Make JOBS/<job>.<attempt>/ with `lock` and `spec`. Running it again for an attempt that never
 * started is fine and replaces the spec; one that is alive, started, ended or voided is
 * -TAKT_E_CONFLICT. Does not sync (see above).
 */
int takt_attempt_create(const struct takt_sys *sys, int jobs_dirfd,
			const struct takt_attempt_spec *spec, struct takt_err *err);

/* Make the names of all attempts made so far durable; to be called before a shim is started. */
int takt_attempt_sync(const struct takt_sys *sys, int jobs_dirfd, struct takt_err *err);

/* The attempt's directory, for the caller to close; -ENOENT. Follows no link. */
int takt_attempt_open(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		      struct takt_err *err);

/* -ENOENT, or -TAKT_E_CORRUPT when it is damaged. */
int takt_attempt_read_spec(const struct takt_sys *sys, int attempt_dirfd,
			   struct takt_attempt_spec *ret, struct takt_err *err);

/*
 * A staged attempt's turn has come: write `go`. Everything of the attempt's first spec may be other
 * but its job, attempt, id, cgroup, ranks and stage. From here on it may start at any moment.
 */
int takt_attempt_hand_over(const struct takt_sys *sys, int jobs_dirfd,
			   const struct takt_attempt_spec *spec, struct takt_err *err);
/* As takt_attempt_read_spec, of `go`. */
int takt_attempt_read_go(const struct takt_sys *sys, int attempt_dirfd,
			 struct takt_attempt_spec *ret, struct takt_err *err);

/* Tries the lock and reads the records. Negative only when the directory cannot be looked at. */
int takt_attempt_status(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			uint32_t attempt, struct takt_attempt_status *ret, struct takt_err *err);

/*
 * Declare that nothing of this attempt ran or will run. 0 also when it was void already or has no
 * directory or spec; -TAKT_E_CONFLICT when its lock is held (by a shim, or for a moment by somebody
 * who looks) or it has started or ended: ask for the status again.
 */
int takt_attempt_void(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		      struct takt_err *err);

/* The attempt is over: removes what told how to run it, in which there is an environment. Best
 * effort; follows no link. */
void takt_attempt_shed(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
		       uint32_t attempt);

/*
 * Removes what takt made of an attempt that is over, for good. 0 also when there is none;
 * -TAKT_E_CONFLICT while it is alive; -ENOTEMPTY when somebody keeps files of his own there, which
 * stay. Follows no link.
 */
int takt_attempt_remove(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			uint32_t attempt, struct takt_err *err);

/* How well the attempt is isolated, as its shim was told: ret_why[TAKT_ATTEMPT_MESSAGE] as below.
 * -ENOENT: not said (no shim yet, or one of an older takt). */
int takt_attempt_isolation(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			   uint32_t attempt, char *ret_why);

/* What is not kept of its log, as its shim says. -ENOENT: it is whole; -TAKT_E_CORRUPT. */
int takt_attempt_cut(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		     struct takt_output_cut *ret);

/*
 * Of an attempt that is over. Bound: its log to `limit` bytes (0 = all of it) and its progress file
 * to what it may have, as its shim did. Drop: all of its log, as if it had never been kept; `cut`
 * says so, from 0 on. -EPERM where the directory or the file is not root's or ours, nor lent to us.
 */
int takt_attempt_bound_output(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			      uint32_t attempt, uint64_t limit);
int takt_attempt_drop_output(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			     uint32_t attempt);

/* Who its shim is, or was, and whose the directory is, to whom alone that record belongs. -ENOENT:
 * there is none; -TAKT_E_CORRUPT. Does not look at the lock: whether it lives is not said. */
int takt_attempt_shim(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		      struct takt_proc_id *ret, uid_t *ret_uid);

/* For the shim. lock: the descriptor that holds it, or -TAKT_E_BUSY at once when it is held. The
 * records are written whole; started and exited durably. */
int takt_attempt_lock(const struct takt_sys *sys, int attempt_dirfd, struct takt_err *err);
/* 0, or -TAKT_E_CONFLICT when `started` or `exit` is there; to be asked under the lock. */
int takt_attempt_unused(const struct takt_sys *sys, int attempt_dirfd, struct takt_err *err);
int takt_attempt_record_shim(const struct takt_sys *sys, int attempt_dirfd,
			     const struct takt_proc_id *shim, struct takt_err *err);
int takt_attempt_record_staged(const struct takt_sys *sys, int attempt_dirfd,
			       const struct takt_proc_id *job, struct takt_err *err);
/* why: why its isolation is advisory, "" = devices are closed and limits hold. */
int takt_attempt_record_isolation(const struct takt_sys *sys, int attempt_dirfd, const char *why,
				  struct takt_err *err);
int takt_attempt_record_cut(const struct takt_sys *sys, int attempt_dirfd,
			    const struct takt_output_cut *cut, struct takt_err *err);
/* When it fails nothing of the record is left behind, as far as the disk allows. */
int takt_attempt_record_started(const struct takt_sys *sys, int attempt_dirfd,
				const struct takt_proc_id *job, struct takt_wall at,
				struct takt_err *err);
/* Uses exit_kind, exit_code and what follows in the status. */
int takt_attempt_record_exit(const struct takt_sys *sys, int attempt_dirfd,
			     const struct takt_attempt_status *status, struct takt_err *err);

/*
 * Processes of the attempt that are still alive: those of the user whose environment holds
 * TAKT_ATTEMPT=id (as far as we may read it; root may) or that sit in `cgroup` ("" = none). Zombies
 * do not count, nor does what other users write into their environments. Returns how many there
 * are, or negative (-EAGAIN: none, but of one it cannot be told now); fills at most max of ret,
 * which may be NULL when max is 0. A process that cleared its environment, or gave it back to the
 * kernel, and left the cgroup is not found.
 */
int takt_attempt_survivors(const char *id, uid_t uid, const char *cgroup, struct takt_proc_id *ret,
			   size_t max, struct takt_err *err);

#endif
