/* SPDX-License-Identifier: Apache-2.0 */
/* Seasonal naive: it will be as it was one season before, at that time yesterday. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "model/forecast.h"

struct seasonal {
	uint32_t season, horizon;
	size_t next;	/* place of the next sample in the ring */
	double value[]; /* the last season */
};

static void observe(void *state, double value)
{
	struct seasonal *own = state;

	own->value[own->next] = value;
	own->next = (own->next + 1) % own->season;
}

/* The ring's oldest sample is one season before the next one. */
static double predict(const void *state)
{
	const struct seasonal *own = state;

	return own->value[(own->next + own->horizon - 1) % own->season];
}

static int fit(const struct takt_series *history, const struct takt_forecast_task *task, void **ret,
	       struct takt_err *err)
{
	struct seasonal *own;

	if (task->season == 0 || history->len < task->season)
		return takt_err_set(err, -ENODATA, "seasonal: less than one season of history");
	if (task->season < task->horizon)
		return takt_err_set(err, -ENODATA, "seasonal: the season is within the horizon");
	own = takt_zalloc(sizeof(*own) + task->season * sizeof(double));
	if (!own)
		return takt_err_set(err, -ENOMEM, "seasonal");
	own->season = task->season;
	own->horizon = task->horizon;
	for (size_t i = history->len - task->season; i < history->len; i++)
		observe(own, history->value[i]);
	*ret = own;
	return 0;
}

const struct takt_forecaster takt_forecast_seasonal = {
	.name = "seasonal",
	.summary = "as it was one season before",
	.fit = fit,
	.observe = observe,
	.predict = predict,
	.release = takt_free,
};
