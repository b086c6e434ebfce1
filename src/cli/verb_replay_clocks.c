/* SPDX-License-Identifier: Apache-2.0 */
/* takt replay-clocks: governors on measured tables, without a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timetypes.h"
#include "cli/report_page.h"
#include "cli/simulate.h"
#include "cli/table.h"
#include "sim/clock_report.h"
#include "sim/epoch_check.h"
#include "sim/sim_governors.h"

enum {
	MAX_EPOCHS = 1000000,
	MAX_SEED_COUNT = 100000,
};

struct replay {
	struct takt_simulate simulate;
	struct takt_clock_points points;
	struct takt_sim_governors governors;
	struct takt_score_config config;
	struct takt_scores scores;
};

/* One number of a list that stands at *at; moves on behind its comma, to NULL at the end. */
static bool take_number(const char **at, double max, double *ret)
{
	char *end;

	*ret = strtod(*at, &end);
	if (end == *at || (*end != ',' && *end != '\0') || !(*ret >= 0 && *ret <= max))
		return false;
	*at = *end ? end + 1 : NULL;
	return true;
}

static int take_noise(struct replay *replay, const char *text, struct takt_err *err)
{
	struct takt_score_config *config = &replay->config;
	double time_pct, power_pct;
	const char *at = text;

	if (!take_number(&at, 50, &time_pct) || !at || !take_number(&at, 50, &power_pct) || at)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--noise' must be two percents up to 50, of time and of "
				    "power, such as 2,3, not '%.40s'",
				    text);
	if (config->noise_count == TAKT_SCORE_MAX_NOISES)
		return takt_err_set(err, -TAKT_E_USAGE, "more than %d '--noise'",
				    TAKT_SCORE_MAX_NOISES);
	config->noises[config->noise_count++] =
		(struct takt_score_noise){time_pct / 100, power_pct / 100};
	takt_simulate_note(&replay->simulate, "noise_pct", "%g,%g", time_pct, power_pct);
	return 0;
}

static int take_noises(struct replay *replay, struct takt_err *err)
{
	const struct takt_cli *cli = replay->simulate.cli;
	int rc = 0;

	for (size_t i = 0; i < cli->given_count && rc == 0; i++)
		if (strcmp(cli->given[i].option->name, "noise") == 0)
			rc = take_noise(replay, cli->given[i].value, err);
	return rc < 0 || replay->config.noise_count ? rc : take_noise(replay, "2,3", err);
}

static int take_slowdown(struct replay *replay, struct takt_err *err)
{
	const char *text = takt_cli_value(replay->simulate.cli, "max-slowdown");
	const char *at = text ? text : "5";
	double percent;

	if (!take_number(&at, 100, &percent) || at ||
	    fabs(percent * 10 - round(percent * 10)) > 1e-6)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--max-slowdown' must be a percentage up to 100 in steps of "
				    "0.1, not '%.40s'",
				    text);
	replay->config.max_slowdown_permille = (uint32_t)lround(percent * 10);
	takt_simulate_note(&replay->simulate, "max_slowdown_pct", "%g", percent);
	return 0;
}

static int take_epochs(struct replay *replay, struct takt_err *err)
{
	const char *text = takt_cli_value(replay->simulate.cli, "epochs");
	const char *at = text ? text : "30,100,400";
	double epochs;

	while (at) {
		if (!take_number(&at, MAX_EPOCHS, &epochs) || epochs < 1 ||
		    fabs(epochs - round(epochs)) > 0 ||
		    replay->config.length_count == TAKT_SCORE_MAX_LENGTHS)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--epochs' must be up to %d lengths of jobs from 1 "
					    "to %d epochs, such as 30,100,400, not '%.40s'",
					    TAKT_SCORE_MAX_LENGTHS, MAX_EPOCHS, text);
		replay->config.lengths[replay->config.length_count++] = (uint32_t)epochs;
	}
	takt_simulate_note(&replay->simulate, "epochs", "%s", text ? text : "30,100,400");
	return 0;
}

static int take_times(struct replay *replay, struct takt_err *err)
{
	struct takt_clock_world *world = &replay->config.world;
	struct takt_cli *cli = replay->simulate.cli;
	uint64_t epoch_ms, delay_ms, meter_ms;
	int rc = takt_cli_duration_ms(cli, "epoch", 3600000, 2000, &epoch_ms, err);

	if (rc == 0)
		rc = takt_cli_duration_ms(cli, "delay", 3600000, 200, &delay_ms, err);
	if (rc == 0)
		rc = takt_cli_duration_ms(cli, "meter", 3600000, 100, &meter_ms, err);
	if (rc < 0)
		return rc;
	if (epoch_ms < 100 || delay_ms * 2 > epoch_ms || meter_ms * 2 > epoch_ms)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--epoch' must be at least 100ms and twice '--delay' and "
				    "'--meter'");
	world->epoch_ns = epoch_ms * TAKT_NS_PER_MS;
	world->delay_ns = delay_ms * TAKT_NS_PER_MS;
	world->meter_ns = meter_ms * TAKT_NS_PER_MS;
	takt_simulate_note(&replay->simulate, "epoch_ms", "%llu", (unsigned long long)epoch_ms);
	takt_simulate_note(&replay->simulate, "delay_ms", "%llu", (unsigned long long)delay_ms);
	takt_simulate_note(&replay->simulate, "meter_ms", "%llu", (unsigned long long)meter_ms);
	return 0;
}

static int take_jobs(struct replay *replay, struct takt_err *err)
{
	struct takt_cli *cli = replay->simulate.cli;
	int64_t phases;
	int rc = takt_cli_number(cli, "phases", 1, TAKT_SCORE_MAX_LENGTHS, 1, &phases, err);

	if (rc == 0)
		rc = takt_simulate_seeds(&replay->simulate, 1, 20, err);
	if (rc < 0)
		return rc;
	replay->config.phases = (uint32_t)phases;
	replay->config.world.tell_remaining = takt_cli_has(cli, "tell-remaining");
	replay->config.first_seed = replay->simulate.first_seed;
	replay->config.last_seed = replay->simulate.last_seed;
	if (phases > 1)
		takt_simulate_note(&replay->simulate, "phases", "%lld", (long long)phases);
	return 0;
}

static int read_counters(struct replay *replay, struct takt_err *err)
{
	const char *path = takt_cli_value(replay->simulate.cli, "counters");
	struct takt_lines *lines;
	int rc = path ? takt_lines_open(path, &lines, err) : 0;

	if (!path || rc < 0)
		return rc;
	rc = takt_clock_points_counters(&replay->points, lines, err);
	takt_lines_free(lines);
	return rc;
}

static int read_points(struct replay *replay, struct takt_err *err)
{
	const char *path = takt_cli_value(replay->simulate.cli, "points");
	struct takt_lines *lines;
	int rc;

	if (!path)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--points' names the table; see 'takt help replay-clocks'");
	rc = takt_lines_open(path, &lines, err);
	if (rc < 0)
		return rc;
	rc = takt_clock_points_read(lines, &replay->points, err);
	takt_lines_free(lines);
	return rc < 0 ? rc : read_counters(replay, err);
}

static int prepare(struct replay *replay, struct takt_err *err)
{
	const char *list = takt_cli_value(replay->simulate.cli, "governor");
	int rc = take_noises(replay, err);

	if (rc == 0)
		rc = take_slowdown(replay, err);
	if (rc == 0)
		rc = take_epochs(replay, err);
	if (rc == 0)
		rc = take_times(replay, err);
	if (rc == 0)
		rc = take_jobs(replay, err);
	if (rc == 0)
		rc = takt_sim_governors(list ? list : "assured", &replay->governors, err);
	for (size_t i = 0; i < replay->simulate.param_count && rc == 0; i++)
		rc = takt_sim_governors_param(&replay->governors, replay->simulate.params[i].name,
					      replay->simulate.params[i].value, err);
	if (rc == 0 && takt_cli_value(replay->simulate.cli, "train"))
		rc = takt_sim_governors_train(&replay->governors,
					      takt_cli_value(replay->simulate.cli, "train"), err);
	return rc == 0 ? read_points(replay, err) : rc;
}

static void add_share(struct takt_table *table, const struct takt_score *score)
{
	if (score->share_pct.n == 0)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", "");
	else if (score->share_pct.n == 1)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%.1f", score->share_pct.mean);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%.1f +-%.1f", score->share_pct.mean,
			       score->share_pct.half95);
}

static void add_row(struct takt_table *table, const struct takt_score *score)
{
	enum takt_style mind = score->violating_jobs ? TAKT_STYLE_MIND : TAKT_STYLE_PLAIN;

	if (score->setting > 0)
		takt_table_add(table, TAKT_STYLE_HEAD, "%s (%g)", score->governor, score->setting);
	else
		takt_table_add(table, TAKT_STYLE_HEAD, "%s%s", score->governor,
			       score->trained ? ", trained" : "");
	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", score->epochs);
	add_share(table, score);
	if (score->worst == SIZE_MAX)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", "");
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%.0f",
			       takt_score_share_pct(&score->workloads.at[score->worst]));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.2f", score->saved_pct.mean);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.2f %.2f %.2f", score->slowdown_pct.mean,
		       score->slowdown_p95_pct, score->slowdown_max_pct);
	takt_table_add(table, mind, "%zu of %zu", score->violating_jobs, score->runs);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.2f", score->violating_epochs_pct);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%.2f %.2f", score->overhead_time_pct,
		       score->overhead_energy_pct);
}

static void print_board(struct takt_cli *cli, const struct takt_score *scores, size_t count,
			const struct takt_score_config *config)
{
	static const struct takt_column columns[] = {
		{"GOVERNOR", false, 0, 0},
		{"EPOCHS", true, 0, 0},
		{"OF OPTIMUM %", true, 0, 0},
		{"WORST", true, 0, 2},
		{"SAVED %", true, 0, 0},
		{"SLOWER % MEAN P95 MAX", true, 0, 0},
		{"VIOLATING JOBS", true, 0, 0},
		{"EPOCHS %", true, 0, 0},
		{"PROBES % TIME, ENERGY", true, 0, 1},
	};
	struct takt_table table = TAKT_TABLE(columns);

	takt_str_addf(&cli->out,
		      "%s, %s: %zu workloads, actuator %s, %g %% promised; the optimum saves "
		      "%.2f %%\nnoise %g %% of time and %g %% of power an epoch\n",
		      scores->board->dataset, scores->board->gpu, scores->workloads.len,
		      takt_score_actuator(scores), config->max_slowdown_permille / 10.0,
		      scores->optimum_saved_pct, 100 * scores->noise.time,
		      100 * scores->noise.power);
	for (size_t i = 0; i < count; i++)
		if (!(scores[i].setting > 0) || scores[i].epochs == scores[0].epochs)
			add_row(&table, &scores[i]);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

static void print_scores(const struct replay *replay)
{
	const struct takt_scores *scores = &replay->scores;
	struct takt_cli *cli = replay->simulate.cli;

	for (size_t i = 0, end; i < scores->all.len; i = end) {
		const struct takt_score *first = &scores->all.at[i];

		for (end = i;
		     end < scores->all.len && takt_score_together(&scores->all.at[end], first);
		     end++)
			;
		if (i)
			takt_str_add(&cli->out, "\n");
		print_board(cli, first, end - i, &replay->config);
	}
	takt_str_add(&cli->out, "\nreplayed on measured tables; nothing ran\n");
}

static int show(struct replay *replay, struct takt_err *err)
{
	struct takt_sim_meta meta = takt_simulate_meta(&replay->simulate, "clocks");
	struct takt_cli *cli = replay->simulate.cli;
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SIM_RESULT_BYTES);
	TAKT_CLEANUP(strp) struct takt_str csv = TAKT_STR(TAKT_SIM_RESULT_BYTES);
	int rc;

	meta.cluster = "";
	meta.trace = takt_cli_value(cli, "points");
	meta.trace_hash = replay->points.hash;
	takt_scores_json(&replay->scores, &replay->config, &meta, &json);
	takt_scores_csv(&replay->scores, &replay->config, &meta, &csv);
	rc = takt_simulate_write(&replay->simulate, "output", &json, err);
	if (rc == 0)
		rc = takt_simulate_write(&replay->simulate, "csv", &csv, err);
	if (rc == 0)
		rc = takt_report_write(cli, &json, err);
	if (cli->json)
		takt_str_add(&cli->out, takt_str_text(&json));
	else
		print_scores(replay);
	return rc;
}

static int score(struct replay *replay, struct takt_err *err)
{
	int rc;

	replay->config.points = &replay->points;
	replay->config.governors = replay->governors.at;
	replay->config.governor_count = replay->governors.count;
	replay->config.threads = replay->simulate.threads;
	replay->config.progress = takt_simulate_progress;
	replay->config.progress_ctx = &replay->simulate;
	rc = takt_clock_score(&replay->config, &replay->scores, err);
	takt_simulate_progress_end(&replay->simulate);
	return rc == 0 ? show(replay, err) : rc;
}

static int check_log(const struct takt_cli *cli, const char *path, struct takt_epoch_check *ret,
		     struct takt_err *err)
{
	struct takt_sim_governors governors = {.count = 0};
	const struct takt_governors all = {governors.more};
	int rc = takt_sim_governors(takt_cli_value(cli, "governor"), &governors, err);

	if (rc == 0)
		rc = takt_epoch_check(&all, path, ret, err);
	takt_sim_governors_fini(&governors);
	return rc;
}

/* Made again from a daemon's log; one that comes to other wishes is damage. */
static int make_again(struct takt_cli *cli, const char *path, struct takt_err *err)
{
	struct takt_epoch_check check;
	int rc = check_log(cli, path, &check, err);

	if (rc < 0)
		return rc;
	if (cli->json)
		takt_str_addf(&cli->out, "{\"governor\":\"%s\",\"steps\":%u,\"differing\":%u}\n",
			      check.governor, check.steps, check.differing);
	else
		takt_str_addf(&cli->out, "%s for %s, %.1f %% promised: %u of %u steps as logged\n",
			      check.governor, check.job, check.max_slowdown_permille / 10.0,
			      check.steps - check.differing, check.steps);
	return check.differing ? takt_err_set(err, -TAKT_E_CORRUPT,
					      "step %u of '%s' does not come to the logged wish",
					      check.first_differing, path)
			       : 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct replay replay = {.points = {.curves = TAKT_VEC_INIT(TAKT_POINTS_MAX)},
				.scores = {.all = TAKT_VEC_INIT(TAKT_SCORE_MAX)}};
	int rc;

	if (takt_cli_has(cli, "list")) {
		takt_sim_governors_text(&cli->out);
		return 0;
	}
	if (takt_cli_value(cli, "log"))
		return make_again(cli, takt_cli_value(cli, "log"), err);
	rc = takt_simulate_begin(cli, &replay.simulate, err);
	if (rc < 0)
		return rc;
	rc = prepare(&replay, err);
	if (rc == 0)
		rc = score(&replay, err);
	takt_scores_fini(&replay.scores);
	takt_clock_points_fini(&replay.points);
	takt_sim_governors_fini(&replay.governors);
	takt_simulate_fini(&replay.simulate);
	return rc;
}

static const struct takt_option options[] = {
	{"points", 0, "FILE",
	 "CSV with dataset, gpu, workload, time, power_w, and core_mhz or power_limit_w; .gz too"},
	{"counters", 0, "FILE",
	 "CSV with dataset, gpu, workload, core_mhz, and dram_active, sm_active, tensor_active"},
	{"governor", 0, "LIST", "governors: assured,performance,./mine.so (assured)"},
	{"max-slowdown", 0, "PCT", "what is promised of a job's whole time (5)"},
	{"noise", 0, "TIME,POWER",
	 "percent of each epoch's measurement, standard deviation; may be repeated (2,3)"},
	{"epochs", 0, "LIST", "lengths of jobs at the highest clock (30,100,400)"},
	{"seeds", 0, "A..B", "each workload once for each (1..20)"},
	{"phases", 0, "N", "workloads that a job consists of, one after the other (1)"},
	{"train", 0, "LIST",
	 "governors whose state goes through all other workloads of the board before each job"},
	{"tell-remaining", 0, NULL, "governors are told how long the job still takes"},
	{"epoch", 0, "TIME", "of the governor's loop (2s)"},
	{"delay", 0, "TIME", "from a wish to its effect (200ms)"},
	{"meter", 0, "TIME", "the energy counter moves once in so long (100ms; 0s: always)"},
	{"param", 0, "NAME=N",
	 "a parameter of the governors that take it, or of one (fixed.sm_mhz=1200)"},
	{"log", 0, "FILE",
	 "make the steps of a daemon's governor again (STATE/epochs/JOB.ATTEMPT), and end; one of "
	 "a shared object is named by --governor, too"},
	{"threads", 0, "N", "scores at a time (one a core); results do not depend on it"},
	{"list", 0, NULL, "list the governors with their parameters, and end"},
	{"html", 0, "FILE", "write a report with plots there, complete in one file"},
	{"csv", 0, "FILE", "write the table there"},
	{"output", 0, "FILE", "write the JSON there"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt replay-clocks --points POINTS.csv --governor assured,geepafs --max-slowdown 5",
	 "how near to the optimum, and what it costs"},
	{"takt replay-clocks --points POINTS.csv --noise 5,5 --seeds 1..100 --json",
	 "with worse measurements, for a program"},
	{"takt replay-clocks --points POINTS.csv --noise 1,1 --noise 2,3 --noise 5,5",
	 "how much depends on how well is measured"},
	{"takt replay-clocks --points POINTS.csv --governor qlearning --train qlearning",
	 "one that learns, on workloads that it did not learn from"},
	{"takt replay-clocks --points POINTS.csv --governor fixed --param sm_permille=900",
	 "one ceiling for all"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"0", "replayed"},
	{"64", "wrong use: unknown option, governor or value"},
	{"65", "a file is not as it should be"},
	{"69", "a file cannot be read or written"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_replay_clocks = {
	.name = "replay-clocks",
	.summary = "compare governors of clocks on measured tables",
	.usage = "--points FILE [--governor LIST] [--max-slowdown PCT] [options]",
	.about = "Runs governors over tables of what clocks or power limits did to real programs, "
		 "with the noise, delay and coarse meters of real boards, and scores them by the "
		 "truth of the table against the best that could have been chosen. Needs no GPU "
		 "and no daemon and changes nothing.\n"
		 "Clocks and power limits are scored apart. Beside the governors stand the highest "
		 "setting, the best one that keeps the promise for every workload, and the best "
		 "that keeps it on the mean. Every figure is defined in "
		 "docs/research/clocks-replay.md.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.offline = true,
	.run = run,
};
