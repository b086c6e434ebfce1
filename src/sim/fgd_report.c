/* SPDX-License-Identifier: Apache-2.0 */
/* The placement experiment's records, see the header. */
#include "sim/fgd_report.h"

#include <inttypes.h>

#include "codec/json.h"

static void add_number(struct takt_str *out, const char *name, const struct takt_sim_stat *stat,
		       double value)
{
	if (stat->n)
		takt_str_addf(out, ",\"%s\":%.4f", name, value);
	else
		takt_str_addf(out, ",\"%s\":null", name);
}

static void add_seeds(const struct takt_fgd_experiment *experiment, size_t policy, size_t load,
		      struct takt_str *out)
{
	takt_str_add(out, ",\"by_seed\":[");
	for (size_t s = 0; s < experiment->seed_count; s++) {
		double value;

		takt_str_add(out, s ? "," : "");
		if (takt_fgd_value(experiment, policy, s, load, TAKT_FGD_ALLOCATION, &value))
			takt_str_addf(out, "%.4f", value);
		else
			takt_str_add(out, "null");
	}
	takt_str_add(out, "]");
}

static void add_classes(const struct takt_fgd_experiment *experiment, size_t policy, size_t load,
			struct takt_str *out)
{
	const struct takt_sim_classes *classes = experiment->config->world->classes;
	bool first = true;

	takt_str_add(out, ",\n \"classes\":[");
	for (size_t c = 0; c < classes->classes.len; c++) {
		struct takt_fgd_class_count count = takt_fgd_class(experiment, policy, load, c);

		if (count.arrived == 0)
			continue;
		takt_str_addf(out,
			      "%s{\"class\":\"%s\",\"arrived\":%" PRIu64 ",\"placed\":%" PRIu64
			      ",\"accepted_pct\":%.3f}",
			      first ? "" : ",", classes->classes.at[c].name, count.arrived,
			      count.placed, 100.0 * (double)count.placed / (double)count.arrived);
		first = false;
	}
	takt_str_add(out, "]");
}

static void add_record(const struct takt_fgd_experiment *experiment, size_t policy, size_t load,
		       size_t baseline, struct takt_str *out)
{
	const struct takt_sim_placement *policies = experiment->config->placements->at.at;
	struct takt_sim_stat arrived = takt_fgd_stat(experiment, policy, load, TAKT_FGD_ARRIVED);
	struct takt_sim_stat all = takt_fgd_stat(experiment, policy, load, TAKT_FGD_ALLOCATION);
	struct takt_sim_stat fragment = takt_fgd_stat(experiment, policy, load, TAKT_FGD_FRAGMENT);
	struct takt_sim_stat ratio =
		takt_fgd_stat(experiment, policy, load, TAKT_FGD_FRAGMENT_RATIO);
	struct takt_sim_stat moves = takt_fgd_stat(experiment, policy, load, TAKT_FGD_MOVES);
	struct takt_sim_stat bound = takt_fgd_bound(experiment, load);

	takt_str_add(out, "{\"placement\":");
	takt_json_add_text(out, policies[policy].name);
	takt_str_addf(out, ",\"load_pct\":%u", experiment->config->world->loads[load]);
	add_number(out, "arrived_pct", &arrived, arrived.mean);
	add_number(out, "allocation_pct", &all, all.mean);
	add_number(out, "sd", &all, all.sd);
	add_number(out, "ci95", &all, all.half95);
	add_number(out, "bound_pct", &bound, bound.mean);
	add_number(out, "fragment_pct", &fragment, fragment.mean);
	add_number(out, "fragment_ratio_pct", &ratio, ratio.mean);
	if (experiment->config->world->migrate_percent)
		add_number(out, "moves_per_100", &moves, moves.mean);
	if (policy != baseline) {
		struct takt_sim_stat diff = takt_fgd_difference(experiment, policy, baseline, load,
								TAKT_FGD_ALLOCATION);

		takt_str_add(out, ",\"against\":{\"placement\":");
		takt_json_add_text(out, policies[baseline].name);
		add_number(out, "difference_pct", &diff, diff.mean);
		add_number(out, "ci95", &diff, diff.half95);
		takt_str_add(out, "}");
	}
	add_seeds(experiment, policy, load, out);
	add_classes(experiment, policy, load, out);
	takt_str_add(out, "}");
}

void takt_fgd_json(const struct takt_fgd_experiment *experiment, const struct takt_sim_meta *meta,
		   size_t baseline, struct takt_str *out)
{
	const char *comma = "\n";

	takt_sim_meta_json(meta, out);
	takt_json_add_name(out, "bound", false);
	takt_json_add_text(out, experiment->bound_note);
	takt_str_add(out, ",\n\"results\":[");
	for (size_t p = 0; p < experiment->config->placements->at.len; p++)
		for (size_t l = 0; l < experiment->config->world->load_count; l++) {
			takt_str_add(out, comma);
			add_record(experiment, p, l, baseline, out);
			comma = ",\n";
		}
	takt_str_add(out, "\n]}\n");
}

static void add_cell(struct takt_str *out, const struct takt_sim_stat *stat, double value)
{
	if (stat->n)
		takt_str_addf(out, ",%.4f", value);
	else
		takt_str_add(out, ",");
}

static void add_row(const struct takt_fgd_experiment *experiment, size_t policy, size_t load,
		    size_t baseline, struct takt_str *out)
{
	struct takt_sim_stat arrived = takt_fgd_stat(experiment, policy, load, TAKT_FGD_ARRIVED);
	struct takt_sim_stat all = takt_fgd_stat(experiment, policy, load, TAKT_FGD_ALLOCATION);
	struct takt_sim_stat bound = takt_fgd_bound(experiment, load);
	struct takt_sim_stat fragment = takt_fgd_stat(experiment, policy, load, TAKT_FGD_FRAGMENT);
	struct takt_sim_stat ratio =
		takt_fgd_stat(experiment, policy, load, TAKT_FGD_FRAGMENT_RATIO);
	struct takt_sim_stat diff =
		takt_fgd_difference(experiment, policy, baseline, load, TAKT_FGD_ALLOCATION);

	takt_str_addf(out, "%s,%u,%zu", experiment->config->placements->at.at[policy].name,
		      experiment->config->world->loads[load], all.n);
	add_cell(out, &arrived, arrived.mean);
	add_cell(out, &all, all.mean);
	add_cell(out, &all, all.sd);
	add_cell(out, &all, all.half95);
	add_cell(out, &bound, bound.mean);
	add_cell(out, &fragment, fragment.mean);
	add_cell(out, &ratio, ratio.mean);
	takt_str_addf(out, ",%s", experiment->config->placements->at.at[baseline].name);
	add_cell(out, &diff, diff.mean);
	add_cell(out, &diff, diff.half95);
	takt_str_add(out, "\n");
}

void takt_fgd_csv(const struct takt_fgd_experiment *experiment, const struct takt_sim_meta *meta,
		  size_t baseline, struct takt_str *out)
{
	takt_sim_meta_csv(meta, out);
	takt_str_addf(out, "# bound: %s\n", experiment->bound_note);
	takt_str_add(out, "placement,load_pct,seeds,arrived_pct,allocation_pct,sd,ci95,bound_pct,"
			  "fragment_pct,fragment_ratio_pct,against,difference_pct,"
			  "difference_ci95\n");
	for (size_t p = 0; p < experiment->config->placements->at.len; p++)
		for (size_t l = 0; l < experiment->config->world->load_count; l++)
			add_row(experiment, p, l, baseline, out);
}
