/* SPDX-License-Identifier: Apache-2.0 */
/* Times and durations as people read and write them: one spelling in every view, log and flag. */
#ifndef TAKT_BASE_TIMETEXT_H
#define TAKT_BASE_TIMETEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timetypes.h"

enum {
	TAKT_WALL_TEXT = 40,
	TAKT_DURATION_TEXT = 24,
	TAKT_DURATION_EXACT = 48,
};

/* "2026-11-20T15:11:45.123Z" (RFC 3339, UTC, milliseconds rounded down). Returns ret. */
const char *takt_wall_text(struct takt_wall wall, char ret[TAKT_WALL_TEXT]);

/*
 * The two largest units, rounded down: "2d03h", "1h02m", "3m05s", "4.250s", "15ms", "20us", "7ns".
 * Returns ret.
 */
const char *takt_duration_text(uint64_t ns, char ret[TAKT_DURATION_TEXT]);

/* All of it, as takt_duration_parse reads it back: "1h2m3s", "1s500ms", "0s". For files and flags.
 * Returns ret. */
const char *takt_duration_exact(uint64_t ns, char ret[TAKT_DURATION_EXACT]);

/*
 * "1h30m", "90s", "500ms": whole numbers, each with its unit (w d h m s ms us ns, or spelled as in
 * "90min" and "2hours"), largest unit first, no unit twice, no spaces. -EINVAL if it reads
 * otherwise, -ERANGE beyond 584 years; *ret_ns untouched then.
 */
int takt_duration_parse(const char *text, uint64_t *ret_ns);

/*
 * As Slurm writes how long: "90" minutes, "5:30" with seconds, "1:30:00", "2-12" days and hours,
 * "2-12:30", "2-12:30:00". Otherwise as above.
 */
int takt_slurm_time_parse(const char *text, uint64_t *ret_ns);

/* Whether the Gregorian calendar has this date; month and day count from 1. */
bool takt_date_exists(int64_t year, int64_t month, int64_t day);

#endif
