/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling-origin backtest of the forecasters: who said what, and what it was worth. */
#include "model/backtest.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

enum {
	HELD_OUT_PERMILLE = 300,
	FOLDS = 4,
	THRESHOLD_PERCENT = 80,
	WORTH_PERCENT = 90,
};

struct trial {
	const struct takt_series *series;
	const struct takt_backtest_config *config;
	struct takt_backtest *result;
	double *scratch; /* as long as the series */
};

static int compare(const void *a, const void *b, void *ctx)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value at that percentage of `count` values, which are sorted for it; NAN of none. */
static int percentile(double *values, size_t count, uint32_t percent, double *ret)
{
	*ret = NAN;
	if (count == 0)
		return 0;
	if (takt_sort(values, count, sizeof(*values), compare, NULL) < 0)
		return -ENOMEM;
	*ret = values[(count - 1) * percent / 100];
	return 0;
}

static int find_threshold(struct trial *trial)
{
	size_t count = 0;

	trial->result->threshold = trial->config->threshold;
	if (!isnan(trial->config->threshold))
		return 0;
	for (size_t i = 0; i < trial->result->begin; i++)
		if (!isnan(trial->series->value[i]))
			trial->scratch[count++] = trial->series->value[i];
	return percentile(trial->scratch, count, THRESHOLD_PERCENT, &trial->result->threshold);
}

/* One fold: fitted on what is before `from`, then asked after each sample up to `to`. */
static int run_fold(struct trial *trial, size_t which, size_t from, size_t to, struct takt_err *err)
{
	const struct takt_forecaster *forecaster = takt_forecasters[which];
	struct takt_series history = takt_series_head(trial->series, from);
	uint32_t horizon = trial->config->task.horizon;
	double *said = trial->result->said[which];
	void *state = NULL;
	int rc = forecaster->fit(&history, &trial->config->task, &state, err);

	if (rc < 0)
		return rc;
	for (size_t i = from; i < to; i++) {
		if (i - 1 + horizon < trial->series->len)
			said[i - 1 + horizon] = forecaster->predict(state);
		forecaster->observe(state, trial->series->value[i]);
	}
	forecaster->release(state);
	return 0;
}

static void take_told(struct trial *trial, size_t which)
{
	const double *told = trial->config->told[which];
	size_t horizon = trial->config->task.horizon;

	for (size_t i = trial->result->begin; i - 1 + horizon < trial->series->len; i++)
		trial->result->said[which][i - 1 + horizon] = told[i - 1];
	trial->result->scores[which].tried = true;
}

/* A forecaster that cannot be fitted is left out, with the reason; other failures are ours. */
static int run_all_folds(struct trial *trial, size_t which, struct takt_err *err)
{
	struct takt_backtest_score *score = &trial->result->scores[which];
	size_t begin = trial->result->begin, len = trial->series->len;
	uint32_t folds = trial->config->folds ? trial->config->folds : FOLDS;
	struct takt_err why = {0};
	int rc = 0;

	if (trial->config->without[which]) {
		takt_strcpy(score->why_not, sizeof(score->why_not), "left out");
		return 0;
	}
	if (trial->config->told[which]) {
		take_told(trial, which);
		return 0;
	}
	for (uint32_t f = 0; f < folds && rc == 0; f++)
		rc = run_fold(trial, which, begin + (len - begin) * f / folds,
			      begin + (len - begin) * (f + 1) / folds, &why);
	score->tried = rc == 0;
	if (rc == -ENODATA || rc == -EINVAL) {
		takt_strcpy(score->why_not, sizeof(score->why_not), why.msg);
		return 0;
	}
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* What counts as said by it: persistence where it could not tell. */
static double counted(const struct trial *trial, size_t which, size_t i)
{
	double said = trial->result->said[which][i];

	return isnan(said) ? trial->result->said[0][i] : said;
}

static bool is_tested(const struct trial *trial, size_t i)
{
	return !isnan(trial->series->value[i]) && !isnan(trial->result->said[0][i]);
}

static double loss_of(const struct trial *trial, size_t which, size_t i)
{
	double value = trial->series->value[i], said = counted(trial, which, i);
	double threshold = trial->result->threshold;

	if (!trial->config->by_consequence)
		return fabs(value - said);
	if (value >= threshold)
		return said < threshold;
	return said >= threshold ? trial->config->needless_cost : 0;
}

static void score_one(const struct trial *trial, size_t which, size_t i)
{
	struct takt_backtest_score *score = &trial->result->scores[which];
	double value = trial->series->value[i], error = value - counted(trial, which, i);
	bool high = value >= trial->result->threshold;
	bool foreseen = counted(trial, which, i) >= trial->result->threshold;

	trial->scratch[score->tested++] = fabs(error);
	score->silent += isnan(trial->result->said[which][i]);
	score->mae += fabs(error);
	score->rmse += error * error;
	score->loss += loss_of(trial, which, i);
	score->high += high;
	score->missed += high && !foreseen;
	score->needless += foreseen && !high;
	score->high_load += high ? value : 0;
	score->missed_load += high && !foreseen ? value : 0;
}

static int score_all(struct trial *trial, size_t which)
{
	struct takt_backtest_score *score = &trial->result->scores[which];

	if (!score->tried)
		return 0;
	for (size_t i = trial->result->begin; i < trial->series->len; i++)
		if (is_tested(trial, i))
			score_one(trial, which, i);
	if (score->tested == 0)
		return 0;
	score->mae /= (double)score->tested;
	score->rmse = sqrt(score->rmse / (double)score->tested);
	score->loss /= (double)score->tested;
	return percentile(trial->scratch, score->tested, WORTH_PERCENT, &score->p90);
}

/* By how much `which` loses less than `other` in the block from there; false: nothing known. */
static bool block_gain(const struct trial *trial, size_t which, size_t other, size_t from,
		       double *ret)
{
	size_t len = (size_t)TAKT_BACKTEST_BLOCK * trial->config->task.horizon, count = 0;
	double sum = 0;

	for (size_t i = from; i < from + len && i < trial->series->len; i++) {
		if (!is_tested(trial, i))
			continue;
		sum += loss_of(trial, other, i) - loss_of(trial, which, i);
		count++;
	}
	*ret = count ? sum / (double)count : 0;
	return count > 0;
}

/* Mean and standard error of the gain over blocks; returns how many. */
static size_t gain(const struct trial *trial, size_t which, size_t other, double *ret_mean,
		   double *ret_error)
{
	size_t len = (size_t)TAKT_BACKTEST_BLOCK * trial->config->task.horizon, count = 0;
	double sum = 0, squares = 0, block;

	for (size_t from = trial->result->begin; from < trial->series->len; from += len) {
		if (!block_gain(trial, which, other, from, &block))
			continue;
		sum += block;
		squares += block * block;
		count++;
	}
	*ret_mean = count ? sum / (double)count : 0;
	*ret_error = INFINITY;
	if (count > 1) {
		double spread = squares - *ret_mean * sum;

		*ret_error = sqrt((spread > 0 ? spread : 0) / (double)(count - 1) / (double)count);
	}
	return count;
}

static void choose(struct trial *trial)
{
	struct takt_backtest *result = trial->result;

	result->chosen = 0;
	for (size_t k = 1; k < TAKT_FORECASTERS; k++) {
		struct takt_backtest_score *score = &result->scores[k];
		size_t blocks;

		if (!score->tried)
			continue;
		blocks = gain(trial, k, result->chosen, &score->better, &score->error);
		if (blocks >= TAKT_BACKTEST_MIN_BLOCKS && score->better > 0 &&
		    score->better > TAKT_BACKTEST_SIGMAS * score->error)
			result->chosen = k;
	}
	if (result->chosen)
		(void)gain(trial, result->chosen, 0, &result->better, &result->error);
}

static int run(struct trial *trial, struct takt_err *err)
{
	int rc = find_threshold(trial);

	for (size_t k = 0; k < TAKT_FORECASTERS && rc == 0; k++) {
		double *said = takt_calloc(trial->series->len, sizeof(*said));

		trial->result->said[k] = said;
		if (!said)
			return -ENOMEM;
		for (size_t i = 0; i < trial->series->len; i++)
			said[i] = NAN;
		rc = run_all_folds(trial, k, err);
	}
	for (size_t k = 0; k < TAKT_FORECASTERS && rc == 0; k++)
		rc = score_all(trial, k);
	if (rc == 0 && trial->result->scores[0].tested == 0)
		rc = takt_err_set(err, -ENODATA, "no sample of the time held out is known");
	if (rc == 0)
		choose(trial);
	return rc;
}

/* Where the held-out time begins. */
static int find_begin(const struct takt_series *series, const struct takt_backtest_config *config,
		      size_t *ret, struct takt_err *err)
{
	uint32_t permille =
		config->held_out_permille ? config->held_out_permille : HELD_OUT_PERMILLE;
	size_t begin = series->len - (size_t)((uint64_t)series->len * permille / 1000);

	*ret = begin > config->first ? begin : config->first;
	if (permille > 900 || config->folds > TAKT_BACKTEST_MAX_FOLDS)
		return takt_err_set(err, -EINVAL,
				    "at most 90 %% can be held out, and in %d folds at most",
				    TAKT_BACKTEST_MAX_FOLDS);
	if (*ret < 2 || *ret + config->task.horizon >= series->len)
		return takt_err_set(err, -ENODATA,
				    "%zu samples are too few to hold some out for %u steps ahead",
				    series->len, config->task.horizon);
	return 0;
}

int takt_backtest(const struct takt_series *series, const struct takt_backtest_config *config,
		  struct takt_backtest *ret, struct takt_err *err)
{
	struct takt_backtest result = {.chosen = 0};
	struct trial trial = {.series = series, .config = config, .result = &result};
	int rc = takt_forecast_check(series, &config->task, err);

	if (rc == 0)
		rc = find_begin(series, config, &result.begin, err);
	if (rc < 0)
		return rc;
	trial.scratch = takt_calloc(series->len, sizeof(double));
	rc = trial.scratch ? run(&trial, err) : -ENOMEM;
	takt_free(trial.scratch);
	if (rc < 0) {
		takt_backtest_fini(&result);
		return rc == -ENOMEM ? takt_err_set(err, rc, "no memory for a backtest") : rc;
	}
	*ret = result;
	return 0;
}

void takt_backtest_fini(struct takt_backtest *result)
{
	for (size_t k = 0; k < TAKT_FORECASTERS; k++)
		takt_free(result->said[k]);
	*result = (struct takt_backtest){.chosen = 0};
}
