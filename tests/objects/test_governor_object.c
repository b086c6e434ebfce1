/* SPDX-License-Identifier: Apache-2.0 */
/* A governor of a reader's own, from a shared object: the example does what it says, and what is no
 * governor is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "objects/governor_object.h"
#include "objects/object_file.h"

static const char *example(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s.so", getenv("TAKT_EXAMPLES"), name);
	return path;
}

static const uint32_t clocks[] = {200, 500, 800, 1000};

static struct takt_governor_setup board(void)
{
	return (struct takt_governor_setup){.board = {.can = TAKT_ACTUATE_CLOCKS,
						      .sm_mhz = clocks,
						      .sm_count = TAKT_ARRAY_LEN(clocks)}};
}

static void the_example_governs(void **state)
{
	static const struct takt_governor_param busy = {"busy_permille", 300};
	struct takt_governor_setup setup = board();
	struct takt_governor_observation seen = {.has = TAKT_OBSERVED_GPU_UTIL,
						 .gpu_util_permille = 400};
	const struct takt_governor *governor;
	struct takt_governor_object *object;
	struct takt_governor_wish wish;
	struct takt_err err;
	char own[64];

	assert_true(takt_object_file_is(example("half_way")));
	assert_false(takt_object_file_is("ladder"));
	assert_int_equal(takt_governor_object_open(example("half_way"), &object, &err), 0);
	governor = takt_governor_object_governor(object);
	assert_string_equal(governor->name, "half-way");
	assert_true(governor->state_bytes <= sizeof(own));
	assert_int_equal(takt_governor_init(governor, own, &setup, NULL), 0);
	takt_governor_step(governor, own, &setup, &seen, &wish);
	assert_int_equal(wish.cap.max_mhz, 500); /* 600 is not listed */
	setup.params = &busy;
	setup.param_count = 1;
	assert_int_equal(takt_governor_init(governor, own, &setup, NULL), 0);
	takt_governor_step(governor, own, &setup, &seen, &wish);
	assert_int_equal(wish.cap.sets, 0);
	takt_governor_object_close(object);
}

static void its_own_refusal_is_passed_on(void **state)
{
	static const struct takt_governor_param wrong = {"busy_permille", 1001};
	struct takt_governor_setup setup = board();
	struct takt_governor_object *object;
	struct takt_err err;
	char own[64];

	setup.params = &wrong;
	setup.param_count = 1;
	assert_int_equal(takt_governor_object_open(example("half_way"), &object, &err), 0);
	assert_true(takt_governor_init(takt_governor_object_governor(object), own, &setup, &err) <
		    0);
	assert_non_null(strstr(err.msg, "busy_permille is 0 to 1000"));
	takt_governor_object_close(object);
}

static void what_is_no_governor_is_refused(void **state)
{
	struct takt_governor_object *object = NULL;
	struct takt_err err;

	assert_int_equal(takt_governor_object_open("./nowhere.so", &object, &err),
			 -TAKT_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "nowhere.so"));
	assert_int_equal(takt_governor_object_open(example("worst_fit"), &object, &err),
			 -TAKT_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "takt_governor_entry"));
	assert_null(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_governs),
		cmocka_unit_test(its_own_refusal_is_passed_on),
		cmocka_unit_test(what_is_no_governor_is_refused),
	};

	return cmocka_run_group_tests_name("governor object", tests, NULL, NULL);
}
