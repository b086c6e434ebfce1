/* SPDX-License-Identifier: Apache-2.0 */
/* What both of the doctor's reports, of a machine and of a job, are written with. */
#ifndef TAKT_CLI_DOCTOR_TEXT_H
#define TAKT_CLI_DOCTOR_TEXT_H

#include "base/str.h"
#include "codec/views.h"

void takt_doctor_gpus_text(struct takt_str *out, uint64_t gpus); /* "GPUs 0-3,6" */
void takt_doctor_gpus_json(struct takt_str *out, uint64_t gpus); /* ,"gpus":[0,1] */
void takt_doctor_text_json(struct takt_str *out, const char *name, const char *text, bool first);

/* Whether a lease, a cap or a declared baseline of takt's is on it. */
bool takt_doctor_holds(const struct takt_clock_gpu *clocks);

#endif
