/* SPDX-License-Identifier: Apache-2.0 */
/* Energy over slowdown in characters: what a setting costs to the right, what it saves downwards.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/tune.h"

enum {
	ROWS = 12,
	MIN_COLUMNS = 30,
	MAX_COLUMNS = 64,
	MARGIN = 10,
};

struct range {
	double min, max;
};

static void widen(struct range *range, double value)
{
	range->min = fmin(range->min, value);
	range->max = fmax(range->max, value);
}

static bool is_known(const struct takt_tune_point *point)
{
	return point->count && isfinite(point->slowdown_pct.mean) && isfinite(point->energy_j.mean);
}

static int place(const struct range *range, double value, int cells)
{
	double span = range->max - range->min;

	return span > 0 ? (int)lround((value - range->min) / span * (cells - 1)) : 0;
}

static void find_ranges(const struct takt_tune_result *result, struct range *x, struct range *y)
{
	for (uint32_t i = 0; i < result->count; i++) {
		if (!is_known(&result->points[i]))
			continue;
		widen(x, result->points[i].slowdown_pct.mean);
		widen(y, result->points[i].energy_j.mean);
	}
}

static void draw(const struct takt_tune_result *result, const struct range *x,
		 const struct range *y, int columns, char cells[ROWS][MAX_COLUMNS + 1])
{
	for (uint32_t i = 0; i < result->count; i++) {
		const struct takt_tune_point *point = &result->points[i];

		if (is_known(point))
			cells[ROWS - 1 - place(y, point->energy_j.mean, ROWS)]
			     [place(x, point->slowdown_pct.mean, columns)] =
				     (int)i == result->recommended ? '@'
				     : point->front		   ? '*'
								   : 'o';
	}
}

void takt_tune_plot(const struct takt_tune_result *result, unsigned width, struct takt_str *out)
{
	struct range x = {INFINITY, -INFINITY}, y = {INFINITY, -INFINITY};
	int columns = width == 0 || width >= MAX_COLUMNS + MARGIN ? MAX_COLUMNS
		      : width < MIN_COLUMNS + MARGIN		  ? MIN_COLUMNS
								  : (int)width - MARGIN;
	char cells[ROWS][MAX_COLUMNS + 1];

	find_ranges(result, &x, &y);
	if (!(x.max > x.min) || !(y.max > y.min))
		return;
	for (int row = 0; row < ROWS; row++) {
		memset(cells[row], ' ', (size_t)columns);
		cells[row][columns] = '\0';
	}
	draw(result, &x, &y, columns, cells);
	takt_str_addf(out, "J a %s\n", result->points[0].samples[0].unit);
	for (int row = 0; row < ROWS; row++) {
		char label[24] = "";

		if (row == 0 || row == ROWS - 1)
			snprintf(label, sizeof(label), "%.4g", row ? y.min : y.max);
		takt_str_addf(out, "%8s |%s\n", label, cells[row]);
	}
	takt_str_addf(out, "%8s +%.*s\n%10.3g %% slower%*.4g %%\n", "", columns,
		      "----------------------------------------------------------------", x.min,
		      columns - 11, x.max);
	takt_str_add(out, "@ recommended, * on the front, o others\n\n");
}
