/* SPDX-License-Identifier: Apache-2.0 */
/* The placement experiment's report. */
#include <stdio.h>

#include "sim/html_page.h"
#include "sim/sim_html.h"
#include "sim/svg_chart.h"

enum {
	MAX_POINTS = TAKT_FGD_MAX_LOADS
};

/* Room for the points of all series of a chart. */
struct points {
	double x[TAKT_CHART_MAX_SERIES][MAX_POINTS];
	double y[TAKT_CHART_MAX_SERIES][MAX_POINTS];
};

static void add_series(struct takt_chart *chart, struct points *points, const char *name,
		       int colour, size_t count)
{
	size_t s = chart->series_count++;

	chart->series[s] = (struct takt_chart_series){.name = name,
						      .x = points->x[s],
						      .y = points->y[s],
						      .count = count,
						      .colour = colour};
}

static void add_policies(const struct takt_fgd_experiment *experiment,
			 enum takt_fgd_measure measure, unsigned from_load,
			 struct takt_chart *chart, struct points *points)
{
	const struct takt_fgd_world *world = experiment->config->world;
	const struct takt_sim_placements *policies = experiment->config->placements;

	for (size_t p = 0; p < policies->at.len && p < TAKT_CHART_MAX_SERIES - 1; p++) {
		size_t s = chart->series_count, n = 0;

		for (size_t l = 0; l < world->load_count; l++) {
			struct takt_sim_stat stat = takt_fgd_stat(experiment, p, l, measure);

			if (stat.n == 0 || world->loads[l] < from_load)
				continue;
			points->x[s][n] = world->loads[l];
			points->y[s][n++] = stat.mean;
		}
		add_series(chart, points, policies->at.at[p].name, (int)p, n);
	}
}

static void add_bound(const struct takt_fgd_experiment *experiment, unsigned from_load,
		      struct takt_chart *chart, struct points *points)
{
	const struct takt_fgd_world *world = experiment->config->world;
	size_t s = chart->series_count, n = 0;

	for (size_t l = 0; l < world->load_count; l++) {
		struct takt_sim_stat bound = takt_fgd_bound(experiment, l);

		if (bound.n == 0 || world->loads[l] < from_load)
			continue;
		points->x[s][n] = world->loads[l];
		points->y[s][n++] = bound.mean;
	}
	if (n)
		add_series(chart, points, "bound: nobody can do better", TAKT_CHART_BOUND, n);
}

static void add_charts(const struct takt_fgd_experiment *experiment, struct takt_str *out)
{
	static const struct {
		const char *title, *y;
		enum takt_fgd_measure measure;
		unsigned from;
		bool bound;
	} charts[] = {
		{"Allocated", "% of all GPUs", TAKT_FGD_ALLOCATION, 0, true},
		{"Allocated, where it gets tight", "% of all GPUs", TAKT_FGD_ALLOCATION, 80, true},
		{"Fragments: idle, but of no use to typical pods", "% of all GPUs",
		 TAKT_FGD_FRAGMENT, 0, false},
		{"Fragments in what is idle", "% of idle GPUs", TAKT_FGD_FRAGMENT_RATIO, 0, false},
	};

	takt_str_add(out, "<div class=\"charts\">\n");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(charts); i++) {
		struct points points;
		struct takt_chart chart = {.title = charts[i].title,
					   .x_title = "arrived, % of all GPUs asked for",
					   .y_title = charts[i].y,
					   .marks = true};

		add_policies(experiment, charts[i].measure, charts[i].from, &chart, &points);
		if (charts[i].bound)
			add_bound(experiment, charts[i].from, &chart, &points);
		takt_chart_svg(&chart, out);
	}
	takt_str_add(out, "</div>\n");
}

static void add_allocation(const struct takt_fgd_experiment *experiment, struct takt_str *out)
{
	const struct takt_fgd_world *world = experiment->config->world;
	const struct takt_sim_placements *policies = experiment->config->placements;

	takt_str_add(out, "<div class=\"scroll\"><table><thead><tr><th>placement</th>");
	for (size_t l = 0; l < world->load_count; l++)
		takt_str_addf(out, "<th>at %u %%</th>", world->loads[l]);
	takt_str_add(out, "</tr></thead><tbody>\n");
	for (size_t p = 0; p < policies->at.len; p++) {
		takt_str_add(out, "<tr><th>");
		takt_html_text(out, policies->at.at[p].name);
		takt_str_add(out, "</th>");
		for (size_t l = 0; l < world->load_count; l++) {
			struct takt_sim_stat stat =
				takt_fgd_stat(experiment, p, l, TAKT_FGD_ALLOCATION);

			takt_str_addf(out, "<td>%.2f<br><small>&plusmn;%.2f</small></td>",
				      stat.mean, stat.half95);
		}
		takt_str_add(out, "</tr>\n");
	}
	takt_str_add(out, "<tr><th>bound</th>");
	for (size_t l = 0; l < world->load_count; l++) {
		struct takt_sim_stat bound = takt_fgd_bound(experiment, l);

		if (bound.n)
			takt_str_addf(out, "<td>%.2f</td>", bound.mean);
		else
			takt_str_add(out, "<td>&ndash;</td>");
	}
	takt_str_add(out, "</tr></tbody></table></div>\n<p class=\"note\">Bound ");
	takt_html_text(out, experiment->bound_note);
	takt_str_add(out, ".</p>\n");
}

static void add_differences(const struct takt_fgd_experiment *experiment, size_t baseline,
			    struct takt_str *out)
{
	const struct takt_fgd_world *world = experiment->config->world;
	const struct takt_sim_placements *policies = experiment->config->placements;

	takt_str_add(out, "<div class=\"scroll\"><table><thead><tr><th>placement</th>");
	for (size_t l = 0; l < world->load_count; l++)
		takt_str_addf(out, "<th>at %u %%</th>", world->loads[l]);
	takt_str_add(out, "</tr></thead><tbody>\n");
	for (size_t p = 0; p < policies->at.len; p++) {
		if (p == baseline)
			continue;
		takt_str_add(out, "<tr><th>");
		takt_html_text(out, policies->at.at[p].name);
		takt_str_add(out, "</th>");
		for (size_t l = 0; l < world->load_count; l++) {
			struct takt_sim_stat diff = takt_fgd_difference(experiment, p, baseline, l,
									TAKT_FGD_ALLOCATION);

			takt_str_addf(out, "<td%s>%+.3f<br><small>&plusmn;%.3f</small></td>",
				      diff.mean > diff.half95 ? " class=\"best\"" : "", diff.mean,
				      diff.half95);
		}
		takt_str_add(out, "</tr>\n");
	}
	takt_str_add(out, "</tbody></table></div>\n");
}

static void add_class(const struct takt_fgd_experiment *experiment, size_t class, size_t load,
		      struct takt_str *out)
{
	const struct takt_sim_classes *classes = experiment->config->world->classes;
	struct takt_fgd_class_count count = takt_fgd_class(experiment, 0, load, class);

	if (count.arrived == 0)
		return;
	takt_str_addf(out, "<tr><th>%s</th><td>%.1f</td>", classes->classes.at[class].name,
		      (double)count.arrived / (double)experiment->seed_count);
	for (size_t p = 0; p < experiment->config->placements->at.len; p++) {
		count = takt_fgd_class(experiment, p, load, class);
		takt_str_addf(out, "<td>%.2f</td>",
			      100.0 * (double)count.placed / (double)count.arrived);
	}
	takt_str_add(out, "</tr>\n");
}

static void add_classes(const struct takt_fgd_experiment *experiment, size_t load,
			struct takt_str *out)
{
	const struct takt_sim_placements *policies = experiment->config->placements;

	takt_str_add(out, "<div class=\"scroll\"><table><thead><tr><th>GPUs a pod</th>"
			  "<th>arrived</th>");
	for (size_t p = 0; p < policies->at.len; p++) {
		takt_str_add(out, "<th>");
		takt_html_text(out, policies->at.at[p].name);
		takt_str_add(out, "</th>");
	}
	takt_str_add(out, "</tr></thead><tbody>\n");
	for (size_t c = 0; c < experiment->config->world->classes->classes.len; c++)
		add_class(experiment, c, load, out);
	takt_str_add(out, "</tbody></table></div>\n");
}

void takt_fgd_html(const struct takt_fgd_experiment *experiment, const struct takt_sim_meta *meta,
		   size_t baseline, struct takt_str *out)
{
	const struct takt_fgd_world *world = experiment->config->world;
	size_t load = takt_fgd_main_load(experiment);
	char title[160];

	takt_html_begin(out, meta, "How full each policy packs the cluster",
			"Pods arrive one after the other; each is placed at once or lost. After "
			"Weng et al., USENIX ATC 2023.");
	takt_html_heading(out, "Over the arrivals");
	add_charts(experiment, out);
	takt_html_heading(out, "Allocated, % of all GPUs");
	add_allocation(experiment, out);
	if (experiment->config->placements->at.len > 1) {
		snprintf(title, sizeof(title), "Difference to %s on the same seeds, points",
			 experiment->config->placements->at.at[baseline].name);
		takt_html_heading(out, title);
		add_differences(experiment, baseline, out);
	}
	snprintf(title, sizeof(title), "Who was placed by %u %% of arrivals, %% of each class",
		 world->loads[load]);
	takt_html_heading(out, title);
	add_classes(experiment, load, out);
	takt_html_end(out, meta);
}
