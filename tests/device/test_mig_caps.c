/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of MIG instances, as the driver's /proc has them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/mig_caps.h"

static const struct takt_gpu_instance small = {.uuid = "MIG-a", .gi = 9, .ci = 0};

static int up(void **state)
{
	char dir[] = "/tmp/takt-caps-XXXXXX";

	*state = mkdtemp(dir) ? strdup(dir) : NULL;
	return *state ? 0 : -1;
}

static int down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", (char *)*state);
	free(*state);
	return system(command) == 0 ? 0 : -1;
}

static void say(const char *dir, const char *folder, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "mkdir -p '%s/%s'", dir, folder);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/%s/access", dir, folder);
	out = fopen(path, "we");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void test_numbers_are_the_drivers(void **state)
{
	uint16_t minors[TAKT_MIG_CAPS_EACH];

	say(*state, "gpu3/mig/gi9",
	    "DeviceFileMinor: 489\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
	say(*state, "gpu3/mig/gi9/ci0",
	    "DeviceFileMode: 292\nDeviceFileMinor:\t490\nDeviceFileModify: 1\n");
	assert_int_equal(takt_mig_caps(*state, 3, &small, minors, NULL), 0);
	assert_int_equal(minors[0], 489);
	assert_int_equal(minors[1], 490);
}

static void test_what_is_not_told_is_not_made_up(void **state)
{
	const struct takt_gpu_instance unknown = {.uuid = "MIG-b", .gi = -1, .ci = 0};
	uint16_t minors[TAKT_MIG_CAPS_EACH];
	struct takt_err err;

	assert_int_equal(takt_mig_caps(*state, 3, &unknown, minors, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "MIG-b"));
	assert_int_equal(takt_mig_caps(*state, 3, &small, minors, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "gpu3/mig/gi9/access"));
	say(*state, "gpu3/mig/gi9", "DeviceFileMinor: 489\n");
	assert_int_equal(takt_mig_caps(*state, 3, &small, minors, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "gi9/ci0/access"));
	assert_int_equal(takt_mig_caps(*state, 2, &small, minors, &err), -ENOENT);
}

static void test_what_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"DeviceFileMode: 292\n",
		"DeviceFileMinor:",
		"DeviceFileMinor: \n490\n",
		"DeviceFileMinor: x\n",
		"DeviceFileMinor: -1\n",
		"DeviceFileMinor: 70000\n",
		"NoDeviceFileMinor: 7\n",
		"DeviceFileMinor: 99999999999999999999999\n",
	};
	uint16_t minors[TAKT_MIG_CAPS_EACH];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		say(*state, "gpu3/mig/gi9", bad[i]);
		assert_int_equal(takt_mig_caps(*state, 3, &small, minors, NULL), -TAKT_E_CORRUPT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers_are_the_drivers, up, down),
		cmocka_unit_test_setup_teardown(test_what_is_not_told_is_not_made_up, up, down),
		cmocka_unit_test_setup_teardown(test_what_is_no_number_is_refused, up, down),
	};

	return cmocka_run_group_tests_name("mig_caps", tests, NULL, NULL);
}
