/* SPDX-License-Identifier: Apache-2.0 */
/* Files of networks: what is accepted can be run, and written and read again. */
#include <math.h>

#include "fuzz_input.h"
#include "model/lstm_impl.h"

static void check_run(const struct takt_lstm *net)
{
	struct takt_forecast_task task = {.horizon = net->horizon, .lstm = net};
	double value[4] = {1, NAN, 3, 2};
	struct takt_series series = {.value = value, .len = 4, .step_s = net->step_s};
	void *state = NULL;

	fuzz_expect(takt_forecast_lstm.fit(&series, &task, &state, NULL) == 0);
	(void)takt_forecast_lstm.predict(state);
	takt_forecast_lstm.release(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_str again = TAKT_STR(TAKT_LSTM_MAX_FILE);
	struct takt_lstm *net;

	if (takt_lstm_parse((const char *)data, size, &net, NULL) < 0)
		return 0;
	check_run(net);
	fuzz_expect(takt_lstm_format(net, &again) == 0);
	takt_lstm_free(net);
	fuzz_expect(takt_lstm_parse(again.s, again.len, &net, NULL) == 0);
	takt_str_fini(&again);
	takt_lstm_free(net);
	return 0;
}
