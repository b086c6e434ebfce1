/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual clock: what happens next, and what was held until then. */
#include "sim/queue_state.h"

#include "base/timetypes.h"

int queue_by_time(const struct takt_heap_node *a, const struct takt_heap_node *b)
{
	const struct queue_event *x = TAKT_CONTAINER_OF(a, struct queue_event, node);
	const struct queue_event *y = TAKT_CONTAINER_OF(b, struct queue_event, node);

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

int queue_schedule(struct queue_sim *sim, struct queue_event *event, uint64_t at_ns)
{
	queue_unschedule(sim, event);
	event->at_ns = at_ns;
	return takt_heap_push(&sim->heap, &event->node);
}

void queue_unschedule(struct queue_sim *sim, struct queue_event *event)
{
	if (takt_heap_has(&sim->heap, &event->node))
		takt_heap_remove(&sim->heap, &event->node);
}

/* Spans are whole milliseconds of the clock, so that pieces add up to the whole. */
void queue_advance(struct queue_sim *sim, uint64_t now_ns)
{
	uint64_t ms = now_ns / TAKT_NS_PER_MS - sim->now_ns / TAKT_NS_PER_MS;
	uint64_t gpus = sim->config->cluster->gpus, crowd = 1000;

	if (gpus && sim->wanted_gpus > gpus)
		crowd = sim->wanted_gpus * 1000 / gpus;
	sim->crowd_ms += ms * crowd;
	sim->result.held_gpu_ms += ms * sim->held_gpus;
	if (sim->next_job < sim->config->job_count)
		sim->result.held_gpu_ms_window += ms * sim->held_gpus;
	sim->now_ns = now_ns;
}

void queue_hold(struct queue_sim *sim, const struct queue_job *job, bool held)
{
	uint64_t ms = (sim->now_ns - job->started_ns) / TAKT_NS_PER_MS;

	if (held) {
		sim->held_gpus += job->gpu_count;
		return;
	}
	sim->held_gpus -= job->gpu_count;
	for (uint32_t i = 0; i < job->slot_count; i++) {
		const struct takt_sched_slot *slot = &job->slots[i];
		uint32_t model = sim->config->cluster->nodes.at[slot->node_id].model;

		sim->result.held_gpu_ms_model[model == TAKT_SIM_NO_MODEL ? TAKT_SIM_MAX_MODELS
									 : model] +=
			ms * (uint64_t)__builtin_popcountll(slot->gpu_mask);
	}
}
