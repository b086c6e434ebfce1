/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement policies to compare with: the published ones that FGD was measured against (Weng et
 * al., USENIX ATC 2023, and its simulator, whose constants these are). For simulations and tests;
 * the daemon does not link them. FGD itself is among takt's own (place.h).
 *
 * All look at CPU and accelerators only, and count a task without a CPU request as 100 milli-CPU,
 * as their originals do. Their floating point is done here in whole numbers; where that could
 * differ is said in each file, and a test compares the two on every decision of the given traces.
 */
#ifndef TAKT_SCHED_COMPARE_COMPARE_H
#define TAKT_SCHED_COMPARE_COMPARE_H

#include "sched/place.h"

enum {
	TAKT_COMPARE_LEVELS = 101,
	TAKT_COMPARE_MAX_CPU = 128000, /* of the largest node that the originals know */
	TAKT_COMPARE_MAX_MILLI = 8000,
};

extern const struct takt_placement takt_compare_bestfit;
extern const struct takt_placement takt_compare_dotprod;
extern const struct takt_placement takt_compare_gpupacking;
extern const struct takt_placement takt_compare_gpuclustering;
extern const struct takt_placement takt_compare_random;

/* Those above, ended by NULL. */
extern const struct takt_placement *const takt_compare_placements[];
/* Of these or of takt's own; NULL = none. */
const struct takt_placement *takt_compare_find(const char *name);

/* What is left of all devices of a node. */
static inline int64_t takt_compare_left(const struct takt_node *node)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < node->devices; i++)
		sum += node->left[i];
	return sum;
}

/* What a request takes of all of them. */
static inline int64_t takt_compare_asked(const struct takt_request *request)
{
	return (int64_t)request->devices * request->milli;
}

static inline uint32_t takt_compare_level(int64_t score)
{
	if (score < 0)
		return 0;
	return score < TAKT_COMPARE_LEVELS ? (uint32_t)score : TAKT_COMPARE_LEVELS - 1;
}

#endif
