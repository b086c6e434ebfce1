/* SPDX-License-Identifier: Apache-2.0 */
/* How long jobs are expected to run, and whose word that is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "queue_kit.h"

static const uint64_t second_ns = 1000000000;

static struct kit kit;

static int setup(void **state)
{
	kit_open(&kit);
	kit.boot_ns = 3600 * second_ns;
	kit_settle(&kit);
	return 0;
}

static int teardown(void **state)
{
	takt_alloc_fail_nth(0, 0);
	kit_close(&kit);
	return 0;
}

static uint64_t accept(uint64_t estimate_ms, uint64_t limit_ms)
{
	struct takt_jobspec spec = kit_spec(1);

	spec.estimate_ms = estimate_ms;
	spec.time_limit_ms = limit_ms;
	return kit_accept_spec(&kit, spec);
}

static void run(uint64_t id, uint64_t ran_ns)
{
	if (takt_queue_find(kit.queue, id)->phase != TAKT_PHASE_RUNNING)
		kit_started(&kit, id);
	kit.run_ns = ran_ns;
	kit_end_cleanly(&kit, id, TAKT_END_EXITED, 0);
	kit_settle(&kit);
}

static void expect(uint64_t id, enum takt_estimate_from from, uint64_t seconds)
{
	const struct takt_queue_estimate *estimate = &takt_queue_find(kit.queue, id)->estimate;

	assert_string_equal(takt_estimate_from_name(estimate->from), takt_estimate_from_name(from));
	assert_int_equal(estimate->ns, seconds * second_ns);
}

static void what_the_owner_says_goes_first_and_the_limit_caps_it(void **state)
{
	expect(accept(0, 0), TAKT_ESTIMATE_NONE, 0);
	expect(accept(5000, 0), TAKT_ESTIMATE_OWNER, 5);
	expect(accept(0, 9000), TAKT_ESTIMATE_LIMIT, 9);
	expect(accept(5000, 9000), TAKT_ESTIMATE_OWNER, 5);
	expect(accept(50000, 9000), TAKT_ESTIMATE_LIMIT, 9);
}

static void jobs_of_that_name_teach_it_also_over_a_restart(void **state)
{
	uint64_t id;

	for (int i = 0; i < 3; i++)
		run(accept(0, 0), 40 * second_ns);
	expect(accept(0, 0), TAKT_ESTIMATE_HISTORY, 40);
	expect(accept(5000, 0), TAKT_ESTIMATE_OWNER, 5);
	kit_restart(&kit);
	kit_settle(&kit);
	id = accept(0, 0);
	expect(id, TAKT_ESTIMATE_HISTORY, 40);
}

static void another_command_says_nothing_of_it(void **state)
{
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	for (int i = 0; i < 3; i++)
		run(accept(0, 0), 40 * second_ns);
	takt_free(spec.argv[1]);
	spec.argv[1] = takt_strdup("36000");
	id = kit_accept_spec(&kit, spec);
	expect(id, TAKT_ESTIMATE_NONE, 0);
	spec = kit_spec(2);
	id = kit_accept_spec(&kit, spec);
	expect(id, TAKT_ESTIMATE_NONE, 0);
}

static struct takt_queue_start foretold(uint64_t id)
{
	struct takt_queue_start start;

	assert_true(takt_queue_foretold(kit.queue, takt_queue_find(kit.queue, id), &start));
	assert_true(start.at.ns >= (int64_t)kit.boot_ns + kit.wall_ahead_ns);
	return start;
}

/* No two on a GPU at a time, and none in the past, however late the running job is. */
static void starts_are_foretold_on_gpus_of_their_own(void **state)
{
	struct takt_jobspec spec = kit_spec(KIT_GPUS);
	uint64_t runs, first, second;
	int64_t told_ns;

	spec.estimate_ms = 60000;
	runs = kit_accept_spec(&kit, spec);
	kit_started(&kit, runs);
	kit_settle(&kit);
	first = accept(60000, 0);
	spec = kit_spec(KIT_GPUS);
	spec.estimate_ms = 60000;
	second = kit_accept_spec(&kit, spec);
	assert_int_equal(__builtin_popcountll(foretold(first).gpus), 1);
	assert_int_equal(foretold(second).gpus, (1u << KIT_GPUS) - 1);
	assert_true(foretold(second).at.ns >= foretold(first).at.ns + 60 * (int64_t)second_ns);
	told_ns = foretold(first).at.ns;
	assert_int_equal(foretold(first).overdue_since.ns, 0);
	for (int i = 0; i < 10; i++) {
		kit_later(&kit, 30 * second_ns);
		(void)foretold(first);
	}
	assert_int_equal(foretold(first).overdue_since.ns, told_ns);
}

static uint64_t accept_wide(void)
{
	struct takt_jobspec spec = kit_spec(KIT_GPUS);

	spec.estimate_ms = 120000;
	return kit_accept_spec(&kit, spec);
}

/* Without it nobody is told a range for days after each restart. */
static void how_starts_came_true_is_known_over_a_restart(void **state)
{
	uint64_t runs = accept_wide(), waits;

	for (int i = 0; i < 25; i++) {
		kit_started(&kit, runs);
		kit_settle(&kit);
		waits = accept_wide();
		assert_int_equal(foretold(waits).has_range, i >= 20);
		kit_later(&kit, 118 * second_ns);
		run(runs, 118 * second_ns);
		runs = waits;
	}
	kit_started(&kit, runs);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_adopted(&kit, runs);
	kit_settle(&kit);
	waits = accept_wide();
	assert_true(foretold(waits).has_range);
	assert_true(foretold(waits).low.ns <= foretold(waits).at.ns);
}

static void who_waits_hears_of_what_was_learned(void **state)
{
	uint64_t runs, blocker, waits;

	run(accept(0, 0), 20 * second_ns);
	run(accept(0, 0), 20 * second_ns);
	runs = accept(0, 0);
	blocker = kit_accept(&kit, 7, 9);
	waits = accept(0, 0);
	kit_started(&kit, blocker);
	expect(waits, TAKT_ESTIMATE_NONE, 0);
	kit_started(&kit, runs);
	kit.run_ns = 20 * second_ns;
	kit_ended(&kit, runs, TAKT_END_EXITED, 0); /* its GPU is not clean yet: the other waits */
	kit_later(&kit, second_ns);
	expect(waits, TAKT_ESTIMATE_HISTORY, 20);
}

/* However many end: with long queues each time costs. */
static void who_waits_hears_of_it_once_a_second(void **state)
{
	uint64_t runs[2], waits, heard_ns;

	for (int i = 0; i < 3; i++)
		run(accept(0, 0), 20 * second_ns);
	kit_later(&kit, second_ns);
	kit_later(&kit, second_ns);
	runs[0] = accept(0, 0);
	runs[1] = accept(0, 0);
	kit_started(&kit, kit_accept(&kit, KIT_GPUS - 2, 9));
	waits = accept(0, 0);
	kit_started(&kit, runs[0]);
	kit_started(&kit, runs[1]);
	kit.run_ns = 60 * second_ns;
	kit_ended(&kit, runs[0], TAKT_END_EXITED, 0);
	kit_settle(&kit);
	heard_ns = takt_queue_find(kit.queue, waits)->estimate.ns;
	assert_true(heard_ns > 20 * second_ns);
	kit_ended(&kit, runs[1], TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, waits)->estimate.ns, heard_ns);
	assert_true(kit_pump_in(&kit, 1000) <= kit.boot_ns + second_ns);
	kit_later(&kit, second_ns);
	assert_true(takt_queue_find(kit.queue, waits)->estimate.ns > heard_ns);
}

static void an_outlook_is_told_once_however_many_jobs_are_of_its_kind(void **state)
{
	enum {
		WAITING = 100
	};
	uint64_t runs, before;

	kit_close(&kit);
	kit_open_with(&kit, (struct takt_sched_settings){.order = "takt"}, TAKT_FAILURE_KEEP);
	kit.boot_ns = 3600 * second_ns;
	runs = accept(5000, 0);
	kit_started(&kit, runs);
	(void)kit_accept(&kit, KIT_GPUS, 9);
	for (int i = 0; i < WAITING; i++)
		(void)accept(5000, 0); /* which no end changes */
	kit_settle(&kit);
	before = takt_queue_version(kit.queue);
	kit.run_ns = 7 * second_ns;
	kit_ended(&kit, runs, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_in_range(takt_queue_version(kit.queue), before + 1, before + WAITING / 2);
}

static void who_outlives_it_is_expected_to_run_as_long_again(void **state)
{
	uint64_t id = accept(60000, 0), capped = accept(60000, 200000);

	kit_started(&kit, id);
	kit_started(&kit, capped);
	kit_settle(&kit);
	kit_later(&kit, 61 * second_ns);
	expect(id, TAKT_ESTIMATE_OUTLIVED, 120);
	expect(capped, TAKT_ESTIMATE_OUTLIVED, 120);
	kit_later(&kit, 60 * second_ns);
	expect(id, TAKT_ESTIMATE_OUTLIVED, 240);
	expect(capped, TAKT_ESTIMATE_LIMIT, 200);
}

/* A jump of the wall clock is no time that a job has run. */
static void a_clock_that_is_set_outlives_nothing(void **state)
{
	uint64_t id = accept(60000, 0);

	kit_started(&kit, id);
	kit_settle(&kit);
	kit.wall_ahead_ns = 3600 * (int64_t)second_ns;
	kit_settle(&kit);
	kit_later(&kit, 31 * second_ns);
	expect(id, TAKT_ESTIMATE_OWNER, 60);
}

static void owner_freezes(uint64_t id, uint64_t seconds)
{
	assert_int_equal(takt_queue_freeze(kit.queue, id, true, NULL), 0);
	kit_later(&kit, seconds * second_ns);
	assert_int_equal(takt_queue_freeze(kit.queue, id, false, NULL), 0);
}

static void end_after(uint64_t id, uint64_t ran_ns)
{
	kit.run_ns = ran_ns;
	kit_end_cleanly(&kit, id, TAKT_END_EXITED, 0);
	kit_settle(&kit);
}

static void what_its_owner_froze_is_no_time_that_it_takes(void **state)
{
	uint64_t id, learned_ns;

	run(accept(0, 0), 40 * second_ns);
	run(accept(0, 0), 40 * second_ns);
	id = accept(0, 0);
	kit_started(&kit, id);
	kit_settle(&kit);
	owner_freezes(id, 30);
	kit_later(&kit, second_ns);
	owner_freezes(id, 30);
	end_after(id, 100 * second_ns);
	id = accept(0, 0);
	for (int i = 0; i < 2; i++) { /* from its end, then from history */
		learned_ns = takt_queue_find(kit.queue, id)->estimate.ns;
		assert_true(learned_ns > 39 * second_ns && learned_ns < 41 * second_ns);
		kit_restart(&kit);
	}
}

/* What nobody can say teaches nothing. */
static void how_long_it_stood_over_a_restart_is_not_known(void **state)
{
	uint64_t id;

	run(accept(0, 0), 40 * second_ns);
	run(accept(0, 0), 40 * second_ns);
	run(accept(0, 0), 40 * second_ns);
	id = accept(0, 0);
	kit_started(&kit, id);
	kit_settle(&kit);
	assert_int_equal(takt_queue_freeze(kit.queue, id, true, NULL), 0);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_adopted(&kit, id);
	kit_later(&kit, 30 * second_ns);
	assert_int_equal(takt_queue_freeze(kit.queue, id, false, NULL), 0);
	end_after(id, 100 * second_ns);
	expect(accept(0, 0), TAKT_ESTIMATE_HISTORY, 40);
	kit_restart(&kit);
	expect(accept(0, 0), TAKT_ESTIMATE_HISTORY, 40);
}

/* Loading learns from history and estimates what lives: without memory there is no queue, and the
 * next attempt at it has everything. */
static void any_allocation_of_loading_may_fail(void **state)
{
	unsigned long made = 1, failed = 0, before;
	uint64_t waits;

	for (int i = 0; i < 3; i++)
		run(accept(0, 0), 40 * second_ns);
	kit_started(&kit, kit_accept(&kit, KIT_GPUS, 0));
	waits = accept(0, 0);
	kit_settle(&kit);
	for (unsigned long nth = 1; nth <= made; nth += 3) {
		struct takt_err err = {0};
		int rc;

		takt_queue_free(kit.queue);
		before = takt_alloc_count();
		takt_alloc_fail_nth(nth, 0);
		rc = kit_open_queue(&kit, &err);
		takt_alloc_fail_nth(0, 0);
		made = takt_alloc_count() - before + 3;
		if (rc < 0 && (rc != -ENOMEM || !err.msg[0]))
			fail_msg("allocation %lu: %d '%s'", nth, rc, err.msg);
		failed += rc < 0;
		if (rc < 0)
			assert_int_equal(kit_open_queue(&kit, NULL), 0);
		if (rc < 0 || nth > made)
			expect(waits, TAKT_ESTIMATE_HISTORY, 40);
	}
	assert_true(failed > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(what_the_owner_says_goes_first_and_the_limit_caps_it),
		CASE(jobs_of_that_name_teach_it_also_over_a_restart),
		CASE(another_command_says_nothing_of_it),
		CASE(starts_are_foretold_on_gpus_of_their_own),
		CASE(how_starts_came_true_is_known_over_a_restart),
		CASE(who_waits_hears_of_what_was_learned),
		CASE(who_waits_hears_of_it_once_a_second),
		CASE(an_outlook_is_told_once_however_many_jobs_are_of_its_kind),
		CASE(who_outlives_it_is_expected_to_run_as_long_again),
		CASE(a_clock_that_is_set_outlives_nothing),
		CASE(what_its_owner_froze_is_no_time_that_it_takes),
		CASE(how_long_it_stood_over_a_restart_is_not_known),
		CASE(any_allocation_of_loading_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
