/* SPDX-License-Identifier: Apache-2.0 */
/* A queue experiment as a table, see queue_experiment.h. */
#include <inttypes.h>

#include "codec/json.h"
#include "sim/queue_experiment.h"

const struct takt_sim_measure takt_queue_measures[] = {
#define X(id, name, unit, title, decimals) {#name, unit, title, decimals},
	TAKT_QUEUE_MEASURES(X)
#undef X
};

static const char *name_of(const void *ctx, size_t variant)
{
	const struct takt_queue_experiment *experiment = ctx;

	return experiment->variants[variant].name;
}

static bool value_of(const void *ctx, size_t variant, size_t load, size_t seed, size_t measure,
		     double *ret)
{
	const struct takt_queue_kpi *kpi = takt_queue_kpi(ctx, variant, load, seed);

	if (measure == TAKT_QUEUE_ENERGY && !kpi->has_energy)
		return false;
	*ret = kpi->values[measure];
	return true;
}

enum fact {
	FACT_LOAD,
	FACT_OFFERED,
	FACT_NODES,
	FACT_GPUS,
	FACT_JOBS,
	FACT_IMPOSSIBLE,
	FACT_PREEMPTIONS,
	FACT_PLANS,
};

/* The counts of jobs, preemptions and plans are those of the first seed. */
static const char *const facts[] = {"load_pct",	  "offered_pct", "nodes", "gpus", "jobs",
				    "impossible", "preemptions", "plans", NULL};

static uint64_t count_of(const struct takt_queue_experiment *experiment, size_t variant,
			 size_t load, size_t fact)
{
	const struct takt_queue_kpi *first = takt_queue_kpi(experiment, variant, load, 0);

	switch (fact) {
	case FACT_NODES:
		return experiment->clusters[load].nodes.len;
	case FACT_GPUS:
		return experiment->clusters[load].gpus;
	case FACT_JOBS:
		return first->jobs;
	case FACT_IMPOSSIBLE:
		return first->impossible;
	case FACT_PREEMPTIONS:
		return first->preemptions;
	default:
		return first->plans;
	}
}

static void add_fact(const void *ctx, size_t variant, size_t load, size_t fact,
		     struct takt_str *out)
{
	const struct takt_queue_experiment *experiment = ctx;
	double offered = (double)experiment->offered_permille[load] / 10;

	if (fact == FACT_OFFERED)
		takt_str_addf(out, "%.1f", offered);
	else if (fact == FACT_LOAD)
		takt_str_addf(out, "%.0f",
			      experiment->config->load_count ? experiment->config->loads[load]
							     : offered);
	else
		takt_str_addf(out, "%" PRIu64, count_of(experiment, variant, load, fact));
}

static void add_percentiles(const char *name, const double *values, struct takt_str *out)
{
	takt_str_addf(out, ",\n \"%s\":[", name);
	for (int i = 0; i < TAKT_QUEUE_QUANTILES; i++)
		takt_str_addf(out, "%s%.3f", i ? "," : "", values[i]);
	takt_str_add(out, "]");
}

/* Of the first seed. */
static void add_more(const void *ctx, size_t variant, size_t load, struct takt_str *out)
{
	const struct takt_queue_kpi *kpi = takt_queue_kpi(ctx, variant, load, 0);

	add_percentiles("jct_percentiles_s", kpi->jct_s, out);
	add_percentiles("wait_percentiles_s", kpi->wait_s, out);
}

struct takt_sim_table takt_queue_table(const struct takt_queue_experiment *experiment)
{
	return (struct takt_sim_table){
		.label = "queue",
		.variant_count = experiment->variant_count,
		.load_count = experiment->load_count,
		.seed_count = experiment->seed_count,
		.measures = takt_queue_measures,
		.measure_count = TAKT_QUEUE_MEASURE_COUNT,
		.ctx = experiment,
		.name = name_of,
		.value = value_of,
		.facts = facts,
		.fact = add_fact,
		.more = add_more,
	};
}
