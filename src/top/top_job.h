/* SPDX-License-Identifier: Apache-2.0 */
/* A job in words, for lists and for its own screen. */
#ifndef TAKT_TOP_TOP_JOB_H
#define TAKT_TOP_TOP_JOB_H

#include "top/cells.h"
#include "top/top_model.h"
#include "top/top_text.h"

/* NULL = it is not in the queue (any more). */
const struct takt_job_view *takt_top_find_job(const struct takt_top_model *model, uint64_t id);
bool takt_top_job_runs(const struct takt_job_view *job);
/* Running: for how long. Waiting: when it is thought to start. */
void takt_top_job_when(const struct takt_top_model *model, const struct takt_job_view *job,
		       char ret[TAKT_TOP_TEXT]);
/* "-" where it is not known; job NULL too. */
const char *takt_top_job_energy(const struct takt_job_view *job, char ret[TAKT_TOP_TEXT]);
const char *takt_top_job_state(const struct takt_job_view *job);
enum takt_role takt_top_job_state_role(const struct takt_job_view *job);
/* What is to be known of it first: what ails it, why it waits, in few words where there is no room
 * for more, else its command. */
const char *takt_top_job_more(const struct takt_job_view *job, int room);
/* "0-3" that it has, "x4" or "0.25" that it waits for. */
const char *takt_top_job_gpus_text(const struct takt_job_view *job, char ret[TAKT_TOP_TEXT]);

#endif
