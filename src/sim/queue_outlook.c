/* SPDX-License-Identifier: Apache-2.0 */
/* What is learned of run times while a simulation runs, told to the scheduler. */
#include "sim/queue_state.h"

static int tell_outlook(struct queue_sim *sim, uint32_t id, struct takt_err *err)
{
	const struct takt_queue_predictor *predictor = sim->config->predictor;
	struct takt_sched_outlook outlook;
	struct takt_sched_event event = {.kind = TAKT_SCHED_OUTLOOK, .outlook = &outlook};

	if (!predictor->outlook(predictor->ctx, id, &outlook))
		return 0;
	return takt_sched_update(sim->sched, &event, err);
}

int queue_tell_kind(struct queue_sim *sim, uint32_t index, const struct takt_sim_job *source,
		    uint32_t *ret_id, struct takt_err *err)
{
	const struct takt_queue_predictor *predictor = sim->config->predictor;
	uint32_t id = 0;
	int rc;

	if (!predictor || !predictor->refresh_ns)
		return 0;
	rc = predictor->kind(predictor->ctx, index, source, &id);
	if (rc < 0)
		return takt_err_set(err, rc, "the kind of a job");
	while (rc == 0 && sim->outlooks_told < id)
		rc = tell_outlook(sim, ++sim->outlooks_told, err);
	if (rc == 0)
		*ret_id = id;
	return rc;
}

/* Of its work, at normal speed. */
static uint64_t done_ns(const struct queue_sim *sim, uint32_t index)
{
	const struct queue_job *job = &sim->jobs[index];
	uint64_t ran = sim->now_ns - job->started_ns;

	return sim->config->jobs[index].work_ns - job->left_ns +
	       (ran > job->overhead_ns ? ran - job->overhead_ns : 0);
}

int queue_tell_outlooks(struct queue_sim *sim, struct takt_err *err)
{
	const struct takt_queue_predictor *predictor = sim->config->predictor;
	int rc = 0;

	if (!predictor || !predictor->refresh_ns || sim->now_ns < sim->refresh_ns)
		return 0;
	sim->refresh_ns = sim->now_ns + predictor->refresh_ns;
	for (uint32_t i = sim->first_open; i < sim->next_job; i++) {
		if (sim->jobs[i].state == QUEUE_RUNNING)
			predictor->reached(predictor->ctx, i, done_ns(sim, i));
		if (i == sim->first_open && sim->jobs[i].state == QUEUE_OVER)
			sim->first_open++;
	}
	for (uint32_t id = 1; id <= sim->outlooks_told && rc == 0; id++)
		rc = tell_outlook(sim, id, err);
	return rc;
}
