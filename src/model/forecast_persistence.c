/* SPDX-License-Identifier: Apache-2.0 */
/* Persistence: it will be as it is. The one that the others have to beat. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "model/forecast.h"

struct persistence {
	double last;
	uint32_t age;	/* steps since then */
	uint32_t limit; /* beyond it the last value says nothing any more */
};

enum {
	HORIZONS_KEPT = 3
};

static void observe(void *state, double value)
{
	struct persistence *own = state;

	if (!isnan(value)) {
		own->last = value;
		own->age = 0;
	} else if (own->age <= own->limit) {
		own->age++;
	}
}

static double predict(const void *state)
{
	const struct persistence *own = state;

	return own->age <= own->limit ? own->last : NAN;
}

static int fit(const struct takt_series *history, const struct takt_forecast_task *task, void **ret,
	       struct takt_err *err)
{
	struct persistence *own = takt_zalloc(sizeof(*own));

	if (!own)
		return takt_err_set(err, -ENOMEM, "persistence");
	own->last = NAN;
	own->limit = HORIZONS_KEPT * task->horizon;
	for (size_t i = 0; i < history->len; i++)
		observe(own, history->value[i]);
	*ret = own;
	return 0;
}

const struct takt_forecaster takt_forecast_persistence = {
	.name = "persistence",
	.summary = "as it is now",
	.fit = fit,
	.observe = observe,
	.predict = predict,
	.release = takt_free,
};
