/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dot product (Tetris: Grandl et al., SIGCOMM 2014), in the form that FGD was compared with: CPU
 *and accelerators each normalised by the largest node, devices of a node taken together.
 *
 *	int(100 * (1 - (cpu left * cpu / 128000^2 + gpu left * gpu / 8000^2) / 2))
 *
 * over the common divisor 128000^2.
 */
#include "sched/compare/compare.h"

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	int64_t divisor = (int64_t)TAKT_COMPARE_MAX_CPU * TAKT_COMPARE_MAX_CPU;
	int64_t per = TAKT_COMPARE_MAX_CPU / TAKT_COMPARE_MAX_MILLI;
	int64_t cpu = (int64_t)node->cpu_left_milli * takt_place_cpu_milli(request);
	int64_t milli = takt_compare_left(node) * takt_compare_asked(request);

	(void)state;
	(void)choice;
	return takt_compare_level((100 * divisor - 50 * (cpu + per * per * milli)) / divisor);
}

const struct takt_placement takt_compare_dotprod = {
	.name = "dotprod",
	.summary = "smallest product of what is asked and what is left (Tetris)",
	.levels = TAKT_COMPARE_LEVELS,
	.ignores_memory = true,
	.score = score,
};
