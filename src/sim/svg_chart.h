/* SPDX-License-Identifier: Apache-2.0 */
/* Line charts as SVG files: axes with round ticks, a legend, and the values as tooltips. */
#ifndef TAKT_SIM_SVG_CHART_H
#define TAKT_SIM_SVG_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum {
	TAKT_CHART_MAX_SERIES = 16,
	TAKT_CHART_COLOURS = 8,
	TAKT_CHART_BOUND = -1, /* as colour: a dashed line in the text's colour */
};

struct takt_chart_series {
	const char *name;
	const double *x, *y; /* where y is NAN the line is cut */
	size_t count;
	int colour; /* 0..: of the palette, TAKT_CHART_BOUND */
};

struct takt_chart {
	const char *title;
	const char *x_title, *y_title;
	bool marks;   /* a dot at each point */
	bool x_fixed; /* the x axis is from x_min to x_max, else as the values ask */
	double x_min, x_max;
	struct takt_chart_series series[TAKT_CHART_MAX_SERIES];
	size_t series_count;
};

/* A file of its own, on white. Nothing is drawn without a point. */
void takt_chart_svg_file(const struct takt_chart *chart, struct takt_str *out);

/* Charts under each other in one file. Zero to begin with but for charts.max; the caller finis it.
 */
struct takt_chart_sheet {
	struct takt_str charts;
	size_t height;
};
void takt_chart_sheet_add(struct takt_chart_sheet *sheet, const struct takt_chart *chart);
/* Nothing is written without a chart. */
void takt_chart_sheet_file(const struct takt_chart_sheet *sheet, const char *title,
			   struct takt_str *out);

#endif
