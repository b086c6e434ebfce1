/* SPDX-License-Identifier: Apache-2.0 */
/* The list of forecasters, and what those that choose parameters share. */
#include "model/forecast.h"

#include <errno.h>
#include <math.h>

const struct takt_forecaster *const takt_forecasters[TAKT_FORECASTERS] = {
	&takt_forecast_persistence, &takt_forecast_seasonal,	 &takt_forecast_ewma,
	&takt_forecast_ar,	    &takt_forecast_holt_winters, &takt_forecast_lstm,
};

struct takt_series takt_series_head(const struct takt_series *series, size_t len)
{
	struct takt_series head = *series;

	head.len = len < series->len ? len : series->len;
	return head;
}

int takt_forecast_check(const struct takt_series *series, const struct takt_forecast_task *task,
			struct takt_err *err)
{
	if (series->step_s == 0 || series->len > TAKT_FORECAST_MAX_LEN)
		return takt_err_set(err, -EINVAL, "a series of %zu samples every %u s", series->len,
				    series->step_s);
	if (task->horizon < 1 || task->horizon > TAKT_FORECAST_MAX_HORIZON)
		return takt_err_set(err, -EINVAL, "horizon: 1 to %d steps, not %u",
				    TAKT_FORECAST_MAX_HORIZON, task->horizon);
	if (task->season > TAKT_FORECAST_MAX_SEASON)
		return takt_err_set(err, -EINVAL, "season: at most %d steps, not %u",
				    TAKT_FORECAST_MAX_SEASON, task->season);
	for (size_t i = 0; i < series->len; i++)
		if (fabs(series->value[i]) > TAKT_FORECAST_MAX_VALUE)
			return takt_err_set(err, -EINVAL, "sample %zu is beyond 1e15", i + 1);
	return 0;
}

double takt_forecast_mean(const double *value, size_t count, size_t stride)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (isnan(value[i * stride]))
			continue;
		sum += value[i * stride];
		known++;
	}
	return known ? sum / (double)known : NAN;
}

/* At sample i slot i % horizon has what was said of it, `horizon` samples before. */
double takt_forecast_trial(const struct takt_series *history, uint32_t horizon, size_t skip,
			   void *state, void (*observe)(void *state, double value),
			   double (*predict)(const void *state))
{
	double said[TAKT_FORECAST_MAX_HORIZON], sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < history->len; i++) {
		double error = i < horizon ? NAN : history->value[i] - said[i % horizon];

		if (i >= skip && !isnan(error)) {
			sum += error * error;
			count++;
		}
		observe(state, history->value[i]);
		said[i % horizon] = predict(state);
	}
	return count ? sum / (double)count : INFINITY;
}
