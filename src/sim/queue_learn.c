/* SPDX-License-Identifier: Apache-2.0 */
/* Learned run times, see the header. */
#include "sim/queue_learn.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/timetypes.h"

enum {
	REFRESH_S = 900,
	KINDS_STEP = 256,
};

static struct takt_runtime_job describe(const struct takt_queue_learner *learner,
					const struct takt_sim_job *job)
{
	const struct takt_sim_kind *kind = &learner->work->kinds.at[job->kind];

	return (struct takt_runtime_job){
		.owner = (uint64_t)job->tenant << 32 | job->user,
		.gpus = kind->gpus * (job->tasks ? job->tasks : 1),
	};
}

static bool predict(void *ctx, uint32_t index, const struct takt_sim_job *job, uint64_t *ret_ns)
{
	struct takt_queue_learner *learner = ctx;
	struct takt_runtime_job known = describe(learner, job);
	struct takt_queue_learned *learned = &learner->jobs[index];
	struct takt_runtime_prediction prediction;

	if (takt_runtime_kind(learner->model, &known, &learned->kind, NULL) < 0 ||
	    !takt_runtime_predict(learner->model, learned->kind, &prediction))
		return false;
	/* A prediction of nothing would read as none. */
	*ret_ns = learned->predicted_ns = prediction.mean_ns ? prediction.mean_ns : 1;
	return true;
}

static int observe(void *ctx, uint32_t index, uint64_t ran_ns)
{
	struct takt_queue_learner *learner = ctx;
	struct takt_queue_learned *learned = &learner->jobs[index];

	takt_runtime_ended(learner->model, learned->kind, &learned->step, ran_ns,
			   learned->predicted_ns);
	return 0;
}

/* Room to note what has been told of every kind. */
static int make_room(struct takt_queue_learner *learner)
{
	uint32_t kinds = takt_runtime_kinds(learner->model);
	uint64_t *told;

	if (kinds <= learner->told_room)
		return 0;
	told = takt_reallocarray(learner->told, kinds + KINDS_STEP, sizeof(*told));
	if (!told)
		return -ENOMEM;
	for (uint32_t i = learner->told_room; i < kinds + KINDS_STEP; i++)
		told[i] = UINT64_MAX;
	learner->told = told;
	learner->told_room = kinds + KINDS_STEP;
	return 0;
}

static int kind(void *ctx, uint32_t index, const struct takt_sim_job *job, uint32_t *ret_id)
{
	struct takt_queue_learner *learner = ctx;
	struct takt_queue_learned *learned = &learner->jobs[index];
	struct takt_runtime_job known = describe(learner, job);
	int rc = takt_runtime_kind(learner->model, &known, &learned->kind, NULL);

	if (rc == 0)
		rc = make_room(learner);
	if (rc == 0)
		*ret_id = learned->kind + 1;
	return rc;
}

static void reached(void *ctx, uint32_t index, uint64_t ran_ns)
{
	struct takt_queue_learner *learner = ctx;
	struct takt_queue_learned *learned = &learner->jobs[index];

	takt_runtime_reached(learner->model, learned->kind, &learned->step, ran_ns);
}

static uint32_t seconds(uint64_t ms)
{
	uint64_t s = (ms + 999) / 1000;

	return s < UINT32_MAX ? (uint32_t)s : UINT32_MAX;
}

static bool outlook(void *ctx, uint32_t id, struct takt_sched_outlook *ret)
{
	struct takt_queue_learner *learner = ctx;
	uint64_t told = takt_runtime_told(learner->model, id - 1);
	struct takt_runtime_prediction prediction;
	struct takt_runtime_outlook is;

	if (learner->told[id - 1] == told)
		return false;
	learner->told[id - 1] = told;
	takt_runtime_outlook(learner->model, id - 1, &is);
	memset(ret, 0, sizeof(*ret));
	ret->id = id;
	if (takt_runtime_predict(learner->model, id - 1, &prediction))
		ret->is.mean_s = seconds(prediction.mean_ns / TAKT_NS_PER_MS);
	ret->is.steps = TAKT_RUNTIME_STEPS;
	for (uint32_t i = 0; i < TAKT_RUNTIME_STEPS; i++) {
		ret->is.age_s[i] = seconds(is.age_ms[i]);
		ret->is.rank_s[i] = seconds(is.rank_ms[i]);
	}
	return true;
}

int takt_queue_learner_init(struct takt_queue_learner *learner, const struct takt_sim_work *work,
			    size_t job_count, struct takt_err *err)
{
	struct takt_runtime_config config = {0};
	int rc;

	*learner = (struct takt_queue_learner){
		.predictor = {.ctx = learner,
			      .predict = predict,
			      .observe = observe,
			      .refresh_ns = REFRESH_S * TAKT_NS_PER_S,
			      .kind = kind,
			      .reached = reached,
			      .outlook = outlook},
		.work = work,
		.jobs = takt_calloc(job_count ? job_count : 1, sizeof(*learner->jobs)),
	};
	if (!learner->jobs)
		return takt_err_set(err, -ENOMEM, "run times of %zu jobs", job_count);
	rc = takt_runtime_new(&config, &learner->model, err);
	if (rc < 0)
		takt_queue_learner_fini(learner);
	return rc;
}

void takt_queue_learner_fini(struct takt_queue_learner *learner)
{
	takt_runtime_free(learner->model);
	takt_free(learner->jobs);
	takt_free(learner->told);
	*learner = (struct takt_queue_learner){0};
}
