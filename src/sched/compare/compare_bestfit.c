/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Best fit: the node with the least left over, CPU and accelerators weighing the same.
 *
 *	int(100 * (1 - (0.5 * (cpu left - cpu) / 128000 + 0.5 * (gpu left - gpu) / 8000)))
 *
 * over the common divisor 128000. The original then stretches the scores of all feasible nodes to
 * 0..100, which moves no maximum: the highest is 100 and no other is. Of fractions the tightest
 * device, of whole ones the lowest, as the cluster chooses by itself.
 */
#include "sched/compare/compare.h"

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	int64_t cpu = node->cpu_left_milli - takt_place_cpu_milli(request);
	int64_t milli = takt_compare_left(node) - takt_compare_asked(request);
	int64_t per = TAKT_COMPARE_MAX_CPU / TAKT_COMPARE_MAX_MILLI;

	(void)state;
	(void)choice;
	return takt_compare_level(
		(100 * (int64_t)TAKT_COMPARE_MAX_CPU - 50 * cpu - 50 * per * milli) /
		TAKT_COMPARE_MAX_CPU);
}

const struct takt_placement takt_compare_bestfit = {
	.name = "bestfit",
	.summary = "least CPU and accelerators left over",
	.levels = TAKT_COMPARE_LEVELS,
	.ignores_memory = true,
	.score = score,
};
