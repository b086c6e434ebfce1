/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line charts as inline SVG: axes with round ticks, a legend, a linear or logarithmic x axis, and
 * the values as tooltips. Colours come from the page's style (html_page.h), so that they suit light
 * and dark.
 */
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
	const double *x, *y;
	size_t count;
	int colour; /* 0..: the page's palette, TAKT_CHART_BOUND */
};

struct takt_chart {
	const char *title;
	const char *x_title, *y_title;
	bool log_x;   /* x > 0 */
	bool marks;   /* a dot at each point */
	bool y_fixed; /* the y axis is from y_min to y_max, else as the values ask */
	double y_min, y_max;
	struct takt_chart_series series[TAKT_CHART_MAX_SERIES];
	size_t series_count;
};

/* Nothing is drawn without a point. */
void takt_chart_svg(const struct takt_chart *chart, struct takt_str *out);

#endif
