/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep's result as a table, JSON and CSV. What is not known is left out, or "-". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/table.h"
#include "cli/tune.h"
#include "cli/units.h"
#include "codec/json.h"
#include "takt_build.h"
#include "takt_commit.h"

enum {
	VALUE_TEXT = 40,
	SHORT_RUN_S = 3,
};

static const struct takt_column columns[] = {
	{"", false, 0, 0},	 {"SM MHz", true, 0, 0},     {"LIMIT", true, 0, 4},
	{"RAN AT", true, 0, 5},	 {"PER SECOND", true, 0, 0}, {"SLOWER %", true, 0, 0},
	{"POWER W", true, 0, 0}, {"ENERGY", true, 0, 0},     {"SAVED %", true, 0, 0},
};

static const char *unit_of(const struct takt_tune_result *result)
{
	return result->points[0].samples[0].unit;
}

/* "12.3 +-0.4" */
static const char *value_text(struct takt_tune_value value, int digits, char ret[VALUE_TEXT])
{
	ret[0] = '\0';
	if (isfinite(value.mean) && isfinite(value.half95))
		snprintf(ret, VALUE_TEXT, "%.*f +-%.*f", digits, value.mean, digits, value.half95);
	else if (isfinite(value.mean))
		snprintf(ret, VALUE_TEXT, "%.*f", digits, value.mean);
	return ret;
}

/* So many decimals that three digits count. */
static int decimals(double value)
{
	return !isfinite(value) || fabs(value) >= 100 ? 0
	       : fabs(value) >= 10		      ? 1
	       : fabs(value) >= 1		      ? 2
						      : 4;
}

static void add_row(struct takt_table *table, const struct takt_tune_result *result, uint32_t i)
{
	const struct takt_tune_point *point = &result->points[i];
	bool chosen = (int)i == result->recommended;
	enum takt_style style = chosen ? TAKT_STYLE_GOOD : TAKT_STYLE_PLAIN;
	char text[VALUE_TEXT];

	takt_table_add(table, style, "%s", chosen ? "->" : point->front ? "*" : " ");
	takt_table_add(table, style, "%u", point->sm_mhz);
	if (point->power_limit_mw)
		takt_table_add(table, style, "%u W", point->power_limit_mw / 1000);
	else
		takt_table_add(table, style, " ");
	if (isfinite(point->measured_sm_mhz))
		takt_table_add(table, style, "%.0f", point->measured_sm_mhz);
	else
		takt_table_add(table, style, "%s", "");
	takt_table_add(table, style, "%s",
		       value_text(point->performance, decimals(point->performance.mean), text));
	takt_table_add(table, style, "%s", value_text(point->slowdown_pct, 1, text));
	takt_table_add(table, style, "%s",
		       value_text((struct takt_tune_value){point->power_w.mean, NAN}, 0, text));
	takt_table_add(table, style, "%s",
		       value_text(point->energy_j, decimals(point->energy_j.mean), text));
	takt_table_add(table, style, "%s", value_text(point->saved_pct, 1, text));
}

static void print_recommendation(struct takt_cli *cli, const struct takt_tune_result *result)
{
	const struct takt_tune_point *point;
	char slower[VALUE_TEXT], saved[VALUE_TEXT], limit[32] = "";

	if (result->recommended < 0) {
		takt_str_addf(&cli->out, "No recommendation: %s\n",
			      result->stopped[0] ? "the sweep was stopped."
						 : "no energy is known.");
		return;
	}
	point = &result->points[result->recommended];
	if (point->power_limit_mw)
		snprintf(limit, sizeof(limit), " and %u W", point->power_limit_mw / 1000);
	takt_str_addf(&cli->out,
		      "Within %.3g %%: %u MHz%s, %s %% slower, %s %% less energy a %s.\n",
		      result->max_slowdown_pct, point->sm_mhz, limit,
		      value_text(point->slowdown_pct, 1, slower),
		      value_text(point->saved_pct, 1, saved), unit_of(result));
}

/* Energy counters move in steps of up to a tenth of a second. */
static bool is_short(const struct takt_tune_result *result)
{
	return strcmp(unit_of(result), "run") == 0 &&
	       result->points[0].performance.mean * SHORT_RUN_S > 1;
}

/* "1500 MHz, 1980 MHz and 300 W"; how many they are. */
static uint32_t add_differing(const struct takt_tune_result *result, struct takt_str *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < result->count; i++) {
		const struct takt_tune_point *point = &result->points[i];

		if (!point->differs)
			continue;
		takt_str_addf(out, "%s%u MHz", count++ ? ", " : "", point->sm_mhz);
		if (point->power_limit_mw)
			takt_str_addf(out, " and %u W", point->power_limit_mw / 1000);
	}
	return count;
}

/* Whether results stayed equal. */
static void print_same(struct takt_cli *cli, const struct takt_tune_result *result)
{
	TAKT_CLEANUP(strp) struct takt_str settings = TAKT_STR(64 * TAKT_TUNE_MAX_POINTS);

	if (!result->compared)
		takt_str_addf(&cli->out, "Results were not compared: %s.\n", result->not_compared);
	else if (add_differing(result, &settings))
		takt_str_addf(&cli->out,
			      "DIFFERS at %s: the %s is not that of the highest clock, which was "
			      "the same in all its runs; not recommended. Where it has times in "
			      "it, --any-output looks away.\n",
			      takt_str_text(&settings), result->compared);
	else if (!result->stopped[0])
		takt_str_addf(&cli->out, "The %s was the same in all runs%s.\n", result->compared,
			      takt_tune_warm_up_differs(result) ? " but the warm-up" : "");
}

static void print_notes(struct takt_cli *cli, const struct takt_tune_result *result)
{
	print_same(cli, result);
	if (result->advice[0])
		takt_str_addf(&cli->out,
			      "Only the clock as it is was measured, because takt may not set "
			      "another: %s\n",
			      result->advice);
	if (result->deaf[0])
		takt_str_addf(&cli->out, "XIDs and ECC errors were not watched: %s\n",
			      result->deaf);
	if (is_short(result))
		takt_str_addf(&cli->out,
			      "Runs of less than %d s: their energy is rough, a longer command "
			      "says more.\n",
			      SHORT_RUN_S);
	if (result->repeats == 1)
		takt_str_add(&cli->out, "One run each has no error: --repeat 3 and more do.\n");
	if (result->stopped[0])
		takt_str_addf(&cli->out, "STOPPED: %s\n", result->stopped);
}

/* Whose progress the figures are. */
static void print_ranks(struct takt_cli *cli, const struct takt_tune_result *result)
{
	const struct takt_tune_sample *sample = &result->points[0].samples[0];

	if (sample->ranks < 2)
		return;
	if (strcmp(sample->unit, "query") == 0)
		takt_str_addf(&cli->out, "Of %u ranks together.\n", sample->ranks);
	else
		takt_str_addf(&cli->out,
			      "Of the slowest of %u ranks, for which the others wait; power and "
			      "energy are of all GPUs.\n",
			      sample->ranks);
}

void takt_tune_print(struct takt_cli *cli, const struct takt_tune_result *result)
{
	struct takt_table table = TAKT_TABLE(columns);

	takt_print_simulated(cli, result->simulated);
	takt_str_addf(&cli->out, "%u x %s, %u runs each; per second: %s%s; energy: J a %s\n",
		      result->gpus, takt_short_name(result->gpu_name), result->repeats,
		      unit_of(result), TAKT_TUNE_PLURAL(unit_of(result)), unit_of(result));
	print_ranks(cli, result);
	for (uint32_t i = 0; i < result->count; i++)
		if (result->points[i].count)
			add_row(&table, result, i);
	(void)takt_table_print(&table, cli->width, cli->colour, &cli->out);
	takt_str_add(&cli->out, "* no other is both faster and cheaper; +- holds the mean in 95 of "
				"100 cases\n\n");
	takt_tune_plot(result, cli->width, &cli->out);
	print_recommendation(cli, result);
	print_notes(cli, result);
}

static void add_number(struct takt_str *out, const char *name, double value)
{
	if (isfinite(value))
		takt_str_addf(out, ",\"%s\":%.6g", name, value);
}

static void add_value(struct takt_str *out, const char *name, const char *error_name,
		      struct takt_tune_value value)
{
	add_number(out, name, value.mean);
	add_number(out, error_name, value.half95);
}

static void add_text(struct takt_str *out, const char *name, const char *text)
{
	if (!text[0])
		return;
	takt_json_add_name(out, name, false);
	takt_json_add_text(out, text);
}

static void add_setting(struct takt_str *out, const struct takt_tune_point *point)
{
	takt_str_addf(out, "{\"sm_mhz\":%u", point->sm_mhz);
	if (point->power_limit_mw)
		takt_str_addf(out, ",\"power_limit_w\":%u", point->power_limit_mw / 1000);
	add_value(out, "slowdown_pct", "slowdown_error_pct", point->slowdown_pct);
	add_value(out, "saved_pct", "saved_error_pct", point->saved_pct);
}

static void add_point(struct takt_str *out, const struct takt_tune_point *point)
{
	add_setting(out, point);
	takt_str_addf(out, ",\"runs\":%u", point->count);
	add_number(out, "measured_sm_mhz", point->measured_sm_mhz);
	add_value(out, "performance", "performance_error", point->performance);
	add_value(out, "power_w", "power_error_w", point->power_w);
	add_value(out, "energy_j", "energy_error_j", point->energy_j);
	if (point->differs)
		takt_str_add(out, ",\"differs\":true");
	takt_str_addf(out, ",\"pareto\":%s}", point->front ? "true" : "false");
}

void takt_tune_json(const struct takt_tune_result *result, struct takt_str *out)
{
	const char *comma = "";

	takt_str_addf(out,
		      "{\"format\":\"takt-tune\",\"version\":1,\"takt\":\"%s\",\"commit\":\"%s\","
		      "\"simulated\":%s",
		      TAKT_VERSION, TAKT_COMMIT, result->simulated ? "true" : "false");
	add_text(out, "gpu", result->gpu_name);
	takt_str_addf(out, ",\"gpus\":%u,\"repeats\":%u,\"seed\":%llu,\"max_slowdown_pct\":%g",
		      result->gpus, result->repeats, (unsigned long long)result->seed,
		      result->max_slowdown_pct);
	add_text(out, "unit", unit_of(result));
	if (result->points[0].samples[0].ranks)
		takt_str_addf(out, ",\"ranks\":%u", result->points[0].samples[0].ranks);
	add_text(out, "command", result->command);
	add_text(out, "advice", result->advice);
	add_text(out, "events_not_watched", result->deaf);
	add_text(out, "compared", result->compared ? result->compared : "");
	add_text(out, "not_compared", result->not_compared);
	add_text(out, "stopped", result->stopped);
	takt_str_add(out, ",\"points\":[");
	for (uint32_t i = 0; i < result->count; i++) {
		if (!result->points[i].count)
			continue;
		takt_str_add(out, comma);
		add_point(out, &result->points[i]);
		comma = ",";
	}
	takt_str_add(out, "]");
	if (result->recommended >= 0) {
		takt_str_add(out, ",\"recommended\":");
		add_setting(out, &result->points[result->recommended]);
		takt_str_add(out, "}");
	}
	takt_str_add(out, "}\n");
}

static void add_cell(struct takt_str *out, double value)
{
	if (isfinite(value))
		takt_str_addf(out, ",%.6g", value);
	else
		takt_str_add(out, ",");
}

static void add_cells(struct takt_str *out, struct takt_tune_value value)
{
	add_cell(out, value.mean);
	add_cell(out, value.half95);
}

void takt_tune_csv(const struct takt_tune_result *result, struct takt_str *out)
{
	takt_str_addf(out,
		      "simulated,unit,sm_mhz,power_limit_w,runs,measured_sm_mhz,performance,"
		      "performance_error,slowdown_pct,slowdown_error_pct,power_w,power_error_w,"
		      "energy_j,energy_error_j,saved_pct,saved_error_pct,pareto,recommended\n");
	for (uint32_t i = 0; i < result->count; i++) {
		const struct takt_tune_point *point = &result->points[i];

		if (!point->count)
			continue;
		takt_str_addf(out, "%d,%s,%u", result->simulated, unit_of(result), point->sm_mhz);
		add_cell(out, point->power_limit_mw ? point->power_limit_mw / 1000.0 : NAN);
		takt_str_addf(out, ",%u", point->count);
		add_cell(out, point->measured_sm_mhz);
		add_cells(out, point->performance);
		add_cells(out, point->slowdown_pct);
		add_cells(out, point->power_w);
		add_cells(out, point->energy_j);
		add_cells(out, point->saved_pct);
		takt_str_addf(out, ",%d,%d\n", point->front, (int)i == result->recommended);
	}
}
