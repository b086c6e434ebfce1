/* SPDX-License-Identifier: Apache-2.0 */
/* What takt doctor asks of each board, read from a driver that gives each another answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/timetypes.h"
#include "device/gpu_board.h"
#include "fake_nvml.h"

static struct takt_gpu_boards *read_boards(void)
{
	struct takt_gpu_boards *boards = NULL;
	struct takt_err err = {0};

	assert_int_equal(takt_gpu_boards_read(NULL, 120 * TAKT_NS_PER_S, &boards, &err), 0);
	assert_int_equal(boards->count, FAKE_GPUS);
	return boards;
}

static void a_board_on_a_battery_is_told_from_one_on_the_mains(void **state)
{
	struct takt_gpu_boards *boards = read_boards();

	for (uint32_t i = 0; i < FAKE_GPUS; i++) {
		assert_true(boards->at[i].has & TAKT_BOARD_BATTERY);
		assert_int_equal(boards->at[i].on_battery, i == 1);
	}
	takt_free(boards);
}

static void a_driver_that_does_not_say_is_not_spoken_for(void **state)
{
	struct takt_gpu_boards *boards;

	fake_hide("nvmlDeviceGetPowerSource");
	boards = read_boards();
	for (uint32_t i = 0; i < FAKE_GPUS; i++)
		assert_false(boards->at[i].has & TAKT_BOARD_BATTERY);
	takt_free(boards);
}

static int begin_anew(void **state)
{
	fake_reset();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_board_on_a_battery_is_told_from_one_on_the_mains,
				       begin_anew),
		cmocka_unit_test_setup(a_driver_that_does_not_say_is_not_spoken_for, begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
