/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training jobs as Gavel generates them, for a cluster of several accelerator models.
 *
 * From Gavel's simulator (stanford-futuredata/gavel, scheduler/utils.py, its generator of jobs):
 *
 *	accelerators	1, 2, 4, 8 with probabilities 0.70, 0.10, 0.15, 0.05
 *	kind		uniform among those of the table that have a speed on the reference model
 *with that many accelerators (26 with one, 19 with more) duration	on the reference model: 10^u
 *minutes, u uniform in [1.5, 3) with probability 0.8, in [3, 4) otherwise work		duration
 *times the speed on the reference model, in steps arrivals	Poisson
 *
 * On another model the job runs as much longer as its measured speed there is lower; a kind without
 * a speed on a model cannot run there.
 *
 * Load: at 100 % a scheduler that is blind to models saturates, because it serves the same mix of
 * jobs on every model: the arrival rate is load times the sum over models of (devices / mean
 * device-seconds of a job there). One that is not blind may go beyond.
 *
 * Two streams of random numbers: arrivals, and what arrives (for each job accelerators, kind,
 * duration in that order). So the jobs of a seed are the same at every load. Logarithms and powers
 * are the C library's.
 */
#ifndef TAKT_SIM_GAVEL_WORK_H
#define TAKT_SIM_GAVEL_WORK_H

#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/vec.h"
#include "sim/throughputs.h"

enum {
	TAKT_GAVEL_MAX_JOBS = 1000000,
	TAKT_GAVEL_MAX_LOAD = 10000, /* permille */
};

struct takt_gavel_job {
	uint64_t submit_ns;
	uint64_t duration_ns; /* alone on the reference model */
	uint32_t kind;	      /* of the table; says how many accelerators, and the speeds */
};

struct takt_gavel_config {
	const struct takt_throughputs *table;	      /* borrowed for the call */
	uint32_t reference;			      /* model of the table */
	uint64_t devices[TAKT_THROUGHPUT_MAX_MODELS]; /* of each model of the table */
	uint32_t load_permille;			      /* 1..TAKT_GAVEL_MAX_LOAD */
	uint32_t jobs;				      /* 1..TAKT_GAVEL_MAX_JOBS */
};

struct takt_gavel_work {
	TAKT_VEC(struct takt_gavel_job) jobs; /* in order of submission */
};

/* *ret is overwritten; untouched on failure. -EINVAL names what is wrong. */
int takt_gavel_generate(const struct takt_gavel_config *config, struct takt_rng *arrivals,
			struct takt_rng *kinds, struct takt_gavel_work *ret, struct takt_err *err);
void takt_gavel_fini(struct takt_gavel_work *work);

/* Run time on a model, 0 = does not run there; and speed there in permille of the reference. */
uint64_t takt_gavel_run_ns(const struct takt_gavel_config *config, const struct takt_gavel_job *job,
			   uint32_t model);
uint32_t takt_gavel_permille(const struct takt_gavel_config *config, uint32_t kind, uint32_t model);

#endif
