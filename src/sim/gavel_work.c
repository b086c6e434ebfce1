/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as Gavel generates them, see the header. */
#include "sim/gavel_work.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "base/compiler.h"

static const double second_ns = 1e9;
static const double longest_ns = 3e18; /* 95 years */
static const double fastest_permille = 1e6;

static const struct {
	uint32_t gpus;
	double share;
} scales[] = {{1, 0.70}, {2, 0.10}, {4, 0.15}, {8, 0.05}};

/* Decades of minutes. */
static const struct {
	double from, to, share;
} durations[] = {{1.5, 3.0, 0.8}, {3.0, 4.0, 0.2}};

static double uniform(struct takt_rng *rng)
{
	return (double)(takt_rng_next(rng) >> 11) * 0x1p-53;
}

static double mean_duration_s(void)
{
	double mean = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(durations); i++) {
		double from = durations[i].from, to = durations[i].to;

		mean += durations[i].share * (pow(10, to) - pow(10, from)) /
			(log(10) * (to - from));
	}
	return 60 * mean;
}

static bool usable(const struct takt_gavel_config *config, size_t kind, uint32_t gpus)
{
	const struct takt_throughput_kind *k = &config->table->kinds.at[kind];

	return k->gpus == gpus && k->together[config->reference] > 0;
}

static size_t count_kinds(const struct takt_gavel_config *config, uint32_t gpus)
{
	size_t count = 0;

	for (size_t i = 0; i < config->table->kinds.len; i++)
		count += usable(config, i, gpus);
	return count;
}

/* Mean device-seconds on a model of the jobs that can run there; 0 = none can. */
static double mean_device_s(const struct takt_gavel_config *config, uint32_t model)
{
	double sum = 0, share = 0;

	for (size_t s = 0; s < TAKT_ARRAY_LEN(scales); s++) {
		size_t count = count_kinds(config, scales[s].gpus);

		for (size_t i = 0; i < config->table->kinds.len; i++) {
			const int64_t *speed = config->table->kinds.at[i].together;

			if (!usable(config, i, scales[s].gpus) || speed[model] <= 0)
				continue;
			share += scales[s].share / (double)count;
			sum += scales[s].share / (double)count * scales[s].gpus *
			       (double)speed[config->reference] / (double)speed[model];
		}
	}
	return share > 0 ? sum / share * mean_duration_s() : 0;
}

/* Jobs a second at a load of 100 %. */
static double saturation(const struct takt_gavel_config *config)
{
	double rate = 0;

	for (uint32_t i = 0; i < config->table->model_count; i++) {
		double mean = mean_device_s(config, i);

		if (mean > 0)
			rate += (double)config->devices[i] / mean;
	}
	return rate;
}

static uint32_t draw_scale(struct takt_rng *rng)
{
	double at = uniform(rng);
	size_t i = 0;

	for (; i + 1 < TAKT_ARRAY_LEN(scales) && at >= scales[i].share; i++)
		at -= scales[i].share;
	return scales[i].gpus;
}

static uint32_t draw_kind(const struct takt_gavel_config *config, struct takt_rng *rng,
			  uint32_t gpus)
{
	uint64_t left = takt_rng_below(rng, count_kinds(config, gpus));
	uint32_t kind = 0;

	while (!usable(config, kind, gpus) || left-- > 0)
		kind++;
	return kind;
}

static uint64_t draw_duration_ns(struct takt_rng *rng)
{
	size_t part = uniform(rng) < durations[0].share ? 0 : 1;
	double from = durations[part].from, to = durations[part].to;

	return (uint64_t)(60 * pow(10, from + uniform(rng) * (to - from)) * second_ns);
}

static int check(const struct takt_gavel_config *config, struct takt_err *err)
{
	if (config->reference >= config->table->model_count)
		return takt_err_set(err, -EINVAL, "reference model %u of %zu", config->reference,
				    config->table->model_count);
	if (config->load_permille < 1 || config->load_permille > TAKT_GAVEL_MAX_LOAD)
		return takt_err_set(err, -EINVAL, "a load of %u permille is not 1 to %d",
				    config->load_permille, TAKT_GAVEL_MAX_LOAD);
	if (config->jobs < 1 || config->jobs > TAKT_GAVEL_MAX_JOBS)
		return takt_err_set(err, -EINVAL, "%u jobs are not 1 to %d", config->jobs,
				    TAKT_GAVEL_MAX_JOBS);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(scales); i++)
		if (count_kinds(config, scales[i].gpus) == 0)
			return takt_err_set(
				err, -EINVAL, "the table has no kind with %u accelerators on %s",
				scales[i].gpus, config->table->models[config->reference]);
	if (saturation(config) <= 0)
		return takt_err_set(err, -EINVAL,
				    "the cluster has no device of a model of the table");
	return 0;
}

int takt_gavel_generate(const struct takt_gavel_config *config, struct takt_rng *arrivals,
			struct takt_rng *kinds, struct takt_gavel_work *ret, struct takt_err *err)
{
	struct takt_gavel_work work = {.jobs = TAKT_VEC_INIT(TAKT_GAVEL_MAX_JOBS)};
	double rate, now_s = 0;
	int rc = check(config, err);

	if (rc < 0)
		return rc;
	rc = takt_vec_reserve(&work.jobs, config->jobs);
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for %u jobs", config->jobs);
	rate = saturation(config) * config->load_permille / 1000;
	for (uint32_t i = 0; i < config->jobs; i++) {
		uint32_t kind = draw_kind(config, kinds, draw_scale(kinds));

		now_s -= log(1 - uniform(arrivals)) / rate;
		work.jobs.at[work.jobs.len++] = (struct takt_gavel_job){
			.submit_ns = (uint64_t)(now_s * second_ns),
			.duration_ns = draw_duration_ns(kinds),
			.kind = kind,
		};
	}
	*ret = work;
	return 0;
}

void takt_gavel_fini(struct takt_gavel_work *work)
{
	takt_vec_fini(&work->jobs);
}

uint64_t takt_gavel_run_ns(const struct takt_gavel_config *config, const struct takt_gavel_job *job,
			   uint32_t model)
{
	const int64_t *speed = config->table->kinds.at[job->kind].together;
	double run_ns;

	if (speed[model] <= 0)
		return 0;
	run_ns = (double)job->duration_ns *
		 ((double)speed[config->reference] / (double)speed[model]);
	return (uint64_t)fmin(run_ns, longest_ns);
}

uint32_t takt_gavel_permille(const struct takt_gavel_config *config, uint32_t kind, uint32_t model)
{
	const int64_t *speed = config->table->kinds.at[kind].together;
	double permille = round(1000 * (double)speed[model] / (double)speed[config->reference]);

	return speed[model] <= 0 ? 0 : (uint32_t)fmax(1, fmin(permille, fastest_permille));
}
