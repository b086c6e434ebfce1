/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second, naive scheduler state for the property tests: arrays that are searched, facts that are
 * derived anew each time, the header's words and nothing of the real one's code. It says which
 * events are valid and which reason a waiting job has.
 */
#ifndef TAKT_TESTS_SCHED_MODEL_H
#define TAKT_TESTS_SCHED_MODEL_H

#include "base/rng.h"
#include "sched/sched.h"
#include "sched_kit.h"

enum {
	MODEL_NODES = 4,
	MODEL_JOBS = 40, /* job ids 1..MODEL_JOBS, submit_seq 100 - id */
};

enum model_phase {
	MODEL_ABSENT,
	MODEL_WAITING,
	MODEL_ASSIGNED,
	MODEL_RUNNING,
	MODEL_DRAINING
};

struct model {
	struct model_node {
		bool present;
		const struct machine *machine;
		uint64_t quarantined, lost, outside, draining;
	} nodes[MODEL_NODES];
	struct model_job {
		enum model_phase phase;
		struct takt_sched_job job;
		uint32_t node;
		uint64_t mask;
	} jobs[MODEL_JOBS + 1];
};

/* An event that may or may not be valid, mostly near the present state. */
struct takt_sched_event model_random_event(const struct model *model, struct takt_rng *rng);
bool model_valid(const struct model *model, const struct takt_sched_event *event);
void model_apply(struct model *model, const struct takt_sched_event *event); /* a valid one */

/* GPUs of a node that jobs hold; those that a job may use for ever; those of them free now. */
uint64_t model_held(const struct model *model, uint32_t node);
uint64_t model_eligible(const struct model *model, uint32_t node, uint32_t flags);
uint64_t model_free(const struct model *model, uint32_t node, uint32_t flags);
/* IMPOSSIBLE, UNHEALTHY, OUTSIDE, or NONE. */
enum takt_why model_ungoverned(const struct model *model, const struct takt_sched_job *job);

#endif
