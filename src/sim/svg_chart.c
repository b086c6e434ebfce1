/* SPDX-License-Identifier: Apache-2.0 */
/* Charts, see the header. */
#include "sim/svg_chart.h"

#include <math.h>

#include "sim/html_page.h"

enum {
	WIDTH = 720,
	HEIGHT = 400,
	LEFT = 64,
	RIGHT = 30,
	TOP = 16,
	BOTTOM = 52,
	MAX_TICKS = 12,
	LEGEND_ROW = 22,
	LEGEND_COLUMN = 172,
	LEGEND_COLUMNS = 4,
};

struct axis {
	double min, max;
	bool log;
	double from, to; /* in the picture */
	double step;	 /* between ticks, of a linear one */
};

static double place(const struct axis *axis, double value)
{
	double at = axis->log ? log10(value) : value;
	double min = axis->log ? log10(axis->min) : axis->min;
	double max = axis->log ? log10(axis->max) : axis->max;

	return axis->from + (at - min) / (max - min) * (axis->to - axis->from);
}

/* 1, 2 or 5 times a power of ten, so that there are about five steps. */
static double round_step(double span)
{
	double raw = span / 5, base = pow(10, floor(log10(raw))), part = raw / base;

	return base * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static void widen_linear(struct axis *axis)
{
	if (axis->max <= axis->min) {
		axis->min -= axis->min > 0 ? axis->min * 0.1 : 1;
		axis->max += axis->max > 0 ? axis->max * 0.1 : 1;
	}
	axis->step = round_step(axis->max - axis->min);
	axis->min = floor(axis->min / axis->step) * axis->step;
	axis->max = ceil(axis->max / axis->step) * axis->step;
}

static void widen_log(struct axis *axis)
{
	axis->min = pow(10, floor(log10(axis->min) + 1e-9));
	axis->max = pow(10, ceil(log10(axis->max) - 1e-9));
	if (axis->max <= axis->min)
		axis->max = axis->min * 10;
}

static bool find_range(const struct takt_chart *chart, struct axis *x, struct axis *y)
{
	bool any = false;

	for (size_t s = 0; s < chart->series_count; s++) {
		const struct takt_chart_series *series = &chart->series[s];

		for (size_t i = 0; i < series->count; i++) {
			if (chart->log_x && series->x[i] <= 0)
				continue;
			if (!any || series->x[i] < x->min)
				x->min = series->x[i];
			if (!any || series->x[i] > x->max)
				x->max = series->x[i];
			if (!any || series->y[i] < y->min)
				y->min = series->y[i];
			if (!any || series->y[i] > y->max)
				y->max = series->y[i];
			any = true;
		}
	}
	return any;
}

static void add_tick(struct takt_str *out, const struct axis *x, const struct axis *y,
		     const struct axis *axis, double value)
{
	double at = place(axis, value);

	if (axis == x) {
		takt_str_addf(out,
			      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
			      "y2=\"%.1f\"/>",
			      at, at, y->from, y->to);
		takt_str_addf(out,
			      "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" "
			      "y=\"%.1f\">%g</text>\n",
			      at, y->from + 18, value);
	} else {
		takt_str_addf(out,
			      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
			      "y2=\"%.1f\"/>",
			      x->from, x->to, at, at);
		takt_str_addf(out,
			      "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" "
			      "y=\"%.1f\">%g</text>\n",
			      x->from - 8, at + 4, value);
	}
}

static void add_ticks(struct takt_str *out, const struct axis *x, const struct axis *y,
		      const struct axis *axis)
{
	if (axis->log) {
		for (double value = axis->min; value <= axis->max * 1.001; value *= 10)
			add_tick(out, x, y, axis, value);
		return;
	}
	for (int i = 0; i <= MAX_TICKS; i++) {
		double value = axis->min + i * axis->step;

		if (value <= axis->max + axis->step * 1e-6)
			add_tick(out, x, y, axis, fabs(value) < axis->step * 1e-6 ? 0 : value);
	}
}

static void add_class(struct takt_str *out, int colour)
{
	if (colour < 0)
		takt_str_add(out, "bound");
	else
		takt_str_addf(out, "c%d", colour % TAKT_CHART_COLOURS);
}

static void add_marks(struct takt_str *out, const struct takt_chart_series *series,
		      const struct axis *x, const struct axis *y)
{
	for (size_t i = 0; i < series->count; i++) {
		takt_str_add(out, "<circle class=\"dot ");
		add_class(out, series->colour);
		takt_str_addf(out, "\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
			      place(x, series->x[i]), place(y, series->y[i]));
		takt_html_text(out, series->name);
		takt_str_addf(out, ": %.2f at %g</title></circle>\n", series->y[i], series->x[i]);
	}
}

static void add_series(struct takt_str *out, const struct takt_chart *chart,
		       const struct takt_chart_series *series, const struct axis *x,
		       const struct axis *y)
{
	bool first = true;

	takt_str_add(out, "<path class=\"line ");
	add_class(out, series->colour);
	takt_str_add(out, "\" d=\"");
	for (size_t i = 0; i < series->count; i++) {
		if (chart->log_x && series->x[i] <= 0)
			continue;
		takt_str_addf(out, "%s%.1f %.1f", first ? "M" : "L", place(x, series->x[i]),
			      place(y, series->y[i]));
		first = false;
	}
	takt_str_add(out, "\"><title>");
	takt_html_text(out, series->name);
	takt_str_add(out, "</title></path>\n");
	if (chart->marks)
		add_marks(out, series, x, y);
}

static void add_legend(struct takt_str *out, const struct takt_chart *chart)
{
	for (size_t s = 0; s < chart->series_count; s++) {
		double x = LEFT + (double)(s % LEGEND_COLUMNS) * LEGEND_COLUMN;
		double y = HEIGHT + 12 + (double)(s / LEGEND_COLUMNS) * LEGEND_ROW;

		takt_str_add(out, "<path class=\"line ");
		add_class(out, chart->series[s].colour);
		takt_str_addf(out,
			      "\" d=\"M%.0f %.0fh24\"/><text class=\"legend\" x=\"%.0f\" "
			      "y=\"%.0f\">",
			      x, y, x + 32, y + 4);
		takt_html_text(out, chart->series[s].name);
		takt_str_add(out, "</text>\n");
	}
}

static void add_titles(struct takt_str *out, const struct takt_chart *chart)
{
	takt_str_addf(out, "<text class=\"axis\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">",
		      (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10);
	takt_html_text(out, chart->x_title);
	takt_str_addf(out,
		      "</text>\n<text class=\"axis\" text-anchor=\"middle\" "
		      "transform=\"translate(16 %d) rotate(-90)\">",
		      (TOP + HEIGHT - BOTTOM) / 2);
	takt_html_text(out, chart->y_title);
	takt_str_add(out, "</text>\n");
}

void takt_chart_svg(const struct takt_chart *chart, struct takt_str *out)
{
	struct axis x = {.log = chart->log_x, .from = LEFT, .to = WIDTH - RIGHT};
	struct axis y = {.from = HEIGHT - BOTTOM, .to = TOP};
	size_t rows = (chart->series_count + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;

	if (!find_range(chart, &x, &y))
		return;
	if (x.log)
		widen_log(&x);
	else
		x.step = round_step(x.max > x.min ? x.max - x.min : 1);
	if (!x.log && x.max <= x.min)
		widen_linear(&x);
	if (chart->y_fixed) {
		y.min = chart->y_min;
		y.max = chart->y_max;
		y.step = round_step(y.max - y.min);
	} else {
		widen_linear(&y);
	}
	takt_str_add(out, "<figure><figcaption>");
	takt_html_text(out, chart->title);
	takt_str_addf(out, "</figcaption><svg viewBox=\"0 0 %d %zu\" role=\"img\">\n", WIDTH,
		      HEIGHT + rows * LEGEND_ROW + 4);
	add_ticks(out, &x, &y, &x);
	add_ticks(out, &x, &y, &y);
	add_titles(out, chart);
	for (size_t s = 0; s < chart->series_count; s++)
		add_series(out, chart, &chart->series[s], &x, &y);
	add_legend(out, chart);
	takt_str_add(out, "</svg></figure>\n");
}
