/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed per price, see the header. Everything is a product of two small integers: 1.5 - u in steps
 * of 1/32 of a model, so 16 (full) to 48 (empty), times the speed in permille.
 */
#include "sched/place_hetero.h"

#include <stdbool.h>

enum {
	STEPS = 32,
	CALM = 48, /* 1.5 in steps */
};

/* 1 / price. */
static uint64_t calm(const struct takt_hetero_pool *pool)
{
	uint64_t held =
		pool->held_milli < pool->usable_milli ? pool->held_milli : pool->usable_milli;

	return CALM - held * STEPS / pool->usable_milli;
}

static uint64_t worth(const struct takt_hetero_pool *pool, const struct takt_hetero_job *job,
		      uint32_t model)
{
	bool allowed = job->models == 0 || (job->models >> model & 1) != 0;

	if (!allowed || pool->usable_milli == 0 || pool->widest < job->devices)
		return 0;
	return job->permille[model] * calm(pool);
}

uint32_t takt_hetero_rank(const struct takt_hetero_pool *pools, uint32_t models,
			  const struct takt_hetero_job *job, uint32_t wait_permille,
			  uint8_t ret_models[static TAKT_HETERO_MAX_MODELS])
{
	uint64_t value[TAKT_HETERO_MAX_MODELS];
	uint32_t count = 0, kept = 0;

	for (uint32_t model = 0; model < models; model++) {
		uint64_t own = worth(&pools[model], job, model);
		uint32_t at = count;

		if (own == 0)
			continue;
		for (; at > 0 && value[at - 1] < own; at--) {
			value[at] = value[at - 1];
			ret_models[at] = ret_models[at - 1];
		}
		value[at] = own;
		ret_models[at] = (uint8_t)model;
		count++;
	}
	while (kept < count &&
	       (wait_permille == 0 || value[kept] * wait_permille >= value[0] * 1000))
		kept++;
	return kept;
}
