/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object behind history.h. Two threads: the caller's adds samples up, step by step, and takes
 * answers; the writer has the files. Between them, under one lock, are records to be written, asks
 * and answers. A writer that hangs in a disk costs the records that come meanwhile beyond a bound,
 * and nothing else.
 */
#include "telemetry/history.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pace.h"
#include "base/vec.h"
#include "telemetry/history_file.h"

enum {
	POSTS_A_GPU = 6, /* that may wait for the disk */
};

/* To a file that could not be opened. */
static const struct takt_pace opens = {5 * TAKT_NS_PER_S, 60 * TAKT_NS_PER_S};

const struct takt_history_level takt_history_levels[TAKT_HISTORY_LEVELS] = {
	{10, 8640},
	{60, 14 * 1440},
	{3600, 366 * 24},
};

struct sum {
	double min, max, total;
	uint32_t count;
};

struct gpu {
	char name[TAKT_HISTORY_NAME]; /* of its file; "" = nothing is kept of it */
	int64_t step;		      /* that is being added up */
	bool begun;
	struct sum sums[TAKT_HISTORY_SERIES];
	/* The writer's. */
	int fd; /* -1 = not open */
	uint64_t retry_at_ns;
	uint32_t failures; /* to open it, in a row */
	struct takt_err why_closed;
};

struct post {
	uint32_t gpu;
	struct takt_history_record record;
};
struct posts {
	TAKT_VEC(struct post) list;
};

struct ask {
	struct takt_history_span what;
	void (*take)(void *ctx, const struct takt_history_answer *answer);
	void *ctx;
	struct takt_history_answer answer;
	TAKT_VEC(struct takt_history_point) points;
};
struct asks {
	TAKT_VEC(struct ask *) list;
};

struct takt_history {
	struct takt_history_config config;
	struct takt_history_level levels[TAKT_HISTORY_LEVELS];
	struct gpu *gpus; /* owned */
	int64_t ticked;	  /* step of the last tick */
	int event_fd;
	pthread_t thread;
	bool thread_runs;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct posts posts; /* owned: to be written */
	struct asks asked, answered;
	size_t asks_open;
	struct takt_history_state state;
	bool stopping;

	struct posts taken; /* the writer's */
};

uint32_t takt_history_level_for(const struct takt_history_level *levels, int64_t from_s,
				int64_t until_s, int64_t now_s, uint32_t max_points)
{
	uint32_t level = 0;

	while (level + 1 < TAKT_HISTORY_LEVELS) {
		int64_t step = levels[level].step_s;

		if ((until_s - from_s) / step <= max_points &&
		    now_s - from_s <= step * levels[level].slots)
			return level;
		level++;
	}
	return level;
}

static void note_lost(struct takt_history *history, uint64_t n, const struct takt_err *why)
{
	pthread_mutex_lock(&history->lock);
	history->state.lost += n;
	history->state.last = *why;
	pthread_mutex_unlock(&history->lock);
}

/* The writer's descriptor of a GPU's file; what could not be opened is tried again later. */
static int ready_file(struct takt_history *history, struct gpu *gpu, struct takt_err *err)
{
	const struct takt_sys *sys = history->config.sys;
	uint64_t now_ns = sys->mono_ns(sys);
	int rc;

	if (gpu->fd >= 0)
		return 0;
	if (!gpu->name[0])
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "no history is kept of a GPU whose UUID is not known");
	if (now_ns < gpu->retry_at_ns) {
		*err = gpu->why_closed;
		return err->rc;
	}
	rc = takt_history_file_open(&history->config, gpu->name, &gpu->fd, err);
	if (rc < 0) {
		gpu->retry_at_ns = now_ns + takt_pace_ns(&opens, gpu->failures++);
		gpu->why_closed = *err;
		return rc;
	}
	gpu->failures = 0;
	return rc;
}

static void write_post(struct takt_history *history, const struct post *post)
{
	struct gpu *gpu = &history->gpus[post->gpu];
	struct takt_err err = {0};
	int rc = ready_file(history, gpu, &err);

	if (rc == 0) {
		rc = takt_history_file_add(history->config.sys, gpu->fd, history->levels,
					   &post->record);
		if (rc < 0)
			takt_err_set(&err, rc, "write history '%s'", gpu->name);
	}
	if (rc < 0) {
		note_lost(history, 1, &err);
		return;
	}
	pthread_mutex_lock(&history->lock);
	history->state.written++;
	pthread_mutex_unlock(&history->lock);
}

static int keep_point(void *ctx, const struct takt_history_point *point)
{
	struct ask *ask = ctx;

	return takt_vec_push(&ask->points, *point);
}

static void answer(struct takt_history *history, struct ask *ask)
{
	struct gpu *gpu = &history->gpus[ask->what.gpu];
	struct takt_err *err = &ask->answer.err;
	int rc = ready_file(history, gpu, err);

	if (rc == 0) {
		rc = takt_history_file_read(history->config.sys, gpu->fd, history->levels,
					    &ask->what, keep_point, ask);
		if (rc < 0)
			takt_err_set(err, rc, "read history '%s'", gpu->name);
	}
	ask->answer.rc = rc;
	ask->answer.points = ask->points.at;
	ask->answer.count = rc < 0 ? 0 : ask->points.len;
}

/* Waits for work and takes all of it: records, and one ask. False: stopping, nothing is left. */
static bool take_work(struct takt_history *history, struct ask **ret_ask)
{
	struct posts empty;
	bool any;

	*ret_ask = NULL;
	pthread_mutex_lock(&history->lock);
	while (!history->stopping && history->posts.list.len == 0 && history->asked.list.len == 0)
		pthread_cond_wait(&history->wake, &history->lock);
	empty = history->taken;
	history->taken = history->posts;
	history->posts = empty;
	if (history->asked.list.len > 0 && !history->stopping) {
		*ret_ask = history->asked.list.at[0];
		takt_vec_remove(&history->asked.list, 0);
	}
	any = history->taken.list.len > 0 || *ret_ask || !history->stopping;
	pthread_mutex_unlock(&history->lock);
	return any;
}

static void wake_caller(int event_fd)
{
	uint64_t one = 1;

	if (write(event_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

static void *writer_main(void *ctx)
{
	struct takt_history *history = ctx;
	struct ask *ask;

	while (take_work(history, &ask)) {
		TAKT_VEC_EACH (post, &history->taken.list)
			write_post(history, post);
		takt_vec_clear(&history->taken.list);
		if (!ask)
			continue;
		answer(history, ask);
		pthread_mutex_lock(&history->lock);
		/* There is room: no more are open than it has. */
		(void)takt_vec_push(&history->answered.list, ask);
		pthread_mutex_unlock(&history->lock);
		wake_caller(history->event_fd);
	}
	return NULL;
}

static int reserve(struct takt_history *history)
{
	size_t posts = (size_t)history->config.gpu_count * POSTS_A_GPU + 1;
	int rc = 0;

	history->posts.list.max = history->taken.list.max = posts;
	history->asked.list.max = history->answered.list.max = TAKT_HISTORY_MAX_ASKS;
	if (takt_vec_reserve(&history->posts.list, posts) < 0 ||
	    takt_vec_reserve(&history->taken.list, posts) < 0 ||
	    takt_vec_reserve(&history->asked.list, TAKT_HISTORY_MAX_ASKS) < 0 ||
	    takt_vec_reserve(&history->answered.list, TAKT_HISTORY_MAX_ASKS) < 0)
		rc = -ENOMEM;
	return rc;
}

static int prepare(struct takt_history *history, struct takt_err *err)
{
	const struct takt_history_config *config = &history->config;

	history->gpus = takt_calloc(config->gpu_count + 1, sizeof(history->gpus[0]));
	for (uint32_t g = 0; history->gpus && g < config->gpu_count; g++) {
		history->gpus[g].fd = -1;
		if (!takt_history_file_name(config->uuids[g], history->gpus[g].name))
			history->gpus[g].name[0] = '\0';
	}
	if (!history->gpus || reserve(history) < 0)
		return takt_err_set(err, -ENOMEM, "the history of GPUs");
	history->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (history->event_fd < 0)
		return takt_err_set(err, -errno, "eventfd");
	return 0;
}

static int start_writer(struct takt_history *history, struct takt_err *err)
{
	int rc = pthread_create(&history->thread, NULL, writer_main, history);

	history->thread_runs = rc == 0;
	return rc ? takt_err_set(err, -rc, "a thread for the history of GPUs") : 0;
}

int takt_history_open(const struct takt_history_config *config, struct takt_history **ret,
		      struct takt_err *err)
{
	struct takt_history *history = takt_zalloc(sizeof(*history));
	int rc;

	if (!history)
		return takt_err_set(err, -ENOMEM, "the history of GPUs");
	history->config = *config;
	memcpy(history->levels, config->levels ? config->levels : takt_history_levels,
	       sizeof(history->levels));
	history->config.levels = history->levels;
	history->event_fd = -1;
	pthread_mutex_init(&history->lock, NULL);
	pthread_cond_init(&history->wake, NULL);
	rc = prepare(history, err);
	if (rc == 0)
		rc = start_writer(history, err);
	if (rc < 0) {
		takt_history_close(history);
		return rc;
	}
	*ret = history;
	return 0;
}

static struct takt_history_value value_of(const struct sum *sum)
{
	if (sum->count == 0)
		return (struct takt_history_value){.count = 0};
	return (struct takt_history_value){
		.min = (float)sum->min,
		.mean = (float)(sum->total / sum->count),
		.max = (float)sum->max,
		.count = sum->count,
	};
}

/* What has been added up goes to the writer. */
static void hand_in(struct takt_history *history, uint32_t gpu)
{
	struct gpu *of = &history->gpus[gpu];
	struct post post = {.gpu = gpu, .record = {.step = of->step}};
	struct takt_err full;
	int rc;

	if (!of->begun)
		return;
	for (uint32_t s = 0; s < TAKT_HISTORY_SERIES; s++)
		post.record.values[s] = value_of(&of->sums[s]);
	memset(of->sums, 0, sizeof(of->sums));
	of->begun = false;
	pthread_mutex_lock(&history->lock);
	rc = takt_vec_push(&history->posts.list, post);
	pthread_cond_signal(&history->wake);
	pthread_mutex_unlock(&history->lock);
	if (rc < 0) {
		takt_err_set(&full, -TAKT_E_LIMIT, "the disk is too slow for the history of GPUs");
		note_lost(history, 1, &full);
	}
}

static void drop_asks(struct asks *asks)
{
	TAKT_VEC_EACH (each, &asks->list) {
		struct ask *ask = *each;

		ask->take(ask->ctx, NULL);
		takt_vec_fini(&ask->points);
		takt_free(ask);
	}
	takt_vec_fini(&asks->list);
}

static void stop_writer(struct takt_history *history)
{
	for (uint32_t g = 0; g < history->config.gpu_count; g++)
		hand_in(history, g);
	pthread_mutex_lock(&history->lock);
	history->stopping = true;
	pthread_cond_signal(&history->wake);
	pthread_mutex_unlock(&history->lock);
	pthread_join(history->thread, NULL);
}

void takt_history_close(struct takt_history *history)
{
	const struct takt_sys *sys;

	if (!history)
		return;
	sys = history->config.sys;
	if (history->thread_runs)
		stop_writer(history);
	for (uint32_t g = 0; history->gpus && g < history->config.gpu_count; g++)
		if (history->gpus[g].fd >= 0)
			(void)sys->close(sys, history->gpus[g].fd);
	drop_asks(&history->asked);
	drop_asks(&history->answered);
	takt_vec_fini(&history->posts.list);
	takt_vec_fini(&history->taken.list);
	if (history->event_fd >= 0)
		close(history->event_fd);
	pthread_cond_destroy(&history->wake);
	pthread_mutex_destroy(&history->lock);
	takt_free(history->gpus);
	takt_free(history);
}

static int64_t step_of(const struct takt_history *history, struct takt_wall at)
{
	return at.ns / (int64_t)TAKT_NS_PER_S / history->levels[0].step_s;
}

static void add(struct sum *sum, double value)
{
	sum->min = sum->count == 0 || value < sum->min ? value : sum->min;
	sum->max = sum->count == 0 || value > sum->max ? value : sum->max;
	sum->total += value;
	sum->count++;
}

void takt_history_feed(struct takt_history *history, uint32_t gpu,
		       const struct takt_gpu_reading *reading, struct takt_wall at)
{
	struct gpu *of = gpu < history->config.gpu_count ? &history->gpus[gpu] : NULL;
	int64_t step = step_of(history, at);
	double value;

	if (!of || !of->name[0] || step <= 0)
		return;
	if (of->begun && step != of->step)
		hand_in(history, gpu);
	of->step = step;
	for (uint32_t s = 0; s < TAKT_HISTORY_SERIES; s++)
		if (takt_history_series_value(s, reading, &value)) {
			add(&of->sums[s], value);
			of->begun = true;
		}
}

void takt_history_tick(struct takt_history *history, struct takt_wall now)
{
	int64_t step = step_of(history, now);

	if (step == history->ticked)
		return;
	history->ticked = step;
	for (uint32_t g = 0; g < history->config.gpu_count; g++)
		if (history->gpus[g].step != step)
			hand_in(history, g);
}

static int hand_in_ask(struct takt_history *history, struct ask *ask)
{
	int rc = -TAKT_E_LIMIT;

	pthread_mutex_lock(&history->lock);
	if (history->asks_open < TAKT_HISTORY_MAX_ASKS) {
		rc = takt_vec_push(&history->asked.list, ask);
		history->asks_open++;
		pthread_cond_signal(&history->wake);
	}
	pthread_mutex_unlock(&history->lock);
	return rc;
}

int takt_history_ask(struct takt_history *history, const struct takt_history_span *what,
		     void (*take)(void *ctx, const struct takt_history_answer *answer), void *ctx,
		     struct takt_err *err)
{
	struct ask *ask;
	int rc;

	if (what->gpu >= history->config.gpu_count || what->series >= TAKT_HISTORY_SERIES ||
	    what->level >= TAKT_HISTORY_LEVELS)
		return takt_err_set(err, -TAKT_E_USAGE, "no such GPU, metric or level of history");
	ask = takt_zalloc(sizeof(*ask));
	if (!ask)
		return takt_err_set(err, -ENOMEM, "the answer");
	*ask = (struct ask){.what = *what, .take = take, .ctx = ctx};
	ask->points.max = history->levels[what->level].slots;
	rc = hand_in_ask(history, ask);
	if (rc == 0)
		return 0;
	takt_free(ask);
	return takt_err_set(err, rc, "history is read for %d others already; ask again",
			    TAKT_HISTORY_MAX_ASKS);
}

int takt_history_fd(const struct takt_history *history)
{
	return history->event_fd;
}

static struct ask *next_answer(struct takt_history *history)
{
	struct ask *ask = NULL;

	pthread_mutex_lock(&history->lock);
	if (history->answered.list.len > 0) {
		ask = history->answered.list.at[0];
		takt_vec_remove(&history->answered.list, 0);
		history->asks_open--;
	}
	pthread_mutex_unlock(&history->lock);
	return ask;
}

void takt_history_pump(struct takt_history *history)
{
	struct ask *ask;
	uint64_t count;

	if (read(history->event_fd, &count, sizeof(count)) < 0)
		return;
	while ((ask = next_answer(history))) {
		ask->take(ask->ctx, &ask->answer);
		takt_vec_fini(&ask->points);
		takt_free(ask);
	}
}

void takt_history_state(struct takt_history *history, struct takt_history_state *ret)
{
	pthread_mutex_lock(&history->lock);
	*ret = history->state;
	pthread_mutex_unlock(&history->lock);
}
