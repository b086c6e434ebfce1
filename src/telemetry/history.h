/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did, kept for weeks: of each metric the least, mean and highest of every ten seconds,
 * minute and hour, in one file of fixed size a GPU. The caller's thread only adds numbers up; a
 * thread of this object's own does everything with files, writing and reading.
 *
 * Nothing here fails the caller: what cannot be written is lost, counted and said
 * (takt_history_state). What a board does not tell, and a time in which nobody looked, are not in
 * the files at all. Times are wall clock, since they outlive boots; when it jumps back, what comes
 * then is added to what was there for that time. docs/telemetry.md has the file's format.
 */
#ifndef TAKT_TELEMETRY_HISTORY_H
#define TAKT_TELEMETRY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sys.h"
#include "base/timetypes.h"
#include "device/device.h"

enum {
	TAKT_HISTORY_SERIES = 16, /* for which a record has room */
	TAKT_HISTORY_LEVELS = 3,
	TAKT_HISTORY_MAX_ASKS = 32, /* at a time */
};

/* One metric that is kept. */
struct takt_history_series {
	const char *name; /* "power" */
	const char *unit; /* "W" */
};
/* By its place in the files; NULL beyond the last. */
const struct takt_history_series *takt_history_series_at(uint32_t series);
/* Its place, or TAKT_HISTORY_SERIES when there is none of that name. */
uint32_t takt_history_series_find(const char *name);
/* What the reading says of it; false when it does not. */
bool takt_history_series_value(uint32_t series, const struct takt_gpu_reading *reading,
			       double *ret);

/* Every `step_s` a record, the newest `slots` of them. */
struct takt_history_level {
	uint32_t step_s, slots;
};
/* A day of ten seconds, two weeks of minutes, a year of hours. */
extern const struct takt_history_level takt_history_levels[TAKT_HISTORY_LEVELS];

struct takt_history_config {
	const struct takt_sys *sys;
	int dirfd; /* where the files are; borrowed until close */
	uint32_t gpu_count;
	const char *const *uuids; /* of GPUs; NULL = not known, nothing is kept of it */
	/* From fine to coarse, each step a multiple of the one before; NULL = takt_history_levels.
	 */
	const struct takt_history_level *levels;
	/* Bytes that are free where the files are; NULL = no matter. A file is only made where it
	 * takes no more than a sixteenth of them, so that the queue's database has room. */
	uint64_t (*free_bytes)(void *ctx);
	void *ctx;
};

struct takt_history;
int takt_history_open(const struct takt_history_config *config, struct takt_history **ret,
		      struct takt_err *err);
/* Writes what has come so far; asks that were not answered are dropped. NULL is fine. */
void takt_history_close(struct takt_history *history);

/* A new sample. */
void takt_history_feed(struct takt_history *history, uint32_t gpu,
		       const struct takt_gpu_reading *reading, struct takt_wall at);
/* Hands over to be written what is complete; call at least once a step. */
void takt_history_tick(struct takt_history *history, struct takt_wall now);

/* One step of one series. */
struct takt_history_point {
	int64_t at_s; /* when the step began, since 1970 */
	double min, mean, max;
};
struct takt_history_span {
	uint32_t gpu, series, level;
	int64_t from_s, until_s; /* steps that begin in [from, until) */
};
/* An answer, oldest point first; borrowed for the call. rc < 0: then `err` says why. */
struct takt_history_answer {
	int rc;
	struct takt_err err;
	const struct takt_history_point *points;
	size_t count;
};
/* Asks; take(ctx, answer) follows from takt_history_pump, or take(ctx, NULL) when there will be no
 * answer. -TAKT_E_LIMIT: too many are under way. */
int takt_history_ask(struct takt_history *history, const struct takt_history_span *ask,
		     void (*take)(void *ctx, const struct takt_history_answer *answer), void *ctx,
		     struct takt_err *err);
int takt_history_fd(const struct takt_history *history); /* readable when pump has work */
void takt_history_pump(struct takt_history *history);

/* The finest level that reaches back to from_s and has at most max_points of the time asked for. */
uint32_t takt_history_level_for(const struct takt_history_level *levels, int64_t from_s,
				int64_t until_s, int64_t now_s, uint32_t max_points);

struct takt_history_state {
	uint64_t written, lost; /* records of GPUs, a step of the finest level each */
	struct takt_err last;	/* why the last one was lost; rc 0 = none was */
};
void takt_history_state(struct takt_history *history, struct takt_history_state *ret);

#endif
