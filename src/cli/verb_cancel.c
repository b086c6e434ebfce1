/* SPDX-License-Identifier: Apache-2.0 */
/* takt cancel: take a job out of the queue or end it. */
#include <errno.h>

#include "base/mem.h"
#include "cli/job_text.h"
#include "cli/verb.h"

static int cancel_one(struct takt_cli *cli, const char *text, struct takt_job_view *job,
		      struct takt_err *err)
{
	uint64_t id = 0;
	int rc = takt_cli_job_id(text, &id, err);

	if (rc == 0)
		rc = takt_client_cancel(cli->client, id, job, err);
	if (rc < 0 || takt_cli_print_json(cli))
		return rc;
	takt_str_addf(&cli->out, "job %llu: ", (unsigned long long)id);
	takt_job_state_text(job, &cli->out);
	takt_str_add(&cli->out, job->simulated ? " (SIMULATED GPUs)\n" : "\n");
	return 0;
}

/* One that fails does not keep the others from being cancelled; the first failure is the verb's. */
static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	int rc = job ? takt_cli_connect(cli, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");
	int first = 0;

	if (rc < 0)
		return rc;
	for (int i = 0; i < cli->operand_count; i++) {
		rc = cancel_one(cli, cli->operands[i], job, err);
		if (rc == 0)
			continue;
		takt_cli_complain(err);
		first = first ? first : takt_err_exit_status(rc);
	}
	return first;
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
