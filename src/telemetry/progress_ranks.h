/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of several ranks is as far as the one that is least far, and as fast as its slowest: what
 * was promised of the job was promised of all of it. A rank that has been silent for a minute
 * longer than the others has ended, or does not tell; it rules no more.
 */
#ifndef TAKT_TELEMETRY_PROGRESS_RANKS_H
#define TAKT_TELEMETRY_PROGRESS_RANKS_H

#include "telemetry/progress_read.h"

/* Leaves those that tell: of the others, and of times after `now`, `has` becomes 0. */
void takt_progress_living(struct takt_progress_said *said, struct takt_mono now);

/* What all that tell have reached, each counter by itself, the longest latency, and the newest
 * time. False: nobody tells anything. */
bool takt_progress_slowest(const struct takt_progress_said *said, struct takt_progress_file *ret);

/* Zeroed, nothing is known. */
struct takt_progress_ranks {
	uint32_t count;
	struct takt_progress_track *track; /* owned: one a rank */
};

void takt_progress_ranks_fini(struct takt_progress_ranks *ranks);

/* False: there was nothing to take, or no memory for it. */
bool takt_progress_ranks_feed(struct takt_progress_ranks *ranks,
			      const struct takt_progress_said *said, struct takt_mono now);

/* Of the slowest, as takt_progress_rates() has it of one. Skew is by the latencies where two ranks
 * tell them, since ranks that wait for each other in each step all have one rate; else by rates. */
bool takt_progress_ranks_rates(const struct takt_progress_ranks *ranks, struct takt_mono now,
			       struct takt_progress_rates *ret);

#endif
