/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs named on the command line, one after the other: see the header. */
#include "cli/each_job.h"

#include <errno.h>

#include "base/mem.h"
#include "cli/job_text.h"

static int act_on(struct takt_cli *cli, const char *text, const struct takt_job_act *act,
		  struct takt_job_view *job, struct takt_err *err)
{
	uint64_t id = 0;
	int rc = takt_cli_job_id(text, &id, err);

	if (rc == 0)
		rc = act->act(cli, id, act->arg, job, err);
	if (rc < 0 || takt_cli_print_json(cli))
		return rc;
	takt_str_addf(&cli->out, "job %llu: ", (unsigned long long)id);
	takt_job_state_text(job, &cli->out);
	if (act->shows_priority)
		takt_str_addf(&cli->out, ", priority %d", job->priority);
	takt_str_add(&cli->out, job->simulated ? " (SIMULATED GPUs)\n" : "\n");
	return 0;
}

int takt_cli_each_job(struct takt_cli *cli, const struct takt_job_act *act, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	int rc = job ? takt_cli_connect(cli, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");
	int first = 0;

	if (rc < 0)
		return rc;
	for (int i = 0; i < cli->operand_count; i++) {
		rc = act_on(cli, cli->operands[i], act, job, err);
		if (rc == 0)
			continue;
		takt_cli_complain(err);
		first = first ? first : takt_err_exit_status(rc);
	}
	return first;
}

static int change(struct takt_cli *cli, uint64_t job_id, const void *arg, struct takt_job_view *ret,
		  struct takt_err *err)
{
	return takt_client_change(cli->client, job_id, arg, ret, err);
}

int takt_cli_change_jobs(struct takt_cli *cli, const struct takt_job_change *wanted,
			 struct takt_err *err)
{
	const struct takt_job_act act = {change, wanted, wanted->has_priority};

	return takt_cli_each_job(cli, &act, err);
}
