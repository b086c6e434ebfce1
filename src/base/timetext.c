/* SPDX-License-Identifier: Apache-2.0 */
/* Calendar arithmetic of our own: libc's needs a time zone, and pure rooms have none. */
#include "base/timetext.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/str.h"

#define NS_PER_MIN  (60 * TAKT_NS_PER_S)
#define NS_PER_HOUR (60 * NS_PER_MIN)
#define NS_PER_DAY  (24 * NS_PER_HOUR)

struct unit {
	const char *name;
	uint64_t ns;
};

static const struct unit units[] = {
	{"d", NS_PER_DAY},	{"h", NS_PER_HOUR},	{"m", NS_PER_MIN}, {"s", TAKT_NS_PER_S},
	{"ms", TAKT_NS_PER_MS}, {"us", TAKT_NS_PER_US}, {"ns", 1},
};

/* What people write for them, beside weeks, which takt does not write. */
static const struct unit spellings[] = {
	{"w", 7 * NS_PER_DAY},	    {"week", 7 * NS_PER_DAY},
	{"weeks", 7 * NS_PER_DAY},  {"d", NS_PER_DAY},
	{"day", NS_PER_DAY},	    {"days", NS_PER_DAY},
	{"h", NS_PER_HOUR},	    {"hour", NS_PER_HOUR},
	{"hours", NS_PER_HOUR},	    {"m", NS_PER_MIN},
	{"min", NS_PER_MIN},	    {"minute", NS_PER_MIN},
	{"minutes", NS_PER_MIN},    {"s", TAKT_NS_PER_S},
	{"sec", TAKT_NS_PER_S},	    {"second", TAKT_NS_PER_S},
	{"seconds", TAKT_NS_PER_S}, {"ms", TAKT_NS_PER_MS},
	{"us", TAKT_NS_PER_US},	    {"ns", 1},
};

struct date {
	uint16_t year, month, day; /* nanoseconds in 64 bits reach from 1677 to 2262 */
};

/*
 * Days since 1970-01-01 to a date. Years are counted from March, so that the leap day is the last
 * of its year, and in cycles of 400 years, which are 146097 days in the Gregorian calendar.
 */
static struct date date_of_days(long long days)
{
	long long shifted = days + 719468; /* days from 0000-03-01 to 1970-01-01 */
	long long cycle = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
	int of_cycle = (int)(shifted - cycle * 146097);
	int year = (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
	int of_year = of_cycle - (365 * year + year / 4 - year / 100);
	int month = (5 * of_year + 2) / 153; /* 0 is March */
	int day = of_year - (153 * month + 2) / 5 + 1;

	return (struct date){
		.year = (uint16_t)(cycle * 400 + year + (month >= 10)),
		.month = (uint16_t)(month < 10 ? month + 3 : month - 9),
		.day = (uint16_t)day,
	};
}

const char *takt_wall_text(struct takt_wall wall, char ret[TAKT_WALL_TEXT])
{
	long long per_day = 86400000, ms = wall.ns / 1000000, days;
	struct date date;
	unsigned left;

	if (wall.ns % 1000000 < 0)
		ms--;
	days = (ms >= 0 ? ms : ms - per_day + 1) / per_day;
	left = (unsigned)(ms - days * per_day);
	date = date_of_days(days);
	snprintf(ret, TAKT_WALL_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", date.year, date.month,
		 date.day, left / 3600000 % 24, left / 60000 % 60, left / 1000 % 60, left % 1000);
	return ret;
}

const char *takt_duration_text(uint64_t ns, char ret[TAKT_DURATION_TEXT])
{
	size_t i = 0;

	while (i + 1 < TAKT_ARRAY_LEN(units) && ns < units[i].ns)
		i++;
	if (units[i].ns > TAKT_NS_PER_S)
		snprintf(ret, TAKT_DURATION_TEXT, "%llu%s%02llu%s",
			 (unsigned long long)(ns / units[i].ns), units[i].name,
			 (unsigned long long)(ns % units[i].ns / units[i + 1].ns),
			 units[i + 1].name);
	else if (units[i].ns == TAKT_NS_PER_S)
		snprintf(ret, TAKT_DURATION_TEXT, "%llu.%03llus",
			 (unsigned long long)(ns / TAKT_NS_PER_S),
			 (unsigned long long)(ns % TAKT_NS_PER_S / TAKT_NS_PER_MS));
	else
		snprintf(ret, TAKT_DURATION_TEXT, "%llu%s", (unsigned long long)(ns / units[i].ns),
			 units[i].name);
	return ret;
}

const char *takt_duration_exact(uint64_t ns, char ret[TAKT_DURATION_EXACT])
{
	size_t len = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(units); i++) {
		if (ns >= units[i].ns)
			len += (size_t)snprintf(ret + len, TAKT_DURATION_EXACT - len, "%llu%s",
						(unsigned long long)(ns / units[i].ns),
						units[i].name);
		ns %= units[i].ns;
	}
	if (len == 0)
		takt_strcpy(ret, TAKT_DURATION_EXACT, "0s");
	return ret;
}

/* Digits off the front of *text; -ERANGE when they do not fit. */
static int cut_number(const char **text, uint64_t *ret)
{
	const char *at = *text;
	uint64_t value = 0, digit;

	for (; *at >= '0' && *at <= '9'; at++) {
		digit = (uint64_t)(*at - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	if (at == *text)
		return -EINVAL;
	*text = at;
	*ret = value;
	return 0;
}

/* The letters up to the next digit must name a unit smaller than `below_ns`; its length in ns, or
 * 0. */
static uint64_t cut_unit(const char **text, uint64_t below_ns)
{
	size_t len = strcspn(*text, "0123456789");

	for (size_t i = 0; i < TAKT_ARRAY_LEN(spellings); i++)
		if (spellings[i].ns < below_ns && strlen(spellings[i].name) == len &&
		    strncmp(*text, spellings[i].name, len) == 0) {
			*text += len;
			return spellings[i].ns;
		}
	return 0;
}

static int add_units(uint64_t *total_ns, uint64_t count, uint64_t unit_ns)
{
	if (count > (UINT64_MAX - *total_ns) / unit_ns)
		return -ERANGE;
	*total_ns += count * unit_ns;
	return 0;
}

int takt_duration_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t total = 0, count, unit_ns = UINT64_MAX;
	int rc;

	do {
		rc = cut_number(&text, &count);
		if (rc < 0)
			return rc;
		unit_ns = cut_unit(&text, unit_ns);
		if (unit_ns == 0)
			return -EINVAL;
		rc = add_units(&total, count, unit_ns);
		if (rc < 0)
			return rc;
	} while (*text);
	*ret_ns = total;
	return 0;
}

int takt_slurm_time_parse(const char *text, uint64_t *ret_ns)
{
	static const uint64_t unit_ns[] = {NS_PER_HOUR, NS_PER_MIN, TAKT_NS_PER_S};
	const char *dash = strchr(text, '-');
	uint64_t total = 0, days = 0, part[3];
	size_t count = 0, first;
	int rc = dash ? cut_number(&text, &days) : 0;

	if (rc == 0 && dash && text++ != dash)
		return -EINVAL;
	while (rc == 0) {
		rc = cut_number(&text, &part[count++]);
		if (rc < 0 || count == 3 || *text != ':')
			break;
		text++;
	}
	if (rc == 0 && *text)
		return -EINVAL;
	first = dash || count == 3 ? 0 : 1;
	if (rc == 0)
		rc = add_units(&total, days, NS_PER_DAY);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = add_units(&total, part[i], unit_ns[first + i]);
	if (rc == 0)
		*ret_ns = total;
	return rc;
}

bool takt_date_exists(int64_t year, int64_t month, int64_t day)
{
	static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return month >= 1 && month <= 12 && day >= 1 &&
	       day <= days[month - 1] + (month == 2 && leap);
}
