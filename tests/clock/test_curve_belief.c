/* SPDX-License-Identifier: Apache-2.0 */
/* What is believed of a curve: the little functions, and that belief finds curves that it is shown.
 */
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

static void exponentials_and_tails_are_right(void **state)
{
	assert_true(fabs(takt_belief_exp(0) - 1) < 1e-12);
	assert_true(fabs(takt_belief_exp(-1) - 0.36787944117144233) < 1e-12);
	assert_true(fabs(takt_belief_exp(-30) / 9.3576229688401748e-14 - 1) < 1e-9);
	assert_true(takt_belief_exp(-1e9) < 1e-300);
	assert_true(fabs(takt_belief_tail(0) - 0.5) < 1e-12);
	assert_true(fabs(takt_belief_tail(1.6448536) - 0.05) < 5e-4);
	assert_true(fabs(takt_belief_tail(-1.6448536) - 0.95) < 5e-4);
	assert_true(takt_belief_tail(6) < 1e-7);
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
		cmocka_unit_test(exponentials_and_tails_are_right),
		cmocka_unit_test(nothing_is_certain_before_anything_was_seen),
		cmocka_unit_test(a_look_far_down_tells_of_the_levels_between),
		cmocka_unit_test(a_wrong_belief_gives_way_to_what_is_measured),
		cmocka_unit_test(noise_is_measured_where_levels_repeat),
	};

	return cmocka_run_group_tests_name("curve belief", tests, NULL, NULL);
}
