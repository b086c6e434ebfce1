/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a forecast is worth to a GPU that serves a load: the governor `forecast` over a series, a
 * step of it an epoch, with what a forecaster said as the load ahead. Counted are the energy and
 * the load that was missed because the clock was too low for it.
 *
 * The board is the simulated A100-SXM4-80GB's curve (twin/boards): between 60 W at rest and some
 * 510 W, busy at its highest clock. A load as high as the most that was seen before `begin` keeps
 * it busy at that clock; work is proportional to clock; what cannot be served in its step is missed
 * and not made up for. A model, not a measurement.
 */
#ifndef TAKT_SIM_LOAD_GOVERN_H
#define TAKT_SIM_LOAD_GOVERN_H

#include "model/forecast.h"

struct takt_load_governed {
	double energy_wh;
	double missed_pct; /* of the load */
	double mean_mhz;
};

/*
 * From sample `begin` to the end. ahead[i]: what was said of sample i, `horizon` steps earlier; NAN
 * where nothing was; NULL = no forecasts, the load of now decides. Gaps in the series cost nothing
 * and tell nothing. -ENODATA when there is no load before `begin`.
 */
int takt_load_govern(const struct takt_series *series, size_t begin, const double *ahead,
		     uint32_t horizon, struct takt_load_governed *ret, struct takt_err *err);

/* The same at the highest clock throughout. */
int takt_load_at_maximum(const struct takt_series *series, size_t begin,
			 struct takt_load_governed *ret, struct takt_err *err);

#endif
