/* SPDX-License-Identifier: Apache-2.0 */
/* takt history: what GPUs did, from seconds ago to a year back. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/history_chart.h"
#include "cli/history_text.h"
#include "cli/job_filter.h"
#include "cli/png.h"
#include "cli/units.h"

enum {
	MAX_METRICS = 16,
	MAX_SVG = 64 * 1024 * 1024,
};

static const int64_t hour_ms = 3600 * 1000;
static const char default_metrics[] = "power,sm_clock,temperature,utilization,memory";

struct wanted {
	uint64_t gpus;
	char text[512]; /* of the metrics, cut at the commas */
	const char *metrics[MAX_METRICS];
	size_t metric_count;
	const char *step;
	int64_t since_ms, until_ms;
};

/* As nvidia-smi and people shorten them. */
static const char *whole_name(const char *name)
{
	static const char *const rows[][2] = {
		{"util", "utilization"},
		{"gpu", "utilization"},
		{"mem", "memory"},
		{"temp", "temperature"},
		{"clock", "sm_clock"},
		{"sm", "sm_clock"},
		{"mem_util", "memory_utilization"},
		{"mem_clock", "memory_clock"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		if (strcmp(rows[i][0], name) == 0)
			return rows[i][1];
	return name;
}

static int read_metrics(const struct takt_cli *cli, struct wanted *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "metric");
	char *save = NULL;

	if (!takt_strcpy(ret->text, sizeof(ret->text), text ? text : default_metrics))
		return takt_err_set(err, -TAKT_E_USAGE, "'--metric' has over %zu bytes",
				    sizeof(ret->text) - 1);
	for (char *name = strtok_r(ret->text, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		if (ret->metric_count == MAX_METRICS)
			return takt_err_set(err, -TAKT_E_USAGE, "'--metric' takes at most %d names",
					    MAX_METRICS);
		ret->metrics[ret->metric_count++] = whole_name(name);
	}
	return ret->metric_count ? 0
				 : takt_err_set(err, -TAKT_E_USAGE,
						"'--metric' takes names such as power,temperature");
}

static int read_past(const struct takt_cli *cli, const char *option, int64_t absent_ms,
		     int64_t *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);
	int rc = text ? takt_past_parse(text, (int64_t)time(NULL) * 1000, ret, err) : 0;

	if (!text)
		*ret = absent_ms;
	return rc < 0 ? takt_err_wrap(err, rc, "'--%s'", option) : 0;
}

static int read_wanted(struct takt_cli *cli, struct wanted *ret, struct takt_err *err)
{
	int rc = read_metrics(cli, ret, err);

	ret->step = takt_cli_value(cli, "step");
	if (rc == 0)
		rc = read_past(cli, "until", (int64_t)time(NULL) * 1000, &ret->until_ms, err);
	if (rc == 0)
		rc = read_past(cli, "since", ret->until_ms - hour_ms, &ret->since_ms, err);
	if (rc == 0 && ret->since_ms >= ret->until_ms)
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--since' must be before '--until'");
	return rc;
}

static int read_gpus(struct takt_cli *cli, struct wanted *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "gpu");
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_zalloc(sizeof(*view));
	int rc = view ? takt_client_clocks(cli->client, view, err)
		      : takt_err_set(err, -ENOMEM, "no memory for the GPUs");

	if (rc == 0)
		rc = takt_mask_parse(text ? text : "all", view->gpu_count, &ret->gpus, err);
	return rc < 0 && text ? takt_err_wrap(err, rc, "'--gpu'") : rc;
}

static int fetch_one(struct takt_cli *cli, const struct wanted *wanted, uint32_t gpu,
		     const char *metric, struct takt_history_list *list, struct takt_err *err)
{
	struct takt_history_view view;
	int rc = takt_client_history(cli->client, gpu, metric, wanted->step, wanted->since_ms,
				     wanted->until_ms, &view, err);

	if (rc < 0)
		return rc;
	if (cli->json)
		takt_str_addf(&cli->out, "%s%s", list->views.len ? "," : "{\"series\":[",
			      takt_client_json(cli->client));
	if (takt_vec_push(&list->views, view) == 0)
		return 0;
	takt_history_view_fini(&view);
	return takt_err_set(err, -ENOMEM, "no memory for the history");
}

static int fetch(struct takt_cli *cli, const struct wanted *wanted, struct takt_history_list *list,
		 struct takt_err *err)
{
	int rc = 0;

	for (uint64_t left = wanted->gpus; left && rc == 0; left &= left - 1)
		for (size_t m = 0; m < wanted->metric_count && rc == 0; m++)
			rc = fetch_one(cli, wanted, (uint32_t)__builtin_ctzll(left),
				       wanted->metrics[m], list, err);
	if (rc < 0)
		takt_str_reset(&cli->out);
	return rc;
}

static int print(struct takt_cli *cli, const struct takt_history_list *list, struct takt_err *err)
{
	int rc = 0;

	if (cli->json)
		takt_str_add(&cli->out, list->views.len ? "]}\n" : "{\"series\":[]}\n");
	else if (takt_cli_has(cli, "csv"))
		takt_history_csv(&cli->out, list);
	else if (takt_cli_has(cli, "table"))
		rc = takt_history_table(cli, list);
	else
		rc = takt_history_lines(cli, list);
	return rc < 0 ? takt_err_set(err, rc, "no memory for the history") : 0;
}

static int write_charts(const struct takt_cli *cli, const struct takt_history_list *list,
			struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str svg = TAKT_STR(MAX_SVG);
	const char *png = takt_cli_value(cli, "png");
	int rc;

	if (!png && !takt_cli_value(cli, "svg"))
		return 0;
	rc = takt_history_chart(list, &svg);
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for the chart");
	if (svg.len == 0)
		return takt_err_set(err, -TAKT_E_NOT_FOUND,
				    "nothing was measured in that time: there is nothing to draw");
	rc = takt_cli_write_file(cli, "svg", &svg, err);
	return rc == 0 && png ? takt_cli_write_png(&svg, png, err) : rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_history_list list = {.views = TAKT_VEC_INIT(TAKT_HISTORY_MAX_SERIES)};
	struct wanted wanted = {.gpus = 0};
	int rc = read_wanted(cli, &wanted, err);

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = read_gpus(cli, &wanted, err);
	if (rc == 0)
		rc = fetch(cli, &wanted, &list, err);
	if (rc == 0)
		rc = write_charts(cli, &list, err);
	if (rc == 0)
		rc = print(cli, &list, err);
	else
		takt_str_reset(&cli->out);
	TAKT_VEC_EACH (view, &list.views)
		takt_history_view_fini(view);
	takt_vec_fini(&list.views);
	return rc;
}

static const struct takt_option options[] = {
	{"gpu", 'g', "GPUS", "of these, such as 0,2-3 (default all)"},
	{"metric", 'm', "NAMES",
	 "with commas between (default power,sm_clock,temperature,utilization,memory); others: "
	 "power_limit, memory_clock, memory_utilization, fan, encoder, decoder, throttled, "
	 "processes; util, mem, temp and clock for short"},
	{"since", 0, "TIME",
	 "from then on: 2h, 1w, 18:00, yesterday or a date (default an hour before --until)"},
	{"until", 0, "TIME", "up to then (default now)"},
	{"step", 0, "STEP", "raw, 10s, 1m or 1h (default the finest that fits)"},
	{"table", 0, NULL, "a row a step"},
	{"csv", 0, NULL, "as comma-separated values, times in UTC"},
	{"png", 0, "FILE", "a chart of each metric's means, too, by rsvg-convert"},
	{"svg", 0, "FILE", "the same without another program"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt history --gpu 3 --since 2h --metric power", "the power of GPU 3, in one line"},
	{"takt history --since 14d --metric temperature --table", "every hour of two weeks"},
	{"takt history --since 1d --csv > gpus.csv", "for a plot"},
	{"takt history --gpu 0-7 --since 6h --metric power,sm_clock --png gpus.png", "two charts"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_history = {
	.name = "history",
	.summary = "what GPUs did: power, clocks, heat, use, up to a year back",
	.usage = "[--gpu GPUS] [--metric NAMES] [--since TIME]",
	.about = "Shows the least, mean and highest of each metric, and its course over the time "
		 "asked for. takt keeps the samples of the last two minutes, and of every ten "
		 "seconds for a day, of every minute for two weeks, of every hour for a year the "
		 "least, mean and highest, in files of fixed size. A blank in the course is a time "
		 "in which nothing was measured: takt did not run, the GPU did not answer, or the "
		 "board does not tell.",
	.options = options,
	.examples = examples,
	.run = run,
};
