/* SPDX-License-Identifier: Apache-2.0 */
/* One job's load and what it will be, see the header. */
#include "model/load_ahead.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/timetypes.h"
#include "model/backtest.h"

enum {
	HELD_OUT_PERMILLE = 500,      /* of a long series; of a short one what the rule takes, */
	HELD_OUT_MOST_PERMILLE = 850, /* up to this: all is fitted anew for each fold */
	FOLDS = 2,
	AGAIN = 8, /* once an eighth more is known */
	WHOLE = 4, /* a step counts from this part of it on */
};

struct takt_load_ahead {
	struct takt_load_ahead_config config;
	uint64_t step_ns;
	double *value; /* owned, TAKT_LOAD_AHEAD_MAX: of steps that are over; NAN = a gap */
	size_t len;
	uint64_t next; /* number of the step after these, which goes on */
	double sum;    /* load times nanoseconds in it */
	uint64_t told_ns;
	size_t since; /* steps since the last choice */
	bool tried;
	size_t chosen; /* in takt_forecasters; 0 = persistence, which says nothing */
	double better, error;
	void *state;	  /* of the chosen one; NULL = none */
	double *said;	  /* owned, of the next `horizon` steps, by their number; NAN = nothing */
	void *net;	  /* the given network at the end of the series; NULL = none that fits it */
	double *net_said; /* owned, TAKT_LOAD_AHEAD_MAX: what it said after each of these steps */
};

static void let_go(struct takt_load_ahead *own)
{
	if (own->state)
		takt_forecasters[own->chosen]->release(own->state);
	own->state = NULL;
	own->chosen = 0;
	for (uint32_t i = 0; i < own->config.horizon; i++)
		own->said[i] = NAN;
}

int takt_load_ahead_new(const struct takt_load_ahead_config *config, struct takt_load_ahead **ret,
			struct takt_err *err)
{
	const struct takt_series none = {.step_s = config->step_s};
	const struct takt_forecast_task task = {.horizon = config->horizon,
						.season = config->season};
	struct takt_load_ahead *own;
	int rc = takt_forecast_check(&none, &task, err);

	if (rc < 0)
		return rc;
	own = takt_zalloc(sizeof(*own));
	if (own) {
		own->config = *config;
		own->step_ns = config->step_s * TAKT_NS_PER_S;
		own->value = takt_calloc(TAKT_LOAD_AHEAD_MAX, sizeof(*own->value));
		own->said = takt_calloc(config->horizon, sizeof(*own->said));
		own->net_said = takt_calloc(TAKT_LOAD_AHEAD_MAX, sizeof(*own->net_said));
	}
	if (!own || !own->value || !own->said || !own->net_said) {
		takt_load_ahead_free(own);
		return takt_err_set(err, -ENOMEM, "a job's load");
	}
	let_go(own);
	*ret = own;
	return 0;
}

void takt_load_ahead_free(struct takt_load_ahead *ahead)
{
	if (!ahead)
		return;
	if (ahead->state)
		takt_forecasters[ahead->chosen]->release(ahead->state);
	takt_forecast_lstm.release(ahead->net);
	takt_free(ahead->value);
	takt_free(ahead->said);
	takt_free(ahead->net_said);
	takt_free(ahead);
}

void takt_load_ahead_reset(struct takt_load_ahead *ahead)
{
	let_go(ahead);
	ahead->len = ahead->since = 0;
	ahead->sum = 0;
	ahead->told_ns = 0;
	ahead->tried = false;
}

/* Of the step that is `horizon` after the newest. */
static void predict(struct takt_load_ahead *own)
{
	own->said[(own->next - 1) % own->config.horizon] =
		takt_forecasters[own->chosen]->predict(own->state);
}

static struct takt_series series_of(const struct takt_load_ahead *own)
{
	int64_t first = (int64_t)(own->next - own->len);

	return (struct takt_series){
		.value = own->value,
		.len = own->len,
		.begin_s = own->config.zero_s + first * own->config.step_s,
		.step_s = own->config.step_s,
	};
}

static struct takt_forecast_task task_of(const struct takt_load_ahead *own)
{
	return (struct takt_forecast_task){.horizon = own->config.horizon,
					   .season = own->config.season,
					   .lstm = own->config.lstm};
}

/* A network is dear to ask, and a choice that asked it of all steps held out would hold up
 * everybody else. What it says depends on the steps before alone, so it may as well say it as they
 * come. */
static void follow_with_net(struct takt_load_ahead *own)
{
	const struct takt_series series = series_of(own);
	const struct takt_forecast_task task = task_of(own);

	if (!own->config.lstm)
		return;
	if (own->len == 1) {
		takt_forecast_lstm.release(own->net);
		own->net = NULL;
		(void)takt_forecast_lstm.fit(&series, &task, &own->net, NULL);
	} else if (own->net) {
		takt_forecast_lstm.observe(own->net, own->value[own->len - 1]);
	}
	own->net_said[own->len - 1] = own->net ? takt_forecast_lstm.predict(own->net) : NAN;
}

/* Room for one more. */
static void forget_oldest(struct takt_load_ahead *own)
{
	const size_t gone = TAKT_LOAD_AHEAD_MAX / AGAIN;

	own->len -= gone;
	memmove(own->value, own->value + gone, own->len * sizeof(*own->value));
	memmove(own->net_said, own->net_said + gone, own->len * sizeof(*own->net_said));
}

static void close_step(struct takt_load_ahead *own)
{
	double value = own->told_ns >= own->step_ns / WHOLE ? own->sum / (double)own->told_ns : NAN;

	own->sum = 0;
	own->told_ns = 0;
	own->next++;
	if (own->len == 0 && isnan(value))
		return; /* a series begins with something */
	if (own->len == TAKT_LOAD_AHEAD_MAX)
		forget_oldest(own);
	own->value[own->len++] = value;
	own->since++;
	follow_with_net(own);
	if (!own->state)
		return;
	takt_forecasters[own->chosen]->observe(own->state, value);
	predict(own);
}

/* Every step before `number` is over. */
static void close_until(struct takt_load_ahead *own, uint64_t number)
{
	if (number > own->next + TAKT_LOAD_AHEAD_MAX)
		takt_load_ahead_reset(own); /* nothing of before is of any worth */
	if (own->len == 0 && own->told_ns == 0)
		own->next = number > own->next ? number : own->next;
	while (own->next < number)
		close_step(own);
}

void takt_load_ahead_add(struct takt_load_ahead *ahead, uint64_t from_ns, uint64_t until_ns,
			 double load)
{
	if (!(load >= 0 && load < TAKT_FORECAST_MAX_VALUE))
		return;
	while (from_ns < until_ns) {
		uint64_t number = from_ns / ahead->step_ns;
		uint64_t end_ns = (number + 1) * ahead->step_ns;
		uint64_t part_ns = (end_ns < until_ns ? end_ns : until_ns) - from_ns;

		close_until(ahead, number);
		if (number == ahead->next) {
			ahead->sum += load * (double)part_ns;
			ahead->told_ns += part_ns;
		}
		from_ns += part_ns;
	}
}

/* Steps to be held out for ten blocks of twelve horizons. */
static size_t tested(const struct takt_load_ahead *own)
{
	return (size_t)(TAKT_BACKTEST_MIN_BLOCKS - 1) * TAKT_BACKTEST_BLOCK * own->config.horizon +
	       own->config.horizon + 1;
}

static size_t needed(const struct takt_load_ahead *own)
{
	return (tested(own) * 1000 + HELD_OUT_MOST_PERMILLE - 1) / HELD_OUT_MOST_PERMILLE + 2;
}

static uint32_t held_out_permille(const struct takt_load_ahead *own)
{
	size_t permille = (tested(own) * 1000 + own->len - 1) / own->len;

	return permille > HELD_OUT_PERMILLE ? (uint32_t)permille : HELD_OUT_PERMILLE;
}

static struct takt_backtest_config config_of(const struct takt_load_ahead *own,
					     const struct takt_series *series)
{
	const struct takt_lstm *net = own->config.lstm;
	struct takt_backtest_config config = {
		.task = task_of(own),
		.held_out_permille = held_out_permille(own),
		.folds = FOLDS,
		.threshold = NAN,
	};

	for (size_t k = 0; k < TAKT_FORECASTERS; k++)
		if (takt_forecasters[k] == &takt_forecast_lstm) {
			config.without[k] = !own->net;
			config.told[k] = own->net_said;
		}
	/* A network is tested only on what comes after that which it was trained on. */
	if (net && net->until_s >= series->begin_s)
		config.first = (size_t)((net->until_s - series->begin_s) / series->step_s + 1);
	return config;
}

/* The chosen one stands at the end of the series. */
static void begin_with(struct takt_load_ahead *own, size_t chosen, const struct takt_series *series,
		       const struct takt_backtest_config *config)
{
	if (chosen == 0 ||
	    takt_forecasters[chosen]->fit(series, &config->task, &own->state, NULL) < 0)
		return;
	own->chosen = chosen;
	predict(own);
}

/* What cannot be tried (a network trained on all of it, no memory) is tried later. */
static void choose(struct takt_load_ahead *own)
{
	struct takt_series series = series_of(own);
	struct takt_backtest_config config = config_of(own, &series);
	struct takt_backtest result;

	own->since = 0;
	if (takt_backtest(&series, &config, &result, NULL) < 0)
		return;
	own->tried = true;
	let_go(own);
	own->better = result.better;
	own->error = result.error;
	begin_with(own, result.chosen, &series, &config);
	takt_backtest_fini(&result);
}

static bool is_due(const struct takt_load_ahead *own)
{
	size_t often = (size_t)TAKT_BACKTEST_BLOCK * own->config.horizon;

	if (own->len < needed(own))
		return false;
	return !own->tried || (own->since >= own->len / AGAIN && own->since >= often);
}

void takt_load_ahead_pass(struct takt_load_ahead *ahead, uint64_t now_ns)
{
	close_until(ahead, now_ns / ahead->step_ns);
	if (is_due(ahead))
		choose(ahead);
}

bool takt_load_ahead_say(const struct takt_load_ahead *ahead, uint64_t now_ns, double *ret)
{
	uint64_t now = now_ns / ahead->step_ns;
	double most = NAN;

	if (!ahead->state)
		return false;
	for (uint64_t step = now; step < ahead->next + ahead->config.horizon; step++) {
		double said = ahead->said[step % ahead->config.horizon];

		if (!(most >= said) && !isnan(said))
			most = said;
	}
	if (isnan(most))
		return false;
	*ret = most > 0 ? most : 0;
	return true;
}

void takt_load_ahead_look(const struct takt_load_ahead *ahead, struct takt_load_ahead_word *ret)
{
	*ret = (struct takt_load_ahead_word){
		.steps = ahead->len,
		.needed = needed(ahead),
		.tried = ahead->tried,
		.chosen = ahead->state ? takt_forecasters[ahead->chosen]->name : NULL,
		.better = ahead->better,
		.error = ahead->error,
	};
}
