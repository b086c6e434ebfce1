/* SPDX-License-Identifier: Apache-2.0 */
/* takt jobs: what ran, runs and waits, chosen and sorted. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/sort.h"
#include "base/vec.h"
#include "cli/job_filter.h"
#include "cli/job_line.h"
#include "cli/table.h"
#include "cli/units.h"
#include "codec/quantity.h"

enum {
	PAGE = 500,   /* ended jobs asked for at a time */
	SLACK = 5000, /* kept beyond the limit before they are sorted and cut */
};

static const struct takt_column columns[] = {
	{"JOB", true, 0, 0},
	{"NAME", false, 6, 0},
	{"USER", false, 5, 2, .same_goes = true},
	{"STATE", false, 0, 0},
	{"GPUS", true, 0, 0},
	{"STARTED", false, 0, 3, .usual = "-"},
	{"RAN", true, 0, 1, .usual = "-"},
	{"ENERGY", true, 0, 1, .usual = "-"},
	{"UTIL", true, 0, 4, .usual = "-"},
	{"SAVED", true, 0, 5, .usual = "-"}, /* nothing is known to have been saved */
	{"WHERE OR WHY", false, 20, 0},
};

static uint64_t ran_ms(const struct takt_job_view *job)
{
	return job->report.has & TAKT_RV_WALL ? job->report.wall_ms : 0;
}

/* Against the modelled highest clock; beside it the error of the model and of what told it how fast
 * the job was. */
static void add_saved(struct takt_table *table, const struct takt_report_view *report)
{
	if (report->has & TAKT_RV_SAVED && report->highest_mj)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%.0f%% +-%.1f%%",
			       100 - 100.0 * (double)report->governed_mj /
					       (double)report->highest_mj,
			       report->highest_error_permille / 10.0);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
}

static void add_where(struct takt_table *table, const struct takt_job_view *job, int64_t now_ms)
{
	TAKT_CLEANUP(strp) struct takt_str where = TAKT_STR(1024);

	takt_job_line_where(job, now_ms, &where);
	if (job->cause[0] && strcmp(job->cause, job->state) != 0)
		takt_str_addf(&where, "%s%s", where.len ? ", " : "", job->cause);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&where));
}

static void add_row(struct takt_table *table, const struct takt_job_view *jobs, size_t length)
{
	TAKT_CLEANUP(strp) struct takt_str id = TAKT_STR(1024), name = TAKT_STR(1024);
	TAKT_CLEANUP(strp) struct takt_str gpus = TAKT_STR(1024);
	const struct takt_job_view *job = &jobs[0];
	const struct takt_report_view *report = &job->report;
	int64_t now_ms = (int64_t)time(NULL) * 1000;
	char text[TAKT_UNIT_TEXT];

	takt_job_line_id(jobs, length, &id);
	takt_job_line_name(jobs, length, &name);
	takt_job_line_gpus(job, &gpus);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&id));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&name));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->user);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&gpus));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
		       takt_when_words(job->started_ms, now_ms, text));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
		       report->has & TAKT_RV_WALL ? takt_span_text(report->wall_ms, text) : "-");
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
		       report->has & TAKT_RV_ENERGY ? takt_energy_text(report->energy_mj, text)
						    : "-");
	if (report->has & TAKT_RV_UTIL)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u%%", report->mean_util_permille / 10);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	add_saved(table, report);
	add_where(table, job, now_ms);
}

static void add_ms(struct takt_str *out, int64_t ms)
{
	if (ms)
		takt_str_addf(out, "%" PRId64, ms);
	takt_str_add(out, ",");
}

static void add_if(struct takt_str *out, bool known, uint64_t value, bool last)
{
	if (known)
		takt_str_addf(out, "%" PRIu64, value);
	takt_str_add(out, last ? "\n" : ",");
}

static void add_governed_csv(struct takt_str *out, const struct takt_report_view *report)
{
	bool saved = report->has & TAKT_RV_SAVED;

	takt_csv_add(out, report->governor, false);
	add_if(out, saved, report->governed_mj, false);
	add_if(out, saved, report->highest_mj, false);
	add_if(out, saved, report->highest_error_permille, false);
	if (saved)
		takt_str_addf(out, "%d", report->slowdown_permille);
	takt_str_add(out, ",");
	add_if(out, saved, report->slowdown_error_permille, false);
	takt_csv_add(out, report->work_signal, false);
}

static void add_cause_csv(struct takt_str *out, const struct takt_job_view *job)
{
	takt_csv_add(out, job->cause, false);
	add_if(out, job->has_cause_gpu, job->cause_gpu, false);
	add_if(out, job->cause_xid != 0, job->cause_xid, false);
	add_if(out, job->cause_at_ms != 0, (uint64_t)job->cause_at_ms, true);
}

/* What was not measured is an empty cell. */
static void add_csv(struct takt_str *out, const struct takt_job_view *job)
{
	TAKT_CLEANUP(strp) struct takt_str gpus = TAKT_STR(512);
	const struct takt_report_view *report = &job->report;

	if (job->gpu_list_count > 0)
		takt_gpu_list_text(job->gpu_list, job->gpu_list_count, &gpus);
	takt_str_addf(out, "%" PRIu64 ",", job->id);
	takt_csv_add(out, job->name, false);
	takt_csv_add(out, job->user, false);
	takt_csv_add(out, job->state, false);
	takt_csv_add(out, job->tenant, false);
	takt_csv_add(out, job->tags, false);
	takt_str_addf(out, "%u,", job->gpus);
	takt_csv_add(out, takt_str_text(&gpus), false);
	add_ms(out, job->submitted_ms);
	add_ms(out, job->started_ms);
	add_ms(out, job->ended_ms);
	add_if(out, job->has_exit_code, (uint32_t)job->exit_code, false);
	add_if(out, job->exit_signal > 0, (uint32_t)job->exit_signal, false);
	add_if(out, report->has & TAKT_RV_WALL, report->wall_ms, false);
	add_if(out, report->has & TAKT_RV_ENERGY, report->energy_mj, false);
	add_if(out, report->has & TAKT_RV_UTIL, report->mean_util_permille, false);
	add_if(out, report->has & TAKT_RV_UTIL, report->idle_ms, false);
	add_if(out, report->has & TAKT_RV_MEAN_SM, report->mean_sm_mhz, false);
	add_if(out, report->has & TAKT_RV_PEAK_MEMORY, report->peak_memory_bytes, false);
	add_if(out, report->has & TAKT_RV_SM_SPREAD, report->sm_spread_mhz, false);
	add_governed_csv(out, report);
	add_cause_csv(out, job);
}

static const char csv_head[] =
	"job,name,user,state,tenant,tags,gpus,gpu_list,submitted_ms,started_ms,ended_ms,exit_code,"
	"exit_signal,wall_ms,energy_mj,mean_util_permille,idle_gpu_ms,mean_sm_mhz,peak_memory_"
	"bytes,sm_spread_mhz,"
	"governor,governed_mj,highest_mj,highest_error_permille,slowdown_permille,"
	"slowdown_error_permille,work_signal,cause,cause_gpu,cause_xid,cause_at_ms\n";

static const char *const sort_keys[] = {"id", "started", "ended", "ran", "energy", "gpus", NULL};

static int64_t sort_value(const struct takt_job_view *job, int key)
{
	const struct takt_report_view *report = &job->report;

	switch (key) {
	case 1:
		return job->started_ms;
	case 2:
		return job->ended_ms;
	case 3:
		return (int64_t)ran_ms(job);
	case 4:
		return report->has & TAKT_RV_ENERGY ? (int64_t)report->energy_mj : -1;
	case 5:
		return job->gpus;
	default:
		return (int64_t)job->id;
	}
}

/* Largest and newest first. */
static int by_key(const void *a, const void *b, void *ctx)
{
	const struct takt_job_view *x = a, *y = b;
	int64_t u = sort_value(x, *(const int *)ctx), v = sort_value(y, *(const int *)ctx);

	return u != v ? (u < v) - (u > v) : (x->id < y->id) - (x->id > y->id);
}

static int read_sort(const struct takt_cli *cli, int *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "sort");

	*ret = 0;
	for (int i = 0; text && sort_keys[i]; i++)
		if (strcmp(sort_keys[i], text) == 0) {
			*ret = i;
			return 0;
		}
	return text ? takt_err_set(err, -TAKT_E_USAGE,
				   "'--sort' takes id, started, ended, ran, energy or gpus, not "
				   "'%.40s'",
				   text)
		    : 0;
}

/* The first `limit` jobs by `key` of all that have come by. */
struct best {
	TAKT_VEC(struct takt_job_view) jobs;
	size_t limit;
	int key;
	bool more, simulated;
};

static void print_json(struct takt_cli *cli, const struct best *best)
{
	takt_queue_json_begin(&cli->out, best->simulated);
	TAKT_VEC_EACH (job, &best->jobs)
		takt_queue_json_job(&cli->out, job);
	takt_queue_json_end(&cli->out, best->jobs.len, 0);
}

static void print_csv(struct takt_cli *cli, const struct best *best)
{
	takt_str_add(&cli->out, csv_head);
	TAKT_VEC_EACH (job, &best->jobs)
		add_csv(&cli->out, job);
}

static void print_table(struct takt_cli *cli, const struct best *best)
{
	struct takt_table table = TAKT_TABLE(columns);
	size_t length;

	takt_print_simulated(cli, best->simulated);
	for (size_t i = 0; i < best->jobs.len; i += length) {
		length = takt_job_line_length(&best->jobs.at[i], best->jobs.len - i);
		add_row(&table, &best->jobs.at[i], length);
	}
	if (best->jobs.len > 0)
		takt_table_print(&table, cli->width, cli->colour, &cli->out);
	else
		takt_str_add(&cli->out, "no such job\n");
}

static int sort_best(struct best *best, struct takt_err *err)
{
	if (takt_sort(best->jobs.at, best->jobs.len, sizeof(*best->jobs.at), by_key, &best->key) <
	    0)
		return takt_err_set(err, -ENOMEM, "no memory for the list");
	if (best->jobs.len > best->limit) {
		best->jobs.len = best->limit;
		best->more = true;
	}
	return 0;
}

/* By number the ended ones come as they are wanted: whether all that is left is too low. */
static bool is_enough(const struct best *best, const struct takt_queue_view *part)
{
	const struct takt_job_view *last = part->count ? &part->jobs[part->count - 1] : NULL;

	return best->key == 0 && best->more && last && takt_client_job_ended(last) &&
	       last->id < takt_vec_last(&best->jobs)->id;
}

static int take_part(void *ctx, const struct takt_queue_view *part, struct takt_err *err)
{
	struct best *best = ctx;
	int rc = 0;

	best->simulated = part->simulated;
	for (size_t i = 0; rc == 0 && i < part->count; i++)
		if (takt_vec_push(&best->jobs, part->jobs[i]) < 0)
			rc = takt_err_set(err, -ENOMEM, "no memory for the list");
	if (rc == 0 && best->jobs.len > best->limit + (best->key ? SLACK : 0))
		rc = sort_best(best, err);
	return rc == 0 && is_enough(best, part) ? 1 : rc;
}

static void print(struct takt_cli *cli, const struct best *best)
{
	if (cli->json) {
		print_json(cli, best);
	} else if (takt_cli_has(cli, "csv")) {
		print_csv(cli, best);
	} else {
		print_table(cli, best);
		if (best->more)
			takt_str_addf(&cli->out, "the first %zu; --limit shows more\n",
				      best->limit);
	}
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct best best = {.jobs = TAKT_VEC_INIT(TAKT_FILTER_MOST * 3)};
	struct takt_job_filter filter;
	int64_t limit = 0;
	int rc = takt_job_filter_read(cli, &filter, err);

	if (rc == 0)
		rc = takt_cli_number(cli, "limit", 1, TAKT_FILTER_MOST, 50, &limit, err);
	if (rc == 0)
		rc = read_sort(cli, &best.key, err);
	best.limit = (size_t)limit;
	if (rc == 0)
		rc = takt_job_filter_walk(cli, &filter, false, PAGE, take_part, &best, err);
	if (rc == 0)
		rc = sort_best(&best, err);
	if (rc == 0)
		print(cli, &best);
	takt_vec_fini(&best.jobs);
	return rc;
}

static const struct takt_option options[] = {
	TAKT_FILTER_OPTIONS,
	{"state", 0, "LIST", "in one of these states: waiting, running, done, failed, ..."},
	{"gpu", 'g', "GPU", "that had this GPU"},
	{"before", 0, "JOB", "with lower numbers: to go on where a list ended"},
	{"sort", 0, "KEY", "id, started, ended, ran, energy or gpus; largest first (default id)"},
	{"limit", 'l', "N", "so many at most, up to 10000 (default 50)"},
	{"csv", 0, NULL, "as comma-separated values"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt jobs --since 1d --state failed,lost", "what went wrong since yesterday"},
	{"takt jobs --name 'sweep-*' --sort energy", "which of a sweep cost most"},
	{"takt jobs --csv --limit 10000 > jobs.csv", "for a spreadsheet"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_jobs = {
	.name = "jobs",
	.summary = "what ran, runs and waits: chosen and sorted",
	.usage = "[OPTION...]",
	.about = "Lists jobs, those that have ended too, the newest first. Names are shown of your "
		 "own jobs only. '-' and an empty cell of --csv mean that it was not measured. "
		 "SAVED is what a "
		 "governed job took less than the same work is modelled to take at the highest "
		 "clock, with the model's error.",
	.options = options,
	.examples = examples,
	.run = run,
};
