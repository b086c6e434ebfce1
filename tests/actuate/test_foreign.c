/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody else sets a GPU that takt has set: it is seen, said and not fought over; what is certain
 * to be another's stays, else takt's own is put back; and what only looks like it is not taken for
 * it. The boards of the fake machine are the witness:
 * `locked`, `range` and how often the driver was called.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "actuate_kit.h"
#include "base/compiler.h"

enum {
	SM = TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK),
	POWER = TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT),
	MEM = TAKT_KNOB_BIT(TAKT_KNOB_MEM_CLOCK),
	OURS_MHZ = 1410,
	THEIRS_MHZ = 705,
	SETTLED_MS = 1500, /* the first look that counts is over */
	LONG_MS = 9000,	   /* the next look, and time to make up one's mind */
};

static struct kit kit;

static struct fake_board *board(void)
{
	return &kit.machine.boards[0];
}

static const struct takt_keeper_gpu *gpu(void)
{
	return &kit_keeper(&kit)->gpus[0];
}

/* At the top of what it may. */
static void is_busy(void)
{
	board()->runs_at_mhz = 0;
	board()->util_pct = 100;
	board()->throttle = 0;
}

static void others_lock(uint32_t min_mhz, uint32_t max_mhz)
{
	board()->locked = true;
	board()->range = (struct takt_clock_range){min_mhz, max_mhz};
}

static int setup(void **state)
{
	kit_init(&kit, 1);
	kit_start(&kit);
	is_busy();
	return 0;
}

static int teardown(void **state)
{
	kit_fini(&kit);
	return 0;
}

static int try_wish(struct takt_setting setting)
{
	return takt_keeper_set(kit_keeper(&kit), 0, &setting, 9, 4, kit_now(&kit), NULL);
}

static void wish(uint32_t min_mhz, uint32_t max_mhz)
{
	assert_int_equal(try_wish((struct takt_setting){.knobs = SM, .sm = {min_mhz, max_mhz}}), 0);
	kit_run(&kit, 50);
}

/* A range that is in force, and was seen to be. */
static void hold(uint32_t min_mhz, uint32_t max_mhz)
{
	wish(min_mhz, max_mhz);
	kit_run(&kit, SETTLED_MS);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_LEASED);
	assert_int_equal(board()->range.max_mhz, max_mhz);
}

/* What seemed to be another's is lifted with takt's own, once; what comes then stays. */
static void assert_put_back(unsigned sets)
{
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_FOREIGN);
	assert_false(board()->locked);
	assert_int_equal(board()->sets, sets);
	assert_int_equal(board()->resets, 1);
	assert_true(strlen(gpu()->verdict) < sizeof(gpu()->verdict) - 1);
	assert_int_equal(try_wish((struct takt_setting){.knobs = SM, .sm = {210, 900}}),
			 -TAKT_E_CONFLICT);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	others_lock(345, THEIRS_MHZ);
	kit_run(&kit, LONG_MS);
	kit_die(&kit);
	kit_start(&kit);
	kit_run(&kit, 50);
	assert_int_equal(board()->range.max_mhz, THEIRS_MHZ);
	assert_int_equal(board()->sets, sets);
	assert_int_equal(board()->resets, 1);
}

static void assert_ours(uint32_t max_mhz)
{
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_LEASED);
	assert_true(board()->locked);
	assert_int_equal(board()->range.max_mhz, max_mhz);
	assert_string_equal(gpu()->note, "");
}

static void a_lower_lock_over_a_ceiling_is_somebody_elses(void **state)
{
	hold(210, OURS_MHZ);
	others_lock(345, THEIRS_MHZ);
	kit_run(&kit, LONG_MS);
	assert_non_null(strstr(takt_keeper_says(gpu()),
			       "SM clock 705 MHz under load for no reason although "
			       "takt set [210,1410] MHz"));
	assert_non_null(strstr(kit.log, "SM clock 705 MHz under load"));
	assert_put_back(1);
}

static void a_lower_lock_over_a_lock_too(void **state)
{
	hold(OURS_MHZ, OURS_MHZ);
	others_lock(345, THEIRS_MHZ);
	kit_run(&kit, LONG_MS);
	assert_put_back(1);
}

/* As a governor does, in every epoch. */
static void who_often_wishes_otherwise_sees_it_too(void **state)
{
	hold(210, OURS_MHZ);
	hold(210, 1200);
	others_lock(345, THEIRS_MHZ);
	assert_int_equal(try_wish((struct takt_setting){.knobs = SM, .sm = {210, 1305}}), 0);
	kit_run(&kit, 2500);
	assert_true(gpu()->settled);
	assert_int_equal(gpu()->outcome.rc, -TAKT_E_CONFLICT);
	assert_put_back(2);
}

static void wishes_that_come_faster_than_looks_do_not_hide_it(void **state)
{
	hold(210, OURS_MHZ);
	others_lock(345, THEIRS_MHZ);
	for (uint32_t i = 0; i < 100 && takt_keeper_state(gpu()) == TAKT_ACTUATE_LEASED; i++) {
		(void)try_wish((struct takt_setting){.knobs = SM, .sm = {210, 900 + 15 * (i % 9)}});
		kit_run(&kit, 100);
	}
	assert_put_back(1);
}

static void a_lock_that_was_lifted_is_not_set_again(void **state)
{
	hold(210, 900);
	board()->locked = false; /* nvidia-smi -rgc */
	assert_int_equal(try_wish((struct takt_setting){.knobs = SM, .sm = {210, 960}}), 0);
	kit_run(&kit, 2500);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_FOREIGN);
	assert_false(board()->locked);
	assert_int_equal(board()->sets, 1);
}

static void a_power_limit_of_others_is_seen_before_it_is_set_otherwise(void **state)
{
	struct takt_setting setting = {.knobs = POWER, .power_limit_mw = 250000};

	assert_int_equal(try_wish(setting), 0);
	kit_run(&kit, SETTLED_MS);
	board()->power_limit_mw = 350000; /* nvidia-smi -pl 350 */
	setting.power_limit_mw = 200000;
	assert_int_equal(try_wish(setting), 0);
	kit_run(&kit, 50);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_FOREIGN);
	assert_int_equal(board()->power_limit_mw, 350000);
}

static void another_wish_is_set_at_once_where_all_is_well(void **state)
{
	hold(210, OURS_MHZ);
	wish(210, 900);
	assert_ours(900);
	wish(210, OURS_MHZ); /* its clock has not come to the one before */
	assert_ours(OURS_MHZ);
	board()->silent_samples = true;
	kit_run(&kit, SETTLED_MS);
	wish(210, 900);
	kit_run(&kit, 600);
	assert_ours(900);
}

static void putting_back_waits_for_no_look(void **state)
{
	hold(210, OURS_MHZ);
	board()->silent_samples = true;
	assert_int_equal(try_wish((struct takt_setting){.knobs = SM, .sm = {210, 900}}), 0);
	kit_run(&kit, 50); /* the look is under way */
	takt_keeper_restore(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 20);
	assert_false(board()->locked);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_CLEAN);
}

static void what_explains_a_low_clock_is_nobodys_doing(void **state)
{
	static const uint64_t reasons[] = {
		TAKT_THROTTLE_IDLE,	   TAKT_THROTTLE_APP_CLOCKS,  TAKT_THROTTLE_SW_POWER,
		TAKT_THROTTLE_HW_SLOWDOWN, TAKT_THROTTLE_SYNC_BOOST,  TAKT_THROTTLE_SW_THERMAL,
		TAKT_THROTTLE_HW_THERMAL,  TAKT_THROTTLE_POWER_BRAKE, TAKT_THROTTLE_DISPLAY,
	};

	hold(210, OURS_MHZ);
	board()->runs_at_mhz = 705;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(reasons); i++) {
		board()->throttle = reasons[i];
		kit_run(&kit, LONG_MS);
		wish(210, OURS_MHZ);
		assert_ours(OURS_MHZ);
	}
	board()->throttle = 0;
	board()->power_mw = 380000; /* of 400 W: the reason may just not show */
	kit_run(&kit, LONG_MS);
	assert_ours(OURS_MHZ);
	board()->power_mw = 0;
	board()->util_pct = 60; /* works in bursts */
	kit_run(&kit, LONG_MS);
	assert_ours(OURS_MHZ);
}

/* Memory at a lower clock of takt's own takes the SM clock along. */
static void a_slow_memory_clock_explains_it_too(void **state)
{
	hold(210, OURS_MHZ);
	assert_int_equal(try_wish((struct takt_setting){
				 .knobs = SM | MEM, .sm = {210, OURS_MHZ}, .mem = {405, 405}}),
			 0);
	board()->runs_at_mhz = 705;
	kit_run(&kit, LONG_MS);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_LEASED);
}

static void what_is_not_told_tells_nothing(void **state)
{
	static const uint32_t bits[] = {TAKT_HAS_SM_CLOCK, TAKT_HAS_THROTTLE, TAKT_HAS_GPU_UTIL};

	hold(210, OURS_MHZ);
	board()->runs_at_mhz = 705;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(bits); i++) {
		board()->has_not = bits[i];
		kit_run(&kit, LONG_MS);
		assert_ours(OURS_MHZ);
	}
	board()->has_not = 0;
	board()->silent_samples = true;
	kit_run(&kit, LONG_MS);
	assert_ours(OURS_MHZ);
}

static void a_moment_of_it_is_no_sign(void **state)
{
	hold(210, OURS_MHZ);
	for (int i = 0; i < 20; i++) {
		board()->runs_at_mhz = 705;
		kit_run(&kit, 1500);
		board()->runs_at_mhz = 0;
		kit_run(&kit, 800);
	}
	assert_ours(OURS_MHZ);
}

/* A list that goes on above what the board does, and one that grows warm. */
static void a_board_that_never_comes_to_its_top_is_left_alone(void **state)
{
	board()->runs_at_mhz = 1700;
	wish(210, 1980);
	kit_run(&kit, 30000);
	board()->runs_at_mhz = 1620;
	kit_run(&kit, 30000);
	assert_ours(1980);
}

/* The load comes when theirs is there already. */
static void one_that_came_to_it_idle_is_known_to_come_to_it(void **state)
{
	board()->util_pct = 0;
	hold(210, OURS_MHZ);
	is_busy();
	others_lock(345, THEIRS_MHZ);
	kit_run(&kit, LONG_MS);
	assert_put_back(1);
}

static void a_clock_that_never_came_is_put_back_and_not_set_again(void **state)
{
	board()->runs_at_mhz = 705;
	wish(OURS_MHZ, OURS_MHZ);
	assert_ours(OURS_MHZ);
	kit_run(&kit, 5000);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_INEFFECTIVE);
	assert_non_null(
		strstr(takt_keeper_says(gpu()), "set to [1410,1410] MHz it ran at 705 MHz"));
	assert_true(strlen(gpu()->verdict) < sizeof(gpu()->verdict) - 1);
	assert_false(board()->locked); /* it may have been in force: a GPU is never left changed */
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	assert_int_equal(try_wish((struct takt_setting){.knobs = SM, .sm = {210, 900}}),
			 -TAKT_E_CONFLICT);
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	is_busy();
	kit_run(&kit, 50);
	hold(210, 900);
	assert_ours(900);
}

/* No reason shows, and nobody else has done anything: takt's own lock is there all the time. */
static void a_low_clock_for_reasons_unknown_leaves_no_lock_of_takts(void **state)
{
	hold(210, OURS_MHZ);
	board()->runs_at_mhz = 705;
	kit_run(&kit, LONG_MS);
	assert_put_back(1);
}

/* What went wrong meanwhile is said as long as it does, and no longer. */
static void a_verdict_outlives_a_restore_that_was_refused(void **state)
{
	board()->runs_at_mhz = 705;
	board()->reset_rc = -EIO;
	wish(OURS_MHZ, OURS_MHZ);
	kit_run(&kit, 5000);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_CHANGED);
	assert_non_null(strstr(takt_keeper_says(gpu()), "left changed, restoring failed"));
	board()->reset_rc = 0;
	kit_run(&kit, 30000);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_INEFFECTIVE);
	assert_non_null(strstr(takt_keeper_says(gpu()), "set to [1410,1410] MHz it ran at"));
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	assert_string_equal(takt_keeper_says(gpu()), "");
}

static void a_lock_that_cannot_be_put_back_stays_on_record(void **state)
{
	hold(210, OURS_MHZ);
	board()->runs_at_mhz = 705;
	board()->reset_rc = -EIO;
	kit_run(&kit, LONG_MS);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_CHANGED);
	assert_false(takt_keeper_all_clean(kit_keeper(&kit)));
	kit_die(&kit);
	board()->reset_rc = 0;
	kit_start(&kit);
	kit_run(&kit, 50);
	assert_false(board()->locked);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void every_look_may_be_the_last_before_death(void **state)
{
	for (unsigned ms = 0; ms < 4000; ms += 130) {
		hold(210, OURS_MHZ);
		others_lock(345, THEIRS_MHZ);
		kit_run(&kit, ms);
		kit_die(&kit);
		kit_start(&kit);
		kit_run(&kit, 50);
		/* Seen or not: takt's own may have been there still. */
		assert_false(board()->locked);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(a_lower_lock_over_a_ceiling_is_somebody_elses),
		CASE(a_lower_lock_over_a_lock_too),
		CASE(who_often_wishes_otherwise_sees_it_too),
		CASE(wishes_that_come_faster_than_looks_do_not_hide_it),
		CASE(a_lock_that_was_lifted_is_not_set_again),
		CASE(a_power_limit_of_others_is_seen_before_it_is_set_otherwise),
		CASE(another_wish_is_set_at_once_where_all_is_well),
		CASE(putting_back_waits_for_no_look),
		CASE(what_explains_a_low_clock_is_nobodys_doing),
		CASE(a_slow_memory_clock_explains_it_too),
		CASE(what_is_not_told_tells_nothing),
		CASE(a_moment_of_it_is_no_sign),
		CASE(a_board_that_never_comes_to_its_top_is_left_alone),
		CASE(one_that_came_to_it_idle_is_known_to_come_to_it),
		CASE(a_clock_that_never_came_is_put_back_and_not_set_again),
		CASE(a_low_clock_for_reasons_unknown_leaves_no_lock_of_takts),
		CASE(a_verdict_outlives_a_restore_that_was_refused),
		CASE(a_lock_that_cannot_be_put_back_stays_on_record),
		CASE(every_look_may_be_the_last_before_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
