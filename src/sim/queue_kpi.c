/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a run, see the header. */
#include "sim/queue_kpi.h"

#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"

static int ascending(const void *a, const void *b, void *ctx)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	(void)ctx;
	return (x > y) - (x < y);
}

/* What is looked at of an outcome. */
typedef uint64_t outcome_value(const struct takt_queue_outcome *outcome);

static uint64_t jct_of(const struct takt_queue_outcome *outcome)
{
	return outcome->jct_ns;
}

static uint64_t wait_of(const struct takt_queue_outcome *outcome)
{
	return outcome->wait_ns;
}

static uint64_t rho_of(const struct takt_queue_outcome *outcome)
{
	return outcome->rho_ppm;
}

struct spread {
	double mean, median, p99;
};

/* `unit` of the values make 1. quantiles may be NULL. */
static int spread_of(const struct takt_queue_result *result, outcome_value *value, double unit,
		     struct spread *ret, double *quantiles)
{
	int64_t *values = takt_calloc(result->job_count, sizeof(*values));
	double sum = 0;
	size_t n = 0;
	int rc;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < result->job_count; i++) {
		if (!result->outcomes[i].done)
			continue;
		values[n] = (int64_t)value(&result->outcomes[i]);
		sum += (double)values[n++];
	}
	rc = takt_sort(values, n, sizeof(*values), ascending, NULL);
	if (rc == 0 && n > 0) {
		*ret = (struct spread){
			.mean = sum / (double)n / unit,
			.median = (double)takt_sim_percentile(values, n, 500) / unit,
			.p99 = (double)takt_sim_percentile(values, n, 990) / unit,
		};
		for (uint32_t i = 0; quantiles && i < TAKT_QUEUE_QUANTILES; i++)
			quantiles[i] = (double)takt_sim_percentile(values, n, i * 10) / unit;
	}
	takt_free(values);
	return rc;
}

/* False when a model's power is not known. */
static bool energy_of(const struct takt_queue_result *result,
		      const struct takt_sim_cluster *cluster, const struct takt_gpu_power *other,
		      double *ret_kwh)
{
	uint64_t gpus[TAKT_SIM_MAX_MODELS + 1] = {0};
	double span_ms = (double)(result->end_ns - result->first_submit_ns) / 1e6, joule = 0;

	TAKT_VEC_EACH (node, &cluster->nodes)
		gpus[node->model == TAKT_SIM_NO_MODEL ? TAKT_SIM_MAX_MODELS : node->model] +=
			node->gpus;
	for (size_t i = 0; i <= TAKT_SIM_MAX_MODELS; i++) {
		struct takt_gpu_power power;
		double held = (double)result->held_gpu_ms_model[i];

		if (gpus[i] == 0)
			continue;
		if (i == TAKT_SIM_MAX_MODELS ||
		    !takt_gpu_power_find(cluster->models.texts.at[i], &power)) {
			if (!other)
				return false;
			power = *other;
		}
		joule += (held * power.busy_w + ((double)gpus[i] * span_ms - held) * power.idle_w) /
			 1000;
	}
	*ret_kwh = joule / 3.6e6;
	return true;
}

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

int takt_queue_kpi_of(const struct takt_queue_result *result,
		      const struct takt_sim_cluster *cluster, const struct takt_gpu_power *power,
		      struct takt_queue_kpi *ret, struct takt_err *err)
{
	struct takt_queue_kpi kpi = {.jobs = result->done,
				     .impossible = result->impossible,
				     .preemptions = result->preemptions,
				     .plans = result->plans};
	struct spread jct = {0}, wait = {0}, rho = {0};
	double window_ms = (double)(result->last_submit_ns - result->first_submit_ns) / 1e6;
	double done = (double)result->done;
	int rc = spread_of(result, jct_of, 1e9, &jct, kpi.jct_s);

	rc = rc < 0 ? rc : spread_of(result, wait_of, 1e9, &wait, kpi.wait_s);
	rc = rc < 0 ? rc : spread_of(result, rho_of, 1e6, &rho, NULL);
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for the figures of a run");
	kpi.values[TAKT_QUEUE_JCT_MEAN] = jct.mean;
	kpi.values[TAKT_QUEUE_JCT_MEDIAN] = jct.median;
	kpi.values[TAKT_QUEUE_JCT_P99] = jct.p99;
	kpi.values[TAKT_QUEUE_WAIT_MEAN] = wait.mean;
	kpi.values[TAKT_QUEUE_WAIT_MEDIAN] = wait.median;
	kpi.values[TAKT_QUEUE_WAIT_P99] = wait.p99;
	kpi.values[TAKT_QUEUE_MAKESPAN] = (double)(result->end_ns - result->first_submit_ns) / 1e9;
	kpi.values[TAKT_QUEUE_UTILISATION] =
		100 * ratio((double)result->held_gpu_ms_window, (double)cluster->gpus * window_ms);
	kpi.values[TAKT_QUEUE_RHO_MEAN] = rho.mean;
	kpi.values[TAKT_QUEUE_RHO_P99] = rho.p99;
	kpi.values[TAKT_QUEUE_PREEMPTIONS] = ratio((double)result->preemptions, done);
	kpi.values[TAKT_QUEUE_MIGRATIONS] = ratio((double)result->migrations, done);
	kpi.values[TAKT_QUEUE_FAILURES] = ratio((double)result->failures, done);
	kpi.values[TAKT_QUEUE_LOST] =
		100 * ratio((double)result->lost_gpu_ms, (double)result->held_gpu_ms);
	kpi.has_energy = energy_of(result, cluster, power, &kpi.values[TAKT_QUEUE_ENERGY]);
	*ret = kpi;
	return 0;
}
