/* SPDX-License-Identifier: Apache-2.0 */
/* Handing in a job and looking for a moment where it went. */
#ifndef TAKT_CLI_PLACEMENT_H
#define TAKT_CLI_PLACEMENT_H

#include "cli/verb.h"

/*
 * Reads the verb's options, checks the command, hands the job in, and watches it for up to 200 ms
 * until it runs or its reason to wait is known. Returns 0 with *ret filled, a positive exit status
 * (the reason was printed), or a failure.
 */
int takt_place_job(struct takt_cli *cli, struct takt_job_view *ret, struct takt_err *err);

#endif
