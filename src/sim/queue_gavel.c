/* SPDX-License-Identifier: Apache-2.0 */
/* The heterogeneous experiment's jobs, see the header. */
#include "sim/queue_gavel.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "sim/gavel_work.h"
#include "sim/sim_random.h"
#include "sim/trace.h"

/* Between the cluster's models and the table's. */
struct models {
	uint32_t in_table[TAKT_SIM_MAX_MODELS]; /* by number in the cluster */
	size_t count;				/* of the cluster's */
};

static uint32_t find_model(const struct takt_throughputs *table, const char *name)
{
	uint32_t i = 0;

	while (i < table->model_count && strcmp(table->models[i], name) != 0)
		i++;
	return i;
}

static int map_models(const struct takt_throughputs *table, const struct takt_sim_cluster *cluster,
		      struct models *ret, struct takt_err *err)
{
	ret->count = cluster->models.texts.len;
	for (size_t i = 0; i < ret->count; i++) {
		const char *name = cluster->models.texts.at[i];

		ret->in_table[i] = find_model(table, name);
		if (ret->in_table[i] == table->model_count)
			return takt_err_set(err, -EINVAL,
					    "the table of throughputs has no model '%s'; it has "
					    "%s and %zu more",
					    name, table->models[0], table->model_count - 1);
	}
	return 0;
}

static int count_devices(const struct takt_sim_cluster *cluster, const struct models *models,
			 struct takt_gavel_config *config, struct takt_err *err)
{
	TAKT_VEC_EACH (node, &cluster->nodes) {
		if (node->model == TAKT_SIM_NO_MODEL)
			return takt_err_set(err, -EINVAL,
					    "node '%s' names no model: throughputs are by model",
					    node->name);
		config->devices[models->in_table[node->model]] += node->gpus;
	}
	return 0;
}

/* Names of the cluster's models on which a kind runs; "" when it runs on all. */
static void write_spec(const struct takt_gavel_config *config,
		       const struct takt_sim_cluster *cluster, const struct models *models,
		       uint32_t kind, struct takt_str *spec)
{
	size_t runs = 0;

	takt_str_reset(spec);
	for (size_t i = 0; i < models->count; i++) {
		if (takt_gavel_permille(config, kind, models->in_table[i]) == 0)
			continue;
		takt_str_add(spec, runs++ ? "|" : "");
		takt_str_add(spec, cluster->models.texts.at[i]);
	}
	if (runs == models->count)
		takt_str_reset(spec);
}

/* The scheduler counts models from 1. */
static struct takt_sched_workload speeds_of(const struct takt_gavel_config *config,
					    const struct models *models, uint32_t kind, uint32_t id)
{
	struct takt_sched_workload workload = {.id = id, .count = (uint32_t)models->count + 1};

	for (size_t i = 0; i < models->count; i++)
		workload.permille[i + 1] = takt_gavel_permille(config, kind, models->in_table[i]);
	return workload;
}

/* A workload a kind of the table, in its order. */
static int add_workloads(const struct takt_gavel_config *config, const struct models *models,
			 struct takt_queue_gavel *gavel)
{
	int rc = 0;

	for (uint32_t i = 0; i < config->table->kinds.len && rc == 0; i++)
		rc = takt_vec_push(&gavel->workloads, speeds_of(config, models, i, i + 1));
	return rc;
}

static int add_job(const struct takt_gavel_config *config, const struct takt_gavel_job *from,
		   const char *spec, struct takt_sim_cluster *cluster,
		   struct takt_queue_gavel *gavel, struct takt_err *err)
{
	const struct takt_throughput_kind *kind = &config->table->kinds.at[from->kind];
	struct takt_sim_kind asked = {.gpus = kind->gpus, .milli = 1000};
	struct takt_sim_job job = {
		.name = takt_arena_strdup(&gavel->work.texts, kind->name),
		.tasks = 1,
		.has = 1u << TAKT_TRACE_JOB_SUBMIT | 1u << TAKT_TRACE_JOB_DURATION,
		.submit_ns = (int64_t)from->submit_ns,
		.duration_ns = (int64_t)from->duration_ns,
	};
	int rc = takt_sim_work_kind(&gavel->work, cluster, &asked, spec, &job.kind, err);

	if (rc < 0)
		return rc;
	rc = job.name ? takt_vec_push(&gavel->work.jobs, job) : -ENOMEM;
	if (rc == 0)
		rc = takt_vec_push(&gavel->workload_of, from->kind + 1);
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for generated jobs");
	gavel->work.counts.at[job.kind]++;
	return 0;
}

static int add_jobs(const struct takt_gavel_config *config, const struct takt_gavel_work *drawn,
		    const struct models *models, struct takt_sim_cluster *cluster,
		    struct takt_queue_gavel *gavel, struct takt_err *err)
{
	struct takt_str spec = TAKT_STR(TAKT_SIM_MAX_MODELS * (TAKT_THROUGHPUT_MAX_NAME + 1));
	int rc = 0;

	for (size_t i = 0; i < drawn->jobs.len && rc == 0; i++) {
		write_spec(config, cluster, models, drawn->jobs.at[i].kind, &spec);
		rc = spec.rc < 0 ? takt_err_set(err, spec.rc, "no memory for names of models")
				 : add_job(config, &drawn->jobs.at[i], takt_str_text(&spec),
					   cluster, gavel, err);
	}
	takt_str_fini(&spec);
	return rc;
}

static int draw(const struct takt_queue_gavel_config *config, const struct takt_gavel_config *jobs,
		struct takt_gavel_work *ret, struct takt_err *err)
{
	struct takt_rng arrivals, kinds;

	takt_sim_stream(config->seed, TAKT_SIM_ARRIVALS, &arrivals);
	takt_sim_stream(config->seed, TAKT_SIM_KINDS, &kinds);
	return takt_gavel_generate(jobs, &arrivals, &kinds, ret, err);
}

static void shuffle_nodes(struct takt_sim_cluster *cluster, uint64_t seed)
{
	struct takt_rng rng;

	takt_sim_stream(seed, TAKT_SIM_RANK, &rng);
	takt_rng_shuffle(&rng, cluster->nodes.at, cluster->nodes.len, sizeof(*cluster->nodes.at));
}

static int fill(const struct takt_gavel_config *jobs, const struct takt_gavel_work *drawn,
		const struct models *models, struct takt_sim_cluster *cluster,
		struct takt_queue_gavel *gavel, struct takt_err *err)
{
	int rc = add_workloads(jobs, models, gavel);

	if (rc < 0)
		return takt_err_set(err, rc, "no memory for %zu kinds of jobs",
				    jobs->table->kinds.len);
	rc = add_jobs(jobs, drawn, models, cluster, gavel, err);
	return rc < 0 ? rc : takt_queue_split_gangs(&gavel->work, cluster, err);
}

int takt_queue_gavel_make(const struct takt_queue_gavel_config *config,
			  struct takt_sim_cluster *cluster, struct takt_queue_gavel *ret,
			  struct takt_err *err)
{
	struct takt_gavel_config jobs = {
		.table = config->table,
		.reference = find_model(config->table, config->reference),
		.load_permille = config->load_permille,
		.jobs = config->jobs,
	};
	struct takt_queue_gavel gavel = {
		.workloads = TAKT_VEC_INIT(TAKT_THROUGHPUT_MAX_KINDS),
		.workload_of = TAKT_VEC_INIT(TAKT_GAVEL_MAX_JOBS),
	};
	struct takt_gavel_work drawn;
	struct models models;
	int rc;

	if (jobs.reference == config->table->model_count)
		return takt_err_set(err, -EINVAL, "the table of throughputs has no model '%s'",
				    config->reference);
	rc = map_models(config->table, cluster, &models, err);
	if (rc == 0)
		rc = count_devices(cluster, &models, &jobs, err);
	if (rc == 0)
		rc = draw(config, &jobs, &drawn, err);
	if (rc < 0)
		return rc;
	rc = takt_sim_work_init(&gavel.work, err);
	if (rc == 0) {
		takt_strcpy(gavel.work.hash, sizeof(gavel.work.hash), config->table->hash);
		rc = fill(&jobs, &drawn, &models, cluster, &gavel, err);
		if (rc < 0)
			takt_queue_gavel_fini(&gavel);
	}
	takt_gavel_fini(&drawn);
	if (rc < 0)
		return rc;
	shuffle_nodes(cluster, config->seed);
	*ret = gavel;
	return 0;
}

void takt_queue_gavel_fini(struct takt_queue_gavel *gavel)
{
	takt_sim_work_fini(&gavel->work);
	takt_vec_fini(&gavel->workloads);
	takt_vec_fini(&gavel->workload_of);
}

int takt_queue_gavel_arrivals(const struct takt_queue_gavel *gavel, struct takt_queue_arrivals *ret,
			      struct takt_err *err)
{
	struct takt_queue_arrivals arrivals;
	int rc = takt_queue_arrivals(&gavel->work, false, 0, &arrivals, err);

	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (job, &arrivals.jobs)
		job->workload = gavel->workload_of.at[job->source];
	*ret = arrivals;
	return 0;
}
