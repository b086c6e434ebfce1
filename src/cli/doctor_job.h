/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAKT_CLI_DOCTOR_JOB_H
#define TAKT_CLI_DOCTOR_JOB_H

#include "cli/verb.h"

/* takt doctor JOB: the exit status, or a negative error. */
int takt_doctor_job(struct takt_cli *cli, struct takt_err *err);

#endif
