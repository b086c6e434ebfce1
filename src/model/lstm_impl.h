/* SPDX-License-Identifier: Apache-2.0 */
/* The network itself, for lstm*.c, forecast_lstm.c and their tests only. */
#ifndef TAKT_MODEL_LSTM_IMPL_H
#define TAKT_MODEL_LSTM_IMPL_H

#include <stdbool.h>

#include "model/lstm.h"

/* Everything of one pass over a window, which the pass back needs. Heap. */
struct takt_lstm_pass;
int takt_lstm_pass_new(const struct takt_lstm *net, struct takt_lstm_pass **ret);
void takt_lstm_pass_free(struct takt_lstm_pass *pass);

/*
 * What the network is given for `count` samples that end with value[count - 1], sample number
 * `index` since time zero: fills the last `count` of window rows of TAKT_LSTM_INPUTS. False when
 * nothing is known in them. *ret_newest: the newest known value.
 */
bool takt_lstm_inputs(const struct takt_lstm *net, const double *value, int64_t index,
		      double *ret_inputs, double *ret_newest);

/* Forward over a window of inputs; the answer after its last step, in spreads of changes. */
double takt_lstm_run(const struct takt_lstm *net, const double *inputs,
		     struct takt_lstm_pass *pass);

/* Loss of an answer: squared for small errors, linear for large ones (pseudo-Huber). */
double takt_lstm_loss(double error);

/* After takt_lstm_run: adds to gradient[weight_count] that of the loss against the target. */
void takt_lstm_back(const struct takt_lstm *net, const double *inputs, struct takt_lstm_pass *pass,
		    double target, double *gradient);

/* Members but the weights, which are 0. */
int takt_lstm_new(uint32_t hidden, uint32_t window, struct takt_lstm **ret, struct takt_err *err);

#endif
