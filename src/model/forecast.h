/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forecasts of a series some steps ahead: what a GPU's load or power will be in five minutes. Pure:
 * the same history and seed give the same forecast.
 *
 * A forecaster is a table of functions (struct takt_forecaster), each in a file of its own, all on
 * one seam: fit on history, be shown one sample after the other, say at any time what the value
 * will be `horizon` steps after the newest. A sample that is missing is NAN and is shown as such: a
 * gap is no zero, and time passes in it. NAN as an answer means that nothing can be said.
 *
 * None of them says how far it is off; that is measured on time held out (backtest.h), which also
 * says which of them is worth using.
 */
#ifndef TAKT_MODEL_FORECAST_H
#define TAKT_MODEL_FORECAST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct takt_lstm;

/* Samples at a steady step; borrowed. */
struct takt_series {
	const double *value; /* NAN = missing */
	size_t len;
	int64_t begin_s; /* when the first was taken, since 1970 or any other zero */
	uint32_t step_s;
};

/* The first `len` of them. */
struct takt_series takt_series_head(const struct takt_series *series, size_t len);

enum {
	TAKT_FORECAST_MAX_HORIZON = 1024, /* steps */
	TAKT_FORECAST_MAX_SEASON = 100000,
	TAKT_FORECAST_MAX_LEN = 10000000,
};

#define TAKT_FORECAST_MAX_VALUE 1e15 /* of a sample, either sign */

/* What is to be said, and how hard to try. */
struct takt_forecast_task {
	uint32_t horizon; /* steps, at least 1 */
	uint32_t season;  /* steps after which it may repeat itself; 0 = never */
	uint64_t seed;
	uint32_t lstm_hidden;	      /* units; 0 = 16 */
	uint32_t lstm_rounds;	      /* of training; 0 = 1500 */
	const struct takt_lstm *lstm; /* use this one, borrowed; NULL = train one on the history */
	/* Optional: how far training is. Anything but 0 ends it, and is the result. */
	int (*progress)(void *ctx, uint32_t done, uint32_t rounds);
	void *progress_ctx;
};

struct takt_forecaster {
	const char *name;
	const char *summary;
	/* Learns from the history, at whose end it then stands. *ret is the caller's to release.
	 * -ENODATA: too short for it; -EINVAL, -ENOMEM. */
	int (*fit)(const struct takt_series *history, const struct takt_forecast_task *task,
		   void **ret, struct takt_err *err);
	void (*observe)(void *state, double value); /* the next sample; NAN = missing */
	double (*predict)(const void *state);	    /* NAN = cannot tell */
	void (*release)(void *state);		    /* NULL is fine */
};

enum {
	TAKT_FORECASTERS = 6
};
/* The plainest first: persistence, seasonal, ewma, ar, holt-winters, lstm. */
extern const struct takt_forecaster *const takt_forecasters[TAKT_FORECASTERS];

extern const struct takt_forecaster takt_forecast_persistence, takt_forecast_seasonal,
	takt_forecast_ewma, takt_forecast_ar, takt_forecast_holt_winters, takt_forecast_lstm;

/* -EINVAL with a message for a series or a task that no forecaster takes. */
int takt_forecast_check(const struct takt_series *series, const struct takt_forecast_task *task,
			struct takt_err *err);

/* Mean of those of value[0], value[stride], ... that are known; NAN when none is. */
double takt_forecast_mean(const double *value, size_t count, size_t stride);

/*
 * For forecasters that choose their parameters: shows the history to a state that is new, and
 * returns the mean squared error of what it said, leaving out the first `skip` samples. Without
 * anything to compare it is INFINITY.
 */
double takt_forecast_trial(const struct takt_series *history, uint32_t horizon, size_t skip,
			   void *state, void (*observe)(void *state, double value),
			   double (*predict)(const void *state));

#endif
