/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published placement experiment as a whole: every policy with every seed, over the cores, and
 * the bound of what was possible beside it.
 */
#ifndef TAKT_SIM_FGD_EXPERIMENT_H
#define TAKT_SIM_FGD_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sim/bound_run.h"
#include "sim/fgd_run.h"
#include "sim/sim_policies.h"
#include "sim/sim_stats.h"

enum {
	TAKT_SIM_MAX_SEEDS = 100000
};

struct takt_fgd_experiment_config {
	const struct takt_fgd_world *world;
	const struct takt_sim_placements *placements;
	const struct takt_place_param *params; /* of all policies */
	size_t param_count;		       /* at most TAKT_SIM_MAX_PARAMS */
	uint64_t first_seed, last_seed;
	unsigned threads;
	int (*progress)(void *ctx, size_t done, size_t count);
	void *progress_ctx;
	const struct takt_bound_program *bound; /* NULL: not computed */
};

struct takt_fgd_experiment {
	const struct takt_fgd_experiment_config *config; /* borrowed */
	size_t seed_count;
	struct takt_fgd_result *results; /* owned: of policy p and seed s at p * seed_count + s */
	/* Owned: of seed s and column l at s * load_count + l, percent; negative: not computed. */
	double *bounds;
	bool bounded;	      /* some bound was computed */
	char bound_note[240]; /* why not, or by what */
	uint64_t violations;  /* results above their bound */
	char violation[240];  /* the first of them */
};

/* *ret is overwritten; untouched on failure. Violations are no failure here: the caller is to show
 * the results and then fail. */
int takt_fgd_experiment(const struct takt_fgd_experiment_config *config,
			struct takt_fgd_experiment *ret, struct takt_err *err);
void takt_fgd_experiment_fini(struct takt_fgd_experiment *experiment);

/* What is measured of a policy at a column, for one seed; percent of the cluster's GPUs, but for
 * the ratio, which is percent of what is idle. False if the arrivals never came by the column. */
enum takt_fgd_measure {
	TAKT_FGD_ARRIVED,
	TAKT_FGD_ALLOCATION,
	TAKT_FGD_FRAGMENT,
	TAKT_FGD_FRAGMENT_RATIO,
	TAKT_FGD_MOVES, /* for each 100 placed */
};
bool takt_fgd_value(const struct takt_fgd_experiment *experiment, size_t policy, size_t seed,
		    size_t load, enum takt_fgd_measure measure, double *ret);

/* Over all seeds that came by the column; n = 0 when none did. */
struct takt_sim_stat takt_fgd_stat(const struct takt_fgd_experiment *experiment, size_t policy,
				   size_t load, enum takt_fgd_measure measure);
/* Of the difference to another policy on the same seeds. */
struct takt_sim_stat takt_fgd_difference(const struct takt_fgd_experiment *experiment,
					 size_t policy, size_t other, size_t load,
					 enum takt_fgd_measure measure);
/* Mean over the seeds; n = 0 when not computed. */
struct takt_sim_stat takt_fgd_bound(const struct takt_fgd_experiment *experiment, size_t load);
/* Arrived and placed of a class, over all seeds. */
struct takt_fgd_class_count takt_fgd_class(const struct takt_fgd_experiment *experiment,
					   size_t policy, size_t load, size_t class);

/* The column that details are shown of: 100 % if it is there, else the last. */
size_t takt_fgd_main_load(const struct takt_fgd_experiment *experiment);

#endif
