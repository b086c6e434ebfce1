/* SPDX-License-Identifier: Apache-2.0 */
/* takt simulate --queue: policies of the queue on a trace of jobs. */
#include <stdio.h>
#include <string.h>

#include "base/timetext.h"
#include "cli/simulate.h"
#include "cli/table.h"
#include "sim/gavel_work.h"
#include "sim/queue_experiment.h"
#include "sim/sim_policies.h"

#define MAX_SPAN_MS (UINT64_C(3650) * 24 * 3600 * 1000)

struct setting {
	struct takt_queue_policies policies;
	struct takt_sim_placements placements;
	struct takt_gpu_power power;
	struct takt_queue_experiment_config config;
};

static void setting_fini(struct setting *setting)
{
	takt_queue_policies_fini(&setting->policies);
	takt_sim_placements_fini(&setting->placements);
}

static int take_duration(struct takt_simulate *simulate, const char *option, uint64_t absent_ns,
			 uint64_t *ret_ns, struct takt_err *err)
{
	char text[TAKT_DURATION_EXACT];
	uint64_t ms;
	int rc = takt_cli_duration_ms(simulate->cli, option, MAX_SPAN_MS,
				      absent_ns / TAKT_NS_PER_MS, &ms, err);

	if (rc < 0)
		return rc;
	*ret_ns = ms * TAKT_NS_PER_MS;
	takt_simulate_note(simulate, option, "%s", takt_duration_exact(*ret_ns, text));
	return 0;
}

/* "none", "mtbf=500h,repair=1h", or a file. */
static int take_failures(struct takt_simulate *simulate,
			 struct takt_queue_experiment_config *config, struct takt_err *err)
{
	const char *text = takt_cli_value(simulate->cli, "failures");
	static const char mtbf[] = "mtbf=", repair[] = ",repair=";
	char first[64];
	const char *comma;

	takt_simulate_note(simulate, "failures", "%s", text ? text : "none");
	if (!text || strcmp(text, "none") == 0)
		return 0;
	comma = strstr(text, repair);
	if (strncmp(text, mtbf, sizeof(mtbf) - 1) != 0) {
		config->failures = text;
		return 0;
	}
	takt_strcpy(first, sizeof(first), text + sizeof(mtbf) - 1);
	if (comma && (size_t)(comma - text) < sizeof(first))
		first[(size_t)(comma - text) - (sizeof(mtbf) - 1)] = '\0';
	if (!comma || takt_duration_parse(first, &config->mtbf_ns) < 0 ||
	    takt_duration_parse(comma + sizeof(repair) - 1, &config->repair_ns) < 0 ||
	    config->mtbf_ns == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--failures' must be a file or read mtbf=500h,repair=1h, not "
				    "'%.60s'",
				    text);
	return 0;
}

static int take_estimates(struct takt_simulate *simulate,
			  struct takt_queue_experiment_config *config, struct takt_err *err)
{
	const char *text = takt_cli_value(simulate->cli, "estimates");
	int i = 0;

	if (!text)
		text = "learned";
	while (takt_queue_estimates_names[i] && strcmp(takt_queue_estimates_names[i], text) != 0)
		i++;
	if (!takt_queue_estimates_names[i])
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"'--estimates' must be learned, none, given or perfect, not '%.40s'", text);
	config->estimates = (enum takt_queue_estimates)i;
	takt_simulate_note(simulate, "estimates", "%s", text);
	return 0;
}

/* "30,300": idle and busy watts of models that the table does not know. */
static int take_watts(struct takt_simulate *simulate, struct setting *setting, struct takt_err *err)
{
	const char *text = takt_cli_value(simulate->cli, "gpu-watts");
	unsigned long long idle, busy;
	char first[16];
	const char *comma;

	if (!text)
		return 0;
	takt_strcpy(first, sizeof(first), text);
	comma = strchr(text, ',');
	if (comma && (size_t)(comma - text) < sizeof(first))
		first[comma - text] = '\0';
	if (!comma || takt_parse_u64(first, 0, 100000, &idle) < 0 ||
	    takt_parse_u64(comma + 1, idle, 100000, &busy) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--gpu-watts' must be IDLE,BUSY such as 30,300, not '%.40s'",
				    text);
	setting->power = (struct takt_gpu_power){(uint32_t)idle, (uint32_t)busy};
	setting->config.power = &setting->power;
	takt_simulate_note(simulate, "gpu-watts", "%s", text);
	return 0;
}

/* By the names of what was compared. */
static int find_baseline(const struct takt_simulate *simulate,
			 const struct takt_queue_experiment *experiment, size_t *ret,
			 struct takt_err *err)
{
	const char *name = takt_cli_value(simulate->cli, "against");

	*ret = 0;
	for (size_t i = 0; name && i < experiment->variant_count; i++) {
		*ret = i;
		if (strcmp(experiment->variants[i].name, name) == 0)
			return 0;
	}
	return name ? takt_err_set(err, -TAKT_E_USAGE,
				   "'--against %.60s' is none of what is simulated, such as '%s'",
				   name, experiment->variants[0].name)
		    : 0;
}

static int take_placement(struct takt_simulate *simulate, struct setting *setting,
			  struct takt_err *err)
{
	const char *list = takt_cli_value(simulate->cli, "placement");
	int rc;

	if (!list)
		return 0;
	rc = takt_sim_placements(list, &setting->placements, err);
	if (rc < 0)
		return rc;
	setting->config.placements = &setting->placements;
	takt_simulate_note(simulate, "placement", "%s", list);
	return 0;
}

/* "gavel:FILE" draws jobs; anything else is a trace. */
static int take_trace(struct takt_simulate *simulate, struct takt_queue_experiment_config *config,
		      struct takt_err *err)
{
	const char *gavel = takt_simulate_behind(simulate->trace, "gavel");
	int64_t jobs;
	int rc = takt_cli_number(simulate->cli, "jobs", 1, TAKT_GAVEL_MAX_JOBS, 3000, &jobs, err);

	if (rc < 0)
		return rc;
	if (gavel == simulate->trace) {
		config->trace = takt_simulate_behind(
			takt_simulate_behind(simulate->trace, "philly"), "openb");
		return 0;
	}
	config->trace = gavel;
	config->gavel_jobs = (uint32_t)jobs;
	takt_simulate_note(simulate, "jobs", "%lld", (long long)jobs);
	return 0;
}

static int take_seeds(struct takt_simulate *simulate, struct takt_queue_experiment_config *config,
		      struct takt_err *err)
{
	const char *resample = takt_cli_value(simulate->cli, "resample");
	bool random;
	int rc;

	if (resample && strcmp(resample, "weeks") != 0)
		return takt_err_set(err, -TAKT_E_USAGE, "'--resample' must be weeks, not '%.40s'",
				    resample);
	config->resample = resample != NULL;
	random = config->resample || config->mtbf_ns || config->gavel_jobs;
	rc = takt_simulate_seeds(simulate, 1, random ? 10 : 1, err);
	takt_simulate_note(simulate, "resample", "%s", resample ? resample : "none");
	config->first_seed = simulate->first_seed;
	config->last_seed = simulate->last_seed;
	return rc;
}

static int describe(struct takt_simulate *simulate, struct setting *setting, struct takt_err *err)
{
	struct takt_queue_experiment_config *config = &setting->config;
	const char *list = takt_cli_value(simulate->cli, "queue");
	int64_t migrate;
	int rc = takt_queue_policies(list ? list : "fifo", &setting->policies, err);

	rc = rc < 0 ? rc : take_placement(simulate, setting, err);
	rc = rc < 0 ? rc : take_trace(simulate, config, err);
	rc = rc < 0 ? rc : take_failures(simulate, config, err);
	rc = rc < 0 ? rc : take_estimates(simulate, config, err);
	rc = rc < 0 ? rc : take_watts(simulate, setting, err);
	rc = rc < 0 ? rc : take_seeds(simulate, config, err);
	rc = rc < 0 ? rc : takt_simulate_loads(simulate, NULL, err);
	rc = rc < 0 ? rc
		    : take_duration(simulate, "preempt-cost", 60 * TAKT_NS_PER_S,
				    &config->preempt_cost_ns, err);
	rc = rc < 0 ? rc
		    : take_duration(simulate, "checkpoint", 1800 * TAKT_NS_PER_S,
				    &config->checkpoint_ns, err);
	rc = rc < 0 ? rc : takt_cli_number(simulate->cli, "migrate", 0, 1000000, 0, &migrate, err);
	if (rc < 0)
		return rc;
	config->cluster = simulate->cluster;
	config->policies = &setting->policies;
	memcpy(config->loads, simulate->loads, sizeof(simulate->loads));
	config->load_count = simulate->load_count;
	config->migrate_most = (uint32_t)migrate;
	config->threads = simulate->threads;
	config->progress = takt_simulate_progress;
	config->progress_ctx = simulate;
	return 0;
}

static void add_hours(struct takt_table *table, const struct takt_sim_stat *stat)
{
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.2f", stat->mean / 3600);
}

static void print_row(struct takt_table *table, const struct takt_sim_table *results, size_t policy,
		      size_t load)
{
	static const enum takt_queue_measure hours[] = {
		TAKT_QUEUE_JCT_MEAN,  TAKT_QUEUE_JCT_MEDIAN,  TAKT_QUEUE_JCT_P99,
		TAKT_QUEUE_WAIT_MEAN, TAKT_QUEUE_WAIT_MEDIAN, TAKT_QUEUE_WAIT_P99,
		TAKT_QUEUE_MAKESPAN};
	static const enum takt_queue_measure plain[] = {TAKT_QUEUE_UTILISATION, TAKT_QUEUE_RHO_MEAN,
							TAKT_QUEUE_PREEMPTIONS, TAKT_QUEUE_LOST,
							TAKT_QUEUE_ENERGY};

	takt_table_add(table, TAKT_STYLE_HEAD, "%s", results->name(results->ctx, policy));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(hours); i++) {
		struct takt_sim_stat stat = takt_sim_table_stat(results, policy, load, hours[i]);

		add_hours(table, &stat);
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(plain); i++) {
		struct takt_sim_stat stat = takt_sim_table_stat(results, policy, load, plain[i]);

		if (stat.n)
			takt_table_add(table, TAKT_STYLE_PLAIN, "%.*f",
				       takt_queue_measures[plain[i]].decimals, stat.mean);
		else
			takt_table_add(table, TAKT_STYLE_PLAIN, "%s", "");
	}
}

static void print_load(struct takt_cli *cli, const struct takt_queue_experiment *experiment,
		       size_t load, size_t baseline)
{
	static const struct takt_column columns[] = {
		{"QUEUE", false, 0, 0},	     {"JCT h", true, 0, 0},
		{"MEDIAN", true, 0, 5},	     {"P99", true, 0, 4},
		{"WAIT h", true, 0, 0},	     {"MEDIAN", true, 0, 6},
		{"P99", true, 0, 0},	     {"MAKESPAN h", true, 0, 7},
		{"GPUS HELD %", true, 0, 2}, {"RHO", true, 0, 3},
		{"PREEMPTIONS", true, 0, 1}, {"LOST %", true, 0, 8},
		{"ENERGY kWh", true, 0, 9},
	};
	struct takt_sim_table results = takt_queue_table(experiment);
	struct takt_table table = TAKT_TABLE(columns);

	takt_str_addf(&cli->out, "%soffered load %.1f %% on %llu GPUs, %zu seeds\n",
		      load ? "\n" : "", (double)experiment->offered_permille[load] / 10,
		      (unsigned long long)experiment->clusters[load].gpus, experiment->seed_count);
	for (size_t p = 0; p < experiment->variant_count; p++)
		print_row(&table, &results, p, load);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	for (size_t p = 0; p < experiment->variant_count && experiment->seed_count > 1; p++) {
		struct takt_sim_stat diff =
			takt_sim_table_difference(&results, p, baseline, load, TAKT_QUEUE_JCT_MEAN);

		if (p != baseline)
			takt_str_addf(&cli->out,
				      "%s - %s: mean JCT %+.2f h, 95 %% interval %+.2f..%+.2f\n",
				      experiment->variants[p].name,
				      experiment->variants[baseline].name, diff.mean / 3600,
				      (diff.mean - diff.half95) / 3600,
				      (diff.mean + diff.half95) / 3600);
	}
}

static int show(struct takt_simulate *simulate, const struct takt_queue_experiment *experiment,
		size_t baseline, struct takt_err *err)
{
	struct takt_cli *cli = simulate->cli;
	struct takt_sim_meta meta = takt_simulate_meta(simulate, "queue");
	struct takt_sim_table table = takt_queue_table(experiment);
	const struct takt_queue_kpi *first = takt_queue_kpi(experiment, 0, 0, 0);
	int rc;

	meta.cluster_hash = experiment->clusters[0].hash;
	meta.trace_hash = experiment->config->gavel_jobs ? experiment->throughputs.hash
							 : experiment->work.hash;
	meta.nodes = experiment->clusters[0].nodes.len;
	meta.gpus = experiment->clusters[0].gpus;
	meta.jobs = first->jobs + first->impossible;
	rc = takt_simulate_results(simulate, &table, &meta, baseline, err);
	if (rc < 0 || cli->json)
		return rc;
	for (size_t l = 0; l < experiment->load_count; l++)
		print_load(cli, experiment, l, baseline);
	if (first->impossible)
		takt_str_addf(&cli->out,
			      "%llu jobs can never run on this cluster and are left "
			      "out\n",
			      (unsigned long long)first->impossible);
	return rc;
}

int takt_simulate_queue(struct takt_simulate *simulate, struct takt_err *err)
{
	struct takt_queue_experiment experiment;
	struct setting setting = {0};
	size_t baseline;
	int rc = describe(simulate, &setting, err);

	if (rc == 0) {
		rc = takt_queue_experiment(&setting.config, &experiment, err);
		takt_simulate_progress_end(simulate);
	}
	if (rc == 0) {
		rc = find_baseline(simulate, &experiment, &baseline, err);
		if (rc == 0)
			rc = show(simulate, &experiment, baseline, err);
		takt_queue_experiment_fini(&experiment);
	}
	setting_fini(&setting);
	return rc;
}
