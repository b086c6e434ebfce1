/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of governors for machines: JSON and CSV. */
#include "sim/clock_report.h"

#include <math.h>

#include "codec/json.h"

static double share(const struct takt_score *score)
{
	return score->share_pct.n ? score->share_pct.mean : NAN;
}

static double share_half95(const struct takt_score *score)
{
	return score->share_pct.n ? score->share_pct.half95 : NAN;
}

static double worst_share(const struct takt_score *score)
{
	return score->worst == SIZE_MAX ? NAN
					: takt_score_share_pct(&score->workloads.at[score->worst]);
}

static double optimum_saved(const struct takt_score *score)
{
	return score->optimum_saved_pct;
}

static double saved(const struct takt_score *score)
{
	return score->saved_pct.mean;
}

static double saved_half95(const struct takt_score *score)
{
	return score->saved_pct.half95;
}

static double slowdown_mean(const struct takt_score *score)
{
	return score->slowdown_pct.mean;
}

static double slowdown_p95(const struct takt_score *score)
{
	return score->slowdown_p95_pct;
}

static double slowdown_max(const struct takt_score *score)
{
	return score->slowdown_max_pct;
}

static double violating_jobs(const struct takt_score *score)
{
	return (double)score->violating_jobs;
}

static double runs(const struct takt_score *score)
{
	return (double)score->runs;
}

static double violating_epochs(const struct takt_score *score)
{
	return score->violating_epochs_pct;
}

static double overhead(const struct takt_score *score)
{
	return score->overhead_time_pct;
}

static double overhead_energy(const struct takt_score *score)
{
	return score->overhead_energy_pct;
}

static double settling_loss(const struct takt_score *score)
{
	return score->settling_loss_pct;
}

static double changes(const struct takt_score *score)
{
	return score->changes;
}

const struct takt_score_figure takt_score_figures[] = {
	{"share_of_optimum_pct", share},
	{"share_of_optimum_half95", share_half95},
	{"worst_workload_share_pct", worst_share},
	{"energy_saved_pct", saved},
	{"energy_saved_half95", saved_half95},
	{"optimum_saved_pct", optimum_saved},
	{"slowdown_mean_pct", slowdown_mean},
	{"slowdown_p95_pct", slowdown_p95},
	{"slowdown_max_pct", slowdown_max},
	{"runs", runs},
	{"violating_jobs", violating_jobs},
	{"violating_epochs_pct", violating_epochs},
	{"overhead_pct", overhead},
	{"overhead_energy_pct", overhead_energy},
	{"settling_loss_pct", settling_loss},
	{"changes_per_job", changes},
};
const size_t takt_score_figure_count = TAKT_ARRAY_LEN(takt_score_figures);

const char *takt_score_actuator(const struct takt_score *score)
{
	return score->board->actuator == TAKT_ACTUATE_CLOCKS ? "clock" : "power_limit";
}

static void add_number(struct takt_str *out, double value)
{
	if (isfinite(value))
		takt_str_addf(out, "%.8g", value);
	else
		takt_str_add(out, "null");
}

static void add_text(struct takt_str *out, const char *name, const char *text, bool first)
{
	takt_json_add_name(out, name, first);
	takt_json_add_text(out, text);
}

static void add_value(struct takt_str *out, const char *name, double value)
{
	takt_json_add_name(out, name, false);
	add_number(out, value);
}

static void add_workloads(const struct takt_score *score, struct takt_str *out)
{
	takt_json_add_name(out, "workloads", false);
	takt_str_add(out, "[");
	for (size_t i = 0; i < score->workloads.len; i++) {
		const struct takt_score_workload *one = &score->workloads.at[i];

		takt_str_add(out, i ? ",\n  {" : "\n  {");
		add_text(out, "workload", one->curve->workload, true);
		add_value(out, "share_of_optimum_pct", takt_score_share_pct(one));
		add_value(out, "energy_saved_pct", one->saved_pct);
		add_value(out, "optimum_saved_pct", one->optimum_saved_pct);
		add_value(out, "slowdown_mean_pct", one->slowdown_pct);
		add_value(out, "slowdown_max_pct", one->slowdown_max_pct);
		add_value(out, "violating_jobs", (double)one->violating_jobs);
		takt_str_add(out, "}");
	}
	takt_str_add(out, "]");
}

static void add_score(const struct takt_score *score, const struct takt_score_config *config,
		      struct takt_str *out)
{
	takt_str_add(out, "{");
	add_text(out, "dataset", score->board->dataset, true);
	add_text(out, "gpu", score->board->gpu, false);
	add_text(out, "actuator", takt_score_actuator(score), false);
	add_text(out, "governor", score->governor, false);
	add_value(out, "setting", score->setting > 0 ? score->setting : NAN);
	add_value(out, "max_slowdown_pct", config->max_slowdown_permille / 10.0);
	add_value(out, "epochs", score->epochs);
	add_value(out, "time_noise_pct", 100 * score->noise.time);
	add_value(out, "power_noise_pct", 100 * score->noise.power);
	takt_str_add(out, score->trained ? ",\"trained\":true" : ",\"trained\":false");
	for (size_t i = 0; i < takt_score_figure_count; i++)
		add_value(out, takt_score_figures[i].name, takt_score_figures[i].value(score));
	takt_str_addf(out, ",\"slowdown_pct\":{\"mean\":%.8g,\"p95\":%.8g,\"max\":%.8g}",
		      score->slowdown_pct.mean, score->slowdown_p95_pct, score->slowdown_max_pct);
	takt_json_add_name(out, "worst_workload", false);
	if (score->worst == SIZE_MAX)
		takt_str_add(out, "null");
	else
		takt_json_add_text(out, score->workloads.at[score->worst].curve->workload);
	add_workloads(score, out);
	takt_str_add(out, "}");
}

void takt_scores_json(const struct takt_scores *scores, const struct takt_score_config *config,
		      const struct takt_sim_meta *meta, struct takt_str *out)
{
	takt_sim_meta_json(meta, out);
	takt_str_add(out, ",\n\"scores\":[");
	for (size_t i = 0; i < scores->all.len; i++) {
		takt_str_add(out, i ? ",\n " : "\n ");
		add_score(&scores->all.at[i], config, out);
	}
	takt_str_add(out, "]}\n");
}

/* Quoted where it must be. */
static void add_cell(struct takt_str *out, const char *text)
{
	bool plain = true;

	for (const char *at = text; *at; at++)
		plain = plain && *at != ',' && *at != '"' && *at != '\n' && *at != '\r';
	if (plain) {
		takt_str_add(out, text);
		return;
	}
	takt_str_add(out, "\"");
	for (; *text; text++)
		takt_str_addf(out, *text == '"' ? "\"%c" : "%c", *text);
	takt_str_add(out, "\"");
}

static void add_row(const struct takt_score *score, const struct takt_score_config *config,
		    struct takt_str *out)
{
	add_cell(out, score->board->dataset);
	takt_str_add(out, ",");
	add_cell(out, score->board->gpu);
	takt_str_addf(out, ",%s,%s,", takt_score_actuator(score), score->governor);
	if (score->setting > 0)
		takt_str_addf(out, "%.8g", score->setting);
	takt_str_addf(out, ",%.8g,%u,%.8g,%.8g", config->max_slowdown_permille / 10.0,
		      score->epochs, 100 * score->noise.time, 100 * score->noise.power);
	for (size_t i = 0; i < takt_score_figure_count; i++) {
		double value = takt_score_figures[i].value(score);

		takt_str_add(out, ",");
		if (isfinite(value))
			takt_str_addf(out, "%.5g", value);
	}
	takt_str_add(out, ",");
	if (score->worst != SIZE_MAX)
		add_cell(out, score->workloads.at[score->worst].curve->workload);
	takt_str_addf(out, ",%d\n", score->trained);
}

void takt_scores_csv(const struct takt_scores *scores, const struct takt_score_config *config,
		     const struct takt_sim_meta *meta, struct takt_str *out)
{
	takt_sim_meta_csv(meta, out);
	takt_str_add(out, "dataset,gpu,actuator,governor,setting,max_slowdown_pct,epochs,"
			  "time_noise_pct,power_noise_pct");
	for (size_t i = 0; i < takt_score_figure_count; i++)
		takt_str_addf(out, ",%s", takt_score_figures[i].name);
	takt_str_add(out, ",worst_workload,trained\n");
	TAKT_VEC_EACH (score, &scores->all)
		add_row(score, config, out);
}
