/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads as they were measured. rows/measured.csv has real ones, of which some rows are not
 * kept: what the simulated board does there is compared with what the real one did.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/mem.h"
#include "twin_board_file.h"
#include "twin_physics.h"
#include "twin_rows.h"
#include "twin_rows_file.h"

static const uint64_t T0 = 1000 * TWIN_CELL_NS, SECOND = 1000000000;

static struct twin_board board(const char *id)
{
	struct takt_err err = {0};
	struct twin_board found;

	if (twin_board_load(id, NULL, &found, &err) < 0)
		fail_msg("%s", err.msg);
	return found;
}

static void start(struct twin_gpu *gpu, const struct twin_board *type,
		  const struct twin_profile *profile)
{
	memset(gpu, 0, sizeof(*gpu));
	twin_physics_init(gpu, type, T0);
	gpu->load_count = 1;
	gpu->loads[0] = (struct twin_load){
		.pid = 1,
		.lease_until_ns = 1ull << 62,
		.step_ns = 100000000,
		.pace_permille = 1000,
		.link_permille = 1000,
		.profile = *profile,
	};
	twin_physics_settle(gpu, type);
}

static void assert_within(double value, double expected, double percent)
{
	if (value < expected * (1 - percent / 100) || value > expected * (1 + percent / 100))
		fail_msg("%f is not within %g %% of %f", value, percent, expected);
}

/* Minutes of work at a clock or under a limit: the time that it takes, of that at full speed, and
 * what the board draws. */
static void run(struct twin_gpu *gpu, const struct twin_board *type, double *ret_time,
		double *ret_power_w)
{
	uint64_t before, before_nj;

	twin_physics_settle(gpu, type);
	twin_physics_advance(gpu, type, gpu->at_ns + 60 * SECOND);
	before = gpu->loads[0].work_ns;
	before_nj = gpu->energy_nj;
	twin_physics_advance(gpu, type, gpu->at_ns + 60 * SECOND);
	*ret_time = 60e9 / (double)(gpu->loads[0].work_ns - before);
	*ret_power_w = (double)(gpu->energy_nj - before_nj) / 60e9;
}

/* Each line of the file with that workload and GPU. */
static bool next_row(FILE *file, const char *gpu, double *ret_mhz, double *ret_limit,
		     double *ret_time, double *ret_power)
{
	char line[400], *fields[10], *rest;

	while (fgets(line, sizeof(line), file)) {
		rest = line;
		for (unsigned i = 0; i < 10; i++)
			fields[i] = strsep(&rest, ",");
		if (strcmp(fields[1], gpu) != 0)
			continue;
		*ret_mhz = strtod(fields[3], NULL);
		*ret_limit = strtod(fields[5], NULL);
		*ret_time = strtod(fields[6], NULL);
		*ret_power = strtod(fields[8], NULL);
		return true;
	}
	return false;
}

static struct twin_profile measured(const char *workload, const char *gpu,
				    const struct twin_board *type)
{
	const struct twin_rows_wish wish = {getenv("TAKT_TWIN_ROWS"), workload, gpu};
	struct takt_err err = {0};
	struct twin_profile profile;

	if (twin_rows_load(&wish, type, &profile, &err) < 0)
		fail_msg("%s", err.msg);
	return profile;
}

/* 38 clocks were measured, 16 are kept. Above its limit the simulated board holds this one down. */
static void time_and_power_follow_the_clock_as_measured(void **state)
{
	struct twin_board type = board("a100-sxm4-80gb");
	struct twin_profile profile = measured("gpt3-175b/stage0/forward", "A100-SXM4-80GB", &type);
	FILE *file = fopen(getenv("TAKT_TWIN_ROWS"), "re");
	double mhz, limit, time, power, at_top = 0.05016166687;
	unsigned compared = 0;

	assert_int_equal(profile.row_count, TWIN_ROWS);
	assert_int_equal(profile.step_ms, 50);
	assert_non_null(file);
	while (next_row(file, "A100-SXM4-80GB", &mhz, &limit, &time, &power)) {
		double own_time, own_power;
		struct twin_gpu gpu;
		if (power > 395)
			continue;
		start(&gpu, &type, &profile);
		gpu.lock_min_mhz = gpu.lock_max_mhz = (uint32_t)mhz;
		run(&gpu, &type, &own_time, &own_power);
		assert_within(own_time, time / at_top, 0.6);
		assert_within(own_power, power, 1.5);
		compared++;
	}
	fclose(file);
	assert_int_equal(compared, 28);
}

/* Measured under limits, of which the simulated board's clock follows. */
static void time_and_power_follow_the_limit_as_measured(void **state)
{
	struct twin_board type = board("v100-sxm2-32gb");
	struct twin_profile profile =
		measured("cifar100/shufflenetv2/bs1024/adadelta", "V100-PCIe", &type);
	FILE *file = fopen(getenv("TAKT_TWIN_ROWS"), "re");
	double mhz, limit, time, power, at_top = 7.613333;
	unsigned compared = 0;

	assert_non_null(file);
	while (next_row(file, "V100-PCIe", &mhz, &limit, &time, &power)) {
		double own_time, own_power;
		struct twin_gpu gpu;
		start(&gpu, &type, &profile);
		gpu.limit_mw = (uint32_t)(limit * 1000);
		run(&gpu, &type, &own_time, &own_power);
		assert_within(own_time, time / at_top, 2);
		assert_within(own_power, power, 3);
		compared++;
	}
	fclose(file);
	assert_int_equal(compared, 7);
}

#define HEAD "dataset,gpu,workload,core_mhz,mem_mhz,power_limit_w,time,time_unit,power_w\n"
#define TWO                                  \
	HEAD "d,G,job,700,,,2.0,s,100\n"     \
	     "d,G,other,700,,,9.0,s,900\r\n" \
	     "d,G,job,1400,,,1.0,s,200\n"

static int read_rows(const char *text, const char *gpu, struct twin_profile *ret,
		     struct takt_err *err)
{
	const struct twin_rows_wish wish = {"rows.csv", "job", gpu};
	struct twin_board type = board("a100-sxm4-80gb");

	return twin_rows_from(text, &wish, &type, ret, err);
}

static void between_rows_are_lines_and_beyond_them_too(void **state)
{
	struct twin_profile profile;

	assert_int_equal(read_rows(TWO, NULL, &profile, NULL), 0);
	assert_int_equal(profile.row_count, 2);
	assert_int_equal(profile.step_ms, 1000);
	/* time 1 + (1 / r - 1): it is all clock */
	assert_in_range(twin_rows_time(&profile, 1050), 1333000, 1334000);
	assert_int_equal(twin_rows_power_uw(&profile, 1050), 150000000);
	assert_in_range(twin_rows_time(&profile, 350), 3999000, 4001000);
	assert_int_equal(twin_rows_power_uw(&profile, 350), 50000000);
	assert_in_range(twin_rows_time(&profile, 2800), 499000, 501000);
	/* there is no work without time, and no power below nothing */
	assert_int_equal(twin_rows_time(&profile, 20000), 100000);
	profile.rows[0].power_mw = 10;
	assert_int_equal(twin_rows_power_uw(&profile, 210), 0);
}

static void rows_of_one_clock_are_averaged_and_power_never_falls(void **state)
{
	struct twin_profile profile;

	assert_int_equal(read_rows(HEAD "d,G,job,1400,,,1.0,rel,200\n"
					"d,G,job,700,,,2.0,rel,120\n"
					"d,G,job,700,,,4.0,rel,140\n"
					"d,G,job,1000,,,1.5,rel,110\n",
				   "G", &profile, NULL),
			 0);
	assert_int_equal(profile.row_count, 3);
	assert_int_equal(profile.rows[0].time, 3000000);
	assert_int_equal(profile.rows[0].power_mw, 130000);
	assert_int_equal(profile.rows[1].power_mw, 130000);
	assert_int_equal(profile.step_ms, 100);
}

static void mistakes_name_line_column_and_remedy(void **state)
{
	static const struct {
		const char *text, *words[2];
	} cases[] = {
		{"", {"rows.csv:1:", "workload is missing"}},
		{"workload,time,power_w\n", {"core_mhz", "power_limit_w"}},
		{HEAD, {"no row of 'job'", ""}},
		{HEAD "d,G,job,fast,,,1,s,100\n", {"rows.csv:2: core_mhz", "number above 0"}},
		{HEAD "d,G,job,,,,1,s,100\n", {"rows.csv:2: core_mhz", "power_limit_w"}},
		{HEAD "d,G,job,700,,,-1,s,100\n", {"rows.csv:2: time", "number above 0"}},
		{HEAD "d,G,job,700,,,nan,s,100\n", {"rows.csv:2: time", "number above 0"}},
		{HEAD "d,G,job,700,,,1,s\n", {"rows.csv:2: power_w", "number above 0"}},
		{TWO "d,H,job,700,,,1,s,100\n", {"rows.csv:5", "--measured-on"}},
		{TWO "d,G,job,700,,,1,rel,100\n", {"rows.csv:5: time_unit", "same"}},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		struct twin_profile profile = {.step_ms = 77};
		struct takt_err err = {0};
		assert_true(read_rows(cases[i].text, NULL, &profile, &err) < 0);
		for (unsigned j = 0; j < 2; j++) {
			if (!strstr(err.msg, cases[i].words[j]))
				fail_msg("'%s' lacks '%s'", err.msg, cases[i].words[j]);
		}
		assert_int_equal(profile.step_ms, 77);
	}
}

/* Whatever allocation fails, nothing is half-read. */
static void without_memory_it_says_so(void **state)
{
	const struct twin_rows_wish wish = {getenv("TAKT_TWIN_ROWS"), "gpt3-175b/stage0/forward",
					    NULL};
	struct twin_board type = board("a100-sxm4-80gb");
	struct twin_profile profile;
	unsigned long nth = 1;
	int rc;

	do {
		memset(&profile, 0x55, sizeof(profile));
		takt_alloc_fail_nth(nth++, 0);
		rc = twin_rows_load(&wish, &type, &profile, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0) {
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(profile.row_count, 0x55555555);
		}
	} while (rc < 0);
	assert_int_equal(nth, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_and_power_follow_the_clock_as_measured),
		cmocka_unit_test(time_and_power_follow_the_limit_as_measured),
		cmocka_unit_test(between_rows_are_lines_and_beyond_them_too),
		cmocka_unit_test(rows_of_one_clock_are_averaged_and_power_never_falls),
		cmocka_unit_test(mistakes_name_line_column_and_remedy),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
