/* SPDX-License-Identifier: Apache-2.0 */
/* Policies over loads and seeds with real times, see the header. */
#include "sim/timed_experiment.h"

#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "base/timetypes.h"
#include "sim/sim_pool.h"

static const struct takt_sim_measure measures[] = {
#define X(id, name, unit, title, decimals) {#name, unit, title, decimals},
	TAKT_TIMED_MEASURES(X)
#undef X
};

static int run_one(void *ctx, size_t i, struct takt_err *err)
{
	struct takt_timed_experiment *experiment = ctx;
	const struct takt_timed_experiment_config *config = experiment->config;
	size_t rest = i / experiment->seed_count, load = rest % experiment->load_count;
	const struct takt_sim_placement *policy =
		&config->placements->at.at[rest / experiment->load_count];
	uint64_t seed = config->first_seed + i % experiment->seed_count;
	struct takt_place_param params[TAKT_SIM_MAX_PARAMS];
	size_t count =
		takt_sim_params_for(policy->name, config->params, config->param_count, params);
	int rc = takt_timed_run(config->world, policy->placement, params, count,
				config->load_count ? config->loads[load] : 0, seed,
				&experiment->results[i], err);

	return rc < 0 ? takt_err_wrap(err, rc, "%s, seed %" PRIu64, policy->name, seed) : 0;
}

static int report(void *ctx, size_t done, size_t count)
{
	const struct takt_timed_experiment *experiment = ctx;
	const struct takt_timed_experiment_config *config = experiment->config;

	return config->progress ? config->progress(config->progress_ctx, done, count) : 0;
}

int takt_timed_experiment(const struct takt_timed_experiment_config *config,
			  struct takt_timed_experiment *ret, struct takt_err *err)
{
	struct takt_timed_experiment experiment = {
		.config = config,
		.load_count = config->load_count ? config->load_count : 1,
		.seed_count = config->last_seed - config->first_seed + 1,
	};
	size_t runs = config->placements->at.len * experiment.load_count * experiment.seed_count;
	struct takt_sim_pool pool = {run_one, report, &experiment, config->threads};
	int rc;

	experiment.results = takt_calloc(runs, sizeof(*experiment.results));
	if (!experiment.results)
		return takt_err_set(err, -ENOMEM, "no memory for %zu runs", runs);
	rc = takt_sim_pool_run(&pool, runs, err);
	if (rc < 0)
		takt_timed_experiment_fini(&experiment);
	else
		*ret = experiment;
	return rc;
}

void takt_timed_experiment_fini(struct takt_timed_experiment *experiment)
{
	size_t runs = experiment->config->placements->at.len * experiment->load_count *
		      experiment->seed_count;

	for (size_t i = 0; i < runs; i++)
		takt_timed_result_fini(&experiment->results[i]);
	takt_free(experiment->results);
}

static const struct takt_timed_result *result_of(const struct takt_timed_experiment *experiment,
						 size_t variant, size_t load, size_t seed)
{
	return &experiment->results[(variant * experiment->load_count + load) *
					    experiment->seed_count +
				    seed];
}

static const char *name_of(const void *ctx, size_t variant)
{
	const struct takt_timed_experiment *experiment = ctx;

	return experiment->config->placements->at.at[variant].name;
}

static bool value_of(const void *ctx, size_t variant, size_t load, size_t seed, size_t measure,
		     double *ret)
{
	const struct takt_timed_experiment *experiment = ctx;
	const struct takt_timed_result *result = result_of(experiment, variant, load, seed);
	double room = (double)experiment->config->world->cluster->gpus * 10 *
		      ((double)experiment->config->world->span_ns / 1e6);

	switch ((enum takt_timed_measure)measure) {
	case TAKT_TIMED_ASKED:
		*ret = (double)result->asked / room;
		return true;
	case TAKT_TIMED_ALLOCATION:
		*ret = (double)result->allocated / room;
		return true;
	case TAKT_TIMED_WAIT_MEAN:
		*ret = (double)result->wait_mean_ns / 1e9;
		return true;
	case TAKT_TIMED_WAIT_P99:
		*ret = (double)result->wait_p99_ns / 1e9;
		return true;
	case TAKT_TIMED_WAIT_MAX:
		*ret = (double)result->wait_max_ns / 1e9;
		return true;
	default:
		*ret = result->jobs ? 100.0 * (double)result->waited / (double)result->jobs : 0;
		return true;
	}
}

/* Of the first seed. */
static const char *const facts[] = {"load_pct", "copies", "jobs", "impossible", NULL};

static void add_fact(const void *ctx, size_t variant, size_t load, size_t fact,
		     struct takt_str *out)
{
	const struct takt_timed_experiment *experiment = ctx;
	const struct takt_timed_result *first = result_of(experiment, variant, load, 0);
	uint64_t values[] = {experiment->config->load_count ? experiment->config->loads[load] : 0,
			     first->copies, first->jobs, first->impossible};

	if (fact == 0 && !experiment->config->load_count)
		takt_str_add(out, "null");
	else
		takt_str_addf(out, "%" PRIu64, values[fact]);
}

/* Waits by class, over all seeds, so that one sees who pays. */
static void add_more(const void *ctx, size_t variant, size_t load, struct takt_str *out)
{
	const struct takt_timed_experiment *experiment = ctx;
	const struct takt_sim_classes *classes = experiment->config->world->classes;
	bool first = true;

	takt_str_add(out, ",\n \"classes\":[");
	for (size_t c = 0; c < classes->classes.len; c++) {
		struct takt_timed_class sum = {0};

		for (size_t s = 0; s < experiment->seed_count; s++) {
			const struct takt_timed_class *class =
				&result_of(experiment, variant, load, s)->classes.at[c];

			sum.jobs += class->jobs;
			sum.waited += class->waited;
			sum.wait_ms += class->wait_ms;
		}
		if (sum.jobs == 0)
			continue;
		takt_str_addf(out,
			      "%s{\"class\":\"%s\",\"jobs\":%" PRIu64
			      ",\"waited_pct\":%.4f,\"wait_mean_s\":%.3f}",
			      first ? "" : ",", classes->classes.at[c].name, sum.jobs,
			      100.0 * (double)sum.waited / (double)sum.jobs,
			      (double)sum.wait_ms / 1000 / (double)sum.jobs);
		first = false;
	}
	takt_str_add(out, "]");
}

struct takt_sim_table takt_timed_table(const struct takt_timed_experiment *experiment)
{
	return (struct takt_sim_table){
		.label = "placement",
		.variant_count = experiment->config->placements->at.len,
		.load_count = experiment->load_count,
		.seed_count = experiment->seed_count,
		.measures = measures,
		.measure_count = TAKT_TIMED_MEASURE_COUNT,
		.ctx = experiment,
		.name = name_of,
		.value = value_of,
		.facts = facts,
		.fact = add_fact,
		.more = add_more,
	};
}
