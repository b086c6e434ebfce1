/* SPDX-License-Identifier: Apache-2.0 */
/* takt queue: jobs that run and wait, in order, with the reason for each that waits. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/job_filter.h"
#include "cli/job_text.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"

/* Columns that are there only where a job has something for them. */
struct shown {
	bool tags, clocks;
};

enum {
	TAGS = 2,
	CLOCKS = 8,
};
static const struct takt_column columns[] = {
	{"JOB", true, 0, 0},	 {"NAME", false, 6, 0},
	{"TAGS", false, 4, 4},	 {"USER", false, 5, 2},
	{"STATE", false, 0, 0},	 {"GPUS", true, 0, 0},
	{"PRIO", true, 0, 3},	 {"TIME", true, 0, 1},
	{"CLOCKS", false, 8, 5}, {"WHERE OR WHY", false, 10, 0},
};

static size_t choose_columns(const struct shown *shown, struct takt_column *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(columns); i++)
		if ((i != TAGS || shown->tags) && (i != CLOCKS || shown->clocks))
			ret[n++] = columns[i];
	return n;
}

/* Since it was handed in, since it started, or how long it ran. */
static uint64_t age_ms(const struct takt_job_view *job)
{
	int64_t from = job->started_ms ? job->started_ms : job->submitted_ms;
	int64_t to = job->ended_ms ? job->ended_ms : (int64_t)time(NULL) * 1000;

	return from && to > from ? (uint64_t)(to - from) : 0;
}

static void add_where(struct takt_table *table, const struct takt_job_view *job)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1024);
	char when[TAKT_UNIT_TEXT];

	if (takt_client_job_ended(job)) {
		takt_job_end_text(job, &text);
	} else if (job->why_text[0]) {
		takt_str_add(&text, job->why_text);
		if (job->start.starts_ms)
			takt_str_addf(&text, "; expected %s%s",
				      takt_when_text(job->start.starts_ms, when),
				      job->start.starts_overdue_ms ? ", overdue" : "");
	} else if (job->gpu_list_count > 0) {
		takt_str_add(&text, job->gpu_list_count == 1 ? "GPU " : "GPUs ");
		takt_gpu_list_text(job->gpu_list, job->gpu_list_count, &text);
	}
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&text));
}

static void add_clocks(struct takt_table *table, const struct takt_job_view *job)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(200);

	takt_job_clocks_text(job, &text);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&text));
}

static void add_job(struct takt_table *table, const struct shown *shown,
		    const struct takt_job_view *job)
{
	char age[TAKT_UNIT_TEXT];
	bool runs = strcmp(job->state, "running") == 0;

	takt_table_add(table, TAKT_STYLE_PLAIN, "%llu", (unsigned long long)job->id);
	if (job->array_id && job->name[0])
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s[%u]", job->name, job->array_index);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->name);
	if (shown->tags)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->tags);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->user);
	takt_table_add(table, runs ? TAKT_STYLE_GOOD : TAKT_STYLE_PLAIN, "%s", job->state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", job->gpus);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%d", job->priority);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_ms_text(age_ms(job), age));
	if (shown->clocks)
		add_clocks(table, job);
	add_where(table, job);
}

static struct shown what_to_show(const struct takt_queue_view *view)
{
	struct shown shown = {.tags = false};

	for (size_t i = 0; i < view->count; i++) {
		shown.tags = shown.tags || view->jobs[i].tags[0];
		shown.clocks = shown.clocks || takt_job_has_clocks(&view->jobs[i]);
	}
	return shown;
}

static void print_queue(struct takt_cli *cli, const struct takt_queue_view *view, bool history)
{
	struct shown shown = what_to_show(view);
	struct takt_column chosen[TAKT_ARRAY_LEN(columns)];
	struct takt_table table = TAKT_TABLE(chosen);

	table.column_count = choose_columns(&shown, chosen);
	takt_print_simulated(cli, view->simulated);
	if (view->count == 0) {
		takt_str_add(&cli->out,
			     history ? "no job has ended yet\n" : "no job runs or waits\n");
		return;
	}
	for (size_t i = 0; i < view->count; i++)
		add_job(&table, &shown, &view->jobs[i]);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	if (view->total > view->count)
		takt_str_addf(&cli->out, "%zu of %llu; --limit shows more\n", view->count,
			      (unsigned long long)view->total);
}

/* One user's, of all that there are: the limit is of those that are shown. */
static int fetch(struct takt_cli *cli, bool history, uint32_t limit, struct takt_queue_view *ret,
		 struct takt_err *err)
{
	struct takt_job_filter filter = {.user = takt_cli_value(cli, "user"), .gpu = -1};
	char me[16];
	int rc;

	snprintf(me, sizeof(me), "%u", getuid());
	if (takt_cli_has(cli, "me"))
		filter.user = me;
	rc = takt_client_queue(cli->client, history, filter.user ? TAKT_FILTER_MOST : limit, ret,
			       err);
	if (rc < 0 || !filter.user)
		return rc;
	takt_job_filter_keep(&filter, ret);
	ret->total = ret->count;
	ret->count = ret->count < limit ? ret->count : limit;
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	bool history = takt_cli_has(cli, "history");
	struct takt_queue_view view;
	int64_t limit;
	int rc = takt_cli_number(cli, "limit", 1, 10000, 1000, &limit, err);

	if (rc == 0 && cli->json && (takt_cli_has(cli, "me") || takt_cli_has(cli, "user")))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "'--json' prints the queue as the daemon has it; 'takt jobs "
				  "--json --user USER' chooses");
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = fetch(cli, history, (uint32_t)limit, &view, err);
	if (rc < 0)
		return rc;
	if (takt_cli_has(cli, "ids")) {
		for (size_t i = 0; i < view.count; i++)
			takt_str_addf(&cli->out, "%llu\n", (unsigned long long)view.jobs[i].id);
	} else if (!takt_cli_print_json(cli)) {
		print_queue(cli, &view, history);
	}
	takt_queue_view_fini(&view);
	return 0;
}

static const struct takt_option options[] = {
	{"history", 'a', NULL, "jobs that have ended, newest first, instead"},
	{"limit", 'n', "N", "at most so many (default 1000, up to 10000)"},
	{"user", 'u', "USER", "of this user, by name or number"},
	{"me", 0, NULL, "your own"},
	{"ids", 0, NULL, "only the numbers of the jobs, one a line"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt queue", "what runs and what waits, and why"},
	{"takt queue --me", "your own jobs only"},
	{"takt queue --history -n 20", "the last 20 jobs that ended"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_queue = {
	.name = "queue",
	.summary = "jobs that run and wait, and why they wait",
	.usage = "[-a] [-n N] [-u USER | --me]",
	.about =
		"Lists running jobs, then waiting ones in the order in which they will be "
		"considered, "
		"each with the GPUs that it has or the reason why it waits. Tags are shown where a "
		"job has any; takt jobs --tag chooses by them. So are clocks: what a job has asked "
		"for, or who governs it, within which slowdown, and at how many MHz at present.",
	.options = options,
	.examples = examples,
	.run = run,
};
