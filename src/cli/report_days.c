/* SPDX-License-Identifier: Apache-2.0 */
/* See report_days.h. */
#include "cli/report_days.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "cli/history_text.h"
#include "cli/table.h"
#include "codec/quantity.h"

enum {
	DAY_S = 24 * 3600,
	MAX_DAYS = 36600,
	MAX_COLUMNS = 120,
	MIN_COLUMNS = 16,
	BESIDE = 34, /* what the other columns take at most */
};

struct figure {
	const char *name;
	double (*of)(const struct takt_report_day *day);
	double otherwise; /* of a day without a job */
};

static double gpu_hours(const struct takt_report_day *day)
{
	return day->gpu_hours;
}

static double used_pct(const struct takt_report_day *day)
{
	return day->used_pct;
}

static double energy_kwh(const struct takt_report_day *day)
{
	return day->energy_kwh;
}

bool takt_report_day_of(const char *text, int64_t *ret_day)
{
	struct tm tm = {.tm_isdst = 0};

	if (sscanf(text, "%4d-%2d-%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday) != 3)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*ret_day = timegm(&tm) / DAY_S;
	return true;
}

static const char *date(int64_t day, char ret[32])
{
	time_t at = (time_t)(day * DAY_S);
	struct tm tm;

	ret[0] = '\0';
	if (gmtime_r(&at, &tm))
		strftime(ret, 32, "%Y-%m-%d", &tm);
	return ret;
}

/* Each day in the middle of its step, so that it falls into one column. */
static void add_point(struct takt_history_view *view, int64_t nth, double value)
{
	if (!isnan(value))
		view->points[view->point_count++] =
			(struct takt_history_view_point){2 * nth + 1, value, value, value};
}

static void fill(const struct figure *figure, const struct takt_report_day *days, size_t count,
		 struct takt_history_view *ret)
{
	int64_t first = days[0].day, span = days[count - 1].day - first + 1;
	size_t next = 0;

	ret->until_ms = 2 * span;
	ret->point_count = 0;
	for (int64_t nth = 0; nth < span; nth++)
		add_point(ret, nth,
			  days[next].day - first == nth ? figure->of(&days[next++])
							: figure->otherwise);
}

static void add_row(struct takt_table *table, const char *name,
		    const struct takt_history_view *view, unsigned columns, bool unicode)
{
	TAKT_CLEANUP(strp) struct takt_str course = TAKT_STR(4096);
	double least = INFINITY, most = -INFINITY;
	char text[TAKT_QUANTITY_TEXT];

	for (uint32_t i = 0; i < view->point_count; i++) {
		least = fmin(least, view->points[i].mean);
		most = fmax(most, view->points[i].mean);
	}
	if (view->point_count == 0)
		return;
	takt_history_spark(view, columns, unicode, &course);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", name);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_number_text(least, text));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_number_text(most, text));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&course));
	table->rc = course.rc < 0 ? course.rc : table->rc;
}

static unsigned columns_for(int64_t days, unsigned width)
{
	unsigned room = width == 0		       ? MAX_COLUMNS
			: width > BESIDE + MIN_COLUMNS ? width - BESIDE
						       : MIN_COLUMNS;

	room = room < MAX_COLUMNS ? room : MAX_COLUMNS;
	return days < room ? (unsigned)days : room;
}

static const struct takt_column columns[] = {
	{"EACH DAY", false, 0, 0},
	{"LEAST", true, 0, 0},
	{"MOST", true, 0, 0},
	{"COURSE", false, 0, 0},
};

static const struct figure figures[] = {
	{"GPU hours", gpu_hours, 0},
	{"used %", used_pct, (double)NAN},
	{"energy kWh", energy_kwh, (double)NAN},
};

int takt_report_days(const struct takt_report_day *days, size_t count, unsigned width, bool unicode,
		     bool colour, struct takt_str *out)
{
	struct takt_table table = TAKT_TABLE(columns);
	struct takt_history_view view = {.from_ms = 0};
	int64_t span = count < 2 ? 0 : days[count - 1].day - days[0].day + 1;
	char from[32], until[32];

	if (span < 2 || span > MAX_DAYS)
		return 0;
	view.points = takt_calloc((size_t)span, sizeof(view.points[0]));
	if (!view.points)
		return -ENOMEM;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(figures); i++) {
		fill(&figures[i], days, count, &view);
		add_row(&table, figures[i].name, &view, columns_for(span, width), unicode);
	}
	takt_free(view.points);
	takt_str_addf(out, "\n%s to %s\n", date(days[0].day, from),
		      date(days[count - 1].day, until));
	return takt_table_print(&table, width, colour, out);
}
