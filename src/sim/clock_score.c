/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of governors, see the header. */
#include "sim/clock_score.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "clock/governor.h"
#include "sim/sim_pool.h"
#include "sim/sim_random.h"

enum {
	SETTING_MAX,  /* the reference: what there is without a governor */
	SETTING_SAFE, /* least energy of those that keep the promise for every workload */
	SETTING_MEAN, /* and of those that keep it on the mean over workloads */
	SETTINGS
};

#define TRAINING_SEEDS UINT64_C(7919) /* apart from those of the jobs that are scored */

static const char *const setting_names[SETTINGS] = {"max", "best-safe-fixed", "best-mean-fixed"};

/* The curves of one board with one actuator. */
struct board {
	const struct takt_clock_curve *curves;
	size_t count;
};

/* Sums of one score while its runs are made. */
struct tally {
	const struct takt_score_config *config;
	struct board board;
	struct takt_score *score;
	size_t seeds;
	double *saved, *best, *slow; /* owned; by seed, sums over workloads */
	double *slowdowns;	     /* owned; by run */
	double probe_time, probe_energy, time, energy, settling_loss, changes;
	uint64_t epochs, violating_epochs;
};

static bool same_board(const struct takt_clock_curve *a, const struct takt_clock_curve *b)
{
	return a->actuator == b->actuator && strcmp(a->dataset, b->dataset) == 0 &&
	       strcmp(a->gpu, b->gpu) == 0;
}

static struct board board_at(const struct takt_clock_points *points, size_t first)
{
	struct board board = {&points->curves.at[first], 0};

	while (first + board.count < points->curves.len &&
	       same_board(board.curves, &board.curves[board.count]))
		board.count++;
	return board;
}

bool takt_score_together(const struct takt_score *a, const struct takt_score *b)
{
	return a->board == b->board && memcmp(&a->noise, &b->noise, sizeof(a->noise)) == 0;
}

double takt_score_share_pct(const struct takt_score_workload *workload)
{
	if (workload->optimum_saved_pct * 10 < TAKT_SCORE_MIN_SAVING_PERMILLE)
		return NAN;
	return 100 * workload->saved_pct / workload->optimum_saved_pct;
}

static void find_worst(struct takt_score *score)
{
	double lowest = INFINITY;

	score->worst = SIZE_MAX;
	for (size_t i = 0; i < score->workloads.len; i++) {
		double share = takt_score_share_pct(&score->workloads.at[i]);

		if (!isnan(share) && share < lowest) {
			lowest = share;
			score->worst = i;
		}
	}
}

/* One setting for all workloads of a board. */
struct fixed {
	double value, saved_pct, slow_mean_pct, slow_max_pct;
};

static struct fixed fixed_at(const struct board *board, double value)
{
	struct fixed fixed = {.value = value, .slow_max_pct = -INFINITY};

	for (size_t i = 0; i < board->count; i++) {
		const struct takt_clock_curve *curve = &board->curves[i];
		const struct takt_clock_setting *at = takt_clock_under(curve, value);
		double slow_pct = 100 * (takt_clock_time(curve, at) - 1);

		fixed.saved_pct += 100 * (1 - takt_clock_energy(curve, at)) / (double)board->count;
		fixed.slow_mean_pct += slow_pct / (double)board->count;
		fixed.slow_max_pct = fmax(fixed.slow_max_pct, slow_pct);
	}
	return fixed;
}

static double best_setting(const struct board *board, int kind, uint32_t max_slowdown_permille)
{
	struct fixed best = fixed_at(board, INFINITY);

	best.value = 0;
	for (size_t i = 0; i < board->count; i++) {
		const struct takt_clock_curve *curve = &board->curves[i];

		best.value = fmax(best.value, curve->settings[curve->count - 1].value);
	}
	for (size_t i = 0; i < board->count && kind != SETTING_MAX; i++)
		for (size_t s = 0; s < board->curves[i].count; s++) {
			struct fixed one = fixed_at(board, board->curves[i].settings[s].value);
			double slow_pct =
				kind == SETTING_SAFE ? one.slow_max_pct : one.slow_mean_pct;

			if (!takt_clock_violates(1 + slow_pct / 100, max_slowdown_permille) &&
			    one.saved_pct > best.saved_pct)
				best = one;
		}
	return best.value;
}

static int compare_doubles(const void *a, const void *b, void *ctx)
{
	double x = *(const double *)a, y = *(const double *)b;

	(void)ctx;
	return (x > y) - (x < y);
}

/* By the nearest rank, as takt_sim_percentile. Sorts. */
static int percentile_95(double *values, size_t n, double *ret)
{
	int rc = takt_sort(values, n, sizeof(*values), compare_doubles, NULL);

	*ret = rc == 0 ? values[(n * 95 + 99) / 100 - 1] : 0;
	return rc;
}

static void finish(struct takt_score *score)
{
	score->slowdown_max_pct = -INFINITY;
	TAKT_VEC_EACH (one, &score->workloads)
		score->slowdown_max_pct = fmax(score->slowdown_max_pct, one->slowdown_max_pct);
	find_worst(score);
}

static void tally_fini(struct tally *tally)
{
	takt_free(tally->saved);
	takt_free(tally->best);
	takt_free(tally->slow);
	takt_free(tally->slowdowns);
}

static int tally_init(struct tally *tally)
{
	tally->saved = takt_calloc(tally->seeds, sizeof(double));
	tally->best = takt_calloc(tally->seeds, sizeof(double));
	tally->slow = takt_calloc(tally->seeds, sizeof(double));
	tally->slowdowns = takt_calloc(tally->seeds * tally->board.count, sizeof(double));
	return tally->saved && tally->best && tally->slow && tally->slowdowns ? 0 : -ENOMEM;
}

/* What rounding leaves of nothing is nothing. */
static double percent(double part)
{
	return fabs(part) < 1e-9 ? 0 : 100 * part;
}

static void add_run(struct tally *tally, size_t seed, struct takt_score_workload *workload,
		    const struct takt_clock_result *run)
{
	double slow_pct = percent(run->time - 1), saved_pct = percent(1 - run->energy);
	bool violates = takt_clock_violates(run->time, tally->config->max_slowdown_permille);

	tally->slowdowns[tally->score->runs++] = slow_pct;
	tally->saved[seed] += saved_pct / 100;
	tally->best[seed] += 1 - run->best_energy;
	tally->slow[seed] += slow_pct / (double)tally->board.count;
	tally->time += run->time;
	tally->energy += run->energy;
	tally->probe_time += run->probe_time;
	tally->probe_energy += run->probe_energy;
	tally->settling_loss += run->settling_loss;
	tally->changes += run->changes;
	tally->epochs += run->settled_epochs;
	tally->violating_epochs += run->violating_epochs;
	tally->score->violating_jobs += violates;
	workload->violating_jobs += violates;
	workload->optimum_saved_pct += 100 * (1 - run->best_energy) / (double)tally->seeds;
	workload->saved_pct += saved_pct / (double)tally->seeds;
	workload->slowdown_pct += slow_pct / (double)tally->seeds;
	workload->slowdown_max_pct = fmax(workload->slowdown_max_pct, slow_pct);
}

/* The phases of a job: its own workload, then others of the board as chance has it. */
static void draw_phases(const struct tally *tally, size_t workload, uint64_t seed,
			const struct takt_clock_curve **phases)
{
	struct takt_rng rng;

	takt_sim_stream(seed + workload * UINT64_C(1000003), TAKT_SIM_KINDS, &rng);
	phases[0] = &tally->board.curves[workload];
	for (uint32_t i = 1; i < tally->config->phases; i++)
		phases[i] = &tally->board.curves[takt_rng_below(&rng, tally->board.count)];
}

static bool same_settings(const struct takt_clock_curve *a, const struct takt_clock_curve *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++)
		if (fabs(a->settings[i].value - b->settings[i].value) > 0)
			return false;
	return a->count == b->count;
}

/* Leave one out: the state has seen every workload of the board but this one. */
static int train(const struct tally *tally, struct takt_clock_job *job, size_t workload,
		 struct takt_err *err)
{
	const struct board *board = &tally->board;
	struct takt_clock_result ignored;
	const struct takt_clock_curve *one;
	struct takt_clock_job other = *job;
	int rc = 0;

	other.phases = &one;
	other.phase_count = 1;
	for (size_t i = 0; i < board->count && rc == 0; i++) {
		one = &board->curves[i];
		if (i == workload || !same_settings(one, &board->curves[workload]))
			continue;
		other.seed += TRAINING_SEEDS;
		rc = takt_clock_run(&tally->config->world, &other, &ignored, err);
		other.warm = true;
		job->warm = true;
	}
	return rc;
}

static struct takt_clock_job job_of(const struct tally *tally, size_t workload, size_t seed,
				    const struct takt_clock_curve **phases)
{
	const struct takt_score_config *config = tally->config;
	uint64_t number = config->first_seed + seed;

	draw_phases(tally, workload, number, phases);
	return (struct takt_clock_job){
		.max_slowdown_permille = config->max_slowdown_permille,
		.phases = phases,
		.phase_count = config->phases,
		.epochs = tally->score->epochs,
		.seed = number * UINT64_C(1000003) + workload,
	};
}

/* How each run is made: by a governor with a state, or at one setting without one. */
struct runner {
	const struct takt_score_governor *governor; /* NULL: `setting` throughout */
	void *state;
	double setting;
};

static int run_one(struct tally *tally, const struct runner *runner, size_t workload, size_t seed,
		   struct takt_err *err)
{
	const struct takt_score_governor *governor = runner->governor;
	const struct takt_clock_curve *phases[TAKT_SCORE_MAX_LENGTHS];
	struct takt_clock_job job = job_of(tally, workload, seed, phases);
	struct takt_clock_result result;
	int rc = 0;

	if (!governor) {
		takt_clock_hold(&job, runner->setting, &result);
	} else {
		job.governor = governor->governor;
		job.params = governor->params;
		job.param_count = governor->param_count;
		job.state = runner->state;
		if (governor->train)
			rc = train(tally, &job, workload, err);
		if (rc == 0)
			rc = takt_clock_run(&tally->config->world, &job, &result, err);
	}
	if (rc == 0)
		add_run(tally, seed, &tally->score->workloads.at[workload], &result);
	return rc;
}

static int run_all(struct tally *tally, const struct runner *runner, struct takt_err *err)
{
	int rc = 0;

	for (size_t w = 0; w < tally->board.count && rc == 0; w++) {
		rc = takt_vec_push(&tally->score->workloads,
				   (struct takt_score_workload){.curve = &tally->board.curves[w],
								.slowdown_max_pct = -INFINITY});
		if (rc < 0)
			return takt_err_set(err, rc, "no memory for scores");
		for (size_t s = 0; s < tally->seeds && rc == 0; s++)
			rc = run_one(tally, runner, w, s, err);
	}
	return rc;
}

static int sum_runs(struct tally *tally)
{
	struct takt_score *score = tally->score;
	double runs = (double)score->runs, best = 0;

	for (size_t s = 0; s < tally->seeds; s++) {
		best += tally->best[s];
		tally->saved[s] *= 100 / (double)tally->board.count;
	}
	score->optimum_saved_pct = 100 * best / runs;
	score->saved_pct = takt_sim_stat(tally->saved, tally->seeds);
	score->slowdown_pct = takt_sim_stat(tally->slow, tally->seeds);
	score->overhead_time_pct = 100 * tally->probe_time / tally->time;
	score->overhead_energy_pct = 100 * tally->probe_energy / tally->energy;
	score->changes = tally->changes / runs;
	if (tally->epochs)
		score->violating_epochs_pct =
			100 * (double)tally->violating_epochs / (double)tally->epochs;
	if (best > 0) {
		score->settling_loss_pct = 100 * tally->settling_loss / best;
		for (size_t s = 0; s < tally->seeds; s++)
			tally->saved[s] *= (double)tally->board.count / tally->best[s];
		score->share_pct = takt_sim_stat(tally->saved, tally->seeds);
	}
	return percentile_95(tally->slowdowns, score->runs, &score->slowdown_p95_pct);
}

/* One score to be made: a governor, or one of the settings for all. */
struct task {
	struct board board;
	struct takt_score_noise noise;
	uint32_t epochs;
	int kind;				    /* of setting, without a governor */
	const struct takt_score_governor *governor; /* NULL = a setting */
};

/* Tasks and their scores at the same places. */
struct experiment {
	const struct takt_score_config *config;
	TAKT_VEC(struct task) tasks;
	struct takt_scores scores;
};

/* Runs everything of a score that has its names. */
static int fill_score(const struct takt_score_config *config, const struct task *task,
		      const struct runner *runner, struct takt_score *score, struct takt_err *err)
{
	struct tally tally = {.config = config,
			      .board = task->board,
			      .score = score,
			      .seeds = (size_t)(config->last_seed - config->first_seed + 1)};
	int rc = tally_init(&tally);

	score->board = task->board.curves;
	score->noise = task->noise;
	score->epochs = task->epochs;
	score->workloads.max = TAKT_POINTS_MAX;
	if (rc < 0)
		takt_err_set(err, rc, "no memory for scores");
	if (rc == 0)
		rc = run_all(&tally, runner, err);
	if (rc == 0 && (rc = sum_runs(&tally)) < 0)
		takt_err_set(err, rc, "no memory for scores");
	if (rc == 0)
		finish(score);
	tally_fini(&tally);
	return rc;
}

static int score_governor(const struct takt_score_config *config, const struct task *task,
			  struct takt_score *score, struct takt_err *err)
{
	const struct takt_governor *governor = task->governor->governor;
	TAKT_CLEANUP(freep) void *state = takt_zalloc(governor->state_bytes + 1);
	struct runner runner = {.governor = task->governor, .state = state};

	if (!state)
		return takt_err_set(err, -ENOMEM, "no memory for a governor");
	takt_strcpy(score->governor, sizeof(score->governor), governor->name);
	score->trained = task->governor->train;
	return fill_score(config, task, &runner, score, err);
}

static int score_setting(const struct takt_score_config *config, const struct task *task,
			 struct takt_score *score, struct takt_err *err)
{
	struct runner runner = {
		.setting = best_setting(&task->board, task->kind, config->max_slowdown_permille)};

	takt_strcpy(score->governor, sizeof(score->governor), setting_names[task->kind]);
	score->setting = runner.setting;
	return fill_score(config, task, &runner, score, err);
}

static int run_task(void *ctx, size_t i, struct takt_err *err)
{
	struct experiment *experiment = ctx;
	const struct task *task = &experiment->tasks.at[i];
	struct takt_score *score = &experiment->scores.all.at[i];
	struct takt_score_config config = *experiment->config;

	config.world.time_noise = task->noise.time;
	config.world.power_noise = task->noise.power;
	return task->governor ? score_governor(&config, task, score, err)
			      : score_setting(&config, task, score, err);
}

static int plan_task(struct experiment *experiment, const struct task *task)
{
	int rc = takt_vec_push(&experiment->tasks, *task);

	return rc < 0 ? rc : takt_vec_push(&experiment->scores.all, (struct takt_score){.runs = 0});
}

/* Settings for all, then every governor. */
static int plan_table(struct experiment *experiment, struct task task)
{
	const struct takt_score_config *config = experiment->config;
	int rc = 0;

	for (task.kind = 0; task.kind < SETTINGS && rc == 0; task.kind++)
		rc = plan_task(experiment, &task);
	for (size_t g = 0; g < config->governor_count && rc == 0; g++) {
		task.governor = &config->governors[g];
		rc = plan_task(experiment, &task);
	}
	return rc;
}

/* Each board at each noise, with jobs of each length. */
static int plan(struct experiment *experiment)
{
	const struct takt_score_config *config = experiment->config;
	struct task task = {.epochs = 0};
	int rc = 0;

	for (size_t i = 0; i < config->points->curves.len; i += task.board.count) {
		task.board = board_at(config->points, i);
		for (size_t n = 0; n < config->noise_count; n++)
			for (size_t l = 0; l < config->length_count && rc == 0; l++) {
				task.noise = config->noises[n];
				task.epochs = config->lengths[l];
				rc = plan_table(experiment, task);
			}
	}
	return rc;
}

static int report(void *ctx, size_t done, size_t count)
{
	const struct takt_score_config *config = ((struct experiment *)ctx)->config;

	return config->progress ? config->progress(config->progress_ctx, done, count) : 0;
}

int takt_clock_score(const struct takt_score_config *config, struct takt_scores *ret,
		     struct takt_err *err)
{
	struct experiment experiment = {.config = config,
					.tasks = TAKT_VEC_INIT(TAKT_SCORE_MAX),
					.scores = {.all = TAKT_VEC_INIT(TAKT_SCORE_MAX)}};
	struct takt_sim_pool pool = {run_task, report, &experiment, config->threads};
	int rc = plan(&experiment);

	if (rc < 0)
		takt_err_set(err, rc, "no memory for scores, or more than %d of them",
			     TAKT_SCORE_MAX);
	else
		rc = takt_sim_pool_run(&pool, experiment.tasks.len, err);
	takt_vec_fini(&experiment.tasks);
	if (rc < 0) {
		takt_scores_fini(&experiment.scores);
		return rc;
	}
	*ret = experiment.scores;
	return 0;
}

void takt_scores_fini(struct takt_scores *scores)
{
	TAKT_VEC_EACH (score, &scores->all)
		takt_vec_fini(&score->workloads);
	takt_vec_fini(&scores->all);
}
