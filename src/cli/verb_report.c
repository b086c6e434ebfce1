/* SPDX-License-Identifier: Apache-2.0 */
/* takt report: what GPUs were used for, by whom, and what it cost. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/sys.h"
#include "base/vec.h"
#include "cli/history_text.h"
#include "cli/job_filter.h"
#include "cli/report_days.h"
#include "cli/report_page.h"
#include "cli/table.h"
#include "cli/units.h"
#include "codec/json.h"
#include "codec/quantity.h"
#include "takt_build.h"
#include "takt_commit.h"

enum {
	PAGE = 1000,	     /* jobs asked for at a time */
	MAX_GROUPS = 100000, /* lines */
	MAX_COMMAND = 65536,
};

enum by {
	BY_USER,
	BY_NAME,
	BY_TENANT,
	BY_DAY
};
static const char *const by_names[] = {"user", "name", "tenant", "day", NULL};

/* Sums of jobs. What was not measured of some is a sum of the others, and how many they are. */
struct group {
	char key[80];
	uint64_t jobs, failed;
	double gpu_hours;
	uint64_t energy_jobs, util_jobs, gpu_jobs, governed_jobs, saved_jobs;
	uint64_t counted_jobs,
		guessed_jobs;		   /* saved_jobs by counters; not one of them: by a guess */
	double saved_kwh, saved_error_kwh; /* against the modelled highest clock */
	double energy_kwh, util_hours, util_weight_hours, idle_hours;
};

struct report {
	struct takt_cli *cli;
	enum by by;
	bool has_price;
	double price; /* of a kWh */
	int64_t since_ms, until_ms, made_ms;
	bool simulated;
	TAKT_VEC(struct group) groups;
	struct group total;
};

static double hours(uint64_t ms)
{
	return (double)ms / 3600000.0;
}

/* GPUs that it had, thousandths of them for a share. */
static double gpus_of(const struct takt_job_view *job)
{
	double each = job->gpu_milli ? job->gpu_milli / 1000.0 : 1.0;

	return job->gpu_list_count * each;
}

/* What utilisation makes of a saving is a guess that would drown what is known of the others. */
static void add_saved_to(struct group *group, const struct takt_report_view *report)
{
	if (strcmp(report->work_signal, "utilisation") == 0) {
		group->guessed_jobs++;
		return;
	}
	group->saved_jobs++;
	group->counted_jobs += strcmp(report->work_signal, "counters") == 0;
	group->saved_kwh += ((double)report->highest_mj - (double)report->governed_mj) / 3.6e9;
	/* One model makes all of them: its errors may all point the same way. */
	group->saved_error_kwh +=
		(double)report->highest_mj * report->highest_error_permille / 1000 / 3.6e9;
}

static void add_to(struct group *group, const struct takt_job_view *job)
{
	const struct takt_report_view *report = &job->report;
	double gpu_hours = report->has & TAKT_RV_WALL ? gpus_of(job) * hours(report->wall_ms) : 0;

	group->jobs++;
	group->failed += strcmp(job->state, "done") != 0;
	group->gpu_hours += gpu_hours;
	group->gpu_jobs += job->gpu_list_count > 0;
	if (report->has & TAKT_RV_ENERGY) {
		group->energy_jobs++;
		group->energy_kwh += (double)report->energy_mj / 3.6e9;
	}
	group->governed_jobs += report->governor[0] != '\0';
	if (report->has & TAKT_RV_SAVED)
		add_saved_to(group, report);
	if (report->has & TAKT_RV_UTIL) {
		group->util_jobs++;
		group->util_weight_hours += gpu_hours;
		group->util_hours += gpu_hours * report->mean_util_permille / 1000.0;
		group->idle_hours += hours(report->idle_ms);
	}
}

static void key_of(enum by by, const struct takt_job_view *job, char *ret, size_t size)
{
	time_t day = (time_t)(job->ended_ms / 1000);
	const char *text = by == BY_USER ? job->user : by == BY_NAME ? job->name : job->tenant;
	struct tm tm;

	if (by == BY_DAY && localtime_r(&day, &tm))
		strftime(ret, size, "%Y-%m-%d", &tm);
	else
		takt_strcpy(ret, size, text[0] ? text : "-");
}

static int add_job(struct report *report, const struct takt_job_view *job)
{
	struct group fresh = {.jobs = 0};
	size_t i = 0;

	key_of(report->by, job, fresh.key, sizeof(fresh.key));
	while (i < report->groups.len && strcmp(report->groups.at[i].key, fresh.key) != 0)
		i++;
	if (i == report->groups.len && takt_vec_push(&report->groups, fresh) < 0)
		return -ENOMEM;
	add_to(&report->groups.at[i], job);
	add_to(&report->total, job);
	return 0;
}

static int by_hours(const void *a, const void *b, void *ctx)
{
	const struct group *x = a, *y = b;

	if (*(const enum by *)ctx == BY_DAY || x->gpu_hours == y->gpu_hours)
		return strcmp(x->key, y->key);
	return x->gpu_hours < y->gpu_hours ? 1 : -1;
}

static const struct takt_column columns[] = {
	{"", false, 6, 0},
	{"JOBS", true, 0, 0},
	{"NOT DONE", true, 0, 3},
	{"GPU HOURS", true, 0, 0},
	{"USED", true, 0, 0},
	{"IDLE GPU H", true, 0, 1},
	{"ENERGY", true, 0, 0},
	{"COST", true, 0, 0, .usual = "-"},
	{"SAVED", true, 0, 2, .usual = "-"},
};

/* "12.3 (5/7)": the sum of five of seven. */
static void add_part(struct takt_table *table, const char *sum, uint64_t known, uint64_t all)
{
	if (known == 0)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", all ? "unknown" : "-");
	else if (known < all)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s (%" PRIu64 "/%" PRIu64 ")", sum, known,
			       all);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", sum);
}

static const char *energy_text(double kwh, char ret[TAKT_QUANTITY_TEXT])
{
	return takt_energy_text((uint64_t)(kwh * 3.6e9), ret);
}

static double used_pct(const struct group *group)
{
	return group->util_weight_hours > 0 ? 100 * group->util_hours / group->util_weight_hours
					    : 0;
}

static void add_saved(struct takt_table *table, const struct group *group)
{
	char text[80], saved[TAKT_QUANTITY_TEXT], error[TAKT_QUANTITY_TEXT];

	snprintf(text, sizeof(text), "%s%s +-%s", group->saved_kwh < 0 ? "-" : "",
		 energy_text(fabs(group->saved_kwh), saved),
		 energy_text(group->saved_error_kwh, error));
	add_part(table, text, group->saved_jobs, group->governed_jobs);
}

static void add_row(const struct report *report, struct takt_table *table,
		    const struct group *group)
{
	char text[TAKT_QUANTITY_TEXT];

	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", group->key);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%" PRIu64, group->jobs);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%" PRIu64, group->failed);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_number_text(group->gpu_hours, text));
	snprintf(text, sizeof(text), "%.0f%%", used_pct(group));
	add_part(table, text, group->util_jobs, group->gpu_jobs);
	add_part(table, takt_number_text(group->idle_hours, text), group->util_jobs,
		 group->gpu_jobs);
	add_part(table, energy_text(group->energy_kwh, text), group->energy_jobs, group->gpu_jobs);
	if (report->has_price)
		add_part(table, takt_number_text(group->energy_kwh * report->price, text),
			 group->energy_jobs, group->gpu_jobs);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	add_saved(table, group);
}

static double known(uint64_t jobs, double value)
{
	return jobs > 0 ? value : (double)NAN;
}

/* Below the table, where somebody looks at it. */
static int print_days(const struct report *report)
{
	const struct takt_cli *cli = report->cli;
	struct takt_report_day *days = takt_calloc(report->groups.len + 1, sizeof(days[0]));
	size_t count = 0;
	int rc;

	if (!days)
		return -ENOMEM;
	for (size_t i = 0; i < report->groups.len; i++) {
		const struct group *group = &report->groups.at[i];
		struct takt_report_day day = {
			.gpu_hours = group->gpu_hours,
			.used_pct = known(group->util_jobs, used_pct(group)),
			.energy_kwh = known(group->energy_jobs, group->energy_kwh),
		};

		if (takt_report_day_of(group->key, &day.day))
			days[count++] = day;
	}
	rc = takt_report_days(days, count, cli->width, takt_history_unicode(), cli->colour,
			      &report->cli->out);
	takt_free(days);
	return rc;
}

/* Whose word the sum of savings is, where it is not the jobs' own. */
static void add_confidence(const struct group *total, struct takt_str *out)
{
	if (total->counted_jobs)
		takt_str_addf(out,
			      "saved: %" PRIu64 " of %" PRIu64
			      " by activity counters, which stand in for progress\n",
			      total->counted_jobs, total->saved_jobs);
	if (total->guessed_jobs)
		takt_str_addf(out,
			      "saved: %" PRIu64 " of %" PRIu64
			      " left out: only utilisation tells how fast they were, a guess\n",
			      total->guessed_jobs, total->governed_jobs);
}

static int print_table(const struct report *report)
{
	struct takt_table table = TAKT_TABLE(columns);
	struct takt_cli *cli = report->cli;

	takt_print_simulated(cli, report->simulated);
	for (size_t i = 0; i < report->groups.len; i++)
		add_row(report, &table, &report->groups.at[i]);
	add_row(report, &table, &report->total);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	if (report->total.energy_jobs < report->total.gpu_jobs)
		takt_str_addf(&cli->out,
			      "(%" PRIu64 "/%" PRIu64 "): known of %" PRIu64 " of %" PRIu64
			      " jobs with GPUs; the others are not counted\n",
			      report->total.energy_jobs, report->total.gpu_jobs,
			      report->total.energy_jobs, report->total.gpu_jobs);
	add_confidence(&report->total, &cli->out);
	return report->by == BY_DAY && cli->terminal ? print_days(report) : 0;
}

static void add_number(struct takt_str *out, const char *name, bool known, double value)
{
	if (known)
		takt_str_addf(out, ",\"%s\":%.6f", name, value);
}

static void add_json(const struct report *report, const struct group *group, struct takt_str *out)
{
	takt_str_add(out, "{\"key\":");
	takt_json_add_text(out, group->key);
	takt_str_addf(out,
		      ",\"jobs\":%" PRIu64 ",\"not_done\":%" PRIu64 ",\"gpu_jobs\":%" PRIu64
		      ",\"gpu_hours\":%.6f,\"util_jobs\":%" PRIu64 ",\"energy_jobs\":%" PRIu64
		      ",\"governed_jobs\":%" PRIu64 ",\"saved_jobs\":%" PRIu64
		      ",\"counted_jobs\":%" PRIu64 ",\"guessed_jobs\":%" PRIu64,
		      group->jobs, group->failed, group->gpu_jobs, group->gpu_hours,
		      group->util_jobs, group->energy_jobs, group->governed_jobs, group->saved_jobs,
		      group->counted_jobs, group->guessed_jobs);
	add_number(out, "used_pct", group->util_jobs > 0, used_pct(group));
	add_number(out, "idle_gpu_hours", group->util_jobs > 0, group->idle_hours);
	add_number(out, "energy_kwh", group->energy_jobs > 0, group->energy_kwh);
	add_number(out, "saved_kwh", group->saved_jobs > 0, group->saved_kwh);
	add_number(out, "saved_error_kwh", group->saved_jobs > 0, group->saved_error_kwh);
	add_number(out, "cost", report->has_price && group->energy_jobs > 0,
		   group->energy_kwh * report->price);
	takt_str_add(out, "}");
}

static void make_json(const struct report *report, struct takt_str *out)
{
	TAKT_CLEANUP(strp) struct takt_str command = TAKT_STR(MAX_COMMAND);

	takt_cli_command_text(report->cli, &command);
	takt_str_addf(out,
		      "{\"format\":\"takt-usage\",\"version\":1,\"takt\":\"%s\",\"commit\":\"%s\","
		      "\"simulated\":%s,\"by\":\"%s\",\"since_ms\":%" PRId64
		      ",\"until_ms\":%" PRId64 ",\"made_ms\":%" PRId64 ",\"command\":",
		      TAKT_VERSION, TAKT_COMMIT, report->simulated ? "true" : "false",
		      by_names[report->by], report->since_ms, report->until_ms, report->made_ms);
	takt_json_add_text(out, takt_str_text(&command));
	add_number(out, "price", report->has_price, report->price);
	takt_str_add(out, ",\"groups\":[");
	for (size_t i = 0; i < report->groups.len; i++) {
		takt_str_add(out, i ? "," : "");
		add_json(report, &report->groups.at[i], out);
	}
	takt_str_add(out, "],\"total\":");
	add_json(report, &report->total, out);
	takt_str_add(out, "}\n");
}

static void add_cell(struct takt_str *out, bool known, double value, bool last)
{
	if (known)
		takt_str_addf(out, "%.6f", value);
	takt_str_add(out, last ? "\n" : ",");
}

static void print_csv(const struct report *report)
{
	struct takt_str *out = &report->cli->out;

	takt_str_addf(out,
		      "%s,jobs,not_done,gpu_jobs,gpu_hours,util_jobs,used_pct,idle_gpu_hours,"
		      "energy_jobs,energy_kwh,cost,governed_jobs,saved_jobs,saved_kwh,"
		      "saved_error_kwh\n",
		      by_names[report->by]);
	for (size_t i = 0; i < report->groups.len; i++) {
		const struct group *group = &report->groups.at[i];

		takt_csv_add(out, group->key, false);
		takt_str_addf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6f,%" PRIu64 ",",
			      group->jobs, group->failed, group->gpu_jobs, group->gpu_hours,
			      group->util_jobs);
		add_cell(out, group->util_jobs > 0, used_pct(group), false);
		add_cell(out, group->util_jobs > 0, group->idle_hours, false);
		takt_str_addf(out, "%" PRIu64 ",", group->energy_jobs);
		add_cell(out, group->energy_jobs > 0, group->energy_kwh, false);
		add_cell(out, report->has_price && group->energy_jobs > 0,
			 group->energy_kwh * report->price, false);
		takt_str_addf(out, "%" PRIu64 ",%" PRIu64 ",", group->governed_jobs,
			      group->saved_jobs);
		add_cell(out, group->saved_jobs > 0, group->saved_kwh, false);
		add_cell(out, group->saved_jobs > 0, group->saved_error_kwh, true);
	}
}

static int read_by(struct report *report, struct takt_err *err)
{
	const char *text = takt_cli_value(report->cli, "by");

	for (int i = 0; text && by_names[i]; i++)
		if (strcmp(by_names[i], text) == 0) {
			report->by = (enum by)i;
			return 0;
		}
	return text ? takt_err_set(err, -TAKT_E_USAGE,
				   "'--by' takes user, name, tenant or day, not '%.40s'", text)
		    : 0;
}

static int read_price(struct report *report, struct takt_err *err)
{
	const char *text = takt_cli_value(report->cli, "price");
	char *end = NULL;

	if (!text)
		return 0;
	report->has_price = true;
	report->price = strtod(text, &end);
	if (end == text || *end || !isfinite(report->price) || report->price < 0)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"'--price' must be the price of a kWh such as 0.31, not '%.40s'", text);
	return 0;
}

static int take_part(void *ctx, const struct takt_queue_view *part, struct takt_err *err)
{
	struct report *report = ctx;

	report->simulated = part->simulated;
	for (size_t i = 0; i < part->count; i++)
		if (add_job(report, &part->jobs[i]) < 0)
			return takt_err_set(err, -ENOMEM,
					    "no memory for over %zu lines; choose fewer jobs",
					    report->groups.len);
	return 0;
}

static int print(const struct report *report, struct takt_err *err)
{
	struct takt_cli *cli = report->cli;
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_CLI_MAX_OUT);
	int rc;

	make_json(report, &json);
	rc = json.rc < 0 ? takt_err_set(err, json.rc, "no memory for the report")
			 : takt_report_write(cli, &json, err);
	if (rc < 0)
		return rc;
	if (cli->json)
		takt_str_add(&cli->out, takt_str_text(&json));
	else if (takt_cli_has(cli, "csv"))
		print_csv(report);
	else
		rc = print_table(report);
	return rc < 0 ? takt_err_set(err, rc, "no memory for the report") : 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct report report = {
		.cli = cli, .groups = TAKT_VEC_INIT(MAX_GROUPS), .total = {.key = "total"}};
	struct takt_job_filter filter;
	int rc = takt_job_filter_read(cli, &filter, err);

	if (rc == 0)
		rc = read_by(&report, err);
	if (rc == 0)
		rc = read_price(&report, err);
	if (rc == 0)
		rc = takt_job_filter_walk(cli, &filter, true, PAGE, take_part, &report, err);
	if (rc == 0 && takt_sort(report.groups.at, report.groups.len, sizeof(struct group),
				 by_hours, &report.by) < 0)
		rc = takt_err_set(err, -ENOMEM, "no memory for the report");
	report.since_ms = filter.since_ms;
	report.until_ms = filter.until_ms;
	report.made_ms = takt_wall_now(takt_sys_real()).ns / (int64_t)TAKT_NS_PER_MS;
	if (rc == 0)
		rc = print(&report, err);
	takt_vec_fini(&report.groups);
	return rc;
}

static const struct takt_option options[] = {
	TAKT_FILTER_OPTIONS,
	{"by", 'b', "WHAT", "a line for each user, name, tenant or day (default user)"},
	{"price", 'p', "PRICE", "of a kWh, in any currency"},
	{"csv", 0, NULL, "as comma-separated values"},
	{"html", 0, "FILE", "write a page with charts there, complete in one file"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt report --since 30d --price 0.31", "who used what in a month, and what it cost"},
	{"takt report --user ada --by name", "which of ada's jobs left GPUs idle"},
	{"takt report --by day --csv", "for a plot"},
	{"takt report --since 30d --html month.html", "a page to send around"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_report = {
	.name = "report",
	.summary = "GPU hours, energy, cost, and what was held but idle",
	.usage = "[--since TIME] [--by user|name|tenant|day] [--price PRICE] [--html FILE]",
	.about =
		"Adds up jobs that have ended: GPU hours held, the share of them in which the GPUs "
		"were in use, GPU hours held while nothing ran, energy and its cost. What was not "
		"measured of a job is left out of the sum, and the report says of how many jobs it "
		"is "
		"known. Saved is what jobs with a governor took less than the same work is "
		"modelled to "
		"take at the highest clock, +- the sum of the model's errors. A job counts with "
		"its last run.",
	.options = options,
	.examples = examples,
	.run = run,
};
