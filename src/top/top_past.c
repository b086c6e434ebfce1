/* SPDX-License-Identifier: Apache-2.0 */
/* See top_past.h. */
#include "top/top_past.h"

#include "base/mem.h"
#include "base/str.h"
#include "top/graph.h"

enum {
	RAW_MS = 110 * 1000, /* so far back the daemon has every sample */
	HOLDS_MS = 2000,     /* one that is older says nothing of now */
};

static const char *const metrics[TAKT_TOP_SERIES] = {
	[TAKT_TOP_UTIL] = "utilization", [TAKT_TOP_MEMORY] = "memory",	[TAKT_TOP_POWER] = "power",
	[TAKT_TOP_TEMP] = "temperature", [TAKT_TOP_CLOCK] = "sm_clock",
};

/* What is full scale, in the metric's unit; 0 = not known. */
static double scale_of(const struct takt_gpu_view *gpu, enum takt_top_series series)
{
	switch (series) {
	case TAKT_TOP_MEMORY:
		return gpu->has & TAKT_VIEW_MEMORY ? (double)(gpu->mem_total_bytes >> 20) : 0;
	case TAKT_TOP_POWER:
		return gpu->has & TAKT_VIEW_POWER_LIMIT ? (double)gpu->power_limit_mw / 1000 : 0;
	case TAKT_TOP_CLOCK:
		return gpu->has & TAKT_VIEW_SM_MAX ? (double)gpu->sm_max_mhz : 0;
	default:
		return 100;
	}
}

static uint16_t permille_of(double value, double scale)
{
	double permille = value * 1000 / scale;

	return (uint16_t)(permille < 0 ? 0 : permille > 1000 ? 1000 : permille);
}

/* Whether what was measured then is the value at that time. */
static bool covers(const struct takt_history_view *view, size_t point, int64_t at_ms,
		   uint32_t step_ms)
{
	int64_t begin = view->points[point].at_ms,
		holds = view->step_ms ? (int64_t)view->step_ms : HOLDS_MS;

	return at_ms >= begin && at_ms - begin < (holds > step_ms ? holds : step_ms);
}

void takt_top_past_put(const struct takt_history_view *view, const struct takt_gpu_view *gpu,
		       enum takt_top_series series, int64_t now_ms, uint32_t step_ms,
		       uint16_t row[TAKT_TOP_HISTORY])
{
	double scale = scale_of(gpu, series);
	size_t points = view->point_count;

	if (scale <= 0)
		return;
	for (uint32_t ago = 0; ago < TAKT_TOP_HISTORY && points > 0; ago++) {
		int64_t at_ms = now_ms - (int64_t)ago * step_ms;

		while (points > 0 && view->points[points - 1].at_ms > at_ms)
			points--;
		if (points > 0 && row[ago] == TAKT_NO_VALUE &&
		    covers(view, points - 1, at_ms, step_ms))
			row[ago] = permille_of(view->points[points - 1].mean, scale);
	}
}

/* `step` of the daemon's history, from so long ago on. */
static int add(struct takt_client *client, const struct takt_gpu_view *gpu,
	       enum takt_top_series series, const char *step, int64_t from_ms, int64_t now_ms,
	       const struct takt_top_past *past, struct takt_top_past_gpu *ret)
{
	struct takt_history_view view;
	int rc = takt_client_history(client, gpu->index, metrics[series], step, from_ms, now_ms + 1,
				     &view, NULL);

	if (rc < 0)
		return rc;
	takt_top_past_put(&view, gpu, series, now_ms, past->step_ms, ret->permille[series]);
	takt_history_view_fini(&view);
	return 0;
}

/* The samples of the last minutes, and behind them means, where the daemon keeps any: `*means` is
 * false once it has said that it does not. */
static int add_series(struct takt_client *client, const struct takt_gpu_view *gpu,
		      enum takt_top_series series, int64_t now_ms, bool *means,
		      const struct takt_top_past *past, struct takt_top_past_gpu *ret)
{
	int64_t span_ms = (int64_t)TAKT_TOP_HISTORY * past->step_ms;
	int rc = add(client, gpu, series, "raw", now_ms - (span_ms < RAW_MS ? span_ms : RAW_MS),
		     now_ms, past, ret);

	if (rc == 0 && *means && span_ms > RAW_MS)
		*means = add(client, gpu, series, "10s", now_ms - span_ms, now_ms, past, ret) == 0;
	return rc;
}

static int add_gpu(struct takt_client *client, const struct takt_gpu_view *gpu, int64_t now_ms,
		   bool *means, const struct takt_top_past *past, struct takt_top_past_gpu *ret)
{
	int rc = 0;

	takt_strcpy(ret->uuid, sizeof(ret->uuid), gpu->uuid);
	for (int s = 0; s < TAKT_TOP_SERIES && rc == 0; s++)
		rc = add_series(client, gpu, s, now_ms, means, past, ret);
	return rc;
}

static void blank(struct takt_top_past *past)
{
	for (uint32_t g = 0; g < past->gpu_count; g++)
		for (int s = 0; s < TAKT_TOP_SERIES; s++)
			for (int i = 0; i < TAKT_TOP_HISTORY; i++)
				past->gpus[g].permille[s][i] = TAKT_NO_VALUE;
}

struct takt_top_past *takt_top_past_ask(struct takt_client *client,
					const struct takt_status_view *status, struct takt_wall now,
					uint32_t step_ms)
{
	struct takt_top_past *past = takt_top_past_new(status->gpu_count, step_ms);
	int64_t now_ms = now.ns / (int64_t)TAKT_NS_PER_MS;
	bool means = true;
	int rc = 0;

	if (!past)
		return NULL;
	blank(past);
	for (uint32_t i = 0; i < status->gpu_count && rc == 0; i++)
		rc = add_gpu(client, &status->gpus[i], now_ms, &means, past, &past->gpus[i]);
	return past;
}
