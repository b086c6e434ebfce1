/* SPDX-License-Identifier: Apache-2.0 */
/* takt queue: jobs that run and wait, in order, with the reason for each that waits. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/job_filter.h"
#include "cli/job_line.h"
#include "cli/job_text.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"

static const struct takt_column columns[] = {
	{"JOB", true, 0, 0},
	{"NAME", false, 6, 0},
	{"TAGS", false, 4, 4, .usual = "-"},
	{"USER", false, 5, 2, .same_goes = true},
	{"STATE", false, 0, 0},
	{"GPUS", true, 0, 0},
	{"PRIO", true, 0, 3, .usual = "0"},
	{"TIME", true, 0, 1},
	{"CLOCKS", false, 8, 5, .usual = "-"},
	{"WHERE OR WHY", false, 24, 0},
};

static int64_t now_ms(void)
{
	return (int64_t)time(NULL) * 1000;
}

/* Since it was handed in, since it started, or how long it ran. */
static uint64_t age_ms(const struct takt_job_view *job)
{
	int64_t from = job->started_ms ? job->started_ms : job->submitted_ms;
	int64_t to = job->ended_ms ? job->ended_ms : now_ms();

	return from && to > from ? (uint64_t)(to - from) : 0;
}

static void add_row(struct takt_table *table, const struct takt_job_view *jobs, size_t length)
{
	TAKT_CLEANUP(strp) struct takt_str id = TAKT_STR(1024), name = TAKT_STR(1024);
	TAKT_CLEANUP(strp) struct takt_str gpus = TAKT_STR(1024), clocks = TAKT_STR(1024);
	TAKT_CLEANUP(strp) struct takt_str where = TAKT_STR(1024);
	const struct takt_job_view *job = &jobs[0];
	bool runs = strcmp(job->state, "running") == 0;
	char age[TAKT_UNIT_TEXT];

	takt_job_line_id(jobs, length, &id);
	takt_job_line_name(jobs, length, &name);
	takt_job_line_gpus(job, &gpus);
	takt_job_clocks_text(job, &clocks);
	takt_job_line_where(job, now_ms(), &where);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&id));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&name));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->tags);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", job->user);
	takt_table_add(table, runs ? TAKT_STYLE_GOOD : TAKT_STYLE_PLAIN, "%s", job->state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&gpus));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%d", job->priority);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_span_text(age_ms(job), age));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&clocks));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_str_text(&where));
}

static void print_queue(struct takt_cli *cli, const struct takt_queue_view *view, bool history)
{
	struct takt_table table = TAKT_TABLE(columns);
	size_t length;

	takt_print_simulated(cli, view->simulated);
	if (view->count == 0) {
		takt_str_add(&cli->out,
			     history ? "no job has ended yet\n" : "no job runs or waits\n");
		return;
	}
	for (size_t i = 0; i < view->count; i += length) {
		length = takt_job_line_length(&view->jobs[i], view->count - i);
		add_row(&table, &view->jobs[i], length);
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	if (view->total > view->count)
		takt_str_addf(&cli->out, "%zu of %llu; --limit shows more\n", view->count,
			      (unsigned long long)view->total);
}

/* The daemon's own words are one answer, which may end before the limit. */
static int ask(struct takt_cli *cli, bool history, uint32_t limit, struct takt_queue_view *ret,
	       struct takt_err *err)
{
	const struct takt_client_past past = {.uid = UINT32_MAX, .gpu = -1, .limit = limit};

	return history && !cli->json ? takt_client_past_all(cli->client, &past, ret, err)
				     : takt_client_queue(cli->client, history, limit, ret, err);
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
	rc = ask(cli, history, filter.user ? TAKT_FILTER_MOST : limit, ret, err);
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
	.about = "Lists running jobs, then waiting ones in the order in which they will be "
		 "considered, "
		 "each with the GPUs that it has or in few words the reason why it waits; takt "
		 "explain has it in full. Jobs of an array that wait are one line, 30[0-19%2]: "
		 "array 30, its indices, at most 2 of them at a time. Tags, priorities and clocks "
		 "are shown where a job has any; clocks are what a job has asked for, or who "
		 "governs it, within which slowdown, and at how many MHz at present. What is the "
		 "same for all is left out where a terminal is narrow.",
	.options = options,
	.examples = examples,
	.run = run,
};
