/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs say of how far they are (include/takt/progress.h), read with suspicion, and how fast
 * that is. The file is the job's user's: it may be a link, a pipe, another file system, cut off or
 * nonsense at any moment. It is opened below a folder without following links or crossing mounts,
 * never waited for, and read, not mapped; what is not the same twice is not taken. Nothing that is
 * in it can do more than be shown to its owner.
 */
#ifndef TAKT_TELEMETRY_PROGRESS_READ_H
#define TAKT_TELEMETRY_PROGRESS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/timetypes.h"
#include "takt/progress.h"

enum {
	TAKT_PROGRESS_KEPT = 32, /* samples that a rate is taken over */
};

/* A moment of a file: what each rank says. Of one that says nothing, or was caught writing, `has`
 * is 0. */
struct takt_progress_said {
	uint32_t count;
	struct takt_progress_file rank[TAKT_PROGRESS_MAX_RANKS];
};

/*
 * The file at `path` below the folder, made by `owner`. 0; -ENOENT: the job says nothing; -EAGAIN:
 * it was being written, all of it; -TAKT_E_CORRUPT: it is no such file, or another version.
 */
int takt_progress_read(int dirfd, const char *path, uid_t owner, struct takt_progress_said *ret);

/* Of one rank: counters of `to`, or its time, are below those of `from`. */
bool takt_progress_went_back(const struct takt_progress_file *from,
			     const struct takt_progress_file *to);

/* Plain; zeroed, nothing is known. */
struct takt_progress_track {
	struct takt_progress_file kept[TAKT_PROGRESS_KEPT]; /* a ring by count */
	uint32_t count;
};

/* A sample that was read at `now`. Counters that went back, or a time that did, begin it anew; a
 * time that is yet to come is refused: false. The same sample again is fine. */
bool takt_progress_feed(struct takt_progress_track *track, const struct takt_progress_file *sample,
			struct takt_mono now);

/* The newest sample, and thousandths a second over the last minute of samples. */
struct takt_progress_rates {
	uint32_t has;	/* enum takt_progress_has: told by the job */
	uint32_t rated; /* the same: a rate is known of it */
	uint64_t steps, tokens, queries, latency_us;
	uint64_t steps_milli_s, tokens_milli_s, queries_milli_s;
	uint64_t age_ms;  /* since the job said so */
	uint32_t samples; /* that the rates rest on */
	/* Of several ranks (progress_ranks.h): how many tell, which is slowest, and by how much of
	 * its time it is behind the fastest; that is known. */
	uint32_t ranks, slowest, skew_permille;
	bool skewed;
};

/* False: the job has said nothing. A job that was silent for a minute, or for three times as long
 * as it is between two words of it, has no rate. */
bool takt_progress_rates(const struct takt_progress_track *track, struct takt_mono now,
			 struct takt_progress_rates *ret);

#endif
