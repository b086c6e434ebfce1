/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: there from the start, down for a while. */
#include "sim/queue_state.h"

#include "base/str.h"

static int add_words(struct queue_sim *sim, struct takt_err *err)
{
	const struct takt_sim_names *models = &sim->config->cluster->models;
	int rc = 0;

	for (size_t i = 0; i < models->texts.len && rc == 0; i++) {
		struct takt_sched_model model = {.id = (uint32_t)i + 1};
		struct takt_sched_event event = {.kind = TAKT_SCHED_MODEL, .model = &model};

		takt_strcpy(model.name, sizeof(model.name), models->texts.at[i]);
		rc = takt_sched_update(sim->sched, &event, err);
	}
	for (size_t i = 0; i < sim->config->workload_count && rc == 0; i++) {
		struct takt_sched_event event = {.kind = TAKT_SCHED_WORKLOAD,
						 .workload = &sim->config->workloads[i]};

		rc = takt_sched_update(sim->sched, &event, err);
	}
	return rc;
}

/* All pairs alike. */
static const int32_t no_links[TAKT_SCHED_MAX_NODE_GPUS * TAKT_SCHED_MAX_NODE_GPUS];

int queue_add_nodes(struct queue_sim *sim, struct takt_err *err)
{
	const struct takt_sim_cluster *cluster = sim->config->cluster;
	int rc = add_words(sim, err);

	for (size_t i = 0; i < cluster->nodes.len && rc == 0; i++) {
		const struct takt_sim_node *node = &cluster->nodes.at[i];
		struct takt_sched_event event = {
			.kind = TAKT_SCHED_NODE_ADD,
			.node = {.id = (uint32_t)i,
				 .gpu_count = node->gpus,
				 .pair_score = no_links,
				 .dev_mem_mib = node->gpu_mem_mib,
				 .model = node->model == TAKT_SIM_NO_MODEL ? 0 : node->model + 1}};

		if (cluster->counts_cpu) {
			event.node.cpu_milli = node->cpu_milli;
			event.node.mem_mib = node->mem_mib;
		}
		rc = takt_sched_update(sim->sched, &event, err);
	}
	return rc;
}

static int set_health(struct queue_sim *sim, uint32_t node, enum takt_gpu_state state,
		      struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_GPU_HEALTH,
					 .node_id = node,
					 .state = state,
					 .at_ns = sim->now_ns};
	int rc = 0;

	for (uint32_t i = 0; i < sim->config->cluster->nodes.at[node].gpus && rc == 0; i++) {
		event.gpu = i;
		rc = takt_sched_update(sim->sched, &event, err);
	}
	sim->plan_needed = true;
	return rc;
}

static bool is_on(const struct queue_job *job, uint32_t node)
{
	for (uint32_t i = 0; i < job->slot_count; i++)
		if (job->slots[i].node_id == node)
			return true;
	return false;
}

/* Failures may overlap on a node: it is back after the last repair. */
int queue_fail(struct queue_sim *sim, uint32_t failure, struct takt_err *err)
{
	const struct takt_queue_failure *fact = &sim->config->failures[failure];
	int rc = 0;

	if (sim->down[fact->node]++ == 0)
		rc = set_health(sim, fact->node, TAKT_GPU_LOST, err);
	for (uint32_t i = 0; i < sim->next_job && rc == 0; i++) {
		if (sim->jobs[i].state != QUEUE_RUNNING || !is_on(&sim->jobs[i], fact->node))
			continue;
		sim->result.failures++;
		rc = queue_requeue(sim, i, err);
	}
	return rc;
}

int queue_repair(struct queue_sim *sim, uint32_t failure, struct takt_err *err)
{
	uint32_t node = sim->config->failures[failure].node;

	return --sim->down[node] == 0 ? set_health(sim, node, TAKT_GPU_FREE, err) : 0;
}
