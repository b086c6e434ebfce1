/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are read one after the other, those of the workload kept, averaged where they have one
 * clock, and thinned to as many as a machine's file has room for: dropped is always the one that
 * the line between its neighbours misses least.
 */
#include "twin_rows_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "twin_physics.h"

enum column {
	WORKLOAD,
	GPU,
	MHZ,
	LIMIT,
	TIME,
	UNIT,
	POWER,
	COLUMNS
};

enum {
	MAX_FIELD = 200,
	ABSENT = -1,
};

static const char *const names[COLUMNS] = {
	[WORKLOAD] = "workload",   [GPU] = "gpu",   [MHZ] = "core_mhz",
	[LIMIT] = "power_limit_w", [TIME] = "time", [UNIT] = "time_unit",
	[POWER] = "power_w",
};

struct point {
	double mhz, limit_w, time, power_w;
	uint32_t count; /* rows that it is the mean of */
};

struct reading {
	const struct twin_rows_wish *wish;
	struct takt_err *err;
	const char *at; /* in the text */
	unsigned line;
	int place[COLUMNS]; /* of each column in a row, or ABSENT */
	char field[COLUMNS][MAX_FIELD];
	char gpu[MAX_FIELD], unit[MAX_FIELD]; /* of the first row kept */
	struct point points[TWIN_ROWS_MAX];
	uint32_t count;
};

static int wrong(const struct reading *reading, enum column column, const char *text)
{
	return takt_err_set(reading->err, -TAKT_E_CORRUPT, "%s:%u: %s %s", reading->wish->file,
			    reading->line, names[column], text);
}

/* The next field of the row, without what surrounds it; false after the last. */
static bool next_field(struct reading *reading, char *ret, size_t size)
{
	size_t n = strcspn(reading->at, ",\n"), end = n;

	while (end && (reading->at[end - 1] == '\r' || reading->at[end - 1] == ' '))
		end--;
	snprintf(ret, size, "%.*s", (int)(end < size ? end : size - 1), reading->at);
	reading->at += n;
	if (*reading->at != ',')
		return false;
	reading->at++;
	return true;
}

static void end_line(struct reading *reading)
{
	reading->at += strcspn(reading->at, "\n");
	reading->at += *reading->at == '\n';
	reading->line++;
}

static int read_head(struct reading *reading)
{
	static const enum column needed[] = {WORKLOAD, TIME, POWER};
	char name[MAX_FIELD];
	bool more = true;

	for (unsigned i = 0; i < COLUMNS; i++)
		reading->place[i] = ABSENT;
	for (int place = 0; more; place++) {
		more = next_field(reading, name, sizeof(name));
		for (unsigned i = 0; i < COLUMNS; i++) {
			if (strcmp(names[i], name) == 0)
				reading->place[i] = place;
		}
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(needed); i++) {
		if (reading->place[needed[i]] == ABSENT)
			return wrong(reading, needed[i],
				     "is missing among the columns of the first line");
	}
	if (reading->place[MHZ] == ABSENT && reading->place[LIMIT] == ABSENT)
		return wrong(reading, MHZ, "or power_limit_w has to be among the columns");
	end_line(reading);
	return 0;
}

static void read_row(struct reading *reading)
{
	char text[MAX_FIELD];
	bool more = true;

	memset(reading->field, 0, sizeof(reading->field));
	for (int place = 0; more; place++) {
		more = next_field(reading, text, sizeof(text));
		for (unsigned i = 0; i < COLUMNS; i++) {
			if (reading->place[i] == place)
				takt_strcpy(reading->field[i], MAX_FIELD, text);
		}
	}
}

/* Number in (0, max], or 0 for an empty field. */
static int read_number(const struct reading *reading, enum column column, double max, double *ret)
{
	const char *text = reading->field[column];
	char *end;
	double value = strtod(text, &end);

	*ret = 0;
	if (!*text)
		return 0;
	if (*end || !(value > 0) || value > max)
		return wrong(reading, column, "has to be a number above 0");
	*ret = value;
	return 0;
}

static int read_point(const struct reading *reading, struct point *ret)
{
	int rc = read_number(reading, MHZ, 20000, &ret->mhz);

	if (rc == 0)
		rc = read_number(reading, LIMIT, 5000, &ret->limit_w);
	if (rc == 0)
		rc = read_number(reading, TIME, 1e7, &ret->time);
	if (rc == 0)
		rc = read_number(reading, POWER, 5000, &ret->power_w);
	if (rc == 0 && (ret->time == 0 || ret->power_w == 0))
		rc = wrong(reading, ret->time == 0 ? TIME : POWER, "has to be a number above 0");
	if (rc == 0 && ret->mhz == 0 && ret->limit_w == 0)
		rc = wrong(reading, MHZ, "or power_limit_w has to be a number above 0");
	ret->count = 1;
	return rc;
}

/* The row belongs to the workload, but to which GPU's? */
static int check_gpu(struct reading *reading)
{
	if (reading->count == 0) {
		takt_strcpy(reading->gpu, MAX_FIELD, reading->field[GPU]);
		takt_strcpy(reading->unit, MAX_FIELD, reading->field[UNIT]);
	}
	if (strcmp(reading->gpu, reading->field[GPU]) != 0)
		return takt_err_set(reading->err, -TAKT_E_USAGE,
				    "%s:%u: '%s' was measured on '%s' and on '%s': say which with "
				    "--measured-on",
				    reading->wish->file, reading->line, reading->wish->workload,
				    reading->gpu, reading->field[GPU]);
	if (strcmp(reading->unit, reading->field[UNIT]) != 0)
		return wrong(reading, UNIT, "has to be the same for all rows of a workload");
	return 0;
}

static int keep_row(struct reading *reading)
{
	const struct twin_rows_wish *wish = reading->wish;
	struct point point;
	int rc;

	if (strcmp(reading->field[WORKLOAD], wish->workload) != 0 ||
	    (wish->gpu && strcmp(reading->field[GPU], wish->gpu) != 0))
		return 0;
	rc = check_gpu(reading);
	if (rc == 0)
		rc = read_point(reading, &point);
	if (rc == 0 && reading->count == TWIN_ROWS_MAX)
		rc = takt_err_set(reading->err, -TAKT_E_LIMIT,
				  "%s:%u: a workload has %d rows at most", wish->file,
				  reading->line, TWIN_ROWS_MAX);
	if (rc == 0)
		reading->points[reading->count++] = point;
	return rc;
}

static int read_rows(struct reading *reading)
{
	int rc = read_head(reading);

	while (rc == 0 && *reading->at) {
		read_row(reading);
		rc = keep_row(reading);
		end_line(reading);
	}
	if (rc == 0 && reading->count == 0)
		rc = takt_err_set(reading->err, -TAKT_E_NOT_FOUND, "%s has no row of '%s'%s%s",
				  reading->wish->file, reading->wish->workload,
				  reading->wish->gpu ? " on " : "",
				  reading->wish->gpu ? reading->wish->gpu : "");
	return rc;
}

/* Where no clock was written down: the one at which the board draws that much. */
static void find_clocks(struct reading *reading, const struct twin_board *board)
{
	double top_w = 0, rest_w = (board->idle_mw + board->held_mw) / 1e3;

	for (uint32_t i = 0; i < reading->count; i++)
		top_w = reading->points[i].power_w > top_w ? reading->points[i].power_w : top_w;
	for (uint32_t i = 0; i < reading->count; i++) {
		struct point *point = &reading->points[i];
		double part = (point->power_w - rest_w) / (top_w - rest_w);
		if (point->mhz > 0)
			continue;
		if (top_w <= rest_w * 1.05) /* it hardly draws anything: no limit ever held it */
			part = 1;
		part = part < 0 ? 0 : part;
		point->mhz = twin_physics_clock_of(board, (uint32_t)(part * 1000 + 0.5));
	}
}

/* Rising by clock; those of one clock become their mean. */
static void sort(struct reading *reading)
{
	struct point *points = reading->points;
	uint32_t kept = 0;

	for (uint32_t i = 1; i < reading->count; i++) {
		struct point moved = points[i];
		uint32_t at = i;
		for (; at > 0 && points[at - 1].mhz > moved.mhz; at--)
			points[at] = points[at - 1];
		points[at] = moved;
	}
	for (uint32_t i = 1; i < reading->count; i++) {
		struct point *last = &points[kept];
		if (points[i].mhz - last->mhz >= 0.5) {
			points[++kept] = points[i];
			continue;
		}
		last->time = (last->time * last->count + points[i].time) / (last->count + 1);
		last->power_w =
			(last->power_w * last->count + points[i].power_w) / (last->count + 1);
		if (points[i].limit_w < last->limit_w)
			last->limit_w = points[i].limit_w;
		last->count++;
	}
	reading->count = kept + 1;
}

static double distance(double x0, double y0, double x1, double y1, double x, double y)
{
	double off = y0 + (y1 - y0) * (x - x0) / (x1 - x0) - y;

	return (off < 0 ? -off : off) / y;
}

/* By how much the line between its neighbours misses a point. */
static double missed(const struct point *point)
{
	const struct point *low = point - 1, *high = point + 1;

	return distance(1 / low->mhz, low->time, 1 / high->mhz, high->time, 1 / point->mhz,
			point->time) +
	       distance(low->mhz, low->power_w, high->mhz, high->power_w, point->mhz,
			point->power_w);
}

static void thin(struct reading *reading)
{
	while (reading->count > TWIN_ROWS) {
		uint32_t least = 1;
		for (uint32_t i = 2; i + 1 < reading->count; i++) {
			if (missed(&reading->points[i]) < missed(&reading->points[least]))
				least = i;
		}
		memmove(&reading->points[least], &reading->points[least + 1],
			(reading->count - least - 1) * sizeof(reading->points[0]));
		reading->count--;
	}
}

static void fill(const struct reading *reading, struct twin_profile *ret)
{
	const struct point *top = &reading->points[reading->count - 1];
	const char *base = strrchr(reading->wish->workload, '/');
	double step_ms = *reading->unit == 's' ? top->time * 1000 : 100;
	uint32_t power_mw = 0, limit_mw = 0;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)sizeof(ret->name) - 1,
		 base ? base + 1 : reading->wish->workload);
	ret->memory_mib = 4096;
	ret->step_ms = step_ms < 1 ? 1 : step_ms > 3600000 ? 3600000 : (uint32_t)(step_ms + 0.5);
	ret->phase_count = 1;
	ret->phases[0] =
		(struct twin_phase){.kind = TWIN_PHASE_COMPUTE, .share = 1000, .util = 1000};
	ret->row_count = reading->count;
	for (uint32_t i = 0; i < reading->count; i++) {
		const struct point *point = &reading->points[i];
		double time = point->time / top->time * 1e6;
		/* a board that is held down looks for the highest clock within its limit */
		if (point->power_w * 1000 > power_mw)
			power_mw = (uint32_t)(point->power_w * 1000);
		limit_mw = limit_mw > power_mw ? limit_mw : power_mw;
		if (point->limit_w * 1000 > limit_mw)
			limit_mw = (uint32_t)(point->limit_w * 1000);
		ret->rows[i] = (struct twin_row){
			.mhz = point->mhz < 1 ? 1 : (uint32_t)(point->mhz + 0.5),
			.time = time < 1e5   ? 100000
				: time > 1e9 ? 1000000000
					     : (uint32_t)(time + 0.5),
			.power_mw = power_mw,
			.limit_mw = limit_mw,
		};
	}
}

int twin_rows_from(const char *text, const struct twin_rows_wish *wish,
		   const struct twin_board *board, struct twin_profile *ret, struct takt_err *err)
{
	/* many rows: not on the stack */
	struct reading *reading = takt_zalloc(sizeof(*reading));
	int rc;

	if (!reading)
		return takt_err_set(err, -ENOMEM, "read '%s'", wish->file);
	reading->wish = wish;
	reading->err = err;
	reading->at = text;
	reading->line = 1;
	rc = read_rows(reading);
	if (rc == 0) {
		find_clocks(reading, board);
		sort(reading);
		thin(reading);
		fill(reading, ret);
	}
	takt_free(reading);
	return rc;
}

static int read_text(const char *path, char **ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = takt_zalloc(TWIN_ROWS_MAX_BYTES + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = fd < 0 || !text ? 0 : 1;

	while (n > 0 && used <= TWIN_ROWS_MAX_BYTES) {
		n = read(fd, text + used, TWIN_ROWS_MAX_BYTES + 1 - used);
		used += n > 0 ? (size_t)n : 0;
	}
	n = !text ? -ENOMEM : fd < 0 || n < 0 ? -errno : used > TWIN_ROWS_MAX_BYTES ? -EFBIG : 0;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return takt_err_set(err, (int)n, "read '%s'", path);
	*ret = text;
	text = NULL;
	return 0;
}

int twin_rows_load(const struct twin_rows_wish *wish, const struct twin_board *board,
		   struct twin_profile *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	int rc = read_text(wish->file, &text, err);

	return rc < 0 ? rc : twin_rows_from(text, wish, board, ret, err);
}
