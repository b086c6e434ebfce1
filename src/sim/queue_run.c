/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's loop, see the header. */
#include "sim/queue_run.h"

#include <errno.h>

#include "base/mem.h"
#include "sim/queue_state.h"

static int handle(struct queue_sim *sim, const struct queue_event *event, struct takt_err *err)
{
	switch (event->kind) {
	case QUEUE_END:
		return queue_end(sim, event->index, err);
	case QUEUE_CHECKPOINT:
		return queue_checkpoint(sim, event->index, err);
	case QUEUE_FAILURE:
		return queue_fail(sim, event->index, err);
	case QUEUE_REPAIR:
		return queue_repair(sim, event->index, err);
	default:
		sim->plan_needed = true;
		return 0;
	}
}

static struct queue_event *next_event(struct queue_sim *sim)
{
	struct takt_heap_node *node = takt_heap_first(&sim->heap);

	return node ? TAKT_CONTAINER_OF(node, struct queue_event, node) : NULL;
}

/* The next instant at which something happens; UINT64_MAX when nothing will. */
static uint64_t next_instant(struct queue_sim *sim)
{
	const struct queue_event *event = next_event(sim);
	uint64_t at = event ? event->at_ns : UINT64_MAX;

	if (sim->next_job < sim->config->job_count &&
	    sim->config->jobs[sim->next_job].submit_ns < at)
		at = sim->config->jobs[sim->next_job].submit_ns;
	return at;
}

static int step(struct queue_sim *sim, struct takt_err *err)
{
	struct queue_event *event;
	int rc = 0;

	queue_advance(sim, next_instant(sim));
	while (rc == 0 && (event = next_event(sim)) && event->at_ns == sim->now_ns) {
		takt_heap_pop(&sim->heap);
		rc = handle(sim, event, err);
	}
	while (rc == 0 && sim->next_job < sim->config->job_count &&
	       sim->config->jobs[sim->next_job].submit_ns == sim->now_ns)
		rc = queue_submit(sim, (uint32_t)sim->next_job++, err);
	if (rc == 0)
		rc = queue_tell_outlooks(sim, err);
	return rc < 0 ? rc : queue_plan(sim, err);
}

static int simulate(struct queue_sim *sim, struct takt_err *err)
{
	const struct takt_queue_result *result = &sim->result;
	size_t count = sim->config->job_count;
	int rc = 0;

	while (rc == 0 && result->done + result->impossible < count) {
		if (next_instant(sim) == UINT64_MAX)
			return takt_err_set(
				err, -TAKT_E_IMPOSSIBLE,
				"%llu jobs wait for ever: nothing runs and nothing "
				"will happen",
				(unsigned long long)(count - result->done - result->impossible));
		rc = step(sim, err);
	}
	return rc;
}

static int allocate(struct queue_sim *sim, struct takt_err *err)
{
	const struct takt_queue_config *config = sim->config;

	sim->jobs = takt_calloc(config->job_count, sizeof(*sim->jobs));
	sim->failures = takt_calloc(config->failure_count * 2 + 1, sizeof(*sim->failures));
	sim->down = takt_calloc(config->cluster->nodes.len, sizeof(*sim->down));
	sim->result.outcomes = takt_calloc(config->job_count, sizeof(*sim->result.outcomes));
	if (!sim->jobs || !sim->failures || !sim->down || !sim->result.outcomes)
		return takt_err_set(err, -ENOMEM, "no memory for %zu jobs", config->job_count);
	for (size_t i = 0; i < config->job_count; i++) {
		sim->jobs[i].end = (struct queue_event){.kind = QUEUE_END, .index = (uint32_t)i};
		sim->jobs[i].checkpoint =
			(struct queue_event){.kind = QUEUE_CHECKPOINT, .index = (uint32_t)i};
	}
	sim->wake.kind = QUEUE_WAKE;
	sim->result.job_count = config->job_count;
	return 0;
}

static int schedule_failures(struct queue_sim *sim, struct takt_err *err)
{
	for (size_t i = 0; i < sim->config->failure_count; i++) {
		const struct takt_queue_failure *fact = &sim->config->failures[i];
		struct queue_event *pair = &sim->failures[2 * i];
		int rc;

		pair[0] = (struct queue_event){.kind = QUEUE_FAILURE, .index = (uint32_t)i};
		pair[1] = (struct queue_event){.kind = QUEUE_REPAIR, .index = (uint32_t)i};
		rc = queue_schedule(sim, &pair[0], fact->at_ns);
		if (rc == 0)
			rc = queue_schedule(sim, &pair[1], fact->at_ns + fact->repair_ns);
		if (rc < 0)
			return takt_err_set(err, rc, "no memory for failures");
	}
	return 0;
}

static int begin(struct queue_sim *sim, struct takt_err *err)
{
	const struct takt_queue_config *config = sim->config;
	int rc = allocate(sim, err);

	if (rc == 0)
		rc = takt_sched_new(&config->sched, &sim->sched, err);
	if (rc == 0)
		rc = queue_add_nodes(sim, err);
	if (rc == 0)
		rc = schedule_failures(sim, err);
	sim->now_ns = TAKT_QUEUE_START_NS;
	if (config->job_count) {
		sim->result.first_submit_ns = config->jobs[0].submit_ns;
		sim->result.last_submit_ns = config->jobs[config->job_count - 1].submit_ns;
	}
	return rc;
}

static void sim_fini(struct queue_sim *sim)
{
	takt_plan_fini(&sim->plan);
	takt_sched_free(sim->sched);
	takt_heap_fini(&sim->heap);
	for (size_t i = 0; sim->jobs && i < sim->config->job_count; i++)
		takt_free(sim->jobs[i].slots);
	takt_free(sim->jobs);
	takt_free(sim->failures);
	takt_free(sim->down);
}

int takt_queue_run(const struct takt_queue_config *config, struct takt_queue_result *ret,
		   struct takt_err *err)
{
	size_t events = 2 * config->job_count + 2 * config->failure_count + 1;
	struct queue_sim sim = {.config = config, .heap = TAKT_HEAP(events, queue_by_time)};
	int rc = begin(&sim, err);

	if (rc == 0)
		rc = simulate(&sim, err);
	if (rc == 0)
		*ret = sim.result;
	else
		takt_queue_result_fini(&sim.result);
	sim_fini(&sim);
	return rc;
}

void takt_queue_result_fini(struct takt_queue_result *result)
{
	takt_free(result->outcomes);
	result->outcomes = NULL;
}
