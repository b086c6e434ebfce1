/* SPDX-License-Identifier: Apache-2.0 */
/* See history_text.h. */
#include "cli/history_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/timetext.h"
#include "cli/table.h"
#include "cli/units.h"

enum {
	MIN_COLUMNS = 16,
	MAX_COLUMNS = 120,
	BESIDE = 56, /* what the other columns of the lines take at most */
	LEVELS = 8,
};

bool takt_history_unicode(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);

		if (value && value[0])
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

/* Means of the points that fall into each column, NAN where there are none. */
static void fill_columns(const struct takt_history_view *view, unsigned columns, double *ret)
{
	double span_ms = (double)(view->until_ms - view->from_ms);
	unsigned counts[MAX_COLUMNS] = {0};

	for (unsigned c = 0; c < columns; c++)
		ret[c] = 0;
	for (uint32_t i = 0; i < view->point_count; i++) {
		double at = (double)(view->points[i].at_ms - view->from_ms) / span_ms;
		unsigned c = at <= 0 ? 0 : (unsigned)(at * columns);

		c = c < columns ? c : columns - 1;
		ret[c] += view->points[i].mean;
		counts[c]++;
	}
	for (unsigned c = 0; c < columns; c++)
		ret[c] = counts[c] ? ret[c] / counts[c] : (double)NAN;
}

void takt_history_spark(const struct takt_history_view *view, unsigned columns, bool unicode,
			struct takt_str *out)
{
	static const char *const bars[LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[LEVELS] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	double values[MAX_COLUMNS], low = INFINITY, high = -INFINITY;

	columns = columns < MAX_COLUMNS ? columns : MAX_COLUMNS;
	fill_columns(view, columns, values);
	for (unsigned c = 0; c < columns; c++) {
		low = fmin(low, values[c]);
		high = fmax(high, values[c]);
	}
	for (unsigned c = 0; c < columns; c++) {
		double share = high > low ? (values[c] - low) / (high - low) : 0;

		if (isnan(values[c]))
			takt_str_add(out, " ");
		else
			takt_str_add(out, (unicode ? bars : letters)[lround(share * (LEVELS - 1))]);
	}
}

struct summary {
	double min, mean, max;
};

static struct summary summary_of(const struct takt_history_view *view)
{
	struct summary summary = {INFINITY, 0, -INFINITY};

	for (uint32_t i = 0; i < view->point_count; i++) {
		summary.min = fmin(summary.min, view->points[i].min);
		summary.max = fmax(summary.max, view->points[i].max);
		summary.mean += view->points[i].mean / view->point_count;
	}
	return summary;
}

static void add_numbers(struct takt_table *table, const struct summary *numbers)
{
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.1f", numbers->min);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.1f", numbers->mean);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.1f", numbers->max);
}

static void add_line(struct takt_table *table, const struct takt_history_view *view,
		     unsigned columns, bool unicode)
{
	TAKT_CLEANUP(strp) struct takt_str course = TAKT_STR(4096);
	struct summary numbers = summary_of(view);

	takt_table_add(table, TAKT_STYLE_HEAD, "%u", view->gpu);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", view->metric);
	if (view->point_count > 0) {
		add_numbers(table, &numbers);
		takt_history_spark(view, columns, unicode, &course);
	} else {
		for (int i = 0; i < 3; i++)
			takt_table_add(table, TAKT_STYLE_PLAIN, "-");
		takt_str_add(&course, "nothing was measured");
	}
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", view->unit);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&course));
}

static const struct takt_column line_columns[] = {
	{"GPU", true, 0, 0}, {"METRIC", false, 0, 0}, {"MIN", true, 0, 0},     {"MEAN", true, 0, 0},
	{"MAX", true, 0, 0}, {"UNIT", false, 0, 0},   {"COURSE", false, 0, 0},
};

static void print_span(struct takt_cli *cli, const struct takt_history_view *view)
{
	char from[TAKT_UNIT_TEXT], until[TAKT_UNIT_TEXT], step[TAKT_DURATION_EXACT];

	takt_str_addf(&cli->out, "%s to %s, ", takt_when_text(view->from_ms, from),
		      takt_when_text(view->until_ms, until));
	if (view->step_ms)
		takt_str_addf(&cli->out, "a point every %s\n",
			      takt_duration_exact(view->step_ms * TAKT_NS_PER_MS, step));
	else
		takt_str_add(&cli->out, "every sample\n");
	if (view->lost)
		takt_str_addf(&cli->out,
			      "%llu records could not be written since takt was started; its log "
			      "says why\n",
			      (unsigned long long)view->lost);
}

static int print_table(struct takt_cli *cli, struct takt_table *table)
{
	takt_table_print(table, cli->width, cli->colour, &cli->out);
	return table->rc;
}

int takt_history_lines(struct takt_cli *cli, const struct takt_history_list *list)
{
	struct takt_table table = TAKT_TABLE(line_columns);
	unsigned width = cli->width ? cli->width : MAX_COLUMNS;
	unsigned columns = width > BESIDE + MIN_COLUMNS ? width - BESIDE : MIN_COLUMNS;
	bool unicode = takt_history_unicode();

	if (list->views.len == 0)
		return 0;
	takt_print_simulated(cli, list->views.at[0].simulated);
	print_span(cli, &list->views.at[0]);
	TAKT_VEC_EACH (view, &list->views)
		add_line(&table, view, columns, unicode);
	return print_table(cli, &table);
}

static const struct takt_column table_columns[] = {
	{"TIME", false, 0, 0}, {"GPU", true, 0, 0}, {"METRIC", false, 0, 0}, {"MIN", true, 0, 0},
	{"MEAN", true, 0, 0},  {"MAX", true, 0, 0}, {"UNIT", false, 0, 0},
};

int takt_history_table(struct takt_cli *cli, const struct takt_history_list *list)
{
	struct takt_table table = TAKT_TABLE(table_columns);
	char when[TAKT_UNIT_TEXT];

	if (list->views.len > 0) {
		takt_print_simulated(cli, list->views.at[0].simulated);
		print_span(cli, &list->views.at[0]);
	}
	TAKT_VEC_EACH (view, &list->views)
		for (uint32_t i = 0; i < view->point_count; i++) {
			const struct takt_history_view_point *at = &view->points[i];
			struct summary numbers = {at->min, at->mean, at->max};

			takt_table_add(&table, TAKT_STYLE_PLAIN, "%s",
				       takt_when_text(at->at_ms, when));
			takt_table_add(&table, TAKT_STYLE_PLAIN, "%u", view->gpu);
			takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", view->metric);
			add_numbers(&table, &numbers);
			takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", view->unit);
		}
	return print_table(cli, &table);
}

void takt_history_csv(struct takt_str *out, const struct takt_history_list *list)
{
	char when[TAKT_WALL_TEXT];

	takt_str_add(out, "time,gpu,uuid,metric,unit,step_s,min,mean,max\n");
	TAKT_VEC_EACH (view, &list->views)
		for (uint32_t i = 0; i < view->point_count; i++) {
			const struct takt_history_view_point *at = &view->points[i];
			struct takt_wall wall = {at->at_ms * (int64_t)TAKT_NS_PER_MS};

			takt_str_addf(out, "%s,%u,%s,%s,%s,%g,%.7g,%.7g,%.7g\n",
				      takt_wall_text(wall, when), view->gpu, view->uuid,
				      view->metric, view->unit, (double)view->step_ms / 1000.0,
				      at->min, at->mean, at->max);
		}
}
