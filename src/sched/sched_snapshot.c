/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical event log: the shortest list of events that leads to the present state. That a GPU
 * drains is told as a fact of its own and not through the job that left it: such a job holds no GPU
 * any more, and another may long run on those that are clean again. Books of tenants come last,
 * since jobs that are placed move them.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/sched_state.h"

struct writer {
	const struct takt_sched *sched;
	int (*emit)(void *ctx, const struct takt_sched_event *event);
	void *ctx;
};

static int emit(const struct writer *writer, struct takt_sched_event event)
{
	return writer->emit(writer->ctx, &event);
}

static int emit_words(const struct writer *writer)
{
	const struct takt_sched *sched = writer->sched;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < sched->models.len; i++)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_MODEL,
							    .model = &sched->models.at[i]});
	for (uint32_t space = 0; space < TAKT_SPACE_COUNT; space++)
		for (uint32_t i = 0; rc >= 0 && i < sched->names[space].len; i++)
			rc = emit(writer,
				  (struct takt_sched_event){.kind = TAKT_SCHED_NAME,
							    .space = (enum takt_sched_space)space,
							    .name_id = i + 1,
							    .name = sched->names[space].at[i]});
	for (size_t i = 0; rc >= 0 && i < sched->selectors.len; i++)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_SELECTOR,
							    .selector = &sched->selectors.at[i]});
	for (size_t i = 0; rc >= 0 && i < sched->workloads.len; i++)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_WORKLOAD,
							    .workload = &sched->workloads.at[i]});
	for (size_t i = 0; rc >= 0 && i < sched->outlooks.len; i++)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_OUTLOOK,
							    .outlook = sched->outlooks.at[i]});
	return rc;
}

/* Those below `parent`, by id, each followed by those below it. */
static int emit_tenants(const struct writer *writer, uint32_t parent)
{
	const struct takt_tenants *tenants = writer->sched->tenants;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < takt_tenants_count(tenants); i++) {
		const struct takt_tenant *tenant = takt_tenants_at(tenants, i);

		if (tenant->parent != parent)
			continue;
		rc = emit(writer,
			  (struct takt_sched_event){.kind = TAKT_SCHED_TENANT, .tenant = tenant});
		if (rc >= 0)
			rc = emit_tenants(writer, tenant->id);
	}
	return rc;
}

static int emit_books(const struct writer *writer)
{
	const struct takt_tenants *tenants = writer->sched->tenants;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < takt_tenants_count(tenants); i++) {
		struct takt_sched_event event = {
			.kind = TAKT_SCHED_TENANT_USAGE,
			.tenant_id = takt_tenants_at(tenants, i)->id,
		};

		takt_tenants_books(tenants, event.tenant_id, &event.usage, &event.at_ns);
		if (event.usage > 0 || event.at_ns > 0)
			rc = emit(writer, event);
	}
	return rc;
}

static int emit_gpu(const struct writer *writer, const struct takt_sched_host *host, uint32_t gpu)
{
	uint64_t bit = UINT64_C(1) << gpu;
	struct takt_sched_event event = {.node_id = host->id, .gpu = gpu};
	int rc = 0;

	if ((host->quarantined | host->lost) & bit) {
		event.kind = TAKT_SCHED_GPU_HEALTH;
		event.state = host->lost & bit ? TAKT_GPU_LOST : TAKT_GPU_QUARANTINED;
		rc = emit(writer, event);
	}
	if (rc >= 0 && host->outside & bit)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_GPU_OUTSIDE,
							    .node_id = host->id,
							    .gpu = gpu,
							    .outside = true});
	if (rc >= 0 && host->draining & bit)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_GPU_DRAINING,
							    .node_id = host->id,
							    .gpu = gpu,
							    .job_id = host->gpu_job[gpu]});
	return rc;
}

static int emit_host(const struct writer *writer, const struct takt_sched_host *host)
{
	int rc = emit(writer,
		      (struct takt_sched_event){.kind = TAKT_SCHED_NODE_ADD, .node = host->facts});

	for (uint32_t gpu = 0; rc >= 0 && gpu < host->gpu_count; gpu++)
		rc = emit_gpu(writer, host, gpu);
	if (rc >= 0 && host->cordoned)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_CORDON,
							    .node_id = host->id,
							    .outside = true});
	return rc;
}

static int emit_failures(const struct writer *writer, const struct takt_sched_flap *flap)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < flap->count; i++)
		rc = emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_FAILED,
							    .node_id = flap->node_id,
							    .at_ns = flap->at_ns[i]});
	return rc;
}

static int emit_placed(const struct writer *writer, const struct takt_sched_entry *entry)
{
	const struct takt_sched *sched = writer->sched;
	TAKT_CLEANUP(freep)
	struct takt_sched_slot *slots = takt_calloc(entry->slot_count, sizeof(*slots));
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_PLACED,
		.job_id = entry->job.id,
		.at_ns = entry->since_ns,
		.slots = slots,
		.slot_count = entry->slot_count,
	};

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < entry->slot_count; i++) {
		const struct takt_slot *slot = &entry->slots[i];

		slots[i] = (struct takt_sched_slot){
			.node_id = sched->host_of.at[slot->node]->id,
			.milli = slot->milli == TAKT_REQUEST_WHOLE ? 0 : slot->milli,
			.mig_start = slot->mig_start,
			.gpu_mask = slot->dev_mask,
		};
	}
	if (entry->slot_count == 1 && slots[0].milli == 0 && slots[0].mig_start == 0) {
		event.node_id = slots[0].node_id;
		event.gpu_mask = slots[0].gpu_mask;
		event.slots = NULL;
		event.slot_count = 0;
	}
	return emit(writer, event);
}

static int emit_job(const struct writer *writer, const struct takt_sched_entry *entry)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_ADD, .at_ns = entry->since_ns, .job = entry->job};
	int rc;

	event.job.attained_gpu_ms = entry->attained_gpu_ms;
	event.job.ran_ns = entry->ran_ns;
	event.job.waited_ns = entry->waited_ns;
	rc = emit(writer, event);
	if (rc >= 0 && takt_sched_is_placed(entry))
		rc = emit_placed(writer, entry);
	event = (struct takt_sched_event){.job_id = entry->job.id, .at_ns = entry->since_ns};
	if (rc >= 0 && entry->phase == TAKT_SCHED_RUNNING) {
		event.kind = TAKT_SCHED_JOB_RUNNING;
		rc = emit(writer, event);
	}
	if (rc >= 0 && entry->phase == TAKT_SCHED_DRAINING) {
		event.kind = TAKT_SCHED_JOB_DRAINING;
		rc = emit(writer, event);
	}
	event.at_ns = entry->checkpoint_ns;
	if (rc >= 0 && takt_sched_is_placed(entry) && entry->checkpoint_ns > 0) {
		event.kind = TAKT_SCHED_JOB_CHECKPOINT;
		rc = emit(writer, event);
	}
	return rc;
}

static int by_seq(const void *a, const void *b, void *ctx)
{
	const struct takt_sched_job *x = &(*(struct takt_sched_entry *const *)a)->job;
	const struct takt_sched_job *y = &(*(struct takt_sched_entry *const *)b)->job;

	(void)ctx;
	return (x->submit_seq > y->submit_seq) - (x->submit_seq < y->submit_seq);
}

static int emit_jobs(const struct writer *writer)
{
	const struct takt_sched *sched = writer->sched;
	TAKT_CLEANUP(freep)
	struct takt_sched_entry **jobs =
		takt_calloc(sched->jobs.len, sizeof(struct takt_sched_entry *));
	int rc;

	if (!jobs)
		return -ENOMEM;
	if (sched->jobs.len > 0)
		memcpy(jobs, sched->jobs.at, sched->jobs.len * sizeof(struct takt_sched_entry *));
	rc = takt_sort(jobs, sched->jobs.len, sizeof(*jobs), by_seq, NULL);
	for (size_t i = 0; rc >= 0 && i < sched->jobs.len; i++)
		rc = emit_job(writer, jobs[i]);
	return rc;
}

static int emit_removal(const struct writer *writer, const struct takt_sched_host *host)
{
	return host->removed
		       ? emit(writer, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_REMOVE,
								.node_id = host->id})
		       : 0;
}

int takt_sched_snapshot(const struct takt_sched *sched,
			int (*emit_event)(void *ctx, const struct takt_sched_event *event),
			void *ctx)
{
	struct writer writer = {sched, emit_event, ctx};
	int rc = emit_words(&writer);

	if (rc >= 0)
		rc = emit_tenants(&writer, TAKT_TENANT_ROOT);
	for (size_t i = 0; rc >= 0 && i < sched->hosts.len; i++)
		rc = emit_host(&writer, sched->hosts.at[i]);
	for (size_t i = 0; rc >= 0 && i < sched->flaps.len; i++)
		rc = emit_failures(&writer, &sched->flaps.at[i]);
	for (size_t i = 0; rc >= 0 && i < sched->windows.len; i++)
		rc = emit(&writer, (struct takt_sched_event){.kind = TAKT_SCHED_WINDOW_ADD,
							     .window = &sched->windows.at[i]});
	if (rc >= 0)
		rc = emit_jobs(&writer);
	if (rc >= 0)
		rc = emit_books(&writer);
	for (size_t i = 0; rc >= 0 && i < sched->hosts.len; i++)
		rc = emit_removal(&writer, sched->hosts.at[i]);
	return rc < 0 ? rc : 0;
}
