/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs from a file. */
#ifndef TAKT_CLI_JOB_FILE_H
#define TAKT_CLI_JOB_FILE_H

#include "cli/verb.h"

/*
 * Hands in the job, or the list of jobs, or {"jobs": [...]}, of a JSON file: all or none. Each is a
 * description as in docs/api.md, but that `cwd` may be missing (here), and that what `env` has is
 * added to this environment. *ret: the first; the others have the numbers after it.
 */
int takt_job_file_submit(struct takt_cli *cli, const char *path, struct takt_job_view *ret,
			 uint32_t *ret_count, struct takt_err *err);

#endif
