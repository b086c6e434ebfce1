/* SPDX-License-Identifier: Apache-2.0 */
/* takt freeze, thaw, checkpoint: what is said of jobs that run. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/job_text.h"
#include "cli/verb.h"

static int say_one(struct takt_cli *cli, const char *text, const struct takt_job_change *change,
		   struct takt_job_view *job, struct takt_err *err)
{
	uint64_t id = 0;
	int rc = takt_cli_job_id(text, &id, err);

	if (rc == 0)
		rc = takt_client_change(cli->client, id, change, job, err);
	if (rc < 0 || takt_cli_print_json(cli))
		return rc;
	takt_str_addf(&cli->out, "job %llu: ", (unsigned long long)id);
	takt_job_state_text(job, &cli->out);
	takt_str_add(&cli->out, job->simulated ? " (SIMULATED GPUs)\n" : "\n");
	return 0;
}

static int say(struct takt_cli *cli, const struct takt_job_change *change, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	int rc = job ? takt_cli_connect(cli, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");

	for (int i = 0; rc == 0 && i < cli->operand_count; i++)
		rc = say_one(cli, cli->operands[i], change, job, err);
	if (rc == 0 && cli->operand_count == 0)
		rc = say_one(cli, getenv("TAKT_JOB_ID"), change, job, err);
	return rc;
}

static int freeze(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_frozen = true, .frozen = true};

	return say(cli, &change, err);
}

static int thaw(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_frozen = true};

	return say(cli, &change, err);
}

static int checkpoint(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.checkpoint = true};

	if (cli->operand_count == 0 && !getenv("TAKT_JOB_ID"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "name a job; within a job it is the job itself");
	return say(cli, &change, err);
}

static const struct takt_text_pair freeze_examples[] = {
	{"takt freeze 12; ...; takt thaw 12", "its processes stand still meanwhile"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_freeze = {
	.name = "freeze",
	.summary = "let all processes of running jobs stand still",
	.usage = "JOB...",
	.about = "Stops every process of a job that runs (SIGSTOP) until takt thaw. It keeps its "
		 "GPUs: freezing does not give GPU memory back, and nobody else gets those GPUs. "
		 "Its time limit goes on. Cancelled, it is woken and ended.",
	.examples = freeze_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = freeze,
};

const struct takt_verb takt_verb_thaw = {
	.name = "thaw",
	.summary = "let frozen jobs go on",
	.usage = "JOB...",
	.about = "Ends what takt freeze began: every process of the job goes on (SIGCONT).",
	.examples = freeze_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = thaw,
};

static const struct takt_text_pair checkpoint_examples[] = {
	{"takt checkpoint", "in a job, after it has saved its work"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_checkpoint = {
	.name = "checkpoint",
	.summary = "say that a job's work so far is saved",
	.usage = "[JOB]",
	.about = "For a job to call after it has saved its work (in TAKT_CHECKPOINT_DIR, say). "
		 "Where jobs have to go for others those go first that lose least: the time since "
		 "this was said.",
	.examples = checkpoint_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.max_operands = 1,
	.run = checkpoint,
};
