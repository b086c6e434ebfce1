/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many independent runs over the cores. Run i writes what it finds into place i of the caller's own
 * array, so results do not depend on how many threads there were or which was first.
 */
#ifndef TAKT_SIM_POOL_H
#define TAKT_SIM_POOL_H

#include <stddef.h>

#include "base/err.h"

struct takt_sim_pool {
	/* One run; called from several threads at a time, for each i once. */
	int (*run)(void *ctx, size_t i, struct takt_err *err);
	/* Optional; from one thread at a time, after each run, `done` rising to `count`. A negative
	 * return stops everything. */
	int (*progress)(void *ctx, size_t done, size_t count);
	void *ctx;
	unsigned threads; /* 0 = as many as there are cores to run on */
};

/*
 * 0, or the error of the lowest i that failed among those that were started; nothing is started
 * after a failure.
 */
int takt_sim_pool_run(const struct takt_sim_pool *pool, size_t count, struct takt_err *err);

#endif
