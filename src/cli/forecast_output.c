/* SPDX-License-Identifier: Apache-2.0 */
/* The backtest for programs. */
#include <math.h>
#include <string.h>

#include "cli/forecast_cli.h"
#include "cli/job_filter.h"
#include "codec/json.h"
#include "takt_build.h"
#include "takt_commit.h"

enum {
	NEWEST = 400, /* steps that are told one by one */
	MAX_COMMAND = 65536,
};

static void add_number(struct takt_str *out, const char *name, double value)
{
	takt_json_add_name(out, name, false);
	if (isfinite(value))
		takt_str_addf(out, "%.10g", value);
	else
		takt_str_add(out, "null");
}

static void add_score(const struct takt_forecast_cli *own, size_t k, struct takt_str *out)
{
	const struct takt_backtest_score *score = &own->result.scores[k];

	takt_str_addf(out, "%s\n{\"name\":\"%s\"", k ? "," : "", takt_forecasters[k]->name);
	if (!score->tried) {
		takt_json_add_name(out, "why_not", false);
		takt_json_add_text(out, score->why_not);
		takt_str_add(out, "}");
		return;
	}
	takt_str_addf(out, ",\"tested\":%zu,\"silent\":%zu", score->tested, score->silent);
	add_number(out, "mae", score->mae);
	add_number(out, "rmse", score->rmse);
	add_number(out, "p90", score->p90);
	takt_str_addf(out, ",\"high\":%zu,\"missed\":%zu,\"needless\":%zu", score->high,
		      score->missed, score->needless);
	add_number(out, "missed_load_pct", takt_forecast_missed_pct(score));
	add_number(out, "wasted_wh", takt_forecast_wasted_wh(own, score));
	add_number(out, "loss", score->loss);
	add_number(out, "better", k ? score->better : NAN);
	add_number(out, "better_error", k ? score->error : NAN);
	takt_str_add(out, "}");
}

static void add_steps(struct takt_str *out, const char *name, const double *values, size_t from,
		      size_t len)
{
	takt_json_add_name(out, name, false);
	for (size_t i = from; i < len; i++) {
		takt_str_add(out, i == from ? "[" : ",");
		if (isfinite(values[i]))
			takt_str_addf(out, "%.6g", values[i]);
		else
			takt_str_add(out, "null");
	}
	takt_str_add(out, "]");
}

/* The end of the held-out time: what was, and what the chosen one had said of it. */
static void add_newest(const struct takt_forecast_cli *own, struct takt_str *out)
{
	size_t len = own->series.len, from = len > NEWEST ? len - NEWEST : 0;

	takt_str_addf(out, ",\"newest\":{\"steps\":%zu", len - from);
	add_steps(out, "was", own->series.value, from, len);
	add_steps(out, "said", own->result.said[own->result.chosen], from, len);
	takt_str_add(out, "}");
}

void takt_forecast_json(const struct takt_forecast_cli *own, struct takt_str *out)
{
	const struct takt_series *series = &own->series;
	TAKT_CLEANUP(strp) struct takt_str command = TAKT_STR(MAX_COMMAND);
	uint32_t horizon = own->config.task.horizon;

	takt_cli_command_text(own->cli, &command);
	takt_str_addf(out,
		      "{\"format\":\"takt-forecast\",\"version\":1,\"takt\":\"%s\","
		      "\"commit\":\"%s\",\"simulated\":%s,\"series\":",
		      TAKT_VERSION, TAKT_COMMIT, own->simulated ? "true" : "false");
	takt_json_add_text(out, own->what);
	takt_json_add_name(out, "unit", false);
	takt_json_add_text(out, own->unit + strspn(own->unit, " "));
	takt_json_add_name(out, "command", false);
	takt_json_add_text(out, takt_str_text(&command));
	takt_str_addf(out,
		      ",\"steps\":%zu,\"step_s\":%u,\"begin_s\":%lld,\"horizon_s\":%llu,"
		      "\"held_out\":%zu,\"chosen_by\":\"%s\"",
		      series->len, series->step_s, (long long)series->begin_s,
		      (unsigned long long)horizon * series->step_s, series->len - own->result.begin,
		      own->config.by_consequence ? "load" : "error");
	add_number(out, "threshold", own->result.threshold);
	add_number(out, "watts", (double)own->watts);
	takt_str_add(out, ",\"forecasters\":[");
	for (size_t k = 0; k < TAKT_FORECASTERS; k++)
		add_score(own, k, out);
	takt_str_add(out, "]");
	if (own->governed_count)
		takt_forecast_govern_json(own, out);
	takt_str_addf(out, ",\"chosen\":\"%s\",\"forecast\":{\"at_s\":%lld",
		      takt_forecasters[own->result.chosen]->name,
		      (long long)(series->begin_s +
				  (int64_t)(series->len - 1 + horizon) * series->step_s));
	add_number(out, "value", own->next);
	add_number(out, "within_p90", own->result.scores[own->result.chosen].p90);
	takt_str_add(out, "}");
	add_newest(own, out);
	takt_str_add(out, "}\n");
}

/* What was not tried is a row of empty cells, with the reason. */
void takt_forecast_csv(const struct takt_forecast_cli *own, struct takt_str *out)
{
	takt_str_add(out, "forecaster,chosen,tested,silent,mae,rmse,p90,high,missed,needless,"
			  "missed_load_pct,wasted_wh,why_not\n");
	for (size_t k = 0; k < TAKT_FORECASTERS; k++) {
		const struct takt_backtest_score *score = &own->result.scores[k];

		takt_str_addf(out, "%s,%d,", takt_forecasters[k]->name, own->result.chosen == k);
		if (score->tried)
			takt_str_addf(out, "%zu,%zu,%.10g,%.10g,%.10g,%zu,%zu,%zu,%.6g,%.6g,",
				      score->tested, score->silent, score->mae, score->rmse,
				      score->p90, score->high, score->missed, score->needless,
				      takt_forecast_missed_pct(score),
				      takt_forecast_wasted_wh(own, score));
		else
			takt_str_add(out, ",,,,,,,,,,");
		takt_csv_add(out, score->why_not, true);
	}
}
