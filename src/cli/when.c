/* SPDX-License-Identifier: Apache-2.0 */
/* See when.h. */
#include "cli/when.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/timetext.h"
#include "base/timetypes.h"

static bool all_of(const char *text, const char *format, struct tm *ret)
{
	const char *end = strptime(text, format, ret);

	return end && !*end;
}

static bool parse_clock(const char *text, time_t now, time_t *ret)
{
	struct tm tm;

	localtime_r(&now, &tm);
	tm.tm_sec = 0;
	if (!all_of(text, "%H:%M", &tm) && !all_of(text, "%H:%M:%S", &tm))
		return false;
	tm.tm_isdst = -1;
	*ret = mktime(&tm);
	if (*ret <= now) {
		tm.tm_mday++;
		tm.tm_isdst = -1;
		*ret = mktime(&tm);
	}
	return *ret != (time_t)-1;
}

/* False of a day that the calendar does not have: mktime would take 30 February for 2 March. */
static bool day_of(struct tm *tm, time_t *ret)
{
	if (!takt_date_exists(tm->tm_year + 1900, tm->tm_mon + 1, tm->tm_mday) || tm->tm_sec > 59)
		return false;
	tm->tm_isdst = -1;
	*ret = mktime(tm);
	return *ret != (time_t)-1;
}

/* "tomorrow", "tomorrow 18:00": midnight, or that time of the day. */
static bool parse_day(const char *text, time_t now, time_t *ret)
{
	static const struct {
		const char *name;
		int days;
	} rows[] = {{"yesterday", -1}, {"today", 0}, {"tomorrow", 1}};
	struct tm tm;

	localtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		size_t len = strlen(rows[i].name);

		if (strncmp(text, rows[i].name, len) != 0)
			continue;
		if (text[len] && (text[len] != ' ' || (!all_of(text + len + 1, "%H:%M", &tm) &&
						       !all_of(text + len + 1, "%H:%M:%S", &tm))))
			return false;
		tm.tm_mday += rows[i].days;
		tm.tm_isdst = -1;
		*ret = mktime(&tm);
		return *ret != (time_t)-1;
	}
	return false;
}

/* 1: read, 0: not a date at all, -ERANGE: of a day that there is not. */
static int parse_date(const char *text, time_t *ret)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S",
					      "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(formats); i++) {
		struct tm tm;

		memset(&tm, 0, sizeof(tm));
		if (all_of(text, formats[i], &tm))
			return day_of(&tm, ret) ? 1 : -ERANGE;
	}
	return 0;
}

int takt_when_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct takt_err *err)
{
	uint64_t ns;
	time_t at;
	int rc = 1;

	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return 0;
	}
	if (takt_duration_parse(strncmp(text, "now+", 4) == 0 ? text + 4 : text, &ns) == 0) {
		*ret_ms = now_ms + (int64_t)(ns / TAKT_NS_PER_MS);
		return 0;
	}
	if (!parse_clock(text, (time_t)(now_ms / 1000), &at) &&
	    !parse_day(text, (time_t)(now_ms / 1000), &at))
		rc = parse_date(text, &at);
	if (rc < 0)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"'%.40s' is not in the calendar; a time must be such as 2026-12-24T18:00",
			text);
	if (rc == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "a time must be such as 18:00, tomorrow, 2026-12-24T18:00 or "
				    "2h (from now), not '%.40s'",
				    text);
	*ret_ms = (int64_t)at * 1000;
	return 0;
}
