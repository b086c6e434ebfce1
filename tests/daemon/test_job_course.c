/* SPDX-License-Identifier: Apache-2.0 */
/* How jobs went: what is kept is of the whole run, what is the same is one decision, and what was
 * not seen is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/job_course.h"

enum {
	FOR_A_CURVE = 50, /* points, spread over the whole run */
	JOBS = 1000,
};

static const struct takt_wall wall = {2000000 * (int64_t)TAKT_NS_PER_S};
static struct takt_course_view view;

static void fill(const struct takt_job_course *courses, bool all, uint64_t now_s)
{
	memset(&view, 0, sizeof(view));
	takt_job_course_fill(courses, 7, all, (struct takt_mono){now_s * TAKT_NS_PER_S}, wall,
			     &view);
}

static void say(struct takt_job_course *courses, uint32_t attempt, uint64_t at_s, uint64_t steps)
{
	const struct takt_progress_file said = {
		.has = TAKT_PROGRESS_STEPS, .steps = steps, .at_ns = at_s * TAKT_NS_PER_S};

	takt_job_course_said(courses, 7, attempt, &said);
}

static void step(struct takt_job_course *courses, uint64_t at_s, uint32_t has,
		 enum takt_governor_reason reason, uint32_t max_mhz)
{
	const struct takt_governor_observation seen = {
		.has = has,
		.now_ns = at_s * TAKT_NS_PER_S,
		.epoch_ns = has ? 2 * TAKT_NS_PER_S : 0,
		.work = 30,
		.signal = TAKT_SIGNAL_JOB,
		.sm_mhz = (uint32_t)at_s,
		.power_mw = 250000,
	};
	const struct takt_governor_wish wish = {
		.cap = {.sets = TAKT_ACTUATE_CLOCKS, .min_mhz = 300, .max_mhz = max_mhz},
		.reason = reason};

	takt_job_course_step(courses, 7, 1, &seen, &wish);
}

static const uint32_t seen_all = TAKT_OBSERVED_WORK | TAKT_OBSERVED_POWER | TAKT_OBSERVED_SM_CLOCK;

static void what_a_job_says_is_kept_of_its_whole_run(void **state)
{
	struct takt_job_course *courses;
	uint64_t apart_ms = 0;

	assert_int_equal(takt_job_course_new(&courses), 0);
	for (uint64_t s = 1; s <= 100000; s++)
		say(courses, 1, s, 10 * s);
	say(courses, 1, 99999, 5); /* of before: not taken */
	fill(courses, true, 100000);
	assert_in_range(view.said_count, FOR_A_CURVE, TAKT_COURSE_VIEW_MAX_SAID);
	assert_int_equal(view.said[0].steps, 10);
	assert_int_equal(view.said[view.said_count - 1].steps, 1000000);
	assert_int_equal(view.said[view.said_count - 1].at_ms, wall.ns / (int64_t)TAKT_NS_PER_MS);
	for (uint32_t i = 1; i < view.said_count; i++) {
		uint64_t ms = (uint64_t)(view.said[i].at_ms - view.said[i - 1].at_ms);

		assert_true(ms > 0);
		apart_ms = ms > apart_ms ? ms : apart_ms;
		assert_int_equal(view.said[i].has, TAKT_PV_STEPS);
	}
	assert_true(apart_ms <= 100000u * 1000 / FOR_A_CURVE);
	fill(courses, false, 100000);
	assert_int_equal(view.said_count, 0);
	say(courses, 2, 100001, 1);
	fill(courses, true, 100001);
	assert_int_equal(view.said_count, 1);
	assert_int_equal(view.attempt, 2);
	takt_job_course_free(courses);
}

static void a_decision_has_the_means_of_its_epochs(void **state)
{
	struct takt_job_course *courses;

	assert_int_equal(takt_job_course_new(&courses), 0);
	takt_job_course_governed(courses, 7, 1, "assured");
	step(courses, 10, 0, TAKT_REASON_REFERENCE, 1980);
	step(courses, 12, seen_all, TAKT_REASON_REFERENCE, 1980);
	step(courses, 14, TAKT_OBSERVED_POWER, TAKT_REASON_HOLD, 1200);
	step(courses, 20, TAKT_OBSERVED_POWER, TAKT_REASON_HOLD, 1200);
	fill(courses, true, 20);
	assert_string_equal(view.governor, "assured");
	assert_string_equal(view.signal, "job");
	assert_int_equal(view.decision_count, 2);
	assert_string_equal(view.decisions[0].reason, "reference");
	assert_int_equal(view.decisions[0].max_mhz, 1980);
	assert_int_equal(view.decisions[0].epochs, 2);
	assert_int_equal(view.decisions[0].sm_mhz, 12);
	assert_int_equal(view.decisions[0].power_mw, 250000);
	assert_int_equal(view.decisions[0].work_milli_s, 15000);
	assert_int_equal(view.decisions[0].until_ms - view.decisions[0].at_ms, 4000);
	assert_string_equal(view.decisions[1].text, "least energy within the promise");
	assert_int_equal(view.decisions[1].has, TAKT_COURSE_POWER);
	assert_int_equal(view.decisions[1].at_ms, (wall.ns / (int64_t)TAKT_NS_PER_MS) - 6000);
	fill(courses, false, 20);
	assert_int_equal(view.decisions[0].has, TAKT_COURSE_SM | TAKT_COURSE_POWER);
	assert_string_equal(view.signal, "");
	takt_job_course_governed(courses, 7, 1, "ladder");
	fill(courses, true, 20);
	assert_int_equal(view.decision_count, 0);
	takt_job_course_free(courses);
}

static void of_many_decisions_the_newest_are_kept(void **state)
{
	struct takt_job_course *courses;

	assert_int_equal(takt_job_course_new(&courses), 0);
	for (uint32_t i = 0; i < 1000; i++)
		step(courses, 10 + i, seen_all, TAKT_REASON_PROBE, 1000 + i);
	fill(courses, true, 1010);
	assert_in_range(view.decision_count, FOR_A_CURVE, TAKT_COURSE_VIEW_MAX_DECISIONS);
	for (uint32_t i = 1; i <= view.decision_count; i++)
		assert_int_equal(view.decisions[view.decision_count - i].max_mhz, 2000 - i);
	takt_job_course_free(courses);
}

static bool is_kept(const struct takt_job_course *courses, uint64_t id)
{
	memset(&view, 0, sizeof(view));
	takt_job_course_fill(courses, id, true, (struct takt_mono){1}, wall, &view);
	return view.said_count > 0;
}

static void the_last_that_ended_are_kept(void **state)
{
	const struct takt_progress_file said = {.has = TAKT_PROGRESS_STEPS, .at_ns = 1};
	struct takt_job_course *courses;
	uint64_t kept = 0;

	assert_int_equal(takt_job_course_new(&courses), 0);
	say(courses, 1, 1, 1); /* job 7: goes on */
	for (uint64_t id = 8; id < 8 + JOBS; id++) {
		takt_job_course_said(courses, id, 1, &said);
		takt_job_course_over(courses, id);
		takt_job_course_over(courses, id);
	}
	assert_true(is_kept(courses, 7));
	while (is_kept(courses, 8 + JOBS - 1 - kept))
		kept++;
	assert_in_range(kept, TAKT_COURSE_ENDED, JOBS / 2); /* the newest, */
	for (uint64_t id = 8; id < 8 + JOBS - kept; id++)
		assert_false(is_kept(courses, id)); /* and none that is older */
	takt_job_course_free(courses);
}

static void no_memory_is_no_course(void **state)
{
	struct takt_job_course *courses;

	for (unsigned long nth = 2; nth < 24; nth++) {
		takt_alloc_fail_nth(nth / 2, nth % 2);
		if (takt_job_course_new(&courses) < 0)
			continue;
		for (uint64_t s = 1; s < 100; s++) {
			say(courses, 1, s, s);
			step(courses, s, seen_all, TAKT_REASON_PROBE, 1000 + (uint32_t)s);
		}
		takt_alloc_fail_nth(0, false);
		say(courses, 1, 100, 100); /* there is memory again */
		step(courses, 100, seen_all, TAKT_REASON_PROBE, 1100);
		fill(courses, true, 100);
		assert_int_equal(view.said[view.said_count - 1].steps, 100);
		assert_int_equal(view.decisions[view.decision_count - 1].max_mhz, 1100);
		takt_job_course_free(courses);
	}
	takt_alloc_fail_nth(0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_job_says_is_kept_of_its_whole_run),
		cmocka_unit_test(a_decision_has_the_means_of_its_epochs),
		cmocka_unit_test(of_many_decisions_the_newest_are_kept),
		cmocka_unit_test(the_last_that_ended_are_kept),
		cmocka_unit_test(no_memory_is_no_course),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
