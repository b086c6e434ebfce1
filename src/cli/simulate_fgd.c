/* SPDX-License-Identifier: Apache-2.0 */
/* takt simulate --protocol fgd: the published placement experiment. */
#include <stdio.h>
#include <string.h>

#include "cli/report_page.h"
#include "cli/simulate.h"
#include "cli/simulate_pods.h"
#include "cli/table.h"
#include "sim/fgd_experiment.h"
#include "sim/fgd_report.h"

enum {
	EXIT_ABOVE_BOUND = 3,
	MAX_COLUMNS = 14, /* loads in the table for people */
};

static int describe(struct takt_simulate *simulate, struct takt_simulate_pods *pods,
		    struct takt_fgd_world *ret, struct takt_err *err)
{
	int64_t tuning, migrate;
	int rc = takt_cli_number(simulate->cli, "tuning", 1, TAKT_FGD_MAX_LOAD, 130, &tuning, err);

	if (rc == 0)
		rc = takt_cli_number(simulate->cli, "migrate", 0, 100, 0, &migrate, err);
	if (rc == 0)
		rc = takt_simulate_seeds(simulate, 1, 10, err);
	if (rc == 0)
		rc = takt_simulate_loads(simulate, "50,60,70,80,90,100,110,120,130", err);
	if (rc < 0)
		return rc;
	takt_simulate_note(simulate, "tuning_pct", "%lld", (long long)tuning);
	takt_simulate_note(simulate, "migrate_pct", "%lld", (long long)migrate);
	*ret = (struct takt_fgd_world){
		.cluster = &pods->cluster,
		.work = &pods->work,
		.classes = &pods->classes,
		.typical = &pods->typical,
		.tuning_permille = (uint32_t)tuning * 10,
		.load_count = simulate->load_count,
		.migrate_percent = (uint32_t)migrate,
	};
	memcpy(ret->loads, simulate->loads, sizeof(simulate->loads));
	return 0;
}

static void add_stat(struct takt_table *table, const struct takt_sim_stat *stat, bool best)
{
	if (stat->n)
		takt_table_add(table, best ? TAKT_STYLE_GOOD : TAKT_STYLE_PLAIN, "%.2f",
			       stat->mean);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", "");
}

static bool is_best(const struct takt_fgd_experiment *experiment, size_t policy, size_t load)
{
	double own = takt_fgd_stat(experiment, policy, load, TAKT_FGD_ALLOCATION).mean;

	for (size_t p = 0; p < experiment->config->placements->at.len; p++)
		if (takt_fgd_stat(experiment, p, load, TAKT_FGD_ALLOCATION).mean > own)
			return false;
	return experiment->config->placements->at.len > 1;
}

/* Columns are the loads; when there are too many the last ones. */
static size_t first_column(const struct takt_fgd_experiment *experiment)
{
	size_t loads = experiment->config->world->load_count;

	return loads > MAX_COLUMNS ? loads - MAX_COLUMNS : 0;
}

static void print_allocation(struct takt_cli *cli, const struct takt_fgd_experiment *experiment)
{
	const struct takt_fgd_world *world = experiment->config->world;
	struct takt_column columns[MAX_COLUMNS + 1] = {{"ALLOCATED % AT", false, 0, 0}};
	char titles[MAX_COLUMNS][12];
	size_t from = first_column(experiment), count = world->load_count - from;
	struct takt_table table = {
		.columns = columns, .column_count = count + 1, .cells = TAKT_VEC_INIT(1 << 20)};

	for (size_t l = 0; l < count; l++) {
		snprintf(titles[l], sizeof(titles[l]), "%u", world->loads[from + l]);
		columns[l + 1] = (struct takt_column){titles[l], true, 0, 0};
	}
	for (size_t p = 0; p < experiment->config->placements->at.len; p++) {
		takt_table_add(&table, TAKT_STYLE_HEAD, "%s",
			       experiment->config->placements->at.at[p].name);
		for (size_t l = from; l < world->load_count; l++) {
			struct takt_sim_stat stat =
				takt_fgd_stat(experiment, p, l, TAKT_FGD_ALLOCATION);

			add_stat(&table, &stat, is_best(experiment, p, l));
		}
	}
	takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", "bound");
	for (size_t l = from; l < world->load_count; l++) {
		struct takt_sim_stat bound = takt_fgd_bound(experiment, l);

		add_stat(&table, &bound, false);
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	if (!experiment->bounded)
		takt_str_addf(&cli->out, "bound %s\n", experiment->bound_note);
}

/* At one load: intervals, fragments, differences. */
static void print_details(struct takt_cli *cli, const struct takt_fgd_experiment *experiment,
			  size_t load, size_t baseline)
{
	static const struct takt_column columns[] = {
		{"PLACEMENT", false, 0, 0},  {"ALLOCATED %", true, 0, 0},
		{"SD", true, 0, 4},	     {"95 % INTERVAL", true, 0, 0},
		{"DIFFERENCE", true, 0, 0},  {"INTERVAL", true, 0, 1},
		{"FRAGMENTS %", true, 0, 2}, {"OF IDLE %", true, 0, 3},
	};
	struct takt_table table = TAKT_TABLE(columns);
	const struct takt_sim_placement *policies = experiment->config->placements->at.at;

	takt_str_addf(&cli->out, "\nat %u %% of arrivals, %zu seeds, differences to %s:\n",
		      experiment->config->world->loads[load], experiment->seed_count,
		      policies[baseline].name);
	for (size_t p = 0; p < experiment->config->placements->at.len; p++) {
		struct takt_sim_stat stat = takt_fgd_stat(experiment, p, load, TAKT_FGD_ALLOCATION);
		struct takt_sim_stat diff =
			takt_fgd_difference(experiment, p, baseline, load, TAKT_FGD_ALLOCATION);
		struct takt_sim_stat fragment =
			takt_fgd_stat(experiment, p, load, TAKT_FGD_FRAGMENT);
		struct takt_sim_stat ratio =
			takt_fgd_stat(experiment, p, load, TAKT_FGD_FRAGMENT_RATIO);

		takt_table_add(&table, TAKT_STYLE_HEAD, "%s", policies[p].name);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.3f", stat.mean);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.3f", stat.sd);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.3f..%.3f", stat.mean - stat.half95,
			       stat.mean + stat.half95);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%+.3f", diff.mean);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%+.3f..%+.3f", diff.mean - diff.half95,
			       diff.mean + diff.half95);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.2f", fragment.mean);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.1f", ratio.mean);
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

static void print_classes(struct takt_cli *cli, const struct takt_fgd_experiment *experiment,
			  size_t load)
{
	const struct takt_sim_classes *classes = experiment->config->world->classes;
	struct takt_column columns[16] = {{"PLACED % OF CLASS", false, 0, 0},
					  {"ARRIVED", true, 0, 0}};
	size_t policies = experiment->config->placements->at.len;
	struct takt_table table = {.columns = columns, .cells = TAKT_VEC_INIT(1 << 20)};

	if (policies > TAKT_ARRAY_LEN(columns) - 2)
		policies = TAKT_ARRAY_LEN(columns) - 2;
	table.column_count = policies + 2;
	for (size_t p = 0; p < policies; p++)
		columns[p + 2] = (struct takt_column){experiment->config->placements->at.at[p].name,
						      true, 0, 0};
	takt_str_add(&cli->out, "\n");
	for (size_t c = 0; c < classes->classes.len; c++) {
		struct takt_fgd_class_count count = takt_fgd_class(experiment, 0, load, c);

		if (count.arrived == 0)
			continue;
		takt_table_add(&table, TAKT_STYLE_HEAD, "%s", classes->classes.at[c].name);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%.1f",
			       (double)count.arrived / (double)experiment->seed_count);
		for (size_t p = 0; p < policies; p++) {
			count = takt_fgd_class(experiment, p, load, c);
			takt_table_add(&table, TAKT_STYLE_PLAIN, "%.2f",
				       100.0 * (double)count.placed / (double)count.arrived);
		}
	}
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

static int show(struct takt_simulate *simulate, const struct takt_fgd_experiment *experiment,
		const struct takt_simulate_pods *pods, struct takt_err *err)
{
	struct takt_cli *cli = simulate->cli;
	struct takt_sim_meta meta = takt_simulate_meta(simulate, "fgd");
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SIM_RESULT_BYTES);
	TAKT_CLEANUP(strp) struct takt_str csv = TAKT_STR(TAKT_SIM_RESULT_BYTES);
	int rc;

	takt_simulate_pods_meta(pods, &meta);
	takt_fgd_json(experiment, &meta, pods->baseline, &json);
	takt_fgd_csv(experiment, &meta, pods->baseline, &csv);
	rc = takt_simulate_write(simulate, "output", &json, err);
	if (rc == 0)
		rc = takt_simulate_write(simulate, "csv", &csv, err);
	if (rc == 0)
		rc = takt_report_write(cli, &json, err);
	if (cli->json) {
		takt_str_add(&cli->out, takt_str_text(&json));
		return rc;
	}
	print_allocation(cli, experiment);
	print_details(cli, experiment, takt_fgd_main_load(experiment), pods->baseline);
	print_classes(cli, experiment, takt_fgd_main_load(experiment));
	return rc;
}

static int run_experiment(struct takt_simulate *simulate, const struct takt_simulate_pods *pods,
			  const struct takt_fgd_world *world, struct takt_err *err)
{
	char path[PATH_MAX], cache[PATH_MAX];
	struct takt_bound_program bound;
	struct takt_fgd_experiment experiment;
	struct takt_fgd_experiment_config config = {
		.world = world,
		.placements = &pods->placements,
		.params = pods->params,
		.param_count = simulate->param_count,
		.first_seed = simulate->first_seed,
		.last_seed = simulate->last_seed,
		.threads = simulate->threads,
		.progress = takt_simulate_progress,
		.progress_ctx = simulate,
	};
	int rc;

	if (takt_simulate_bound(simulate, path, cache, &bound))
		config.bound = &bound;
	rc = takt_fgd_experiment(&config, &experiment, err);
	takt_simulate_progress_end(simulate);
	if (rc < 0)
		return rc;
	rc = show(simulate, &experiment, pods, err);
	if (rc == 0 && experiment.violations) {
		fprintf(stderr,
			"takt: %llu results are above what is possible: the experiment is "
			"at fault. %s\n",
			(unsigned long long)experiment.violations, experiment.violation);
		rc = EXIT_ABOVE_BOUND;
	}
	takt_fgd_experiment_fini(&experiment);
	return rc;
}

int takt_simulate_fgd(struct takt_simulate *simulate, struct takt_err *err)
{
	struct takt_simulate_pods pods;
	struct takt_fgd_world world;
	int rc = takt_simulate_pods_load(simulate, &pods, err);

	if (rc < 0)
		return rc;
	rc = describe(simulate, &pods, &world, err);
	if (rc == 0)
		rc = run_experiment(simulate, &pods, &world, err);
	takt_simulate_pods_fini(&pods);
	return rc;
}
