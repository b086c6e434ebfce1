/* SPDX-License-Identifier: Apache-2.0 */
/* A run of several ranks: whose progress counts, what is the same output, and whose power. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/timetypes.h"
#include "cli/tune.h"

static char path[] = "/tmp/takt-tune-ranks-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(path);
}

struct word {
	uint32_t rank, has;
	uint64_t steps, queries, at_s;
};

/* The ranks' words are in the file, and looked at. */
static void say(struct takt_tune_told *told, const struct word *words, size_t count)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	for (size_t i = 0; i < count; i++) {
		struct takt_progress_file one = {.has = words[i].has,
						 .steps = words[i].steps,
						 .queries = words[i].queries,
						 .at_ns = words[i].at_s * TAKT_NS_PER_S};

		memcpy(one.magic, TAKT_PROGRESS_MAGIC, sizeof(one.magic));
		assert_int_equal(fseek(file, (long)(words[i].rank * sizeof(one)), SEEK_SET), 0);
		assert_int_equal(fwrite(&one, sizeof(one), 1, file), 1);
	}
	assert_int_equal(fclose(file), 0);
	takt_tune_look(told, path);
}

#define SAY(told, ...)                                                 \
	do {                                                           \
		const struct word words_[] = {__VA_ARGS__};            \
		say(told, words_, sizeof(words_) / sizeof(words_[0])); \
	} while (0)

static const uint32_t STEPS = TAKT_PROGRESS_STEPS, QUERIES = TAKT_PROGRESS_QUERIES;

static void the_slowest_rank_counts(void **state)
{
	struct takt_tune_sample sample = {.performance = 0};
	struct takt_tune_told told = {0};

	SAY(&told, {0, STEPS, 10, 0, 100}, {1, STEPS, 10, 0, 102}, {3, STEPS, 10, 0, 100});
	SAY(&told, {0, STEPS, 60, 0, 110}, {1, STEPS, 30, 0, 112}, {3, STEPS, 50, 0, 110});
	assert_int_equal(takt_tune_ranks(&told), 3);
	assert_true(takt_tune_rate_told(&told, &sample));
	assert_true(fabs(sample.performance - 2) < 1e-9);
	assert_int_equal(sample.ranks, 3);
	assert_int_equal(sample.slowest_rank, 1);
	assert_string_equal(sample.unit, "step");
}

static void queries_are_added_up(void **state)
{
	struct takt_tune_sample sample = {.performance = 0};
	struct takt_tune_told told = {0};

	SAY(&told, {0, QUERIES, 0, 0, 100}, {1, QUERIES, 0, 0, 100});
	SAY(&told, {0, QUERIES, 0, 50, 110}, {1, QUERIES, 0, 20, 110});
	assert_true(takt_tune_rate_told(&told, &sample));
	assert_true(fabs(sample.performance - 7) < 1e-9);
	assert_string_equal(sample.unit, "query");
}

/* Going by the others would call the run faster than it is. */
static void a_rank_that_told_too_little_is_no_rate(void **state)
{
	struct takt_tune_sample sample = {.performance = 0};
	struct takt_tune_told told = {0};

	SAY(&told, {0, STEPS, 10, 0, 100}, {1, STEPS, 1, 0, 109});
	SAY(&told, {0, STEPS, 60, 0, 110}, {1, STEPS, 1, 0, 109});
	assert_false(takt_tune_rate_told(&told, &sample));
	assert_int_equal(takt_tune_ranks(&told), 2);
}

static void a_rank_that_has_ended_rules_no_more(void **state)
{
	struct takt_tune_sample sample = {.performance = 0};
	struct takt_tune_told told = {0};

	SAY(&told, {0, STEPS, 10, 0, 100}, {1, STEPS, 1, 0, 101});
	SAY(&told, {0, STEPS, 210, 0, 200}, {1, STEPS, 1, 0, 101});
	assert_true(takt_tune_rate_told(&told, &sample));
	assert_true(fabs(sample.performance - 2) < 1e-9);
	assert_int_equal(sample.ranks, 1);
}

static void nothing_told_is_nothing(void **state)
{
	struct takt_tune_sample sample = {.performance = 0};
	struct takt_tune_told told = {0};

	takt_tune_look(&told, NULL);
	takt_tune_look(&told, "");
	takt_tune_look(&told, "/nowhere/at/all");
	assert_int_equal(takt_tune_ranks(&told), 0);
	assert_false(takt_tune_rate_told(&told, &sample));
}

static struct takt_tune_written written(const char *text, size_t piece)
{
	struct takt_tune_output output;
	struct takt_tune_written ret;

	takt_tune_output_init(&output);
	for (size_t len = strlen(text), n; len > 0; text += n, len -= n) {
		n = len < piece ? len : piece;
		takt_tune_output_add(&output, text, n);
	}
	takt_tune_output_end(&output, &ret);
	return ret;
}

static void lines_of_ranks_may_change_places(void **state)
{
	static const struct {
		const char *a, *b;
		bool same, same_lines;
	} cases[] = {
		{"", "", true, true},
		{"0: 7\n1: 8\n", "0: 7\n1: 8\n", true, true},
		{"0: 7\n1: 8\n", "1: 8\n0: 7\n", false, true},
		{"0: 7\n1: 8\n", "0: 7\n1: 9\n", false, false}, /* rank 1's result is another */
		{"0: 7\n1: 8\n", "0: 8\n1: 7\n", false, false},
		{"0: 7\n1: 8\n", "0: 7\n", false, false},
		{"7\n7\n", "7\n", false, false},
		{"7\n\n", "7\n", false, false},
		{"0: 7\n1: 8", "1: 8\n0: 7", false, true}, /* the last line has no end */
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++)
		for (size_t piece = 1; piece < 16; piece++) {
			struct takt_tune_written a = written(cases[i].a, 1000),
						 b = written(cases[i].b, piece);

			assert_int_equal(takt_tune_same(&a, &b, false), cases[i].same);
			assert_int_equal(takt_tune_same(&a, &b, true), cases[i].same_lines);
		}
}

/* Two GPUs of 300 and 500 W, by the counter and by 20 readings of each. */
static void power_is_of_all_gpus(void **state)
{
	struct takt_tune_mark a = {.at_ns = 5 * TAKT_NS_PER_S, .has_energy = true, .energy_mj = 9};
	struct takt_tune_mark b = {.at_ns = 15 * TAKT_NS_PER_S,
				   .has_energy = true,
				   .energy_mj = 9 + 8000 * 1000,
				   .power_sum_mw = 20ull * 300000 + 20ull * 500000,
				   .power_count = 40,
				   .sm_sum_mhz = 20 * 1000 + 20 * 1200,
				   .sm_count = 40};
	struct takt_tune_sample sample = {.power_w = NAN, .sm_mhz = NAN};

	takt_tune_use_marks(&a, &b, 2, &sample);
	assert_true(fabs(sample.power_w - 800) < 1e-6);
	assert_true(fabs(sample.sm_mhz - 1100) < 1e-6);
	b.has_energy = false;
	sample.power_w = NAN;
	takt_tune_use_marks(&a, &b, 2, &sample);
	assert_true(fabs(sample.power_w - 800) < 1e-6);
	a.power_sum_mw = 4 * 300000;
	a.power_count = 4;
	b.power_sum_mw = b.power_count = 0; /* one of them has stopped telling it */
	sample.power_w = NAN;
	takt_tune_use_marks(&a, &b, 2, &sample);
	assert_true(isnan(sample.power_w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_rank_counts),
		cmocka_unit_test(queries_are_added_up),
		cmocka_unit_test(a_rank_that_told_too_little_is_no_rate),
		cmocka_unit_test(a_rank_that_has_ended_rules_no_more),
		cmocka_unit_test(nothing_told_is_nothing),
		cmocka_unit_test(lines_of_ranks_may_change_places),
		cmocka_unit_test(power_is_of_all_gpus),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
