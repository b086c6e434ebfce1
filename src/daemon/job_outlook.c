/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be expected of a job: how long it runs, when it starts, and whom it makes room for. */
#include <stdio.h>

#include "base/str.h"
#include "daemon/daemon.h"

static int64_t to_ms(struct takt_wall wall)
{
	return wall.ns / (int64_t)TAKT_NS_PER_MS;
}

static void fill_run(const struct takt_queue_estimate *estimate, struct takt_job_view *ret)
{
	ret->run_ms = estimate->ns / TAKT_NS_PER_MS;
	if (!ret->run_ms)
		return;
	takt_strcpy(ret->run_from, sizeof(ret->run_from), takt_estimate_from_name(estimate->from));
	ret->has_run_error = estimate->has_error;
	ret->run_error_ms = estimate->error_ns / TAKT_NS_PER_MS;
}

void takt_api_fill_start(const struct takt_queue_start *start, struct takt_start_view *ret)
{
	*ret = (struct takt_start_view){.starts_ms = to_ms(start->at),
					.starts_low_ms = to_ms(start->low),
					.starts_high_ms = to_ms(start->high),
					.starts_overdue_ms = to_ms(start->overdue_since)};
}

/* Why it stops, or waits though its old place would let it start. */
static void fill_room(const struct takt_queue_job *job, struct takt_job_view *ret)
{
	bool goes = job->row.state == TAKT_JOB_STOPPING && job->row.evict > 1 &&
		    job->row.evict != TAKT_EVICT_ROW_ASKED && !job->row.cancel_wanted;

	/* A note of one who stays after all is kept for a while. */
	if (job->phase != TAKT_PHASE_RUNNING || job->evict.step != TAKT_EVICT_NONE)
		ret->room_for = job->row.evict_for;
	if (!goes && !job->gives_way)
		return;
	takt_strcpy(ret->why, sizeof(ret->why), takt_why_name(TAKT_WHY_PREEMPTION));
	if (!job->row.evict_for) {
		takt_strcpy(ret->why_text, sizeof(ret->why_text), "its GPUs have failed");
		takt_strcpy(ret->why_words, sizeof(ret->why_words), "its GPUs have failed");
		return;
	}
	snprintf(ret->why_text, sizeof(ret->why_text),
		 goes ? "makes room for job %llu"
		      : "made room for job %llu; runs again when that has started",
		 (unsigned long long)job->row.evict_for);
	snprintf(ret->why_words, sizeof(ret->why_words),
		 goes ? "makes room for %llu" : "made room for %llu",
		 (unsigned long long)job->row.evict_for);
}

static void fill_share(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		       struct takt_job_view *ret)
{
	struct takt_queue_share share;

	if (!takt_queue_share(daemon->queue, job, &share))
		return;
	ret->share_place = share.place;
	ret->share_of = share.of;
	ret->share_used_gpu_s = share.used_gpu_s;
}

static void fill_frozen(const struct takt_queue_job *job, struct takt_job_view *ret)
{
	bool for_other = job->evict.step == TAKT_EVICT_STILL;

	ret->frozen = job->phase == TAKT_PHASE_RUNNING && (job->row.frozen || for_other);
	if (ret->frozen && for_other) {
		snprintf(ret->why_text, sizeof(ret->why_text),
			 "frozen for job %llu; keeps its GPU memory, goes on when the GPUs are its "
			 "own again",
			 (unsigned long long)job->row.evict_for);
		snprintf(ret->why_words, sizeof(ret->why_words), "frozen for %llu",
			 (unsigned long long)job->row.evict_for);
	} else if (ret->frozen && !ret->why_text[0]) {
		takt_strcpy(ret->why_text, sizeof(ret->why_text),
			    "frozen; keeps its GPUs and their memory");
		takt_strcpy(ret->why_words, sizeof(ret->why_words), "frozen");
	}
}

static void fill_idle(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		      struct takt_job_view *ret)
{
	takt_idle_note(daemon->idle, job, ret->why_text, sizeof(ret->why_text));
	if (ret->why_text[0])
		takt_strcpy(ret->why_words, sizeof(ret->why_words), "idle");
}

void takt_api_fill_outlook(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			   struct takt_job_view *ret)
{
	struct takt_queue_start start;

	fill_run(&job->estimate, ret);
	fill_room(job, ret);
	fill_share(daemon, job, ret);
	fill_frozen(job, ret);
	if (!ret->why_text[0])
		fill_idle(daemon, job, ret);
	if (!takt_queue_foretold(daemon->queue, job, &start))
		return;
	takt_api_fill_start(&start, &ret->start);
	ret->starts_gpus = start.gpus;
}
