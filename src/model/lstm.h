/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small recurrent network (one layer of LSTM units, Hochreiter and Schmidhuber 1997) that says by
 * how much a series will have changed in `horizon` steps. It reads the last `window` samples from
 * the oldest to the newest and begins anew for each forecast, as in training.
 *
 * What it is given a step: the value, less the mean and in deviations; by how much it changed; 1
 * where the sample is missing (the value is then the last that was known); and the time within the
 * season as a point on a circle. What comes out is added to the newest value: a network that has
 * learned nothing is persistence.
 *
 * Training is by truncated backpropagation through time with Adam (Kingma and Ba 2015) on windows
 * drawn from the history; the last part of the history is kept aside, and the weights are those
 * that did best there. Single-threaded; the same seed gives the same weights.
 */
#ifndef TAKT_MODEL_LSTM_H
#define TAKT_MODEL_LSTM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "model/forecast.h"

enum {
	TAKT_LSTM_INPUTS = 5,
	TAKT_LSTM_MAX_HIDDEN = 64,
	TAKT_LSTM_WINDOW = 48,
	TAKT_LSTM_MAX_WINDOW = 512,
	TAKT_LSTM_MAX_FILE = 1024 * 1024,
};

struct takt_lstm {
	uint32_t hidden, window, horizon, season, step_s;
	int64_t until_s;	     /* time of the last sample that it was trained on */
	double mean, spread, change; /* of the series; spread of its changes over the horizon */
	double worth;		     /* its loss on what was kept aside, persistence's being 1 */
	size_t weight_count;	     /* takt_lstm_weights(hidden) */
	double *weight; /* owned: input, forget, output gates and candidate of each unit
			 * over inputs, units and a constant; then the line that sums up */
};

size_t takt_lstm_weights(uint32_t hidden);

/* A heap object; free takes NULL. The task's season, horizon, lstm_*, seed and progress count.
 * -ENODATA when too little of the history is without gaps. */
int takt_lstm_train(const struct takt_series *history, const struct takt_forecast_task *task,
		    struct takt_lstm **ret, struct takt_err *err);
void takt_lstm_free(struct takt_lstm *net);

/*
 * As text: a line that says what it is and its version, a line a member, the weights as the bits of
 * doubles, and a checksum. Parsing refuses with a reason whatever was not written so
 * (-TAKT_E_CORRUPT, -TAKT_E_VERSION); *ret is untouched then.
 */
int takt_lstm_format(const struct takt_lstm *net, struct takt_str *out);
int takt_lstm_parse(const char *text, size_t len, struct takt_lstm **ret, struct takt_err *err);

#endif
