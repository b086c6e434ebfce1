/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches each GPU's samples for what the scheduler must know: a process from outside, a GPU that
 * is lost or does not answer, and whether a GPU that a job has left is clean again (the driver
 * lists no process of the job and its memory is back). One that does not get clean is set aside
 * until it does.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/gpu_orders.h"

static const uint64_t memory_slack_bytes = 64ull
					   << 20; /* the driver's own use moves by this much */
static const uint64_t settle_ns = TAKT_NS_PER_S;

/* What the process list of a sample says about one GPU. */
struct census {
	/* Processes of nobody's job, or of a job that does not hold this GPU; those that the kernel
	 * does not show (they end, or are of another pid namespace) where no job holds it. */
	uint32_t outside;
	uint32_t of_drain; /* processes of the job that has left, or already gone from the kernel */
};

static struct census take_census(struct takt_daemon *daemon, const struct takt_gpu_reading *reading,
				 uint64_t holder, uint64_t drain_job, struct takt_mono now)
{
	struct census census = {0};

	for (uint32_t i = 0; i < reading->proc_count; i++) {
		const struct takt_proc_who *who =
			takt_proc_who(daemon->procs, reading->procs[i].pid, now);

		if (drain_job && (who->gone || who->job_id == drain_job))
			census.of_drain++;
		else if (who->gone ? holder == 0 : who->job_id == 0 || who->job_id != holder)
			census.outside++;
	}
	return census;
}

static void set_outside(struct takt_daemon *daemon, uint32_t gpu, bool outside)
{
	if (daemon->watch[gpu].outside == outside)
		return;
	daemon->watch[gpu].outside = outside;
	(void)takt_queue_gpu_outside(daemon->queue, gpu, outside, NULL);
}

static void set_health(struct takt_daemon *daemon, uint32_t gpu)
{
	const struct takt_gpu_watch *watch = &daemon->watch[gpu];
	bool aside = watch->quarantined || takt_orders_is_fault(daemon->orders, gpu);
	enum takt_gpu_state state = watch->lost ? TAKT_GPU_LOST
				    : aside	? TAKT_GPU_QUARANTINED
						: TAKT_GPU_FREE;

	(void)takt_queue_gpu_health(daemon->queue, gpu, state, NULL);
}

static void set_lost(struct takt_daemon *daemon, uint32_t gpu, bool lost, const char *why)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	if (watch->lost == lost)
		return;
	watch->lost = lost;
	takt_strcpy(watch->lost_note, sizeof(watch->lost_note), lost ? why : "");
	set_health(daemon, gpu);
}

static void set_quarantined(struct takt_daemon *daemon, uint32_t gpu, bool quarantined,
			    const char *why)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	if (watch->quarantined == quarantined)
		return;
	watch->quarantined = quarantined;
	takt_strcpy(watch->aside_note, sizeof(watch->aside_note), why);
	set_health(daemon, gpu);
}

/* What was used before the job came is not known after a restart of ours, and means nothing while
 * somebody from outside takes what he needs: then memory is back when it has not moved for a while.
 */
static bool memory_is_back(struct takt_gpu_watch *watch, const struct takt_gpu_reading *reading,
			   const struct census *census)
{
	if (!(reading->has & TAKT_HAS_MEMORY))
		return true;
	if (watch->mem_before_known && census->outside == 0)
		return reading->mem_used_bytes <= watch->mem_before_bytes + memory_slack_bytes;
	if (watch->mem_settled_at.ns == 0 || reading->mem_used_bytes != watch->mem_last_bytes) {
		watch->mem_last_bytes = reading->mem_used_bytes;
		watch->mem_settled_at = reading->at;
	}
	return reading->at.ns - watch->mem_settled_at.ns >= settle_ns;
}

static void drained(struct takt_daemon *daemon, uint32_t gpu)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	watch->draining = false;
	watch->drain_job = 0;
	takt_handover_clean(daemon, gpu);
	(void)takt_queue_gpu_clean(daemon->queue, gpu, NULL);
	set_quarantined(daemon, gpu, false, "");
}

/* Not clean in time: set aside, and looked at until it is. */
static void keep_draining(struct takt_daemon *daemon, uint32_t gpu, const char *what,
			  struct takt_boot boot)
{
	const struct takt_gpu_watch *watch = &daemon->watch[gpu];
	char why[160];

	takt_machine_sample(daemon->machine, gpu);
	if (boot.ns - watch->drain_since.ns < daemon->config.drain_limit_ms * TAKT_NS_PER_MS)
		return;
	snprintf(why, sizeof(why), "set aside: job %llu has ended, but %s",
		 (unsigned long long)watch->drain_job, what);
	set_quarantined(daemon, gpu, true, why);
}

static void check_drain(struct takt_daemon *daemon, uint32_t gpu,
			const struct takt_gpu_reading *reading, const struct census *census,
			struct takt_boot boot)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];
	bool fresh = reading->slow_at.ns > watch->drain_since_mono.ns && !reading->lost &&
		     reading->last_rc == 0;
	char what[80];

	if (fresh && census->of_drain == 0 && memory_is_back(watch, reading, census)) {
		drained(daemon, gpu);
		return;
	}
	snprintf(what, sizeof(what), "%u of its processes or its memory are still there",
		 census->of_drain);
	keep_draining(daemon, gpu, what, boot);
}

/* A GPU that fell off the bus under a job is not given out again before somebody has looked. */
static void note_fault(struct takt_daemon *daemon, uint32_t gpu)
{
	char why[120];
	uint64_t job;

	takt_queue_gpu(daemon->queue, gpu, &job);
	if (!job || daemon->watch[gpu].draining)
		return;
	snprintf(why, sizeof(why), "the driver lost it while job %llu used it",
		 (unsigned long long)job);
	takt_orders_fault(daemon->orders, gpu, why);
}

bool takt_watch_known(const struct takt_daemon *daemon, uint32_t gpu)
{
	return takt_machine_facts(daemon->machine, gpu)->has & TAKT_FACT_UUID;
}

static void watch_gpu(struct takt_daemon *daemon, uint32_t gpu, struct takt_mono now,
		      struct takt_boot boot)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];
	const struct takt_gpu_reading *reading;
	struct census census;
	uint64_t holder;

	if (!takt_watch_known(daemon, gpu)) {
		set_lost(daemon, gpu, true,
			 "it did not say what it is when takt started; start takt again when it "
			 "answers");
		return;
	}
	if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) < 0) {
		set_lost(daemon, gpu, true, "the driver has not answered for this GPU yet");
		return;
	}
	if (reading->lost && !watch->lost)
		note_fault(daemon, gpu);
	set_lost(daemon, gpu, reading->lost || reading->stale,
		 reading->lost ? "the driver has lost this GPU"
			       : "the driver does not answer for this GPU");
	if (reading->seq == watch->seq_seen) {
		if (watch->draining)
			takt_machine_sample(daemon->machine, gpu);
		return;
	}
	watch->seq_seen = reading->seq;
	if (!(reading->has & TAKT_HAS_PROCS)) {
		if (watch->draining)
			keep_draining(daemon, gpu, "the driver does not list its processes", boot);
		return;
	}
	takt_queue_gpu(daemon->queue, gpu, &holder);
	census = take_census(daemon, reading, holder, watch->drain_job, now);
	set_outside(daemon, gpu, census.outside > 0);
	if (census.outside && holder)
		takt_telemetry_account_shared(daemon->telemetry, holder);
	if (watch->draining)
		check_drain(daemon, gpu, reading, &census, boot);
}

void takt_watch_health(struct takt_daemon *daemon)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		set_health(daemon, gpu);
}

const char *takt_watch_note(const struct takt_daemon *daemon, uint32_t gpu)
{
	const struct takt_gpu_watch *watch = &daemon->watch[gpu];

	return watch->lost ? watch->lost_note : watch->aside_note;
}

void takt_watch_tick(struct takt_daemon *daemon, struct takt_mono now, struct takt_boot boot)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		watch_gpu(daemon, gpu, now, boot);
}

void takt_watch_job_placed(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	const struct takt_gpu_reading *reading;
	struct takt_mono now = takt_mono_now(daemon->sys);

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_gpu_watch *watch = &daemon->watch[gpu];

		if (!(job->row.gpu_mask >> gpu & 1))
			continue;
		watch->mem_before_known =
			takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) == 0 &&
			(reading->has & TAKT_HAS_MEMORY);
		watch->mem_before_bytes = watch->mem_before_known ? reading->mem_used_bytes : 0;
	}
}

void takt_watch_job_over(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_gpu_watch *watch = &daemon->watch[gpu];

		if (!(job->row.gpu_mask >> gpu & 1))
			continue;
		watch->draining = true;
		watch->drain_job = job->row.id;
		watch->mem_settled_at = (struct takt_mono){0};
		watch->drain_since = takt_boot_now(daemon->sys);
		watch->drain_since_mono = takt_mono_now(daemon->sys);
		takt_machine_sample(daemon->machine, gpu);
	}
}
