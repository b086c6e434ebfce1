/* SPDX-License-Identifier: Apache-2.0 */
/* For verbs that do the same to each job named on the command line. */
#ifndef TAKT_CLI_EACH_JOB_H
#define TAKT_CLI_EACH_JOB_H

#include "base/vec.h"
#include "cli/verb.h"

struct takt_job_act {
	/* Does it to one; *ret is the job afterwards. */
	int (*act)(struct takt_cli *cli, uint64_t job_id, const void *arg,
		   struct takt_job_view *ret, struct takt_err *err);
	const void *arg;
	bool shows_priority; /* beside the state */
	bool shows_number;   /* and nothing else */
};

enum {
	TAKT_JOBS_MOST = 1000 * 1000 /* named at a time */
};
struct takt_job_numbers {
	TAKT_VEC(uint64_t) ids; /* takt_vec_fini */
};

/* Adds what a word names: "12", "12-15" (each of them, gaps too), and of an array what runs and
 * waits: "30[0-19]", "30[2,5-7%2]" as takt queue shows it, "30[*]", "30_5". Connects for an array
 * only. */
int takt_cli_jobs_of(struct takt_cli *cli, const char *text, struct takt_job_numbers *jobs,
		     struct takt_err *err);

/* Connects, does it to each operand and prints what became of it. One that fails does not keep the
 * others from their turn: it is complained about, and the first failure is the verb's. */
int takt_cli_each_job(struct takt_cli *cli, const struct takt_job_act *act, struct takt_err *err);

/* The same to these. */
int takt_cli_these_jobs(struct takt_cli *cli, const struct takt_job_numbers *jobs,
			const struct takt_job_act *act, struct takt_err *err);

/* The same for a change that the API makes (`/v1/jobs/ID/change`). */
int takt_cli_change_jobs(struct takt_cli *cli, const struct takt_job_change *change,
			 struct takt_err *err);

#endif
