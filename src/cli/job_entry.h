/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job of a job file. Its keys are the fields of a job description (docs/api.md) and, with '_'
 * or
 * '-', the options of takt submit: `time-limit = "2h"` is `--time-limit 2h`. Beyond these:
 * `command`, a shell's; `env` as a table, added to this environment (`no-env = true`: alone);
 * `after`, with numbers of jobs and names of those in the file; `array = {NAME = LIST}`, a grid.
 */
#ifndef TAKT_CLI_JOB_ENTRY_H
#define TAKT_CLI_JOB_ENTRY_H

#include "base/err.h"

struct cJSON;

/* Turns the entry, an object, into a job description. -TAKT_E_USAGE names the key. */
int takt_job_entry_convert(struct cJSON *entry, struct takt_err *err);

/* job_entry_options.c: the keys of it that are options of takt submit become fields. */
int takt_job_entry_options(struct cJSON *entry, struct takt_err *err);

#endif
