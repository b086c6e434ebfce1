/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the jobs of a trace are submitted in a simulation: as they were, closer together or further
 * apart so that they offer a given load, or week by week drawn anew.
 *
 * Offered load: the GPU time that the jobs need, over GPUs times the span from the first submission
 * to the last. It is told for jobs at speed 1000.
 */
#ifndef TAKT_SIM_QUEUE_ARRIVALS_H
#define TAKT_SIM_QUEUE_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sim/queue_run.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

struct takt_queue_arrivals {
	TAKT_VEC(struct takt_queue_job) jobs; /* ascending by submission, ties as in the file */
	/* Of these jobs. */
	uint64_t gpu_ms;  /* needed */
	uint64_t span_ms; /* from the first submission to the last */
};

/*
 * Jobs wider than the widest node become gangs: tasks of as many GPUs as divide both the job and
 * that node (24 on nodes of 8 are 3 tasks of 8; 12 are 3 of 4). Once, before the next function.
 */
int takt_queue_split_gangs(struct takt_sim_work *work, struct takt_sim_cluster *cluster,
			   struct takt_err *err);

/*
 * All jobs of the work that have a submission and a duration (-TAKT_E_CORRUPT if one has not). With
 * `resample` whole weeks from the first submission on are drawn with replacement (stream WEEKS of
 * the seed), as many as there are, one after the other; what is beyond the last whole week is left
 * out. *ret is overwritten; untouched on failure.
 */
int takt_queue_arrivals(const struct takt_sim_work *work, bool resample, uint64_t seed,
			struct takt_queue_arrivals *ret, struct takt_err *err);
void takt_queue_arrivals_fini(struct takt_queue_arrivals *arrivals);

/* Offered load on so many GPUs, in permille. */
uint64_t takt_queue_offered(const struct takt_queue_arrivals *arrivals, uint64_t gpus);
/* How many GPUs make it at most that load, at least 1. */
uint64_t takt_queue_gpus_for(const struct takt_queue_arrivals *arrivals, uint64_t permille);
/* Makes the times between submissions from/to times as long: a load of `from` becomes one of `to`.
 */
void takt_queue_stretch(struct takt_queue_arrivals *arrivals, uint64_t from, uint64_t to);

#endif
