/* SPDX-License-Identifier: Apache-2.0 */
/* Records of queue experiments, see the header. */
#include "sim/queue_report.h"

#include <inttypes.h>

#include "codec/json.h"

static void add_measures(const struct takt_queue_experiment *experiment, size_t policy, size_t load,
			 struct takt_str *out)
{
	for (int m = 0; m < TAKT_QUEUE_MEASURE_COUNT; m++) {
		struct takt_sim_stat stat =
			takt_queue_stat(experiment, policy, load, (enum takt_queue_measure)m);
		const char *name = takt_queue_measure_texts[m].name;

		if (stat.n == 0) {
			takt_str_addf(out, ",\n \"%s\":null", name);
			continue;
		}
		takt_str_addf(out, ",\n \"%s\":%.4f,\"%s_sd\":%.4f,\"%s_ci95\":%.4f", name,
			      stat.mean, name, stat.sd, name, stat.half95);
	}
}

static void add_against(const struct takt_queue_experiment *experiment, size_t policy, size_t load,
			size_t baseline, struct takt_str *out)
{
	struct takt_sim_stat base =
		takt_queue_stat(experiment, baseline, load, TAKT_QUEUE_JCT_MEAN);
	struct takt_sim_stat mine = takt_queue_stat(experiment, policy, load, TAKT_QUEUE_JCT_MEAN);

	takt_str_add(out, ",\n \"against\":{\"queue\":");
	takt_json_add_text(out, experiment->variants[baseline].name);
	for (int m = 0; m < TAKT_QUEUE_MEASURE_COUNT; m++) {
		struct takt_sim_stat stat = takt_queue_difference(experiment, policy, baseline,
								  load, (enum takt_queue_measure)m);
		const char *name = takt_queue_measure_texts[m].name;

		if (stat.n)
			takt_str_addf(out, ",\"%s\":%.4f,\"%s_ci95\":%.4f", name, stat.mean, name,
				      stat.half95);
	}
	if (mine.mean > 0)
		takt_str_addf(out, ",\"jct_times_better\":%.4f", base.mean / mine.mean);
	takt_str_add(out, "}");
}

static void add_quantiles(const struct takt_queue_experiment *experiment, size_t policy,
			  size_t load, struct takt_str *out)
{
	const struct takt_queue_kpi *kpi = takt_queue_kpi(experiment, policy, load, 0);

	takt_str_add(out, ",\n \"jct_percentiles_s\":[");
	for (int i = 0; i < TAKT_QUEUE_QUANTILES; i++)
		takt_str_addf(out, "%s%.3f", i ? "," : "", kpi->jct_s[i]);
	takt_str_add(out, "],\n \"wait_percentiles_s\":[");
	for (int i = 0; i < TAKT_QUEUE_QUANTILES; i++)
		takt_str_addf(out, "%s%.3f", i ? "," : "", kpi->wait_s[i]);
	takt_str_add(out, "]");
}

static void add_record(const struct takt_queue_experiment *experiment, size_t policy, size_t load,
		       size_t baseline, struct takt_str *out)
{
	const struct takt_queue_experiment_config *config = experiment->config;
	const struct takt_queue_kpi *first = takt_queue_kpi(experiment, policy, load, 0);

	takt_str_add(out, "{\"queue\":");
	takt_json_add_text(out, experiment->variants[policy].name);
	if (config->load_count)
		takt_str_addf(out, ",\"load_pct\":%u", config->loads[load]);
	takt_str_addf(out,
		      ",\"offered_pct\":%.1f,\"nodes\":%zu,\"gpus\":%" PRIu64 ",\"jobs\":%" PRIu64
		      ",\"impossible\":%" PRIu64 ",\"preemptions\":%" PRIu64 ",\"plans\":%" PRIu64,
		      (double)experiment->offered_permille[load] / 10,
		      experiment->clusters[load].nodes.len, experiment->clusters[load].gpus,
		      first->jobs, first->impossible, first->preemptions, first->plans);
	add_measures(experiment, policy, load, out);
	if (policy != baseline)
		add_against(experiment, policy, load, baseline, out);
	add_quantiles(experiment, policy, load, out);
	takt_str_add(out, "}");
}

void takt_queue_json(const struct takt_queue_experiment *experiment,
		     const struct takt_sim_meta *meta, size_t baseline, struct takt_str *out)
{
	const char *comma = "\n";

	takt_sim_meta_json(meta, out);
	takt_str_add(out, ",\n\"results\":[");
	for (size_t p = 0; p < experiment->variant_count; p++)
		for (size_t l = 0; l < experiment->load_count; l++) {
			takt_str_add(out, comma);
			add_record(experiment, p, l, baseline, out);
			comma = ",\n";
		}
	takt_str_add(out, "\n]}\n");
}

static void add_row(const struct takt_queue_experiment *experiment, size_t policy, size_t load,
		    size_t baseline, struct takt_str *out)
{
	struct takt_sim_stat diff =
		takt_queue_difference(experiment, policy, baseline, load, TAKT_QUEUE_JCT_MEAN);

	takt_str_addf(out, "%s,%.1f,%" PRIu64 ",%zu", experiment->variants[policy].name,
		      (double)experiment->offered_permille[load] / 10,
		      experiment->clusters[load].gpus, experiment->seed_count);
	for (int m = 0; m < TAKT_QUEUE_MEASURE_COUNT; m++) {
		struct takt_sim_stat stat =
			takt_queue_stat(experiment, policy, load, (enum takt_queue_measure)m);

		if (stat.n)
			takt_str_addf(out, ",%.4f,%.4f", stat.mean, stat.half95);
		else
			takt_str_add(out, ",,");
	}
	takt_str_addf(out, ",%s,%.4f,%.4f\n", experiment->variants[baseline].name, diff.mean,
		      diff.half95);
}

void takt_queue_csv(const struct takt_queue_experiment *experiment,
		    const struct takt_sim_meta *meta, size_t baseline, struct takt_str *out)
{
	takt_sim_meta_csv(meta, out);
	takt_str_add(out, "queue,offered_pct,gpus,seeds");
	for (int m = 0; m < TAKT_QUEUE_MEASURE_COUNT; m++)
		takt_str_addf(out, ",%s,%s_ci95", takt_queue_measure_texts[m].name,
			      takt_queue_measure_texts[m].name);
	takt_str_add(out, ",against,jct_difference_s,jct_difference_ci95\n");
	for (size_t p = 0; p < experiment->variant_count; p++)
		for (size_t l = 0; l < experiment->load_count; l++)
			add_row(experiment, p, l, baseline, out);
}
