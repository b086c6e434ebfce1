/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every governor, whatever it is told: boards of any kind, observations that lack
 * anything or are nonsense, drawn at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "governor_kit.h"

enum {
	RUNS = 8,
	EPOCHS = 160,
};

static const uint32_t few[] = {135, 705, 1200, 1380};
static const uint32_t one[] = {900};

static struct takt_governor_board board(uint32_t kind)
{
	struct takt_governor_board ret = {
		.can = kind % 4, /* none, clocks, power, both */
		.power_min_mw = 100000,
		.power_default_mw = 250000,
		.power_max_mw = 300000,
		.power_step_mw = kind % 3 ? 25000 : 0,
		.has_base_mhz = kind % 5 == 0,
		.base_mhz = 1065,
	};

	ret.sm_mhz = kind % 7 == 0 ? one : kind % 2 ? kit_clocks : few;
	ret.sm_count = kind % 7 == 0 ? 1 : kind % 2 ? KIT_CLOCKS : TAKT_ARRAY_LEN(few);
	return ret;
}

static double odd(struct takt_rng *rng, double fine)
{
	static const double values[] = {0, -1, 1e300, 1e-300, INFINITY, -INFINITY, NAN};

	return takt_rng_below(rng, 8) ? fine : values[takt_rng_below(rng, TAKT_ARRAY_LEN(values))];
}

static uint32_t any32(struct takt_rng *rng, uint32_t fine)
{
	return takt_rng_below(rng, 8) ? (uint32_t)takt_rng_below(rng, (uint64_t)fine + 1)
				      : (uint32_t)takt_rng_next(rng);
}

/* In half of them the setting in force is what was wished for, as governors expect. */
static void draw(struct takt_rng *rng, const struct takt_governor_wish *wish, uint64_t *now_ns,
		 struct takt_governor_observation *ret)
{
	uint64_t epoch_ns = takt_rng_below(rng, 10) ? 2000000000 : takt_rng_below(rng, 3);

	*now_ns += epoch_ns;
	*ret = (struct takt_governor_observation){
		.has = takt_rng_below(rng, 3) ? 0x1ffff : (uint32_t)takt_rng_next(rng),
		.now_ns = *now_ns,
		.epoch_ns = epoch_ns,
		.gap_ns = takt_rng_below(rng, 4) ? 0 : 200000000,
		.cap = wish->cap,
		.foreign = takt_rng_below(rng, 60) == 0,
		.idle = takt_rng_below(rng, 30) == 0,
		.work = odd(rng, 900 + (double)takt_rng_below(rng, 200)),
		.signal = (enum takt_governor_signal)takt_rng_below(rng, 4),
		.work_error = odd(rng, 0.02),
		.energy_mj = takt_rng_below(rng, 8) ? takt_rng_below(rng, 600000) : UINT64_MAX,
		.power_mw = any32(rng, 300000),
		.sm_mhz = any32(rng, 1410),
		.mem_mhz = any32(rng, 1215),
		.gpu_util_permille = any32(rng, 1000),
		.mem_util_permille = any32(rng, 1000),
		.dram_active_permille = any32(rng, 1000),
		.sm_active_permille = any32(rng, 1000),
		.tensor_active_permille = any32(rng, 1000),
		.temp_c = (int32_t)any32(rng, 90),
		.throttle = takt_rng_below(rng, 10) ? 0 : takt_rng_next(rng),
		.remaining_ns = takt_rng_next(rng),
		.latency_us = any32(rng, 100000),
		.load = odd(rng, (double)takt_rng_below(rng, 1000)),
		.load_ahead = odd(rng, (double)takt_rng_below(rng, 1000)),
		.budget_mw = any32(rng, 300000),
	};
	if (takt_rng_below(rng, 2))
		ret->cap.max_mhz = any32(rng, 1410);
}

/* `fixed` cannot begin without being told what to hold. */
static const struct takt_governor_param held[] = {{"sm_mhz", 800}, {"power_mw", 200000}};

static void set_up(uint32_t kind, const struct takt_governor *governor,
		   struct takt_governor_setup *ret)
{
	*ret = (struct takt_governor_setup){.board = board(kind), .seed = kind};
	ret->job.has_promise = kind % 3 != 0;
	ret->job.max_slowdown_permille = kind % 3 * 50;
	ret->job.has_latency = kind % 2;
	ret->job.latency_target_us = 50000;
	ret->job.latency_permille = 990;
	if (strcmp(governor->name, "fixed") == 0) {
		ret->params = held;
		ret->param_count = 2;
	}
}

static void begin(const struct takt_governor *governor, uint32_t kind,
		  struct takt_governor_setup *setup, char *state)
{
	set_up(kind, governor, setup);
	assert_true(governor->state_bytes <= KIT_STATE);
	assert_int_equal(takt_governor_init(governor, state, setup, NULL), 0);
}

static bool is_listed(const struct takt_governor_board *of, uint32_t mhz)
{
	for (size_t i = 0; i < of->sm_count; i++)
		if (of->sm_mhz[i] == mhz)
			return true;
	return false;
}

static void expect_settable(const struct takt_governor *governor,
			    const struct takt_governor_board *of,
			    const struct takt_governor_wish *wish)
{
	const struct takt_governor_cap *cap = &wish->cap;

	if (cap->sets & ~of->can)
		fail_msg("%s asks for what the board cannot", governor->name);
	if ((cap->sets & TAKT_ACTUATE_CLOCKS) &&
	    (!is_listed(of, cap->max_mhz) || cap->min_mhz > cap->max_mhz))
		fail_msg("%s asks for %u..%u MHz", governor->name, cap->min_mhz, cap->max_mhz);
	if ((cap->sets & TAKT_ACTUATE_POWER) &&
	    (cap->power_mw < of->power_min_mw || cap->power_mw > of->power_default_mw))
		fail_msg("%s asks for %u mW", governor->name, cap->power_mw);
	if (!isfinite(wish->bid))
		fail_msg("%s bids %g", governor->name, wish->bid);
}

static void wishes_are_what_the_board_can_hold_and_never_above_its_default(void **state)
{
	union {
		char bytes[KIT_STATE];
		double align;
	} own;

	for (size_t g = 0; takt_governor_all[g]; g++)
		for (uint32_t kind = 0; kind < 4 * RUNS; kind++) {
			const struct takt_governor *governor = takt_governor_all[g];
			struct takt_governor_observation seen = {.has = 0};
			struct takt_governor_setup setup;
			struct takt_governor_wish wish;
			struct takt_rng rng;
			uint64_t now_ns = 0;

			takt_rng_init(&rng, kind);
			begin(governor, kind, &setup, own.bytes);
			for (uint32_t i = 0; i < EPOCHS; i++) {
				takt_governor_step(governor, own.bytes, &setup, &seen, &wish);
				expect_settable(governor, &setup.board, &wish);
				draw(&rng, &wish, &now_ns, &seen);
			}
		}
}

/* Two states side by side; the second is replaced by a copy of the first's bytes on the way, in
 * other memory, while the first goes on. */
static void expect_same(const struct takt_governor *governor, uint32_t kind, uint32_t copied_at)
{
	union {
		char bytes[KIT_STATE];
		double align;
	} first, second;
	struct takt_governor_setup setup, same;
	struct takt_governor_observation seen = {.has = 0};
	struct takt_governor_wish wish, again;
	struct takt_rng rng;
	uint64_t now_ns = 0;

	takt_rng_init(&rng, kind);
	memset(&first, 0x55, sizeof(first));
	memset(&second, 0xaa, sizeof(second));
	begin(governor, kind, &setup, first.bytes);
	begin(governor, kind, &same, second.bytes);
	for (uint32_t i = 0; i < EPOCHS; i++) {
		if (i == copied_at) {
			memset(&second, 0xaa, sizeof(second));
			memcpy(second.bytes, first.bytes, governor->state_bytes);
		}
		takt_governor_step(governor, first.bytes, &setup, &seen, &wish);
		takt_governor_step(governor, second.bytes, &same, &seen, &again);
		if (wish.reason != again.reason || wish.cap.sets != again.cap.sets ||
		    wish.cap.max_mhz != again.cap.max_mhz ||
		    wish.cap.power_mw != again.cap.power_mw || wish.probe != again.probe)
			fail_msg("%s differs at epoch %u of run %u", governor->name, i, kind);
		draw(&rng, &wish, &now_ns, &seen);
	}
}

static void equal_inputs_give_equal_wishes(void **state)
{
	for (size_t g = 0; takt_governor_all[g]; g++)
		for (uint32_t kind = 0; kind < RUNS; kind++)
			expect_same(takt_governor_all[g], kind, EPOCHS);
}

static void a_stored_state_goes_on_as_if_nothing_had_been(void **state)
{
	for (size_t g = 0; takt_governor_all[g]; g++)
		for (uint32_t kind = 0; kind < RUNS; kind++)
			expect_same(takt_governor_all[g], kind, 20 + 15 * kind);
}

static void nobody_fights_with_a_foreign_writer(void **state)
{
	static const char *const names[] = {"utilisation", "ladder",  "memory-bound", "idle-drop",
					    "zeus-cost",   "geepafs", "power-budget", "qlearning",
					    "slo",	   "forecast"};
	struct takt_governor_observation seen = {.foreign = true};

	seen.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_POWER | TAKT_OBSERVED_GPU_UTIL |
		   TAKT_OBSERVED_BUDGET;
	seen.epoch_ns = 2000000000;
	seen.work = 1000;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		struct kit kit;

		kit_begin(&kit, names[i]);
		kit_run(&kit, 40);
		seen.cap = kit.wish.cap;
		kit_tell(&kit, &seen);
		assert_int_equal(kit.wish.cap.sets, 0);
		assert_int_equal(kit.wish.reason, TAKT_REASON_FOREIGN);
	}
}

/* Nothing says how fast the job is: a promise cannot be kept by guessing. */
static void without_a_signal_the_highest_clock_stays(void **state)
{
	static const char *const names[] = {"ladder", "memory-bound", "zeus-cost", "qlearning"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		struct kit kit;

		kit_begin(&kit, names[i]);
		kit.hide = TAKT_OBSERVED_WORK;
		kit_run(&kit, 100);
		assert_int_equal(kit.wish.reason, TAKT_REASON_NO_SIGNAL);
		assert_true(kit.worst == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wishes_are_what_the_board_can_hold_and_never_above_its_default),
		cmocka_unit_test(equal_inputs_give_equal_wishes),
		cmocka_unit_test(a_stored_state_goes_on_as_if_nothing_had_been),
		cmocka_unit_test(nobody_fights_with_a_foreign_writer),
		cmocka_unit_test(without_a_signal_the_highest_clock_stays),
	};

	return cmocka_run_group_tests_name("governors", tests, NULL, NULL);
}
