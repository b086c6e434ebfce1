/* SPDX-License-Identifier: Apache-2.0 */
/* takt freeze, thaw, requeue, checkpoint: what is said of jobs that run. */
#include <stdlib.h>

#include "cli/each_job.h"

static int freeze(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_frozen = true, .frozen = true};

	return takt_cli_change_jobs(cli, &change, err);
}

static int thaw(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_frozen = true};

	return takt_cli_change_jobs(cli, &change, err);
}

static int requeue(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.requeue = true};

	return takt_cli_change_jobs(cli, &change, err);
}

static int checkpoint(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.checkpoint = true};
	char *own = getenv("TAKT_JOB_ID");

	if (cli->operand_count == 0) {
		if (!own)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "name a job; within a job it is the job itself");
		cli->operands = &own;
		cli->operand_count = 1;
	}
	return takt_cli_change_jobs(cli, &change, err);
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

static const struct takt_text_pair requeue_examples[] = {
	{"takt requeue 12", "end it and let it begin anew"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_requeue = {
	.name = "requeue",
	.summary = "end running jobs and let them begin anew",
	.usage = "JOB...",
	.about = "A job that runs is ended as one that makes room for others is: its checkpoint "
		 "signal and that signal's grace if it was handed in with one, then SIGTERM, its "
		 "grace, SIGKILL. However it exits, it waits again in its old place and starts as "
		 "its next attempt, with the same TAKT_CHECKPOINT_DIR and TAKT_RESTART one higher. "
		 "Its owner and administrators may. Only jobs that run can be requeued.",
	.examples = requeue_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = requeue,
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
