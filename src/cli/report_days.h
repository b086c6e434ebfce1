/* SPDX-License-Identifier: Apache-2.0 */
/* The days of takt report as curves for a terminal: a line a figure, a character a day. */
#ifndef TAKT_CLI_REPORT_DAYS_H
#define TAKT_CLI_REPORT_DAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* What is NAN was not measured of any job that ended on that day. */
struct takt_report_day {
	int64_t day; /* since 1970-01-01 */
	double gpu_hours, used_pct, energy_kwh;
};

/* The day that "2026-11-23" is; false where the text is no date. */
bool takt_report_day_of(const char *text, int64_t *ret_day);

/* Days in their order, each once. Those between them had no job: no GPU hours, and nothing else is
 * known of them. Appends nothing for fewer than two, or more than a hundred years. `width` as of a
 * table; where there are more days than room, a character is the mean of some. -ENOMEM. */
int takt_report_days(const struct takt_report_day *days, size_t count, unsigned width, bool unicode,
		     bool colour, struct takt_str *out);

#endif
