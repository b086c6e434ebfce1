/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a GPU that a job has left may be handed on: the driver lists no process of the job, in a
 * list that was read after its end, and its memory is back. Where other jobs hold the GPU too, the
 * processes alone say so, since the memory is theirs. One that does not get clean in time is set
 * aside until it does.
 */
#include <stdio.h>

#include "base/pace.h"
#include "daemon/daemon.h"
#include "daemon/gpu_watch.h"

static const uint64_t memory_slack_bytes = 64ull
					   << 20; /* the driver's own use moves by this much */
static const uint64_t settle_ns = TAKT_NS_PER_S;
/* From quick, since the next job waits, to what a GPU costs that is at rest. */
static const struct takt_pace looks = {TAKT_NS_PER_MS, TAKT_NS_PER_S};

/* What was used before the job came means nothing while somebody from outside takes what he needs,
 * and may not be known: then memory is back when it has not moved for a while. */
static bool memory_is_back(struct takt_gpu_watch *watch, const struct takt_gpu_reading *reading,
			   bool outside)
{
	if (!(reading->has & TAKT_HAS_MEMORY))
		return true;
	if (watch->mem_before_known && !outside)
		return reading->mem_used_bytes <= watch->mem_before_bytes + memory_slack_bytes;
	if (watch->mem_settled_at.ns == 0 || reading->mem_used_bytes != watch->mem_last_bytes) {
		watch->mem_last_bytes = reading->mem_used_bytes;
		watch->mem_settled_at = reading->at;
	}
	return reading->at.ns - watch->mem_settled_at.ns >= settle_ns;
}

/* Its processes that the driver still lists. One that is gone from the kernel may be anybody's
 * whose it is not known to be. */
static uint32_t procs_of(struct takt_daemon *daemon, const struct takt_gpu_reading *reading,
			 const struct takt_queue_holding *holding, struct takt_mono now)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < reading->proc_count; i++) {
		const struct takt_proc_who *who =
			takt_proc_who(daemon->procs, reading->procs[i].pid, now);

		if (who->job_id == 0)
			count += who->gone;
		else
			count += who->job_id == holding->job_id && who->attempt == holding->attempt;
	}
	return count;
}

/* Somebody's who is there, or the first that has left; NULL = none. */
static const struct takt_queue_holding *find_holding(const struct takt_daemon *daemon, uint32_t gpu,
						     bool left)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count; i++)
		if (holdings[i].gpu == gpu && holdings[i].left == left)
			return &holdings[i];
	return NULL;
}

/* Strikes one that has left and of which nothing is to be seen; false when there is none. */
static bool strike_one(struct takt_daemon *daemon, uint32_t gpu,
		       const struct takt_gpu_reading *reading, struct takt_mono now)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count; i++) {
		struct takt_queue_holding holding = holdings[i];

		if (holding.gpu != gpu || !holding.left ||
		    procs_of(daemon, reading, &holding, now) > 0)
			continue;
		if (holding.milli == TAKT_REQUEST_WHOLE)
			takt_handover_clean(daemon, gpu);
		(void)takt_queue_holding_gone(daemon->queue, &holding, NULL);
		return true;
	}
	return false;
}

static void ask(struct takt_daemon *daemon, uint32_t gpu)
{
	daemon->watch[gpu].drain_ask_at = (struct takt_boot){0};
	takt_machine_sample(daemon->machine, gpu);
}

void takt_watch_ask_drain(struct takt_daemon *daemon, uint32_t gpu, struct takt_boot boot)
{
	const struct takt_gpu_watch *watch = &daemon->watch[gpu];

	if (watch->draining && watch->drain_ask_at.ns && watch->drain_ask_at.ns <= boot.ns)
		ask(daemon, gpu);
}

void takt_watch_keep_draining(struct takt_daemon *daemon, uint32_t gpu, const char *what,
			      struct takt_boot boot)
{
	const struct takt_queue_holding *left = find_holding(daemon, gpu, true);
	struct takt_gpu_watch *watch = &daemon->watch[gpu];
	char why[160];

	if (watch->drain_ask_at.ns == 0)
		watch->drain_ask_at =
			takt_boot_add(boot, takt_pace_ns(&looks, watch->drain_looks++));
	if (boot.ns - watch->drain_since.ns < daemon->config.drain_limit_ms * TAKT_NS_PER_MS)
		return;
	snprintf(why, sizeof(why), "set aside: job %llu has ended, but %s",
		 left ? (unsigned long long)left->job_id : 0, what);
	takt_watch_set_aside(daemon, gpu, true, why);
}

void takt_watch_check_drain(struct takt_daemon *daemon, uint32_t gpu,
			    const struct takt_gpu_reading *reading, bool outside,
			    struct takt_mono now, struct takt_boot boot)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];
	bool fresh = reading->slow_at.ns > watch->drain_since_mono.ns && !reading->lost &&
		     reading->last_rc == 0;
	const struct takt_queue_holding *left;
	char what[80];

	if (fresh && (find_holding(daemon, gpu, false) || memory_is_back(watch, reading, outside)))
		while (strike_one(daemon, gpu, reading, now))
			;
	left = find_holding(daemon, gpu, true);
	if (!left) {
		watch->draining = false;
		takt_watch_set_aside(daemon, gpu, false, "");
		return;
	}
	snprintf(what, sizeof(what), "%u of its processes or its memory are still there",
		 procs_of(daemon, reading, left, now));
	takt_watch_keep_draining(daemon, gpu, what, boot);
}

/* What it uses with no job on it. */
static void note_memory(struct takt_daemon *daemon, uint32_t gpu, const struct takt_queue_job *job)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];
	const struct takt_gpu_reading *reading;
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count; i++)
		if (holdings[i].gpu == gpu && holdings[i].job_id != job->row.id)
			return;
	watch->mem_before_known =
		takt_telemetry_latest(daemon->telemetry, gpu, takt_mono_now(daemon->sys),
				      &reading) == 0 &&
		(reading->has & TAKT_HAS_MEMORY);
	watch->mem_before_bytes = watch->mem_before_known ? reading->mem_used_bytes : 0;
	takt_drain_keep(daemon, gpu, job);
}

void takt_watch_job_placed(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		if (!(job->row.gpu_mask >> gpu & 1))
			continue;
		takt_machine_read_always(daemon->machine, gpu, true);
		note_memory(daemon, gpu, job);
	}
}

void takt_watch_drain(struct takt_daemon *daemon, uint32_t gpu)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	if (!watch->draining)
		watch->drain_since = takt_boot_now(daemon->sys);
	watch->draining = true;
	watch->mem_settled_at = (struct takt_mono){0};
	watch->drain_since_mono = takt_mono_now(daemon->sys);
	watch->drain_looks = 0;
	takt_machine_read_always(daemon->machine, gpu, true);
	ask(daemon, gpu);
}

void takt_watch_job_over(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (job->row.gpu_mask >> gpu & 1)
			takt_watch_drain(daemon, gpu);
}
