/* SPDX-License-Identifier: Apache-2.0 */
/* takt logs: what a job has written. */
#include "cli/log_stream.h"
#include "cli/verb.h"

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_patience patience = TAKT_PATIENCE;
	struct takt_log_place place = {.offset = 0};
	uint64_t id = 0;
	int rc = takt_cli_job_id(cli->operands[0], &id, err);

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc < 0)
		return rc;
	do
		rc = takt_log_stream(cli, id, takt_cli_has(cli, "follow"), &patience, &place, err);
	while (rc == 1);
	return rc;
}

static const struct takt_option options[] = {
	{"follow", 'f', NULL, "go on until the job is over"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt logs -f 12", "what job 12 writes, as it writes it"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_logs = {
	.name = "logs",
	.summary = "what a job has written",
	.usage = "[-f] JOB",
	.about = "Prints the output of a job (standard output and error together), byte for byte, "
		 "also after its end. Of a job that was started again it is the latest attempt's. "
		 "Of one that printed more than is kept (output_limit) it has the beginning and "
		 "the newest part, and a line in place of what lies between.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
