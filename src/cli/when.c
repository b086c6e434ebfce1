/* SPDX-License-Identifier: Apache-2.0 */
/* See when.h. */
#include "cli/when.h"

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

static bool parse_date(const char *text, time_t *ret)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S",
					      "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(formats); i++) {
		struct tm tm;

		memset(&tm, 0, sizeof(tm));
		if (!all_of(text, formats[i], &tm))
			continue;
		tm.tm_isdst = -1;
		*ret = mktime(&tm);
		return *ret != (time_t)-1;
	}
	return false;
}

int takt_when_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct takt_err *err)
{
	uint64_t ns;
	time_t at;

	if (takt_duration_parse(text, &ns) == 0) {
		*ret_ms = now_ms + (int64_t)(ns / TAKT_NS_PER_MS);
		return 0;
	}
	if (!parse_clock(text, (time_t)(now_ms / 1000), &at) && !parse_date(text, &at))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "a time must be such as 18:00, 2026-12-24T18:00 or 2h (from "
				    "now), not '%.40s'",
				    text);
	*ret_ms = (int64_t)at * 1000;
	return 0;
}
