/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that looks at the machine at a rate, so that a daemon or driver that hangs stops no key.
 */
#ifndef TAKT_TOP_SAMPLER_H
#define TAKT_TOP_SAMPLER_H

#include "top/top_source.h"

struct takt_top_sampler;

/* Uses the source alone from now until stop. `at_once`: the first look is now, else when one is
 * due. */
int takt_top_sampler_start(struct takt_top_source *source, uint32_t rate_milli_hz, bool at_once,
			   struct takt_top_sampler **ret);
/* False: it hangs in the daemon or the driver; it and its source are left to the end of the
 * process.
 */
bool takt_top_sampler_stop(struct takt_top_sampler *sampler);
void takt_top_sampler_rate(struct takt_top_sampler *sampler, uint32_t rate_milli_hz);
/* Readable when there is news. */
int takt_top_sampler_fd(const struct takt_top_sampler *sampler);
/* The newest snapshot, the caller's now; false when there is none since the last one. */
bool takt_top_sampler_take(struct takt_top_sampler *sampler, struct takt_top_snapshot *ret);

#endif
