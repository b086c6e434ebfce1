/* SPDX-License-Identifier: Apache-2.0 */
/* takt submit -f: all jobs of a file, or none. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job_file.h"
#include "cli/job_text.h"
#include "cli/table.h"
#include "cli/units.h"
#include "codec/json.h"

/* The number of a job's first, from that of the first that was handed in. */
static unsigned long long id_of(const struct takt_job_file *file, uint32_t index, uint64_t first)
{
	for (uint32_t i = 0; i < file->count; i++)
		if (file->entries[i].place < file->entries[index].place)
			first += file->entries[i].jobs;
	return first;
}

static void print_ids(struct takt_cli *cli, const struct takt_job_file *file, uint64_t first)
{
	for (uint32_t i = 0; i < file->count; i++)
		for (uint32_t job = 0; job < file->entries[i].jobs; job++)
			takt_str_addf(&cli->out, "%llu\n", id_of(file, i, first) + job);
}

static void print_json(struct takt_cli *cli, const struct takt_job_file *file, uint64_t first)
{
	takt_str_add(&cli->out, "{\"jobs\":[");
	for (uint32_t i = 0; i < file->count; i++) {
		takt_str_addf(&cli->out, "%s{\"name\":", i ? "," : "");
		takt_json_add_text(&cli->out, file->entries[i].name);
		takt_str_addf(&cli->out, ",\"id\":%llu,\"jobs\":%u}", id_of(file, i, first),
			      file->entries[i].jobs);
	}
	takt_str_add(&cli->out, "]}\n");
}

static void print_jobs(struct takt_cli *cli, const struct takt_job_file *file,
		       const struct takt_job_view *job)
{
	takt_print_simulated(cli, job->simulated);
	for (uint32_t i = 0; i < file->count; i++) {
		const struct takt_job_file_entry *entry = &file->entries[i];
		unsigned long long id = id_of(file, i, job->id);

		if (entry->jobs == 1)
			takt_str_addf(&cli->out, "job %llu %s\n", id, entry->name);
		else
			takt_str_addf(&cli->out, "jobs %llu to %llu %s\n", id, id + entry->jobs - 1,
				      entry->name);
	}
}

static int hand_in(struct takt_cli *cli, const struct takt_job_file *file, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	int rc = job ? takt_client_submit_many(cli->client, file->body.s, job, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");

	if (rc < 0)
		return rc;
	if (takt_cli_has(cli, "quiet"))
		print_ids(cli, file, job->id);
	else if (cli->json)
		print_json(cli, file, job->id);
	else
		print_jobs(cli, file, job);
	return 0;
}

static void add_row(struct takt_table *table, const char *gpus, const char *text)
{
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", gpus);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", text);
}

static void add_runs(struct takt_table *table, const struct takt_try_view *view)
{
	for (uint32_t i = 0; i < view->array_count; i++) {
		TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
		const struct takt_try_run_view *run = &view->array[i];

		takt_job_trial_run_text(view, i, &text);
		if (run->first == run->last)
			takt_table_add(table, TAKT_STYLE_PLAIN, "  %u", run->first);
		else
			takt_table_add(table, TAKT_STYLE_PLAIN, "  %u-%u", run->first, run->last);
		add_row(table, "", takt_str_text(&text));
	}
	if (!view->more)
		return;
	takt_table_add(table, TAKT_STYLE_PLAIN, "  %u more", view->more);
	add_row(table, "", "after those");
}

/* Jobs of an array of which not the same is to be expected have lines of their own. */
static void add_trial(struct takt_table *table, const struct takt_job_file_entry *entry,
		      const struct takt_try_view *view)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
	bool split = view->array_count > 1 || view->more;
	char gpus[16];

	if (view->array_count && !split)
		takt_job_trial_run_text(view, 0, &text);
	else if (!split)
		takt_job_trial_text(view, &text);
	if (entry->jobs > 1)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s (%u jobs)", entry->name, entry->jobs);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", entry->name);
	snprintf(gpus, sizeof(gpus), "%u", entry->gpus);
	add_row(table, gpus, takt_str_text(&text));
	if (split)
		add_runs(table, view);
}

static void print_trials(struct takt_cli *cli, const struct takt_job_file *file,
			 const struct takt_try_view *views)
{
	static const struct takt_column columns[] = {
		{"NAME", false, 6, 0}, {"GPUS", true, 0, 0}, {"WHERE AND WHEN", false, 10, 0}};
	struct takt_table table = TAKT_TABLE(columns);

	takt_print_simulated(cli, views[0].simulated);
	for (uint32_t i = 0; i < file->count; i++)
		add_trial(&table, &file->entries[i], &views[file->entries[i].place]);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

static int try_out(struct takt_cli *cli, const struct takt_job_file *file, struct takt_err *err)
{
	TAKT_CLEANUP(freep)
	struct takt_try_view *views = takt_calloc(file->count, sizeof(*views));
	int rc = views ? takt_client_try_many(cli->client, file->body.s, file->count, views, err)
		       : takt_err_set(err, -ENOMEM, "no memory for the jobs");

	if (rc == 0 && !takt_cli_print_json(cli))
		print_trials(cli, file, views);
	return rc;
}

/* The file says everything; an option beside it would be for which of the jobs? */
static int check_alone(const struct takt_cli *cli, struct takt_err *err)
{
	static const char *const beside[] = {"file", "quiet", "json", "socket", "dry-run"};

	for (size_t i = 0; i < cli->given_count; i++) {
		const char *name = cli->given[i].option->name;
		bool fine = false;

		for (size_t k = 0; k < TAKT_ARRAY_LEN(beside); k++)
			fine = fine || strcmp(name, beside[k]) == 0;
		if (!fine)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--file' describes its jobs itself: '--%s' cannot be "
					    "given with it",
					    name);
	}
	if (cli->operand_count > 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--file' has the commands: '%.60s' cannot be given with it",
				    cli->operands[0]);
	return 0;
}

int takt_submit_file(struct takt_cli *cli, struct takt_err *err)
{
	const char *path = takt_cli_value(cli, "file");
	struct takt_job_file file = {.count = 0};
	int rc = check_alone(cli, err);

	if (rc == 0)
		rc = takt_job_file_read(path, &file, err);
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0) {
		rc = takt_cli_has(cli, "dry-run") ? try_out(cli, &file, err)
						  : hand_in(cli, &file, err);
		if (rc < 0)
			takt_err_wrap(err, rc, "job file '%.200s'", path);
	}
	takt_job_file_fini(&file);
	return rc;
}
