/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the experiment of Weng et al. (USENIX ATC 2023): pods arrive one after the other, each
 * is placed at once or lost for ever, none ends.
 *
 * After every arrival: arrived = milli-GPU asked for so far, in percent of the cluster's; allocated
 * the same of what was placed. A table's column L is the mean over the arrivals after which
 * arrived, rounded to whole percent, is L.
 */
#ifndef TAKT_SIM_FGD_RUN_H
#define TAKT_SIM_FGD_RUN_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sched/place.h"
#include "sim/fgd_draw.h"
#include "sim/fgd_typical.h"
#include "sim/sim_class.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

enum {
	TAKT_FGD_MAX_LOAD = 1000, /* percent */
	TAKT_FGD_MAX_LOADS = 64,
	TAKT_FGD_TUNING = 1300, /* permille: arrivals go on to 130 % */
};

/* What all runs of an experiment share; borrowed by them, unchanged. */
struct takt_fgd_world {
	const struct takt_sim_cluster *cluster;
	const struct takt_sim_work *work;
	const struct takt_sim_classes *classes;
	const struct takt_fgd_typical *typical;
	uint32_t tuning_permille;
	uint32_t loads[TAKT_FGD_MAX_LOADS]; /* the columns, percent, ascending */
	size_t load_count;
	/* Tasks that may be moved for each 100 placed, so far: fractions only, to make room for one
	 * that fits nowhere, all moved together no larger than it is. 0 = as published: none. */
	uint32_t migrate_percent;
};

struct takt_fgd_class_count {
	uint64_t arrived, placed; /* until the last event of the column */
};

struct takt_fgd_point {
	uint64_t events; /* 0: the arrivals never came by this column */
	/* Sums over the events. */
	uint64_t arrived_milli, allocated_milli, fragment_milli, idle_milli;
	uint64_t fragment_ppm;	/* of what was idle */
	uint64_t placed, moved; /* tasks, until the last event */
};

struct takt_fgd_result {
	struct takt_fgd_point points[TAKT_FGD_MAX_LOADS]; /* by column */
	TAKT_VEC(struct takt_fgd_class_count) classes;	  /* column by column */
	uint64_t arrivals, placed, moved;
};

/* *ret is overwritten; untouched on failure. */
int takt_fgd_run(const struct takt_fgd_world *world, const struct takt_placement *placement,
		 const struct takt_place_param *params, size_t param_count, uint64_t seed,
		 struct takt_fgd_result *ret, struct takt_err *err);
void takt_fgd_result_fini(struct takt_fgd_result *result);

/*
 * What arrived, for the bound: for each column and kind of pod the sum over the column's events of
 * how many had arrived. `counts` has room for load_count * work->kinds.len, events for load_count.
 */
int takt_fgd_arrived(const struct takt_fgd_world *world, uint64_t seed, uint64_t *counts,
		     uint64_t *events, struct takt_err *err);

#endif
