/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The named workloads. activity and memory_util say what a profile costs, clock_weight how its time
 * answers to the clock: 1000 is purely compute-bound, 0 does not notice. The range is that of
 * measured sweeps (a from 0 to 0.9 on V100, 0.75 to 0.8 for GPT training on A100; STREAM on A100
 * loses nothing from 1410 to 1005 MHz); the single values are GUESSES within it.
 */
#include <string.h>

#include "takt_twin.h"

static const struct twin_profile profiles[] = {
	{"gemm", .util = 1000, .memory_util = 110, .activity = 1000, .clock_weight = 950},
	{"stream", .util = 1000, .memory_util = 920, .activity = 420, .clock_weight = 20},
	{"resnet50", .util = 970, .memory_util = 550, .activity = 700, .clock_weight = 450},
	{"data-starved", .util = 350, .memory_util = 150, .activity = 220, .clock_weight = 150},
	{"idle"},
};

const struct twin_profile *twin_profile_at(unsigned index)
{
	return index < TAKT_ARRAY_LEN(profiles) ? &profiles[index] : NULL;
}

const struct twin_profile *twin_profile_find(const char *name)
{
	for (unsigned i = 0; i < TAKT_ARRAY_LEN(profiles); i++) {
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	}
	return NULL;
}
