/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load of one job as it goes by, and what it will be some steps ahead where a forecaster has
 * shown on this very load that it knows better than "as it is now". Pure: times are arguments, and
 * the same loads at the same times lead to the same forecasts.
 *
 * What is told is averaged over steps. A step of which less than a quarter was told is a gap. As
 * soon as the series is long enough for the chooser's own rule (backtest.h: ten blocks of twelve
 * horizons on time held out), and again whenever it has grown by an eighth, all forecasters are
 * tried on it. Where none beats persistence by more than chance nothing is said.
 *
 * Cost: a series has at most TAKT_LOAD_AHEAD_MAX steps, and is tried once an eighth more is known.
 * So a step costs about eight times what a sample costs in a backtest, however long the series is:
 * some 10 us. All of it is spent when a choice is due: at most some 5 ms at once, 10 ms with a
 * season that fits into the series often. Nothing is trained here: a network takes part only where
 * a trained one is given. Of one with 16 units a forecast takes about 0.1 ms; it is asked after
 * each step, and a choice goes by what it said.
 */
#ifndef TAKT_MODEL_LOAD_AHEAD_H
#define TAKT_MODEL_LOAD_AHEAD_H

#include <stdbool.h>

#include "model/forecast.h"
#include "model/lstm.h"

enum {
	TAKT_LOAD_AHEAD_MAX = 4096,
};

struct takt_load_ahead_config {
	uint32_t step_s;	      /* 1.. */
	uint32_t horizon;	      /* steps, 1..TAKT_FORECAST_MAX_HORIZON */
	uint32_t season;	      /* steps, at most TAKT_FORECAST_MAX_SEASON; 0 = none */
	int64_t zero_s;		      /* when time 0 of the calls below was, since 1970 */
	const struct takt_lstm *lstm; /* a trained one, borrowed; NULL = the network is not tried */
};

struct takt_load_ahead;

/* A heap object; free takes NULL. -ENOMEM, -EINVAL for what no forecaster takes. */
int takt_load_ahead_new(const struct takt_load_ahead_config *config, struct takt_load_ahead **ret,
			struct takt_err *err);
void takt_load_ahead_free(struct takt_load_ahead *ahead);
/* The load meant something else until now: begins anew. */
void takt_load_ahead_reset(struct takt_load_ahead *ahead);

/* It was so much on average from then until then; not before what was told before. */
void takt_load_ahead_add(struct takt_load_ahead *ahead, uint64_t from_ns, uint64_t until_ns,
			 double load);
/* Steps that are over by now are taken into account, and a forecaster is chosen if that is due. */
void takt_load_ahead_pass(struct takt_load_ahead *ahead, uint64_t now_ns);
/* The most that it is expected to be from now until `horizon` steps ahead; false: nobody can tell.
 */
bool takt_load_ahead_say(const struct takt_load_ahead *ahead, uint64_t now_ns, double *ret);

struct takt_load_ahead_word {
	size_t steps, needed; /* there are, of those that a choice takes */
	bool tried;
	const char *chosen;   /* name of a forecaster; NULL: none beats persistence */
	double better, error; /* of `chosen` than persistence: a step, and its standard error */
};
/* How far that is, for people. */
void takt_load_ahead_look(const struct takt_load_ahead *ahead, struct takt_load_ahead_word *ret);

#endif
