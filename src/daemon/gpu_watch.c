/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches each GPU's samples for what the scheduler must know: a process from outside, a GPU that
 * is lost or does not answer, and whether one that a job has left is clean again (gpu_drain.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/gpu_mig.h"
#include "daemon/gpu_orders.h"
#include "daemon/gpu_watch.h"

/* Whether the job, or any with 0, has the GPU or has not left it behind clean. */
static bool holds(const struct takt_daemon *daemon, uint32_t gpu, uint64_t job_id)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count; i++)
		if (holdings[i].gpu == gpu && (job_id == 0 || holdings[i].job_id == job_id))
			return true;
	return false;
}

/* Processes of nobody's job, or of a job that does not hold this GPU; those that the kernel does
 * not show (they end, or are of another pid namespace) where no job holds it. */
static uint32_t count_outside(struct takt_daemon *daemon, uint32_t gpu,
			      const struct takt_gpu_reading *reading, struct takt_mono now)
{
	uint32_t outside = 0;

	for (uint32_t i = 0; i < reading->proc_count; i++) {
		const struct takt_proc_who *who =
			takt_proc_who(daemon->procs, reading->procs[i].pid, now);
		bool known = who->job_id || who->gone;

		outside += !known || !holds(daemon, gpu, who->job_id);
	}
	return outside;
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
	bool aside = watch->quarantined || watch->ill ||
		     (daemon->orders && takt_orders_is_fault(daemon->orders, gpu));
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

void takt_watch_set_aside(struct takt_daemon *daemon, uint32_t gpu, bool aside, const char *why)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	if (watch->quarantined == aside)
		return;
	watch->quarantined = aside;
	takt_strcpy(watch->aside_note, sizeof(watch->aside_note), why);
	set_health(daemon, gpu);
}

void takt_watch_set_ill(struct takt_daemon *daemon, uint32_t gpu, bool ill, const char *why)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	takt_strcpy(watch->ill_note, sizeof(watch->ill_note), ill ? why : "");
	if (watch->ill == ill)
		return;
	watch->ill = ill;
	set_health(daemon, gpu);
}

/* A GPU that fell off the bus under a job is not given out again before somebody has looked. */
static void note_fault(struct takt_daemon *daemon, uint32_t gpu)
{
	char why[120];
	uint64_t job;

	takt_queue_gpu(daemon->queue, gpu, &job);
	if (!job || daemon->watch[gpu].draining || !daemon->orders)
		return;
	snprintf(why, sizeof(why), "the driver lost it while job %llu used it",
		 (unsigned long long)job);
	takt_orders_fault(daemon->orders, gpu, why);
}

bool takt_watch_known(const struct takt_daemon *daemon, uint32_t gpu)
{
	return takt_machine_facts(daemon->machine, gpu)->has & TAKT_FACT_UUID;
}

bool takt_watch_asleep(const struct takt_daemon *daemon, uint32_t gpu)
{
	const struct takt_gpu_reading *reading;

	return takt_telemetry_latest(daemon->telemetry, gpu, takt_mono_now(daemon->sys),
				     &reading) == 0 &&
	       reading->asleep;
}

/* Whether takt's clocks or limits are on it, or wait to be. */
static bool is_changed(const struct takt_daemon *daemon, uint32_t gpu)
{
	struct takt_lease_state lease;

	takt_leases_state(daemon->leases, gpu, &lease);
	return lease.job_id || lease.cap_power_mw || lease.power_mw ||
	       strcmp(lease.state, "leased") == 0 || strcmp(lease.state, "changed") == 0 ||
	       strcmp(lease.state, "waiting") == 0;
}

/* What takt answers for is looked at whether it sleeps or not, and so is what is not well: only
 * readings show that it has become so. */
static bool is_read_always(const struct takt_daemon *daemon, uint32_t gpu)
{
	const struct takt_gpu_watch *watch = &daemon->watch[gpu];

	return watch->draining || watch->ill || watch->quarantined || watch->lost ||
	       holds(daemon, gpu, 0) || is_changed(daemon, gpu) ||
	       takt_machine_facts(daemon->machine, gpu)->mig_enabled;
}

static void watch_gpu(struct takt_daemon *daemon, uint32_t gpu, struct takt_mono now,
		      struct takt_boot boot)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];
	const struct takt_gpu_reading *reading;
	bool outside;

	takt_machine_read_always(daemon->machine, gpu, is_read_always(daemon, gpu));
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
	takt_watch_ask_drain(daemon, gpu, boot);
	if (reading->seq == watch->seq_seen)
		return;
	watch->seq_seen = reading->seq;
	if (!(reading->has & TAKT_HAS_PROCS)) {
		if (watch->draining)
			takt_watch_keep_draining(daemon, gpu,
						 "the driver does not list its processes", boot);
		return;
	}
	outside = count_outside(daemon, gpu, reading, now) > 0;
	set_outside(daemon, gpu, outside || takt_mig_waits(daemon->mig, gpu));
	takt_watch_shares(daemon, gpu, reading, outside, now);
	if (watch->draining)
		takt_watch_check_drain(daemon, gpu, reading, outside, now, boot);
	else if (!holds(daemon, gpu, 0))
		takt_drain_forget(daemon, gpu);
}

void takt_watch_health(struct takt_daemon *daemon)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		set_health(daemon, gpu);
}

const char *takt_watch_note(const struct takt_daemon *daemon, uint32_t gpu)
{
	const struct takt_gpu_watch *watch = &daemon->watch[gpu];

	return watch->lost ? watch->lost_note : watch->ill ? watch->ill_note : watch->aside_note;
}

struct takt_boot takt_watch_due(const struct takt_daemon *daemon)
{
	struct takt_boot due = {UINT64_MAX};

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_watch *watch = &daemon->watch[gpu];

		if (watch->draining && watch->drain_ask_at.ns && watch->drain_ask_at.ns < due.ns)
			due = watch->drain_ask_at;
	}
	return due;
}

void takt_watch_clocks(const struct takt_daemon *daemon, uint32_t gpu, struct takt_lease_state *ret)
{
	const struct takt_gpu_watch *watch = &daemon->watch[gpu];

	takt_leases_state(daemon->leases, gpu, ret);
	if (!watch->lost || strcmp(ret->state, "clean") != 0)
		return;
	ret->state = "unknown";
	takt_strcpy(ret->note, sizeof(ret->note), watch->lost_note);
}

void takt_watch_tick(struct takt_daemon *daemon, struct takt_mono now, struct takt_boot boot)
{
	takt_mig_tick(daemon->mig, boot);
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		watch_gpu(daemon, gpu, now, boot);
}
