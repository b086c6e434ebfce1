/* SPDX-License-Identifier: Apache-2.0 */
/* What a job says in a row of a table, in few words: takt queue and takt jobs say it alike. */
#ifndef TAKT_CLI_JOB_LINE_H
#define TAKT_CLI_JOB_LINE_H

#include "base/str.h"
#include "codec/views.h"

/* How many of `jobs` at its front are one row: those of one array that wait next to each other, and
 * are held all or none. At least 1; count is not 0. */
size_t takt_job_line_length(const struct takt_job_view *jobs, size_t count);
/* "12"; of a row of several "30[0-19%2]": the array, its indices, how many may run at a time. */
void takt_job_line_id(const struct takt_job_view *jobs, size_t length, struct takt_str *out);
/* "train"; of one job of an array "train[3]". */
void takt_job_line_name(const struct takt_job_view *jobs, size_t length, struct takt_str *out);
/* What each asks for: "2", "0.25", "2x0.25", "1g.10gb". */
void takt_job_line_gpus(const struct takt_job_view *job, struct takt_str *out);
/* The GPUs that it has, how it ended or why it waits, and when it is expected to start. */
void takt_job_line_where(const struct takt_job_view *job, int64_t now_ms, struct takt_str *out);

#endif
