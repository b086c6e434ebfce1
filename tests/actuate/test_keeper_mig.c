/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How GPUs are cut into MIG instances: set, and put back as declared or found, whoever dies and
 * whatever call fails, and never while a process is on the GPU. The fake board is the witness.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "actuate_kit.h"
#include "base/str.h"

#define FOUND "9:0,9:4"
#define CUT   "3g.40gb,1g.10gb"

static struct kit kit;

static int setup(void **state)
{
	kit_init(&kit, 2);
	kit_start(&kit);
	return 0;
}

static int teardown(void **state)
{
	kit_fini(&kit);
	return 0;
}

static struct fake_board *board(void)
{
	return &kit.machine.boards[0];
}

static struct takt_keeper_mig *mig(void)
{
	return &kit_keeper(&kit)->gpus[0].mig;
}

/* What was answered when it was tried once. */
static int cut(const char *layout)
{
	int rc = takt_keeper_mig_set(kit_keeper(&kit), 0, layout, kit_now(&kit), NULL);

	for (unsigned ms = 0; rc == 0 && !mig()->settled && ms < 60000; ms += 100)
		kit_run(&kit, 100);
	assert_true(rc < 0 || mig()->settled);
	return rc < 0 ? rc : mig()->outcome.rc;
}

static void start_anew(void)
{
	kit_die(&kit);
	kit_start(&kit);
	kit_run(&kit, 100);
}

static bool is_clean(void)
{
	return takt_keeper_all_clean(kit_keeper(&kit)) && !mig()->changed;
}

static void a_layout_is_set_and_put_back(void **state)
{
	assert_int_equal(cut(CUT), 0);
	assert_string_equal(board()->mig, CUT);
	assert_false(is_clean());
	assert_int_equal(takt_keeper_state(&kit_keeper(&kit)->gpus[0]), TAKT_ACTUATE_CLEAN);
	assert_int_equal(cut("none"), 0);
	assert_string_equal(board()->mig, "none");
	assert_int_equal(cut(""), 0);
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
	assert_string_equal(kit.machine.boards[1].mig, FOUND);
	assert_int_equal(kit.machine.boards[1].mig_sets, 0);
}

static void what_is_found_is_looked_up_before_the_change(void **state)
{
	takt_strcpy(board()->mig, TAKT_MIG_TEXT, "0:0"); /* by hand, since we started */
	assert_int_equal(cut(CUT), 0);
	assert_int_equal(cut(""), 0);
	assert_string_equal(board()->mig, "0:0");
}

static void whoever_comes_after_a_kill_puts_it_back(void **state)
{
	assert_int_equal(cut(CUT), 0);
	start_anew();
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
	assert_non_null(strstr(kit.log, "was left changed"));
}

static void a_stop_puts_it_back(void **state)
{
	assert_int_equal(cut(CUT), 0);
	takt_actuator_end_all(kit.actuator, kit_now(&kit));
	kit_run(&kit, 100);
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
}

static void what_is_declared_is_the_way_back(void **state)
{
	struct takt_err err;

	assert_int_equal(takt_baseline_parse("GPU-fake-0 reset mig 0\n", 23, &kit.baseline, &err),
			 0);
	assert_int_equal(cut(CUT), 0);
	start_anew();
	assert_string_equal(board()->mig, "0");
	assert_true(is_clean());
}

static void nothing_is_changed_under_a_process(void **state)
{
	board()->mig_in_use = true;
	assert_int_equal(cut(CUT), -TAKT_E_BUSY);
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
}

static void what_is_in_use_is_put_back_when_it_is_not_any_more(void **state)
{
	assert_int_equal(cut(CUT), 0);
	board()->mig_in_use = true;
	start_anew();
	kit_run(&kit, 5000);
	assert_string_equal(board()->mig, CUT);
	assert_int_equal(takt_keeper_state(&kit_keeper(&kit)->gpus[0]), TAKT_ACTUATE_CHANGED);
	assert_false(is_clean());
	assert_non_null(strstr(mig()->note, "left changed"));
	board()->mig_in_use = false;
	kit_run(&kit, 31000);
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
	assert_int_equal(takt_keeper_state(&kit_keeper(&kit)->gpus[0]), TAKT_ACTUATE_CLEAN);
}

static void a_half_done_change_is_undone(void **state)
{
	board()->mig_rc = -EIO;
	assert_int_equal(cut(CUT), -EIO);
	kit_run(&kit, 1000);
	assert_false(is_clean());
	board()->mig_rc = 0;
	kit_run(&kit, 31000);
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
}

static void a_refused_second_change_leaves_the_first(void **state)
{
	assert_int_equal(cut(CUT), 0);
	board()->mig_in_use = true;
	assert_int_equal(cut("none"), -TAKT_E_BUSY);
	kit_run(&kit, 1000);
	assert_string_equal(board()->mig, CUT);
	assert_string_equal(mig()->wish, CUT);
	board()->mig_in_use = false;
	assert_int_equal(cut(""), 0);
	assert_string_equal(board()->mig, FOUND);
}

static void what_waits_to_be_put_back_is_not_forgotten_over_a_refused_change(void **state)
{
	assert_int_equal(cut(CUT), 0);
	board()->mig_in_use = true;
	start_anew();
	assert_int_equal(cut("none"), -TAKT_E_BUSY);
	kit_run(&kit, 1000);
	assert_false(is_clean());
	board()->mig_in_use = false;
	kit_run(&kit, 31000);
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
}

static void without_permission_it_names_the_commands(void **state)
{
	board()->mig_rc = -EPERM;
	assert_int_equal(cut(CUT), -EPERM);
	assert_non_null(strstr(mig()->outcome.msg, "nvidia-smi mig -cgi " CUT));
	assert_true(is_clean());
}

static void a_late_answer_counts(void **state)
{
	board()->hangs = board()->hangs_inside = board()->mig_shows = true;
	assert_int_equal(takt_keeper_mig_set(kit_keeper(&kit), 0, CUT, kit_now(&kit), NULL), 0);
	kit_run(&kit, 40000);
	assert_true(mig()->settled);
	assert_int_equal(mig()->outcome.rc, -ETIMEDOUT);
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 100);
	assert_string_equal(board()->mig, CUT);
	assert_int_equal(cut(""), 0);
	assert_string_equal(board()->mig, FOUND);
}

static void a_look_that_hangs_is_called_off(void **state)
{
	board()->hangs = true;
	assert_int_equal(takt_keeper_mig_set(kit_keeper(&kit), 0, CUT, kit_now(&kit), NULL), 0);
	kit_run(&kit, 40000);
	assert_true(mig()->settled);
	assert_int_equal(mig()->outcome.rc, -ETIMEDOUT);
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 1000);
	assert_string_equal(board()->mig, FOUND);
	assert_true(is_clean());
	assert_int_equal(cut(CUT), 0);
	assert_string_equal(board()->mig, CUT);
}

static void the_same_again_is_set_again(void **state)
{
	assert_int_equal(cut(CUT), 0);
	takt_strcpy(board()->mig, TAKT_MIG_TEXT, "none"); /* by hand */
	assert_int_equal(cut(CUT), 0);
	assert_string_equal(board()->mig, CUT);
	assert_int_equal(cut(""), 0);
	assert_string_equal(board()->mig, FOUND);
}

/* It is in force from then on, and what was found by hand meanwhile is the way back without it. */
static void a_declaration_is_in_force_at_once(void **state)
{
	struct takt_baseline_rule was = {0};
	struct takt_err err;

	takt_strcpy(board()->mig, TAKT_MIG_TEXT, "0:0");
	assert_int_equal(takt_baseline_parse("GPU-fake-0 reset mig 9\n", 23, &kit.baseline, &err),
			 0);
	board()->mig_in_use = true;
	takt_keeper_declare(kit_keeper(&kit), 0, &was, kit_now(&kit));
	kit_run(&kit, 1000);
	assert_int_equal(mig()->outcome.rc, -TAKT_E_BUSY);
	assert_int_equal(takt_baseline_parse("", 0, &kit.baseline, &err), 0);
	board()->mig_in_use = false;
	takt_keeper_declare(kit_keeper(&kit), 0, &was, kit_now(&kit));
	kit_run(&kit, 1000);
	assert_string_equal(board()->mig, "0:0");
	assert_true(is_clean());
	assert_int_equal(takt_baseline_parse("GPU-fake-0 reset mig 9\n", 23, &kit.baseline, &err),
			 0);
	takt_keeper_declare(kit_keeper(&kit), 0, &was, kit_now(&kit));
	kit_run(&kit, 1000);
	assert_string_equal(board()->mig, "9");
	assert_true(is_clean());
}

static void what_cannot_be_cut_is_refused(void **state)
{
	assert_int_equal(cut("3g.40gb,"), -EINVAL);
	board()->facts.mig_enabled = false;
	assert_int_equal(cut(CUT), -TAKT_E_UNSUPPORTED);
	board()->facts.has &= ~TAKT_FACT_MIG;
	assert_int_equal(cut(CUT), -TAKT_E_UNSUPPORTED);
	assert_int_equal(board()->mig_sets, 0);
}

static void without_a_guard_nothing_is_cut(void **state)
{
	kit_keeper(&kit)->guarded = false;
	assert_int_equal(cut(CUT), -TAKT_E_UNAVAILABLE);
	assert_string_equal(board()->mig, FOUND);
}

static void clocks_and_instances_keep_out_of_each_others_way(void **state)
{
	const struct takt_setting setting = {.knobs = TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK),
					     .sm = {210, 900}};

	assert_int_equal(takt_keeper_set(kit_keeper(&kit), 0, &setting, 1, 1, kit_now(&kit), NULL),
			 0);
	assert_int_equal(cut(CUT), 0);
	kit_run(&kit, 2000);
	assert_true(board()->locked);
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 2000);
	assert_false(board()->locked);
	assert_string_equal(board()->mig, CUT);
	start_anew();
	assert_string_equal(board()->mig, FOUND);
}

/* Each call of the kernel fails once: what was not done is said, what was is known. */
static void a_call_that_fails_leaves_nothing_unknown(void **state)
{
	for (unsigned long nth = 1; nth < 40; nth++) {
		int rc;

		fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, nth, EIO, false);
		rc = cut(CUT);
		fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, 0, 0, false);
		if (rc < 0)
			assert_string_equal(board()->mig, FOUND);
		start_anew();
		kit_run(&kit, 2000);
		assert_string_equal(board()->mig, FOUND);
		assert_true(is_clean());
	}
}

static void putting_back_is_tried_until_it_works(void **state)
{
	for (unsigned long nth = 1; nth < 40; nth++) {
		assert_int_equal(cut(CUT), 0);
		fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, nth, EIO, false);
		(void)cut("");
		fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, 0, 0, false);
		if (kit_keeper(&kit)->stale)
			start_anew();
		kit_run(&kit, 2000);
		assert_string_equal(board()->mig, FOUND);
		assert_true(is_clean());
	}
}

/* Instances do not outlive it. */
static void the_power_goes_at_every_call(void **state)
{
	for (unsigned long nth = 1; nth < 40; nth++) {
		fake_sys_cut_power_at(kit.world, nth);
		(void)takt_keeper_mig_set(kit_keeper(&kit), 0, CUT, kit_now(&kit), NULL);
		kit_run(&kit, 100);
		fake_sys_power_loss(kit.world, nth);
		kit_die(&kit);
		takt_strcpy(board()->mig, TAKT_MIG_TEXT, FOUND);
		kit_start(&kit);
		kit_run(&kit, 100);
		assert_true(is_clean());
		assert_string_equal(board()->mig, FOUND);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_layout_is_set_and_put_back),
		TEST(what_is_found_is_looked_up_before_the_change),
		TEST(whoever_comes_after_a_kill_puts_it_back),
		TEST(a_stop_puts_it_back),
		TEST(what_is_declared_is_the_way_back),
		TEST(nothing_is_changed_under_a_process),
		TEST(what_is_in_use_is_put_back_when_it_is_not_any_more),
		TEST(a_half_done_change_is_undone),
		TEST(a_refused_second_change_leaves_the_first),
		TEST(what_waits_to_be_put_back_is_not_forgotten_over_a_refused_change),
		TEST(without_permission_it_names_the_commands),
		TEST(a_late_answer_counts),
		TEST(a_look_that_hangs_is_called_off),
		TEST(the_same_again_is_set_again),
		TEST(a_declaration_is_in_force_at_once),
		TEST(what_cannot_be_cut_is_refused),
		TEST(without_a_guard_nothing_is_cut),
		TEST(clocks_and_instances_keep_out_of_each_others_way),
		TEST(a_call_that_fails_leaves_nothing_unknown),
		TEST(putting_back_is_tried_until_it_works),
		TEST(the_power_goes_at_every_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
