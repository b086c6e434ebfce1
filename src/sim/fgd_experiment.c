/* SPDX-License-Identifier: Apache-2.0 */
/* All policies with all seeds, see the header. */
#include "sim/fgd_experiment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sim/sim_pool.h"

/* Sums of a column are rounded to nothing, but the bound's decimals are. */
static const double TOLERANCE_PCT = 1e-6;

static int run_one(void *ctx, size_t i, struct takt_err *err)
{
	struct takt_fgd_experiment *experiment = ctx;
	const struct takt_fgd_experiment_config *config = experiment->config;
	const struct takt_sim_placement *policy =
		&config->placements->at.at[i / experiment->seed_count];
	uint64_t seed = config->first_seed + i % experiment->seed_count;
	struct takt_place_param params[TAKT_SIM_MAX_PARAMS];
	size_t count =
		takt_sim_params_for(policy->name, config->params, config->param_count, params);
	int rc = takt_fgd_run(config->world, policy->placement, params, count, seed,
			      &experiment->results[i], err);

	return rc < 0 ? takt_err_wrap(err, rc, "%s, seed %" PRIu64, policy->name, seed) : 0;
}

static int report(void *ctx, size_t done, size_t count)
{
	const struct takt_fgd_experiment *experiment = ctx;
	const struct takt_fgd_experiment_config *config = experiment->config;

	return config->progress ? config->progress(config->progress_ctx, done, count) : 0;
}

static void add_cluster_csv(const struct takt_sim_cluster *cluster, struct takt_str *csv)
{
	takt_str_add(csv, "cpu_milli,gpu,model\n");
	TAKT_VEC_EACH (node, &cluster->nodes)
		takt_str_addf(csv, "%d,%u,%s\n", node->cpu_milli, node->gpus,
			      node->model == TAKT_SIM_NO_MODEL
				      ? ""
				      : cluster->models.texts.at[node->model]);
}

static void add_arrived_csv(const struct takt_fgd_world *world, uint64_t seed,
			    const uint64_t *counts, const uint64_t *events, struct takt_str *csv)
{
	size_t kinds = world->work->kinds.len;

	for (size_t l = 0; l < world->load_count; l++)
		for (size_t k = 0; events[l] && k < kinds; k++) {
			const struct takt_sim_kind *kind = &world->work->kinds.at[k];

			if (kind->gpus == 0 || counts[l * kinds + k] == 0)
				continue;
			takt_str_addf(csv, "%" PRIu64 ",%u,%" PRIu64 ",%d,%u,%u,%s,%" PRIu64 "\n",
				      seed, world->loads[l], events[l], kind->cpu_milli, kind->gpus,
				      kind->milli, world->work->specs.texts.at[kind->models],
				      counts[l * kinds + k]);
		}
}

static int collect_arrived(const struct takt_fgd_experiment *experiment, struct takt_str *csv,
			   struct takt_err *err)
{
	const struct takt_fgd_experiment_config *config = experiment->config;
	const struct takt_fgd_world *world = config->world;
	size_t cells = world->load_count * world->work->kinds.len;
	uint64_t *counts = takt_calloc(cells, sizeof(*counts));
	uint64_t events[TAKT_FGD_MAX_LOADS];
	int rc = counts ? 0 : takt_err_set(err, -ENOMEM, "no memory for what arrived");

	takt_str_add(csv, "seed,load_pct,samples,cpu_milli,num_gpu,gpu_milli,gpu_spec,count\n");
	for (size_t s = 0; s < experiment->seed_count && rc == 0; s++) {
		memset(counts, 0, cells * sizeof(*counts));
		memset(events, 0, sizeof(events));
		rc = takt_fgd_arrived(world, config->first_seed + s, counts, events, err);
		if (rc == 0)
			add_arrived_csv(world, config->first_seed + s, counts, events, csv);
	}
	takt_free(counts);
	return rc < 0 ? rc : csv->rc;
}

/* No bound is no failure: it is said in the results. */
static void find_bounds(struct takt_fgd_experiment *experiment)
{
	const struct takt_fgd_experiment_config *config = experiment->config;
	const struct takt_fgd_world *world = config->world;
	TAKT_CLEANUP(strp) struct takt_str cluster = TAKT_STR(TAKT_BOUND_MAX_BYTES);
	TAKT_CLEANUP(strp) struct takt_str arrived = TAKT_STR(TAKT_BOUND_MAX_BYTES);
	TAKT_CLEANUP(strp) struct takt_str answer = TAKT_STR(TAKT_BOUND_MAX_BYTES);
	struct takt_err why = {.msg = "no memory"};
	int rc;

	if (!config->bound) {
		takt_strcpy(experiment->bound_note, sizeof(experiment->bound_note),
			    "not computed: not asked for");
		return;
	}
	add_cluster_csv(world->cluster, &cluster);
	rc = collect_arrived(experiment, &arrived, &why);
	if (rc == 0 && cluster.rc == 0)
		rc = takt_bound_run(config->bound, &cluster, &arrived, &answer, &why);
	if (rc >= 0)
		rc = takt_bound_read(&answer, config->first_seed, experiment->seed_count,
				     world->loads, world->load_count, experiment->bounds, &why);
	experiment->bounded = rc == 0;
	snprintf(experiment->bound_note, sizeof(experiment->bound_note), "%s%.200s",
		 rc < 0 ? "not computed: " : "computed", rc < 0 ? why.msg : "");
}

/* Strictly above what is possible: the experiment is wrong, whatever it shows. */
static void check_bounds(struct takt_fgd_experiment *experiment)
{
	const struct takt_fgd_experiment_config *config = experiment->config;
	size_t loads = config->world->load_count;

	for (size_t p = 0; p < config->placements->at.len; p++)
		for (size_t s = 0; s < experiment->seed_count; s++)
			for (size_t l = 0; l < loads; l++) {
				double bound = experiment->bounds[s * loads + l], value;

				if (bound < 0 ||
				    !takt_fgd_value(experiment, p, s, l, TAKT_FGD_ALLOCATION,
						    &value) ||
				    value <= bound + TOLERANCE_PCT)
					continue;
				if (experiment->violations++ > 0)
					continue;
				snprintf(experiment->violation, sizeof(experiment->violation),
					 "%s, seed %" PRIu64 ", load %u %%: %.4f %% allocated, but "
					 "no scheduler can exceed %.4f %%",
					 config->placements->at.at[p].name, config->first_seed + s,
					 config->world->loads[l], value, bound);
			}
}

int takt_fgd_experiment(const struct takt_fgd_experiment_config *config,
			struct takt_fgd_experiment *ret, struct takt_err *err)
{
	struct takt_fgd_experiment experiment = {
		.config = config, .seed_count = config->last_seed - config->first_seed + 1};
	size_t runs = config->placements->at.len * experiment.seed_count;
	size_t bounds = experiment.seed_count * config->world->load_count;
	struct takt_sim_pool pool = {run_one, report, &experiment, config->threads};
	int rc = 0;

	experiment.results = takt_calloc(runs, sizeof(*experiment.results));
	experiment.bounds = takt_calloc(bounds, sizeof(*experiment.bounds));
	if (!experiment.results || !experiment.bounds)
		rc = takt_err_set(err, -ENOMEM, "no memory for %zu runs", runs);
	for (size_t i = 0; i < bounds && rc == 0; i++)
		experiment.bounds[i] = -1;
	if (rc == 0)
		rc = takt_sim_pool_run(&pool, runs, err);
	if (rc < 0) {
		takt_fgd_experiment_fini(&experiment);
		return rc;
	}
	find_bounds(&experiment);
	check_bounds(&experiment);
	*ret = experiment;
	return 0;
}

void takt_fgd_experiment_fini(struct takt_fgd_experiment *experiment)
{
	size_t runs = experiment->config->placements->at.len * experiment->seed_count;

	for (size_t i = 0; experiment->results && i < runs; i++)
		takt_fgd_result_fini(&experiment->results[i]);
	takt_free(experiment->results);
	takt_free(experiment->bounds);
}

bool takt_fgd_value(const struct takt_fgd_experiment *experiment, size_t policy, size_t seed,
		    size_t load, enum takt_fgd_measure measure, double *ret)
{
	const struct takt_fgd_point *point =
		&experiment->results[policy * experiment->seed_count + seed].points[load];
	double all = (double)experiment->config->world->cluster->gpus * 1000 *
		     (double)point->events / 100;

	if (point->events == 0)
		return false;
	switch (measure) {
	case TAKT_FGD_ARRIVED:
		*ret = (double)point->arrived_milli / all;
		break;
	case TAKT_FGD_MOVES:
		*ret = point->placed ? 100 * (double)point->moved / (double)point->placed : 0;
		break;
	case TAKT_FGD_ALLOCATION:
		*ret = (double)point->allocated_milli / all;
		break;
	case TAKT_FGD_FRAGMENT:
		*ret = (double)point->fragment_milli / all;
		break;
	default:
		*ret = (double)point->fragment_ppm / (double)point->events / 1e4;
	}
	return true;
}

/* One pass over the seeds; `other` SIZE_MAX: the values themselves. Differences against zeros are
 * values, so one function does for both. */
static struct takt_sim_stat over_seeds(const struct takt_fgd_experiment *experiment, size_t policy,
				       size_t other, size_t load, enum takt_fgd_measure measure)
{
	TAKT_CLEANUP(freep)
	double *values = takt_calloc(experiment->seed_count, sizeof(*values));
	size_t n = 0;

	for (size_t s = 0; values && s < experiment->seed_count; s++) {
		double value, base = 0;

		if (!takt_fgd_value(experiment, policy, s, load, measure, &value) ||
		    (other != SIZE_MAX &&
		     !takt_fgd_value(experiment, other, s, load, measure, &base)))
			continue;
		values[n++] = value - base;
	}
	return n ? takt_sim_stat(values, n) : (struct takt_sim_stat){0};
}

struct takt_sim_stat takt_fgd_stat(const struct takt_fgd_experiment *experiment, size_t policy,
				   size_t load, enum takt_fgd_measure measure)
{
	return over_seeds(experiment, policy, SIZE_MAX, load, measure);
}

struct takt_sim_stat takt_fgd_difference(const struct takt_fgd_experiment *experiment,
					 size_t policy, size_t other, size_t load,
					 enum takt_fgd_measure measure)
{
	return over_seeds(experiment, policy, other, load, measure);
}

struct takt_sim_stat takt_fgd_bound(const struct takt_fgd_experiment *experiment, size_t load)
{
	size_t loads = experiment->config->world->load_count, n = 0;
	TAKT_CLEANUP(freep)
	double *values = takt_calloc(experiment->seed_count, sizeof(*values));

	for (size_t s = 0; values && s < experiment->seed_count; s++)
		if (experiment->bounds[s * loads + load] >= 0)
			values[n++] = experiment->bounds[s * loads + load];
	return n ? takt_sim_stat(values, n) : (struct takt_sim_stat){0};
}

struct takt_fgd_class_count takt_fgd_class(const struct takt_fgd_experiment *experiment,
					   size_t policy, size_t load, size_t class)
{
	size_t classes = experiment->config->world->classes->classes.len;
	struct takt_fgd_class_count sum = {0};

	for (size_t s = 0; s < experiment->seed_count; s++) {
		const struct takt_fgd_result *result =
			&experiment->results[policy * experiment->seed_count + s];

		sum.arrived += result->classes.at[load * classes + class].arrived;
		sum.placed += result->classes.at[load * classes + class].placed;
	}
	return sum;
}

size_t takt_fgd_main_load(const struct takt_fgd_experiment *experiment)
{
	const struct takt_fgd_world *world = experiment->config->world;

	for (size_t l = 0; l < world->load_count; l++)
		if (world->loads[l] == 100)
			return l;
	return world->load_count - 1;
}
