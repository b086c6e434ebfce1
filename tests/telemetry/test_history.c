/* SPDX-License-Identifier: Apache-2.0 */
/*
 * History of GPUs in a world of its own: weeks of virtual time in files that do not grow, what is
 * absent stays absent, and whatever fails costs records that are counted and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "fake_sys.h"
#include "telemetry/history_file.h"

enum {
	GPUS = 2,
	MAX_POINTS = 64,
	START_S = 1700000000, /* a multiple of 10 */
};

/* Rings that are soon full. */
static const struct takt_history_level levels[TAKT_HISTORY_LEVELS] = {
	{10, 12}, {60, 10}, {3600, 4}};
static const char *const uuids[GPUS] = {"GPU-0", "GPU-1"};
static const char file_0[] = "/hist/GPU-0.hist";

struct world {
	struct fake_sys *fake;
	const struct takt_sys *sys;
	struct takt_history_config config;
	struct takt_history *history;
};

static void open_dir(struct world *world)
{
	world->config.dirfd = world->sys->openat(world->sys, AT_FDCWD, "/hist",
						 O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	assert_true(world->config.dirfd >= 0);
}

static void open_history(struct world *world)
{
	struct takt_err err = {0};

	if (takt_history_open(&world->config, &world->history, &err) < 0)
		fail_msg("%s", err.msg);
}

static int begin(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	world->fake = fake_sys_new();
	world->sys = fake_sys_table(world->fake);
	fake_sys_add_dir(world->fake, "/hist");
	world->config = (struct takt_history_config){
		.sys = world->sys,
		.gpu_count = GPUS,
		.uuids = uuids,
		.levels = levels,
	};
	open_dir(world);
	*state = world;
	return 0;
}

static int end(void **state)
{
	struct world *world = *state;

	takt_history_close(world->history);
	fake_sys_free(world->fake);
	free(world);
	return 0;
}

static void close_history(struct world *world)
{
	takt_history_close(world->history);
	world->history = NULL;
}

static struct takt_wall wall(int64_t s)
{
	return (struct takt_wall){s * (int64_t)TAKT_NS_PER_S};
}

/* A sample of a board that tells power alone. */
static void feed(struct world *world, uint32_t gpu, int64_t at_s, uint32_t watts)
{
	struct takt_gpu_reading reading = {.has = TAKT_HAS_POWER, .power_mw = watts * 1000};

	takt_history_feed(world->history, gpu, &reading, wall(at_s));
}

static uint64_t handled(struct world *world)
{
	struct takt_history_state state;

	takt_history_state(world->history, &state);
	return state.written + state.lost;
}

/* Until so many records were written or lost. */
static void settle(struct world *world, uint64_t n)
{
	for (int i = 0; handled(world) < n; i++) {
		assert_true(i < 60000);
		usleep(1000);
	}
}

struct got {
	bool came, dropped;
	int rc;
	char why[TAKT_ERR_MSG];
	size_t count;
	struct takt_history_point points[MAX_POINTS];
};

static void take(void *ctx, const struct takt_history_answer *answer)
{
	struct got *got = ctx;

	got->came = true;
	got->dropped = !answer;
	if (!answer)
		return;
	got->rc = answer->rc;
	memcpy(got->why, answer->err.msg, sizeof(got->why));
	got->count = answer->count;
	assert_true(answer->count <= MAX_POINTS);
	if (answer->count)
		memcpy(got->points, answer->points, answer->count * sizeof(got->points[0]));
}

static struct got ask(struct world *world, uint32_t level, int64_t from_s, int64_t until_s)
{
	struct takt_history_span span = {.level = level, .from_s = from_s, .until_s = until_s};
	struct pollfd slot = {.fd = takt_history_fd(world->history), .events = POLLIN};
	struct got got = {.came = false};
	struct takt_err err = {0};

	assert_int_equal(takt_history_ask(world->history, &span, take, &got, &err), 0);
	while (!got.came) {
		assert_int_equal(poll(&slot, 1, 60000), 1);
		takt_history_pump(world->history);
	}
	return got;
}

static void check_point(const struct takt_history_point *point, int64_t at_s, double min,
			double mean, double max)
{
	assert_int_equal(point->at_s, at_s);
	assert_true(fabs(point->min - min) < 0.01);
	assert_true(fabs(point->mean - mean) < 0.01);
	assert_true(fabs(point->max - max) < 0.01);
}

static void samples_become_steps_of_every_level(void **state)
{
	struct world *world = *state;
	struct got got;

	open_history(world);
	for (int i = 0; i < 10; i++)
		feed(world, 0, START_S + i, 100 + (uint32_t)i);
	feed(world, 0, START_S + 10, 300);
	takt_history_tick(world->history, wall(START_S + 20));
	settle(world, 2);
	got = ask(world, 0, START_S, START_S + 60);
	assert_int_equal(got.count, 2);
	check_point(&got.points[0], START_S, 100, 104.5, 109);
	check_point(&got.points[1], START_S + 10, 300, 300, 300);
	got = ask(world, 1, START_S - START_S % 60, START_S + 60);
	assert_int_equal(got.count, 1);
	check_point(&got.points[0], START_S - START_S % 60, 100, 1345.0 / 11, 300);
	got = ask(world, 2, START_S - START_S % 3600, START_S + 60);
	assert_int_equal(got.count, 1);
	check_point(&got.points[0], START_S - START_S % 3600, 100, 1345.0 / 11, 300);
}

static void what_was_not_told_is_absent(void **state)
{
	struct takt_history_span span = {.from_s = START_S, .until_s = START_S + 60};
	struct takt_gpu_reading lost = {.has = TAKT_HAS_POWER, .power_mw = 5000, .lost = true};
	struct world *world = *state;
	struct got got;

	open_history(world);
	feed(world, 0, START_S, 100);
	takt_history_feed(world->history, 0, &lost, wall(START_S + 10));
	feed(world, 0, START_S + 30, 200);
	takt_history_tick(world->history, wall(START_S + 40));
	settle(world, 2);
	got = ask(world, 0, span.from_s, span.until_s);
	assert_int_equal(got.count, 2);
	assert_int_equal(got.points[1].at_s, START_S + 30);
	span.series = takt_history_series_find("temperature");
	assert_true(span.series < TAKT_HISTORY_SERIES);
	got = (struct got){.came = false};
	assert_int_equal(takt_history_ask(world->history, &span, take, &got, NULL), 0);
	while (!got.came)
		takt_history_pump(world->history);
	assert_int_equal(got.count, 0);
	assert_int_equal(ask(world, 0, START_S + 100, START_S + 200).count, 0);
}

static void a_series_is_named_once(void **state)
{
	const struct takt_history_series *series;

	for (uint32_t i = 0; (series = takt_history_series_at(i)); i++)
		assert_int_equal(takt_history_series_find(series->name), i);
	assert_int_equal(takt_history_series_find("powers"), TAKT_HISTORY_SERIES);
}

static void slowed_down_is_a_share_of_samples(void **state)
{
	struct takt_gpu_reading reading = {.has = TAKT_HAS_THROTTLE};
	uint32_t series = takt_history_series_find("throttled");
	double value = -1;

	reading.throttle = TAKT_THROTTLE_IDLE | TAKT_THROTTLE_APP_CLOCKS;
	assert_true(takt_history_series_value(series, &reading, &value));
	assert_true(value == 0);
	reading.throttle |= TAKT_THROTTLE_HW_THERMAL;
	assert_true(takt_history_series_value(series, &reading, &value));
	assert_true(value == 100);
}

static void a_start_goes_on_where_the_last_one_ended(void **state)
{
	struct world *world = *state;
	struct got got;

	open_history(world);
	feed(world, 0, START_S, 100);
	close_history(world);
	open_history(world);
	feed(world, 0, START_S + 5, 200);
	takt_history_tick(world->history, wall(START_S + 10));
	settle(world, 1);
	got = ask(world, 0, START_S, START_S + 60);
	assert_int_equal(got.count, 1);
	check_point(&got.points[0], START_S, 100, 150, 200);
}

/* Its last step was in memory; the rest is there. */
static void kill_9_costs_the_step_that_was_under_way(void **state)
{
	struct world *world = *state;
	struct got got;

	open_history(world);
	for (int i = 0; i < 3; i++)
		feed(world, 0, START_S + i * 10, 100);
	settle(world, 2);
	fake_sys_process_death(world->fake);
	close_history(world);
	open_dir(world);
	open_history(world);
	got = ask(world, 0, START_S, START_S + 60);
	assert_int_equal(got.count, 2);
	assert_int_equal(got.points[1].at_s, START_S + 10);
}

static void a_clock_that_jumps_back_adds_to_what_was(void **state)
{
	struct world *world = *state;
	struct got got;

	open_history(world);
	feed(world, 0, START_S, 100);
	feed(world, 0, START_S + 10, 100);
	feed(world, 0, START_S, 300);
	feed(world, 0, START_S + 20, 1);
	settle(world, 3);
	got = ask(world, 0, START_S, START_S + 20);
	assert_int_equal(got.count, 2);
	check_point(&got.points[0], START_S, 100, 200, 300);
	feed(world, 0, 0, 5);
	takt_history_tick(world->history, wall(5));
	assert_int_equal(ask(world, 0, 0, 100).count, 0);
}

static void the_newest_take_the_place_of_the_oldest(void **state)
{
	struct world *world = *state;
	size_t size;
	struct got got;

	open_history(world);
	for (uint32_t i = 0; i < 100; i++) {
		feed(world, 0, START_S + (int64_t)i * 10, i);
		settle(world, i);
	}
	got = ask(world, 0, 0, START_S + 10000);
	assert_int_equal(got.count, 0); /* the last 12 steps before the end that was asked for */
	got = ask(world, 0, 0, START_S + 990);
	assert_int_equal(got.count, 12);
	assert_int_equal(got.points[11].at_s, START_S + 980);
	assert_int_equal(got.points[0].at_s, START_S + 870);
	fake_sys_read_file(world->fake, file_0, &size);
	assert_int_equal(size, takt_history_file_size(levels));
}

static uint64_t little_room(void *ctx)
{
	return takt_history_file_size(levels) * 16 - 1;
}

static uint64_t enough_room(void *ctx)
{
	return takt_history_file_size(levels) * 16;
}

static void a_file_is_not_made_where_it_would_be_felt(void **state)
{
	struct takt_history_state now;
	struct world *world = *state;
	struct got got;

	world->config.free_bytes = little_room;
	open_history(world);
	feed(world, 0, START_S, 100);
	takt_history_tick(world->history, wall(START_S + 10));
	settle(world, 1);
	takt_history_state(world->history, &now);
	assert_int_equal(now.lost, 1);
	assert_int_equal(now.last.rc, -ENOSPC);
	assert_false(fake_sys_exists(world->fake, file_0));
	got = ask(world, 0, START_S, START_S + 10);
	assert_int_equal(got.rc, -ENOSPC);
	close_history(world);
	world->config.free_bytes = enough_room;
	open_history(world);
	feed(world, 0, START_S, 100);
	takt_history_tick(world->history, wall(START_S + 10));
	settle(world, 1);
	assert_int_equal(ask(world, 0, START_S, START_S + 10).count, 1);
}

static uint64_t no_room(void *ctx)
{
	++*(unsigned *)ctx;
	return 0;
}

static void hours_of_a_full_disk_are_few_tries(void **state)
{
	struct world *world = *state;
	static unsigned tries; /* outlives a failure, as the writer does */
	uint32_t at = 1;

	world->config.free_bytes = no_room;
	world->config.ctx = &tries;
	open_history(world);
	feed(world, 0, START_S, 100);
	for (; at <= 6 * 360; at++) { /* a record each ten seconds */
		feed(world, 0, START_S + (int64_t)at * 10, 100);
		settle(world, at);
		fake_sys_advance(world->fake, 10 * TAKT_NS_PER_S);
		if (at == 6)
			assert_in_range(tries, 3, 5);
	}
	assert_in_range(tries, 6 * 50, 6 * 60 + 5);
	close_history(world);
}

/* No room for the file; a minute after there is some, history begins. */
static void a_full_disk_loses_records_and_says_so(void **state)
{
	struct takt_history_state now;
	struct world *world = *state;

	fake_sys_set_space(world->fake, 1000);
	open_history(world);
	for (int i = 0; i < 4; i++)
		feed(world, 0, START_S + i * 10, 100);
	settle(world, 3);
	takt_history_state(world->history, &now);
	assert_int_equal(now.lost, 3);
	assert_int_equal(now.written, 0);
	assert_non_null(strstr(now.last.msg, "GPU-0.hist"));
	assert_false(fake_sys_exists(world->fake, file_0));
	fake_sys_set_space(world->fake, 1 << 20);
	fake_sys_advance(world->fake, 61 * TAKT_NS_PER_S);
	feed(world, 0, START_S + 40, 100);
	feed(world, 0, START_S + 50, 100);
	settle(world, 5);
	takt_history_state(world->history, &now);
	assert_int_equal(now.lost, 3);
	assert_int_equal(ask(world, 0, START_S, START_S + 60).count, 2);
	/* Its blocks are its own: a disk that fills up later does not end it. */
	fake_sys_set_space(world->fake, takt_history_file_size(levels));
	feed(world, 0, START_S + 60, 100);
	settle(world, 6);
	takt_history_state(world->history, &now);
	assert_int_equal(now.lost, 3);
}

static void what_is_not_ours_is_moved_aside(void **state)
{
	struct world *world = *state;
	size_t len;

	fake_sys_add_file(world->fake, file_0,
			  "a letter to my aunt, long enough to have a header "
			  "but not the one that is looked for here",
			  88);
	open_history(world);
	feed(world, 0, START_S, 100);
	takt_history_tick(world->history, wall(START_S + 10));
	settle(world, 1);
	assert_int_equal(ask(world, 0, START_S, START_S + 10).count, 1);
	assert_memory_equal(fake_sys_read_file(world->fake, "/hist/GPU-0.hist.old", &len),
			    "a letter", 8);
}

/* A file in which any byte has changed gives no value that was not written. */
static void damage_is_absence(void **state)
{
	struct world *world = *state;
	uint64_t size = takt_history_file_size(levels);
	char *bytes = malloc(size);
	const char *now;
	size_t len;

	open_history(world);
	feed(world, 0, START_S, 100);
	close_history(world);
	now = fake_sys_read_file(world->fake, file_0, &len);
	assert_int_equal(len, size);
	for (size_t at = 4096; at < size; at += 7) {
		struct got got;

		memcpy(bytes, now, size);
		bytes[at] ^= 0x40;
		fake_sys_add_file(world->fake, file_0, bytes, size);
		open_history(world);
		got = ask(world, 0, START_S - 100, START_S + 10);
		assert_true(got.rc == 0 && got.count <= 1);
		if (got.count == 1)
			check_point(&got.points[0], START_S, 100, 100, 100);
		close_history(world);
		bytes[at] ^= 0x40;
		fake_sys_add_file(world->fake, file_0, bytes, size);
		now = fake_sys_read_file(world->fake, file_0, &len);
	}
	free(bytes);
}

/* Three steps of 100, 200, 300 W on two GPUs; returns whether history came up. */
static bool short_life(struct world *world)
{
	struct takt_err err = {0};

	if (takt_history_open(&world->config, &world->history, &err) < 0)
		return false;
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t g = 0; g < GPUS; g++)
			feed(world, g, START_S + (int64_t)i * 10, 100 + i * 100);
	takt_history_tick(world->history, wall(START_S + 30));
	settle(world, 3 * GPUS);
	close_history(world);
	return true;
}

/* What is there is what was written, a part of it perhaps. */
static size_t judge(struct world *world)
{
	struct got got;

	open_history(world);
	got = ask(world, 0, START_S, START_S + 60);
	for (size_t i = 0; i < got.count; i++) {
		double watts = 100 + 10.0 * (double)(got.points[i].at_s - START_S);

		check_point(&got.points[i], got.points[i].at_s, watts, watts, watts);
	}
	close_history(world);
	return got.count;
}

static void reset_world(struct world *world)
{
	fake_sys_free(world->fake);
	world->fake = fake_sys_new();
	world->sys = world->config.sys = fake_sys_table(world->fake);
	fake_sys_add_dir(world->fake, "/hist");
	open_dir(world);
}

static unsigned long calls_of_a_short_life(struct world *world)
{
	unsigned long calls;

	assert_true(short_life(world));
	calls = fake_sys_calls(world->fake, FAKE_SYS_ANY);
	assert_int_equal(judge(world), 3);
	reset_world(world);
	return calls;
}

static void any_call_may_fail(void **state)
{
	static const int errors[] = {EIO, ENOSPC, EMFILE};
	struct world *world = *state;
	unsigned long calls = calls_of_a_short_life(world);

	for (unsigned long nth = 1; nth <= calls; nth++)
		for (size_t e = 0; e < TAKT_ARRAY_LEN(errors); e++) {
			fake_sys_fail_nth(world->fake, FAKE_SYS_ANY, nth, errors[e], e == 0);
			assert_true(short_life(world));
			fake_sys_fail_nth(world->fake, FAKE_SYS_ANY, 0, 0, false);
			judge(world);
			assert_int_equal(fake_sys_open_count(world->fake), 1);
			reset_world(world);
		}
}

static void short_reads_and_writes_are_whole_ones(void **state)
{
	struct world *world = *state;

	fake_sys_short_io(world->fake, 5);
	assert_true(short_life(world));
	assert_int_equal(judge(world), 3);
}

static void power_may_go_at_any_call(void **state)
{
	struct world *world = *state;
	unsigned long calls = calls_of_a_short_life(world);

	for (unsigned long nth = 1; nth <= calls; nth++)
		for (uint64_t seed = 1; seed <= 3; seed++) {
			fake_sys_cut_power_at(world->fake, nth);
			(void)short_life(world);
			fake_sys_power_loss(world->fake, seed);
			open_dir(world);
			judge(world);
			reset_world(world);
		}
}

static void any_allocation_may_fail(void **state)
{
	struct world *world = *state;
	bool came_up = false;

	for (unsigned long nth = 1; !came_up; nth++) {
		struct takt_history_span span = {.from_s = START_S, .until_s = START_S + 60};
		unsigned long before = takt_alloc_count();
		struct got got = {.came = false};

		takt_alloc_fail_nth(nth, false);
		if (short_life(world) &&
		    takt_history_open(&world->config, &world->history, NULL) == 0) {
			if (takt_history_ask(world->history, &span, take, &got, NULL) == 0)
				while (!got.came)
					takt_history_pump(world->history);
			close_history(world);
			came_up = takt_alloc_count() - before < nth;
		}
		takt_alloc_fail_nth(0, false);
		judge(world);
		assert_true(nth < 200);
	}
}

static void nobody_waits_for_ever(void **state)
{
	struct takt_history_span span = {.from_s = START_S, .until_s = START_S + 60};
	struct got got[TAKT_HISTORY_MAX_ASKS + 1];
	struct world *world = *state;
	struct takt_err err;

	memset(got, 0, sizeof(got));
	open_history(world);
	for (size_t i = 0; i < TAKT_HISTORY_MAX_ASKS; i++)
		assert_int_equal(takt_history_ask(world->history, &span, take, &got[i], &err), 0);
	assert_int_equal(
		takt_history_ask(world->history, &span, take, &got[TAKT_HISTORY_MAX_ASKS], &err),
		-TAKT_E_LIMIT);
	close_history(world);
	for (size_t i = 0; i < TAKT_HISTORY_MAX_ASKS; i++)
		assert_true(got[i].came && got[i].dropped);
	assert_false(got[TAKT_HISTORY_MAX_ASKS].came);
}

static void the_finest_that_fits_is_taken(void **state)
{
	const struct takt_history_level *own = takt_history_levels;
	int64_t now = START_S, hour = 3600, day = 24 * hour;

	assert_int_equal(takt_history_level_for(own, now - hour, now, now, 1500), 0);
	assert_int_equal(takt_history_level_for(own, now - 12 * hour, now, now, 1500), 1);
	assert_int_equal(takt_history_level_for(own, now - 5 * day, now, now, 1500), 2);
	assert_int_equal(
		takt_history_level_for(own, now - 2 * day, now - 2 * day + hour, now, 1500), 1);
	assert_int_equal(
		takt_history_level_for(own, now - 20 * day, now - 20 * day + hour, now, 1500), 2);
}

static void no_name_leads_elsewhere(void **state)
{
	char name[TAKT_HISTORY_NAME], long_name[200];

	assert_true(takt_history_file_name("GPU-1b2c", name));
	assert_string_equal(name, "GPU-1b2c.hist");
	assert_false(takt_history_file_name("../GPU", name));
	assert_false(takt_history_file_name("", name));
	assert_false(takt_history_file_name(NULL, name));
	memset(long_name, 'a', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	assert_false(takt_history_file_name(long_name, name));
}

struct tally {
	size_t count;
	int64_t first, last;
	bool wrong;
};

static int tally(void *ctx, const struct takt_history_point *point)
{
	struct tally *of = ctx;

	of->first = of->count++ ? of->first : point->at_s;
	of->last = point->at_s;
	of->wrong |= point->min < 100 || point->max > 199 || point->mean < point->min ||
		     point->mean > point->max;
	return 0;
}

/* Three weeks at the real sizes on a real disk: the file does not grow, and each level holds what
 * it is there for. */
static void weeks_fit_in_a_file_of_fixed_size(void **state)
{
	const struct takt_sys *sys = takt_sys_real();
	const struct takt_history_level *own = takt_history_levels;
	const int64_t end_s = START_S + 21ll * 24 * 3600;
	char folder[] = "/tmp/takt-history-XXXXXX";
	struct takt_history_config config = {.sys = sys, .levels = own};
	struct takt_history_record record = {0};
	static const size_t expected[] = {8640, 20160, 505};
	struct stat st;
	int fd = -1;

	assert_non_null(mkdtemp(folder));
	config.dirfd = open(folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(takt_history_file_open(&config, "a.hist", &fd, NULL), 0);
	for (int64_t at = START_S; at < end_s; at += 10) {
		float watts = 100 + (float)(at / 10 % 100);

		record.step = at / 10;
		record.values[0] = (struct takt_history_value){watts, watts, watts, 100};
		assert_int_equal(takt_history_file_add(sys, fd, own, &record), 0);
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, takt_history_file_size(own));
	assert_true(st.st_size < 11 << 20);
	for (uint32_t level = 0; level < TAKT_HISTORY_LEVELS; level++) {
		struct takt_history_span span = {.level = level, .until_s = end_s};
		struct tally all = {.count = 0};

		assert_int_equal(takt_history_file_read(sys, fd, own, &span, tally, &all), 0);
		assert_int_equal(all.count, expected[level]);
		assert_false(all.wrong);
		assert_true(end_s - all.last <= own[level].step_s);
	}
	close(fd);
	unlinkat(config.dirfd, "a.hist", 0);
	close(config.dirfd);
	rmdir(folder);
}

#define IN_WORLD(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(samples_become_steps_of_every_level),
		IN_WORLD(what_was_not_told_is_absent),
		cmocka_unit_test(a_series_is_named_once),
		cmocka_unit_test(slowed_down_is_a_share_of_samples),
		IN_WORLD(a_start_goes_on_where_the_last_one_ended),
		IN_WORLD(kill_9_costs_the_step_that_was_under_way),
		IN_WORLD(a_clock_that_jumps_back_adds_to_what_was),
		IN_WORLD(the_newest_take_the_place_of_the_oldest),
		IN_WORLD(a_file_is_not_made_where_it_would_be_felt),
		IN_WORLD(a_full_disk_loses_records_and_says_so),
		IN_WORLD(hours_of_a_full_disk_are_few_tries),
		IN_WORLD(what_is_not_ours_is_moved_aside),
		IN_WORLD(damage_is_absence),
		IN_WORLD(any_call_may_fail),
		IN_WORLD(short_reads_and_writes_are_whole_ones),
		IN_WORLD(power_may_go_at_any_call),
		IN_WORLD(any_allocation_may_fail),
		IN_WORLD(nobody_waits_for_ever),
		cmocka_unit_test(the_finest_that_fits_is_taken),
		cmocka_unit_test(no_name_leads_elsewhere),
		cmocka_unit_test(weeks_fit_in_a_file_of_fixed_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
