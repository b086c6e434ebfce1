/* SPDX-License-Identifier: Apache-2.0 */
/* The list of policies for comparison. */
#include "sched/compare/compare.h"

#include <string.h>

const struct takt_placement *const takt_compare_placements[] = {
	&takt_compare_bestfit,	     &takt_compare_dotprod, &takt_compare_gpupacking,
	&takt_compare_gpuclustering, &takt_compare_random,  NULL,
};

const struct takt_placement *takt_compare_find(const char *name)
{
	for (size_t i = 0; takt_compare_placements[i]; i++)
		if (strcmp(takt_compare_placements[i]->name, name) == 0)
			return takt_compare_placements[i];
	return takt_placement_find(name);
}
