/* SPDX-License-Identifier: Apache-2.0 */
/* Placement policies on a trace with real times: every policy at every load with every seed. */
#ifndef TAKT_SIM_TIMED_EXPERIMENT_H
#define TAKT_SIM_TIMED_EXPERIMENT_H

#include "base/err.h"
#include "sim/sim_policies.h"
#include "sim/sim_table.h"
#include "sim/timed_run.h"

enum {
	TAKT_TIMED_MAX_LOADS = 64
};

struct takt_timed_experiment_config {
	const struct takt_timed_world *world;
	const struct takt_sim_placements *placements;
	const struct takt_place_param *params;
	size_t param_count;		      /* at most TAKT_SIM_MAX_PARAMS */
	uint32_t loads[TAKT_TIMED_MAX_LOADS]; /* percent; none: the trace once, as it is */
	size_t load_count;
	uint64_t first_seed, last_seed;
	unsigned threads;
	int (*progress)(void *ctx, size_t done, size_t count);
	void *progress_ctx;
};

/* name, unit, title, decimals */
#define TAKT_TIMED_MEASURES(X)                             \
	X(ASKED, asked_pct, "%", "asked for", 3)           \
	X(ALLOCATION, allocation_pct, "%", "allocated", 3) \
	X(WAIT_MEAN, wait_mean_s, "s", "wait mean", 1)     \
	X(WAIT_P99, wait_p99_s, "s", "wait p99", 1)        \
	X(WAIT_MAX, wait_max_s, "s", "wait max", 0)        \
	X(WAITED, waited_pct, "%", "waited at all", 3)

enum takt_timed_measure {
#define X(id, name, unit, title, decimals) TAKT_TIMED_##id,
	TAKT_TIMED_MEASURES(X)
#undef X
	TAKT_TIMED_MEASURE_COUNT
};

struct takt_timed_experiment {
	const struct takt_timed_experiment_config *config; /* borrowed */
	size_t load_count, seed_count;			   /* at least 1 */
	/* Owned: (policy * load_count + load) * seed_count + seed. */
	struct takt_timed_result *results;
};

/* *ret is overwritten; untouched on failure. */
int takt_timed_experiment(const struct takt_timed_experiment_config *config,
			  struct takt_timed_experiment *ret, struct takt_err *err);
void takt_timed_experiment_fini(struct takt_timed_experiment *experiment);

/* The results as a table; it borrows the experiment. */
struct takt_sim_table takt_timed_table(const struct takt_timed_experiment *experiment);

#endif
