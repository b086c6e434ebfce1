/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a machine's power while jobs' curves are half known: never more than there is, who
 * gains most gets most, and a promise holds while there is enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/rng.h"
#include "clock/power_plan.h"

enum {
	STEPS = 15, /* of a clock */
};

static struct takt_power_job unknown_job(uint32_t boards)
{
	return (struct takt_power_job){.boards = boards, .least_mw = 200000, .most_mw = 700000};
}

/* Measured at 200, 300, ... W, `gain` more performance with each hundred of them. */
static struct takt_power_job measured_job(size_t count, double gain, bool complete)
{
	struct takt_power_job job = unknown_job(1);

	for (size_t k = 0; k < count; k++)
		job.measured[k] = (struct takt_power_point){200000 + 100000 * (uint32_t)k,
							    1 + gain * (double)k};
	job.count = count;
	job.complete = complete;
	return job;
}

static uint64_t sum_mw(const struct takt_power_job *jobs, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (uint64_t)jobs[i].share_mw * jobs[i].boards;
	return sum;
}

static void plan(uint64_t budget_mw, struct takt_power_job *jobs, size_t count)
{
	bool is_short;

	assert_int_equal(takt_power_plan(budget_mw, jobs, count, &is_short, NULL), 0);
	assert_false(is_short);
	assert_true(sum_mw(jobs, count) <= budget_mw);
	for (size_t i = 0; i < count; i++)
		assert_in_range(jobs[i].share_mw, jobs[i].least_mw, jobs[i].most_mw);
}

static void who_gains_most_gets_most(void **state)
{
	struct takt_power_job jobs[] = {measured_job(5, 0.02, true), measured_job(5, 0.3, true)};

	plan(800000, jobs, 2);
	assert_true(jobs[1].share_mw > jobs[0].share_mw + 100000);
	assert_int_equal(jobs[1].share_mw, 600000);
}

static void what_is_given_is_enough_for_what_was_measured(void **state)
{
	struct takt_power_job jobs[] = {measured_job(5, 0.3, true), measured_job(5, 0.02, true)};

	plan(716000, jobs, 2);
	assert_true(jobs[0].share_mw >= 510000); /* 500 W and a little more */
}

static void alike_jobs_of_which_nothing_is_known_get_alike(void **state)
{
	struct takt_power_job jobs[] = {unknown_job(1), unknown_job(2), unknown_job(1)};

	plan(1600000, jobs, 3);
	for (size_t i = 0; i < 3; i++)
		assert_in_range(jobs[i].share_mw, 330000, 470000);
}

/* Else it would stay where it happened to begin, since nothing above was measured. */
static void one_that_was_not_at_its_highest_clock_yet_is_given_more(void **state)
{
	struct takt_power_job jobs[] = {measured_job(1, 0, false), measured_job(3, 0.2, false)};

	plan(1400000, jobs, 2);
	assert_int_equal(jobs[0].share_mw, 700000);
	assert_int_equal(jobs[1].share_mw, 700000);
}

/* Known at the top alone: that says nothing against power below. */
static void one_that_was_only_at_the_top_is_not_cut_for_nothing(void **state)
{
	struct takt_power_job job = unknown_job(1);

	job.measured[0] = (struct takt_power_point){600000, 1};
	job.count = 1;
	job.complete = true;
	plan(650000, &job, 1);
	assert_true(job.share_mw >= 612000);
}

/* A job as its governor gets to know it: at each clock that its share is enough for. */
struct course {
	double sensitivity; /* time at half the clock: 1 + sensitivity */
	bool known[STEPS + 1];
	struct takt_power_job job;
};

static struct takt_power_point point_of(const struct course *course, size_t step)
{
	double clock = (double)step / STEPS;

	return (struct takt_power_point){(uint32_t)(70000 + 600000 * clock * clock * clock),
					 1 / (1 + course->sensitivity * (1 / clock - 1))};
}

static void go_by_share(struct course *course)
{
	size_t step = STEPS;

	while (step > 1 && point_of(course, step).mw > course->job.share_mw)
		step--;
	course->known[step] = true;
	course->job.complete = course->known[STEPS];
	course->job.count = 0;
	for (size_t k = 1; k <= STEPS; k++)
		if (course->known[k])
			course->job.measured[course->job.count++] = point_of(course, k);
}

/* Wherever they began: both have been seen with much power only, for one. */
static void who_gains_most_is_found_from_any_beginning(void **state)
{
	for (uint32_t first_w = 200; first_w <= 525; first_w += 5) {
		struct course steep = {.sensitivity = 1, .job = unknown_job(1)};
		struct course flat = {.sensitivity = 0.05, .job = unknown_job(1)};

		steep.job.share_mw = first_w * 1000;
		flat.job.share_mw = 725000 - steep.job.share_mw;
		for (int round = 0; round < 30; round++) {
			struct takt_power_job jobs[2];

			go_by_share(&steep);
			go_by_share(&flat);
			jobs[0] = steep.job;
			jobs[1] = flat.job;
			plan(725000, jobs, 2);
			steep.job.share_mw = jobs[0].share_mw;
			flat.job.share_mw = jobs[1].share_mw;
		}
		assert_true(steep.job.share_mw > 2 * flat.job.share_mw);
	}
}

/* What is only thought of lower power keeps no promise. */
static void a_promise_goes_by_what_was_measured(void **state)
{
	struct takt_power_job job = measured_job(1, 0, true);

	job.measured[0].mw = 260000; /* 200 W might bring as much */
	job.has_promise = true;
	job.max_slowdown_permille = 100;
	plan(266000, &job, 1);
	assert_false(job.breaks_promise);
	plan(250000, &job, 1);
	assert_true(job.breaks_promise);
}

static void what_nobody_gains_by_is_room_for_all(void **state)
{
	struct takt_power_job jobs[] = {measured_job(2, 0.2, true), measured_job(2, 0.2, true)};

	plan(800000, jobs, 2);
	assert_int_equal(jobs[0].share_mw, 400000);
	assert_int_equal(jobs[1].share_mw, 400000);
}

static void a_promise_holds_while_there_is_enough(void **state)
{
	struct takt_power_job jobs[] = {measured_job(5, 0.02, true), measured_job(5, 0.3, true)};

	jobs[0].has_promise = true;
	jobs[0].max_slowdown_permille = 20;
	plan(1000000, jobs, 2);
	/* 1.06 of 1.08 is within 2 %. */
	assert_in_range(jobs[0].share_mw, 510000, 520000);
	assert_false(jobs[0].breaks_promise);
	plan(650000, jobs, 2);
	assert_true(jobs[0].breaks_promise);
	assert_false(jobs[1].breaks_promise);
}

static void too_little_for_all_is_said(void **state)
{
	struct takt_power_job jobs[] = {unknown_job(2), measured_job(5, 0.3, true)};
	bool is_short = false;

	assert_int_equal(takt_power_plan(599999, jobs, 2, &is_short, NULL), 0);
	assert_true(is_short);
	assert_int_equal(jobs[0].share_mw, 200000);
	assert_int_equal(jobs[1].share_mw, 200000);
}

static void draw(struct takt_rng *rng, struct takt_power_job *job)
{
	uint32_t mw = 0;

	*job = unknown_job(1 + (uint32_t)takt_rng_below(rng, 8));
	job->least_mw = 1 + (uint32_t)takt_rng_below(rng, 300000);
	job->most_mw = job->least_mw + (uint32_t)takt_rng_below(rng, 500000);
	job->has_promise = takt_rng_below(rng, 2);
	job->max_slowdown_permille = 1 + (uint32_t)takt_rng_below(rng, 500);
	job->count = takt_rng_below(rng, TAKT_LEVELS_MAX + 1);
	job->complete = takt_rng_below(rng, 2);
	for (size_t k = 0; k < job->count; k++) {
		mw += 1 + (uint32_t)takt_rng_below(rng, 100000);
		job->measured[k] = (struct takt_power_point){
			mw, 0.1 + (double)takt_rng_below(rng, 1000) / 1000};
	}
}

static void never_more_than_there_is(void **state)
{
	struct takt_rng rng;

	takt_rng_init(&rng, 7);
	for (uint32_t round = 0; round < 20000; round++) {
		struct takt_power_job jobs[6];
		size_t count = 1 + takt_rng_below(&rng, 6);
		uint64_t budget_mw = takt_rng_below(&rng, 10000000), least_mw = 0;
		bool is_short;

		for (size_t i = 0; i < count; i++) {
			draw(&rng, &jobs[i]);
			least_mw += (uint64_t)jobs[i].least_mw * jobs[i].boards;
		}
		assert_int_equal(takt_power_plan(budget_mw, jobs, count, &is_short, NULL), 0);
		assert_int_equal(is_short, least_mw > budget_mw);
		if (!is_short)
			assert_true(sum_mw(jobs, count) <= budget_mw);
		for (size_t i = 0; i < count; i++)
			assert_in_range(jobs[i].share_mw, jobs[i].least_mw, jobs[i].most_mw);
	}
}

static void without_memory_it_says_so(void **state)
{
	for (uint64_t n = 1; n <= 6; n++) {
		struct takt_power_job job = unknown_job(1);
		bool is_short;

		takt_alloc_fail_nth(n, 0);
		assert_int_equal(takt_power_plan(300000, &job, 1, &is_short, NULL), -ENOMEM);
		takt_alloc_fail_nth(0, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_gains_most_gets_most),
		cmocka_unit_test(what_is_given_is_enough_for_what_was_measured),
		cmocka_unit_test(alike_jobs_of_which_nothing_is_known_get_alike),
		cmocka_unit_test(one_that_was_not_at_its_highest_clock_yet_is_given_more),
		cmocka_unit_test(one_that_was_only_at_the_top_is_not_cut_for_nothing),
		cmocka_unit_test(who_gains_most_is_found_from_any_beginning),
		cmocka_unit_test(a_promise_goes_by_what_was_measured),
		cmocka_unit_test(what_nobody_gains_by_is_room_for_all),
		cmocka_unit_test(a_promise_holds_while_there_is_enough),
		cmocka_unit_test(too_little_for_all_is_said),
		cmocka_unit_test(never_more_than_there_is),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
