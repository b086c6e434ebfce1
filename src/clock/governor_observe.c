/* SPDX-License-Identifier: Apache-2.0 */
/* observe: changes nothing. What takt does out of the box, until somebody promises a slowdown. */
#include "clock/governor.h"

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	(void)state;
	(void)setup;
	(void)seen;
	ret->reason = TAKT_REASON_OBSERVE;
}

const struct takt_governor takt_governor_observe = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "observe",
	.summary = "changes no clock",
	.step = step,
};
