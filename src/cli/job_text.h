/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in words: what submit, run, show and wait say of one. */
#ifndef TAKT_CLI_JOB_TEXT_H
#define TAKT_CLI_JOB_TEXT_H

#include "cli/verb.h"

/* "running on GPUs 0-3", "queued: needs 4 GPUs, ...", "failed: exit status 3". No newline. */
void takt_job_state_text(const struct takt_job_view *job, struct takt_str *out);

/* How it went: wall time, GPUs, energy or why not, mean clock, throttling, peak memory; each line
 * begins with `prefix`. Nothing before the job has a report. */
void takt_job_report_text(const struct takt_job_view *job, const char *prefix,
			  struct takt_str *out);

/* "killed by SIGKILL", "exit status 3", "never started". */
void takt_job_end_text(const struct takt_job_view *job, struct takt_str *out);

/* "would start now on GPUs 0-1", "would wait: ...; predicted to start ...". No newline. */
void takt_job_trial_text(const struct takt_try_view *view, struct takt_str *out);

#endif
