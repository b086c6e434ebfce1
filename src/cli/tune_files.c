/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep's result as files: CSV, a chart as SVG or PNG, a page. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/png.h"
#include "cli/report_page.h"
#include "cli/tune.h"
#include "cli/whole_file.h"
#include "sim/svg_chart.h"

enum {
	MAX_FILE = 4 * 1024 * 1024
};

struct line {
	double x[TAKT_TUNE_MAX_POINTS], y[TAKT_TUNE_MAX_POINTS];
	size_t count;
};

static void collect(const struct takt_tune_result *result, bool front_only, struct line *ret)
{
	ret->count = 0;
	for (uint32_t i = 0; i < result->count; i++) {
		const struct takt_tune_point *point = &result->points[i];

		if (!point->count || !isfinite(point->slowdown_pct.mean) ||
		    !isfinite(point->energy_j.mean) || (front_only && !point->front))
			continue;
		ret->x[ret->count] = point->slowdown_pct.mean;
		ret->y[ret->count++] = point->energy_j.mean;
	}
}

/* A path goes from left to right. */
static void sort_line(struct line *line)
{
	for (size_t i = 1; i < line->count; i++) {
		for (size_t j = i; j > 0 && line->x[j - 1] > line->x[j]; j--) {
			double x = line->x[j], y = line->y[j];

			line->x[j] = line->x[j - 1];
			line->y[j] = line->y[j - 1];
			line->x[j - 1] = x;
			line->y[j - 1] = y;
		}
	}
}

static void add_chart(const struct takt_tune_result *result, struct takt_str *out)
{
	struct line all, front, chosen = {.count = 0};
	char title[160], y_title[64];
	struct takt_chart chart = {.title = title,
				   .x_title = "slower than at the highest clock, %",
				   .y_title = y_title,
				   .marks = true};

	collect(result, false, &all);
	collect(result, true, &front);
	sort_line(&all);
	sort_line(&front);
	if (result->recommended >= 0) {
		const struct takt_tune_point *point = &result->points[result->recommended];

		chosen = (struct line){{point->slowdown_pct.mean}, {point->energy_j.mean}, 1};
	}
	snprintf(title, sizeof(title), "%s%.90s", result->simulated ? "SIMULATED: " : "",
		 result->gpu_name);
	snprintf(y_title, sizeof(y_title), "J a %s", result->points[0].samples[0].unit);
	chart.series[chart.series_count++] =
		(struct takt_chart_series){"measured", all.x, all.y, all.count, 0};
	chart.series[chart.series_count++] = (struct takt_chart_series){
		"front", front.x, front.y, front.count, TAKT_CHART_BOUND};
	if (chosen.count)
		chart.series[chart.series_count++] =
			(struct takt_chart_series){"recommended", chosen.x, chosen.y, 1, 1};
	takt_chart_svg_file(&chart, out);
}

int takt_tune_check_files(const struct takt_cli *cli, struct takt_err *err)
{
	static const char *const options[] = {"csv", "svg", "png", "html"};
	int rc = takt_cli_value(cli, "png") ? takt_cli_check_png(err) : 0;

	for (size_t i = 0; rc == 0 && i < TAKT_ARRAY_LEN(options); i++) {
		const char *path = takt_cli_value(cli, options[i]);

		rc = path ? takt_whole_file_check(path, err) : 0;
	}
	return rc;
}

int takt_tune_write_files(const struct takt_cli *cli, const struct takt_tune_result *result,
			  struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str csv = TAKT_STR(MAX_FILE);
	TAKT_CLEANUP(strp) struct takt_str svg = TAKT_STR(MAX_FILE);
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(MAX_FILE);
	int rc;

	takt_tune_csv(result, &csv);
	add_chart(result, &svg);
	takt_tune_json(result, &json);
	rc = takt_cli_write_file(cli, "csv", &csv, err);
	if (rc == 0)
		rc = takt_cli_write_file(cli, "svg", &svg, err);
	if (rc == 0)
		rc = takt_report_write(cli, &json, err);
	if (rc == 0 && takt_cli_value(cli, "png"))
		rc = takt_cli_write_png(&svg, takt_cli_value(cli, "png"), err);
	return rc;
}
