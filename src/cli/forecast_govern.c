/* SPDX-License-Identifier: Apache-2.0 */
/* takt forecast --govern: the governor `forecast` driven by each forecaster, on time held out. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "cli/forecast_cli.h"
#include "cli/table.h"
#include "codec/json.h"

static struct takt_forecast_governed *next_row(struct takt_forecast_cli *own, const char *name)
{
	struct takt_forecast_governed *row = &own->governed[own->governed_count++];

	row->name = name;
	return row;
}

static int govern_by(struct takt_forecast_cli *own, const char *name, const double *ahead,
		     struct takt_err *err)
{
	return takt_load_govern(&own->series, own->result.begin, ahead, own->config.task.horizon,
				&next_row(own, name)->figures, err);
}

/* Where it cannot tell persistence stands in, as in the backtest. */
static int govern_by_forecaster(struct takt_forecast_cli *own, size_t k, double *ahead,
				struct takt_err *err)
{
	const double *said = own->result.said[k], *instead = own->result.said[0];

	if (!own->result.scores[k].tried)
		return 0;
	for (size_t i = 0; i < own->series.len; i++)
		ahead[i] = isnan(said[i]) ? instead[i] : said[i];
	return govern_by(own, takt_forecasters[k]->name, ahead, err);
}

int takt_forecast_govern(struct takt_forecast_cli *own, struct takt_err *err)
{
	TAKT_CLEANUP(freep) double *ahead = takt_calloc(own->series.len, sizeof(*ahead));
	int rc;

	if (!ahead)
		return takt_err_set(err, -ENOMEM, "no memory for forecasts");
	rc = takt_load_at_maximum(&own->series, own->result.begin,
				  &next_row(own, "highest clock")->figures, err);
	if (rc == 0)
		rc = govern_by(own, "load of now", NULL, err);
	for (size_t k = 0; k < TAKT_FORECASTERS && rc == 0; k++)
		rc = govern_by_forecaster(own, k, ahead, err);
	return rc < 0 ? rc : govern_by(own, "the future itself", own->series.value, err);
}

void takt_forecast_govern_text(const struct takt_forecast_cli *own)
{
	static const struct takt_column columns[] = {
		{"GOVERNED BY", false, 0, 0},
		{"ENERGY", true, 0, 0},
		{"LOAD MISSED", true, 0, 0},
		{"MEAN CLOCK", true, 0, 1},
	};
	struct takt_table table = TAKT_TABLE(columns);
	struct takt_str *out = &own->cli->out;

	for (size_t i = 0; i < own->governed_count; i++) {
		const struct takt_forecast_governed *row = &own->governed[i];

		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", row->name);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.1f Wh", row->figures.energy_wh);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.3f%%", row->figures.missed_pct);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.0f MHz", row->figures.mean_mhz);
	}
	takt_str_add(out, "\nMODELLED: this load on one simulated A100 under the governor "
			  "'forecast'; the most load before the\ntime held out keeps it busy at "
			  "its highest clock\n");
	takt_table_print(&table, own->cli->width, own->cli->colour, out);
}

void takt_forecast_govern_json(const struct takt_forecast_cli *own, struct takt_str *out)
{
	takt_str_add(out, ",\"governed\":[");
	for (size_t i = 0; i < own->governed_count; i++) {
		const struct takt_forecast_governed *row = &own->governed[i];

		takt_str_add(out, i ? ",\n{" : "\n{");
		takt_json_add_name(out, "by", true);
		takt_json_add_text(out, row->name);
		takt_str_addf(
			out, ",\"energy_wh\":%.8g,\"missed_load_pct\":%.8g,\"mean_mhz\":%.6g}",
			row->figures.energy_wh, row->figures.missed_pct, row->figures.mean_mhz);
	}
	takt_str_add(out, "]");
}
