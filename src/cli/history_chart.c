/* SPDX-License-Identifier: Apache-2.0 */
/* See history_chart.h. */
#include "cli/history_chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/units.h"
#include "sim/svg_chart.h"

enum {
	MAX_GPUS = TAKT_CHART_COLOURS, /* of a chart: more lines cannot be told apart */
};

static const int64_t raw_gap_ms = 2500; /* takt samples once a second at least */

/* One chart that is being drawn. */
struct drawing {
	struct takt_chart chart;
	char title[64], x_title[64], y_title[64];
	char names[MAX_GPUS][16];
	double *x[MAX_GPUS], *y[MAX_GPUS]; /* owned */
};

struct time_unit {
	const char *name;
	double ms;
};

static struct time_unit unit_of(int64_t span_ms)
{
	static const struct time_unit units[] = {{"seconds", 1000},
						 {"minutes", 60 * 1000},
						 {"hours", 3600 * 1000},
						 {"days", 24 * 3600 * 1000}};
	size_t i = TAKT_ARRAY_LEN(units) - 1;

	while (i > 0 && (double)span_ms < 3 * units[i].ms)
		i--;
	return units[i];
}

static void begin(struct drawing *drawing, const struct takt_history_view *view)
{
	struct time_unit unit = unit_of(view->until_ms - view->from_ms);
	char from[TAKT_UNIT_TEXT];

	*drawing = (struct drawing){
		.chart = {.x_fixed = true,
			  .x_max = (double)(view->until_ms - view->from_ms) / unit.ms},
	};
	drawing->chart.title = drawing->title;
	drawing->chart.x_title = drawing->x_title;
	drawing->chart.y_title = drawing->y_title;
	snprintf(drawing->title, sizeof(drawing->title), "%s%s",
		 view->simulated ? "SIMULATED: " : "", view->metric);
	snprintf(drawing->x_title, sizeof(drawing->x_title), "%s since %s", unit.name,
		 takt_when_text(view->from_ms, from));
	snprintf(drawing->y_title, sizeof(drawing->y_title), "%s%s%s", view->metric,
		 view->unit[0] ? ", " : "", view->unit);
}

static bool is_gap(const struct takt_history_view *view, uint32_t i)
{
	int64_t longest = view->step_ms ? (int64_t)view->step_ms * 3 / 2 : raw_gap_ms;

	return i > 0 && view->points[i].at_ms - view->points[i - 1].at_ms > longest;
}

/* A line, with a point that is none in each gap. */
static int add_line(struct drawing *drawing, const struct takt_history_view *view)
{
	double unit_ms = unit_of(view->until_ms - view->from_ms).ms;
	size_t line = drawing->chart.series_count, n = 0;
	double *x = takt_calloc(2 * (size_t)view->point_count + 1, sizeof(x[0]));
	double *y = takt_calloc(2 * (size_t)view->point_count + 1, sizeof(y[0]));

	if (!x || !y) {
		takt_free(x);
		takt_free(y);
		return -ENOMEM;
	}
	drawing->x[line] = x;
	drawing->y[line] = y;
	drawing->chart.series_count++;
	for (uint32_t i = 0; i < view->point_count; i++) {
		double at = (double)(view->points[i].at_ms - view->from_ms) / unit_ms;

		/* A step that had begun before the time asked for is drawn at its start. */
		at = fmin(fmax(at, 0), drawing->chart.x_max);
		if (is_gap(view, i)) {
			x[n] = at;
			y[n++] = (double)NAN;
		}
		x[n] = at;
		y[n++] = view->points[i].mean;
	}
	snprintf(drawing->names[line], sizeof(drawing->names[line]), "GPU %u", view->gpu);
	drawing->chart.series[line] = (struct takt_chart_series){
		.name = drawing->names[line], .x = x, .y = y, .count = n, .colour = (int)line};
	return 0;
}

static void end(struct drawing *drawing, struct takt_chart_sheet *sheet)
{
	takt_chart_sheet_add(sheet, &drawing->chart);
	for (size_t i = 0; i < drawing->chart.series_count; i++) {
		takt_free(drawing->x[i]);
		takt_free(drawing->y[i]);
	}
	drawing->chart.series_count = 0;
}

/* All GPUs of the metric of the series at `first`, from there on. */
static int draw_metric(const struct takt_history_list *list, size_t first,
		       struct takt_chart_sheet *sheet)
{
	const struct takt_history_view *views = list->views.at;
	struct drawing drawing;
	int rc = 0;

	begin(&drawing, &views[first]);
	for (size_t i = first; i < list->views.len && rc == 0; i++) {
		if (strcmp(views[i].metric, views[first].metric) != 0)
			continue;
		if (drawing.chart.series_count == MAX_GPUS)
			end(&drawing, sheet);
		rc = add_line(&drawing, &views[i]);
	}
	end(&drawing, sheet);
	return rc;
}

static bool is_first(const struct takt_history_list *list, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(list->views.at[i].metric, list->views.at[at].metric) == 0)
			return false;
	return true;
}

int takt_history_chart(const struct takt_history_list *list, struct takt_str *ret_svg)
{
	struct takt_chart_sheet sheet = {.charts = TAKT_STR(ret_svg->max)};
	int rc = 0;

	for (size_t i = 0; i < list->views.len && rc == 0; i++)
		if (is_first(list, i))
			rc = draw_metric(list, i, &sheet);
	if (rc == 0)
		takt_chart_sheet_file(&sheet, "takt history", ret_svg);
	takt_str_fini(&sheet.charts);
	return rc < 0 ? rc : ret_svg->rc;
}
