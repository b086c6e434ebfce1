/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical event log: the shortest list of events that leads to the present state. That a GPU
 * drains is told as a fact of its own and not through the job that left it: such a job holds no GPU
 * any more, and another may long run on those that are clean again.
 */
#include "sched/sched_state.h"

struct writer {
	int (*emit)(void *ctx, const struct takt_sched_event *event);
	void *ctx;
};

static int emit(const struct writer *writer, const struct takt_sched_event *event)
{
	return writer->emit(writer->ctx, event);
}

static int emit_gpu(const struct writer *writer, const struct takt_sched_host *host, uint32_t gpu)
{
	uint64_t bit = UINT64_C(1) << gpu;
	struct takt_sched_event event = {.node_id = host->id, .gpu = gpu};
	int rc = 0;

	if ((host->quarantined | host->lost) & bit) {
		event.kind = TAKT_SCHED_GPU_HEALTH;
		event.state = host->lost & bit ? TAKT_GPU_LOST : TAKT_GPU_QUARANTINED;
		rc = emit(writer, &event);
	}
	if (rc >= 0 && host->outside & bit) {
		event = (struct takt_sched_event){.kind = TAKT_SCHED_GPU_OUTSIDE,
						  .node_id = host->id,
						  .gpu = gpu,
						  .outside = true};
		rc = emit(writer, &event);
	}
	if (rc >= 0 && host->draining & bit) {
		event = (struct takt_sched_event){.kind = TAKT_SCHED_GPU_DRAINING,
						  .node_id = host->id,
						  .gpu = gpu,
						  .job_id = host->gpu_job[gpu]};
		rc = emit(writer, &event);
	}
	return rc;
}

static int emit_host(const struct writer *writer, const struct takt_sched_host *host)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_NODE_ADD,
		.node = {.id = host->id,
			 .gpu_count = host->gpu_count,
			 .pair_score = host->pair_score},
	};
	int rc = emit(writer, &event);

	for (uint32_t gpu = 0; rc >= 0 && gpu < host->gpu_count; gpu++)
		rc = emit_gpu(writer, host, gpu);
	return rc;
}

static int emit_job(const struct writer *writer, const struct takt_sched_entry *entry)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_ADD, .job = entry->job};
	int rc = emit(writer, &event);

	event = (struct takt_sched_event){.job_id = entry->job.id};
	if (rc >= 0 && entry->host) {
		event.kind = TAKT_SCHED_JOB_PLACED;
		event.node_id = entry->host->id;
		event.gpu_mask = entry->gpu_mask;
		rc = emit(writer, &event);
	}
	event = (struct takt_sched_event){.job_id = entry->job.id};
	if (rc >= 0 && entry->phase == TAKT_SCHED_RUNNING) {
		event.kind = TAKT_SCHED_JOB_RUNNING;
		rc = emit(writer, &event);
	}
	if (rc >= 0 && entry->phase == TAKT_SCHED_DRAINING) {
		event.kind = TAKT_SCHED_JOB_DRAINING;
		rc = emit(writer, &event);
	}
	return rc;
}

static int emit_removal(const struct writer *writer, const struct takt_sched_host *host)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_NODE_REMOVE, .node_id = host->id};

	return host->removed ? emit(writer, &event) : 0;
}

int takt_sched_snapshot(const struct takt_sched *sched,
			int (*emit_event)(void *ctx, const struct takt_sched_event *event),
			void *ctx)
{
	struct writer writer = {emit_event, ctx};
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < sched->hosts.len; i++)
		rc = emit_host(&writer, sched->hosts.at[i]);
	for (size_t i = 0; rc >= 0 && i < sched->jobs.len; i++)
		rc = emit_job(&writer, sched->jobs.at[i]);
	for (size_t i = 0; rc >= 0 && i < sched->hosts.len; i++)
		rc = emit_removal(&writer, sched->hosts.at[i]);
	return rc < 0 ? rc : 0;
}
