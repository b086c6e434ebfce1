/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which model of accelerator: each kind of work where it has its comparative advantage.
 *
 * Work knows how fast it is on each model (measured, as in Gavel: Narayanan et al.,
 * "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI 2020). What
 * Gavel finds with a linear program in rounds is found here when a job is to start, with a price of
 * each model, the dual of its capacity. The job goes where its speed per price is highest: those
 *who gain little from the fast model leave it to those who gain much. With u the part in use,
 *
 *	price = 1 / (1.5 - u)		worth = speed / price = speed * (1.5 - u)
 *
 * A full model costs three times as much as an empty one. The form is that of a queue's delay
 * against its load; 1.5 instead of 1 because with prices near the pole jobs crawl on slow models
 * while fast ones are free. A price is a function of what is held now: nothing has to be
 * remembered, and a scheduler rebuilt from its snapshot decides the same.
 *
 * A model is left alone whose worth is below that of the best by more than the factor `wait`:
 *better wait for a fast model than crawl on a slow one, since a job is not moved later. With 1.5, a
 *job waits for a full model rather than start on an empty one that is more than 4.5 times slower,
 *or on an equally full one that is more than 1.5 times slower. A model with no usable node wide
 * enough for a task is never waited for.
 *
 * This is the choice of the model only. Which node of that model it is says the placement policy
 * (place.h), whichever it is.
 */
#ifndef TAKT_SCHED_PLACE_HETERO_H
#define TAKT_SCHED_PLACE_HETERO_H

#include <stdint.h>

enum {
	TAKT_HETERO_MAX_MODELS = 64,
	TAKT_HETERO_WAIT = 1500, /* permille; 0 = never wait */
	TAKT_HETERO_MAX_WAIT = 1000000,
};

/* What there is of a model, and what is held of it. */
struct takt_hetero_pool {
	uint64_t usable_milli; /* healthy ones, of nodes that take new tasks; 0 = none */
	uint64_t held_milli;   /* of these */
	uint32_t widest;       /* most devices of it in one node */
};

struct takt_hetero_job {
	const uint32_t *permille; /* speed on each model; 0 = does not run there */
	uint64_t models;	  /* bit i: model i is allowed; 0 = any */
	uint32_t devices;	  /* of each task: on one node */
};

/*
 * The models on which the job should start now if there is room, best first, into ret_models.
 * Returns how many; 0 = no model will ever do. Those of equal worth stand in order of their
 * number. models <= TAKT_HETERO_MAX_MODELS, wait_permille 0 or 1000..TAKT_HETERO_MAX_WAIT.
 */
uint32_t takt_hetero_rank(const struct takt_hetero_pool *pools, uint32_t models,
			  const struct takt_hetero_job *job, uint32_t wait_permille,
			  uint8_t ret_models[static TAKT_HETERO_MAX_MODELS]);

#endif
