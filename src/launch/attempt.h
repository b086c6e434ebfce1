/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of one attempt at a job: the only truth about whether it ran.
 *
 *   DIR/<job>.<attempt>/   0700, the job's user
 *     spec      written and fsynced by the engine before anything is started (struct
 * takt_attempt_spec) lock      flock(LOCK_EX) held by the shim from before `shim` is written until
 * it exits; close-on-exec, so the job does not inherit it shim      who the shim is (struct
 * takt_proc_id); fsynced started   pid, start time and wall time of the job's first process;
 * fsynced BEFORE exec exit      how it ended; fsynced after the last process of the job is gone log
 * standard output and error of the job (owned by the shim, appended)
 *
 * Recovery reads it in this order:
 *   lock held                      -> the shim lives: adopt
 *   `exit` present                 -> finished: take it over
 *   `started` absent               -> nothing ever ran: requeue (same attempt may be started again)
 *   `started`, no lock, no `exit`  -> the shim was killed: look for survivors (cgroup, and the
 * attempt id in /proc/PID/environ), end them, then by the job's policy
 *
 * Records are single lines of text, "key value" pairs in a fixed order with a checksum at the end,
 * so that a torn record is recognised as absent and a person can read it: takt-exit 1 kind=exited
 * code=0 wall_ns=... boot_ns=... crc=89abcdef
 */
#ifndef TAKT_LAUNCH_ATTEMPT_H
#define TAKT_LAUNCH_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sys.h"

enum {
	TAKT_SHIM_PROTOCOL = 1
};

/* Everything the shim needs, in a file it reads itself (environment included, hence 0600). */
struct takt_attempt_spec {
	uint64_t job_id;
	uint32_t attempt;
	char id[64];	    /* "job.attempt.nonce", also TAKT_ATTEMPT in the job's environment */
	char **argv;	    /* owned, NULL-terminated */
	char **env;	    /* owned, final environment: CUDA_VISIBLE_DEVICES and so on included */
	char *cwd;	    /* owned */
	uint32_t grace_ms;  /* SIGTERM to SIGKILL */
	uint32_t cpu_count; /* CPUs to bind to; 0 = leave affinity alone */
	uint64_t cpus[16];
	char cgroup[256]; /* directory to enter, "" = none */
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
	TAKT_EXIT_EXEC_FAILED
};

struct takt_attempt_status {
	enum takt_attempt_state state;
	struct takt_proc_id shim;      /* pid 0 = not recorded */
	struct takt_proc_id job;       /* first process; pid 0 = not recorded */
	struct takt_wall started_at;   /* 0 = not recorded */
	enum takt_exit_kind exit_kind; /* EXITED only */
	int exit_code;		       /* code, signal number, or errno of a failed exec */
	struct takt_wall ended_at;
	char message[160]; /* EXEC_FAILED: "exec './train.sh': No such file or directory" */
};

void takt_attempt_spec_fini(struct takt_attempt_spec *spec);

/* Create DIR/<job>.<attempt>/ and the spec, durably (file and both directories synced). Running it
 * again for the same attempt after a crash is fine. */
int takt_attempt_create(const struct takt_sys *sys, int jobs_dirfd,
			const struct takt_attempt_spec *spec, struct takt_err *err);
int takt_attempt_read_spec(const struct takt_sys *sys, int attempt_dirfd,
			   struct takt_attempt_spec *ret, struct takt_err *err);
/* Reads the records and tries the lock. */
int takt_attempt_status(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			uint32_t attempt, struct takt_attempt_status *ret, struct takt_err *err);

/* Processes of the attempt that are still alive: pids whose environment holds TAKT_ATTEMPT=id
 * (readable ones) or that sit in `cgroup`. Count, or negative; fills at most max. */
int takt_attempt_survivors(const char *id, const char *cgroup, struct takt_proc_id *ret, size_t max,
			   struct takt_err *err);

#endif
