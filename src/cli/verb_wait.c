/* SPDX-License-Identifier: Apache-2.0 */
/* takt wait: until jobs are over; the exit status is theirs. */
#include <errno.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/job_text.h"
#include "cli/log_stream.h"
#include "cli/verb.h"

enum {
	TURN_MS = 30000,
	EXIT_TIMEOUT = 124, /* as timeout(1) */
};
#define MAX_TIMEOUT_MS (30 * 24 * 60 * 60 * UINT64_C(1000))

/* 0 = ended, EXIT_TIMEOUT, or a failure. */
static int wait_one(struct takt_cli *cli, uint64_t id, uint64_t deadline_ns,
		    struct takt_job_view *job, struct takt_err *err)
{
	struct takt_patience patience = TAKT_PATIENCE;

	for (;;) {
		uint64_t now_ns = takt_boot_now(takt_sys_real()).ns, left_ms = TURN_MS;
		int rc;

		if (deadline_ns)
			left_ms =
				now_ns < deadline_ns ? (deadline_ns - now_ns) / TAKT_NS_PER_MS : 0;
		rc = takt_client_wait(cli->client, id,
				      (uint32_t)(left_ms < TURN_MS ? left_ms : TURN_MS), job, err);
		if (takt_patience_retry(&patience, rc, err) && (!deadline_ns || left_ms > 0))
			continue;
		if (rc < 0 || takt_client_job_ended(job))
			return rc;
		if (deadline_ns && left_ms == 0)
			return EXIT_TIMEOUT;
	}
}

static void print_job(struct takt_cli *cli, const struct takt_job_view *job)
{
	if (takt_cli_print_json(cli))
		return;
	takt_str_addf(&cli->out, "job %llu %s: ", (unsigned long long)job->id, job->name);
	takt_job_state_text(job, &cli->out);
	takt_str_add(&cli->out, job->simulated ? " (SIMULATED GPUs)\n" : "\n");
}

static int wait_all(struct takt_cli *cli, uint64_t deadline_ns, struct takt_job_view *job,
		    struct takt_err *err)
{
	int status = 0, rc = 0;

	for (int i = 0; i < cli->operand_count && rc == 0; i++) {
		uint64_t id = 0;

		rc = takt_cli_job_id(cli->operands[i], &id, err);
		if (rc == 0)
			rc = wait_one(cli, id, deadline_ns, job, err);
		if (rc < 0)
			return rc;
		print_job(cli, job);
		if (rc == 0 && status == 0)
			status = takt_client_exit_status(job);
	}
	return rc ? rc : status;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	uint64_t timeout_ms = 0, deadline_ns = 0;
	int rc = job ? takt_cli_duration_ms(cli, "timeout", MAX_TIMEOUT_MS, UINT64_MAX, &timeout_ms,
					    err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc < 0)
		return rc;
	if (timeout_ms != UINT64_MAX)
		deadline_ns = takt_boot_now(takt_sys_real()).ns + timeout_ms * TAKT_NS_PER_MS;
	return wait_all(cli, deadline_ns, job, err);
}

static const struct takt_option options[] = {
	{"timeout", 't', "TIME", "give up after so long, with exit status 124"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt wait 12 13 && echo both done", "until both are over"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"N", "the exit status of the first job, in the order given, that did not end with 0"},
	{"128+N", "it was killed by signal N"},
	{"124", "the time was up"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_wait = {
	.name = "wait",
	.summary = "wait for jobs to end",
	.usage = "[-t TIME] JOB...",
	.about = "Returns when all of the jobs have ended and prints how each did. Restarts of the "
		 "daemon are waited out.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
