/* SPDX-License-Identifier: Apache-2.0 */
/* takt forecast: what load will be in five minutes, and who is to be believed about it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/timetext.h"
#include "cli/forecast_cli.h"
#include "cli/job_filter.h"
#include "cli/report_page.h"
#include "sim/sim_meta.h"

#define DAY_MS (UINT64_C(24) * 3600 * 1000)

/* A duration as whole steps. */
static int take_steps(const struct takt_forecast_cli *own, const char *option, uint64_t absent_ms,
		      uint32_t max, uint32_t *ret, struct takt_err *err)
{
	uint64_t step_ms = own->series.step_s * 1000ull, ms;
	int rc = takt_cli_duration_ms(own->cli, option, 366 * DAY_MS, absent_ms, &ms, err);

	if (rc < 0)
		return rc;
	if (ms % step_ms || ms / step_ms > max)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--%s' must be a multiple of the step (%u s), at most %u of "
				    "them",
				    option, own->series.step_s, max);
	*ret = (uint32_t)(ms / step_ms);
	return 0;
}

static int take_without(struct takt_forecast_cli *own, struct takt_err *err)
{
	const char *text = takt_cli_value(own->cli, "without");

	while (text && *text) {
		size_t len = strcspn(text, ","), k = 1;

		while (k < TAKT_FORECASTERS && (strlen(takt_forecasters[k]->name) != len ||
						memcmp(takt_forecasters[k]->name, text, len) != 0))
			k++;
		if (k == TAKT_FORECASTERS)
			return takt_err_set(
				err, -TAKT_E_USAGE,
				"'--without' takes seasonal, ewma, ar, holt-winters and "
				"lstm, not '%.*s'",
				(int)(len < 40 ? len : 40), text);
		own->config.without[k] = true;
		text += len + (text[len] == ',');
	}
	return 0;
}

static int take_choice(struct takt_forecast_cli *own, struct takt_err *err)
{
	const char *by = takt_cli_value(own->cli, "choose");
	const char *threshold = takt_cli_value(own->cli, "threshold");
	uint32_t needless;
	uint64_t milli = 0;
	int rc = takt_cli_milli(own->cli, "needless-cost", 1000000, 100, &needless, err);

	if (rc < 0)
		return rc;
	if (by && strcmp(by, "error") != 0 && strcmp(by, "load") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--choose' must be error or load, not "
				    "'%.40s'",
				    by);
	if (threshold && !takt_cli_parse_milli(threshold, &milli))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--threshold' must be a number such as 12.5, not '%.40s'",
				    threshold);
	own->config.by_consequence = by && by[0] == 'l';
	own->config.threshold = threshold ? (double)milli / 1000 : NAN;
	own->config.needless_cost = needless / 1000.0;
	return 0;
}

static int take_numbers(struct takt_forecast_cli *own, struct takt_err *err)
{
	struct takt_forecast_task *task = &own->config.task;
	int64_t held_out, folds, units, rounds, seed;

	if (takt_cli_number(own->cli, "held-out", 1, 90, 30, &held_out, err) < 0 ||
	    takt_cli_number(own->cli, "folds", 1, TAKT_BACKTEST_MAX_FOLDS, 4, &folds, err) < 0 ||
	    takt_cli_number(own->cli, "watts", 0, 1000000, 22, &own->watts, err) < 0 ||
	    takt_cli_number(own->cli, "units", 1, TAKT_LSTM_MAX_HIDDEN, 16, &units, err) < 0 ||
	    takt_cli_number(own->cli, "rounds", 1, 1000000, 1500, &rounds, err) < 0 ||
	    takt_cli_number(own->cli, "seed", 0, INT64_MAX, 1, &seed, err) < 0)
		return -TAKT_E_USAGE;
	own->config.held_out_permille = (uint32_t)held_out * 10;
	own->config.folds = (uint32_t)folds;
	task->lstm_hidden = (uint32_t)units;
	task->lstm_rounds = (uint32_t)rounds;
	task->seed = (uint64_t)seed;
	return 0;
}

/* A network that was trained on a part of the series is tested behind that part only. */
static int take_model(struct takt_forecast_cli *own, struct takt_err *err)
{
	const char *path = takt_cli_value(own->cli, "model");
	const struct takt_series *series = &own->series;
	int64_t behind;
	int rc;

	if (!path)
		return 0;
	rc = takt_forecast_read_model(path, &own->net, err);
	if (rc < 0)
		return rc;
	own->config.task.lstm = own->net;
	behind = (own->net->until_s - series->begin_s) / series->step_s + 1;
	if (behind >= (int64_t)series->len)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%s' was trained on all of this series: nothing is held out "
				    "to test it on",
				    path);
	own->config.first = behind > 0 ? (size_t)behind : 0;
	return 0;
}

static int take_options(struct takt_forecast_cli *own, struct takt_err *err)
{
	struct takt_forecast_task *task = &own->config.task;
	int rc = take_steps(own, "ahead", 300000, TAKT_FORECAST_MAX_HORIZON, &task->horizon, err);

	rc = rc < 0 ? rc
		    : take_steps(own, "season", DAY_MS, TAKT_FORECAST_MAX_SEASON, &task->season,
				 err);
	rc = rc < 0 ? rc : take_without(own, err);
	rc = rc < 0 ? rc : take_choice(own, err);
	rc = rc < 0 ? rc : take_numbers(own, err);
	return rc < 0 ? rc : take_model(own, err);
}

/* The chosen one, fitted on everything, of what comes after it. */
static int look_ahead(struct takt_forecast_cli *own, struct takt_err *err)
{
	const struct takt_forecaster *chosen = takt_forecasters[own->result.chosen];
	void *state;
	int rc = chosen->fit(&own->series, &own->config.task, &state, err);

	if (rc < 0)
		return rc;
	own->next = chosen->predict(state);
	chosen->release(state);
	return 0;
}

static int write_page(const struct takt_forecast_cli *own, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SIM_RESULT_BYTES);

	takt_forecast_json(own, &json);
	return takt_report_write(own->cli, &json, err);
}

static int backtest(struct takt_forecast_cli *own, struct takt_err *err)
{
	int rc = takt_backtest(&own->series, &own->config, &own->result, err);

	if (rc < 0)
		return rc;
	own->has_result = true;
	rc = look_ahead(own, err);
	if (rc == 0 && takt_cli_has(own->cli, "govern"))
		rc = takt_forecast_govern(own, err);
	if (rc == 0)
		rc = write_page(own, err);
	if (rc < 0)
		return rc;
	if (own->cli->json)
		takt_forecast_json(own, &own->cli->out);
	else if (takt_cli_has(own->cli, "csv"))
		takt_forecast_csv(own, &own->cli->out);
	else
		takt_forecast_text(own);
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_forecast_cli own = {.cli = cli};
	bool train = cli->operand_count == 1;
	int rc;

	if (train && strcmp(cli->operands[0], "train") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%.40s' cannot be done; train can, or nothing: a backtest",
				    cli->operands[0]);
	rc = takt_forecast_source(&own, err);
	if (rc == 0)
		rc = take_options(&own, err);
	if (rc == 0)
		rc = train ? takt_forecast_train(&own, err) : backtest(&own, err);
	if (own.has_result)
		takt_backtest_fini(&own.result);
	takt_lstm_free(own.net);
	takt_free(own.values);
	return rc == -ENODATA ? (err->rc = -TAKT_E_USAGE) : rc; /* the series is too short */
}

static const struct takt_option options[] = {
	{"history", 0, "FILE",
	 "CSV or JSON Lines with columns time and value; an empty value is a gap"},
	{"trace", 0, "FILE", "jobs as in takt simulate: the GPUs that they would hold unqueued"},
	{"tenant", 0, "NAME", "of the trace: this tenant's jobs only"},
	{"recording", 0, "FILE", "what takt record wrote"},
	{"gpu", 'g', "GPU", "of the recording (0)"},
	{"what", 0, "NAME", "of the recording: power or util (power)"},
	TAKT_FILTER_OPTIONS,
	{"step", 0, "TIME", "of the series; samples within a step are averaged (1m)"},
	{"ahead", 0, "TIME", "how far to look (5m)"},
	{"season", 0, "TIME", "after which load may repeat itself; 0s: never (24h)"},
	{"held-out", 0, "PCT", "of the series, at its end: what is tested on (30)"},
	{"folds", 0, "N", "parts of the held-out time; all is fitted anew for each (4)"},
	{"choose", 0, "BY", "error, or load: what was missed and what was needless (error)"},
	{"threshold", 0, "N", "from here on a value is high (the 80th percentile of the past)"},
	{"needless-cost", 0, "N", "of a needless step, that of a missed one being 1 (0.1)"},
	{"watts", 0, "N", "that being ready for nothing costs: an assumption (22)"},
	{"govern", 0, NULL,
	 "what each forecaster costs and misses as it drives the governor 'forecast'"},
	{"without", 0, "LIST", "forecasters not to try: seasonal,ewma,ar,holt-winters,lstm"},
	{"model", 0, "FILE", "a network of takt forecast train, instead of training one here"},
	{"out", 0, "FILE", "train: write the network there"},
	{"units", 0, "N", "of the network (16)"},
	{"rounds", 0, "N", "of its training (1500)"},
	{"seed", 0, "N", "of its training (1)"},
	{"csv", 0, NULL, "the table as comma-separated values"},
	{"html", 0, "FILE", "write a page with a plot there, complete in one file"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt forecast", "how many GPUs this machine's jobs will hold in five minutes"},
	{"takt forecast --history load.csv --html load.html", "of a series from elsewhere"},
	{"takt forecast --recording machine.takt --gpu 2 --step 1s --ahead 10s --season 0s",
	 "of a GPU's power"},
	{"takt forecast train --history load.csv --out load.lstm",
	 "once, in the night; then: takt forecast --history load.csv --model load.lstm"},
	{NULL, NULL},
};

static const char *const words[] = {"train", NULL};

const struct takt_verb takt_verb_forecast = {
	.name = "forecast",
	.summary = "what load will be in five minutes, and whom to believe",
	.usage =
		"[train --out FILE] [--history FILE | --trace FILE | --recording FILE] [OPTION...]",
	.about = "Tries six forecasters on a series: persistence, the same time a season before, a "
		 "fading mean, a linear one, Holt and Winters', and a small recurrent network "
		 "that is trained on the series itself. Each is fitted on the past and tested on "
		 "time that it was not fitted on. The plainest is used that no other one beats by "
		 "more than chance; what it says of the time to come is shown with its error.\n"
		 "Beside the error stands what it is for: a GPU made ready where high load is "
		 "foreseen. MISSED are high steps that were not foreseen, and their share of the "
		 "load; NEEDLESS are those foreseen that did not come, at --watts.\n"
		 "Without a file the series is the GPUs that the daemon's jobs held. Changes "
		 "nothing. More in docs/research/forecasts.md.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.max_operands = 1,
	.run = run,
};
