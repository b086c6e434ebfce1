/* SPDX-License-Identifier: Apache-2.0 */
/* Training of the network: windows drawn from the history, Adam, the best of what was tried. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/lstm_impl.h"

enum {
	HIDDEN = 16,
	ROUNDS = 1500,
	BATCH = 8,	 /* windows a round */
	LOOK_EVERY = 50, /* rounds, at what was kept aside */
	LOOK_AT = 400,	 /* windows of it at most */
	KEPT_PART = 6,	 /* the last sixth of the history is kept aside */
	MIN_ORIGINS = 100,
};

struct trainer {
	const struct takt_series *history;
	struct takt_lstm *net; /* owned until it is handed out */
	struct takt_lstm_pass *pass;
	struct takt_rng rng;
	size_t *origin;		   /* samples that a forecast may start from: known now and then */
	size_t origin_count, kept; /* from origin[kept] on they are kept aside */
	double *inputs, *gradient, *speed, *square, *best;
	double least;
	uint32_t round, rounds;
};

static void fini(struct trainer *trainer)
{
	takt_lstm_free(trainer->net);
	takt_lstm_pass_free(trainer->pass);
	takt_free(trainer->origin);
	takt_free(trainer->inputs);
}

/* Mean, spread, and spread of the change over the horizon; 1 for what never changes. */
static void measure(struct takt_lstm *net, const struct takt_series *history)
{
	double sum = 0, squares = 0, changes = 0;
	size_t known = 0, pairs = 0;

	for (size_t i = 0; i < history->len; i++) {
		double value = history->value[i];
		double then = i < net->horizon ? NAN : history->value[i - net->horizon];

		if (isnan(value))
			continue;
		known++;
		sum += value;
		squares += (value - sum / (double)known) * (value - sum / (double)known);
		if (isnan(then))
			continue;
		pairs++;
		changes += (value - then) * (value - then);
	}
	net->mean = known ? sum / (double)known : 0;
	net->spread = squares > 0 ? sqrt(squares / (double)known) : 1;
	net->change = changes > 0 ? sqrt(changes / (double)pairs) : 1;
}

static int find_origins(struct trainer *trainer, struct takt_err *err)
{
	const struct takt_series *history = trainer->history;
	const struct takt_lstm *net = trainer->net;

	trainer->origin = takt_calloc(history->len + 1, sizeof(size_t));
	if (!trainer->origin)
		return takt_err_set(err, -ENOMEM, "training");
	for (size_t i = net->window - 1; i + net->horizon < history->len; i++)
		if (!isnan(history->value[i]) && !isnan(history->value[i + net->horizon]))
			trainer->origin[trainer->origin_count++] = i;
	if (trainer->origin_count < MIN_ORIGINS)
		return takt_err_set(err, -ENODATA,
				    "lstm: %zu stretches of %u samples to learn from, %d are "
				    "needed",
				    trainer->origin_count, net->window + net->horizon, MIN_ORIGINS);
	trainer->kept = trainer->origin_count - trainer->origin_count / KEPT_PART;
	return 0;
}

static double between(struct takt_rng *rng, double limit)
{
	double unit = (double)(takt_rng_next(rng) >> 11) / 9007199254740992.0;

	return (2 * unit - 1) * limit;
}

/* The line that sums up begins at 0: persistence. Units begin by remembering. */
static void draw_weights(struct trainer *trainer)
{
	struct takt_lstm *net = trainer->net;
	size_t len = TAKT_LSTM_INPUTS + (size_t)net->hidden + 1, n = net->hidden;
	double limit = 1 / sqrt((double)n);

	for (size_t g = 0; g < 4 * n; g++) {
		for (size_t i = 0; i < len - 1; i++)
			net->weight[g * len + i] = between(&trainer->rng, limit);
		net->weight[g * len + len - 1] = g / n == 1;
	}
}

static int take_memory(struct trainer *trainer, struct takt_err *err)
{
	size_t n = trainer->net->weight_count, inputs = trainer->net->window * TAKT_LSTM_INPUTS;

	trainer->inputs = takt_calloc(inputs + 4 * n, sizeof(double));
	if (!trainer->inputs || takt_lstm_pass_new(trainer->net, &trainer->pass) < 0)
		return takt_err_set(err, -ENOMEM, "training");
	trainer->gradient = trainer->inputs + inputs;
	trainer->speed = trainer->gradient + n;
	trainer->square = trainer->speed + n;
	trainer->best = trainer->square + n;
	return 0;
}

static int begin(struct trainer *trainer, const struct takt_forecast_task *task,
		 struct takt_err *err)
{
	uint32_t hidden = task->lstm_hidden ? task->lstm_hidden : HIDDEN;
	int rc;

	if (hidden > TAKT_LSTM_MAX_HIDDEN)
		return takt_err_set(err, -EINVAL, "lstm: at most %d units, not %u",
				    TAKT_LSTM_MAX_HIDDEN, hidden);
	rc = takt_lstm_new(hidden, TAKT_LSTM_WINDOW, &trainer->net, err);
	if (rc < 0)
		return rc;
	trainer->net->horizon = task->horizon;
	trainer->net->season = task->season;
	trainer->net->step_s = trainer->history->step_s;
	trainer->rounds = task->lstm_rounds ? task->lstm_rounds : ROUNDS;
	trainer->least = INFINITY;
	measure(trainer->net, trainer->history);
	takt_rng_init(&trainer->rng, task->seed);
	draw_weights(trainer);
	rc = find_origins(trainer, err);
	return rc < 0 ? rc : take_memory(trainer, err);
}

/* Runs the network from that sample: what it should have said, and what it said. */
static double run_from(struct trainer *trainer, size_t at, double *ret_answer)
{
	const struct takt_lstm *net = trainer->net;
	const double *value = trainer->history->value + at;
	int64_t index = trainer->history->begin_s / trainer->history->step_s + (int64_t)at;
	double newest = 0;

	(void)takt_lstm_inputs(net, value, index, trainer->inputs, &newest);
	*ret_answer = takt_lstm_run(net, trainer->inputs, trainer->pass);
	return (value[net->horizon] - newest) / net->change;
}

static void add_gradients(struct trainer *trainer)
{
	memset(trainer->gradient, 0, trainer->net->weight_count * sizeof(double));
	for (int i = 0; i < BATCH; i++) {
		size_t drawn = takt_rng_below(&trainer->rng, trainer->kept);
		double answer, target = run_from(trainer, trainer->origin[drawn], &answer);

		takt_lstm_back(trainer->net, trainer->inputs, trainer->pass, target,
			       trainer->gradient);
	}
}

/* A gradient longer than 1 is cut to 1: the way back through many steps may explode. */
static double scale_of(const struct trainer *trainer)
{
	double squares = 0, len;

	for (size_t i = 0; i < trainer->net->weight_count; i++)
		squares += trainer->gradient[i] * trainer->gradient[i];
	len = sqrt(squares) / BATCH;
	return (len > 1 ? 1 / len : 1) / BATCH;
}

static void adam(struct trainer *trainer)
{
	const double keep = 0.9, keep_square = 0.999, rate = 0.005;
	double scale = scale_of(trainer), round = trainer->round + 1;
	double left = 1 - (double)trainer->round / trainer->rounds;
	double step = rate * left * sqrt(1 - pow(keep_square, round)) / (1 - pow(keep, round));

	for (size_t i = 0; i < trainer->net->weight_count; i++) {
		double d = trainer->gradient[i] * scale;

		trainer->speed[i] += (1 - keep) * (d - trainer->speed[i]);
		trainer->square[i] += (1 - keep_square) * (d * d - trainer->square[i]);
		trainer->net->weight[i] -=
			step * trainer->speed[i] / (sqrt(trainer->square[i]) + 1e-8);
	}
}

/* Losses on what was kept aside, over those of persistence, which says that nothing changes. */
static double look(struct trainer *trainer)
{
	size_t kept = trainer->origin_count - trainer->kept;
	size_t stride = kept / LOOK_AT + 1;
	double sum = 0, idle = 0;

	for (size_t i = trainer->kept; i < trainer->origin_count; i += stride) {
		double answer, target = run_from(trainer, trainer->origin[i], &answer);

		sum += takt_lstm_loss(answer - target);
		idle += takt_lstm_loss(target);
	}
	return idle > 0 ? sum / idle : 1;
}

static void keep_best(struct trainer *trainer)
{
	double loss = look(trainer);

	if (!(loss < trainer->least))
		return;
	trainer->least = loss;
	memcpy(trainer->best, trainer->net->weight, trainer->net->weight_count * sizeof(double));
}

static int train(struct trainer *trainer, const struct takt_forecast_task *task)
{
	int rc = 0;

	for (trainer->round = 0; trainer->round < trainer->rounds && rc == 0; trainer->round++) {
		if (trainer->round % LOOK_EVERY == 0)
			keep_best(trainer);
		add_gradients(trainer);
		adam(trainer);
		if (task->progress)
			rc = task->progress(task->progress_ctx, trainer->round + 1,
					    trainer->rounds);
	}
	keep_best(trainer);
	return rc;
}

int takt_lstm_train(const struct takt_series *history, const struct takt_forecast_task *task,
		    struct takt_lstm **ret, struct takt_err *err)
{
	struct trainer trainer = {.history = history};
	struct takt_lstm *net;
	int rc = begin(&trainer, task, err);

	if (rc == 0) {
		rc = train(&trainer, task);
		if (rc != 0)
			takt_err_set(err, rc, "training was ended");
	}
	net = trainer.net;
	if (rc == 0) {
		memcpy(net->weight, trainer.best, net->weight_count * sizeof(double));
		net->worth = trainer.least;
		net->until_s = history->begin_s + (int64_t)(history->len - 1) * history->step_s;
		*ret = net;
		trainer.net = NULL;
	}
	fini(&trainer);
	return rc;
}
