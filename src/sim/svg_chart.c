/* SPDX-License-Identifier: Apache-2.0 */
/* Charts, see the header. */
#include "sim/svg_chart.h"

#include <math.h>
#include <stdio.h>

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
	double from, to; /* in the picture */
	double step;	 /* between ticks */
};

static void add_text(struct takt_str *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			takt_str_add(out, "&lt;");
			break;
		case '>':
			takt_str_add(out, "&gt;");
			break;
		case '&':
			takt_str_add(out, "&amp;");
			break;
		default:
			takt_str_addn(out, text, 1);
		}
	}
}

static double place(const struct axis *axis, double value)
{
	return axis->from + (value - axis->min) / (axis->max - axis->min) * (axis->to - axis->from);
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

static bool find_range(const struct takt_chart *chart, struct axis *x, struct axis *y)
{
	bool any = false;

	for (size_t s = 0; s < chart->series_count; s++) {
		const struct takt_chart_series *series = &chart->series[s];

		for (size_t i = 0; i < series->count; i++) {
			if (isnan(series->y[i]))
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
		if (isnan(series->y[i]))
			continue;
		takt_str_add(out, "<circle class=\"dot ");
		add_class(out, series->colour);
		takt_str_addf(out, "\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
			      place(x, series->x[i]), place(y, series->y[i]));
		add_text(out, series->name);
		takt_str_addf(out, ": %.2f at %g</title></circle>\n", series->y[i], series->x[i]);
	}
}

static void add_series(struct takt_str *out, const struct takt_chart *chart,
		       const struct takt_chart_series *series, const struct axis *x,
		       const struct axis *y)
{
	bool first = true; /* of a piece */

	takt_str_add(out, "<path class=\"line ");
	add_class(out, series->colour);
	takt_str_add(out, "\" d=\"");
	for (size_t i = 0; i < series->count; i++) {
		if (isnan(series->y[i])) {
			first = true;
			continue;
		}
		takt_str_addf(out, "%s%.1f %.1f", first ? "M" : "L", place(x, series->x[i]),
			      place(y, series->y[i]));
		/* A point alone is to be seen. */
		if (first && (i + 1 == series->count || isnan(series->y[i + 1])))
			takt_str_add(out, "h1");
		first = false;
	}
	takt_str_add(out, "\"><title>");
	add_text(out, series->name);
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
		add_text(out, chart->series[s].name);
		takt_str_add(out, "</text>\n");
	}
}

static void add_titles(struct takt_str *out, const struct takt_chart *chart)
{
	takt_str_addf(out, "<text class=\"axis\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">",
		      (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10);
	add_text(out, chart->x_title);
	takt_str_addf(out,
		      "</text>\n<text class=\"axis\" text-anchor=\"middle\" "
		      "transform=\"translate(16 %d) rotate(-90)\">",
		      (TOP + HEIGHT - BOTTOM) / 2);
	add_text(out, chart->y_title);
	takt_str_add(out, "</text>\n");
}

static size_t height_of(const struct takt_chart *chart)
{
	size_t rows = (chart->series_count + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;

	return HEIGHT + rows * LEGEND_ROW + 4;
}

static void draw(const struct takt_chart *chart, const char *attributes, const char *style,
		 struct takt_str *out)
{
	struct axis x = {.from = LEFT, .to = WIDTH - RIGHT};
	struct axis y = {.from = HEIGHT - BOTTOM, .to = TOP};

	if (!find_range(chart, &x, &y))
		return;
	if (chart->x_fixed) {
		x.min = chart->x_min;
		x.max = chart->x_max;
	}
	x.step = round_step(x.max > x.min ? x.max - x.min : 1);
	if (x.max <= x.min)
		widen_linear(&x);
	widen_linear(&y);
	takt_str_addf(out, "<svg%s viewBox=\"0 0 %d %zu\" role=\"img\">%s\n", attributes, WIDTH,
		      height_of(chart), style);
	add_ticks(out, &x, &y, &x);
	add_ticks(out, &x, &y, &y);
	add_titles(out, chart);
	for (size_t s = 0; s < chart->series_count; s++)
		add_series(out, chart, &chart->series[s], &x, &y);
	add_legend(out, chart);
	takt_str_add(out, "</svg>");
}

/* Okabe and Ito's palette, which people of all kinds of colour vision tell apart. */
static const char file_style[] =
	"<style>.grid{stroke:#e4e7ec}.tick,.axis{fill:#667085;font-size:12px}"
	".legend{fill:#1d2330;font-size:12px}text{font-family:sans-serif}"
	".line{fill:none;stroke-width:2.2}.line.bound{stroke:#1d2330;stroke-dasharray:5 5;"
	"stroke-width:1.5}.dot.bound{fill:#1d2330}"
	".line.c0{stroke:#0072b2}.line.c1{stroke:#d55e00}.line.c2{stroke:#009e73}"
	".line.c3{stroke:#cc79a7}.line.c4{stroke:#e69f00}.line.c5{stroke:#56b4e9}"
	".line.c6{stroke:#8a6d3b}.line.c7{stroke:#6b6ecf}"
	".dot.c0{fill:#0072b2}.dot.c1{fill:#d55e00}.dot.c2{fill:#009e73}"
	".dot.c3{fill:#cc79a7}.dot.c4{fill:#e69f00}.dot.c5{fill:#56b4e9}"
	".dot.c6{fill:#8a6d3b}.dot.c7{fill:#6b6ecf}</style>"
	"<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";

void takt_chart_svg_file(const struct takt_chart *chart, struct takt_str *out)
{
	TAKT_CLEANUP(strp) struct takt_str head = TAKT_STR(16 * 1024);

	takt_str_add(&head, "<title>");
	add_text(&head, chart->title);
	takt_str_addf(&head, "</title>%s<text class=\"legend\" x=\"%d\" y=\"12\">", file_style,
		      LEFT);
	add_text(&head, chart->title);
	takt_str_add(&head, "</text>");
	draw(chart, " xmlns=\"http://www.w3.org/2000/svg\" width=\"720\"", takt_str_text(&head),
	     out);
	takt_str_add(out, "\n");
}

void takt_chart_sheet_add(struct takt_chart_sheet *sheet, const struct takt_chart *chart)
{
	TAKT_CLEANUP(strp) struct takt_str title = TAKT_STR(1024);
	size_t before = sheet->charts.len, height = height_of(chart);
	char place[96];

	takt_str_addf(&title, "<text class=\"legend\" x=\"%d\" y=\"12\">", LEFT);
	add_text(&title, chart->title);
	takt_str_add(&title, "</text>");
	snprintf(place, sizeof(place), " y=\"%zu\" width=\"%d\" height=\"%zu\"", sheet->height,
		 WIDTH, height);
	draw(chart, place, takt_str_text(&title), &sheet->charts);
	if (sheet->charts.len > before)
		sheet->height += height;
	if (title.rc < 0)
		sheet->charts.rc = title.rc;
}

void takt_chart_sheet_file(const struct takt_chart_sheet *sheet, const char *title,
			   struct takt_str *out)
{
	if (sheet->charts.rc < 0)
		out->rc = sheet->charts.rc;
	if (sheet->height == 0)
		return;
	takt_str_addf(out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
		      "viewBox=\"0 0 %d %zu\"><title>",
		      WIDTH, sheet->height, WIDTH, sheet->height);
	add_text(out, title);
	takt_str_addf(out, "</title>%s\n%s\n</svg>\n", file_style, takt_str_text(&sheet->charts));
}
