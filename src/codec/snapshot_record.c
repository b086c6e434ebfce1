/* SPDX-License-Identifier: Apache-2.0 */
/* Between events and records. What is zero in an event is left out of its record. */
#include "codec/snapshot_record.h"

#include <string.h>

#include "base/mem.h"

static bool has_spec(enum takt_sched_event_kind kind)
{
	return kind == TAKT_SCHED_JOB_ADD || kind == TAKT_SCHED_JOB_CHANGE;
}

void takt_record_clear(struct takt_record *record)
{
	takt_shape_release(&takt_record_shape, record);
	memset(record, 0, offsetof(struct takt_record, pair_score));
}

static void copy_matrix(int32_t *to, size_t to_row, const int32_t *from, size_t from_row,
			uint32_t n)
{
	for (uint32_t row = 0; row < n; row++)
		memmove(to + row * to_row, from + row * from_row, n * sizeof(*to));
}

static bool any_of(const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		if (at[i])
			return true;
	return false;
}

static void from_node(const struct takt_sched_node *node, struct takt_record *ret)
{
	ret->node_id = node->id;
	ret->gpu_count = ret->gpus = node->gpu_count;
	ret->has |= node->pair_score || node->gpu_count == 0 ? TAKT_HAS_PAIR_SCORE : TAKT_HAS_GPUS;
	if (node->pair_score)
		copy_matrix(ret->pair_score, TAKT_SCHED_MAX_NODE_GPUS, node->pair_score,
			    node->gpu_count, node->gpu_count);
	ret->machine = (struct takt_record_machine){
		.cpu_milli = node->cpu_milli,
		.mem_mib = node->mem_mib,
		.gpu_mem_mib = node->dev_mem_mib,
		.model = node->model,
		.mig = node->mig_mask,
	};
	for (uint32_t i = 0; i < TAKT_SCHED_LEVELS; i++) {
		ret->machine.domain[i] = node->domain[i];
		if (node->domain[i])
			ret->machine.domain_count = i + 1;
	}
	ret->machine.each_mem_count = node->each_mem_mib ? node->gpu_count : 0;
	for (uint32_t i = 0; i < ret->machine.each_mem_count; i++)
		ret->machine.each_mem_mib[i] = node->each_mem_mib[i];
	ret->machine.numa_count = node->numa ? node->gpu_count : 0;
	for (uint32_t i = 0; i < ret->machine.numa_count; i++)
		ret->machine.numa[i] = node->numa[i];
	ret->machine.is_cut = node->mig_cut != 0;
	ret->machine.mig_cut = node->mig_cut;
	ret->machine.mig_layout_count = node->mig_cut ? node->gpu_count * TAKT_SCHED_MIG_SLICES : 0;
	for (uint32_t i = 0; i < ret->machine.mig_layout_count; i++)
		ret->machine.mig_layout[i] = node->mig_layout[i];
	if (any_of(&ret->machine, sizeof(ret->machine)))
		ret->has |= TAKT_HAS_MACHINE;
	ret->labels = (uint32_t *)node->labels;
	ret->taints = (uint32_t *)node->taints;
	ret->label_count = node->label_count;
	ret->taint_count = node->taint_count;
	ret->has |= (node->label_count ? TAKT_HAS_LABELS : 0) |
		    (node->taint_count ? TAKT_HAS_TAINTS : 0);
}

static void from_layout(const struct takt_sched_event *event, struct takt_record_machine *ret)
{
	ret->is_cut = true;
	ret->mig_cut = UINT64_C(1) << event->gpu;
	ret->mig_layout_count = TAKT_SCHED_MIG_SLICES;
	for (uint32_t i = 0; i < TAKT_SCHED_MIG_SLICES; i++)
		ret->mig_layout[i] = event->layout[i];
}

static void from_ask(const struct takt_sched_job *job, struct takt_record_ask *ret)
{
	const struct takt_request *task = &job->task;

	*ret = (struct takt_record_ask){
		.milli = task->milli,
		.gpu_mem_mib = task->dev_mem_mib,
		.mig_profile = task->mig_profile,
		.selector = task->selector,
		.max_per_node = task->max_per_node,
		.cpu_milli = task->cpu_milli,
		.mem_mib = task->mem_mib,
		.models = task->model_mask,
		.gpu_indices = task->only_devices,
		.one_numa = task->flags & TAKT_REQUEST_ONE_NUMA,
		.preemptible = job->flags & TAKT_JOB_PREEMPTIBLE,
		.movable = job->flags & TAKT_JOB_MOVABLE,
		.clean_end = job->flags & TAKT_JOB_CLEAN_END,
		.tasks = job->tasks,
		.min_tasks = job->min_tasks,
		.level = job->level,
		.topology = job->topology,
		.tenant = job->tenant,
		.workload = job->workload,
		.outlook = job->outlook,
		.submit_ns = job->submit_ns,
		.estimate_ns = job->estimate_ns,
		.deadline_ns = job->deadline_ns,
		.earliest_start_ns = job->earliest_start_ns,
		.min_runtime_ns = job->min_runtime_ns,
		.on_failure = job->on_failure,
		.array = job->array,
		.array_limit = job->array_limit,
		.group = job->group,
		.near_group = job->near_group,
		.near_level = job->near_level,
		.apart_group = job->apart_group,
		.apart_level = job->apart_level,
		.attained_gpu_ms = job->attained_gpu_ms,
		.ran_ns = job->ran_ns,
		.waited_ns = job->waited_ns,
		.owner = job->owner,
		.done_ns = job->done_ns,
	};
}

static void from_job(const struct takt_sched_job *job, struct takt_record *ret)
{
	static const struct takt_record_ask nothing;

	ret->job_id = job->id;
	ret->submit_seq = job->submit_seq;
	ret->priority = job->priority;
	ret->gpus = job->gpus;
	ret->use_outside = job->flags & TAKT_JOB_USE_OUTSIDE;
	ret->held = job->flags & TAKT_JOB_HELD;
	memset(&ret->ask, 0, sizeof(ret->ask));
	from_ask(job, &ret->ask);
	ret->after = (struct takt_sched_after *)job->after;
	ret->after_count = job->after_count;
	ret->has |= (ret->use_outside ? TAKT_HAS_USE_OUTSIDE : 0) |
		    (ret->held ? TAKT_HAS_HELD : 0) | (job->after_count ? TAKT_HAS_AFTER : 0) |
		    (memcmp(&ret->ask, &nothing, sizeof(nothing)) != 0 ? TAKT_HAS_ASK : 0);
}

static void from_slots(const struct takt_sched_event *event, struct takt_record_slot *slots,
		       struct takt_record *ret)
{
	for (uint32_t i = 0; i < event->slot_count; i++)
		slots[i] = (struct takt_record_slot){
			.node_id = event->slots[i].node_id,
			.gpu_mask = event->slots[i].gpu_mask,
			.milli = event->slots[i].milli,
			.mig_start = event->slots[i].mig_start,
		};
	ret->slots = slots;
	ret->slot_count = event->slot_count;
	if (event->kind == TAKT_SCHED_JOB_PLACED)
		ret->has |= event->slot_count ? TAKT_HAS_SLOTS : TAKT_HAS_NODE | TAKT_HAS_GPU_MASK;
}

static void from_outlook(const struct takt_sched_outlook *outlook, struct takt_record_outlook *ret)
{
	ret->id = outlook->id;
	ret->mean_s = outlook->is.mean_s;
	ret->age_count = ret->rank_count = outlook->is.steps;
	memcpy(ret->age_s, outlook->is.age_s, sizeof(ret->age_s));
	memcpy(ret->rank_s, outlook->is.rank_s, sizeof(ret->rank_s));
}

static void from_facts(const struct takt_sched_event *event, struct takt_record *ret)
{
	ret->usage[0] = (uint32_t)(event->usage >> 32);
	ret->usage[1] = (uint32_t)event->usage;
	ret->usage_count = 2;
	ret->word.space = event->space;
	ret->word.id = event->name_id;
	if (event->kind == TAKT_SCHED_NAME)
		(void)takt_strcpy(ret->word.name, sizeof(ret->word.name), event->name);
	if (event->kind == TAKT_SCHED_MODEL)
		ret->model = *event->model;
	if (event->kind == TAKT_SCHED_SELECTOR)
		ret->selector = *event->selector;
	if (event->kind == TAKT_SCHED_WORKLOAD)
		ret->workload = *event->workload;
	if (event->kind == TAKT_SCHED_OUTLOOK)
		from_outlook(event->outlook, &ret->outlook);
	if (event->kind == TAKT_SCHED_TENANT)
		ret->tenant = *event->tenant;
	if (event->kind != TAKT_SCHED_WINDOW_ADD)
		return;
	ret->window = *event->window;
	ret->nodes = (uint32_t *)event->window->nodes;
	ret->node_count = event->window->node_count;
}

void takt_record_from_event(const struct takt_sched_event *event, struct takt_record_slot *slots,
			    struct takt_record *ret)
{
	ret->event = event->kind;
	ret->has = takt_record_must(event->kind);
	ret->node_id = event->node_id;
	ret->gpu = event->gpu;
	ret->state = event->state;
	ret->outside = event->outside;
	ret->job_id = event->job_id;
	ret->gpu_mask = event->gpu_mask;
	ret->at_ns = event->at_ns;
	ret->failed = event->failed;
	ret->estimate_ns = event->estimate_ns;
	ret->tenant_id = event->tenant_id;
	ret->window_id = event->window_id;
	ret->has |= takt_record_may(event->kind) &
		    ((event->at_ns ? TAKT_HAS_AT : 0) | (event->failed ? TAKT_HAS_FAILED : 0));
	from_facts(event, ret);
	from_slots(event, slots, ret);
	if (event->kind == TAKT_SCHED_NODE_ADD)
		from_node(&event->node, ret);
	if (event->kind == TAKT_SCHED_GPU_LAYOUT)
		from_layout(event, &ret->machine);
	if (has_spec(event->kind))
		from_job(&event->job, ret);
}

static struct takt_sched_node to_node(struct takt_record *record)
{
	const struct takt_record_machine *machine = &record->machine;
	bool scored = record->has & TAKT_HAS_PAIR_SCORE;
	struct takt_sched_node node = {
		.id = record->node_id,
		.gpu_count = scored ? record->gpu_count : record->gpus,
		.pair_score = scored ? record->pair_score : NULL,
		.cpu_milli = machine->cpu_milli,
		.mem_mib = machine->mem_mib,
		.dev_mem_mib = machine->gpu_mem_mib,
		.each_mem_mib = machine->each_mem_count ? machine->each_mem_mib : NULL,
		.model = machine->model,
		.mig_mask = machine->mig,
		.mig_cut = machine->mig_cut,
		.mig_layout = machine->mig_cut ? record->mig_layout : NULL,
		.numa = machine->numa_count ? record->numa : NULL,
		.labels = record->labels,
		.taints = record->taints,
		.label_count = record->label_count,
		.taint_count = record->taint_count,
	};

	copy_matrix(record->pair_score, record->gpu_count, record->pair_score,
		    TAKT_SCHED_MAX_NODE_GPUS, record->gpu_count);
	for (uint32_t i = 0; i < machine->numa_count; i++)
		record->numa[i] = (uint8_t)machine->numa[i];
	for (uint32_t i = 0; i < machine->domain_count; i++)
		node.domain[i] = machine->domain[i];
	return node;
}

static uint32_t to_job_flags(const struct takt_record *record)
{
	const struct takt_record_ask *ask = &record->ask;

	return (record->use_outside ? TAKT_JOB_USE_OUTSIDE : 0) |
	       (record->held ? TAKT_JOB_HELD : 0) | (ask->preemptible ? TAKT_JOB_PREEMPTIBLE : 0) |
	       (ask->movable ? TAKT_JOB_MOVABLE : 0) | (ask->clean_end ? TAKT_JOB_CLEAN_END : 0);
}

static struct takt_request to_task(const struct takt_record_ask *ask)
{
	return (struct takt_request){
		.cpu_milli = ask->cpu_milli,
		.milli = (uint16_t)ask->milli,
		.mem_mib = ask->mem_mib,
		.dev_mem_mib = ask->gpu_mem_mib,
		.selector = ask->selector,
		.model_mask = ask->models,
		.only_devices = ask->gpu_indices,
		.max_per_node = ask->max_per_node,
		.flags = ask->one_numa ? TAKT_REQUEST_ONE_NUMA : 0,
		.mig_profile = (uint8_t)ask->mig_profile,
	};
}

static struct takt_sched_job to_job(const struct takt_record *record)
{
	const struct takt_record_ask *ask = &record->ask;

	return (struct takt_sched_job){
		.id = record->job_id,
		.submit_seq = record->submit_seq,
		.priority = record->priority,
		.gpus = record->gpus,
		.tasks = ask->tasks,
		.min_tasks = ask->min_tasks,
		.topology = ask->topology,
		.level = ask->level,
		.tenant = ask->tenant,
		.workload = ask->workload,
		.outlook = ask->outlook,
		.submit_ns = ask->submit_ns,
		.estimate_ns = ask->estimate_ns,
		.deadline_ns = ask->deadline_ns,
		.earliest_start_ns = ask->earliest_start_ns,
		.min_runtime_ns = ask->min_runtime_ns,
		.on_failure = ask->on_failure,
		.array = ask->array,
		.array_limit = ask->array_limit,
		.group = ask->group,
		.near_group = ask->near_group,
		.near_level = ask->near_level,
		.apart_group = ask->apart_group,
		.apart_level = ask->apart_level,
		.attained_gpu_ms = ask->attained_gpu_ms,
		.ran_ns = ask->ran_ns,
		.waited_ns = ask->waited_ns,
		.owner = ask->owner,
		.done_ns = ask->done_ns,
		.after = record->after,
		.after_count = record->after_count,
		.flags = to_job_flags(record),
		.task = to_task(ask),
	};
}

static void to_slots(const struct takt_record *record, struct takt_sched_slot *slots)
{
	for (uint32_t i = 0; i < record->slot_count; i++)
		slots[i] = (struct takt_sched_slot){
			.node_id = record->slots[i].node_id,
			.milli = (uint16_t)record->slots[i].milli,
			.mig_start = (uint8_t)record->slots[i].mig_start,
			.gpu_mask = record->slots[i].gpu_mask,
		};
}

static void to_outlook(const struct takt_record_outlook *outlook, struct takt_sched_outlook *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->id = outlook->id;
	/* Ages and ranks that do not pair are no steps, which the scheduler refuses. */
	if (outlook->age_count != outlook->rank_count)
		return;
	ret->is.mean_s = outlook->mean_s;
	ret->is.steps = outlook->age_count;
	memcpy(ret->is.age_s, outlook->age_s, outlook->age_count * sizeof(*ret->is.age_s));
	memcpy(ret->is.rank_s, outlook->rank_s, outlook->rank_count * sizeof(*ret->is.rank_s));
}

struct takt_sched_event takt_record_to_event(struct takt_record *record,
					     struct takt_sched_slot *slots)
{
	struct takt_sched_event event = {
		.kind = record->event,
		.node_id = record->node_id,
		.gpu = record->gpu,
		.state = record->state,
		.outside = record->outside,
		.failed = record->failed,
		.job_id = record->job_id,
		.gpu_mask = record->gpu_mask,
		.at_ns = record->at_ns,
		.estimate_ns = record->estimate_ns,
		.window_id = record->window_id,
		.usage = (uint64_t)record->usage[0] << 32 | record->usage[1],
		.tenant_id = record->tenant_id,
		.space = record->word.space,
		.name_id = record->word.id,
		.slot_count = record->slot_count,
		.slots = slots,
		.name = record->word.name,
		.model = &record->model,
		.selector = &record->selector,
		.workload = &record->workload,
		.outlook = &record->outlook_event,
		.tenant = &record->tenant,
		.window = &record->window,
		.layout = record->mig_layout,
	};

	for (uint32_t i = 0; i < record->machine.mig_layout_count; i++)
		record->mig_layout[i] = (uint8_t)record->machine.mig_layout[i];
	record->window.nodes = record->nodes;
	record->window.node_count = record->node_count;
	to_slots(record, slots);
	to_outlook(&record->outlook, &record->outlook_event);
	if (record->event == TAKT_SCHED_NODE_ADD)
		event.node = to_node(record);
	if (has_spec(record->event))
		event.job = to_job(record);
	return event;
}
