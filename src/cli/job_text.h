/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in words: what submit, run, show and wait say of one. */
#ifndef TAKT_CLI_JOB_TEXT_H
#define TAKT_CLI_JOB_TEXT_H

#include "cli/verb.h"

/* "running on GPUs 0-3", "queued: needs 4 GPUs, ...", "failed: exit status 3". No newline. */
void takt_job_state_text(const struct takt_job_view *job, struct takt_str *out);

/* What it said of how far it is, a line each. */
void takt_job_progress_text(const struct takt_job_view *job, const char *prefix,
			    struct takt_str *out);
/* That, and how it went: wall time, GPUs, energy or why not, mean clock, throttling, peak memory;
 * each line begins with `prefix`. Nothing before the job has a report. */
void takt_job_report_text(const struct takt_job_view *job, const char *prefix,
			  struct takt_str *out);

/* Whose word its speed is, "job" and so on, for people: how sure that is. */
const char *takt_job_signal_text(const char *signal);

/* What it has asked for of its GPUs' clocks, or who governs them, within which promise, and at what
 * they are held at present: "assured 5% 1200 MHz", "<= 1410 MHz". Nothing of one that has neither.
 */
bool takt_job_has_clocks(const struct takt_job_view *job);
void takt_job_clocks_text(const struct takt_job_view *job, struct takt_str *out);
/* Who chooses its clocks, with the parameters that the job gave; "" = nobody that is known. */
const char *takt_job_governor(const struct takt_job_view *job);

/* Until when a job waits that waits for nothing but an instant, by the wall clock; 0 = another
 * reason, or not known. */
int64_t takt_job_waits_until_ms(const struct takt_job_view *job);

/* "killed by SIGKILL", "exit status 3", "never started". */
void takt_job_end_text(const struct takt_job_view *job, struct takt_str *out);

/* "would start now on GPUs 0-1", "would wait: ...; predicted to start ...". No newline. */
void takt_job_trial_text(const struct takt_try_view *view, struct takt_str *out);
/* The same of those of one run of its array. */
void takt_job_trial_run_text(const struct takt_try_view *view, uint32_t run, struct takt_str *out);

#endif
