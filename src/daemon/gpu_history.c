/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did: samples are handed to the files of telemetry/history.h, and who asks is answered
 * from them, or, for the last minutes, sample by sample from memory. A history that cannot be kept
 * is no reason not to serve: the log, the metrics page and every answer say so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/history_view.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

enum {
	AUTO_POINTS = 1500, /* at most, where nobody says how fine */
	RAW_POINTS = TAKT_HISTORY_VIEW_MAX,
};

static const uint64_t complain_ns = 3600 * TAKT_NS_PER_S;
static const int64_t hour_ms = 3600 * 1000;
static const char raw_metrics[] = "power, sm_clock, temperature, utilization and memory";

struct takt_gpu_history {
	struct takt_history *files; /* NULL = none are kept */
	int dirfd;
	uint64_t lost_said;
	struct takt_mono said_at;
	char why_none[200];
};

/* One who waits for an answer. */
struct asker {
	struct takt_daemon *daemon;
	struct takt_pending *pending; /* NULL = hung up */
	struct takt_history_view view;
};

static uint64_t free_bytes(void *ctx)
{
	const struct takt_gpu_history *history = ctx;
	struct statvfs fs;

	return fstatvfs(history->dirfd, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}

static int open_files(struct takt_daemon *daemon, struct takt_gpu_history *history,
		      struct takt_err *err)
{
	const char *uuids[TAKT_DEVICE_MAX_GPUS] = {NULL};
	struct takt_history_config config = {
		.sys = daemon->sys,
		.gpu_count = daemon->gpu_count,
		.uuids = uuids,
		.free_bytes = free_bytes,
		.ctx = history,
	};
	char path[PATH_MAX];
	int rc;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (takt_watch_known(daemon, gpu))
			uuids[gpu] = takt_machine_facts(daemon->machine, gpu)->uuid;
	snprintf(path, sizeof(path), "%s/gpu-history", daemon->config.state_dir);
	rc = takt_mkdirs_durable(daemon->sys, path, 0700, err);
	if (rc < 0)
		return rc;
	history->dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (history->dirfd < 0)
		return takt_err_set(err, -errno, "open '%s'", path);
	config.dirfd = history->dirfd;
	return takt_history_open(&config, &history->files, err);
}

int takt_gpu_history_new(struct takt_daemon *daemon, struct takt_err *err)
{
	struct takt_gpu_history *history = takt_zalloc(sizeof(*history));
	struct takt_err failed;
	char text[TAKT_ERR_MSG + 64];

	if (!history)
		return takt_err_set(err, -ENOMEM, "the history of GPUs");
	history->dirfd = -1;
	daemon->history = history;
	if (!daemon->config.history) {
		takt_strcpy(history->why_none, sizeof(history->why_none),
			    "no history of GPUs is kept (history = no)");
		return 0;
	}
	if (open_files(daemon, history, &failed) == 0)
		return 0;
	takt_err_text(&failed, text, sizeof(text));
	takt_strcpy(history->why_none, sizeof(history->why_none), text);
	takt_log(TAKT_LOG_WARNING, "no history of GPUs is kept: %s", text);
	return 0;
}

void takt_gpu_history_free(struct takt_gpu_history *history)
{
	if (!history)
		return;
	takt_history_close(history->files);
	if (history->dirfd >= 0)
		close(history->dirfd);
	takt_free(history);
}

int takt_gpu_history_fd(const struct takt_gpu_history *history)
{
	return history->files ? takt_history_fd(history->files) : -1;
}

/* The wall clock of a moment. */
static struct takt_wall wall_of(const struct takt_daemon *daemon, struct takt_mono at,
				struct takt_mono now)
{
	return (struct takt_wall){takt_wall_now(daemon->sys).ns -
				  (int64_t)takt_mono_elapsed_ns(now, at)};
}

void takt_gpu_history_tick(struct takt_daemon *daemon, uint64_t fresh, struct takt_mono now)
{
	struct takt_history *files = daemon->history->files;
	const struct takt_gpu_reading *reading;

	if (!files)
		return;
	for (uint64_t left = fresh; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) == 0)
			takt_history_feed(files, gpu, reading, wall_of(daemon, reading->at, now));
	}
	takt_history_tick(files, takt_wall_now(daemon->sys));
}

/* Said when it begins, and once an hour while it goes on. */
static void say_lost(struct takt_daemon *daemon)
{
	struct takt_gpu_history *history = daemon->history;
	struct takt_mono now = takt_mono_now(daemon->sys);
	struct takt_history_state state;
	char text[TAKT_ERR_MSG + 64];

	takt_history_state(history->files, &state);
	if (state.lost == history->lost_said ||
	    (history->lost_said && takt_mono_elapsed_ns(now, history->said_at) < complain_ns))
		return;
	history->said_at = now;
	history->lost_said = state.lost;
	takt_log(TAKT_LOG_WARNING, "%llu records of the history of GPUs are lost: %s",
		 (unsigned long long)state.lost, takt_err_text(&state.last, text, sizeof(text)));
}

void takt_gpu_history_pump(struct takt_daemon *daemon)
{
	if (!daemon->history->files)
		return;
	takt_history_pump(daemon->history->files);
	say_lost(daemon);
}

void takt_gpu_history_update_page(struct takt_daemon *daemon)
{
	struct takt_history_state state;

	if (!daemon->history->files)
		return;
	takt_history_state(daemon->history->files, &state);
	takt_telemetry_gauge(daemon->telemetry, "takt_history_records_total",
			     "Steps of GPUs that were written to history.", true,
			     (double)state.written);
	takt_telemetry_gauge(daemon->telemetry, "takt_history_lost_total",
			     "Steps of GPUs that could not be written to history.", true,
			     (double)state.lost);
}

static void hung_up(void *ctx)
{
	((struct asker *)ctx)->pending = NULL;
}

static void send_view(struct takt_pending *pending, const struct takt_history_view *view)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_VIEW_MAX_BYTES);
	struct takt_err err;

	if (takt_history_view_to_json(view, &json) == 0) {
		takt_pending_json(pending, 200, takt_str_text(&json), json.len);
		return;
	}
	takt_err_set(&err, -ENOMEM, "no memory for the answer");
	takt_pending_error(pending, &err);
}

static int copy_points(const struct takt_history_answer *answer, struct takt_history_view *view)
{
	size_t n = answer->count < TAKT_HISTORY_VIEW_MAX ? answer->count : TAKT_HISTORY_VIEW_MAX;

	view->points = takt_calloc(n + 1, sizeof(*view->points));
	if (!view->points)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct takt_history_point *from = &answer->points[answer->count - n + i];

		view->points[i] = (struct takt_history_view_point){from->at_s * 1000, from->min,
								   from->mean, from->max};
	}
	view->point_count = (uint32_t)n;
	return 0;
}

/* `answer` NULL: takt ends, and the server has said so. */
static void take_answer(void *ctx, const struct takt_history_answer *answer)
{
	struct asker *asker = ctx;
	struct takt_history_state state;
	struct takt_err err;

	if (answer && asker->pending) {
		takt_history_state(asker->daemon->history->files, &state);
		asker->view.lost = state.lost;
		err = answer->err;
		if (answer->rc == 0 && copy_points(answer, &asker->view) < 0)
			takt_err_set(&err, -ENOMEM, "no memory for the answer");
		if (asker->view.points)
			send_view(asker->pending, &asker->view);
		else
			takt_pending_error(asker->pending, &err);
	}
	takt_history_view_fini(&asker->view);
	takt_free(asker);
}

static bool point_value(const struct takt_sample_point *point, uint32_t series, double *ret)
{
	struct takt_gpu_reading reading = {
		.has = point->has,
		.sm_mhz = point->sm_mhz,
		.power_mw = point->power_mw,
		.gpu_util_pct = point->gpu_util_pct,
		.temp_c = point->temp_c,
		.mem_used_bytes = point->mem_used_bytes,
	};

	return takt_history_series_value(series, &reading, ret);
}

static void add_raw(struct takt_daemon *daemon, uint32_t series,
		    const struct takt_sample_point *point, struct takt_mono now,
		    struct takt_history_view *view)
{
	int64_t at_ms = wall_of(daemon, point->at, now).ns / (int64_t)TAKT_NS_PER_MS;
	double value;

	if (at_ms >= view->from_ms && at_ms < view->until_ms && point_value(point, series, &value))
		view->points[view->point_count++] =
			(struct takt_history_view_point){at_ms, value, value, value};
}

/* Sample by sample, from memory. */
static int answer_raw(struct takt_daemon *daemon, uint32_t series, struct takt_history_view *view,
		      struct takt_pending *pending, struct takt_err *err)
{
	struct takt_mono now = takt_mono_now(daemon->sys);
	TAKT_CLEANUP(freep)
	struct takt_sample_point *points = takt_calloc(RAW_POINTS, sizeof(*points));
	size_t n = points ? takt_telemetry_history(daemon->telemetry, view->gpu, points, RAW_POINTS)
			  : 0;

	view->points = takt_calloc(n + 1, sizeof(*view->points));
	if (!points || !view->points)
		return takt_err_set(err, -ENOMEM, "no memory for the answer");
	while (n > 0)
		add_raw(daemon, series, &points[--n], now, view);
	send_view(pending, view);
	return 0;
}

static int answer_from_files(struct takt_daemon *daemon, const struct takt_history_view *view,
			     const struct takt_history_span *ask, struct takt_pending *pending,
			     struct takt_err *err)
{
	struct asker *asker = takt_zalloc(sizeof(*asker));
	int rc;

	if (!asker)
		return takt_err_set(err, -ENOMEM, "no memory for the answer");
	*asker = (struct asker){.daemon = daemon, .pending = pending, .view = *view};
	rc = takt_history_ask(daemon->history->files, ask, take_answer, asker, err);
	if (rc < 0) {
		takt_free(asker);
		return rc;
	}
	takt_pending_set_cancel(pending, hung_up, asker);
	return 0;
}

static int no_such_metric(const char *name, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str all = TAKT_STR(512);
	const struct takt_history_series *series;

	for (uint32_t i = 0; (series = takt_history_series_at(i)); i++)
		takt_str_addf(&all, "%s%s", i ? ", " : "", series->name);
	return takt_err_set(err, -TAKT_E_USAGE, "metric must be one of %s, not '%.40s'",
			    takt_str_text(&all), name);
}

/* -1 = raw; else a level; -TAKT_E_USAGE. */
static int level_of(const char *step, const struct takt_history_view *view, int64_t now_ms,
		    struct takt_err *err)
{
	static const char *const names[TAKT_HISTORY_LEVELS] = {"10s", "1m", "1h"};

	if (!step)
		return (int)takt_history_level_for(takt_history_levels, view->from_ms / 1000,
						   view->until_ms / 1000, now_ms / 1000,
						   AUTO_POINTS);
	if (strcmp(step, "raw") == 0)
		return -1;
	for (int level = 0; level < TAKT_HISTORY_LEVELS; level++)
		if (strcmp(step, names[level]) == 0)
			return level;
	return takt_err_set(err, -TAKT_E_USAGE, "step must be raw, 10s, 1m or 1h, not '%.40s'",
			    step);
}

static int fill_head(const struct takt_daemon *daemon, const struct takt_gpu_history_ask *ask,
		     uint32_t series, int64_t now_ms, struct takt_history_view *view,
		     struct takt_err *err)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, ask->gpu);

	view->simulated = takt_machine_info(daemon->machine)->simulated;
	view->gpu = ask->gpu;
	if (facts->has & TAKT_FACT_UUID)
		takt_strcpy(view->uuid, sizeof(view->uuid), facts->uuid);
	takt_strcpy(view->metric, sizeof(view->metric), takt_history_series_at(series)->name);
	takt_strcpy(view->unit, sizeof(view->unit), takt_history_series_at(series)->unit);
	view->until_ms = ask->until_ms && ask->until_ms < now_ms ? ask->until_ms : now_ms;
	view->from_ms = ask->since_ms ? ask->since_ms : view->until_ms - hour_ms;
	if (view->from_ms >= view->until_ms)
		return takt_err_set(err, -TAKT_E_USAGE, "'since_ms' must be before 'until_ms'");
	return 0;
}

/* What struct takt_sample_point has. */
static bool is_raw(uint32_t series)
{
	static const char *const names[] = {"power", "sm_clock", "temperature", "utilization",
					    "memory"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++)
		if (strcmp(takt_history_series_at(series)->name, names[i]) == 0)
			return true;
	return false;
}

int takt_api_history(void *ctx, const struct takt_gpu_history_ask *ask,
		     struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	int64_t now_ms = takt_wall_now(daemon->sys).ns / (int64_t)TAKT_NS_PER_MS;
	const char *metric = ask->metric ? ask->metric : "power";
	uint32_t series = takt_history_series_find(metric);
	struct takt_history_view view = {.points = NULL};
	struct takt_history_span what;
	int rc, level;

	if (ask->gpu >= daemon->gpu_count)
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no GPU %u; there are %u",
				    ask->gpu, daemon->gpu_count);
	if (series == TAKT_HISTORY_SERIES)
		return no_such_metric(metric, err);
	rc = fill_head(daemon, ask, series, now_ms, &view, err);
	level = rc < 0 ? rc : level_of(ask->step, &view, now_ms, err);
	if (level < -1)
		return level;
	if (level == -1 && !is_raw(series))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "raw samples are kept of %s; take step 10s for '%s'",
				    raw_metrics, metric);
	if (level == -1) {
		rc = answer_raw(daemon, series, &view, pending, err);
		takt_history_view_fini(&view);
		return rc;
	}
	if (!daemon->history->files)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "%s", daemon->history->why_none);
	view.step_ms = takt_history_levels[level].step_s * 1000ull;
	what = (struct takt_history_span){
		.gpu = ask->gpu,
		.series = series,
		.level = (uint32_t)level,
		.from_s = view.from_ms / 1000,
		.until_s = view.until_ms / 1000,
	};
	return answer_from_files(daemon, &view, &what, pending, err);
}
