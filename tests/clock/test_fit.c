/* SPDX-License-Identifier: Apache-2.0 */
/* Which clocks fit a ceiling, and which speak for somebody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "clock/fit.h"

static void clocks_are_held_against_ceiling_and_reach(void **state)
{
	static const struct {
		uint32_t max_mhz, mhz, reach_mhz;
		enum takt_clock_fit fit;
	} rows[] = {
		{1410, 1410, 1980, TAKT_CLOCK_FITS},
		{1410, 1440, 1980, TAKT_CLOCK_FITS}, /* as far as readings differ */
		{1410, 1441, 1980, TAKT_CLOCK_ABOVE},
		{1410, 1441, 0, TAKT_CLOCK_ABOVE},
		{1410, 1322, 1980, TAKT_CLOCK_FITS}, /* a sixteenth below */
		{1410, 1321, 1980, TAKT_CLOCK_FELL},
		{1410, 705, 1980, TAKT_CLOCK_FELL},
		{345, 315, 1980, TAKT_CLOCK_FITS}, /* a sixteenth is less than readings differ */
		{345, 314, 1980, TAKT_CLOCK_FELL},
		{3105, 2730, 2745, TAKT_CLOCK_FITS}, /* a list that goes on above the board */
		{3105, 2500, 2745, TAKT_CLOCK_FELL},
		{3105, 2400, 0, TAKT_CLOCK_FITS},
		{3105, 2300, 0, TAKT_CLOCK_NEVER_CAME},
		{1980, 900, 900, TAKT_CLOCK_NEVER_CAME},
		{900, 900, 900, TAKT_CLOCK_FITS},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_int_equal(takt_clock_fit(rows[i].max_mhz, rows[i].mhz, rows[i].reach_mhz),
				 rows[i].fit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_are_held_against_ceiling_and_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
