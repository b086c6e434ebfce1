/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of traces, see the header. Times are integers: a trace must not depend on rounding. */
#include "sim/trace_field.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/timetext.h"
#include "base/timetypes.h"

static const int64_t NS = (int64_t)TAKT_NS_PER_S;

size_t takt_trace_name_rank(const char *names, const char *name)
{
	size_t len = strlen(name), rank = 0;
	const char *at = names;

	while (*at) {
		size_t n = strcspn(at, "|");

		if (n == len && memcmp(at, name, n) == 0)
			return rank;
		at += n + (at[n] == '|');
		rank++;
	}
	return SIZE_MAX;
}

size_t takt_trace_field_find(const struct takt_trace_field *fields, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (takt_trace_name_rank(fields[i].names, name) != SIZE_MAX)
			return i;
	return count;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int takt_trace_seconds(const char *text, int64_t *ret_ns)
{
	bool negative = text[0] == '-';
	const char *at = text + negative;
	int64_t seconds = 0, ns = 0, unit = NS;

	if (!is_digit(*at))
		return -EINVAL;
	for (; is_digit(*at); at++) {
		if (seconds > INT64_MAX / NS / 10 - 1)
			return -ERANGE;
		seconds = seconds * 10 + (*at - '0');
	}
	if (*at == '.')
		for (at++; is_digit(*at); at++) {
			unit /= 10;
			ns += unit * (*at - '0');
		}
	if (*at)
		return -EINVAL;
	ns += seconds * NS;
	*ret_ns = negative ? -ns : ns;
	return 0;
}

/* Days from 1970-01-01 in the Gregorian calendar; years are counted from March, so that the leap
 * day is the last of a year. */
static int64_t days_from_epoch(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
	int64_t era = y / 400, of_era = y % 400;
	int64_t of_year = (153 * m + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The number in `n` digits at `text`, -1 when they are none. */
static int64_t digits(const char *text, size_t n)
{
	int64_t value = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_digit(text[i]))
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

/* "2017-09-04 10:30:41", with a T for the blank, a fraction or a Z behind it if you like. */
static int parse_date(const char *text, int64_t *ret_ns)
{
	static const char shape[] = "####-##-## ##:##:##";
	int64_t year, month, day, hour, minute, second, fraction = 0;
	char tail[24] = "0";
	size_t len;

	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '#' ? !is_digit(text[i])
				    : text[i] != shape[i] && !(i == 10 && text[i] == 'T'))
			return -EINVAL;
	year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
	hour = digits(text + 11, 2), minute = digits(text + 14, 2), second = digits(text + 17, 2);
	if (year < 1970 || year > 2200 || !takt_date_exists(year, month, day) || hour > 23 ||
	    minute > 59 || second > 60)
		return -EINVAL;
	text += sizeof(shape) - 1;
	len = strlen(text);
	if (len && text[len - 1] == 'Z')
		len--;
	if (len + 2 > sizeof(tail) || (len && text[0] != '.'))
		return -EINVAL;
	memcpy(tail + 1, text, len);
	tail[1 + len] = '\0';
	if (takt_trace_seconds(tail, &fraction) < 0)
		return -EINVAL;
	second += 60 * (minute + 60 * (hour + 24 * days_from_epoch(year, month, day)));
	*ret_ns = second * NS + fraction;
	return 0;
}

static int refuse(const struct takt_trace_field *field, const char *text, const char *want,
		  struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_CORRUPT, "column '%.*s': '%.40s' is not %s",
			    (int)strcspn(field->names, "|"), field->names, text, want);
}

static int set_number(const struct takt_trace_field *field, const char *text, int64_t *ret,
		      struct takt_err *err)
{
	size_t whole = strspn(text, "-0123456789");
	char want[96], number[32];
	long long value;

	/* Tables that went through a data frame write whole numbers as "8.0". */
	if (text[whole] == '.' && whole < sizeof(number) &&
	    text[whole + 1 + strspn(text + whole + 1, "0")] == '\0') {
		memcpy(number, text, whole);
		number[whole] = '\0';
		text = number;
	}
	if (takt_parse_i64(text, field->min, field->max, &value) < 0) {
		snprintf(want, sizeof(want), "a whole number from %lld to %lld",
			 (long long)field->min, (long long)field->max);
		return refuse(field, text, want, err);
	}
	*ret = value;
	return 0;
}

static int set_time(const struct takt_trace_field *field, const char *text, int64_t *ret,
		    struct takt_err *err)
{
	int64_t ns;
	bool ok = takt_trace_seconds(text, &ns) == 0 ||
		  (field->kind == TAKT_TRACE_TIME && parse_date(text, &ns) == 0);

	if (!ok)
		return refuse(field, text,
			      field->kind == TAKT_TRACE_TIME
				      ? "a time: seconds such as 12.5, or 2017-09-04 10:30:41"
				      : "a number of seconds such as 12.5",
			      err);
	if (ns < field->min || ns > field->max)
		return refuse(field, text, field->min >= 0 ? "0 or later" : "in range", err);
	*ret = ns;
	return 0;
}

static int set_double(const struct takt_trace_field *field, const char *text, double *ret,
		      struct takt_err *err)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value))
		return refuse(field, text, "a number such as 12.5", err);
	*ret = value;
	return 0;
}

int takt_trace_field_set(const struct takt_trace_field *field, const char *text, void *record,
			 struct takt_err *err)
{
	void *member = (char *)record + field->offset;

	switch (field->kind) {
	case TAKT_TRACE_TEXT:
		memcpy(member, &text, sizeof(text));
		return 0;
	case TAKT_TRACE_I64:
		return set_number(field, text, member, err);
	case TAKT_TRACE_NUMBER:
		return set_double(field, text, member, err);
	default:
		return set_time(field, text, member, err);
	}
}
