/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which forecaster is worth using on a series, told on time that none of them was fitted on.
 *
 * Rolling origin: the last part of the series is held out and cut into folds. For each fold every
 * forecaster is fitted anew on everything before it, then shown one sample after the other, and
 * after each of them says what will be `horizon` steps later. A forecaster that cannot tell is
 * scored by what persistence said, as that is what would be used.
 *
 * Beside the error there is what the forecast is for. A GPU, or a machine, is made ready ahead of
 * load: where the value is foreseen at or above the threshold. A high value that was not foreseen
 * is missed; a foreseen one that did not come was needless, and costs the power of being ready.
 *
 * Chosen is the plainest that no other one beats: from persistence on each takes the place of the
 * one chosen so far only when its mean loss is smaller by more than TAKT_BACKTEST_SIGMAS standard
 * errors of the difference, taken over blocks of BLOCK horizons since neighbouring errors are
 * alike. Five comparisons at 2.6 are together wrong by chance in less than 3 of 100 series.
 */
#ifndef TAKT_MODEL_BACKTEST_H
#define TAKT_MODEL_BACKTEST_H

#include <stdbool.h>

#include "model/forecast.h"

#define TAKT_BACKTEST_SIGMAS 2.6

enum {
	TAKT_BACKTEST_BLOCK = 12,      /* horizons */
	TAKT_BACKTEST_MIN_BLOCKS = 10, /* fewer show nothing */
	TAKT_BACKTEST_MAX_FOLDS = 100,
};

struct takt_backtest_config {
	struct takt_forecast_task task;
	uint32_t held_out_permille; /* of the series; 0 = 300 */
	size_t first;		    /* nothing before this sample is tested; 0 = anything */
	uint32_t folds;		    /* 0 = 4 */
	double threshold;     /* NAN: the 80th percentile of what is before the held-out time */
	double needless_cost; /* of a needless step, that of a missed one being 1 */
	bool by_consequence;  /* chosen by missed and needless steps, else by the error */
	bool without[TAKT_FORECASTERS]; /* not tried, by the index in takt_forecasters */
	/* Borrowed, as long as the series: what it said after each sample as that came, of one that
	 * nothing is fitted of. It is not asked again then. NULL = it is. */
	const double *told[TAKT_FORECASTERS];
};

struct takt_backtest_score {
	bool tried;	      /* it could be fitted, in every fold */
	char why_not[128];    /* where it was not */
	size_t tested;	      /* forecasts whose value came to be known; the same for all */
	size_t silent;	      /* of these, those where persistence stood in */
	double mae, rmse;     /* mean absolute error, root of the mean square */
	double p90;	      /* nine of ten errors are at most this */
	size_t high;	      /* values at or above the threshold */
	size_t missed;	      /* of these, those not foreseen */
	size_t needless;      /* foreseen, and were not */
	double high_load;     /* sum of the high values */
	double missed_load;   /* and of those not foreseen */
	double loss;	      /* mean of what is chosen by */
	double better, error; /* than the one chosen before it: mean, and its standard error */
};

struct takt_backtest {
	struct takt_backtest_score scores[TAKT_FORECASTERS];
	size_t chosen;	      /* index in takt_forecasters */
	double better, error; /* of `chosen` than persistence, as in a score; 0 of itself */
	size_t begin;	      /* the first sample that is held out */
	double threshold;
	double *said[TAKT_FORECASTERS]; /* owned: of each sample what was said of it; NAN */
};

/* -ENODATA when there is too little to fit persistence and test it. The result is the caller's. */
int takt_backtest(const struct takt_series *series, const struct takt_backtest_config *config,
		  struct takt_backtest *ret, struct takt_err *err);
void takt_backtest_fini(struct takt_backtest *result);

#endif
