/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run times learned from the jobs of a simulation that have ended, and from how long those that run
 * have run: src/model's predictor behind the engine's hooks. It knows of a job its user and tenant,
 * its size and when it ends, and never looks ahead.
 */
#ifndef TAKT_SIM_QUEUE_LEARN_H
#define TAKT_SIM_QUEUE_LEARN_H

#include "model/runtime.h"
#include "sim/queue_run.h"

struct takt_queue_learner {
	struct takt_queue_predictor predictor; /* give this to the engine */
	const struct takt_sim_work *work;      /* borrowed */
	struct takt_runtime *model;	       /* owned */
	struct takt_queue_learned {
		uint32_t kind, step;
		uint64_t predicted_ns;
	} * jobs;	/* owned, by index */
	uint64_t *told; /* owned, by kind: takt_runtime_told when its outlook was last given */
	uint32_t told_room;
};

/* The learner stays where it is until fini. */
int takt_queue_learner_init(struct takt_queue_learner *learner, const struct takt_sim_work *work,
			    size_t job_count, struct takt_err *err);
void takt_queue_learner_fini(struct takt_queue_learner *learner);

#endif
