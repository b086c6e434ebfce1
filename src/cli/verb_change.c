/* SPDX-License-Identifier: Apache-2.0 */
/* takt hold, release, update: what can be changed about jobs that wait. */
#include <errno.h>

#include "base/mem.h"
#include "cli/job_text.h"
#include "cli/verb.h"

static int change_one(struct takt_cli *cli, const char *text, const struct takt_job_change *change,
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
	if (change->has_priority)
		takt_str_addf(&cli->out, ", priority %d", job->priority);
	takt_str_add(&cli->out, job->simulated ? " (SIMULATED GPUs)\n" : "\n");
	return 0;
}

/* One that fails does not keep the others from being changed; the first failure is the verb's. */
static int change_all(struct takt_cli *cli, const struct takt_job_change *change,
		      struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	int rc = job ? takt_cli_connect(cli, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");
	int first = 0;

	if (rc < 0)
		return rc;
	for (int i = 0; i < cli->operand_count; i++) {
		rc = change_one(cli, cli->operands[i], change, job, err);
		if (rc == 0)
			continue;
		takt_cli_complain(err);
		first = first ? first : takt_err_exit_status(rc);
	}
	return first;
}

static int hold(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_held = true, .held = true};

	return change_all(cli, &change, err);
}

static int release(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_job_change change = {.has_held = true};

	return change_all(cli, &change, err);
}

static int update(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_job_change change = {.has_priority = takt_cli_has(cli, "priority")};
	int64_t priority;
	int rc = takt_cli_number(cli, "priority", -TAKT_SPEC_MAX_PRIORITY, TAKT_SPEC_MAX_PRIORITY,
				 0, &priority, err);

	if (rc < 0)
		return rc;
	if (!change.has_priority)
		return takt_err_set(err, -TAKT_E_USAGE, "say what to change: --priority N");
	change.priority = (int32_t)priority;
	return change_all(cli, &change, err);
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
	{NULL},
};

static const struct takt_text_pair update_examples[] = {
	{"takt update 12 --priority -10", "let others go first"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_update = {
	.name = "update",
	.summary = "change the priority of waiting jobs",
	.usage = "--priority N JOB...",
	.about = "Changes jobs that wait. Their owner and administrators may; a priority above 0 "
		 "only administrators.",
	.options = update_options,
	.examples = update_examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = update,
};
