/* SPDX-License-Identifier: Apache-2.0 */
/* Noise of readings: as large as the board says, on readings alone, and the same for everybody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "abi/nvml.h"
#include "twin_board_file.h"
#include "twin_noise.h"
#include "twin_physics.h"

static const uint64_t T0 = 1000 * TWIN_CELL_NS, SECOND = 1000000000;

enum {
	CELLS = 20000
};

static struct twin_board h100(void)
{
	struct takt_err err = {0};
	struct twin_board board;

	if (twin_board_load("h100-sxm", NULL, &board, &err) < 0)
		fail_msg("%s", err.msg);
	return board;
}

static void burn(struct twin_gpu *gpu, const struct twin_board *board, uint64_t seed)
{
	memset(gpu, 0, sizeof(*gpu));
	twin_physics_init(gpu, board, T0);
	gpu->noise_seed = seed;
	gpu->load_count = 1;
	gpu->loads[0] = (struct twin_load){
		.pid = 1,
		.lease_until_ns = 1ull << 62,
		.step_ns = 100000000,
		.pace_permille = 1000,
		.link_permille = 1000,
		.profile = {.phase_count = 1,
			    .phases = {{TWIN_PHASE_COMPUTE, 1000, 1000, 110, 1000, 950}}},
	};
	twin_physics_settle(gpu, board);
	twin_physics_advance(gpu, board, T0 + 600 * SECOND);
}

static void draws_are_normal_enough(void **state)
{
	int64_t sum = 0, squares = 0;
	unsigned beyond_two = 0;

	for (uint64_t cell = 0; cell < CELLS; cell++) {
		int32_t draw = twin_noise_draw(77, cell, 0);
		assert_in_range(draw + 3465, 0, 6930);
		sum += draw;
		squares += (int64_t)draw * draw;
		beyond_two += abs(draw) > 2000;
	}
	assert_in_range(sum / CELLS + 30, 0, 60);
	assert_in_range(squares / CELLS, 960000, 1040000);
	assert_in_range(beyond_two * 1000 / CELLS, 30, 60); /* 46 of a normal one */
	assert_int_not_equal(twin_noise_draw(77, 5, 0), twin_noise_draw(78, 5, 0));
	assert_int_not_equal(twin_noise_draw(77, 5, 0), twin_noise_draw(77, 5, 1));
}

/* 2 permille of 67 W at rest and 25 of what is beyond; a mean of ten cells has a third of it. */
static void power_deviates_as_the_board_says_and_energy_does_not(void **state)
{
	struct twin_board board = h100();
	struct twin_gpu gpu, quiet, seen;
	uint64_t instant = 0, average = 0, mean = 0, true_mw;

	burn(&gpu, &board, 42);
	burn(&quiet, &board, 0);
	true_mw = gpu.power_uw[0] / 1000;
	for (unsigned i = 0; i < 2000; i++) {
		int64_t off;
		twin_physics_advance(&gpu, &board, gpu.at_ns + SECOND);
		seen = gpu;
		twin_noise_add(&seen, &board);
		off = (int64_t)twin_physics_power_reading_mw(&seen, &board, false) -
		      (int64_t)true_mw;
		instant += (uint64_t)(off * off);
		mean += twin_physics_power_reading_mw(&seen, &board, true);
		off = (int64_t)twin_physics_power_reading_mw(&seen, &board, true) -
		      (int64_t)true_mw;
		average += (uint64_t)(off * off);
	}
	/* 14.3 W, and 4.5 */
	assert_in_range(instant / 2000, 13000ull * 13000, 15600ull * 15600);
	assert_in_range(average / 2000, 4000ull * 4000, 5000ull * 5000);
	assert_in_range(mean / 2000, true_mw - 500, true_mw + 500);
	twin_physics_advance(&quiet, &board, gpu.at_ns);
	assert_int_equal(gpu.energy_nj, quiet.energy_nj);
	assert_int_equal(gpu.loads[0].work_ns, quiet.loads[0].work_ns);
	assert_int_equal(gpu.temp_uc, quiet.temp_uc);
}

static void all_read_the_same_and_a_seed_reads_it_again(void **state)
{
	struct twin_board board = h100();
	struct twin_gpu one, other;

	burn(&one, &board, 42);
	other = one;
	twin_noise_add(&one, &board);
	twin_noise_add(&other, &board);
	assert_memory_equal(&one, &other, sizeof(one));
	burn(&other, &board, 43);
	twin_noise_add(&other, &board);
	assert_int_not_equal(one.power_uw[0], other.power_uw[0]);
	burn(&other, &board, 0);
	one = other;
	twin_noise_add(&other, &board);
	assert_memory_equal(&one, &other, sizeof(one));
}

static void a_capped_clock_dithers_about_the_true_one(void **state)
{
	struct twin_board board = h100();
	unsigned low = 0, high = 0;
	struct twin_gpu gpu;

	burn(&gpu, &board, 9);
	gpu.limit_mw = 400000;
	twin_physics_settle(&gpu, &board);
	twin_physics_advance(&gpu, &board, gpu.at_ns + 300 * SECOND);
	for (unsigned i = 0; i < 2000; i++) {
		struct twin_gpu seen = gpu;
		seen.cells += i;
		twin_noise_add(&seen, &board);
		assert_in_range(seen.now_mhz, gpu.now_mhz - 15, gpu.now_mhz + 15);
		low += seen.now_mhz < gpu.now_mhz;
		high += seen.now_mhz > gpu.now_mhz;
	}
	/* 150 permille each */
	assert_in_range(low, 250, 350);
	assert_in_range(high, 250, 350);
	/* one that nothing holds down does not, and a lock is never read as passed */
	gpu.lock_min_mhz = gpu.lock_max_mhz = gpu.now_mhz;
	for (unsigned i = 0; i < 500; i++) {
		struct twin_gpu seen = gpu;
		seen.cells += i;
		twin_noise_add(&seen, &board);
		assert_true(seen.now_mhz <= gpu.lock_max_mhz);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_are_normal_enough),
		cmocka_unit_test(power_deviates_as_the_board_says_and_energy_does_not),
		cmocka_unit_test(all_read_the_same_and_a_seed_reads_it_again),
		cmocka_unit_test(a_capped_clock_dithers_about_the_true_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
