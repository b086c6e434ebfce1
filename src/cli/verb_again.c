/* SPDX-License-Identifier: Apache-2.0 */
/* takt again: an ended job is handed in once more. Its environment is on record no longer, so this
 * one is given, as takt submit would. */
#include "cli/each_job.h"
#include "cli/job_options.h"

static int again(struct takt_cli *cli, uint64_t job_id, const void *env, struct takt_job_view *ret,
		 struct takt_err *err)
{
	return takt_client_again(cli->client, job_id, env, ret, err);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_jobspec env;
	const struct takt_job_act act = {
		.act = again, .arg = &env, .shows_number = takt_cli_has(cli, "quiet")};
	int rc;

	takt_jobspec_init(&env);
	rc = takt_job_env_read(cli, &env, err);
	if (rc == 0)
		rc = takt_cli_each_job(cli, &act, err);
	takt_jobspec_fini(&env);
	return rc;
}

static const struct takt_option options[] = {
	{"env", 'e', "NAME=VALUE", "add to or change the environment; may be repeated"},
	{"no-env", 0, NULL, "without this environment: only what --env says"},
	{"quiet", 'q', NULL, "print only the numbers of the new jobs, each on a line"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt again 12", "the same command, GPUs and terms as a new job"},
	{"takt wait $(takt again -q 12)", "in scripts"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_again = {
	.name = "again",
	.summary = "hand ended jobs in again",
	.usage = "[options] JOB...",
	.about = "Hands in a new job of the same description as one that has ended: command, "
		 "directory, GPUs, clock and limits. The environment is this one's, since that of "
		 "the ended job is kept no longer. A hold, and a begin and a deadline that have "
		 "passed, are left out. Its owner may. A job that runs begins anew with takt "
		 "requeue.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
