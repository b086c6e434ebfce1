/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory clocks: touched only when asked for, put back like all else, and given up at the first
 * memory error that was not there before. The boards of the fake machine are the witness.
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
	MEM = TAKT_KNOB_BIT(TAKT_KNOB_MEM_CLOCK),
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

static int try_wish(uint32_t sm_mhz, uint32_t mem_mhz, struct takt_err *err)
{
	struct takt_setting setting = {.sm = {210, sm_mhz}, .mem = {0, mem_mhz}};

	setting.knobs = (sm_mhz ? SM : 0u) | (mem_mhz ? MEM : 0u);
	return takt_keeper_set(kit_keeper(&kit), 0, &setting, 9, 4, kit_now(&kit), err);
}

static void wish(uint32_t sm_mhz, uint32_t mem_mhz)
{
	assert_int_equal(try_wish(sm_mhz, mem_mhz, NULL), 0);
	kit_run(&kit, 50);
}

static void restore(void)
{
	takt_keeper_restore(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
}

static void a_memory_clock_is_clamped_set_and_put_back(void **state)
{
	wish(0, 1300);
	assert_true(board()->mem_locked);
	assert_int_equal(board()->mem_range.min_mhz, 405);
	assert_int_equal(board()->mem_range.max_mhz, 1215);
	assert_int_equal(board()->sets + board()->power_sets, 0);
	assert_int_equal(gpu()->outcome.rc, 0);
	assert_string_equal(gpu()->note, "memory clock set; no memory errors since");
	restore();
	assert_false(board()->mem_locked);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void nobody_touches_it_who_was_not_asked(void **state)
{
	wish(900, 0);
	restore();
	assert_int_equal(board()->mem_sets, 0);
}

static void it_holds_with_the_sm_clock_or_neither_does(void **state)
{
	board()->mem_rc = -EINVAL;
	wish(900, 1215);
	assert_int_equal(gpu()->outcome.rc, -EINVAL);
	board()->mem_rc = 0;
	kit_run(&kit, 1000);
	assert_false(board()->locked);
	assert_false(board()->mem_locked);
}

static void a_board_without_a_list_of_them_says_so(void **state)
{
	struct takt_err err;

	board()->facts.has &= ~(uint32_t)TAKT_FACT_MEM_CLOCKS;
	assert_int_equal(try_wish(0, 1215, &err), -TAKT_E_UNSUPPORTED);
	assert_string_equal(err.msg, "GPU-fake-0 lists no memory clocks");
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	assert_int_equal(board()->mem_sets, 0);
}

static void whoever_comes_after_a_kill_puts_it_back(void **state)
{
	wish(900, 1215);
	kit_die(&kit);
	assert_true(board()->mem_locked);
	kit_start(&kit);
	kit_run(&kit, 50);
	assert_false(board()->mem_locked);
	assert_non_null(strstr(kit.log, "memory [405,1215] MHz"));
}

static void errors_that_were_there_before_are_none_of_its(void **state)
{
	board()->ecc_corrected = 7;
	board()->ecc_uncorrected = 2;
	wish(0, 1215);
	kit_run(&kit, 20000);
	assert_true(board()->mem_locked);
}

static void an_error_that_comes_with_it_ends_it(void **state)
{
	struct takt_err err;

	board()->ecc_corrected = 7;
	wish(900, 1215);
	board()->ecc_corrected = 10;
	kit_run(&kit, 6000);
	assert_false(board()->mem_locked);
	assert_false(board()->locked);
	assert_non_null(strstr(kit.log, "3 corrected and 0 uncorrected memory errors at a memory "
					"clock in [405,1215] MHz: put back"));
	assert_int_equal(try_wish(0, 1215, &err), -EIO);
	assert_non_null(strstr(err.msg, "3 corrected"));
	wish(900, 0); /* the SM clock is another matter */
	assert_true(board()->locked);
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	wish(0, 1215);
	assert_true(board()->mem_locked);
}

static void a_board_that_counts_none_says_so(void **state)
{
	board()->no_ecc = true;
	wish(0, 1215);
	assert_true(board()->mem_locked);
	assert_string_equal(gpu()->note, "memory clock set; memory errors cannot be counted here");
}

static void somebody_elses_is_left_alone(void **state)
{
	wish(0, 1215);
	board()->mem_locked = false; /* nvidia-smi -rmc */
	kit_run(&kit, 12000);
	assert_int_equal(takt_keeper_state(gpu()), TAKT_ACTUATE_FOREIGN);
	assert_non_null(strstr(takt_keeper_says(gpu()), "memory clock 1593 MHz although takt set"));
	assert_int_equal(board()->mem_sets, 1);
}

static void an_administrators_reset_lifts_others(void **state)
{
	board()->mem_locked = true;
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	assert_false(board()->mem_locked);
}

static void the_higher_of_two_jobs_clocks_holds(void **state)
{
	struct takt_actuate_request request = {
		.version = TAKT_ACTUATE_VERSION,
		.op = TAKT_ACTUATE_SET,
		.lease_id = 1,
		.job_id = 1,
		.rank = TAKT_ACTUATE_RANK_JOB,
		.ttl_ns = TAKT_NS_PER_S,
		.mem_max_mhz = 405,
		.uuid = "GPU-fake-0",
	};
	struct takt_actuate_reply reply;

	(void)takt_actuator_request(kit.actuator, 1, &request, kit_now(&kit), &reply);
	request.lease_id = request.job_id = 2;
	request.mem_max_mhz = 1215;
	(void)takt_actuator_request(kit.actuator, 1, &request, kit_now(&kit), &reply);
	kit_run(&kit, 50);
	assert_int_equal(board()->mem_range.max_mhz, 1215);
	kit_run(&kit, 1100);
	assert_false(board()->mem_locked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_memory_clock_is_clamped_set_and_put_back),
		TEST(nobody_touches_it_who_was_not_asked),
		TEST(it_holds_with_the_sm_clock_or_neither_does),
		TEST(a_board_without_a_list_of_them_says_so),
		TEST(whoever_comes_after_a_kill_puts_it_back),
		TEST(errors_that_were_there_before_are_none_of_its),
		TEST(an_error_that_comes_with_it_ends_it),
		TEST(a_board_that_counts_none_says_so),
		TEST(somebody_elses_is_left_alone),
		TEST(an_administrators_reset_lifts_others),
		TEST(the_higher_of_two_jobs_clocks_holds),
	};

	return cmocka_run_group_tests_name("memory clock", tests, NULL, NULL);
}
