/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits, in few words: every reason has some, and they fit the column of a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched/sched_plan.h"

static void assert_words(const struct takt_plan_wait *wait, const char *want)
{
	struct takt_str text = TAKT_STR(63);

	assert_int_equal(takt_why_words(wait, &text), 0);
	if (want)
		assert_string_equal(takt_str_text(&text), want);
	else
		assert_true(text.len > 0);
	takt_str_fini(&text);
}

static void figures_are_told_where_there_are_some(void **state)
{
	static const struct {
		struct takt_plan_wait wait;
		const char *words;
	} cases[] = {
		{{.why = TAKT_WHY_HELD}, "held"},
		{{.why = TAKT_WHY_GPUS, .must_end = 4}, "needs 4 more"},
		{{.why = TAKT_WHY_GPUS, .must_end = 4, .behind_job = 28},
		 "needs 4 more, behind 28"},
		{{.why = TAKT_WHY_ORDER, .behind_job = 28}, "behind 28"},
		{{.why = TAKT_WHY_DEPENDENCY, .behind_job = 12}, "after 12"},
		{{.why = TAKT_WHY_DEPENDENCY, .behind_job = 12, .unblock = TAKT_UNBLOCK_RELEASE},
		 "after 12, which failed"},
		{{.why = TAKT_WHY_IMPOSSIBLE, .need = 16, .total = 8}, "needs 16, there are 8"},
		{{.why = TAKT_WHY_UNHEALTHY, .unhealthy = 2}, "2 out of service"},
		{{.why = TAKT_WHY_OUTSIDE, .outside = 1}, "1 used outside takt"},
		{{.why = TAKT_WHY_GANG, .tasks = 4}, "needs all 4 at once"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++)
		assert_words(&cases[i].wait, cases[i].words);
}

static void every_reason_has_words_that_fit(void **state)
{
	for (int why = TAKT_WHY_HELD; why < TAKT_WHY_COUNT; why++) {
		struct takt_plan_wait none = {.why = (enum takt_why)why};
		struct takt_plan_wait most = {.why = (enum takt_why)why,
					      .need = UINT32_MAX,
					      .total = UINT32_MAX - 1,
					      .unhealthy = UINT32_MAX,
					      .outside = UINT32_MAX,
					      .must_end = UINT32_MAX,
					      .tasks = UINT32_MAX,
					      .unblock = TAKT_UNBLOCK_RELEASE,
					      .behind_job = UINT64_MAX};

		assert_words(&none, NULL);
		assert_words(&most, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_told_where_there_are_some),
		cmocka_unit_test(every_reason_has_words_that_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
