/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be expected of a job that has run for some time: chances to end, and the rank. */
#include "model/runtime_state.h"

#define ONE (UINT64_C(1) << 32)

__extension__ typedef unsigned __int128 wide;

enum {
	PRIOR = 10, /* jobs that the group above counts as */
};

/* Chance to end in the step, in units of 2^-32, given that of the group above. */
static uint64_t chance(const struct runtime_group *group, uint32_t step, uint64_t above)
{
	wide ended = ((wide)group->ended[step] << 32) + (wide)above * PRIOR * RUNTIME_ONE;
	uint64_t h = (uint64_t)(ended / (group->came[step] + PRIOR * RUNTIME_ONE));

	return h < ONE ? h : ONE;
}

/* Of all jobs: as if of one job that came to each step three tenths had ended there. */
static uint64_t chance_of_all(const struct runtime_group *group, uint32_t step)
{
	wide ended = ((wide)group->ended[step] + 3 * RUNTIME_ONE / 10) << 32;

	return (uint64_t)(ended / (group->came[step] + RUNTIME_ONE));
}

static void fill_chances(const struct runtime_kind *kind, uint64_t *ret)
{
	for (uint32_t step = 0; step < TAKT_RUNTIME_STEPS; step++) {
		ret[step] = chance_of_all(kind->groups[0], step);
		for (uint32_t i = 1; i < RUNTIME_LEVELS; i++)
			if (kind->groups[i])
				ret[step] = chance(kind->groups[i], step, ret[step]);
	}
}

/* Length of a step; the open one counts as long as it begins late. */
static uint64_t length_ms(uint32_t step)
{
	uint64_t begin_ms = takt_runtime_step_ms(step);

	return step + 1 < TAKT_RUNTIME_STEPS ? takt_runtime_step_ms(step + 1) - begin_ms : begin_ms;
}

/*
 * Walks from `step` on, `alive` being the chance to come that far and `spent` the expected time
 * until then; a job that ends within a step ends in its middle on average. The best moment to give
 * up is the one with the least time for each job done, compared without dividing.
 */
static uint64_t rank_from(const uint64_t *chances, uint32_t step)
{
	wide spent = 0; /* ms, in units of 2^-32 */
	wide best_spent = 0;
	uint64_t alive = ONE;
	uint64_t best_done = 0;

	for (; step < TAKT_RUNTIME_STEPS && alive > ONE >> 20; step++) {
		uint64_t ends = (uint64_t)((wide)alive * chances[step] >> 32);

		spent += (wide)(alive - ends / 2) * length_ms(step);
		alive -= ends;
		if (ends == 0 && best_done)
			continue;
		/* spent < 2^74, done <= 2^32 */
		if (best_done == 0 || spent * best_done < best_spent * (ONE - alive)) {
			best_spent = spent;
			best_done = ONE - alive;
		}
	}
	return best_done ? (uint64_t)(best_spent / best_done) : UINT64_MAX;
}

void takt_runtime_outlook(const struct takt_runtime *model, uint32_t kind,
			  struct takt_runtime_outlook *ret)
{
	uint64_t chances[TAKT_RUNTIME_STEPS];

	fill_chances(&model->kinds.at[kind], chances);
	for (uint32_t step = 0; step < TAKT_RUNTIME_STEPS; step++) {
		ret->age_ms[step] = takt_runtime_step_ms(step);
		ret->rank_ms[step] = rank_from(chances, step);
	}
}
