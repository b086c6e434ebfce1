/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holt and Winters, additive, with a trend that is damped: a level, a trend and, where there are
 * two seasons of history to begin with, one value for each step of the season. The three weights
 * are those that would have done best.
 */
#include <errno.h>
#include <math.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "model/forecast.h"

static const double DAMPING = 0.95;

struct weights {
	double level, trend, season;
};

struct holt {
	struct weights weights;
	double ahead; /* how many trends the horizon is, damped */
	double level, trend;
	uint32_t season, horizon;
	size_t phase; /* of the next sample */
	double offset[];
};

static void observe(void *state, double value)
{
	struct holt *own = state;
	double *offset = own->season ? &own->offset[own->phase] : NULL;
	double base = value - (offset ? *offset : 0), before = own->level;

	own->level += DAMPING * own->trend;
	own->trend *= DAMPING;
	if (!isnan(value) && isnan(own->level)) {
		own->level = base;
	} else if (!isnan(value)) {
		own->level += own->weights.level * (base - own->level);
		own->trend += own->weights.trend * (own->level - before - own->trend);
	}
	if (!isnan(value) && offset)
		*offset += own->weights.season * (value - own->level - *offset);
	if (own->season)
		own->phase = (own->phase + 1) % own->season;
}

static double predict(const void *state)
{
	const struct holt *own = state;
	double value = own->level + own->ahead * own->trend;

	if (own->season)
		value += own->offset[(own->phase + own->horizon - 1) % own->season];
	return value;
}

/* The first two seasons, less their mean, are where the season begins. */
static void begin(struct holt *own, const struct takt_series *history, struct weights weights)
{
	double mean =
		own->season ? takt_forecast_mean(history->value, 2 * (size_t)own->season, 1) : NAN;

	own->weights = weights;
	own->level = NAN;
	own->trend = 0;
	own->phase = 0;
	for (size_t i = 0; i < own->season; i++) {
		double at = takt_forecast_mean(&history->value[i], 2, own->season);

		own->offset[i] = isnan(at) ? 0 : at - mean;
	}
}

static void choose(struct holt *own, const struct takt_series *history)
{
	static const double levels[] = {.05, .1, .2, .4, .7, .95}, trends[] = {0, .02, .1};
	static const double seasons[] = {.02, .1, .3};
	struct weights best = {levels[0], 0, seasons[0]};
	size_t season_count = own->season ? TAKT_ARRAY_LEN(seasons) : 1;
	double least = INFINITY;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(levels) * TAKT_ARRAY_LEN(trends) * season_count;
	     i++) {
		struct weights tried = {
			levels[i % TAKT_ARRAY_LEN(levels)],
			trends[i / TAKT_ARRAY_LEN(levels) % TAKT_ARRAY_LEN(trends)],
			seasons[i / TAKT_ARRAY_LEN(levels) / TAKT_ARRAY_LEN(trends)]};
		double error;

		begin(own, history, tried);
		error = takt_forecast_trial(history, own->horizon, 2 * (size_t)own->season, own,
					    observe, predict);
		if (error < least) {
			least = error;
			best = tried;
		}
	}
	begin(own, history, best);
	for (size_t i = 0; i < history->len; i++)
		observe(own, history->value[i]);
}

static int fit(const struct takt_series *history, const struct takt_forecast_task *task, void **ret,
	       struct takt_err *err)
{
	uint32_t season = history->len >= 3 * (size_t)task->season ? task->season : 0;
	struct holt *own = takt_zalloc(sizeof(*own) + season * sizeof(double));

	if (!own)
		return takt_err_set(err, -ENOMEM, "holt-winters");
	own->season = season;
	own->horizon = task->horizon;
	own->ahead = DAMPING * (1 - pow(DAMPING, task->horizon)) / (1 - DAMPING);
	choose(own, history);
	*ret = own;
	return 0;
}

const struct takt_forecaster takt_forecast_holt_winters = {
	.name = "holt-winters",
	.summary = "level, damped trend and season",
	.fit = fit,
	.observe = observe,
	.predict = predict,
	.release = takt_free,
};
