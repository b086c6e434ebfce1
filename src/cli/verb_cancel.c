/* SPDX-License-Identifier: Apache-2.0 */
/* takt cancel: take a job out of the queue or end it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/each_job.h"
#include "cli/job_filter.h"

static bool has_letters(const struct takt_cli *cli)
{
	for (int i = 0; i < cli->operand_count; i++)
		if (cli->operands[i][strspn(cli->operands[i], "0123456789")])
			return true;
	return cli->operand_count == 0;
}

/* Who comes from Slurm means the whole array by the number of its first job. */
static int cancel(struct takt_cli *cli, uint64_t job_id, const void *arg, struct takt_job_view *ret,
		  struct takt_err *err)
{
	int rc = takt_client_cancel(cli->client, job_id, ret, err);

	if (rc == 0 && ret->array_id == job_id && !has_letters(cli))
		fprintf(stderr,
			"takt: job %llu is one of array %llu; takt cancel '%llu[*]' takes all of "
			"it\n",
			(unsigned long long)job_id, (unsigned long long)job_id,
			(unsigned long long)job_id);
	return rc;
}

/* Jobs that run or wait and that the options choose: one's own, if no user is named. */
static int choose(struct takt_cli *cli, const struct takt_job_filter *filter,
		  struct takt_job_numbers *jobs, struct takt_err *err)
{
	struct takt_queue_view view;
	int rc = takt_cli_connect(cli, err);

	if (rc == 0)
		rc = takt_client_queue(cli->client, false, TAKT_FILTER_MOST, &view, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < view.count && rc == 0; i++)
		if ((filter->user || view.jobs[i].uid == getuid()) &&
		    takt_job_filter_takes(filter, &view.jobs[i]))
			rc = takt_vec_push(&jobs->ids, view.jobs[i].id);
	takt_queue_view_fini(&view);
	return rc < 0 ? takt_err_set(err, rc, "no memory for the jobs") : 0;
}

static bool chooses(const struct takt_cli *cli)
{
	return takt_cli_has(cli, "all") || takt_cli_has(cli, "user") || takt_cli_has(cli, "name") ||
	       takt_cli_has(cli, "tag");
}

static int read_jobs(struct takt_cli *cli, struct takt_job_numbers *jobs, struct takt_err *err)
{
	struct takt_job_filter filter;
	int rc = takt_job_filter_read(cli, &filter, err);

	if (rc == 0 && chooses(cli) == (cli->operand_count > 0))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "say which jobs: their numbers (12 14-16), or --all, --user, "
				  "--name or --tag");
	for (int i = 0; i < cli->operand_count && rc == 0; i++)
		rc = takt_cli_jobs_of(cli, cli->operands[i], jobs, err);
	return rc < 0 || cli->operand_count > 0 ? rc : choose(cli, &filter, jobs, err);
}

/* On a terminal, before several that were not named one by one. False: leave them. */
static bool is_meant(const struct takt_cli *cli, const struct takt_job_numbers *jobs)
{
	char answer[8] = "";

	if (jobs->ids.len < 2 || jobs->ids.len == (size_t)cli->operand_count ||
	    takt_cli_has(cli, "yes") || isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
		return true;
	fprintf(stderr, "cancel %zu jobs, %llu to %llu? [y/N] ", jobs->ids.len,
		(unsigned long long)jobs->ids.at[0],
		(unsigned long long)jobs->ids.at[jobs->ids.len - 1]);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_act act = {.act = cancel};
	struct takt_job_numbers jobs = {TAKT_VEC_INIT(TAKT_JOBS_MOST)};
	int rc = read_jobs(cli, &jobs, err);

	if (rc == 0 && jobs.ids.len == 0)
		takt_str_add(&cli->out, "no such job runs or waits\n");
	else if (rc == 0 && is_meant(cli, &jobs))
		rc = takt_cli_these_jobs(cli, &jobs, &act, err);
	else if (rc == 0)
		takt_str_add(&cli->out, "none was cancelled\n");
	takt_vec_fini(&jobs.ids);
	return rc;
}

static const struct takt_option options[] = {
	{"all", 'a', NULL, "all of your jobs that run or wait"},
	{"user", 'u', "USER", "those of this user, by name or number"},
	{"name", 0, "PATTERN", "those whose name matches, such as 'train-*'"},
	{"tag", 0, "TAG", "those with this tag"},
	{"yes", 'y', NULL, "do not ask before several"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt cancel 12 14-16", "these four, whether they run or wait"},
	{"takt cancel '30[0-19]'", "these of the array 30, as takt queue shows them"},
	{"takt cancel --name 'sweep-*'", "yours that are called so"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_cancel = {
	.name = "cancel",
	.summary = "take jobs out of the queue, or end them",
	.usage = "JOB[-JOB]... | ARRAY[LIST]... | --all | [-u USER] [--name PATTERN] [--tag TAG]",
	.about =
		"A waiting job is taken out of the queue. A running one gets SIGTERM and, when its "
		"grace is over, SIGKILL; takt wait tells when it is gone. Options choose among "
		"your jobs that run or wait, with --user among another's; on a terminal takt asks "
		"before several that were not named one by one.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_JOBS,
	.max_operands = -1,
	.run = run,
};
