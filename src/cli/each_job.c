/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs named on the command line, one after the other: see the header. */
#include "cli/each_job.h"

#include <errno.h>

#include "base/mem.h"
#include "cli/job_text.h"

static int act_on(struct takt_cli *cli, uint64_t id, const struct takt_job_act *act,
		  struct takt_job_view *job, struct takt_err *err)
{
	int rc = act->act(cli, id, act->arg, job, err);

	if (rc < 0 || takt_cli_print_json(cli))
		return rc;
	if (act->shows_number) {
		takt_str_addf(&cli->out, "%llu\n", (unsigned long long)job->id);
		return 0;
	}
	takt_str_addf(&cli->out, "job %llu", (unsigned long long)job->id);
	if (job->id != id)
		takt_str_addf(&cli->out, ", %llu again", (unsigned long long)id);
	takt_str_add(&cli->out, ": ");
	takt_job_state_text(job, &cli->out);
	if (act->shows_priority)
		takt_str_addf(&cli->out, ", priority %d", job->priority);
	takt_str_add(&cli->out, job->simulated ? " (SIMULATED GPUs)\n" : "\n");
	return 0;
}

static int first_failure(int first, int rc, const struct takt_err *err)
{
	takt_cli_complain(err);
	return first ? first : takt_err_exit_status(rc);
}

int takt_cli_these_jobs(struct takt_cli *cli, const struct takt_job_numbers *jobs,
			const struct takt_job_act *act, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	int rc = job ? takt_cli_connect(cli, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");
	int first = 0;

	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (id, &jobs->ids) {
		rc = act_on(cli, *id, act, job, err);
		if (rc < 0)
			first = first_failure(first, rc, err);
	}
	return first;
}

int takt_cli_each_job(struct takt_cli *cli, const struct takt_job_act *act, struct takt_err *err)
{
	struct takt_job_numbers jobs = {TAKT_VEC_INIT(TAKT_JOBS_MOST)};
	int first = 0, rc = 0;

	for (int i = 0; i < cli->operand_count; i++) {
		rc = takt_cli_jobs_of(cli, cli->operands[i], &jobs, err);
		if (rc < 0)
			first = first_failure(first, rc, err);
	}
	rc = takt_cli_these_jobs(cli, &jobs, act, err);
	takt_vec_fini(&jobs.ids);
	return rc < 0 || !first ? rc : first;
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
