/* SPDX-License-Identifier: Apache-2.0 */
/* See top_job.h. */
#include "top/top_job.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "codec/quantity.h"

const struct takt_job_view *takt_top_find_job(const struct takt_top_model *model, uint64_t id)
{
	for (size_t i = 0; id && i < model->now.queue.count; i++)
		if (model->now.queue.jobs[i].id == id)
			return &model->now.queue.jobs[i];
	return NULL;
}

bool takt_top_job_runs(const struct takt_job_view *job)
{
	return job->started_ms != 0 && job->ended_ms == 0 && job->gpu_list_count != 0 &&
	       !job->why[0];
}

void takt_top_job_when(const struct takt_top_model *model, const struct takt_job_view *job,
		       char ret[TAKT_TOP_TEXT])
{
	int64_t now_ms = model->now.at.ns / 1000000, in_ms = job->start.starts_ms - now_ms;
	char text[TAKT_TOP_TEXT];

	if (job->report.has & TAKT_RV_WALL)
		takt_top_span(job->report.wall_ms, ret);
	else if (job->start.starts_ms)
		snprintf(ret, TAKT_TOP_TEXT, "in %s",
			 takt_top_span(in_ms > 0 ? (uint64_t)in_ms : 0, text));
	else
		takt_strcpy(ret, TAKT_TOP_TEXT, "-");
}

const char *takt_top_job_energy(const struct takt_job_view *job, char ret[TAKT_TOP_TEXT])
{
	if (!job || !(job->report.has & TAKT_RV_ENERGY))
		return "-";
	return takt_energy_text(job->report.energy_mj, ret);
}

enum takt_role takt_top_job_state_role(const struct takt_job_view *job)
{
	if (job->held[0] || job->frozen)
		return TAKT_ROLE_DIM;
	return strcmp(job->state, "running") == 0 ? TAKT_ROLE_GOOD : TAKT_ROLE_MIND;
}

const char *takt_top_job_state(const struct takt_job_view *job)
{
	return job->frozen ? "frozen" : job->held[0] ? "held" : job->state;
}

const char *takt_top_job_more(const struct takt_job_view *job, int room)
{
	const char *why = job->why_words[0] && takt_cells_width(job->why_text) > room
				  ? job->why_words
				  : job->why_text;

	return job->stray_note[0]    ? job->stray_note
	       : job->health_note[0] ? job->health_note
	       : why[0]		     ? why
				     : job->command;
}

const char *takt_top_job_gpus_text(const struct takt_job_view *job, char ret[TAKT_TOP_TEXT])
{
	if (job->gpu_list_count)
		return takt_top_gpus(takt_top_job_gpus(job), ret);
	if (job->gpu_milli && job->gpu_milli < 1000)
		snprintf(ret, TAKT_TOP_TEXT, "%u.%02u", job->gpu_milli / 1000,
			 job->gpu_milli % 1000 / 10);
	else
		snprintf(ret, TAKT_TOP_TEXT, "x%u", job->gpus);
	return ret;
}
