/* SPDX-License-Identifier: Apache-2.0 */
/* assured, epoch by epoch, on boards made up here. What it reaches on measured tables is in
 * tests/sim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "clock/governor.h"

enum {
	CLOCKS = 40,
	TOP = 1400,
	STEP = 15
};

struct fixture {
	uint32_t mhz[CLOCKS];
	struct takt_governor_setup setup;
	struct takt_governor_observation seen;
	struct takt_governor_wish wish;
	void *state;
	double lost, worked; /* epochs: slower than the top by so many, of so many */
};

static const struct takt_governor *assured(void)
{
	return takt_governor_find("assured");
}

/* On a board of `count` clocks, `step` MHz apart. */
static void begin_on(struct fixture *f, uint32_t count, uint32_t step,
		     uint32_t max_slowdown_permille)
{
	memset(f, 0, sizeof(*f));
	for (uint32_t i = 0; i < count; i++)
		f->mhz[i] = TOP - step * (count - 1 - i);
	f->setup.board = (struct takt_governor_board){
		.can = TAKT_ACTUATE_CLOCKS, .sm_mhz = f->mhz, .sm_count = count};
	f->setup.job.has_promise = true;
	f->setup.job.max_slowdown_permille = max_slowdown_permille;
	f->state = calloc(1, assured()->state_bytes);
	assert_non_null(f->state);
	assert_int_equal(takt_governor_init(assured(), f->state, &f->setup, NULL), 0);
	takt_governor_step(assured(), f->state, &f->setup, &f->seen, &f->wish);
}

static void begin(struct fixture *f, uint32_t max_slowdown_permille)
{
	begin_on(f, CLOCKS, STEP, max_slowdown_permille);
}

/* One epoch of a job that takes `time`, relative to the top, and seems to take `off` times that; a
 * percent more or less in turn. */
static void epoch_of(struct fixture *f, double time, double off)
{
	double x = (double)TOP / f->wish.cap.max_mhz - 1;

	f->seen.now_ns += 2000000000;
	f->seen.epoch_ns = 2000000000;
	f->seen.has |= TAKT_OBSERVED_WORK | TAKT_OBSERVED_POWER;
	f->seen.cap = f->wish.cap;
	f->seen.work = (f->seen.now_ns / 2000000000 % 2 ? 0.99 : 1.01) / time / off;
	f->seen.signal = TAKT_SIGNAL_JOB;
	f->seen.power_mw = (uint32_t)(300000 / (1 + x) / (1 + x));
	f->worked += 1 / time;
	f->lost += 1 - 1 / time;
	takt_governor_step(assured(), f->state, &f->setup, &f->seen, &f->wish);
}

/* Of a job of which the clock slows the part `a`. */
static void epoch(struct fixture *f, double a)
{
	epoch_of(f, 1 + a * ((double)TOP / f->wish.cap.max_mhz - 1), 1);
}

static void end(struct fixture *f)
{
	free(f->state);
}

static void without_a_promise_nothing_is_asked_for(void **state)
{
	struct fixture f;

	begin(&f, 50);
	f.setup.job.has_promise = false;
	epoch(&f, 0.5);
	assert_int_equal(f.wish.cap.sets, 0);
	assert_int_equal(f.wish.reason, TAKT_REASON_NO_PROMISE);
	end(&f);
}

static void without_a_signal_it_stays_at_the_top(void **state)
{
	struct fixture f;

	begin(&f, 50);
	for (int i = 0; i < 50; i++) {
		f.seen.epoch_ns = 2000000000;
		takt_governor_step(assured(), f.state, &f.setup, &f.seen, &f.wish);
		assert_int_equal(f.wish.cap.max_mhz, TOP);
		assert_int_equal(f.wish.reason, TAKT_REASON_NO_SIGNAL);
	}
	end(&f);
}

static void others_clocks_and_idle_boards_are_left_alone(void **state)
{
	struct fixture f;

	begin(&f, 50);
	f.seen.foreign = true;
	epoch(&f, 0.5);
	assert_int_equal(f.wish.cap.sets, 0);
	assert_int_equal(f.wish.reason, TAKT_REASON_FOREIGN);
	f.seen.foreign = false;
	f.seen.idle = true;
	f.wish.cap.max_mhz = TOP;
	epoch(&f, 0.5);
	assert_int_equal(f.wish.cap.sets, 0);
	assert_int_equal(f.wish.reason, TAKT_REASON_IDLE);
	end(&f);
}

/* At every moment, whatever the job is: nobody knows when it ends. */
static void a_job_is_never_behind_its_promise(void **state)
{
	for (double a = 0; a < 1.01; a += 0.1) {
		struct fixture f;

		begin(&f, 50);
		for (int i = 0; i < 300; i++) {
			epoch(&f, a);
			assert_true(f.lost <= 0.05 * f.worked + 1e-9);
		}
		end(&f);
	}
}

static void what_memory_limits_goes_far_down_and_what_the_clock_limits_does_not(void **state)
{
	struct fixture f;

	begin(&f, 50);
	for (int i = 0; i < 200; i++)
		epoch(&f, 0);
	assert_true(f.wish.cap.max_mhz < 1000 || f.wish.probe);
	end(&f);
	begin(&f, 50);
	for (int i = 0; i < 200; i++)
		epoch(&f, 1);
	assert_true(f.wish.cap.max_mhz >= 1333); /* 5 % slower */
	assert_true(f.wish.cap.max_mhz < TOP || f.wish.probe);
	end(&f);
}

static void a_short_job_stays_at_the_top(void **state)
{
	struct fixture f;

	begin(&f, 50);
	f.seen.has |= TAKT_OBSERVED_REMAINING;
	f.seen.remaining_ns = 10 * (uint64_t)2000000000;
	for (int i = 0; i < 20; i++) {
		epoch(&f, 0);
		assert_int_equal(f.wish.cap.max_mhz, TOP);
	}
	assert_int_equal(f.wish.reason, TAKT_REASON_SHORT_JOB);
	end(&f);
}

/* Even where all epochs may be held to learn: one far down is likely beyond the promise, and early
 * in a job there is none to spare. */
static void a_look_far_down_waits_for_the_budget(void **state)
{
	static const struct takt_governor_param always = {"probe_permille", 1000};

	for (double a = 0.1; a < 1.01; a += 0.1) {
		struct fixture f;

		begin(&f, 50);
		f.setup.params = &always;
		f.setup.param_count = 1;
		for (int i = 0; i < 60; i++) {
			if (i >= 8)
				assert_false(f.wish.probe && f.wish.cap.max_mhz < TOP);
			epoch(&f, a);
		}
		end(&f);
	}
}

/* By bad luck the first six epochs at the top are slow: all others look better than they are, and
 * just so that a shape which is thought likely explains them. */
static void a_reference_by_bad_luck_does_not_break_the_promise(void **state)
{
	for (double a = 0.92; a < 0.97; a += 0.02) {
		struct fixture f;
		int refs = 0;

		begin_on(&f, 9, 85, 100);
		for (int i = 0; i < 400; i++) {
			double x = (double)TOP / f.wish.cap.max_mhz - 1;
			bool unlucky = !(x > 0) && ++refs <= 6;

			epoch_of(&f, 1 + a * x * x / (x + 0.02), unlucky ? 1.02 : 1);
		}
		assert_true(f.lost <= 0.1 * f.worked + 1e-9);
		end(&f);
	}
}

/* Stored in the middle and brought back elsewhere, it goes on as if nothing had been. */
static void the_state_is_all_there_is(void **state)
{
	struct fixture f, g;
	void *moved;

	begin(&f, 50);
	for (int i = 0; i < 23; i++)
		epoch(&f, 0.4);
	g = f;
	moved = malloc(assured()->state_bytes);
	assert_non_null(moved);
	memcpy(moved, f.state, assured()->state_bytes);
	g.state = moved;
	g.setup.board.sm_mhz = g.mhz;
	for (int i = 0; i < 100; i++) {
		epoch(&f, 0.4);
		epoch(&g, 0.4);
		assert_memory_equal(&f.wish, &g.wish, sizeof(f.wish));
	}
	end(&f);
	end(&g);
}

static void another_phase_is_noticed(void **state)
{
	struct fixture f;
	uint32_t low;

	begin(&f, 50);
	for (int i = 0; i < 150; i++)
		epoch(&f, 0);
	while (f.wish.probe)
		epoch(&f, 0);
	low = f.wish.cap.max_mhz;
	for (int i = 0; i < 150; i++)
		epoch(&f, 1);
	assert_true(f.wish.cap.max_mhz > low);
	assert_true(f.wish.cap.max_mhz >= 1333);
	end(&f);
}

static void it_says_what_it_holds(void **state)
{
	struct fixture f;
	char text[240];

	begin(&f, 50);
	for (int i = 0; i < 60; i++)
		epoch(&f, 0.3);
	takt_governor_explain(assured(), f.state, &f.setup, &f.wish, text, sizeof(text));
	assert_non_null(strstr(text, "MHz"));
	assert_non_null(strstr(text, "of 5.0 % promised"));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_promise_nothing_is_asked_for),
		cmocka_unit_test(without_a_signal_it_stays_at_the_top),
		cmocka_unit_test(others_clocks_and_idle_boards_are_left_alone),
		cmocka_unit_test(a_job_is_never_behind_its_promise),
		cmocka_unit_test(
			what_memory_limits_goes_far_down_and_what_the_clock_limits_does_not),
		cmocka_unit_test(a_look_far_down_waits_for_the_budget),
		cmocka_unit_test(a_reference_by_bad_luck_does_not_break_the_promise),
		cmocka_unit_test(a_short_job_stays_at_the_top),
		cmocka_unit_test(the_state_is_all_there_is),
		cmocka_unit_test(another_phase_is_noticed),
		cmocka_unit_test(it_says_what_it_holds),
	};

	return cmocka_run_group_tests_name("assured", tests, NULL, NULL);
}
