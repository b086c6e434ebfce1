/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU loses between two jobs, in three parts. The driver's: from the end of a job until its
 * GPU is seen clean. The scheduler's: from there until the start of the next job is with the
 * engine, where a job was waiting that could have the GPU (the first plan after it was clean gave
 * it out); a GPU that nobody could use is idle, which is not the scheduler's doing. What is
 * left of the gap is the start: from there until the process of the job is about to become its
 * program; of a staged job that is a word to a process that waits.
 */
#include "daemon/daemon.h"

static uint64_t since(uint64_t from_ns, uint64_t now_ns)
{
	return now_ns > from_ns ? now_ns - from_ns : 0;
}

void takt_handover_clean(struct takt_daemon *daemon, uint32_t gpu)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	watch->clean_at = takt_boot_now(daemon->sys);
	daemon->handover.drains++;
	watch->drained_ns = since(watch->drain_since.ns, watch->clean_at.ns);
	daemon->handover.driver_ns += watch->drained_ns;
}

/* The newest clean GPU of the job was what it waited for: the others keep no mark. */
void takt_handover_placed(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	struct takt_gpu_watch *newest = NULL;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_gpu_watch *watch = &daemon->watch[gpu];

		if (!(job->row.gpu_mask >> gpu & 1))
			continue;
		watch->taken_at = (struct takt_boot){0};
		watch->gap = (struct takt_handover_gap){0};
		if (watch->clean_at.ns && (!newest || watch->clean_at.ns > newest->clean_at.ns))
			newest = watch;
	}
	if (!newest)
		return;
	newest->taken_at = newest->clean_at;
	newest->gap.job_id = job->row.id;
	newest->gap.driver_ns = newest->drained_ns;
}

void takt_handover_planned(struct takt_daemon *daemon)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		daemon->watch[gpu].clean_at = (struct takt_boot){0};
}

void takt_handover_started(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_gpu_watch *watch = &daemon->watch[gpu];

		if (!(job->row.gpu_mask >> gpu & 1) || watch->taken_at.ns == 0)
			continue;
		daemon->handover.starts++;
		watch->gap.given_at = takt_boot_now(daemon->sys);
		watch->gap.scheduler_ns = since(watch->taken_at.ns, watch->gap.given_at.ns);
		daemon->handover.scheduler_ns += watch->gap.scheduler_ns;
		watch->taken_at = (struct takt_boot){0};
	}
}

void takt_handover_running(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_handover_gap *gap = &daemon->watch[gpu].gap;

		if (gap->job_id != job->row.id || gap->given_at.ns == 0 || gap->complete ||
		    job->started_boot.ns == 0)
			continue;
		gap->start_ns = since(gap->given_at.ns, job->started_boot.ns);
		gap->complete = true;
		daemon->handover.processes++;
		daemon->handover.start_ns += gap->start_ns;
	}
}

const struct takt_handover_gap *takt_handover_of(const struct takt_daemon *daemon, uint64_t job_id,
						 uint64_t gpu_mask)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (gpu_mask >> gpu & 1 && daemon->watch[gpu].gap.job_id == job_id &&
		    daemon->watch[gpu].gap.complete)
			return &daemon->watch[gpu].gap;
	return NULL;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)TAKT_NS_PER_S;
}

void takt_handover_update_page(struct takt_daemon *daemon)
{
	const struct takt_handover *handover = &daemon->handover;
	const struct {
		const char *name, *help;
		double value;
	} rows[] = {
		{"takt_handover_driver_seconds_total",
		 "Time from the end of a job until the driver showed its GPU clean, all GPUs "
		 "together.",
		 seconds(handover->driver_ns)},
		{"takt_handover_drains_total", "GPUs that were seen clean after a job.",
		 (double)handover->drains},
		{"takt_handover_scheduler_seconds_total",
		 "Time from a clean GPU until the waiting job that got it was given to the engine.",
		 seconds(handover->scheduler_ns)},
		{"takt_handover_starts_total",
		 "Jobs that waited for a GPU to become clean and got it.",
		 (double)handover->starts},
		{"takt_handover_start_seconds_total",
		 "Time from there until the job's process was recorded as started.",
		 seconds(handover->start_ns)},
		{"takt_handover_processes_total", "Jobs of those whose process was started.",
		 (double)handover->processes},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		takt_telemetry_gauge(daemon->telemetry, rows[i].name, rows[i].help, true,
				     rows[i].value);
}
