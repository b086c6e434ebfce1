/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock is set, forward and back: what lasts lasts as long as before, what was named by
 * the calendar keeps its place in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "queue_kit.h"

static const uint64_t second_ns = 1000000000, hour_ns = 3600 * 1000000000ull;

static struct kit kit;

static int setup(void **state)
{
	kit_open(&kit);
	kit.boot_ns = hour_ns;
	kit.wall_ahead_ns = 1000 * (int64_t)hour_ns;
	kit_settle(&kit);
	return 0;
}

static int teardown(void **state)
{
	kit_close(&kit);
	return 0;
}

static void jump(int64_t by_ns)
{
	kit.wall_ahead_ns += by_ns;
	kit_settle(&kit);
}

static int64_t wall_ns(void)
{
	return (int64_t)kit.boot_ns + kit.wall_ahead_ns;
}

static void run(uint64_t id)
{
	assert_true(kit_is_started(&kit, id));
	kit_started(&kit, id);
	kit_settle(&kit);
}

static uint64_t accept_limited(uint64_t limit_ms)
{
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	spec.time_limit_ms = limit_ms;
	id = kit_accept_spec(&kit, spec);
	run(id);
	return id;
}

static uint64_t accept_failing(void)
{
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	spec.retries = 1;
	spec.retry_backoff_ms = 10000;
	id = kit_accept_spec(&kit, spec);
	run(id);
	kit_end_cleanly(&kit, id, TAKT_END_EXITED, 1);
	kit_settle(&kit);
	return id;
}

static uint32_t attempts(uint64_t id)
{
	const struct takt_action *start = kit_action(&kit, TAKT_ACTION_START, id);

	return start ? start->attempt : 0;
}

/* Ten seconds, by whatever the clock is set. */
static void expect_retry_in_time(uint64_t id)
{
	kit_later(&kit, 9 * second_ns);
	assert_int_equal(attempts(id), 1);
	kit_later(&kit, 2 * second_ns);
	assert_int_equal(attempts(id), 2);
}

static void a_retry_waits_as_long_as_before(void **state)
{
	static const int64_t jumps_h[] = {24, -24, -900};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(jumps_h); i++) {
		uint64_t id = accept_failing();

		jump(jumps_h[i] * (int64_t)hour_ns);
		assert_int_equal(attempts(id), 1);
		expect_retry_in_time(id);
		kit_started(&kit, id);
		kit_end_cleanly(&kit, id, TAKT_END_EXITED, 0);
	}
}

static void a_retry_waits_as_long_also_over_a_restart(void **state)
{
	uint64_t id = accept_failing();

	jump(-24 * (int64_t)hour_ns);
	kit_restart(&kit);
	kit_later(&kit, 9 * second_ns);
	assert_int_equal(attempts(id), 0);
	kit_later(&kit, 2 * second_ns);
	assert_int_equal(attempts(id), 2);
}

static void a_time_limit_is_as_long_as_before(void **state)
{
	uint64_t id = accept_limited(60000);

	jump(24 * (int64_t)hour_ns);
	jump(-48 * (int64_t)hour_ns);
	kit_later(&kit, 58 * second_ns);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	kit_later(&kit, 3 * second_ns);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
}

/* The clock is set while takt runs, or while it is away. */
static void a_job_that_is_taken_over_has_the_rest_of_its_time(void **state)
{
	static const bool away[] = {false, true};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(away); i++) {
		uint64_t id = accept_limited(60000);

		kit_later(&kit, 30 * second_ns);
		if (!away[i])
			jump(24 * (int64_t)hour_ns);
		else
			kit.wall_ahead_ns += 24 * (int64_t)hour_ns;
		kit_restart(&kit);
		kit_adopted(&kit, id);
		kit_later(&kit, 28 * second_ns);
		assert_null(kit_action(&kit, TAKT_ACTION_STOP, id));
		kit_later(&kit, 4 * second_ns);
		assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
		kit_end_cleanly(&kit, id, TAKT_END_SIGNALED, 15);
		kit_settle(&kit);
	}
}

static uint64_t accept_for(int64_t begin_ns)
{
	struct takt_jobspec spec = kit_spec(1);

	spec.begin_ms = begin_ns / 1000000;
	return kit_accept_spec(&kit, spec);
}

static void an_instant_of_the_calendar_stays_where_it_is(void **state)
{
	uint64_t soon = accept_for(wall_ns() + 10 * (int64_t)second_ns);
	uint64_t late = accept_for(wall_ns() + 3 * (int64_t)hour_ns);

	jump(-(int64_t)hour_ns);
	kit_later(&kit, 11 * second_ns);
	assert_false(kit_is_started(&kit, soon));
	jump((int64_t)hour_ns);
	assert_true(kit_is_started(&kit, soon));
	assert_false(kit_is_started(&kit, late));
	jump(2 * (int64_t)hour_ns);
	assert_false(kit_is_started(&kit, late));
	jump((int64_t)hour_ns);
	assert_true(kit_is_started(&kit, late));
}

/* The shim wrote down when it began, then the clock was set, then takt read it. */
static void a_start_that_is_read_after_the_jump_has_just_been(void **state)
{
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	spec.time_limit_ms = 60000;
	id = kit_accept_spec(&kit, spec);
	jump(24 * (int64_t)hour_ns);
	kit.set_since_ns = 24 * (int64_t)hour_ns;
	run(id);
	kit.set_since_ns = 0;
	assert_true(takt_queue_find(kit.queue, id)->row.started.ns >
		    wall_ns() - (int64_t)second_ns);
	kit_later(&kit, 50 * second_ns);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, id));
}

static uint64_t accept_due(int64_t deadline_ns)
{
	struct takt_jobspec spec = kit_spec(KIT_GPUS);

	spec.deadline_ms = deadline_ns / 1000000;
	return kit_accept_spec(&kit, spec);
}

static void by_deadlines(void)
{
	const struct takt_queue_terms terms = {.settings = {.order = "edf"}, .max_jobs = 100};

	assert_int_equal(takt_queue_set_terms(kit.queue, &terms, NULL), 0);
}

/* Deadlines named before the jump and after it are instants of one calendar. */
static void deadlines_are_compared_by_the_calendar(void **state)
{
	int64_t at_ns = wall_ns();
	uint64_t first, late, soon;

	by_deadlines();
	first = kit_accept(&kit, KIT_GPUS, 0);
	run(first);
	late = accept_due(at_ns + 3 * (int64_t)hour_ns);
	jump(-24 * (int64_t)hour_ns);
	soon = accept_due(at_ns + 2 * (int64_t)hour_ns);
	kit_end_cleanly(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, soon));
	assert_false(kit_is_started(&kit, late));
}

/* The same of one that ran while the clock was set, and waits again. */
static void a_deadline_is_told_anew_when_its_job_waits_again(void **state)
{
	int64_t at_ns = wall_ns();
	struct takt_jobspec spec = kit_spec(KIT_GPUS);
	uint64_t late, soon;

	by_deadlines();
	spec.deadline_ms = (at_ns + 3 * (int64_t)hour_ns) / 1000000;
	spec.requeue = true;
	late = kit_accept_spec(&kit, spec);
	run(late);
	jump(-24 * (int64_t)hour_ns);
	soon = accept_due(at_ns + 2 * (int64_t)hour_ns);
	kit_end_cleanly(&kit, late, TAKT_END_LOST, 0);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, soon));
	assert_int_equal(attempts(late), 1);
}

static void keep_first_gpu(int64_t from_ns, int64_t until_ns)
{
	const struct takt_queue_window window = {.id = 1,
						 .gpu_mask = (1u << KIT_GPUS) - 1,
						 .from = {from_ns},
						 .until = {until_ns},
						 .owner = TAKT_QUEUE_NOBODY};

	takt_queue_release_gpus(kit.queue, 1);
	assert_int_equal(takt_queue_keep_gpus(kit.queue, &window, NULL), 0);
}

/* Nothing is planned between the jump and the word of who has named the window. */
static void a_window_is_named_anew_before_anything_starts(void **state)
{
	int64_t from_ns = wall_ns() + 2 * (int64_t)hour_ns, until_ns = from_ns + (int64_t)hour_ns;
	uint64_t jumps = takt_queue_wall_jumps(kit.queue), id;

	keep_first_gpu(from_ns, until_ns);
	id = accept_for(wall_ns() + 3 * (int64_t)hour_ns / 2);
	kit.wall_ahead_ns += 5 * (int64_t)hour_ns / 2;
	(void)kit_pump_in(&kit, 1000);
	assert_int_equal(takt_queue_wall_jumps(kit.queue), jumps + 1);
	assert_false(kit_is_started(&kit, id));
	keep_first_gpu(from_ns, until_ns);
	kit_settle(&kit);
	assert_false(kit_is_started(&kit, id));
	kit_later(&kit, hour_ns / 2 + second_ns);
	assert_true(kit_is_started(&kit, id));
}

static void a_clock_that_is_slewed_has_not_jumped(void **state)
{
	for (int i = 0; i < 100; i++)
		jump((int64_t)second_ns / 10);
	assert_int_equal(takt_queue_wall_jumps(kit.queue), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(a_retry_waits_as_long_as_before),
		CASE(a_retry_waits_as_long_also_over_a_restart),
		CASE(a_time_limit_is_as_long_as_before),
		CASE(a_job_that_is_taken_over_has_the_rest_of_its_time),
		CASE(an_instant_of_the_calendar_stays_where_it_is),
		CASE(a_start_that_is_read_after_the_jump_has_just_been),
		CASE(deadlines_are_compared_by_the_calendar),
		CASE(a_deadline_is_told_anew_when_its_job_waits_again),
		CASE(a_window_is_named_anew_before_anything_starts),
		CASE(a_clock_that_is_slewed_has_not_jumped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
