/* SPDX-License-Identifier: Apache-2.0 */
/* takt submit: hand in a job and go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job_file.h"
#include "cli/job_options.h"
#include "cli/job_text.h"
#include "cli/outlook_text.h"
#include "cli/placement.h"
#include "cli/units.h"
#include "cli/verb.h"

/* The jobs of an array have numbers in a row. */
static uint32_t job_count(const struct takt_cli *cli)
{
	const char *array = takt_cli_value(cli, "array");
	unsigned first, last;

	return array && sscanf(array, "%7u-%7u", &first, &last) == 2 ? last - first + 1 : 1;
}

static void print_job(struct takt_cli *cli, const struct takt_job_view *job)
{
	unsigned long long id = job->id, count = job_count(cli);

	if (takt_cli_has(cli, "quiet")) {
		for (unsigned long long i = 0; i < count; i++)
			takt_str_addf(&cli->out, "%llu\n", id + i);
		return;
	}
	takt_print_simulated(cli, job->simulated);
	if (job->array_id)
		takt_str_addf(&cli->out, "array of %llu jobs, %llu to %llu\n", count, id,
			      id + count - 1);
	takt_str_addf(&cli->out, "job %llu %s: ", (unsigned long long)job->id, job->name);
	takt_job_state_text(job, &cli->out);
	takt_str_add(&cli->out, "\n");
	if (job->memory_hint[0])
		takt_str_addf(&cli->out, "note: %s\n", job->memory_hint);
}

static void print_trial(struct takt_cli *cli, const struct takt_try_view *view)
{
	takt_print_simulated(cli, view->simulated);
	takt_str_add(&cli->out, view->starts ? "would start now" : "would wait");
	if (view->gpu_list_count > 0) {
		takt_str_add(&cli->out, view->gpu_list_count == 1 ? " on GPU " : " on GPUs ");
		takt_gpu_list_text(view->gpu_list, view->gpu_list_count, &cli->out);
	}
	if (view->text[0])
		takt_str_addf(&cli->out, ": %s", view->text);
	if (view->starts_ms) {
		takt_str_add(&cli->out, "; predicted to start ");
		takt_starts_text(view->starts_ms, view->has_starts_error, view->starts_error_ms,
				 &cli->out);
	}
	takt_str_add(&cli->out, "\n");
	if (view->run_ms) {
		takt_str_add(&cli->out, "expected to run ");
		takt_run_text(view->run_ms, view->run_from, &cli->out);
		takt_str_add(&cli->out, "\n");
	}
}

static int try_job(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_try_view view;
	struct takt_jobspec spec;
	int rc = takt_job_options_read(cli, &spec, err);

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_try(cli->client, &spec, &view, err);
	takt_jobspec_fini(&spec);
	if (rc == 0 && !takt_cli_print_json(cli))
		print_trial(cli, &view);
	return rc;
}

static int submit(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	int rc = job ? takt_place_job(cli, job, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");

	if (rc == 0 && !takt_cli_print_json(cli))
		print_job(cli, job);
	return rc;
}

static void print_file(struct takt_cli *cli, const struct takt_job_view *job, uint32_t count)
{
	unsigned long long id = job->id;

	if (takt_cli_has(cli, "quiet")) {
		for (uint32_t i = 0; i < count; i++)
			takt_str_addf(&cli->out, "%llu\n", id + i);
		return;
	}
	takt_print_simulated(cli, job->simulated);
	if (count == 1)
		takt_str_addf(&cli->out, "job %llu\n", id);
	else
		takt_str_addf(&cli->out, "%u jobs, %llu to %llu\n", count, id, id + count - 1);
}

/* The file says everything; an option beside it would be for which of the jobs? */
static int submit_file(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	uint32_t count = 0;
	int rc;

	for (size_t i = 0; i < cli->given_count; i++) {
		const char *name = cli->given[i].option->name;

		if (strcmp(name, "file") != 0 && strcmp(name, "quiet") != 0 &&
		    strcmp(name, "json") != 0 && strcmp(name, "socket") != 0)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--file' describes its jobs itself: '--%s' cannot be "
					    "given with it",
					    name);
	}
	if (cli->operand_count > 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--file' has the commands: '%.60s' cannot be given with it",
				    cli->operands[0]);
	rc = job ? takt_job_file_submit(cli, takt_cli_value(cli, "file"), job, &count, err)
		 : takt_err_set(err, -ENOMEM, "no memory for a job");
	if (rc == 0 && !takt_cli_print_json(cli))
		print_file(cli, job, count);
	return rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	if (takt_cli_has(cli, "file"))
		return submit_file(cli, err);
	if (cli->operand_count == 0)
		return takt_err_set(err, -TAKT_E_USAGE, "usage: takt submit %s", cli->verb->usage);
	if (takt_cli_has(cli, "dry-run"))
		return try_job(cli, err);
	return submit(cli, err);
}

static const struct takt_option options[] = {
	TAKT_JOB_OPTIONS,
	{"array", 0, "A-B[%N]", "one job for each index in TAKT_ARRAY_INDEX, N at a time"},
	{"file", 'f', "FILE.json", "hand in the jobs of a file, all or none"},
	{"dry-run", 0, NULL, "hand in nothing: say where and when it would start"},
	{"quiet", 'q', NULL, "print only the number of the job; of an array, each on a line"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt submit -n 4 --name train -- ./train.sh", "four well-linked GPUs"},
	{"id=$(takt submit -q -- ./a.sh); takt wait $id", "in scripts"},
	{"takt submit --array 0-9%2 -- ./sweep.sh", "ten jobs, two at a time"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"65", "no such machine: for instance 9 GPUs of 8"},
	{"126, 127", "the command cannot be executed, or does not exist"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_submit = {
	.name = "submit",
	.summary = "hand in a job; it runs when its GPUs are free",
	.usage = "[options] [--] COMMAND [ARGUMENT...] | -f FILE.json",
	.about = "Hands in a job with this environment and directory, prints its number and where "
		 "it "
		 "went: the GPUs that it runs on, or why it waits. When this returns the job is on "
		 "disk; it outlives this terminal and restarts of the daemon. Its output is kept: "
		 "see "
		 "takt logs. It finds its GPUs in CUDA_VISIBLE_DEVICES.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_COMMAND,
	.max_operands = -1,
	.command_follows = true,
	.run = run,
};
