/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that looks at the machine at a rate, so that a daemon or driver that hangs stops no key.
 */
#ifndef TAKT_TOP_SAMPLER_H
#define TAKT_TOP_SAMPLER_H

#include "top/top_source.h"

struct takt_top_sampler;

/* Whom it tells, in its own thread, so that a look wakes nobody else: the snapshot is his. */
struct takt_top_listener {
	void (*take)(void *ctx, struct takt_top_snapshot *snapshot);
	void *ctx;
};

/* Uses the source alone from now, when the first look is, until stop. */
int takt_top_sampler_start(struct takt_top_source *source, uint32_t rate_milli_hz,
			   struct takt_top_listener listener, struct takt_top_sampler **ret);
/* False: it hangs in the daemon or the driver; it and its source are left to the end of the
 * process, and the listener may be told once more. Not by the listener. */
bool takt_top_sampler_stop(struct takt_top_sampler *sampler);
void takt_top_sampler_rate(struct takt_top_sampler *sampler, uint32_t rate_milli_hz);
/* Looks at the log of that job, too, from now on; 0 = at none. */
void takt_top_sampler_log(struct takt_top_sampler *sampler, uint64_t job_id);

#endif
