/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU draws, idle and at work, by model: the table of PWR (Lettich et al., CCGrid 2025),
 * which has the boards' idle draw and their power limit. A GPU that a job holds counts as at work.
 * Models that it does not know have no figure, and then a cluster has no energy.
 */
#ifndef TAKT_SIM_GPU_POWER_H
#define TAKT_SIM_GPU_POWER_H

#include <stdbool.h>
#include <stdint.h>

struct takt_gpu_power {
	uint32_t idle_w, busy_w;
};

/* By name without regard to case; a longer name that begins with a known one has its figures
 * ("V100M32"). False when it is not known. */
bool takt_gpu_power_find(const char *model, struct takt_gpu_power *ret);

#endif
