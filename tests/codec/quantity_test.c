/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as every view writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/quantity.h"

static void numbers_have_three_digits(void **state)
{
	char text[TAKT_QUANTITY_TEXT];

	(void)state;
	assert_string_equal(takt_number_text(0, text), "0");
	assert_string_equal(takt_number_text(0.25, text), "0.25");
	assert_string_equal(takt_number_text(0.0123456, text), "0.012");
	assert_string_equal(takt_number_text(4, text), "4");
	assert_string_equal(takt_number_text(12.345, text), "12.3");
	assert_string_equal(takt_number_text(99.97, text), "100");
	assert_string_equal(takt_number_text(123456.7, text), "123457");
	assert_string_equal(takt_number_text(-1.5, text), "-1.5");
}

static void what_is_small_is_not_none(void **state)
{
	char text[TAKT_QUANTITY_TEXT];

	(void)state;
	assert_string_equal(takt_number_text(0.0004, text), "<0.001");
	assert_string_equal(takt_number_text(-0.0004, text), ">-0.001");
	assert_string_equal(takt_number_text(0.0016, text), "0.002");
}

static void energy_has_the_unit_of_its_size(void **state)
{
	char text[TAKT_QUANTITY_TEXT];

	(void)state;
	assert_string_equal(takt_energy_text(0, text), "0 J");
	assert_string_equal(takt_energy_text(850000, text), "850 J");
	assert_string_equal(takt_energy_text(3599000, text), "3599 J");
	assert_string_equal(takt_energy_text(3600000, text), "1 Wh");
	assert_string_equal(takt_energy_text(226000000, text), "62.8 Wh");
	assert_string_equal(takt_energy_text(4500000000, text), "1.25 kWh");
	assert_string_equal(takt_energy_text(UINT64_MAX, text), "5124095576 kWh");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_three_digits),
		cmocka_unit_test(what_is_small_is_not_none),
		cmocka_unit_test(energy_has_the_unit_of_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
