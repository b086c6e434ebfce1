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
#include "cli/sbatch.h"
#include "cli/units.h"
#include "cli/verb.h"
#include "codec/grid.h"

/* The jobs of an array have numbers in a row. */
static uint32_t job_count(const struct takt_cli *cli)
{
	struct takt_jobspec spec;
	struct takt_err err;
	uint32_t count = 1;

	takt_jobspec_init(&spec);
	if (takt_job_options_apply(cli, &spec, &err) == 0) {
		if (spec.grid)
			(void)takt_grid_check(spec.grid, &count, &err);
		else if (spec.has_array)
			count = spec.array_last - spec.array_first + 1;
	}
	takt_jobspec_fini(&spec);
	return count;
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

/* "3-7: would start now on GPUs 0-4", by index. */
static void print_runs(struct takt_cli *cli, const struct takt_try_view *view)
{
	for (uint32_t i = 0; i < view->array_count; i++) {
		const struct takt_try_run_view *run = &view->array[i];

		if (run->first == run->last)
			takt_str_addf(&cli->out, "%u: ", run->first);
		else
			takt_str_addf(&cli->out, "%u-%u: ", run->first, run->last);
		takt_job_trial_run_text(view, i, &cli->out);
		takt_str_add(&cli->out, "\n");
	}
	if (view->more)
		takt_str_addf(&cli->out, "%u more after those\n", view->more);
}

static void print_trial(struct takt_cli *cli, const struct takt_try_view *view)
{
	takt_print_simulated(cli, view->simulated);
	if (view->array_count) {
		print_runs(cli, view);
	} else {
		takt_job_trial_text(view, &cli->out);
		takt_str_add(&cli->out, "\n");
	}
	if (view->run_ms) {
		takt_str_addf(&cli->out, "%sexpected to run ", view->array_count ? "each " : "");
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

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_sbatch script;
	int rc;

	if (takt_cli_has(cli, "file"))
		return takt_submit_file(cli, err);
	if (cli->operand_count == 0)
		return takt_err_set(err, -TAKT_E_USAGE, "usage: takt submit %s", cli->verb->usage);
	rc = takt_sbatch_take(cli, &script, err);
	if (rc == 0)
		rc = takt_cli_has(cli, "dry-run") ? try_job(cli, err) : submit(cli, err);
	takt_sbatch_fini(&script);
	return rc;
}

static const struct takt_option options[] = {
	TAKT_JOB_OPTIONS,
	{"array", 0, "A-B[%N]", "one job for each index in TAKT_ARRAY_INDEX, N at a time",
	 "several jobs, and how it is handed in"},
	{"grid", 0, "NAME=LIST",
	 "one job for each value (lr=0.1,0.01 or seed=0-4), in TAKT_PARAM_NAME and for {NAME} in "
	 "the command; repeated: for each combination; with --array %N, N at a time"},
	{"file", 'f', "FILE", "hand in the jobs of a TOML or JSON file, all or none; - for stdin"},
	TAKT_SBATCH_OPTION,
	{"dry-run", 0, NULL, "hand in nothing: say where and when it would start"},
	{"quiet", 'q', NULL, "print only the number of the job; of an array, each on a line"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt submit -n 4 --name train -- ./train.sh", "four well-linked GPUs"},
	{"id=$(takt submit -q -- ./a.sh); takt wait $id", "in scripts"},
	{"takt submit --array 0-9%2 -- ./sweep.sh", "ten jobs, two at a time"},
	{"takt submit --grid lr=0.1,0.01 --grid seed=0-4 -- ./train --lr {lr} --seed {seed}",
	 "ten jobs, one a combination"},
	{"takt submit --sbatch -- ./train.sbatch",
	 "a script of Slurm, with what its #SBATCH lines ask for"},
	{"takt submit -f graph.toml --dry-run", "where and when each job of a file would start"},
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
	.usage = "[options] [--] COMMAND [ARGUMENT...] | -f FILE",
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
