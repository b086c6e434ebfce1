/* SPDX-License-Identifier: Apache-2.0 */
/* Filling in a ladder's table: see place_ladder.h. */
#include "sched/place_ladder.h"

void takt_ladder_init(struct takt_ladder *ladder, const int64_t *steps, size_t count)
{
	uint64_t range = count ? (uint64_t)(steps[count - 1] - steps[0]) : 0;
	uint32_t at = 0;

	ladder->step = steps;
	ladder->count = (uint32_t)count;
	ladder->shift = 0;
	while (range >> ladder->shift >= TAKT_LADDER_PARTS)
		ladder->shift++;
	for (uint64_t part = 0; part < TAKT_LADDER_PARTS; part++) {
		while (at < count && (uint64_t)(steps[at] - steps[0]) <= part << ladder->shift)
			at++;
		ladder->below[part] = (uint16_t)at;
	}
}
