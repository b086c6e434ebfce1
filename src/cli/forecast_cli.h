/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `takt forecast` share. */
#ifndef TAKT_CLI_FORECAST_CLI_H
#define TAKT_CLI_FORECAST_CLI_H

#include "cli/verb.h"
#include "model/backtest.h"
#include "model/lstm.h"
#include "sim/load_govern.h"
#include "sim/load_series.h"

/* The governor `forecast` on the time held out, and by whom it was driven. */
struct takt_forecast_governed {
	const char *name;
	struct takt_load_governed figures;
};

struct takt_forecast_cli {
	struct takt_cli *cli;
	struct takt_series series;
	double *values;	  /* owned: what the series borrows */
	char what[160];	  /* "GPUs held by the jobs of 'x.csv'" */
	const char *unit; /* with a blank before it; "" = none */
	bool wall;	  /* times are since 1970 */
	bool simulated;	  /* of simulated GPUs, or of a trace as if nobody had waited */
	struct takt_backtest_config config;
	int64_t watts;	       /* of being ready for nothing */
	struct takt_lstm *net; /* owned; --model */
	bool has_result;
	struct takt_backtest result;				      /* owned */
	struct takt_forecast_governed governed[TAKT_FORECASTERS + 3]; /* --govern */
	size_t governed_count;
	double next; /* what the chosen one says of `horizon` steps on; NAN */
};

/* forecast_source.c: the series that the options name. */
int takt_forecast_source(struct takt_forecast_cli *own, struct takt_err *err);

/* forecast_model.c. */
int takt_forecast_read_model(const char *path, struct takt_lstm **ret, struct takt_err *err);
int takt_forecast_train(struct takt_forecast_cli *own, struct takt_err *err);

/* forecast_text.c, forecast_output.c: the result as was asked for. */
void takt_forecast_text(const struct takt_forecast_cli *own);
void takt_forecast_json(const struct takt_forecast_cli *own, struct takt_str *out);
void takt_forecast_csv(const struct takt_forecast_cli *own, struct takt_str *out);

/* forecast_govern.c: what comes of the forecasts, under a governor. */
int takt_forecast_govern(struct takt_forecast_cli *own, struct takt_err *err);
void takt_forecast_govern_text(const struct takt_forecast_cli *own);
void takt_forecast_govern_json(const struct takt_forecast_cli *own, struct takt_str *out);

/* Energy that one forecaster's needless steps would have cost, Wh. */
static inline double takt_forecast_wasted_wh(const struct takt_forecast_cli *own,
					     const struct takt_backtest_score *score)
{
	return (double)score->needless * own->series.step_s * (double)own->watts / 3600;
}
/* Share of the high load that was not foreseen, percent; 0 without any. */
static inline double takt_forecast_missed_pct(const struct takt_backtest_score *score)
{
	return score->high_load > 0 ? 100 * score->missed_load / score->high_load : 0;
}

#endif
