/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heterogeneous experiment: Gavel's generated jobs (gavel_work.h) for the queue (queue_run.h),
 * on a cluster whose models bear the names that the table of throughputs gives them.
 *
 * Each kind of job is a workload with its measured speeds; a job that has no speed on a model asks
 * for the others. Nodes are put in an order drawn by the seed (stream RANK): with the fastest model
 * first, a scheduler that knows nothing of models would look as if it did.
 */
#ifndef TAKT_SIM_QUEUE_GAVEL_H
#define TAKT_SIM_QUEUE_GAVEL_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sim/queue_arrivals.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"
#include "sim/throughputs.h"

struct takt_queue_gavel_config {
	const struct takt_throughputs *table; /* borrowed for the call */
	const char *reference;		      /* model that durations are drawn for; "v100" */
	uint32_t load_permille;
	uint32_t jobs;
	uint64_t seed;
};

struct takt_queue_gavel {
	struct takt_sim_work work; /* jobs in order of submission, named by their kind */
	TAKT_VEC(struct takt_sched_workload) workloads; /* ids 1.. in order */
	TAKT_VEC(uint32_t) workload_of;			/* by index of work.jobs */
};

/* Also reorders the cluster's nodes. *ret is overwritten; untouched on failure. */
int takt_queue_gavel_make(const struct takt_queue_gavel_config *config,
			  struct takt_sim_cluster *cluster, struct takt_queue_gavel *ret,
			  struct takt_err *err);
void takt_queue_gavel_fini(struct takt_queue_gavel *gavel);

/* All of them as arrivals, each with its workload. */
int takt_queue_gavel_arrivals(const struct takt_queue_gavel *gavel, struct takt_queue_arrivals *ret,
			      struct takt_err *err);

#endif
