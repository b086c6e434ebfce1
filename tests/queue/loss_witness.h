/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness of the power-loss campaign. It stands outside the machine: what it has seen no crash
 * takes away, and nothing of takt writes it but by doing what it reports (a submitter was told, a
 * program was executed, a user was told how his job ended). It judges at once what may never
 * happen, and at the end what is left.
 *
 * Jobs are known by a serial number that the test gives them and that travels in the job's name
 * and arguments, so that a job id given out twice shows.
 */
#ifndef TAKT_TESTS_LOSS_WITNESS_H
#define TAKT_TESTS_LOSS_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

enum {
	WITNESS_MAX_JOBS = 512, /* serials 1.. */
	WITNESS_MAX_RUNS = 1024,
};

struct witness_job {
	uint64_t id; /* 0 = nobody was told */
	bool accepted, requeue, cancel_asked, end_told;
	uint32_t milli; /* of each of its GPUs; 1000 = whole */
	/* Asked in this life of the daemon, or kept: the store had nothing left to write after it
	   was asked. */
	bool cancel_fresh, cancel_kept;
	uint32_t cancel_attempt;   /* the newest when it was asked; no later one may run */
	unsigned cancel_boot;	   /* power losses before that */
	uint64_t anew_asked;	   /* attempts that are to end for another, as bits; 0..63 */
	uint32_t anew_kept;	   /* the newest of these of which somebody was told so */
	enum takt_job_state state; /* as told */
	int exit_code, exit_signal;
};

struct witness_run {
	uint32_t serial, attempt;
	uint64_t id, gpus;
	bool alive;
	bool over; /* by itself: code, signal */
	int code, signal;
	bool recorded; /* its shim was told that the end is on disk */
	bool anew;     /* it follows one that was to end */
};

struct witness {
	struct witness_job jobs[WITNESS_MAX_JOBS];
	uint32_t nr_jobs; /* serials given; serial n is at n - 1 */
	struct witness_run runs[WITNESS_MAX_RUNS];
	uint32_t nr_runs;
	unsigned power_losses, killed_shims;
	bool calls_failed;		     /* shims may have given up */
	unsigned ends[TAKT_JOB_STATE_COUNT]; /* by the last judgement */
	char why[200];			     /* first violation; "" while all is well */
};

void witness_init(struct witness *witness);

/* What users do and are told. */
uint32_t witness_submit(struct witness *witness, uint32_t milli, bool requeue);
void witness_accepted(struct witness *witness, uint32_t serial, uint64_t id);
void witness_cancel(struct witness *witness, uint32_t serial, uint32_t attempt);
/* That this attempt is to end, and the job to begin anew: asked, and on disk. */
void witness_anew(struct witness *witness, uint32_t serial, uint32_t attempt);
void witness_anew_kept(struct witness *witness, uint32_t serial, uint32_t attempt);
void witness_ended(struct witness *witness, uint32_t serial, const struct takt_job *row);

/* The store has written all that it was given. */
void witness_all_written(struct witness *witness);
/* The daemon died: what it was only asked may be forgotten. */
void witness_daemon_death(struct witness *witness);

/* A program is executed; the number of its run. */
uint32_t witness_exec(struct witness *witness, uint32_t serial, uint64_t id, uint32_t attempt,
		      uint64_t gpus);
void witness_run_over(struct witness *witness, uint32_t run, int code, int signal);
void witness_power_loss(struct witness *witness); /* whatever ran is gone */
/* By a process of the job; of any with 0. */
bool witness_gpu_used(const struct witness *witness, uint32_t gpu, uint64_t id);

/* When everything has come to rest: a row for each job that anybody has heard of, and the right
 * end in it. */
void witness_judge(struct witness *witness, struct takt_store *store);

/* Notes a violation, unless there is one already. */
void witness_blame(struct witness *witness, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
