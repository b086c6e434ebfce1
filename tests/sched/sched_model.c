/* SPDX-License-Identifier: Apache-2.0 */
/* The naive state of the property tests; see the header. */
#include "sched_model.h"

static uint64_t all_gpus(const struct model_node *node)
{
	return (UINT64_C(1) << node->machine->gpu_count) - 1;
}

static bool is_placed(const struct model_job *job)
{
	return job->phase == MODEL_ASSIGNED || job->phase == MODEL_RUNNING;
}

uint64_t model_held(const struct model *model, uint32_t node)
{
	uint64_t mask = 0;

	for (uint32_t id = 1; id <= MODEL_JOBS; id++)
		if (is_placed(&model->jobs[id]) && model->jobs[id].node == node)
			mask |= model->jobs[id].mask;
	return mask;
}

uint64_t model_eligible(const struct model *model, uint32_t node, uint32_t flags)
{
	const struct model_node *at = &model->nodes[node];
	uint64_t mask;

	if (!at->present)
		return 0;
	mask = all_gpus(at) & ~at->quarantined & ~at->lost;
	return flags & TAKT_JOB_USE_OUTSIDE ? mask : mask & ~at->outside;
}

uint64_t model_free(const struct model *model, uint32_t node, uint32_t flags)
{
	return model_eligible(model, node, flags) & ~model_held(model, node) &
	       ~model->nodes[node].draining;
}

enum takt_why model_ungoverned(const struct model *model, const struct takt_sched_job *job)
{
	bool exists = false;
	bool healthy = false;
	bool eligible = false;

	for (uint32_t node = 0; node < MODEL_NODES; node++) {
		if (!model->nodes[node].present)
			continue;
		exists |= model->nodes[node].machine->gpu_count >= job->gpus;
		healthy |= (uint32_t)__builtin_popcountll(
				   model_eligible(model, node, TAKT_JOB_USE_OUTSIDE)) >= job->gpus;
		eligible |= (uint32_t)__builtin_popcountll(
				    model_eligible(model, node, job->flags)) >= job->gpus;
	}
	if (!exists)
		return TAKT_WHY_IMPOSSIBLE;
	if (!healthy)
		return TAKT_WHY_UNHEALTHY;
	return eligible ? TAKT_WHY_NONE : TAKT_WHY_OUTSIDE;
}

static bool gpu_exists(const struct model *model, const struct takt_sched_event *event)
{
	return event->node_id < MODEL_NODES && model->nodes[event->node_id].present &&
	       event->gpu < model->nodes[event->node_id].machine->gpu_count;
}

static const struct model_job *job_of(const struct model *model, uint64_t id)
{
	return id >= 1 && id <= MODEL_JOBS ? &model->jobs[id] : &model->jobs[0];
}

static bool valid_placement(const struct model *model, const struct takt_sched_event *event)
{
	const struct model_job *job = job_of(model, event->job_id);
	const struct model_node *node = &model->nodes[event->node_id % MODEL_NODES];

	if (job->phase != MODEL_WAITING || event->node_id >= MODEL_NODES || !node->present)
		return false;
	return !(event->gpu_mask & ~all_gpus(node)) &&
	       (uint32_t)__builtin_popcountll(event->gpu_mask) == job->job.gpus &&
	       !(event->gpu_mask & (model_held(model, event->node_id) | node->draining));
}

bool model_valid(const struct model *model, const struct takt_sched_event *event)
{
	enum model_phase phase = job_of(model, event->job_id)->phase;
	uint64_t bit = UINT64_C(1) << (event->gpu & 63);

	switch (event->kind) {
	case TAKT_SCHED_NODE_ADD:
		return !model->nodes[event->node.id].present &&
		       model_held(model, event->node.id) >> event->node.gpu_count == 0;
	case TAKT_SCHED_NODE_REMOVE:
		return event->node_id < MODEL_NODES && model->nodes[event->node_id].present;
	case TAKT_SCHED_GPU_HEALTH:
		return gpu_exists(model, event) &&
		       (event->state == TAKT_GPU_FREE || event->state == TAKT_GPU_QUARANTINED ||
			event->state == TAKT_GPU_LOST);
	case TAKT_SCHED_GPU_OUTSIDE:
		return gpu_exists(model, event);
	case TAKT_SCHED_GPU_DRAINING:
		return gpu_exists(model, event) && !(model_held(model, event->node_id) & bit);
	case TAKT_SCHED_GPU_DRAINED:
		return gpu_exists(model, event) && model->nodes[event->node_id].draining & bit;
	case TAKT_SCHED_JOB_ADD:
		return event->job.flags < 64 && model->jobs[event->job.id].phase == MODEL_ABSENT;
	case TAKT_SCHED_JOB_CHANGE:
		return event->job.flags < 64 && model->jobs[event->job.id].phase == MODEL_WAITING &&
		       model->jobs[event->job.id].job.gpus == event->job.gpus;
	case TAKT_SCHED_JOB_PLACED:
		return valid_placement(model, event);
	case TAKT_SCHED_JOB_RUNNING:
		return phase == MODEL_ASSIGNED;
	case TAKT_SCHED_JOB_DRAINING:
		return phase != MODEL_ABSENT && phase != MODEL_DRAINING;
	case TAKT_SCHED_JOB_REQUEUED:
		return phase != MODEL_ABSENT && phase != MODEL_WAITING;
	case TAKT_SCHED_JOB_ENDED:
		return phase != MODEL_ABSENT;
	default:
		return false;
	}
}

static void leave(struct model *model, struct model_job *job, enum model_phase phase)
{
	if (is_placed(job) && model->nodes[job->node].present)
		model->nodes[job->node].draining |= job->mask;
	job->phase = phase;
}

static void apply_health(struct model_node *node, uint64_t bit, enum takt_gpu_state state)
{
	node->quarantined &= ~bit;
	node->lost &= ~bit;
	if (state == TAKT_GPU_QUARANTINED)
		node->quarantined |= bit;
	if (state == TAKT_GPU_LOST)
		node->lost |= bit;
}

void model_apply(struct model *model, const struct takt_sched_event *event)
{
	struct model_node *node = &model->nodes[event->node_id % MODEL_NODES];
	struct model_job *job = &model->jobs[event->job_id % (MODEL_JOBS + 1)];
	uint64_t bit = UINT64_C(1) << (event->gpu & 63);

	switch (event->kind) {
	case TAKT_SCHED_NODE_ADD:
		node = &model->nodes[event->node.id];
		*node = (struct model_node){.present = true};
		for (size_t i = 0; i < kit_machine_count; i++)
			if (kit_machines[i].pair_score == event->node.pair_score)
				node->machine = &kit_machines[i];
		break;
	case TAKT_SCHED_NODE_REMOVE:
		*node = (struct model_node){0};
		break;
	case TAKT_SCHED_GPU_HEALTH:
		apply_health(node, bit, event->state);
		break;
	case TAKT_SCHED_GPU_OUTSIDE:
		node->outside = event->outside ? node->outside | bit : node->outside & ~bit;
		break;
	case TAKT_SCHED_GPU_DRAINING:
		node->draining |= bit;
		break;
	case TAKT_SCHED_GPU_DRAINED:
		node->draining &= ~bit;
		break;
	case TAKT_SCHED_JOB_ADD:
	case TAKT_SCHED_JOB_CHANGE:
		job = &model->jobs[event->job.id];
		job->phase = MODEL_WAITING;
		job->job = event->job;
		break;
	case TAKT_SCHED_JOB_PLACED:
		job->phase = MODEL_ASSIGNED;
		job->node = event->node_id;
		job->mask = event->gpu_mask;
		break;
	case TAKT_SCHED_JOB_RUNNING:
		job->phase = MODEL_RUNNING;
		break;
	case TAKT_SCHED_JOB_DRAINING:
		leave(model, job, MODEL_DRAINING);
		break;
	case TAKT_SCHED_JOB_REQUEUED:
		leave(model, job, MODEL_WAITING);
		break;
	default:
		leave(model, job, MODEL_ABSENT);
		break;
	}
}

/* Weights: events that make things move come more often than those that take nodes away. */
static enum takt_sched_event_kind random_kind(struct takt_rng *rng)
{
	static const enum takt_sched_event_kind kinds[] = {
		TAKT_SCHED_NODE_ADD,	 TAKT_SCHED_NODE_ADD,	  TAKT_SCHED_NODE_ADD,
		TAKT_SCHED_NODE_REMOVE,	 TAKT_SCHED_GPU_HEALTH,	  TAKT_SCHED_GPU_HEALTH,
		TAKT_SCHED_GPU_OUTSIDE,	 TAKT_SCHED_GPU_OUTSIDE,  TAKT_SCHED_GPU_DRAINING,
		TAKT_SCHED_GPU_DRAINED,	 TAKT_SCHED_GPU_DRAINED,  TAKT_SCHED_GPU_DRAINED,
		TAKT_SCHED_GPU_DRAINED,	 TAKT_SCHED_GPU_DRAINED,  TAKT_SCHED_GPU_DRAINED,
		TAKT_SCHED_JOB_ADD,	 TAKT_SCHED_JOB_ADD,	  TAKT_SCHED_JOB_ADD,
		TAKT_SCHED_JOB_ADD,	 TAKT_SCHED_JOB_CHANGE,	  TAKT_SCHED_JOB_PLACED,
		TAKT_SCHED_JOB_RUNNING,	 TAKT_SCHED_JOB_RUNNING,  TAKT_SCHED_JOB_DRAINING,
		TAKT_SCHED_JOB_DRAINING, TAKT_SCHED_JOB_REQUEUED, TAKT_SCHED_JOB_ENDED,
		TAKT_SCHED_JOB_ENDED,
	};

	return kinds[takt_rng_below(rng, TAKT_ARRAY_LEN(kinds))];
}

/* Each draw is a statement of its own: in what order a compiler evaluates the values of one
 * initialiser or the operands of one expression is its own affair. */
static struct takt_sched_job random_job(const struct model *model, struct takt_rng *rng)
{
	struct takt_sched_job job = {.id = takt_rng_range(rng, 1, MODEL_JOBS)};
	bool known = model->jobs[job.id].phase != MODEL_ABSENT;

	job.submit_seq = 100 - job.id;
	job.priority = (int32_t)takt_rng_below(rng, 3) - 1;
	job.gpus = (uint32_t)takt_rng_below(rng, 10);
	if (known && takt_rng_below(rng, 10) > 0)
		job.gpus = model->jobs[job.id].job.gpus;
	if (takt_rng_below(rng, 4) == 0)
		job.flags |= TAKT_JOB_USE_OUTSIDE;
	if (takt_rng_below(rng, 10) == 0)
		job.flags |= TAKT_JOB_HELD;
	if (takt_rng_below(rng, 50) == 0)
		job.flags |= 64u;
	return job;
}

static struct takt_sched_node random_node(struct takt_rng *rng)
{
	const struct machine *machine = &kit_machines[takt_rng_below(rng, kit_machine_count)];

	return (struct takt_sched_node){(uint32_t)takt_rng_below(rng, MODEL_NODES),
					machine->gpu_count, machine->pair_score};
}

struct takt_sched_event model_random_event(const struct model *model, struct takt_rng *rng)
{
	struct takt_sched_event event = {.kind = random_kind(rng)};

	event.node_id = (uint32_t)takt_rng_below(rng, MODEL_NODES + 1);
	event.gpu = (uint32_t)takt_rng_below(rng, 9);
	event.state = (enum takt_gpu_state)takt_rng_below(rng, TAKT_GPU_STATE_COUNT);
	event.outside = takt_rng_below(rng, 3) == 0;
	event.job_id = takt_rng_range(rng, 0, MODEL_JOBS);
	event.gpu_mask = takt_rng_below(rng, 0x1ff);
	if (takt_rng_below(rng, 2) == 0)
		event.state = TAKT_GPU_FREE;
	if (event.kind == TAKT_SCHED_NODE_ADD)
		event.node = random_node(rng);
	if (event.kind == TAKT_SCHED_JOB_ADD || event.kind == TAKT_SCHED_JOB_CHANGE)
		event.job = random_job(model, rng);
	return event;
}
