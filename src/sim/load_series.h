/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series for forecasts, at a steady step: from samples that were taken whenever (a step is their
 * mean, one without any is a gap) and from jobs (a step is what they held on average, and nothing
 * runs where no job does).
 */
#ifndef TAKT_SIM_LOAD_SERIES_H
#define TAKT_SIM_LOAD_SERIES_H

#include "base/vec.h"
#include "model/forecast.h"

enum {
	TAKT_LOAD_MAX_SAMPLES = 20000000,
};

struct takt_load_sample {
	int64_t at_ns;
	double value;
};
struct takt_load_samples {
	TAKT_VEC(struct takt_load_sample) list;
};

/* Held so much from then until then. */
struct takt_load_span {
	int64_t from_ns, to_ns;
	double value;
};
struct takt_load_spans {
	TAKT_VEC(struct takt_load_span) list;
};

/* Both: *ret_values is the caller's to takt_free, and what *ret borrows. -ENODATA without samples,
 * -EINVAL when they are further apart than a series may be long. */
int takt_load_from_samples(const struct takt_load_samples *samples, uint32_t step_s,
			   double **ret_values, struct takt_series *ret, struct takt_err *err);
int takt_load_from_spans(const struct takt_load_spans *spans, int64_t begin_ns, int64_t end_ns,
			 uint32_t step_s, double **ret_values, struct takt_series *ret,
			 struct takt_err *err);

/* CSV or JSON Lines with a time ("time", "time_s", "timestamp": seconds, or a date) and a value
 * ("value"; an empty cell is a gap). Adds to *ret, which the caller has initialised. */
int takt_load_read_samples(const char *path, struct takt_load_samples *ret, struct takt_err *err);

/* What the jobs of a trace (docs/simulate.md) would hold if each began when it was submitted; where
 * a trace has starts, these count. Of that tenant only; NULL = all. *ret_end_ns: the last
 * submission, behind which the trace says nothing. */
int takt_load_read_trace(const char *path, const char *tenant, struct takt_load_spans *ret,
			 int64_t *ret_begin_ns, int64_t *ret_end_ns, struct takt_err *err);

#endif
