/* SPDX-License-Identifier: Apache-2.0 */
/* The seam of governors: what is refused, what a wish is made into, and the simplest three. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "clock/governor.h"

static const uint32_t clocks[] = {135, 705, 1200, 1380};

static struct takt_governor_setup both(void)
{
	return (struct takt_governor_setup){
		.board = {.can = TAKT_ACTUATE_CLOCKS | TAKT_ACTUATE_POWER,
			  .sm_mhz = clocks,
			  .sm_count = TAKT_ARRAY_LEN(clocks),
			  .power_min_mw = 100000,
			  .power_max_mw = 300000,
			  .power_default_mw = 250000},
	};
}

static struct takt_governor_wish first(const char *name, const struct takt_governor_setup *setup)
{
	const struct takt_governor *governor = takt_governor_find(name);
	struct takt_governor_observation nothing = {.has = 0};
	struct takt_governor_wish wish;
	char state[64];

	assert_non_null(governor);
	assert_int_equal(takt_governor_init(governor, state, setup, NULL), 0);
	takt_governor_step(governor, state, setup, &nothing, &wish);
	return wish;
}

static void each_governor_is_found_and_passes_the_check(void **state)
{
	for (size_t i = 0; takt_governor_all[i]; i++) {
		const struct takt_governor *governor = takt_governor_all[i];

		assert_ptr_equal(takt_governor_find(governor->name), governor);
		assert_int_equal(takt_governor_check(governor, NULL), 0);
	}
	assert_null(takt_governor_find("nonesuch"));
}

static void observe_asks_for_nothing(void **state)
{
	struct takt_governor_setup setup = both();

	assert_int_equal(first("observe", &setup).cap.sets, 0);
}

static void performance_asks_for_the_top_but_not_beyond_the_default_limit(void **state)
{
	struct takt_governor_setup setup = both();
	struct takt_governor_wish wish = first("performance", &setup);

	assert_int_equal(wish.cap.sets, TAKT_ACTUATE_CLOCKS | TAKT_ACTUATE_POWER);
	assert_int_equal(wish.cap.min_mhz, 135);
	assert_int_equal(wish.cap.max_mhz, 1380);
	assert_int_equal(wish.cap.power_mw, 250000);
}

static void fixed_goes_down_to_a_listed_clock_and_within_the_limits(void **state)
{
	static const struct takt_governor_param params[] = {{"sm_mhz", 1199}, {"power_mw", 5000}};
	static const struct takt_governor_param part[] = {{"sm_permille", 900}};
	struct takt_governor_setup setup = both();
	struct takt_governor_wish wish;

	setup.params = params;
	setup.param_count = 2;
	wish = first("fixed", &setup);
	assert_int_equal(wish.cap.max_mhz, 705);
	assert_int_equal(wish.cap.power_mw, 100000);
	setup.params = part;
	setup.param_count = 1;
	wish = first("fixed", &setup);
	assert_int_equal(wish.cap.max_mhz, 1200); /* of 1242 */
	assert_int_equal(wish.cap.sets, TAKT_ACTUATE_CLOCKS);
}

static void what_the_board_lacks_is_not_asked_of_it(void **state)
{
	static const struct takt_governor_param params[] = {{"sm_mhz", 1200}, {"power_mw", 150000}};
	struct takt_governor_setup setup = both();
	struct takt_governor_wish wish;

	setup.params = params;
	setup.param_count = 2;
	setup.board.can = TAKT_ACTUATE_POWER;
	wish = first("fixed", &setup);
	assert_int_equal(wish.cap.sets, TAKT_ACTUATE_POWER);
	assert_int_equal(wish.cap.max_mhz, 0);
	assert_int_equal(wish.cap.power_mw, 150000);
}

static void expect_refused(const struct takt_governor_setup *setup, const char *name, int rc,
			   const char *word)
{
	struct takt_err err = {0};
	char state[64];

	assert_int_equal(takt_governor_init(takt_governor_find(name), state, setup, &err), rc);
	assert_non_null(strstr(err.msg, word));
}

static void nonsense_is_refused_by_name(void **state)
{
	static const uint32_t twice[] = {135, 705, 705};
	static const struct takt_governor_param param = {"clock", 3};
	struct takt_governor_setup setup = both();

	setup.board.sm_mhz = twice;
	setup.board.sm_count = 3;
	expect_refused(&setup, "observe", -EINVAL, "705 MHz");
	setup = both();
	setup.board.sm_count = 0;
	expect_refused(&setup, "observe", -EINVAL, "0 settable");
	setup = both();
	setup.board.power_min_mw = 260000;
	expect_refused(&setup, "observe", -EINVAL, "260000");
	setup = both();
	setup.params = &param;
	setup.param_count = 1;
	expect_refused(&setup, "fixed", -TAKT_E_USAGE, "sm_permille");
	expect_refused(&setup, "observe", -TAKT_E_USAGE, "none");
	setup.param_count = 0;
	expect_refused(&setup, "fixed", -EINVAL, "sm_mhz");
}

static void strange_step(void *state, const struct takt_governor_setup *setup,
			 const struct takt_governor_observation *seen,
			 struct takt_governor_wish *ret)
{
	ret->cap = (struct takt_governor_cap){.sets = ~0u, .min_mhz = 1300, .max_mhz = 700};
	ret->reason = (enum takt_governor_reason)1000;
}

static void a_strange_wish_does_no_harm(void **state)
{
	struct takt_governor strange = {
		.abi = TAKT_GOVERNOR_ABI, .name = "strange", .summary = "s", .step = strange_step};
	struct takt_governor_setup setup = both();
	struct takt_governor_observation nothing = {.has = 0};
	struct takt_governor_wish wish;
	char text[80];

	takt_governor_step(&strange, NULL, &setup, &nothing, &wish);
	assert_int_equal(wish.cap.sets, TAKT_ACTUATE_POWER);
	assert_int_equal(wish.cap.power_mw, 100000);
	assert_int_equal(wish.reason, TAKT_REASON_OBSERVE);
	takt_governor_explain(&strange, NULL, &setup, &wish, text, sizeof(text));
	assert_string_equal(text, "changes nothing");
}

static void objects_of_another_make_are_refused(void **state)
{
	struct takt_governor made = *takt_governor_find("observe");
	struct takt_err err = {0};

	made.abi = 7;
	assert_int_equal(takt_governor_check(&made, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "ABI 7"));
	made.abi = TAKT_GOVERNOR_ABI;
	made.name = "Upper";
	assert_int_equal(takt_governor_check(&made, NULL), -EINVAL);
	made.name = "fine";
	made.step = NULL;
	assert_int_equal(takt_governor_check(&made, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "step"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_governor_is_found_and_passes_the_check),
		cmocka_unit_test(observe_asks_for_nothing),
		cmocka_unit_test(performance_asks_for_the_top_but_not_beyond_the_default_limit),
		cmocka_unit_test(fixed_goes_down_to_a_listed_clock_and_within_the_limits),
		cmocka_unit_test(what_the_board_lacks_is_not_asked_of_it),
		cmocka_unit_test(nonsense_is_refused_by_name),
		cmocka_unit_test(a_strange_wish_does_no_harm),
		cmocka_unit_test(objects_of_another_make_are_refused),
	};

	return cmocka_run_group_tests_name("governor", tests, NULL, NULL);
}
