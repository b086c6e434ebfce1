/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data files that are built in, by rules that no board of NVIDIA's breaks: for those of which
 * no capture may be shipped this is all the comparison there is. And what readers do without
 * memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml.h"
#include "base/mem.h"
#include "twin_board_file.h"
#include "twin_physics.h"

/* Published and widely known: memory, top clocks, limits. */
static const struct known {
	const char *id;
	uint32_t arch, major, minor, sm_max, memory_max, memory_gib, limit_w, nvlinks;
} known[] = {
	{"a10", NVML_ARCH_AMPERE, 8, 6, 1695, 6251, 24, 150, 0},
	{"a100-sxm4-40gb", NVML_ARCH_AMPERE, 8, 0, 1410, 1215, 40, 400, 12},
	{"a100-sxm4-80gb", NVML_ARCH_AMPERE, 8, 0, 1410, 1593, 80, 400, 12},
	{"b200", NVML_ARCH_BLACKWELL, 10, 0, 1965, 3996, 180, 1000, 18},
	{"h100-sxm", NVML_ARCH_HOPPER, 9, 0, 1980, 2619, 80, 700, 18},
	{"h200", NVML_ARCH_HOPPER, 9, 0, 1980, 3201, 141, 700, 18},
	{"l4", NVML_ARCH_ADA, 8, 9, 2040, 6251, 24, 72, 0},
	{"l40s", NVML_ARCH_ADA, 8, 9, 2520, 9001, 48, 350, 0},
	{"rtx-4090", NVML_ARCH_ADA, 8, 9, 3105, 10501, 24, 600, 0},
	{"t4", NVML_ARCH_TURING, 7, 5, 1590, 5001, 16, 70, 0},
	{"v100-sxm2-32gb", NVML_ARCH_VOLTA, 7, 0, 1530, 877, 32, 300, 6},
};

static struct twin_board load(const char *id)
{
	struct takt_err err = {0};
	struct twin_board board;

	if (twin_board_load(id, NULL, &board, &err) < 0)
		fail_msg("%s", err.msg);
	return board;
}

static void boards_have_what_their_kind_has(void **state)
{
	assert_int_equal(twin_board_text_count, TAKT_ARRAY_LEN(known));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(known); i++) {
		const struct known *is = &known[i];
		struct twin_board board = load(is->id);

		assert_int_equal(board.arch, is->arch);
		assert_int_equal(board.compute_major, is->major);
		assert_int_equal(board.compute_minor, is->minor);
		assert_int_equal(board.sm_mhz[board.clock_count - 1], is->sm_max);
		assert_int_equal(board.memory[0].mhz, is->memory_max);
		/* a part of what is built in is never shown */
		assert_in_range(board.memory_mib, is->memory_gib * 1024 * 93 / 100,
				is->memory_gib * 1024);
		assert_int_equal(board.power_max_mw, is->limit_w * 1000);
		assert_int_equal(board.nvlinks, is->nvlinks);
		assert_int_equal(board.pci_device & 0xffff, 0x10DE);
	}
}

/* What every board can be brought to is within what it may be brought to. */
static void boards_are_possible(void **state)
{
	for (unsigned i = 0; i < twin_board_text_count; i++) {
		struct twin_board board = load(twin_board_texts[i].name);
		uint32_t top = board.sm_mhz[board.clock_count - 1];

		for (uint32_t c = 1; c < board.clock_count; c++)
			assert_in_range(board.sm_mhz[c] - board.sm_mhz[c - 1], 1, 68);
		assert_true(board.sm_mhz[0] <= board.idle_mhz && board.application_mhz <= top);
		assert_true(board.video_max_mhz <= top);
		assert_true(board.idle_mw < board.power_min_mw);
		/* it warms to its limit neither at rest nor when it computes, with air as usual */
		assert_true(board.ambient_c +
				    (uint64_t)board.power_default_mw * board.k_per_kw / 1000000 <
			    board.gpu_max_c + 3);
		/* a dense load needs the limit or most of it */
		assert_in_range((board.idle_mw + board.held_mw + board.dynamic_mw) * 100ull /
					board.power_default_mw,
				70, 145);
		assert_true(board.noise_power_permille[1] > 0 && board.noise_temp_mc > 0);
		assert_true(!(board.features & TWIN_HAS_T_LIMIT) ||
			    (board.t_limit_c[0] < board.t_limit_c[1] && board.t_limit_c[1] < 0));
		assert_true(board.arch < NVML_ARCH_AMPERE || board.fans ||
			    board.features & TWIN_HAS_GSP);
		assert_int_equal(!(board.features & TWIN_HAS_MIG), board.mig_count == 0);
	}
}

static int load_board(void)
{
	struct twin_board board;

	return twin_board_load("h100-sxm", NULL, &board, NULL);
}

static int load_machine(void)
{
	struct twin_machine machine;

	return twin_machine_load("dgx1-v100", &machine, NULL);
}

static int load_profile(void)
{
	struct twin_profile profile;

	return twin_profile_load("gpt-train", &profile, NULL);
}

static char path[] = "/tmp/takt-twin-file.XXXXXX.toml";

static int load_own_profile(void)
{
	struct twin_profile profile;

	return twin_profile_load(path, &profile, NULL);
}

static void readers_say_when_memory_is_out(void **state)
{
	int (*const readers[])(void) = {load_board, load_machine, load_profile, load_own_profile};
	int fd = mkstemps(path, 5);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "step_ms = 5\n", 12), 12);
	close(fd);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(readers); i++) {
		unsigned long nth = 1;
		int rc = -ENOMEM;

		while (rc < 0) {
			takt_alloc_fail_nth(nth++, 0);
			rc = readers[i]();
			takt_alloc_fail_nth(0, 0);
			if (rc < 0)
				assert_int_equal(rc, -ENOMEM);
		}
		assert_int_equal(rc, 0);
		assert_true(nth > 3);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boards_have_what_their_kind_has),
		cmocka_unit_test(boards_are_possible),
		cmocka_unit_test(readers_say_when_memory_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
