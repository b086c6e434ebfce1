/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AR: a linear function of the last ORDER samples, fitted by least squares for the horizon itself,
 * so that no step's error is carried into the next. Rows with a gap are left out.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/forecast.h"

enum {
	ORDER = 3,
	TERMS = ORDER + 1, /* and a constant */
	MIN_ROWS = 10 * TERMS,
};

struct ar {
	double mean; /* samples are taken from here: else the sums would swallow what matters */
	double coefficient[TERMS];
	double last[ORDER]; /* newest first */
};

struct normal_equations {
	double matrix[TERMS][TERMS], right[TERMS];
	size_t rows;
};

static void observe(void *state, double value)
{
	struct ar *own = state;

	memmove(&own->last[1], &own->last[0], sizeof(own->last) - sizeof(own->last[0]));
	own->last[0] = value;
}

/* NAN where one of the samples is. */
static double predict(const void *state)
{
	const struct ar *own = state;
	double sum = own->mean + own->coefficient[ORDER];

	for (size_t i = 0; i < ORDER; i++)
		sum += own->coefficient[i] * (own->last[i] - own->mean);
	return sum;
}

static void add_row(struct normal_equations *sums, const double *newest, double mean, double target)
{
	double row[TERMS] = {[ORDER] = 1}, known = target;

	for (size_t i = 0; i < ORDER; i++) {
		row[i] = newest[-(ptrdiff_t)i] - mean;
		known += row[i];
	}
	if (isnan(known))
		return;
	for (size_t i = 0; i < TERMS; i++) {
		for (size_t j = 0; j < TERMS; j++)
			sums->matrix[i][j] += row[i] * row[j];
		sums->right[i] += row[i] * (target - mean);
	}
	sums->rows++;
}

static void swap_rows(struct normal_equations *sums, size_t a, size_t b)
{
	for (size_t j = 0; j < TERMS; j++) {
		double kept = sums->matrix[a][j];

		sums->matrix[a][j] = sums->matrix[b][j];
		sums->matrix[b][j] = kept;
	}
	double kept = sums->right[a];

	sums->right[a] = sums->right[b];
	sums->right[b] = kept;
}

static void eliminate(struct normal_equations *sums, size_t column)
{
	size_t pivot = column;

	for (size_t i = column + 1; i < TERMS; i++)
		if (fabs(sums->matrix[i][column]) > fabs(sums->matrix[pivot][column]))
			pivot = i;
	swap_rows(sums, column, pivot);
	for (size_t i = column + 1; i < TERMS; i++) {
		double factor = sums->matrix[i][column] / sums->matrix[column][column];

		for (size_t j = column; j < TERMS; j++)
			sums->matrix[i][j] -= factor * sums->matrix[column][j];
		sums->right[i] -= factor * sums->right[column];
	}
}

/* A ridge of a millionth keeps the matrix from being singular where the series hardly moves. */
static void solve(struct normal_equations *sums, double ret[TERMS])
{
	for (size_t i = 0; i < TERMS; i++)
		sums->matrix[i][i] += 1e-6 * (sums->matrix[i][i] + (double)sums->rows);
	for (size_t i = 0; i < TERMS; i++)
		eliminate(sums, i);
	for (size_t i = TERMS; i-- > 0;) {
		ret[i] = sums->right[i];
		for (size_t j = i + 1; j < TERMS; j++)
			ret[i] -= sums->matrix[i][j] * ret[j];
		ret[i] /= sums->matrix[i][i];
	}
}

static int fit(const struct takt_series *history, const struct takt_forecast_task *task, void **ret,
	       struct takt_err *err)
{
	struct normal_equations sums = {.rows = 0};
	double mean = takt_forecast_mean(history->value, history->len, 1);
	struct ar *own;

	for (size_t i = ORDER - 1; i + task->horizon < history->len; i++)
		add_row(&sums, &history->value[i], mean, history->value[i + task->horizon]);
	if (sums.rows < MIN_ROWS)
		return takt_err_set(err, -ENODATA, "ar: %zu rows without a gap, %d are needed",
				    sums.rows, MIN_ROWS);
	own = takt_zalloc(sizeof(*own));
	if (!own)
		return takt_err_set(err, -ENOMEM, "ar");
	own->mean = mean;
	solve(&sums, own->coefficient);
	for (size_t i = history->len - ORDER; i < history->len; i++)
		observe(own, history->value[i]);
	*ret = own;
	return 0;
}

const struct takt_forecaster takt_forecast_ar = {
	.name = "ar",
	.summary = "linear in the last three samples",
	.fit = fit,
	.observe = observe,
	.predict = predict,
	.release = takt_free,
};
