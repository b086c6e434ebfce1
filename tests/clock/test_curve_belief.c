/* SPDX-License-Identifier: Apache-2.0 */
/* What is believed of a curve: the little functions, that belief finds curves that it is
 * shown, and how far it doubts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "clock/curve_belief.h"

static struct takt_belief levels(uint32_t count, double step)
{
	struct takt_belief belief = {.count = count};

	for (uint32_t i = 0; i < count; i++)
		belief.level[i].x = i * step;
	return belief;
}

static double time_at(double x, double a)
{
	return 1 + a * x;
}

/* Epochs of a curve without a bend, n at each of the levels, off by +-2 % in turn. */
static void show(struct takt_belief *belief, uint32_t level, int n, double a)
{
	for (int i = 0; i < n; i++)
		takt_belief_add(belief, level,
				7e8 * time_at(belief->level[level].x, a) * (i % 2 ? 1.02 : 0.98));
}

/* How likely a level is to be above a limit falls as the limit rises, from certain to out of the
 * question, and is even at the mean; two deviations beyond it, it is what it is of a normal
 * distribution, nearly. */
static void doubt_is_about_the_mean_and_as_wide_as_the_deviation(void **state)
{
	struct takt_belief belief = levels(8, 0.05);
	struct takt_belief_answer answer[8], at[8];

	show(&belief, 0, 40, 1);
	show(&belief, 2, 40, 1);
	show(&belief, 7, 40, 1);
	takt_belief_ask(&belief, 0.02, 1.05, answer);
	for (uint32_t i = 1; i < 8; i++) {
		double last = 1;

		for (double z = -40; z <= 40; z += 0.5) {
			takt_belief_ask(&belief, 0.02, answer[i].mean + z * answer[i].sd, at);
			assert_true(at[i].over >= 0 && at[i].over <= last);
			assert_true(fabs(z) > 0 || fabs(at[i].over - 0.5) < 0.1);
			assert_true(fabs(fabs(z) - 2) > 0 ||
				    fabs(at[i].over - erfc(z / sqrt(2)) / 2) < 0.02);
			assert_true(z > -40 || at[i].over > 0.999);
			last = at[i].over;
		}
		assert_true(last < 0.001);
	}
}

static void exponentials_and_tails_are_those_of_the_c_library(void **state)
{
	for (double v = 0; v > -300; v -= 0.37) {
		double z = v / 50;

		assert_true(fabs(takt_belief_exp(v) / exp(v) - 1) < 1e-9);
		assert_true(fabs(takt_belief_tail(z) - erfc(z / sqrt(2)) / 2) < 5e-4);
		assert_true(fabs(takt_belief_tail(-z) - erfc(-z / sqrt(2)) / 2) < 5e-4);
	}
	assert_true(takt_belief_exp(-1e9) < 1e-300);
}

static void nothing_is_certain_before_anything_was_seen(void **state)
{
	struct takt_belief belief = levels(8, 0.05);
	struct takt_belief_answer answer[8];

	show(&belief, 0, 4, 1);
	takt_belief_ask(&belief, 0.02, 1.05, answer);
	assert_true(fabs(answer[0].mean - 1) < 1e-9);
	assert_true(answer[0].over < 1e-9);
	assert_true(answer[4].over > 0.2 && answer[4].over < 0.9);
	for (uint32_t i = 1; i < 8; i++)
		assert_true(answer[i].mean >= answer[i - 1].mean);
}

static void a_look_far_down_tells_of_the_levels_between(void **state)
{
	for (double a = 0; a < 1.01; a += 0.25) {
		struct takt_belief belief = levels(8, 0.05);
		struct takt_belief_answer answer[8];

		show(&belief, 0, 40, a);
		show(&belief, 2, 40, a);
		show(&belief, 7, 40, a);
		takt_belief_ask(&belief, 0.02, 1.05, answer);
		for (uint32_t i = 0; i < 8; i++)
			assert_true(fabs(answer[i].mean - time_at(0.05 * i, a)) < 0.015);
		assert_true((answer[2].over < 0.05) == (time_at(0.1, a) < 1.04));
	}
}

static void a_wrong_belief_gives_way_to_what_is_measured(void **state)
{
	struct takt_belief belief = levels(8, 0.05);
	struct takt_belief_answer answer[8];

	show(&belief, 0, 200, 1);
	show(&belief, 4, 200, -0.1); /* faster at a lower clock: no shape has that */
	takt_belief_ask(&belief, 0.02, 1.05, answer);
	assert_true(answer[4].mean < 1);
	assert_true(answer[4].over < 0.001);
}

static void noise_is_measured_where_levels_repeat(void **state)
{
	struct takt_belief belief = levels(4, 0.1);

	assert_true(fabs(takt_belief_noise(&belief, 0.02) - 0.02) < 1e-9);
	for (int i = 0; i < 400; i++)
		takt_belief_add(&belief, (uint32_t)i % 2, i / 2 % 2 ? 1.05 : 0.95);
	assert_true(fabs(takt_belief_noise(&belief, 0.02) - 0.05) < 0.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exponentials_and_tails_are_those_of_the_c_library),
		cmocka_unit_test(doubt_is_about_the_mean_and_as_wide_as_the_deviation),
		cmocka_unit_test(nothing_is_certain_before_anything_was_seen),
		cmocka_unit_test(a_look_far_down_tells_of_the_levels_between),
		cmocka_unit_test(a_wrong_belief_gives_way_to_what_is_measured),
		cmocka_unit_test(noise_is_measured_where_levels_repeat),
	};

	return cmocka_run_group_tests_name("curve belief", tests, NULL, NULL);
}
