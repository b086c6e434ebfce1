/* SPDX-License-Identifier: Apache-2.0 */
/* Queue policies over loads and seeds, see the header. */
#include "sim/queue_experiment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/timetypes.h"
#include "sim/queue_failures.h"
#include "sim/queue_gavel.h"
#include "sim/queue_kpi.h"
#include "sim/queue_learn.h"
#include "sim/sim_pool.h"
#include "sim/trace.h"

/* Durations of drawn jobs are those on it. */
#define REFERENCE_MODEL "v100"

const char *const takt_queue_estimates_names[] = {"learned", "none", "given", "perfect", NULL};

static bool predict_given(void *ctx, uint32_t index, const struct takt_sim_job *job,
			  uint64_t *ret_ns)
{
	(void)ctx;
	(void)index;
	*ret_ns = (uint64_t)job->estimate_ns;
	return job->has & 1u << TAKT_TRACE_JOB_ESTIMATE;
}

static bool predict_perfect(void *ctx, uint32_t index, const struct takt_sim_job *job,
			    uint64_t *ret_ns)
{
	(void)ctx;
	(void)index;
	*ret_ns = (uint64_t)job->duration_ns;
	return true;
}

static const struct takt_queue_predictor predictors[TAKT_ESTIMATES_COUNT] = {
	[TAKT_ESTIMATES_GIVEN] = {.predict = predict_given},
	[TAKT_ESTIMATES_PERFECT] = {.predict = predict_perfect},
};

/* Where in `kpis` run i goes, and what it is. */
struct place {
	size_t variant, load;
	uint64_t seed;
};

static struct place place_of(const struct takt_queue_experiment *experiment, size_t i)
{
	size_t rest = i / experiment->seed_count;

	return (struct place){
		.variant = rest / experiment->load_count,
		.load = rest % experiment->load_count,
		.seed = experiment->config->first_seed + i % experiment->seed_count,
	};
}

/* What one run needs of its own. */
struct inputs {
	const struct takt_sim_cluster *cluster; /* the load's, or own_cluster */
	const struct takt_sim_work *work;	/* the experiment's, or gavel's */
	struct takt_queue_arrivals arrivals;
	struct takt_queue_failures failures;
	/* Where jobs are drawn. */
	bool drawn;
	struct takt_sim_cluster own_cluster;
	struct takt_queue_gavel gavel;
};

static void inputs_fini(struct inputs *inputs)
{
	takt_queue_failures_fini(&inputs->failures);
	takt_queue_arrivals_fini(&inputs->arrivals);
	if (inputs->drawn)
		takt_queue_gavel_fini(&inputs->gavel);
	takt_sim_cluster_fini(&inputs->own_cluster);
}

static int draw_jobs(const struct takt_queue_experiment *experiment, struct place place,
		     struct inputs *inputs, struct takt_err *err)
{
	const struct takt_queue_experiment_config *config = experiment->config;
	struct takt_queue_gavel_config gavel = {
		.table = &experiment->throughputs,
		.reference = REFERENCE_MODEL,
		.load_permille = config->loads[place.load] * 10,
		.jobs = config->gavel_jobs,
		.seed = place.seed,
	};
	int rc = takt_sim_cluster_load(config->cluster, &inputs->own_cluster, err);

	if (rc == 0)
		rc = takt_queue_gavel_make(&gavel, &inputs->own_cluster, &inputs->gavel, err);
	if (rc < 0)
		return rc;
	inputs->drawn = true;
	inputs->cluster = &inputs->own_cluster;
	inputs->work = &inputs->gavel.work;
	return takt_queue_gavel_arrivals(&inputs->gavel, &inputs->arrivals, err);
}

static int take_trace(const struct takt_queue_experiment *experiment, struct place place,
		      struct inputs *inputs, struct takt_err *err)
{
	uint64_t stretch = experiment->stretch_permille[place.load];
	int rc = takt_queue_arrivals(&experiment->work, experiment->config->resample, place.seed,
				     &inputs->arrivals, err);

	if (rc == 0 && stretch)
		takt_queue_stretch(&inputs->arrivals, stretch, 1000);
	inputs->cluster = &experiment->clusters[place.load];
	inputs->work = &experiment->work;
	return rc;
}

static int find_failures(const struct takt_queue_experiment_config *config, uint64_t seed,
			 struct inputs *inputs, struct takt_err *err)
{
	/* Jobs go on after the last submission; so do failures, as long again. */
	uint64_t end = TAKT_QUEUE_START_NS + 2 * inputs->arrivals.span_ms * TAKT_NS_PER_MS;

	if (config->failures)
		return takt_queue_failures_load(config->failures, inputs->cluster,
						&inputs->failures, err);
	if (config->mtbf_ns)
		return takt_queue_failures_draw(inputs->cluster, config->mtbf_ns, config->repair_ns,
						end, seed, &inputs->failures, err);
	return 0;
}

static int run_learning(struct takt_queue_config *run, struct takt_queue_result *result,
			struct takt_err *err)
{
	struct takt_queue_learner learner;
	int rc = takt_queue_learner_init(&learner, run->work, run->job_count, err);

	if (rc < 0)
		return rc;
	run->predictor = &learner.predictor;
	rc = takt_queue_run(run, result, err);
	takt_queue_learner_fini(&learner);
	return rc;
}

static int simulate(const struct takt_queue_experiment *experiment, struct place place,
		    const struct inputs *inputs, struct takt_queue_result *result,
		    struct takt_err *err)
{
	const struct takt_queue_experiment_config *config = experiment->config;
	const struct takt_queue_variant *variant = &experiment->variants[place.variant];
	const struct takt_queue_policy *policy = variant->policy;
	struct takt_queue_config run = {
		.cluster = inputs->cluster,
		.work = inputs->work,
		.jobs = inputs->arrivals.jobs.at,
		.job_count = inputs->arrivals.jobs.len,
		.failures = inputs->failures.at.at,
		.failure_count = inputs->failures.at.len,
		.workloads = inputs->drawn ? inputs->gavel.workloads.at : NULL,
		.workload_count = inputs->drawn ? inputs->gavel.workloads.len : 0,
		.sched = {.order = policy->order,
			  .order_config = &policy->config,
			  .placement = variant->placement,
			  .backfill = policy->backfill,
			  .reserve_depth = policy->reserve_depth,
			  .preempt = policy->preempt,
			  .migrate_most = config->migrate_most,
			  .max_jobs = (uint32_t)inputs->arrivals.jobs.len + 1,
			  .reasons = TAKT_REASONS_ASKED},
		.preempt_cost_ns = config->preempt_cost_ns,
		.checkpoint_ns = config->checkpoint_ns,
		.seed = place.seed,
	};

	if (policy->perfect)
		run.predictor = &predictors[TAKT_ESTIMATES_PERFECT];
	else if (config->estimates == TAKT_ESTIMATES_LEARNED)
		return run_learning(&run, result, err);
	else if (config->estimates != TAKT_ESTIMATES_NONE)
		run.predictor = &predictors[config->estimates];
	return takt_queue_run(&run, result, err);
}

static int run_one(void *ctx, size_t i, struct takt_err *err)
{
	struct takt_queue_experiment *experiment = ctx;
	struct place place = place_of(experiment, i);
	struct inputs inputs = {.own_cluster = {.nodes = TAKT_VEC_INIT(0)}};
	struct takt_queue_result result = {0};
	int rc = experiment->config->gavel_jobs ? draw_jobs(experiment, place, &inputs, err)
						: take_trace(experiment, place, &inputs, err);

	if (rc == 0)
		rc = find_failures(experiment->config, place.seed, &inputs, err);
	if (rc == 0)
		rc = simulate(experiment, place, &inputs, &result, err);
	if (rc == 0)
		rc = takt_queue_kpi_of(&result, inputs.cluster, experiment->config->power,
				       &experiment->kpis[i], err);
	takt_queue_result_fini(&result);
	inputs_fini(&inputs);
	if (rc < 0)
		return takt_err_wrap(err, rc, "%s, seed %" PRIu64,
				     experiment->variants[place.variant].name, place.seed);
	return 0;
}

/* Of one load: the cluster in its size, or the stretch. */
static int size_load(struct takt_queue_experiment *experiment, size_t i,
		     const struct takt_queue_arrivals *arrivals, struct takt_err *err)
{
	const struct takt_queue_experiment_config *config = experiment->config;
	struct takt_sim_cluster *cluster = &experiment->clusters[i];
	uint64_t permille = config->load_count ? config->loads[i] * 10 : 0;

	if (cluster->automatic) {
		uint64_t nodes;
		int rc;

		if (!permille)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'%s' is sized by an offered load: give --load",
					    config->cluster);
		if (cluster->gpus == 0)
			return takt_err_set(err, -TAKT_E_USAGE, "'%s' has no GPUs",
					    config->cluster);
		nodes = (takt_queue_gpus_for(arrivals, permille) + cluster->gpus - 1) /
			cluster->gpus;
		rc = takt_sim_cluster_size(cluster, (uint32_t)nodes, err);
		if (rc < 0)
			return rc;
	} else if (permille) {
		experiment->stretch_permille[i] =
			takt_queue_offered(arrivals, cluster->gpus) * 1000 / permille;
	}
	experiment->offered_permille[i] = experiment->stretch_permille[i]
						  ? permille
						  : takt_queue_offered(arrivals, cluster->gpus);
	return 0;
}

static int load_trace(struct takt_queue_experiment *experiment, struct takt_err *err)
{
	struct takt_queue_arrivals arrivals;
	int rc = takt_sim_work_load(experiment->config->trace, 1u << TAKT_TRACE_JOB_GPUS,
				    &experiment->clusters[0], &experiment->work, err);

	if (rc == 0)
		rc = takt_queue_split_gangs(&experiment->work, &experiment->clusters[0], err);
	if (rc == 0)
		rc = takt_queue_arrivals(&experiment->work, false, 0, &arrivals, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < experiment->load_count && rc == 0; i++)
		rc = size_load(experiment, i, &arrivals, err);
	takt_queue_arrivals_fini(&arrivals);
	return rc;
}

static int load_throughputs(struct takt_queue_experiment *experiment, struct takt_err *err)
{
	const struct takt_queue_experiment_config *config = experiment->config;
	struct takt_lines *lines;
	int rc;

	if (config->load_count == 0 || experiment->clusters[0].automatic)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "jobs are drawn for an offered load on a cluster of given "
				    "size: give --load and --cluster uniform:9x4:v100,...");
	rc = takt_lines_open(config->trace, &lines, err);
	if (rc < 0)
		return rc;
	rc = takt_throughputs_read(lines, &experiment->throughputs, err);
	takt_lines_free(lines);
	for (size_t i = 0; i < experiment->load_count; i++)
		experiment->offered_permille[i] = config->loads[i] * 10;
	return rc;
}

static int load_inputs(struct takt_queue_experiment *experiment, struct takt_err *err)
{
	const struct takt_queue_experiment_config *config = experiment->config;
	int rc = 0;

	for (size_t i = 0; i < experiment->load_count && rc == 0; i++)
		rc = takt_sim_cluster_load(config->cluster, &experiment->clusters[i], err);
	if (rc < 0)
		return rc;
	return config->gavel_jobs ? load_throughputs(experiment, err) : load_trace(experiment, err);
}

static void name_variant(struct takt_queue_variant *variant,
			 const struct takt_sim_placement *placement, bool several)
{
	snprintf(variant->name, sizeof(variant->name), "%s%s%s", variant->policy->name,
		 several ? "/" : "", several ? placement->name : "");
}

static int make_variants(struct takt_queue_experiment *experiment, struct takt_err *err)
{
	const struct takt_queue_policies *policies = experiment->config->policies;
	const struct takt_sim_placements *placements = experiment->config->placements;
	size_t count = placements ? placements->at.len : 1;

	experiment->variant_count = policies->at.len * count;
	experiment->variants =
		takt_calloc(experiment->variant_count, sizeof(*experiment->variants));
	if (!experiment->variants)
		return takt_err_set(err, -ENOMEM, "no memory for the policies");
	for (size_t i = 0; i < experiment->variant_count; i++) {
		struct takt_queue_variant *variant = &experiment->variants[i];
		const struct takt_sim_placement *placement =
			placements ? &placements->at.at[i % count] : NULL;

		variant->policy = &policies->at.at[i / count];
		variant->placement = placement ? placement->placement : NULL;
		name_variant(variant, placement, count > 1);
	}
	return 0;
}

static int allocate(struct takt_queue_experiment *experiment, struct takt_err *err)
{
	size_t loads = experiment->load_count;
	size_t runs = experiment->variant_count * loads * experiment->seed_count;

	experiment->clusters = takt_calloc(loads, sizeof(*experiment->clusters));
	experiment->offered_permille = takt_calloc(loads, sizeof(*experiment->offered_permille));
	experiment->stretch_permille = takt_calloc(loads, sizeof(*experiment->stretch_permille));
	experiment->kpis = takt_calloc(runs, sizeof(*experiment->kpis));
	if (!experiment->clusters || !experiment->offered_permille ||
	    !experiment->stretch_permille || !experiment->kpis)
		return takt_err_set(err, -ENOMEM, "no memory for %zu runs", runs);
	return 0;
}

static int report(void *ctx, size_t done, size_t count)
{
	const struct takt_queue_experiment *experiment = ctx;
	const struct takt_queue_experiment_config *config = experiment->config;

	return config->progress ? config->progress(config->progress_ctx, done, count) : 0;
}

int takt_queue_experiment(const struct takt_queue_experiment_config *config,
			  struct takt_queue_experiment *ret, struct takt_err *err)
{
	struct takt_queue_experiment experiment = {
		.config = config,
		.load_count = config->load_count ? config->load_count : 1,
		.seed_count = config->last_seed - config->first_seed + 1,
	};
	struct takt_sim_pool pool = {run_one, report, &experiment, config->threads};
	int rc = make_variants(&experiment, err);

	if (rc == 0)
		rc = allocate(&experiment, err);
	if (rc == 0)
		rc = load_inputs(&experiment, err);
	if (rc == 0)
		rc = takt_sim_pool_run(&pool,
				       experiment.variant_count * experiment.load_count *
					       experiment.seed_count,
				       err);
	if (rc < 0)
		takt_queue_experiment_fini(&experiment);
	else
		*ret = experiment;
	return rc;
}

void takt_queue_experiment_fini(struct takt_queue_experiment *experiment)
{
	for (size_t i = 0; experiment->clusters && i < experiment->load_count; i++)
		takt_sim_cluster_fini(&experiment->clusters[i]);
	takt_sim_work_fini(&experiment->work);
	takt_throughputs_fini(&experiment->throughputs);
	takt_free(experiment->variants);
	takt_free(experiment->clusters);
	takt_free(experiment->offered_permille);
	takt_free(experiment->stretch_permille);
	takt_free(experiment->kpis);
}

const struct takt_queue_kpi *takt_queue_kpi(const struct takt_queue_experiment *experiment,
					    size_t variant, size_t load, size_t seed)
{
	return &experiment
			->kpis[(variant * experiment->load_count + load) * experiment->seed_count +
			       seed];
}
