/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs use of the GPUs that they share, by the driver's list of processes. Their energy is not
 * told: the board's counter is everybody's. Their memory is their own processes', held against what
 * they have reserved: who takes more than that is told so, once, and nothing is done to him.
 */
#include <stdio.h>

#include "base/timetext.h"
#include "daemon/daemon.h"
#include "daemon/gpu_watch.h"

/* False where the driver does not say it of each process. */
static bool memory_of(struct takt_daemon *daemon, const struct takt_gpu_reading *reading,
		      const struct takt_queue_holding *holding, struct takt_mono now,
		      uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	for (uint32_t i = 0; i < reading->proc_count; i++) {
		const struct takt_gpu_proc *proc = &reading->procs[i];
		const struct takt_proc_who *who = takt_proc_who(daemon->procs, proc->pid, now);

		if (who->job_id != holding->job_id || who->attempt != holding->attempt)
			continue;
		if (!proc->memory_known)
			return false;
		*ret_bytes += proc->memory_bytes;
	}
	return true;
}

static void warn(struct takt_daemon *daemon, const struct takt_queue_holding *holding,
		 uint64_t bytes)
{
	struct takt_gpu_watch *watch = &daemon->watch[holding->gpu];
	char text[160];

	snprintf(text, sizeof(text),
		 "uses %llu MiB of GPU %u, more than the %u MiB that it has reserved",
		 (unsigned long long)(bytes >> 20), holding->gpu, holding->mem_mib);
	takt_queue_remark(daemon->queue, holding->job_id, text);
	snprintf(watch->over_note, sizeof(watch->over_note), "job %llu %s",
		 (unsigned long long)holding->job_id, text);
}

static void look_at(struct takt_daemon *daemon, const struct takt_gpu_reading *reading,
		    const struct takt_queue_holding *holding, struct takt_mono now)
{
	uint64_t bytes;

	if (!memory_of(daemon, reading, holding, now, &bytes))
		return;
	takt_telemetry_account_own_memory(daemon->telemetry, holding->job_id, bytes);
	if (holding->mem_mib && bytes > (uint64_t)holding->mem_mib << 20)
		warn(daemon, holding, bytes);
}

static uint32_t count_on(const struct takt_queue_holding *holdings, size_t count, uint32_t gpu)
{
	uint32_t on = 0;

	for (size_t i = 0; i < count; i++)
		on += holdings[i].gpu == gpu;
	return on;
}

void takt_watch_shares(struct takt_daemon *daemon, uint32_t gpu,
		       const struct takt_gpu_reading *reading, bool outside, struct takt_mono now)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);
	bool shared = outside || count_on(holdings, count, gpu) > 1;

	daemon->watch[gpu].over_note[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (holdings[i].gpu != gpu || holdings[i].left)
			continue;
		if (shared)
			takt_telemetry_account_shared(daemon->telemetry, holdings[i].job_id);
		if (holdings[i].milli < TAKT_REQUEST_WHOLE)
			look_at(daemon, reading, &holdings[i], now);
	}
}
