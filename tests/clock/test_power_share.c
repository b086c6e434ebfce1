/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing out a machine's power: never more than there is, nobody below his least, and nothing
 * better to be had, found by trying everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/rng.h"
#include "clock/power_share.h"

enum {
	BIDDERS = 4,
	POINTS = 5,
};

struct game {
	struct takt_power_point points[BIDDERS][POINTS];
	struct takt_power_bidder bidders[BIDDERS];
	size_t count;
	uint64_t budget_mw;
};

/* Watts are a handful of mW here, so that all ways of sharing them can be tried. */
static void draw(struct takt_rng *rng, struct game *ret)
{
	uint64_t least = 0;

	*ret = (struct game){.count = 1 + takt_rng_below(rng, BIDDERS)};
	for (size_t i = 0; i < ret->count; i++) {
		struct takt_power_bidder *bidder = &ret->bidders[i];
		uint32_t mw = (uint32_t)takt_rng_below(rng, 4);
		double performance = 0;

		bidder->min_mw = (uint32_t)takt_rng_below(rng, 5);
		bidder->max_mw = bidder->min_mw + (uint32_t)takt_rng_below(rng, 10);
		bidder->weight = 1 + (double)takt_rng_below(rng, 3);
		bidder->points = ret->points[i];
		bidder->count = takt_rng_below(rng, POINTS + 1);
		for (size_t k = 0; k < bidder->count; k++) {
			mw += 1 + (uint32_t)takt_rng_below(rng, 3);
			performance += (double)takt_rng_below(rng, 10) - 1;
			ret->points[i][k] = (struct takt_power_point){mw, performance};
		}
		least += bidder->min_mw;
	}
	ret->budget_mw = least + takt_rng_below(rng, 24);
}

static double straight(const struct takt_power_bidder *bidder, double mw)
{
	const struct takt_power_point *p = bidder->points;
	size_t last = bidder->count - 1;

	if (mw <= p[0].mw)
		return p[0].performance;
	for (size_t k = 1; k <= last; k++)
		if (mw <= p[k].mw)
			return p[k - 1].performance + (p[k].performance - p[k - 1].performance) *
							      (mw - p[k - 1].mw) /
							      ((double)p[k].mw - p[k - 1].mw);
	return p[last].performance;
}

/* The definition itself: the best chord over mw between any two settings of the bidder. Corners
 * lie at whole mW, so chords between whole mW are all there are. */
static double worth(const struct takt_power_bidder *bidder, uint32_t mw)
{
	double best;

	if (bidder->count == 0)
		return bidder->max_mw == bidder->min_mw
			       ? 0
			       : bidder->weight * (mw - bidder->min_mw) /
					 ((double)bidder->max_mw - bidder->min_mw);
	best = straight(bidder, mw);
	for (uint32_t a = bidder->min_mw; a < mw; a++)
		for (uint32_t b = mw + 1; b <= bidder->max_mw; b++) {
			double left = straight(bidder, a), right = straight(bidder, b);
			double chord = left + (right - left) * (mw - a) / ((double)b - a);

			best = chord > best ? chord : best;
		}
	return best * bidder->weight;
}

static double try_all(const struct game *game, size_t from, uint64_t left_mw)
{
	const struct takt_power_bidder *bidder = &game->bidders[from];
	double best = -1e9;

	if (from == game->count)
		return 0;
	for (uint32_t mw = bidder->min_mw; mw <= bidder->max_mw && mw <= left_mw; mw++) {
		double here = worth(bidder, mw) + try_all(game, from + 1, left_mw - mw);

		best = here > best ? here : best;
	}
	return best;
}

static double shared_worth(const struct game *game, const uint32_t *mw)
{
	double sum = 0;

	for (size_t i = 0; i < game->count; i++)
		sum += worth(&game->bidders[i], mw[i]);
	return sum;
}

static void no_other_sharing_is_better(void **state)
{
	struct takt_rng rng;

	takt_rng_init(&rng, 7);
	for (uint32_t run = 0; run < 1500; run++) {
		struct game game;
		uint32_t mw[BIDDERS];
		uint64_t sum = 0;

		draw(&rng, &game);
		assert_int_equal(
			takt_power_share_out(game.budget_mw, game.bidders, game.count, mw, NULL),
			0);
		for (size_t i = 0; i < game.count; i++) {
			assert_in_range(mw[i], game.bidders[i].min_mw, game.bidders[i].max_mw);
			sum += mw[i];
		}
		assert_true(sum <= game.budget_mw);
		if (shared_worth(&game, mw) < try_all(&game, 0, game.budget_mw) - 1e-9)
			fail_msg("run %u: worth %g, possible is %g", run, shared_worth(&game, mw),
				 try_all(&game, 0, game.budget_mw));
	}
}

/* A machine of 64 boards with curves as boards have them: moving a watt from anyone to anyone else
 * makes the sum no better, and a larger budget makes nobody's worth smaller. */
static void on_a_large_machine_no_exchange_of_a_watt_helps(void **state)
{
	enum {
		BOARDS = 64,
		STEPS = 12
	};
	static struct takt_power_point points[BOARDS][STEPS];
	struct takt_power_bidder bidders[BOARDS];
	struct takt_rng rng;
	uint32_t mw[BOARDS];
	uint64_t budget_mw = BOARDS * 200000ull;

	takt_rng_init(&rng, 3);
	for (size_t i = 0; i < BOARDS; i++) {
		double share = 0.1 + (double)takt_rng_below(&rng, 90) / 100, at = 0.2;

		for (size_t k = 0; k < STEPS; k++) {
			points[i][k] = (struct takt_power_point){100000 + 20000 * (uint32_t)k, at};
			at += share / (double)(2 + k * k);
		}
		bidders[i] = (struct takt_power_bidder){100000, 320000, 1, points[i], STEPS};
	}
	assert_int_equal(takt_power_share_out(budget_mw, bidders, BOARDS, mw, NULL), 0);
	for (size_t i = 0; i < BOARDS; i++)
		for (size_t k = 0; k < BOARDS; k++) {
			double before = straight(&bidders[i], mw[i]) + straight(&bidders[k], mw[k]);

			if (i == k || mw[i] < 101000 || mw[k] > 319000)
				continue;
			assert_true(straight(&bidders[i], mw[i] - 1000.0) +
					    straight(&bidders[k], mw[k] + 1000.0) <=
				    before + 1e-9);
		}
}

static void watts_that_would_bring_nothing_stay_in_the_pot(void **state)
{
	static const struct takt_power_point flat[] = {{100000, 1}, {150000, 2}, {300000, 2}};
	struct takt_power_bidder bidder = {80000, 300000, 1, flat, 3};
	uint32_t mw;

	assert_int_equal(takt_power_share_out(1000000, &bidder, 1, &mw, NULL), 0);
	assert_int_equal(mw, 150000);
}

static void what_cannot_be_is_said_and_nothing_is_shared(void **state)
{
	static const struct takt_power_point falling[] = {{2, 1}, {1, 2}};
	struct takt_power_bidder pair[2] = {{100, 200, 1, NULL, 0}, {100, 200, 1, NULL, 0}};
	struct takt_err err = {0};
	uint32_t mw[2] = {7, 7};

	assert_int_equal(takt_power_share_out(199, pair, 2, mw, &err), -TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "200 mW at least"));
	pair[1].weight = 0;
	assert_int_equal(takt_power_share_out(300, pair, 2, mw, &err), -EINVAL);
	pair[1] = (struct takt_power_bidder){0, 9, 1, falling, 2};
	assert_int_equal(takt_power_share_out(300, pair, 2, mw, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "bidder 1"));
	assert_int_equal(mw[0], 7);
	assert_int_equal(takt_power_share_out(300, pair, 0, mw, &err), 0);
}

static void without_memory_nothing_is_shared(void **state)
{
	struct takt_power_bidder bidder = {100, 200, 1, NULL, 0};
	uint32_t mw = 7;

	for (uint64_t n = 1; n <= 2; n++) {
		takt_alloc_fail_nth(n, 0);
		assert_int_equal(takt_power_share_out(300, &bidder, 1, &mw, NULL), -ENOMEM);
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(mw, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_other_sharing_is_better),
		cmocka_unit_test(on_a_large_machine_no_exchange_of_a_watt_helps),
		cmocka_unit_test(watts_that_would_bring_nothing_stay_in_the_pot),
		cmocka_unit_test(what_cannot_be_is_said_and_nothing_is_shared),
		cmocka_unit_test(without_memory_nothing_is_shared),
	};

	return cmocka_run_group_tests_name("power share", tests, NULL, NULL);
}
