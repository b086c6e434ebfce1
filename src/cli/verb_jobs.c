/* SPDX-License-Identifier: Apache-2.0 */
/* takt jobs: what ran, runs and waits, chosen and sorted. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "cli/job_filter.h"
#include "cli/job_text.h"
#include "cli/table.h"
#include "cli/units.h"

static const struct takt_column columns[] = {
	{"JOB", true, 0, 0},	{"NAME", false, 6, 0},	{"USER", false, 5, 2},
	{"STATE", false, 0, 0}, {"GPUS", true, 0, 0},	{"STARTED", false, 0, 3},
	{"RAN", true, 0, 0},	{"ENERGY", true, 0, 1}, {"UTIL", true, 0, 1},
	{"END", false, 8, 0},
};

static uint64_t ran_ms(const struct takt_job_view *job)
{
	return job->report.has & TAKT_RV_WALL ? job->report.wall_ms : 0;
}

static void add_job(struct takt_table *table, const struct takt_job_view *job)
{
	TAKT_CLEANUP(strp) struct takt_str end = TAKT_STR(1024);
	const struct takt_report_view *report = &job->report;
	char text[TAKT_UNIT_TEXT];

	takt_table_add(table, TAKT_STYLE_PLAIN, "%" PRIu64, job->id);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->name);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->user);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", job->gpus);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_when_text(job->started_ms, text));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
		       report->has & TAKT_RV_WALL ? takt_ms_text(report->wall_ms, text) : "-");
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
		       report->has & TAKT_RV_ENERGY ? takt_energy_text(report->energy_mj, text)
						    : "-");
	if (report->has & TAKT_RV_UTIL)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u%%", report->mean_util_permille / 10);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	if (takt_client_job_ended(job))
		takt_job_end_text(job, &end);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&end));
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
	add_if(out, report->has & TAKT_RV_PEAK_MEMORY, report->peak_memory_bytes, true);
}

static const char csv_head[] =
	"job,name,user,state,tenant,tags,gpus,gpu_list,submitted_ms,started_ms,ended_ms,exit_code,"
	"exit_signal,wall_ms,energy_mj,mean_util_permille,idle_gpu_ms,mean_sm_mhz,peak_memory_bytes"
	"\n";

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
	const struct takt_job_view *x = *(struct takt_job_view *const *)a;
	const struct takt_job_view *y = *(struct takt_job_view *const *)b;
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

static void print_json(struct takt_cli *cli, struct takt_job_view *const *jobs, size_t count,
		       bool simulated)
{
	takt_queue_json_begin(&cli->out, simulated);
	for (size_t i = 0; i < count; i++)
		takt_queue_json_job(&cli->out, jobs[i]);
	takt_queue_json_end(&cli->out, count);
}

static void print_csv(struct takt_cli *cli, struct takt_job_view *const *jobs, size_t count)
{
	takt_str_add(&cli->out, csv_head);
	for (size_t i = 0; i < count; i++)
		add_csv(&cli->out, jobs[i]);
}

static void print_table(struct takt_cli *cli, struct takt_job_view *const *jobs, size_t count,
			bool simulated)
{
	struct takt_table table = TAKT_TABLE(columns);

	takt_print_simulated(cli, simulated);
	for (size_t i = 0; i < count; i++)
		add_job(&table, jobs[i]);
	if (count > 0)
		takt_table_print(&table, cli->width, cli->colour, &cli->out);
	else
		takt_str_add(&cli->out, "no such job\n");
}

static int print(struct takt_cli *cli, const struct takt_queue_view *view, int key, size_t limit,
		 struct takt_err *err)
{
	TAKT_CLEANUP(freep)
	struct takt_job_view **jobs = takt_calloc(view->count + 1, sizeof(struct takt_job_view *));
	size_t count = view->count < limit ? view->count : limit;

	if (!jobs)
		return takt_err_set(err, -ENOMEM, "no memory for the list");
	for (size_t i = 0; i < view->count; i++)
		jobs[i] = &view->jobs[i];
	if (takt_sort(jobs, view->count, sizeof(struct takt_job_view *), by_key, &key) < 0)
		return takt_err_set(err, -ENOMEM, "no memory for the list");
	if (cli->json)
		print_json(cli, jobs, count, view->simulated);
	else if (takt_cli_has(cli, "csv"))
		print_csv(cli, jobs, count);
	else
		print_table(cli, jobs, count, view->simulated);
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_job_filter filter;
	struct takt_queue_view view;
	int64_t limit = 0;
	bool cut = false;
	int key = 0, rc = takt_job_filter_read(cli, &filter, err);

	if (rc == 0)
		rc = takt_cli_number(cli, "limit", 1, 100000, 50, &limit, err);
	if (rc == 0)
		rc = read_sort(cli, &key, err);
	if (rc == 0)
		rc = takt_job_filter_fetch(cli, &filter, false, &view, &cut, err);
	if (rc < 0)
		return rc;
	rc = print(cli, &view, key, (size_t)limit, err);
	if (!cli->json && !takt_cli_has(cli, "csv")) {
		if (view.count > (size_t)limit)
			takt_str_addf(&cli->out, "%lld of %zu; --limit shows more\n",
				      (long long)limit, view.count);
		if (cut)
			takt_str_addf(&cli->out, "looked at the newest %d ended jobs\n",
				      TAKT_FILTER_NEWEST);
	}
	takt_queue_view_fini(&view);
	return rc;
}

static const struct takt_option options[] = {
	TAKT_FILTER_OPTIONS,
	{"state", 0, "LIST", "in one of these states: waiting, running, done, failed, ..."},
	{"gpu", 'g', "GPU", "that had this GPU"},
	{"sort", 0, "KEY", "id, started, ended, ran, energy or gpus; largest first (default id)"},
	{"limit", 'l', "N", "so many at most (default 50)"},
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
		 "own jobs only. '-' and an empty cell of --csv mean that it was not measured.",
	.options = options,
	.examples = examples,
	.run = run,
};
