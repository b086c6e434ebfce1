/* SPDX-License-Identifier: Apache-2.0 */
/* takt cancel: take a job out of the queue or end it. */
#include "cli/each_job.h"

static int cancel(struct takt_cli *cli, uint64_t job_id, const void *arg, struct takt_job_view *ret,
		  struct takt_err *err)
{
	return takt_client_cancel(cli->client, job_id, ret, err);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_act act = {.act = cancel};

	return takt_cli_each_job(cli, &act, err);
}

static const struct takt_text_pair examples[] = {
	{"takt cancel 12 13", "both, whether they run or wait"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_cancel = {
	.name = "cancel",
	.summary = "take jobs out of the queue, or end them",
	.usage = "JOB...",
	.about =
		"A waiting job is taken out of the queue. A running one gets SIGTERM and, when its "
		"grace is over, SIGKILL; takt wait tells when it is gone.",
	.examples = examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
