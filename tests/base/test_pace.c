/* SPDX-License-Identifier: Apache-2.0 */
/* The pauses between tries: they rise, and never end. */
#include "seeded.h"

#include "base/compiler.h"
#include "base/pace.h"

static void pauses_double_up_to_the_longest(void **state)
{
	const struct takt_pace pace = {250, 30000};
	const uint64_t expected[] = {250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000};

	for (uint32_t i = 0; i < TAKT_ARRAY_LEN(expected); i++)
		assert_int_equal(takt_pace_ns(&pace, i), expected[i]);
}

static void however_often_it_failed_it_is_asked_again(void **state)
{
	const struct takt_pace pace = {1, UINT64_MAX / 2}, constant = {7, 7};
	const uint32_t many[] = {62, 63, 64, 65, 1000000, UINT32_MAX};

	for (uint32_t i = 0; i < TAKT_ARRAY_LEN(many); i++) {
		assert_true(takt_pace_ns(&pace, many[i]) > 0);
		assert_true(takt_pace_ns(&pace, many[i]) <= pace.longest_ns);
		assert_int_equal(takt_pace_ns(&constant, many[i]), 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_double_up_to_the_longest),
		cmocka_unit_test(however_often_it_failed_it_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
