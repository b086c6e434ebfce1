/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's log of a governor's steps, made again (clock/epoch_log.h): do the same inputs still
 * lead to the same wishes? */
#ifndef TAKT_SIM_EPOCH_CHECK_H
#define TAKT_SIM_EPOCH_CHECK_H

#include <stdint.h>

#include "clock/governor_choice.h"

struct takt_epoch_check {
	char governor[32], job[80];
	uint32_t max_slowdown_permille; /* 0 = none was promised */
	uint32_t steps, differing;
	uint32_t first_differing; /* from 1; 0 = none */
	uint32_t ceiling_mhz;	  /* of the last wish; 0 = none */
};

/* By the governors of `all`. */
int takt_epoch_check(const struct takt_governors *all, const char *path,
		     struct takt_epoch_check *ret, struct takt_err *err);

#endif
