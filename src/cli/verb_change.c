/* SPDX-License-Identifier: Apache-2.0 */
/* takt hold, release, update: what can be changed about jobs that wait; their time limit and what
 * was promised of their clocks, while they run, too. */
#include "base/str.h"
#include "cli/each_job.h"

static int hold(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_held = true, .held = true};

	return takt_cli_change_jobs(cli, &change, err);
}

static int release(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_held = true};

	return takt_cli_change_jobs(cli, &change, err);
}

static int read_promise(const struct takt_cli *cli, struct takt_job_change *ret,
			struct takt_err *err)
{
	const char *slowdown = takt_cli_value(cli, "max-slowdown");
	const char *policy = takt_cli_value(cli, "clock-policy");

	ret->has_max_slowdown = slowdown != NULL;
	ret->has_clock_policy = policy != NULL;
	if (slowdown &&
	    takt_percent_parse(slowdown, TAKT_SPEC_MAX_SLOWDOWN, &ret->max_slowdown_permille) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--max-slowdown' must be a percentage from 0 to %d such as "
				    "3%%, not '%.40s'",
				    TAKT_SPEC_MAX_SLOWDOWN / 10, slowdown);
	if (policy && !takt_strcpy(ret->clock_policy, sizeof(ret->clock_policy), policy))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--clock-policy' must be " TAKT_POLICY_FORM ", not '%.60s'",
				    policy);
	return 0;
}

static int update(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_job_change change = {.has_priority = takt_cli_has(cli, "priority"),
					 .has_time_limit = takt_cli_has(cli, "time-limit")};
	int64_t priority;
	int rc = takt_cli_number(cli, "priority", -TAKT_SPEC_MAX_PRIORITY, TAKT_SPEC_MAX_PRIORITY,
				 0, &priority, err);

	if (rc == 0)
		rc = read_promise(cli, &change, err);
	if (rc == 0)
		rc = takt_cli_time_limit_ms(cli, &change.time_limit_ms, err);
	if (rc < 0)
		return rc;
	if (!change.has_priority && !change.has_time_limit && !change.has_max_slowdown &&
	    !change.has_clock_policy)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say what to change: --priority N, --time-limit TIME, "
				    "--max-slowdown PERCENT or --clock-policy GOVERNOR");
	change.priority = (int32_t)priority;
	return takt_cli_change_jobs(cli, &change, err);
}

static const struct takt_text_pair hold_examples[] = {
	{"takt hold 12 13", "neither starts before takt release"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_hold = {
	.name = "hold",
	.summary = "keep waiting jobs from starting",
	.usage = "JOB...",
	.about = "A held job keeps its place in the queue, lets others pass and does not start "
		 "before takt release. Its owner and administrators may hold it; what an "
		 "administrator holds is for administrators to release. Only jobs that wait can be "
		 "held.",
	.examples = hold_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = hold,
};

static const struct takt_text_pair release_examples[] = {
	{"takt release 12", "it may start now"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_release = {
	.name = "release",
	.summary = "let held jobs start",
	.usage = "JOB...",
	.about =
		"Ends what takt hold or takt submit --hold began. The job has its old place in the "
		"queue.",
	.examples = release_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = release,
};

static const struct takt_option update_options[] = {
	{"priority", 'p', "N", "-1000 to 1000; above 0 for administrators"},
	{"time-limit", 't', "TIME",
	 "it is stopped when it has run for so long, or none; a longer one, of a job that runs, is "
	 "for "
	 "administrators"},
	{"max-slowdown", 0, "PERCENT",
	 "how much longer it may take to save energy; 0: the default"},
	{"clock-policy", 0, "GOVERNOR[:PARAM=N,...]", "who chooses its clocks; observe: nobody"},
	{NULL},
};

static const struct takt_text_pair update_examples[] = {
	{"takt update 12 --priority -10", "let others go first"},
	{"takt update 12 --time-limit 4h", "of its whole run, even if it runs"},
	{"takt update 12 --max-slowdown 5%", "from now on, even if it runs"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_update = {
	.name = "update",
	.summary = "change priority, time limit or the clocks' promise of jobs",
	.usage = "[--priority N] [--time-limit TIME] [--max-slowdown PERCENT] "
		 "[--clock-policy GOVERNOR] JOB...",
	.about = "Changes jobs that wait. Their owner and administrators may; a priority above 0 "
		 "only administrators. The time limit can be changed of a job that runs, too: it "
		 "counts from the job's start, has to be longer than it has run, and a longer one "
		 "than before needs an administrator, since others wait for its end. What was "
		 "promised of its clocks likewise: its GPUs go to their default, and the governor "
		 "begins anew with what the job takes from then on.",
	.options = update_options,
	.examples = update_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = update,
};
