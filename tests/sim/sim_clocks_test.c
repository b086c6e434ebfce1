/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of clocks and the jobs that are replayed on them: what is read, what is refused, and
 * figures that can be worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "clock/governor.h"
#include "sim/clock_score.h"

#define HEAD "dataset,gpu,workload,core_mhz,mem_mhz,power_limit_w,time,time_unit,power_w\n"

/* At 900: 4 % slower for 80 % of the power; at 800: 10 % for 70 %. */
static const char table[] = HEAD "d,g,w,1000,,300,2,s,100\n"
				 "d,g,w,900,,300,2.08,s,80\n"
				 "d,g,w,800,,300,2.2,s,70\n";

static int read_text(const char *text, struct takt_clock_points *ret, struct takt_err *err)
{
	struct takt_lines *lines;
	int rc;

	assert_int_equal(takt_lines_open_memory("t.csv", text, strlen(text), &lines, NULL), 0);
	rc = takt_clock_points_read(lines, ret, err);
	takt_lines_free(lines);
	return rc;
}

static struct takt_clock_points points_of(const char *text)
{
	struct takt_clock_points points;

	assert_int_equal(read_text(text, &points, NULL), 0);
	return points;
}

static void expect_refused(const char *text, const char *word)
{
	struct takt_clock_points points;
	struct takt_err err = {0};

	assert_int_equal(read_text(text, &points, &err), -TAKT_E_CORRUPT);
	if (!strstr(err.msg, word))
		fail_msg("'%s' is not in: %s", word, err.msg);
}

static void mistakes_in_tables_are_named(void **state)
{
	expect_refused("", "empty");
	expect_refused("dataset,gpu,workload,time\n", "'power_w'");
	expect_refused(HEAD "d,g,w,1000,,,x,s,3\n", "t.csv:2: column 'time'");
	expect_refused(HEAD "d,g,,1000,,,1,s,3\n", "'workload'");
	expect_refused(HEAD "d,g,w,1000,,,1,s\n", "'power_w'");
	expect_refused(HEAD "d,g,w,1000,,,0,s,3\n",
		       "t.csv:2: column 'time' must be a number above 0");
	expect_refused(HEAD "d,g,w,1000,,,1,s,\n", "t.csv:2: column 'power_w'");
	expect_refused("# a word\n\n" HEAD "\nd,g,w,0,,,1,s,3\n", "t.csv:5: column 'core_mhz'");
	expect_refused(HEAD "d,g,w,1000,,-1,1,s,3\n", "t.csv:2: column 'power_limit_w'");
	expect_refused("# a word\ndataset,gpu,workload,time\n", "t.csv:2: there is no column");
	expect_refused("dataset,gpu,gpu,workload,time,power_w\n",
		       "t.csv:1: column 'gpu' is there twice");
	expect_refused(HEAD "d,g,w,1000,,,1,s,3\n", "two clocks");
	expect_refused(HEAD "d,g,w,1000,,,1e13,s,3\n", "1e12");
	expect_refused(HEAD "\"d,g,w\n", "t.csv:2");
}

static int add_counters(struct takt_clock_points *points, const char *text, struct takt_err *err)
{
	struct takt_lines *lines;
	int rc;

	assert_int_equal(takt_lines_open_memory("c.csv", text, strlen(text), &lines, NULL), 0);
	rc = takt_clock_points_counters(points, lines, err);
	takt_lines_free(lines);
	return rc;
}

static void mistakes_in_counters_are_named(void **state)
{
	struct takt_clock_points points = points_of(table);
	struct takt_err err = {0};

	assert_int_equal(add_counters(&points,
				      "dataset,gpu,workload,core_mhz,dram_active\n"
				      "d,g,w,900,0.5\nd,g,w,900,1.6\n",
				      &err),
			 -TAKT_E_CORRUPT);
	assert_non_null(strstr(err.msg, "c.csv:3: column 'dram_active' must be a fraction"));
	assert_int_equal(add_counters(&points,
				      "dataset,gpu,workload,core_mhz,dram_active,power_w\n"
				      "d,g,w,900,0.5,0\nd,g,w,800,,x\n",
				      &err),
			 0);
	assert_int_equal(points.curves.at->settings[1].counters.dram_permille, 500);
	assert_int_equal(points.curves.at->settings[0].counters.has, 0);
	takt_clock_points_fini(&points);
}

static void curves_come_in_order_and_by_actuator(void **state)
{
	struct takt_clock_points points =
		points_of(HEAD "d,h,w,,,100,2,s,90\nd,h,w,,,200,1,s,150\n"
			       "d,g,w,800,5,,3,s,70\nd,g,w,1000,6,,2,s,100\nd,g,w,800,6,,2.2,s,70\n"
			       "d,g,w,800,6,,2.4,s,90\nd,h,v,,,200,1,s,150\nd,h,v,,,100,2,s,90\n"
			       "d,g,w,1000,5,,2.5,s,90\n");

	assert_int_equal(points.curves.len, 3);
	assert_string_equal(points.curves.at[0].workload, "w");
	assert_int_equal(points.curves.at[0].actuator, TAKT_ACTUATE_POWER);
	assert_string_equal(points.curves.at[1].workload, "v");
	assert_int_equal(points.curves.at[2].actuator, TAKT_ACTUATE_CLOCKS);
	assert_int_equal(points.curves.at[2].count, 2); /* at the higher memory clock */
	assert_true(fabs(points.curves.at[2].settings[0].time - 2.3) < 1e-12); /* of two */
	assert_true(fabs(points.curves.at[2].settings[0].power_w - 80) < 1e-12);
	takt_clock_points_fini(&points);
}

static void a_memory_clock_left_alone_is_the_highest(void **state)
{
	struct takt_clock_points points =
		points_of(HEAD "d,g,w,800,,,3,s,70\nd,g,w,1000,6,,2,s,100\n");

	assert_int_equal(points.curves.len, 1);
	assert_int_equal(points.curves.at[0].count, 2);
	takt_clock_points_fini(&points);
}

static void the_optimum_is_the_least_energy_within_the_promise(void **state)
{
	struct takt_clock_points points = points_of(table);
	const struct takt_clock_curve *curve = points.curves.at;

	assert_true(takt_clock_best(curve, 0)->value == 1000);
	assert_true(takt_clock_best(curve, 39)->value == 1000);
	assert_true(takt_clock_best(curve, 40)->value == 900);
	assert_true(takt_clock_best(curve, 100)->value == 800);
	assert_true(fabs(takt_clock_energy(curve, &curve->settings[1]) - 0.832) < 1e-12);
	assert_true(takt_clock_under(curve, 899)->value == 800);
	assert_true(takt_clock_under(curve, 100)->value == 800);
	takt_clock_points_fini(&points);
}

static struct takt_clock_result replay(const struct takt_clock_points *points, const char *name,
				       const struct takt_governor_param *params, size_t count,
				       uint32_t epochs)
{
	const struct takt_clock_curve *curve = points->curves.at;
	struct takt_clock_world world = {.time_noise = 0.02,
					 .power_noise = 0.03,
					 .epoch_ns = 2000000000,
					 .delay_ns = 200000000,
					 .meter_ns = 100000000};
	struct takt_clock_job job = {.governor = takt_governor_find(name),
				     .params = params,
				     .param_count = count,
				     .max_slowdown_permille = 50,
				     .phases = &curve,
				     .phase_count = 1,
				     .epochs = epochs,
				     .seed = 3};
	struct takt_clock_result result;

	job.state = takt_zalloc(job.governor->state_bytes + 1);
	assert_non_null(job.state);
	assert_int_equal(takt_clock_run(&world, &job, &result, NULL), 0);
	takt_free(job.state);
	return result;
}

static void the_highest_clock_is_the_unit_of_all_figures(void **state)
{
	struct takt_clock_points points = points_of(table);
	struct takt_clock_result result = replay(&points, "performance", NULL, 0, 50);

	assert_true(fabs(result.time - 1) < 1e-9);
	assert_true(fabs(result.energy - 1) < 1e-9);
	assert_true(fabs(result.best_energy - 0.832) < 1e-9);
	assert_int_equal(result.epochs, 50);
	assert_int_equal(result.settled_epochs, 50 - TAKT_CLOCK_SETTLING);
	assert_int_equal(result.violating_epochs, 0);
	assert_int_equal(result.changes, 0);
	/* the optimum saves 16.8 % of 8 epochs of 50 meanwhile */
	assert_true(fabs(result.settling_loss - 0.168 * 8 / 50) < 1e-9);
	takt_clock_points_fini(&points);
}

/* All but the delay of the first epoch at 800 MHz: work of 2 s less 0.2 s at full speed, the rest
 * at 1 / 1.1 of it. */
static void the_truth_is_counted_and_the_delay_with_it(void **state)
{
	static const struct takt_governor_param param = {"sm_mhz", 800};
	struct takt_clock_points points = points_of(table);
	struct takt_clock_result result = replay(&points, "fixed", &param, 1, 100);
	double fast = 0.2 / 200;

	assert_true(fabs(result.time - (fast + (1 - fast) * 1.1)) < 1e-6);
	assert_true(fabs(result.energy - (fast + (1 - fast) * 0.77)) < 1e-6);
	assert_int_equal(result.changes, 1);
	assert_int_equal(result.violating_epochs, result.settled_epochs);
	takt_clock_points_fini(&points);
}

static struct takt_scores score(const struct takt_clock_points *points, uint64_t seeds,
				uint32_t epochs)
{
	struct takt_score_governor governors[] = {{.governor = takt_governor_find("performance")},
						  {.governor = takt_governor_find("assured")}};
	struct takt_score_config config = {
		.points = points,
		.world = {0, 0, 2000000000, 200000000, 100000000, false},
		.noises = {{0.02, 0.03}},
		.noise_count = 1,
		.governors = governors,
		.governor_count = 2,
		.max_slowdown_permille = 50,
		.lengths = {epochs},
		.length_count = 1,
		.first_seed = 1,
		.last_seed = seeds,
		.phases = 1,
	};
	struct takt_scores scores;

	assert_int_equal(takt_clock_score(&config, &scores, NULL), 0);
	return scores;
}

static void settings_for_all_stand_beside_the_governors(void **state)
{
	struct takt_clock_points points =
		points_of(HEAD "d,g,w,1000,,,2,s,100\nd,g,w,900,,,2.08,s,80\nd,g,w,800,,,2.2,s,70\n"
			       "d,g,v,1000,,,1,s,100\nd,g,v,900,,,1,s,90\nd,g,v,800,,,1,s,80\n");
	struct takt_scores scores = score(&points, 2, 20);
	const struct takt_score *at = scores.all.at;

	assert_int_equal(scores.all.len, 5);
	assert_string_equal(at[0].governor, "max");
	assert_true(fabs(at[0].share_pct.mean) < 1e-9);
	assert_string_equal(at[1].governor, "best-safe-fixed");
	assert_true(at[1].setting == 900);
	assert_true(fabs(at[1].saved_pct.mean - (16.8 + 10) / 2) < 1e-9);
	assert_true(fabs(at[1].share_pct.mean - 100 * 26.8 / 36.8) < 1e-9);
	assert_string_equal(at[1].workloads.at[at[1].worst].curve->workload, "v");
	assert_string_equal(at[2].governor, "best-mean-fixed"); /* 10 % and 0 % slower */
	assert_true(at[2].setting == 800);
	assert_int_equal(at[2].violating_jobs, 2); /* with each seed */
	assert_string_equal(at[3].governor, "performance");
	assert_int_equal(at[3].runs, 4);
	assert_int_equal(at[3].violating_jobs, 0);
	takt_scores_fini(&scores);
	takt_clock_points_fini(&points);
}

static void the_same_seed_gives_the_same_figures(void **state)
{
	struct takt_clock_points points = points_of(table);
	struct takt_clock_result a = replay(&points, "assured", NULL, 0, 100);
	struct takt_clock_result b = replay(&points, "assured", NULL, 0, 100);

	assert_memory_equal(&a, &b, sizeof(a));
	takt_clock_points_fini(&points);
}

/* On the table that takt brings: as good as it was when this was written, and no promise broken. */
static void assured_keeps_its_promise_on_measured_stages(void **state)
{
	struct takt_clock_points points;
	struct takt_scores scores;
	struct takt_lines *lines;

	assert_int_equal(takt_lines_open(getenv("TAKT_CLOCK_POINTS"), &lines, NULL), 0);
	assert_int_equal(takt_clock_points_read(lines, &points, NULL), 0);
	takt_lines_free(lines);
	assert_int_equal(points.curves.len, 4);
	scores = score(&points, 5, 400);
	assert_int_equal(scores.all.len, 5);
	assert_int_equal(scores.all.at[4].runs, 20);
	assert_int_equal(scores.all.at[4].violating_jobs, 0);
	assert_true(scores.all.at[4].violating_epochs_pct < 1);
	assert_true(scores.all.at[4].share_pct.mean > 65);
	assert_true(scores.all.at[4].overhead_time_pct < 3);
	takt_scores_fini(&scores);
	takt_clock_points_fini(&points);
}

static void without_memory_nothing_is_left_behind(void **state)
{
	for (unsigned long nth = 1; nth < 200; nth++) {
		struct takt_clock_points points;
		int rc;

		struct takt_lines *lines;

		assert_int_equal(
			takt_lines_open_memory("t", table, sizeof(table) - 1, &lines, NULL), 0);
		takt_alloc_fail_nth(nth, 0);
		rc = takt_clock_points_read(lines, &points, NULL);
		takt_alloc_fail_nth(0, 0);
		takt_lines_free(lines);
		if (rc == 0) {
			assert_true(nth > 3);
			takt_clock_points_fini(&points);
			return;
		}
		assert_int_equal(rc, -ENOMEM);
	}
	fail_msg("it never had enough memory");
}

static void without_memory_no_scores_are_left_behind(void **state)
{
	struct takt_clock_points points = points_of(table);
	struct takt_score_governor governor = {.governor = takt_governor_find("qlearning")};
	struct takt_score_config config = {
		.points = &points,
		.world = {0, 0, 2000000000, 200000000, 100000000, false},
		.noises = {{0.02, 0.03}},
		.noise_count = 1,
		.governors = &governor,
		.governor_count = 1,
		.max_slowdown_permille = 50,
		.lengths = {20},
		.length_count = 1,
		.first_seed = 1,
		.last_seed = 2,
		.phases = 1,
		.threads = 1,
	};

	for (unsigned long nth = 1; nth < 1000; nth++) {
		struct takt_scores scores;
		struct takt_err err = {0};
		int rc;

		takt_alloc_fail_nth(nth, 0);
		rc = takt_clock_score(&config, &scores, &err);
		takt_alloc_fail_nth(0, 0);
		if (rc == 0) {
			assert_true(nth > 10);
			takt_scores_fini(&scores);
			takt_clock_points_fini(&points);
			return;
		}
		assert_int_equal(rc, -ENOMEM);
		assert_true(err.msg[0] != '\0');
	}
	fail_msg("it never had enough memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_in_tables_are_named),
		cmocka_unit_test(mistakes_in_counters_are_named),
		cmocka_unit_test(curves_come_in_order_and_by_actuator),
		cmocka_unit_test(a_memory_clock_left_alone_is_the_highest),
		cmocka_unit_test(the_optimum_is_the_least_energy_within_the_promise),
		cmocka_unit_test(the_highest_clock_is_the_unit_of_all_figures),
		cmocka_unit_test(the_truth_is_counted_and_the_delay_with_it),
		cmocka_unit_test(settings_for_all_stand_beside_the_governors),
		cmocka_unit_test(the_same_seed_gives_the_same_figures),
		cmocka_unit_test(assured_keeps_its_promise_on_measured_stages),
		cmocka_unit_test(without_memory_nothing_is_left_behind),
		cmocka_unit_test(without_memory_no_scores_are_left_behind),
	};

	return cmocka_run_group_tests_name("clocks", tests, NULL, NULL);
}
