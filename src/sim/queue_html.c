/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of experiments with times: queues, and pods that come and go. */
#include <stdio.h>
#include <string.h>

#include "sim/html_page.h"
#include "sim/sim_html.h"
#include "sim/svg_chart.h"

enum {
	SECONDS_AN_HOUR = 3600
};

struct points {
	double x[TAKT_CHART_MAX_SERIES][TAKT_QUEUE_QUANTILES];
	double y[TAKT_QUEUE_QUANTILES];
};

/* The share of jobs that were done (or had waited) by then; of the first seed. */
static void add_distribution(const struct takt_queue_experiment *experiment, size_t load,
			     bool waits, struct takt_str *out)
{
	struct points points;
	struct takt_chart chart = {
		.title = waits ? "Jobs that waited at most so long" : "Jobs done within",
		.x_title = "hours, logarithmic",
		.y_title = "% of jobs",
		.log_x = true,
		.y_fixed = true,
		.y_max = 100,
	};

	for (size_t i = 0; i < TAKT_QUEUE_QUANTILES; i++)
		points.y[i] = (double)i;
	for (size_t v = 0; v < experiment->variant_count && v < TAKT_CHART_MAX_SERIES; v++) {
		const struct takt_queue_kpi *kpi = takt_queue_kpi(experiment, v, load, 0);

		for (size_t i = 0; i < TAKT_QUEUE_QUANTILES; i++)
			points.x[v][i] = (waits ? kpi->wait_s[i] : kpi->jct_s[i]) / SECONDS_AN_HOUR;
		chart.series[chart.series_count++] =
			(struct takt_chart_series){.name = experiment->variants[v].name,
						   .x = points.x[v],
						   .y = points.y,
						   .count = TAKT_QUEUE_QUANTILES,
						   .colour = (int)v};
	}
	takt_chart_svg(&chart, out);
}

static void add_over_loads(const struct takt_sim_table *table, const uint32_t *loads,
			   size_t measure, const char *title, struct takt_str *out)
{
	double x[TAKT_QUEUE_MAX_LOADS], y[TAKT_CHART_MAX_SERIES][TAKT_QUEUE_MAX_LOADS];
	const struct takt_sim_measure *text = &table->measures[measure];
	bool seconds = strcmp(text->unit, "s") == 0;
	struct takt_chart chart = {.title = title,
				   .x_title = "offered load, %",
				   .y_title = seconds ? "hours" : text->unit,
				   .marks = true};

	for (size_t l = 0; l < table->load_count; l++)
		x[l] = loads[l];
	for (size_t v = 0; v < table->variant_count && v < TAKT_CHART_MAX_SERIES; v++) {
		for (size_t l = 0; l < table->load_count; l++)
			y[v][l] = takt_sim_table_stat(table, v, l, measure).mean /
				  (seconds ? SECONDS_AN_HOUR : 1);
		chart.series[chart.series_count++] =
			(struct takt_chart_series){.name = table->name(table->ctx, v),
						   .x = x,
						   .y = y[v],
						   .count = table->load_count,
						   .colour = (int)v};
	}
	takt_chart_svg(&chart, out);
}

void takt_queue_html(const struct takt_queue_experiment *experiment,
		     const struct takt_sim_meta *meta, size_t baseline, struct takt_str *out)
{
	struct takt_sim_table table = takt_queue_table(experiment);

	takt_html_begin(out, meta, "How long jobs take under each queue policy",
			"Jobs are submitted as in the trace, wait, run and end on a virtual clock; "
			"the scheduler is the one that the daemon uses.");
	if (table.load_count > 1) {
		takt_html_heading(out, "Over the load");
		takt_str_add(out, "<div class=\"charts\">\n");
		add_over_loads(&table, experiment->config->loads, TAKT_QUEUE_JCT_MEAN,
			       "Mean completion time", out);
		add_over_loads(&table, experiment->config->loads, TAKT_QUEUE_WAIT_P99,
			       "99th percentile of waits", out);
		takt_str_add(out, "</div>\n");
	}
	for (size_t l = 0; l < table.load_count; l++) {
		char title[96];

		snprintf(title, sizeof(title), "Offered load %.1f %% on %llu GPUs",
			 (double)experiment->offered_permille[l] / 10,
			 (unsigned long long)experiment->clusters[l].gpus);
		takt_html_heading(out, title);
		takt_str_add(out, "<div class=\"charts\">\n");
		add_distribution(experiment, l, false, out);
		add_distribution(experiment, l, true, out);
		takt_str_add(out, "</div><br>\n");
		takt_html_table(out, &table, l, baseline);
	}
	takt_html_end(out, meta);
}

void takt_timed_html(const struct takt_timed_experiment *experiment,
		     const struct takt_sim_meta *meta, size_t baseline, struct takt_str *out)
{
	struct takt_sim_table table = takt_timed_table(experiment);

	takt_html_begin(out, meta, "Placement with real times",
			"Pods come, wait, stay and leave as in the trace.");
	if (table.load_count > 1) {
		takt_html_heading(out, "Over the load");
		takt_str_add(out, "<div class=\"charts\">\n");
		add_over_loads(&table, experiment->config->loads, TAKT_TIMED_ALLOCATION,
			       "Allocated", out);
		add_over_loads(&table, experiment->config->loads, TAKT_TIMED_WAIT_MEAN, "Mean wait",
			       out);
		takt_str_add(out, "</div>\n");
	}
	for (size_t l = 0; l < table.load_count; l++) {
		char title[96] = "The trace as it is";

		if (experiment->config->load_count)
			snprintf(title, sizeof(title), "Load %u %%", experiment->config->loads[l]);
		takt_html_heading(out, title);
		takt_html_table(out, &table, l, baseline);
	}
	takt_html_end(out, meta);
}
