/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU clustering: tasks of one size together. Sizes are a fraction, one device, two, and so on.
 *
 *	25 * (8000 - gpu left) / 8000, and on top of that
 *	75 on a node that has tasks of the same size only, 50 of the same and others, 25 none yet
 *
 * Tasks without devices score 0 anywhere.
 */
#include "sched/compare/compare.h"

enum {
	QUARTER = 25
};

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	int64_t used = TAKT_COMPARE_MAX_MILLI - takt_compare_left(node);
	uint32_t own = UINT32_C(1) << takt_node_shape(request);
	int64_t base = 0;

	(void)state;
	(void)choice;
	if (request->devices == 0)
		return 0;
	if (node->shapes == own)
		base = 3 * QUARTER;
	else if (node->shapes & own)
		base = 2 * QUARTER;
	else if (!node->shapes)
		base = QUARTER;
	return takt_compare_level(base + QUARTER * used / TAKT_COMPARE_MAX_MILLI);
}

const struct takt_placement takt_compare_gpuclustering = {
	.name = "gpuclustering",
	.summary = "tasks of one size together",
	.levels = TAKT_COMPARE_LEVELS,
	.ignores_memory = true,
	.score = score,
};
