/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a shim, beginning a job and seeing it through; private to this room. */
#ifndef TAKT_LAUNCH_SHIM_JOB_H
#define TAKT_LAUNCH_SHIM_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "launch/attempt.h"
#include "launch/job_cgroup.h"
#include "launch/job_user.h"
#include "launch/proc_tree.h"

struct takt_shim_io;

/* One of the processes that the shim starts itself: the only one, or a rank. */
struct takt_shim_rank {
	pid_t pid;
	bool ended;
};

struct takt_shim {
	const struct takt_sys *sys;    /* borrowed */
	int dirfd;		       /* borrowed */
	int lockfd;		       /* owned; -1 = not held */
	int logfd;		       /* owned; -1 = none */
	int logdirfd;		       /* where the log is; owned where that is not dirfd */
	int progressfd;		       /* owned; another user's file to be bound; -1 = none */
	struct takt_attempt_spec spec; /* owned; released once the job runs, but for numbers */
	struct takt_shim_rank *ranks;  /* owned; the first is what `started` names */
	uint32_t rank_count;	       /* forked */
	uint32_t ranks_left;	       /* of them, not ended */
	bool rank_failed;	       /* one of them has, which is the end of all */
	bool interrupted;	       /* the machine goes down under the job */
	int report; /* owned; where first processes say why they could not exec; -1 = none */
	struct takt_shim_io *io;	    /* owned; NULL = the job writes to its log itself */
	const struct takt_job_place *place; /* borrowed */
	const struct takt_job_user *user;   /* borrowed; whose job it is */
	pid_t self;			    /* the shim */
	struct takt_boot bound_at;	    /* the next look at the log; 0 = none is due */
	uint32_t bound_kept;		    /* looks in a row at which all of it was kept */
	struct takt_output_cut cut;	    /* what is not kept of it */
	struct takt_boot began;
	struct takt_attempt_status end; /* what `exit` will say */
};

/*
 * Fork the job's first process, of a staged attempt wait for its turn, put it into the job's
 * cgroup, record `started`, let it become the job's program. Negative: nothing ran, nothing is
 * recorded; -ECANCELED: it was called off.
 */
int takt_shim_begin(struct takt_shim *shim, struct takt_err *err);

/* The first processes are there: say so, prefetch, wait. 0: it is its turn, and `spec` is complete.
 * -ECANCELED: it is not to run. Nothing of the prefetch goes on. */
int takt_shim_wait_staged(struct takt_shim *shim, struct takt_err *err);

/* In a forked process that has its standard descriptors: become the job's user, and this program in
 * the job's place and environment, which writes to `output` (NULL: as it is). Returns only when it
 * failed. */
int takt_shim_become(const struct takt_shim *shim, char *const *argv, const char *output,
		     struct takt_err *err);

/* To be asked once a first process has ended: true when one could not be executed, which is then in
 * end. */
bool takt_shim_hear_report(struct takt_shim *shim);
/* When all have ended: a job of which some ranks were executed did run, and ended as a shell says
 * it: 127, 126. */
void takt_shim_settle_report(struct takt_shim *shim);

/* shim_ranks.c */
/* The first process with this pid; NULL = it is none. */
struct takt_shim_rank *takt_shim_rank_of(const struct takt_shim *shim, pid_t pid);
/* Takes the end of a first process down. The job's end is that of the first rank that failed, else
 * that of the last one. `asked`: it was told to stop, so that its end needs no explanation. True
 * when the others are to be stopped. */
bool takt_shim_rank_ended(struct takt_shim *shim, struct takt_shim_rank *rank, int status,
			  bool asked);
/* In the forked process: the environment of a job's rank. -ENOMEM. */
int takt_shim_rank_env(struct takt_shim *shim, uint32_t rank, struct takt_err *err);

/* Pass signals on until no process of the job is left; fills end. All signals must be blocked. */
void takt_shim_see_through(struct takt_shim *shim);

/* A line of the shim's own in the job's log; best effort. */
void takt_shim_note(const struct takt_shim *shim, const char *fmt, ...) TAKT_PRINTF(2, 3);

/* shim_hook.c: of a hook. From here on its words and ours go to the log of its job, if that can be
 * had. */
void takt_shim_hook_log(struct takt_shim *shim);
/* In its job's log: how it ended, where that was not well. It writes there no more. */
void takt_shim_hook_note(const struct takt_shim *shim, bool late);

/* shim_bound.c: log and progress file are held to their bounds. Begin; the kernel says that it is
 * written to; look at it if that is due; now. The sooner of the next look and `until`, 0 = never.
 */
void takt_shim_bound_begin(struct takt_shim *shim);
void takt_shim_bound_told(struct takt_shim *shim);
void takt_shim_bound_look(struct takt_shim *shim);
void takt_shim_bound_apply(struct takt_shim *shim);
struct takt_boot takt_shim_bound_due(const struct takt_shim *shim, struct takt_boot until);

/* shim_end.c: its user may read its log and its progress file from now on, and no more; */
void takt_shim_take_back(const struct takt_shim *shim);
/* what is known of why the job ended badly, into `end`. */
void takt_shim_explain_end(struct takt_shim *shim);

/* shim_io.c */
/* Make what the job's output passes through, if it does: shim->io. Negative leaves something to
 * finish. */
int takt_shim_io_open(struct takt_shim *shim, struct takt_err *err);
/* In the forked process: standard input, output and error of the rank. */
int takt_shim_io_take(const struct takt_shim *shim, uint32_t rank, struct takt_err *err);
/* The same of what is no rank: nothing to read, and the log itself to write to. */
int takt_shim_log_take(const struct takt_shim *shim, struct takt_err *err);
/* Move what there is, until a signal comes or the time is up (-1 = never); with shim->io only. */
void takt_shim_io_wait(struct takt_shim *shim, int limit_ms);
/* Say in its log, and to whoever sits at its terminal, that it will be ended in so many seconds.
 * The log does not look newer for it. */
void takt_shim_notice_idle(struct takt_shim *shim, uint32_t seconds);
/* Move what is left and release it. */
void takt_shim_io_finish(struct takt_shim *shim);

/* In the forked process: wait for the word on `go`, then become the job's program. On failure
 * writes a struct takt_err to `report`. Does not return. */
_Noreturn void takt_shim_become_job(struct takt_shim *shim, uint32_t rank, int go, int report);

#endif
