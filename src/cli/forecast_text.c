/* SPDX-License-Identifier: Apache-2.0 */
/* The backtest and the forecast for people. */
#include <math.h>
#include <stdio.h>

#include "base/timetext.h"
#include "cli/forecast_cli.h"
#include "cli/table.h"
#include "cli/units.h"

enum {
	MAX_SPARKS = 120
};

static const struct takt_column columns[] = {
	{"FORECASTER", false, 0, 0}, {"ERROR", true, 0, 0},   {"9 OF 10 WITHIN", true, 0, 2},
	{"MISSED", true, 0, 0},	     {"OF LOAD", true, 0, 3}, {"NEEDLESS", true, 0, 0},
	{"WASTED", true, 0, 1},	     {"", false, 20, 4},
};

/* The last steps as bars between the least and the most of them; a gap is a blank. */
static void add_sparks(const struct takt_forecast_cli *own, struct takt_str *out)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	size_t width = own->cli->width ? own->cli->width : 80, len = own->series.len, from;
	double least = INFINITY, most = -INFINITY;

	if (width > MAX_SPARKS)
		width = MAX_SPARKS;
	from = len > width ? len - width : 0;
	for (size_t i = from; i < len; i++) {
		least = fmin(least, own->series.value[i]);
		most = fmax(most, own->series.value[i]);
	}
	for (size_t i = from; i < len; i++) {
		double part = (own->series.value[i] - least) / (most > least ? most - least : 1);

		takt_str_add(out, isnan(part) ? " " : bars[(int)(part * 7.999)]);
	}
	takt_str_addf(out, "\n%.4g to %.4g%s\n", least, most, own->unit);
}

static void add_score(struct takt_table *table, const struct takt_forecast_cli *own, size_t k)
{
	const struct takt_backtest_score *score = &own->result.scores[k];
	bool chosen = own->result.chosen == k;

	takt_table_add(table, chosen ? TAKT_STYLE_HEAD : TAKT_STYLE_PLAIN, "%s%s",
		       takt_forecasters[k]->name, chosen ? " *" : "");
	if (!score->tried) {
		for (size_t i = 1; i + 1 < TAKT_ARRAY_LEN(columns); i++)
			takt_table_add(table, TAKT_STYLE_PLAIN, "%s", "");
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", score->why_not);
		return;
	}
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.4g", score->mae);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.4g", score->p90);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%zu", score->missed);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.1f%%", takt_forecast_missed_pct(score));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%zu", score->needless);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.1f Wh", takt_forecast_wasted_wh(own, score));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_forecasters[k]->summary);
}

static void add_choice(const struct takt_forecast_cli *own, struct takt_str *out)
{
	const struct takt_backtest_score *score = &own->result.scores[own->result.chosen];
	const char *name = takt_forecasters[own->result.chosen]->name;

	if (own->result.chosen == 0)
		takt_str_addf(out, "* %s: no other is better by more than chance\n", name);
	else
		takt_str_addf(out, "* %s: better than the plainer ones by %.4g +- %.2g%s a step\n",
			      name, score->better, score->error,
			      own->config.by_consequence ? " missed steps" : own->unit);
}

static void add_next(const struct takt_forecast_cli *own, struct takt_str *out)
{
	const struct takt_series *series = &own->series;
	int64_t at_s = series->begin_s +
		       (int64_t)(series->len - 1 + own->config.task.horizon) * series->step_s;
	char text[TAKT_UNIT_TEXT], ahead[TAKT_DURATION_EXACT];

	takt_duration_exact(own->config.task.horizon * (uint64_t)series->step_s * TAKT_NS_PER_S,
			    ahead);
	if (isnan(own->next)) {
		takt_str_addf(out, "in %s: cannot be told, too much is missing\n", ahead);
		return;
	}
	takt_str_addf(out, "in %s%s%s: %.4g%s, nine of ten are within +- %.4g\n", ahead,
		      own->wall ? ", at " : "", own->wall ? takt_when_text(at_s * 1000, text) : "",
		      own->next, own->unit, own->result.scores[own->result.chosen].p90);
}

void takt_forecast_text(const struct takt_forecast_cli *own)
{
	const struct takt_backtest_score *first = &own->result.scores[0];
	struct takt_table table = TAKT_TABLE(columns);
	struct takt_str *out = &own->cli->out;
	char step[TAKT_DURATION_EXACT];
	size_t missing = 0;

	for (size_t i = 0; i < own->series.len; i++)
		missing += isnan(own->series.value[i]);
	takt_str_addf(out, "%s%s\n%zu steps of %s, %zu missing\n",
		      own->simulated ? "SIMULATED: " : "", own->what, own->series.len,
		      takt_duration_exact(own->series.step_s * TAKT_NS_PER_S, step), missing);
	add_sparks(own, out);
	takt_str_addf(out, "held out: %zu steps, tested %zu; %zu of them high: %.4g%s and more\n\n",
		      own->series.len - own->result.begin, first->tested, first->high,
		      own->result.threshold, own->unit);
	for (size_t k = 0; k < TAKT_FORECASTERS; k++)
		add_score(&table, own, k);
	takt_table_print(&table, own->cli->width, own->cli->colour, out);
	takt_str_add(out, "\n");
	add_choice(own, out);
	add_next(own, out);
	if (own->governed_count)
		takt_forecast_govern_text(own);
}
