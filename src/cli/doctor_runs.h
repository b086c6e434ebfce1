/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAKT_CLI_DOCTOR_RUNS_H
#define TAKT_CLI_DOCTOR_RUNS_H

#include "cli/verb.h"
#include "health/doctor_facts.h"

/* Takes what the daemon, which cli is connected to, keeps of jobs that have ended: those of the
 * asker, or of everybody for root. Without an answer there are none. */
void takt_doctor_take_runs(struct takt_cli *cli, struct takt_doctor_facts *facts);

#endif
