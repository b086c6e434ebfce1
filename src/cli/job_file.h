/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs from a file, JSON or TOML. */
#ifndef TAKT_CLI_JOB_FILE_H
#define TAKT_CLI_JOB_FILE_H

#include "cli/verb.h"

struct takt_job_file_entry {
	char name[65];
	uint32_t jobs;	/* 1, or those of an array */
	uint32_t gpus;	/* of each */
	uint32_t place; /* among what is handed in; the order of the file is kept in `entries` */
};

struct takt_job_file {
	uint32_t count;
	struct takt_job_file_entry *entries; /* owned */
	struct takt_str body;		     /* as docs/api.md has it for /v1/jobs/batch */
};

/*
 * A file has one job; or a list of jobs, as `job` or `jobs` (in TOML [[job]]), and beside it
 * `defaults` for all of them. See job_entry.h for a job. "-" is standard input. What is read has
 * passed the check of descriptions, and comes after what it names. Messages name the file, and the
 * line or the job. Ends in takt_job_file_fini either way.
 */
int takt_job_file_read(const char *path, struct takt_job_file *ret, struct takt_err *err);
void takt_job_file_fini(struct takt_job_file *file);

/* job_order.c: puts the jobs into an order in which each comes after those that it names; fills
 * `place`. `list` is that of the descriptions and is put in order, too. -TAKT_E_USAGE names the job
 * of a name that is not known, and the jobs of a circle. */
struct cJSON;
int takt_job_file_order(struct takt_job_file *file, struct cJSON *list, struct takt_err *err);

/* submit_file.c: takt submit -f. */
int takt_submit_file(struct takt_cli *cli, struct takt_err *err);

#endif
