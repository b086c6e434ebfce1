/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of some ascending steps are not above a value, in a few instructions: a table says how
 * many are below the value's part of the range, and the rest is counted. Turns gradients into
 * levels and free CPU into classes.
 */
#ifndef TAKT_SCHED_PLACE_LADDER_H
#define TAKT_SCHED_PLACE_LADDER_H

#include <stddef.h>
#include <stdint.h>

enum {
	TAKT_LADDER_PARTS = 1024,
	TAKT_LADDER_MAX = 65535, /* steps */
};

struct takt_ladder {
	const int64_t *step; /* borrowed, ascending, all different */
	uint32_t count;
	uint32_t shift;
	uint16_t below[TAKT_LADDER_PARTS];
};

/* The steps are borrowed as long as the ladder is used. */
void takt_ladder_init(struct takt_ladder *ladder, const int64_t *steps, size_t count);

static inline uint32_t takt_ladder_count(const struct takt_ladder *ladder, int64_t value)
{
	uint32_t count;

	if (ladder->count == 0 || value < ladder->step[0])
		return 0;
	if (value >= ladder->step[ladder->count - 1])
		return ladder->count;
	count = ladder->below[(uint64_t)(value - ladder->step[0]) >> ladder->shift];
	while (ladder->step[count] <= value)
		count++;
	return count;
}

#endif
