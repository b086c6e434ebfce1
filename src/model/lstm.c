/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network: forward, and back through time. One step, of all units, with z the inputs, the
 * units' last outputs and 1:
 *
 *	i, f, o = sigmoid(W z)    g = tanh(W z)    c = f c' + i g    h = o tanh(c)
 *
 * and after the last step the answer v h + v0.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/lstm_impl.h"

enum gate {
	GATE_IN,
	GATE_FORGET,
	GATE_OUT,
	GATE_NEW,
	GATES
};

struct takt_lstm_pass {
	double answer;
	double *gate; /* window x GATES x hidden, after sigmoid or tanh; owns the rest */
	double *cell; /* (window + 1) x hidden, the first row 0 */
	double *out;  /* likewise */
	double *d_out, *d_cell, *d_sum; /* hidden, hidden, GATES x hidden */
};

static size_t row_len(uint32_t hidden)
{
	return TAKT_LSTM_INPUTS + (size_t)hidden + 1;
}

size_t takt_lstm_weights(uint32_t hidden)
{
	return GATES * (size_t)hidden * row_len(hidden) + hidden + 1;
}

int takt_lstm_new(uint32_t hidden, uint32_t window, struct takt_lstm **ret, struct takt_err *err)
{
	struct takt_lstm *net = takt_zalloc(sizeof(*net));

	if (net)
		net->weight = takt_calloc(takt_lstm_weights(hidden), sizeof(double));
	if (!net || !net->weight) {
		takt_lstm_free(net);
		return takt_err_set(err, -ENOMEM, "a network");
	}
	net->hidden = hidden;
	net->window = window;
	net->weight_count = takt_lstm_weights(hidden);
	*ret = net;
	return 0;
}

void takt_lstm_free(struct takt_lstm *net)
{
	if (!net)
		return;
	takt_free(net->weight);
	takt_free(net);
}

int takt_lstm_pass_new(const struct takt_lstm *net, struct takt_lstm_pass **ret)
{
	struct takt_lstm_pass *pass = takt_zalloc(sizeof(*pass));
	size_t n = net->hidden, rows = net->window;

	if (pass)
		pass->gate = takt_calloc(n * (GATES * rows + 2 * (rows + 1) + 2 + GATES),
					 sizeof(double));
	if (!pass || !pass->gate) {
		takt_free(pass);
		return -ENOMEM;
	}
	pass->cell = pass->gate + n * GATES * rows;
	pass->out = pass->cell + n * (rows + 1);
	pass->d_out = pass->out + n * (rows + 1);
	pass->d_cell = pass->d_out + n;
	pass->d_sum = pass->d_cell + n;
	*ret = pass;
	return 0;
}

void takt_lstm_pass_free(struct takt_lstm_pass *pass)
{
	if (!pass)
		return;
	takt_free(pass->gate);
	takt_free(pass);
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double weigh(const double *weight, const double *inputs, const double *out, uint32_t hidden)
{
	double sum = weight[TAKT_LSTM_INPUTS + hidden];

	for (size_t i = 0; i < TAKT_LSTM_INPUTS; i++)
		sum += weight[i] * inputs[i];
	for (size_t i = 0; i < hidden; i++)
		sum += weight[TAKT_LSTM_INPUTS + i] * out[i];
	return sum;
}

static void forward(const struct takt_lstm *net, const double *inputs, struct takt_lstm_pass *pass,
		    size_t t)
{
	size_t n = net->hidden;
	double *gate = pass->gate + t * GATES * n;
	const double *cell = pass->cell + t * n, *out = pass->out + t * n;
	double *next_cell = pass->cell + (t + 1) * n, *next_out = pass->out + (t + 1) * n;

	for (size_t g = 0; g < GATES * n; g++) {
		double sum = weigh(net->weight + g * row_len(net->hidden),
				   inputs + t * TAKT_LSTM_INPUTS, out, net->hidden);

		gate[g] = g < GATE_NEW * n ? sigmoid(sum) : tanh(sum);
	}
	for (size_t i = 0; i < n; i++) {
		next_cell[i] = gate[GATE_FORGET * n + i] * cell[i] +
			       gate[GATE_IN * n + i] * gate[GATE_NEW * n + i];
		next_out[i] = gate[GATE_OUT * n + i] * tanh(next_cell[i]);
	}
}

static const double *summing_line(const struct takt_lstm *net)
{
	return net->weight + GATES * (size_t)net->hidden * row_len(net->hidden);
}

double takt_lstm_run(const struct takt_lstm *net, const double *inputs, struct takt_lstm_pass *pass)
{
	const double *line = summing_line(net),
		     *out = pass->out + net->window * (size_t)net->hidden;

	for (size_t t = 0; t < net->window; t++)
		forward(net, inputs, pass, t);
	pass->answer = line[net->hidden];
	for (size_t i = 0; i < net->hidden; i++)
		pass->answer += line[i] * out[i];
	return pass->answer;
}

double takt_lstm_loss(double error)
{
	return sqrt(1 + error * error) - 1;
}

/* From what the loss wants of outputs and cells after step t to what it wants of the sums in it;
 * what it wants of the cells before it is left in d_cell. */
static void back_to_sums(const struct takt_lstm *net, struct takt_lstm_pass *pass, size_t t)
{
	size_t n = net->hidden;
	const double *gate = pass->gate + t * GATES * n;

	for (size_t i = 0; i < n; i++) {
		double in = gate[GATE_IN * n + i], forget = gate[GATE_FORGET * n + i];
		double out = gate[GATE_OUT * n + i], new = gate[GATE_NEW * n + i];
		double shown = tanh(pass->cell[(t + 1) * n + i]);
		double d_cell = pass->d_cell[i] + pass->d_out[i] * out * (1 - shown * shown);

		pass->d_sum[GATE_IN * n + i] = d_cell * new *in *(1 - in);
		pass->d_sum[GATE_FORGET * n + i] =
			d_cell * pass->cell[t * n + i] * forget * (1 - forget);
		pass->d_sum[GATE_OUT * n + i] = pass->d_out[i] * shown * out * (1 - out);
		pass->d_sum[GATE_NEW * n + i] = d_cell * in * (1 - new *new);
		pass->d_cell[i] = d_cell * forget;
	}
}

/* From the sums to the weights, and to the outputs of the step before. */
static void back_to_weights(const struct takt_lstm *net, const double *inputs,
			    struct takt_lstm_pass *pass, size_t t, double *gradient)
{
	size_t n = net->hidden, len = row_len(net->hidden);
	const double *out = pass->out + t * n, *in = inputs + t * TAKT_LSTM_INPUTS;

	memset(pass->d_out, 0, n * sizeof(double));
	for (size_t g = 0; g < GATES * n; g++) {
		const double *weight = net->weight + g * len;
		double *into = gradient + g * len, d = pass->d_sum[g];

		for (size_t i = 0; i < TAKT_LSTM_INPUTS; i++)
			into[i] += d * in[i];
		for (size_t i = 0; i < n; i++) {
			into[TAKT_LSTM_INPUTS + i] += d * out[i];
			pass->d_out[i] += d * weight[TAKT_LSTM_INPUTS + i];
		}
		into[TAKT_LSTM_INPUTS + n] += d;
	}
}

void takt_lstm_back(const struct takt_lstm *net, const double *inputs, struct takt_lstm_pass *pass,
		    double target, double *gradient)
{
	size_t n = net->hidden;
	const double *line = summing_line(net), *out = pass->out + net->window * n;
	double *into = gradient + (line - net->weight);
	double error = pass->answer - target, d = error / sqrt(1 + error * error);

	memset(pass->d_cell, 0, n * sizeof(double));
	for (size_t i = 0; i < n; i++) {
		into[i] += d * out[i];
		pass->d_out[i] = d * line[i];
	}
	into[n] += d;
	for (size_t t = net->window; t-- > 0;) {
		back_to_sums(net, pass, t);
		back_to_weights(net, inputs, pass, t, gradient);
	}
}

static void season_point(const struct takt_lstm *net, int64_t index, double *ret)
{
	const double circle = 6.283185307179586;
	double phase;

	if (net->season == 0) {
		ret[0] = ret[1] = 0;
		return;
	}
	phase = (double)((index % net->season + net->season) % net->season) / net->season;
	ret[0] = sin(circle * phase);
	ret[1] = cos(circle * phase);
}

bool takt_lstm_inputs(const struct takt_lstm *net, const double *value, int64_t index,
		      double *ret_inputs, double *ret_newest)
{
	const double *first = value - (net->window - 1);
	double known = NAN;

	for (size_t t = 0; t < net->window && isnan(known); t++)
		known = first[t];
	if (isnan(known))
		return false;
	for (size_t t = 0; t < net->window; t++) {
		double *in = ret_inputs + t * TAKT_LSTM_INPUTS;
		bool missing = isnan(first[t]);
		double now = missing ? known : first[t];

		in[0] = (now - net->mean) / net->spread;
		in[1] = (now - known) / net->change;
		in[2] = missing;
		season_point(net, index - (int64_t)(net->window - 1 - t), &in[3]);
		known = now;
	}
	*ret_newest = known;
	return true;
}
