/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement with real times: pods arrive and leave as in the trace, and wait where they do not fit.
 *
 * A pod that fits is placed at once. One that does not waits; whenever a pod leaves, those that
 * wait are tried in the order of their arrival, each is placed if it fits (equal requests: the
 * first of them is tried). It then stays for its duration. Nothing is lost and nobody is pushed
 * out.
 *
 * A trace whose pods ask for little of the cluster at a time can be raised to a load: copies of it
 * are laid over each other, each rotated by a random time within the trace's span (stream SHIFTS),
 * so many that pods ask on average for that part of the GPUs. What would go on beyond the end is
 * there from the beginning, for the rest of its time: so there is no time to warm up. With load 0
 * the trace runs once, as it is.
 */
#ifndef TAKT_SIM_TIMED_RUN_H
#define TAKT_SIM_TIMED_RUN_H

#include <stdint.h>

#include "base/err.h"
#include "sched/place.h"
#include "sim/fgd_typical.h"
#include "sim/sim_class.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

enum {
	TAKT_TIMED_MAX_JOBS = 50000000
};

/* What runs share; borrowed, unchanged. */
struct takt_timed_world {
	const struct takt_sim_cluster *cluster;
	const struct takt_sim_work *work;
	const struct takt_sim_classes *classes;
	const struct takt_fgd_typical *typical;
	int64_t first_ns; /* the earliest submission */
	uint64_t span_ns; /* from there to the last end */
};

struct takt_timed_class {
	uint64_t jobs, waited;
	uint64_t wait_ms; /* of all together */
};

struct takt_timed_result {
	uint64_t copies;
	uint64_t jobs;	     /* submitted within the span */
	uint64_t waited;     /* of these, not placed at once */
	uint64_t impossible; /* fit nowhere even in an empty cluster */
	uint64_t wait_mean_ns, wait_p99_ns, wait_max_ns;
	/* milli-GPU times ms, over the span: asked for by who was there, and allocated. */
	uint64_t asked, allocated;
	TAKT_VEC(struct takt_timed_class) classes;
};

/* Checks that every pod has a submission and a duration, and finds the span. */
int takt_timed_prepare(struct takt_timed_world *world, struct takt_err *err);

/* *ret is overwritten; untouched on failure. */
int takt_timed_run(const struct takt_timed_world *world, const struct takt_placement *placement,
		   const struct takt_place_param *params, size_t param_count, uint32_t load_pct,
		   uint64_t seed, struct takt_timed_result *ret, struct takt_err *err);
void takt_timed_result_fini(struct takt_timed_result *result);

#endif
