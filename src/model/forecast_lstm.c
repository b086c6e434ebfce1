/* SPDX-License-Identifier: Apache-2.0 */
/* The small recurrent network (lstm.h) as a forecaster: trained on the history, or given. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/lstm_impl.h"

struct forecast_lstm {
	struct takt_lstm *trained;   /* owned; NULL when it was given */
	const struct takt_lstm *net; /* that or the given one */
	struct takt_lstm_pass *pass;
	double *inputs;
	double *value; /* the last window */
	int64_t index; /* of the newest since time zero */
};

static void observe(void *state, double value)
{
	struct forecast_lstm *own = state;
	size_t last = own->net->window - 1;

	memmove(own->value, own->value + 1, last * sizeof(double));
	own->value[last] = value;
	own->index++;
}

static double predict(const void *state)
{
	const struct forecast_lstm *own = state;
	const struct takt_lstm *net = own->net;
	double newest;

	if (!takt_lstm_inputs(net, own->value + net->window - 1, own->index, own->inputs, &newest))
		return NAN;
	return newest + net->change * takt_lstm_run(net, own->inputs, own->pass);
}

static void release(void *state)
{
	struct forecast_lstm *own = state;

	if (!own)
		return;
	takt_lstm_free(own->trained);
	takt_lstm_pass_free(own->pass);
	takt_free(own->inputs);
	takt_free(own->value);
	takt_free(own);
}

/* A network speaks of the steps that it was trained on. */
static int fits(const struct takt_lstm *net, const struct takt_series *history,
		const struct takt_forecast_task *task, struct takt_err *err)
{
	if (net->step_s != history->step_s)
		return takt_err_set(err, -EINVAL, "lstm: trained on steps of %u s, not of %u s",
				    net->step_s, history->step_s);
	if (net->horizon != task->horizon)
		return takt_err_set(err, -EINVAL, "lstm: trained for %u steps ahead, not for %u",
				    net->horizon, task->horizon);
	return 0;
}

static int take_memory(struct forecast_lstm *own, struct takt_err *err)
{
	size_t window = own->net->window;

	own->inputs = takt_calloc(window * TAKT_LSTM_INPUTS, sizeof(double));
	own->value = takt_calloc(window, sizeof(double));
	if (!own->inputs || !own->value || takt_lstm_pass_new(own->net, &own->pass) < 0)
		return takt_err_set(err, -ENOMEM, "lstm");
	for (size_t i = 0; i < window; i++)
		own->value[i] = NAN;
	return 0;
}

static int set_up(struct forecast_lstm *own, const struct takt_series *history,
		  const struct takt_forecast_task *task, struct takt_err *err)
{
	int rc = task->lstm ? fits(task->lstm, history, task, err)
			    : takt_lstm_train(history, task, &own->trained, err);

	if (rc < 0)
		return rc;
	own->net = task->lstm ? task->lstm : own->trained;
	return take_memory(own, err);
}

static int fit(const struct takt_series *history, const struct takt_forecast_task *task, void **ret,
	       struct takt_err *err)
{
	struct forecast_lstm *own = takt_zalloc(sizeof(*own));
	size_t first;
	int rc;

	if (!own)
		return takt_err_set(err, -ENOMEM, "lstm");
	rc = set_up(own, history, task, err);
	if (rc < 0) {
		release(own);
		return rc;
	}
	first = history->len > own->net->window ? history->len - own->net->window : 0;
	own->index = history->begin_s / history->step_s + (int64_t)first - 1;
	for (size_t i = first; i < history->len; i++)
		observe(own, history->value[i]);
	*ret = own;
	return 0;
}

const struct takt_forecaster takt_forecast_lstm = {
	.name = "lstm",
	.summary = "small recurrent network",
	.fit = fit,
	.observe = observe,
	.predict = predict,
	.release = release,
};
