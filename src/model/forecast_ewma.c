/* SPDX-License-Identifier: Apache-2.0 */
/* EWMA: the mean so far, in which old samples fade; how fast is what would have been best. */
#include <errno.h>
#include <math.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "model/forecast.h"

struct ewma {
	double weight; /* of the newest sample */
	double level;
	double keep; /* what the level is worth beside the next sample: less after a gap */
};

static void observe(void *state, double value)
{
	struct ewma *own = state;

	own->keep *= 1 - own->weight;
	if (isnan(value))
		return;
	own->level = isnan(own->level) ? value : value + own->keep * (own->level - value);
	own->keep = 1;
}

static double predict(const void *state)
{
	return ((const struct ewma *)state)->level;
}

static int fit(const struct takt_series *history, const struct takt_forecast_task *task, void **ret,
	       struct takt_err *err)
{
	static const double weights[] = {1, .9, .8, .7, .6, .5, .4, .3, .2, .1, .05, .02, .01};
	struct ewma *best = takt_zalloc(sizeof(*best));
	double least = INFINITY;

	if (!best)
		return takt_err_set(err, -ENOMEM, "ewma");
	*best = (struct ewma){.weight = weights[0], .level = NAN, .keep = 1};
	for (size_t i = 0; i < TAKT_ARRAY_LEN(weights); i++) {
		struct ewma own = {.weight = weights[i], .level = NAN, .keep = 1};
		double error =
			takt_forecast_trial(history, task->horizon, 0, &own, observe, predict);

		if (i == 0 || error < least) {
			least = error;
			*best = own;
		}
	}
	*ret = best;
	return 0;
}

const struct takt_forecaster takt_forecast_ewma = {
	.name = "ewma",
	.summary = "mean in which old samples fade",
	.fit = fit,
	.observe = observe,
	.predict = predict,
	.release = takt_free,
};
