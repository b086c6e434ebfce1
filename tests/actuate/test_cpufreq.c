/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUs under a ceiling: lowered policy by policy, put back as each was found, whoever dies and
 * whatever call fails. The files of a fake sysfs are the witness.
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
#include "fake_cpus.h"

#define MINUTE_NS (60 * TAKT_NS_PER_S)

static struct kit kit;

static int setup(void **state)
{
	kit_init(&kit, 1);
	fake_cpus_add(kit.world);
	kit_start(&kit);
	return 0;
}

static int teardown(void **state)
{
	kit_fini(&kit);
	return 0;
}

static uint32_t khz(uint32_t policy, const char *name)
{
	return fake_cpus_khz(kit.world, policy, name);
}

static int limit(uint32_t mhz, struct takt_err *err)
{
	return takt_keeper_cpu_set(kit_keeper(&kit), mhz, MINUTE_NS, kit_now(&kit), err);
}

static void die_and_start(void)
{
	kit_die(&kit);
	kit_start(&kit);
	kit_run(&kit, 100);
}

static void each_policy_goes_down_as_far_as_it_can_and_comes_back(void **state)
{
	assert_int_equal(limit(2400, NULL), 0);
	assert_int_equal(khz(0, "scaling_max_freq"), 2400000);
	assert_int_equal(khz(3, "scaling_max_freq"), 2400000);
	assert_int_equal(khz(5, "scaling_max_freq"), 2400000);
	assert_int_equal(limit(500, NULL), 0);
	assert_int_equal(khz(0, "scaling_max_freq"), 800000); /* the lowest of these */
	assert_int_equal(khz(5, "scaling_max_freq"), 500000);
	assert_false(takt_keeper_all_clean(kit_keeper(&kit)));
	assert_int_equal(limit(0, NULL), 0);
	assert_true(fake_cpus_as_found(kit.world));
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void a_minimum_above_the_ceiling_goes_down_with_it(void **state)
{
	fake_sys_add_file(kit.world, "/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq",
			  "2800000\n", 8);
	assert_int_equal(limit(2000, NULL), 0);
	assert_int_equal(khz(0, "scaling_min_freq"), 2000000);
	assert_int_equal(khz(0, "scaling_max_freq"), 2000000);
	assert_int_equal(limit(0, NULL), 0);
	assert_int_equal(khz(0, "scaling_min_freq"), 2800000);
	assert_int_equal(khz(0, "scaling_max_freq"), 3600000);
}

static void it_ends_with_its_time_unless_renewed(void **state)
{
	assert_int_equal(limit(1000, NULL), 0);
	fake_sys_advance(kit.world, 50 * TAKT_NS_PER_S);
	assert_int_equal(limit(1000, NULL), 0);
	fake_sys_advance(kit.world, 50 * TAKT_NS_PER_S);
	kit_run(&kit, 10);
	assert_int_equal(khz(0, "scaling_max_freq"), 1000000);
	fake_sys_advance(kit.world, 20 * TAKT_NS_PER_S);
	kit_run(&kit, 10);
	assert_true(fake_cpus_as_found(kit.world));
}

static void whoever_comes_after_a_kill_puts_them_back(void **state)
{
	assert_int_equal(limit(1000, NULL), 0);
	die_and_start();
	assert_true(fake_cpus_as_found(kit.world));
	assert_non_null(strstr(kit.log, "CPUs were left limited"));
	die_and_start();
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void a_stop_puts_them_back(void **state)
{
	assert_int_equal(limit(1000, NULL), 0);
	takt_actuator_end_all(kit.actuator, kit_now(&kit));
	assert_true(fake_cpus_as_found(kit.world));
}

static void a_driver_loaded_anew_changes_nothing_about_them(void **state)
{
	assert_int_equal(limit(1000, NULL), 0);
	kit_die(&kit);
	(void)snprintf(kit.machine.info.driver_version, sizeof(kit.machine.info.driver_version),
		       "551.00");
	kit_start(&kit);
	kit_run(&kit, 100);
	assert_true(fake_cpus_as_found(kit.world));
}

static void without_a_guard_nothing_is_limited(void **state)
{
	struct takt_err err;

	kit_keeper(&kit)->guarded = false;
	assert_int_equal(limit(1000, &err), -TAKT_E_UNAVAILABLE);
	assert_true(fake_cpus_as_found(kit.world));
}

static void a_machine_without_cpufreq_says_so(void **state)
{
	struct takt_err err;

	kit_keeper(&kit)->cpu.sysfs_root = "/state";
	assert_int_equal(limit(1000, &err), -TAKT_E_UNSUPPORTED);
}

/* Each call of the kernel fails once, with each of what it may say, while they are limited. */
static void a_call_that_fails_leaves_none_limited(void **state)
{
	static const int codes[] = {EIO, EACCES, EINVAL, ENOENT};
	struct takt_err err;

	for (size_t c = 0; c < sizeof(codes) / sizeof(codes[0]); c++) {
		for (unsigned long nth = 1; nth < 80; nth++) {
			int rc;

			fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, nth, codes[c], false);
			rc = limit(1000, &err);
			fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, 0, 0, false);
			kit_run(&kit, 2000); /* what could not be put back at once is by now */
			if (rc < 0 && !fake_cpus_as_found(kit.world))
				fail_msg("call %lu (%d): %s", nth, codes[c], err.msg);
			if (rc < 0)
				assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
			assert_int_equal(limit(0, NULL), 0);
			assert_true(fake_cpus_as_found(kit.world));
			if (kit_keeper(&kit)->stale)
				die_and_start();
		}
	}
}

/* And while they are put back. */
static void putting_back_is_tried_until_it_works(void **state)
{
	for (unsigned long nth = 1; nth < 60; nth++) {
		assert_int_equal(limit(1000, NULL), 0);
		fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, nth, EIO, false);
		(void)limit(0, NULL);
		fake_sys_fail_nth(kit.world, FAKE_SYS_ANY, 0, 0, false);
		kit_run(&kit, 2000);
		if (kit_keeper(&kit)->stale)
			die_and_start();
		assert_true(fake_cpus_as_found(kit.world));
		assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	}
}

static void the_power_goes_at_every_call(void **state)
{
	for (unsigned long nth = 1; nth < 60; nth++) {
		fake_sys_cut_power_at(kit.world, nth);
		(void)limit(1000, NULL);
		fake_sys_power_loss(kit.world, nth);
		kit_die(&kit);
		fake_cpus_add(kit.world); /* the kernel starts with its own limits */
		kit_start(&kit);
		kit_run(&kit, 100);
		assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
		assert_true(fake_cpus_as_found(kit.world));
	}
}

static void more_kinds_than_can_be_remembered_are_left_alone(void **state)
{
	struct takt_cpufreq found;
	struct takt_err err;
	char path[96];

	fake_sys_add_file(kit.world, "/sys/devices/system/cpu/possible", "0-40\n", 5);
	for (unsigned policy = 6; policy < 20; policy++) {
		char text[16];
		int n = snprintf(text, sizeof(text), "%u\n", 1000000 + 1000 * policy);

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpufreq/policy%u", policy);
		fake_sys_add_dir(kit.world, path);
		strcat(path, "/scaling_min_freq");
		fake_sys_add_file(kit.world, path, "400000\n", 7);
		memcpy(strstr(path, "min"), "max", 3);
		fake_sys_add_file(kit.world, path, text, (size_t)n);
	}
	assert_int_equal(takt_cpufreq_read(fake_sys_table(kit.world), "/sys", &found, &err),
			 -TAKT_E_LIMIT);
	assert_int_equal(limit(1000, NULL), -TAKT_E_LIMIT);
	assert_true(fake_cpus_as_found(kit.world));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(each_policy_goes_down_as_far_as_it_can_and_comes_back),
		CASE(a_minimum_above_the_ceiling_goes_down_with_it),
		CASE(it_ends_with_its_time_unless_renewed),
		CASE(whoever_comes_after_a_kill_puts_them_back),
		CASE(a_stop_puts_them_back),
		CASE(a_driver_loaded_anew_changes_nothing_about_them),
		CASE(without_a_guard_nothing_is_limited),
		CASE(a_machine_without_cpufreq_says_so),
		CASE(a_call_that_fails_leaves_none_limited),
		CASE(putting_back_is_tried_until_it_works),
		CASE(the_power_goes_at_every_call),
		CASE(more_kinds_than_can_be_remembered_are_left_alone),
	};

	return cmocka_run_group_tests_name("cpufreq", tests, NULL, NULL);
}
