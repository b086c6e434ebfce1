/* SPDX-License-Identifier: Apache-2.0 */
/* How far running jobs say they are: looked at once a second, shown to their owners. */
#include <errno.h>
#include <stdio.h>

#include "base/map.h"
#include "base/mem.h"
#include "codec/json.h"
#include "daemon/daemon.h"
#include "daemon/job_course.h"
#include "telemetry/progress_ranks.h"

enum {
	MAX_TRACKED = 65536
};

static const uint64_t look_ns = TAKT_NS_PER_S;

struct tracked {
	uint32_t attempt; /* whose file it is */
	struct takt_progress_ranks ranks;
};

struct takt_job_progress {
	struct takt_map jobs; /* job id -> struct tracked, owned */
	struct takt_mono looked_at;
};

int takt_job_progress_new(struct takt_job_progress **ret)
{
	struct takt_job_progress *progress = takt_zalloc(sizeof(*progress));

	if (!progress)
		return -ENOMEM;
	progress->jobs = TAKT_MAP_U64(MAX_TRACKED);
	*ret = progress;
	return 0;
}

static void free_one(struct tracked *tracked)
{
	if (tracked)
		takt_progress_ranks_fini(&tracked->ranks);
	takt_free(tracked);
}

void takt_job_progress_free(struct takt_job_progress *progress)
{
	if (!progress)
		return;
	TAKT_MAP_EACH(entry, &progress->jobs)
	free_one(entry->value.ptr);
	takt_map_fini(&progress->jobs);
	takt_free(progress);
}

void takt_job_progress_path(uint64_t job_id, uint32_t attempt, char ret[TAKT_PROGRESS_PATH])
{
	snprintf(ret, TAKT_PROGRESS_PATH, "%llu.%u/progress", (unsigned long long)job_id, attempt);
}

void takt_job_progress_watch(struct takt_job_progress *progress, const struct takt_queue_job *job)
{
	struct tracked *tracked = takt_map_u64_ptr(&progress->jobs, job->row.id);

	if (job->phase != TAKT_PHASE_RUNNING || (tracked && tracked->attempt == job->row.attempt))
		return;
	if (tracked) {
		takt_progress_ranks_fini(&tracked->ranks);
		*tracked = (struct tracked){.attempt = job->row.attempt};
		return;
	}
	tracked = takt_zalloc(sizeof(*tracked));
	if (!tracked)
		return; /* nothing is known of it; the next change of it tries again */
	tracked->attempt = job->row.attempt;
	if (takt_map_u64_put_ptr(&progress->jobs, job->row.id, tracked) < 0)
		free_one(tracked);
}

void takt_job_progress_forget(struct takt_job_progress *progress, uint64_t job_id)
{
	free_one(takt_map_u64_ptr(&progress->jobs, job_id));
	(void)takt_map_u64_remove(&progress->jobs, job_id);
}

static void look(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		 struct tracked *tracked)
{
	struct takt_mono now = takt_mono_now(daemon->sys);
	struct takt_progress_file slowest;
	struct takt_progress_said said;
	char path[TAKT_PROGRESS_PATH];

	takt_job_progress_path(job->row.id, tracked->attempt, path);
	if (takt_progress_read(daemon->jobs_dirfd, path, job->row.uid, &said) < 0 ||
	    !takt_progress_ranks_feed(&tracked->ranks, &said, now))
		return;
	takt_progress_living(&said, now);
	if (takt_progress_slowest(&said, &slowest))
		takt_job_course_said(daemon->courses, job->row.id, tracked->attempt, &slowest);
}

void takt_job_progress_tick(struct takt_daemon *daemon, struct takt_mono now)
{
	struct takt_job_progress *progress = daemon->progress;

	if (takt_mono_elapsed_ns(now, progress->looked_at) < look_ns)
		return;
	progress->looked_at = now;
	TAKT_MAP_EACH(entry, &progress->jobs)
	{
		const struct takt_queue_job *job = takt_queue_find(daemon->queue, entry->key);

		if (job && job->phase == TAKT_PHASE_RUNNING)
			look(daemon, job, entry->value.ptr);
	}
}

/* What a job says of itself may be any number; what JSON holds is shown. */
static uint64_t shown(uint64_t value)
{
	return value < TAKT_JSON_MAX_INT ? value : TAKT_JSON_MAX_INT;
}

static void fill(const struct takt_progress_rates *rates, struct takt_progress_view *ret)
{
	ret->has = rates->has | rates->rated << TAKT_PV_RATE_SHIFT;
	ret->steps = shown(rates->steps);
	ret->tokens = shown(rates->tokens);
	ret->queries = shown(rates->queries);
	ret->latency_us = shown(rates->latency_us);
	ret->steps_milli_s = shown(rates->steps_milli_s);
	ret->tokens_milli_s = shown(rates->tokens_milli_s);
	ret->queries_milli_s = shown(rates->queries_milli_s);
	ret->age_ms = shown(rates->age_ms);
	if (rates->skewed) {
		ret->has |= TAKT_PV_SKEW;
		ret->ranks = rates->ranks;
		ret->slowest_rank = rates->slowest;
		ret->skew_permille = rates->skew_permille;
	}
}

void takt_job_progress_fill(struct takt_daemon *daemon, uint64_t job_id,
			    struct takt_progress_view *ret)
{
	const struct tracked *tracked = takt_map_u64_ptr(&daemon->progress->jobs, job_id);
	struct takt_progress_rates rates;

	if (tracked &&
	    takt_progress_ranks_rates(&tracked->ranks, takt_mono_now(daemon->sys), &rates))
		fill(&rates, ret);
}

/* Thousandths a second over the whole run. */
static uint64_t mean_milli(uint64_t count, uint64_t wall_ms)
{
	return count < UINT64_MAX / 1000000 && wall_ms ? count * 1000000 / wall_ms : 0;
}

void takt_job_progress_fill_ended(struct takt_daemon *daemon, const struct takt_job *row,
				  struct takt_progress_view *ret)
{
	uint64_t wall_ms = row->report.wall_ns / TAKT_NS_PER_MS;
	struct takt_progress_rates rates = {.has = 0};
	struct takt_progress_file sample;
	struct takt_progress_said said;
	char path[TAKT_PROGRESS_PATH];

	takt_job_progress_path(row->id, row->attempt, path);
	if (row->attempt == 0 || takt_progress_read(daemon->jobs_dirfd, path, row->uid, &said) < 0)
		return;
	takt_progress_living(&said, (struct takt_mono){UINT64_MAX}); /* of any boot */
	if (!takt_progress_slowest(&said, &sample))
		return;
	rates.has = sample.has & (TAKT_PROGRESS_STEPS | TAKT_PROGRESS_TOKENS |
				  TAKT_PROGRESS_QUERIES | TAKT_PROGRESS_LATENCY);
	rates.steps = sample.steps;
	rates.tokens = sample.tokens;
	rates.queries = sample.queries;
	rates.latency_us = sample.latency_us;
	rates.rated = wall_ms ? rates.has & ~(uint32_t)TAKT_PROGRESS_LATENCY : 0;
	rates.steps_milli_s = mean_milli(sample.steps, wall_ms);
	rates.tokens_milli_s = mean_milli(sample.tokens, wall_ms);
	rates.queries_milli_s = mean_milli(sample.queries, wall_ms);
	fill(&rates, ret);
}
