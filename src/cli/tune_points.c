/* SPDX-License-Identifier: Apache-2.0 */
/* What to measure, and what the measurements come to. Pure. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/tune.h"
#include "sim/sim_stats.h"

enum {
	MAX_WATTS = 10000
};

static int add_point(struct takt_tune_result *result, uint32_t mhz, uint32_t power_limit_mw,
		     struct takt_err *err)
{
	for (uint32_t i = 0; i < result->count; i++)
		if (result->points[i].sm_mhz == mhz &&
		    result->points[i].power_limit_mw == power_limit_mw)
			return 0;
	if (result->count == TAKT_TUNE_MAX_POINTS)
		return takt_err_set(err, -TAKT_E_USAGE, "at most %d settings",
				    TAKT_TUNE_MAX_POINTS);
	result->points[result->count++] =
		(struct takt_tune_point){.sm_mhz = mhz, .power_limit_mw = power_limit_mw};
	return 0;
}

/* The next number of a list with commas; 1, 0 at its end. */
static int next_number(const char **list, const char *option, uint32_t min, uint32_t max,
		       uint32_t *ret, struct takt_err *err)
{
	unsigned long long value;
	size_t len = strcspn(*list, ",");
	char text[16] = "";

	if (!**list)
		return 0;
	if (len < sizeof(text))
		memcpy(text, *list, len);
	if (takt_parse_u64(text, min, max, &value) < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "'--%s': %.*s; %u to %u are accepted",
				    option, (int)len, *list, min, max);
	*ret = (uint32_t)value;
	*list += len + ((*list)[len] == ',');
	return 1;
}

static int add_clocks(const struct takt_tune_axes *axes, uint32_t min_mhz, uint32_t max_mhz,
		      struct takt_tune_result *result, struct takt_err *err)
{
	const char *rest = axes->clocks;
	uint32_t mhz = 0;
	int rc = 0;

	while (rest && (rc = next_number(&rest, "clocks", min_mhz, max_mhz, &mhz, err)) > 0)
		if ((rc = add_point(result, mhz, 0, err)) < 0)
			break;
	for (uint32_t i = 1; !rest && rc == 0 && i < axes->steps; i++)
		rc = add_point(result, max_mhz - (max_mhz - min_mhz) / (axes->steps - 1) * i, 0,
			       err);
	return rc;
}

int takt_tune_settings(const struct takt_tune_axes *axes, uint32_t min_mhz, uint32_t max_mhz,
		       struct takt_tune_result *result, struct takt_err *err)
{
	const char *rest = axes->power_limits;
	uint32_t watts = 0;
	int rc = add_point(result, max_mhz, 0, err);

	if (rc == 0)
		rc = add_clocks(axes, min_mhz, max_mhz, result, err);
	while (rc == 0 && rest &&
	       (rc = next_number(&rest, "power-limits", 1, MAX_WATTS, &watts, err)) > 0)
		rc = add_point(result, max_mhz, watts * 1000, err);
	return rc;
}

static struct takt_tune_value value_of(const struct takt_tune_point *point, size_t offset)
{
	double values[TAKT_TUNE_MAX_REPEATS];
	struct takt_sim_stat stat;

	for (uint32_t i = 0; i < point->count; i++)
		memcpy(&values[i], (const char *)&point->samples[i] + offset, sizeof(values[i]));
	if (point->count == 0)
		return (struct takt_tune_value){NAN, NAN};
	stat = takt_sim_stat(values, point->count);
	return (struct takt_tune_value){stat.mean, stat.n > 1 ? stat.half95 : NAN};
}

/* 100 (a / b - 1), its error from theirs. */
static struct takt_tune_value ratio_pct(struct takt_tune_value a, struct takt_tune_value b)
{
	double ratio = a.mean / b.mean;

	return (struct takt_tune_value){
		100 * (ratio - 1),
		100 * ratio * hypot(a.half95 / a.mean, b.half95 / b.mean),
	};
}

static void judge_point(const struct takt_tune_point *reference, struct takt_tune_point *point)
{
	struct takt_tune_value saved;

	point->performance = value_of(point, offsetof(struct takt_tune_sample, performance));
	point->power_w = value_of(point, offsetof(struct takt_tune_sample, power_w));
	point->energy_j = value_of(point, offsetof(struct takt_tune_sample, energy_j));
	point->measured_sm_mhz = value_of(point, offsetof(struct takt_tune_sample, sm_mhz)).mean;
	if (point == reference) {
		point->slowdown_pct = point->saved_pct = (struct takt_tune_value){0, 0};
		return;
	}
	point->slowdown_pct = ratio_pct(reference->performance, point->performance);
	saved = ratio_pct(point->energy_j, reference->energy_j);
	point->saved_pct = (struct takt_tune_value){-saved.mean, saved.half95};
}

static bool is_better(const struct takt_tune_point *a, const struct takt_tune_point *b)
{
	bool no_worse = a->slowdown_pct.mean <= b->slowdown_pct.mean &&
			a->energy_j.mean <= b->energy_j.mean;

	return no_worse &&
	       (a->slowdown_pct.mean < b->slowdown_pct.mean || a->energy_j.mean < b->energy_j.mean);
}

static bool is_known(const struct takt_tune_point *point)
{
	return point->count > 0 && isfinite(point->slowdown_pct.mean) &&
	       isfinite(point->energy_j.mean);
}

static void find_front(struct takt_tune_result *result)
{
	for (uint32_t i = 0; i < result->count; i++) {
		struct takt_tune_point *point = &result->points[i];

		point->front = is_known(point);
		for (uint32_t j = 0; point->front && j < result->count; j++)
			point->front = !is_known(&result->points[j]) ||
				       !is_better(&result->points[j], point);
	}
}

static bool keeps_promise(const struct takt_tune_result *result,
			  const struct takt_tune_point *point)
{
	double error = isfinite(point->slowdown_pct.half95) ? point->slowdown_pct.half95 : 0;

	return is_known(point) && !point->differs &&
	       point->slowdown_pct.mean + error <= result->max_slowdown_pct;
}

void takt_tune_judge(struct takt_tune_result *result)
{
	result->recommended = -1;
	for (uint32_t i = 0; i < result->count; i++)
		judge_point(&result->points[0], &result->points[i]);
	find_front(result);
	for (uint32_t i = 0; i < result->count; i++) {
		const struct takt_tune_point *point = &result->points[i];

		if (keeps_promise(result, point) &&
		    (result->recommended < 0 ||
		     point->energy_j.mean < result->points[result->recommended].energy_j.mean))
			result->recommended = (int)i;
	}
}
