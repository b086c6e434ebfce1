/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tables of measured clocks, see the header. */
#include "sim/clock_points.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "sim/csv_cells.h"

enum column {
	DATASET,
	GPU,
	WORKLOAD,
	CORE,
	MEMORY,
	LIMIT,
	TIME,
	POWER,
	DRAM,
	SM,
	TENSOR,
	COLUMNS
};

static const char *const names[COLUMNS] = {
	"dataset", "gpu",     "workload",    "core_mhz",  "mem_mhz",	   "power_limit_w",
	"time",	   "power_w", "dram_active", "sm_active", "tensor_active",
};

struct row {
	char dataset[TAKT_POINTS_NAME], gpu[TAKT_POINTS_NAME], workload[TAKT_POINTS_NAME];
	double at[COLUMNS];		    /* NAN = empty */
	size_t workload_first, board_first; /* the first row of the same, for the file's order */
};

struct rows {
	TAKT_VEC(struct row) all;
	int place[COLUMNS];	   /* cell of each column; -1 = the file has none */
	const enum column *needed; /* no row without them */
	size_t needed_count;
	bool counters_only; /* time, power and what else may be there are passed over */
	unsigned long long header_line;
};

static int take_header(struct rows *rows, char **cells, int count, struct takt_err *err)
{
	for (int c = 0; c < COLUMNS; c++) {
		rows->place[c] = -1;
		if (rows->counters_only && c > CORE && c < DRAM)
			continue;
		for (int i = 0; i < count; i++) {
			if (strcmp(cells[i], names[c]) != 0)
				continue;
			if (rows->place[c] >= 0)
				return takt_err_set(err, -TAKT_E_CORRUPT,
						    "column '%s' is there twice", names[c]);
			rows->place[c] = i;
		}
	}
	return 0;
}

static bool says_nothing(const char *line)
{
	return line[0] == '\0' || line[0] == '#';
}

static int read_header(struct takt_lines *lines, struct rows *rows, struct takt_err *err)
{
	char *line, *cells[TAKT_CSV_MAX_CELLS];
	int rc;

	while ((rc = takt_lines_next(lines, &line, err)) > 0 && says_nothing(line))
		;
	if (rc == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "%s is empty", takt_lines_name(lines));
	rows->header_line = takt_lines_number(lines);
	if (rc > 0)
		rc = takt_csv_split(line, cells, err);
	if (rc > 0)
		rc = take_header(rows, cells, rc, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "%s:%llu", takt_lines_name(lines), rows->header_line);
	return 0;
}

static int need(const struct takt_lines *lines, const struct rows *rows, struct takt_err *err)
{
	for (size_t i = 0; i < rows->needed_count; i++)
		if (rows->place[rows->needed[i]] < 0)
			return takt_err_set(
				err, -TAKT_E_CORRUPT, "%s:%llu: there is no column '%s'",
				takt_lines_name(lines), rows->header_line, names[rows->needed[i]]);
	return 0;
}

static bool is_needed(const struct rows *rows, enum column column)
{
	for (size_t i = 0; i < rows->needed_count; i++)
		if (rows->needed[i] == column)
			return true;
	return false;
}

/* Empty is NAN, where that may be. Activity may be a little above 1 as it is measured. */
static bool number(const struct rows *rows, enum column column, const char *text, double *ret)
{
	double max = column >= DRAM ? 1.5 : 1e12;
	char *end;

	*ret = NAN;
	if (text[0] == '\0')
		return !is_needed(rows, column);
	*ret = strtod(text, &end);
	return *end == '\0' && *ret >= 0 && *ret <= max &&
	       (*ret > 0 || column >= DRAM || column == MEMORY);
}

static const char *must_be(enum column column)
{
	if (column <= WORKLOAD)
		return "a name shorter than 128";
	if (column == MEMORY)
		return "a number from 0 to 1e12";
	return column < DRAM ? "a number above 0, up to 1e12" : "a fraction, 0 to 1";
}

static int read_names(struct row *row, const struct rows *rows, char **cells, int count)
{
	char *const to[] = {row->dataset, row->gpu, row->workload};

	for (int c = DATASET; c <= WORKLOAD; c++) {
		if (rows->place[c] >= count || cells[rows->place[c]][0] == '\0' ||
		    !takt_strcpy(to[c], TAKT_POINTS_NAME, cells[rows->place[c]]))
			return c;
	}
	return -1;
}

static int read_row(struct row *row, const struct rows *rows, char **cells, int count)
{
	int wrong = read_names(row, rows, cells, count);

	for (int c = CORE; c < COLUMNS && wrong < 0; c++) {
		int place = rows->place[c];

		row->at[c] = NAN;
		if (place >= 0 &&
		    (place >= count || !number(rows, (enum column)c, cells[place], &row->at[c])))
			wrong = c;
	}
	return wrong;
}

static int read_rows(struct takt_lines *lines, struct rows *rows, struct takt_err *err)
{
	char *line, *cells[TAKT_CSV_MAX_CELLS];
	int rc;

	while ((rc = takt_lines_next(lines, &line, err)) > 0) {
		unsigned long long at = takt_lines_number(lines);
		struct row row;
		int wrong, count;

		if (says_nothing(line))
			continue;
		count = takt_csv_split(line, cells, err);
		if (count < 0)
			return takt_err_wrap(err, count, "%s:%llu", takt_lines_name(lines), at);
		wrong = read_row(&row, rows, cells, count);
		if (wrong >= 0)
			return takt_err_set(err, -TAKT_E_CORRUPT, "%s:%llu: column '%s' must be %s",
					    takt_lines_name(lines), at, names[wrong],
					    must_be((enum column)wrong));
		rc = takt_vec_push(&rows->all, row);
		if (rc < 0)
			return takt_err_set(err, rc, "%s: more than %d rows, or no memory",
					    takt_lines_name(lines), TAKT_POINTS_MAX);
	}
	return rc;
}

static bool same_board(const struct row *a, const struct row *b)
{
	return strcmp(a->dataset, b->dataset) == 0 && strcmp(a->gpu, b->gpu) == 0;
}

static bool same_workload(const struct row *a, const struct row *b)
{
	return same_board(a, b) && strcmp(a->workload, b->workload) == 0;
}

/* Empty goes behind every number: what was left alone counts as the highest. */
static int compare_numbers(double a, double b)
{
	double x = isnan(a) ? INFINITY : a, y = isnan(b) ? INFINITY : b;

	return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct row *x = a, *y = b;
	int d = strcmp(x->dataset, y->dataset);

	(void)ctx;
	d = d ? d : strcmp(x->gpu, y->gpu);
	return d ? d : strcmp(x->workload, y->workload);
}

static int by_place(const void *a, const void *b, void *ctx)
{
	const struct row *x = a, *y = b;

	(void)ctx;
	if (x->board_first != y->board_first)
		return x->board_first < y->board_first ? -1 : 1;
	return (x->workload_first > y->workload_first) - (x->workload_first < y->workload_first);
}

/* Boards and their workloads together, both in the order in which the file begins them. */
static int gather(struct rows *rows)
{
	struct row *at = rows->all.at;
	size_t n = rows->all.len;
	int rc;

	for (size_t i = 0; i < n; i++)
		at[i].workload_first = at[i].board_first = i;
	rc = takt_sort(at, n, sizeof(*at), by_name, NULL); /* stable: first rows come first */
	if (rc < 0)
		return rc;
	for (size_t i = 1; i < n; i++) {
		if (same_workload(&at[i], &at[i - 1]))
			at[i].workload_first = at[i - 1].workload_first;
		if (same_board(&at[i], &at[i - 1]) && at[i].board_first > at[i - 1].board_first)
			at[i].board_first = at[i - 1].board_first;
	}
	for (size_t i = n; i-- > 1;)
		if (same_board(&at[i], &at[i - 1]))
			at[i - 1].board_first = at[i].board_first;
	return takt_sort(at, n, sizeof(*at), by_place, NULL);
}

/* What turns on a curve, and what must stand still on it. */
struct axis {
	enum takt_governor_actuator actuator;
	enum column turns, still, also_still;
};

static const struct axis axes[] = {
	{TAKT_ACTUATE_CLOCKS, CORE, MEMORY, LIMIT},
	{TAKT_ACTUATE_POWER, LIMIT, CORE, MEMORY},
};

struct axis_order {
	const struct axis *axis;
};

/* The highest of what stands still last, then ascending in what turns. */
static int by_axis(const void *a, const void *b, void *ctx)
{
	const struct row *x = a, *y = b;
	const struct axis *axis = ((const struct axis_order *)ctx)->axis;
	int d = compare_numbers(x->at[axis->still], y->at[axis->still]);

	d = d ? d : compare_numbers(x->at[axis->also_still], y->at[axis->also_still]);
	return d ? d : compare_numbers(x->at[axis->turns], y->at[axis->turns]);
}

static bool stands_still(const struct axis *axis, const struct row *a, const struct row *b)
{
	return compare_numbers(a->at[axis->still], b->at[axis->still]) == 0 &&
	       compare_numbers(a->at[axis->also_still], b->at[axis->also_still]) == 0;
}

/* One setting of the rows that have its value; from sorted rows. Returns how many rows. */
static size_t merge(const struct axis *axis, const struct row *rows, size_t n,
		    struct takt_clock_setting *ret)
{
	size_t same = 0;

	*ret = (struct takt_clock_setting){.value = rows[0].at[axis->turns]};
	while (same < n && rows[same].at[axis->turns] == ret->value) {
		ret->time += rows[same].at[TIME];
		ret->power_w += rows[same].at[POWER];
		same++;
	}
	ret->time /= (double)same;
	ret->power_w /= (double)same;
	return same;
}

static size_t distinct(const struct axis *axis, const struct row *rows, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n && !isnan(rows[i].at[axis->turns]); i++)
		count += i == 0 || rows[i].at[axis->turns] != rows[i - 1].at[axis->turns];
	return count;
}

static int add_curve(struct takt_clock_points *points, const struct axis *axis,
		     const struct row *rows, size_t n, size_t count, struct takt_err *err)
{
	struct takt_clock_curve curve = {.actuator = axis->actuator, .count = count};
	int rc;

	if (count > TAKT_GOVERNOR_MAX_CLOCKS)
		return takt_err_set(
			err, -TAKT_E_LIMIT, "workload '%s' of '%s', '%s' has more than %d settings",
			rows->workload, rows->dataset, rows->gpu, TAKT_GOVERNOR_MAX_CLOCKS);
	curve.settings = takt_calloc(count, sizeof(*curve.settings));
	if (!curve.settings)
		return takt_err_set(err, -ENOMEM, "no memory for curves");
	memcpy(curve.dataset, rows->dataset, sizeof(curve.dataset));
	memcpy(curve.gpu, rows->gpu, sizeof(curve.gpu));
	memcpy(curve.workload, rows->workload, sizeof(curve.workload));
	for (size_t i = 0, s = 0; s < count; s++)
		i += merge(axis, rows + i, n - i, &curve.settings[s]);
	rc = takt_vec_push(&points->curves, curve);
	if (rc < 0) {
		takt_free(curve.settings);
		return takt_err_set(err, rc, "no memory for curves");
	}
	return 0;
}

/* A memory clock that was left alone is the highest. */
static void fill_memory_clock(struct row *rows, size_t n)
{
	double highest = NAN;

	for (size_t i = 0; i < n; i++)
		highest = fmax(highest, rows[i].at[MEMORY]);
	for (size_t i = 0; i < n; i++)
		if (isnan(rows[i].at[MEMORY]))
			rows[i].at[MEMORY] = highest;
}

/* The curve of one workload's rows, if they have one: the last group with two settings. */
static int take_curve(struct takt_clock_points *points, const struct axis *axis, struct row *rows,
		      size_t n, struct takt_err *err)
{
	struct axis_order order = {axis};
	int rc = takt_sort(rows, n, sizeof(*rows), by_axis, &order);

	if (rc < 0)
		return takt_err_set(err, rc, "no memory for curves");
	for (size_t end = n; end > 0;) {
		size_t first = end - 1, count;

		while (first > 0 && stands_still(axis, &rows[first - 1], &rows[end - 1]))
			first--;
		count = distinct(axis, rows + first, end - first);
		if (count >= 2)
			return add_curve(points, axis, rows + first, end - first, count, err);
		end = first;
	}
	return 0;
}

static int take_board(struct takt_clock_points *points, const struct axis *axis, struct row *rows,
		      size_t n, struct takt_err *err)
{
	int rc = 0;

	for (size_t i = 0, end; i < n && rc == 0; i = end) {
		for (end = i; end < n && same_workload(&rows[end], &rows[i]); end++)
			;
		fill_memory_clock(rows + i, end - i);
		rc = take_curve(points, axis, rows + i, end - i, err);
	}
	return rc;
}

static int take_curves(struct takt_clock_points *points, struct rows *rows, struct takt_err *err)
{
	struct row *at = rows->all.at;
	int rc = 0;

	for (size_t i = 0, end; i < rows->all.len && rc == 0; i = end) {
		for (end = i; end < rows->all.len && same_board(&at[end], &at[i]); end++)
			;
		for (size_t a = 0; a < TAKT_ARRAY_LEN(axes) && rc == 0; a++)
			rc = take_board(points, &axes[a], at + i, end - i, err);
	}
	return rc;
}

/* The header and all rows. */
static int read_table(struct takt_lines *lines, struct rows *rows, struct takt_err *err)
{
	int rc = read_header(lines, rows, err);

	if (rc == 0)
		rc = need(lines, rows, err);
	return rc < 0 ? rc : read_rows(lines, rows, err);
}

int takt_clock_points_read(struct takt_lines *lines, struct takt_clock_points *ret,
			   struct takt_err *err)
{
	static const enum column needed[] = {DATASET, GPU, WORKLOAD, TIME, POWER};
	struct takt_clock_points points = {.curves = TAKT_VEC_INIT(TAKT_POINTS_MAX)};
	struct rows rows = {.all = TAKT_VEC_INIT(TAKT_POINTS_MAX),
			    .needed = needed,
			    .needed_count = TAKT_ARRAY_LEN(needed)};
	int rc = read_table(lines, &rows, err);

	if (rc == 0 && (rc = gather(&rows)) < 0)
		takt_err_set(err, rc, "no memory for curves");
	if (rc == 0)
		rc = take_curves(&points, &rows, err);
	if (rc == 0 && points.curves.len == 0)
		rc = takt_err_set(err, -TAKT_E_CORRUPT,
				  "%s: no workload has two clocks (core_mhz) or two limits "
				  "(power_limit_w)",
				  takt_lines_name(lines));
	takt_vec_fini(&rows.all);
	if (rc < 0) {
		takt_clock_points_fini(&points);
		return rc;
	}
	takt_strcpy(points.hash, sizeof(points.hash), takt_lines_hash(lines));
	*ret = points;
	return 0;
}

void takt_clock_points_fini(struct takt_clock_points *points)
{
	TAKT_VEC_EACH (curve, &points->curves)
		takt_free(curve->settings);
	takt_vec_fini(&points->curves);
}

static uint32_t permille(double fraction)
{
	return (uint32_t)lround(fraction * 1000);
}

static void set_counters(const struct row *row, struct takt_clock_counters *ret)
{
	if (!isnan(row->at[DRAM])) {
		ret->has |= TAKT_OBSERVED_DRAM;
		ret->dram_permille = permille(row->at[DRAM]);
	}
	if (!isnan(row->at[SM])) {
		ret->has |= TAKT_OBSERVED_SM;
		ret->sm_permille = permille(row->at[SM]);
	}
	if (!isnan(row->at[TENSOR])) {
		ret->has |= TAKT_OBSERVED_TENSOR;
		ret->tensor_permille = permille(row->at[TENSOR]);
	}
}

static void add_counters(struct takt_clock_points *points, const struct row *row)
{
	TAKT_VEC_EACH (curve, &points->curves) {
		if (curve->actuator != TAKT_ACTUATE_CLOCKS ||
		    strcmp(curve->workload, row->workload) != 0 ||
		    strcmp(curve->gpu, row->gpu) != 0 || strcmp(curve->dataset, row->dataset) != 0)
			continue;
		for (size_t i = 0; i < curve->count; i++)
			if (curve->settings[i].value == row->at[CORE])
				set_counters(row, &curve->settings[i].counters);
	}
}

int takt_clock_points_counters(struct takt_clock_points *points, struct takt_lines *lines,
			       struct takt_err *err)
{
	static const enum column needed[] = {DATASET, GPU, WORKLOAD, CORE};
	struct rows rows = {.all = TAKT_VEC_INIT(TAKT_POINTS_MAX),
			    .needed = needed,
			    .needed_count = TAKT_ARRAY_LEN(needed),
			    .counters_only = true};
	int rc = read_table(lines, &rows, err);

	TAKT_VEC_EACH (row, &rows.all)
		if (rc == 0)
			add_counters(points, row);
	takt_vec_fini(&rows.all);
	return rc;
}
