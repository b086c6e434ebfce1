/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of one file that name each other: names become the numbers that the jobs will have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "queue/queue_impl.h"
#include "queue_kit.h"

enum {
	JOBS = 4,
	FIRST_ID = 100,
};

static struct takt_jobspecs file;

static void name(uint32_t index, const char *called, const char *first, const char *second)
{
	struct takt_jobspec *spec = &file.jobs[index];
	const char *const after[] = {first, second};
	uint32_t count = 0;

	*spec = kit_spec(1);
	takt_strcpy(spec->name, sizeof(spec->name), called);
	if (!first)
		return;
	spec->after_names = takt_calloc(TAKT_ARRAY_LEN(after) + 1, sizeof(char *));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(after); i++)
		if (after[i])
			spec->after_names[count++] = takt_strdup(after[i]);
}

/* prep is an array of three; train comes after it, eval after train and job 7, all after both. */
static int setup(void **state)
{
	struct takt_jobspec *eval;

	file = (struct takt_jobspecs){.count = JOBS, .jobs = takt_calloc(JOBS, sizeof(*file.jobs))};
	name(0, "prep", NULL, NULL);
	file.jobs[0].has_array = true;
	file.jobs[0].array_last = 2;
	name(1, "train", "prep", NULL);
	name(2, "eval", "train:any", NULL);
	eval = &file.jobs[2];
	eval->after = takt_calloc(1, sizeof(*eval->after));
	eval->after[eval->after_count++] = (struct takt_spec_after){.job = 7};
	name(3, "all", "train:ok", "eval");
	return 0;
}

static int teardown(void **state)
{
	takt_jobspecs_free(&file);
	return 0;
}

static void expect_after(uint32_t index, uint32_t count, const struct takt_spec_after *want)
{
	const struct takt_jobspec *spec = &file.jobs[index];

	assert_null(spec->after_names);
	assert_int_equal(spec->after_count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(spec->after[i].job, want[i].job);
		assert_int_equal(spec->after[i].any, want[i].any);
	}
}

static void expect_numbers(void)
{
	static const struct takt_spec_after train[] = {{100, false}, {101, false}, {102, false}},
					    eval[] = {{7, false}, {103, true}},
					    all[] = {{103, false}, {104, false}};

	expect_after(0, 0, NULL);
	expect_after(1, 3, train);
	expect_after(2, 2, eval);
	expect_after(3, 2, all);
}

static void names_become_numbers(void **state)
{
	assert_int_equal(takt_queue_resolve_names(&file, FIRST_ID, NULL), 0);
	expect_numbers();
	assert_int_equal(takt_queue_resolve_names(&file, FIRST_ID, NULL), 0); /* none are left */
	expect_numbers();
}

static void rename_after(uint32_t index, const char *text)
{
	takt_free(file.jobs[index].after_names[0]);
	file.jobs[index].after_names[0] = takt_strdup(text);
}

static void what_is_not_a_job_before_it_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"train", "jobs[1]: comes after 'train', which must stand before it"},
		{"all", "which must stand before it"},
		{"nobody", "no job handed in with it is called so"},
		{"prep:never", "with :ok or :any or neither, not 'prep:never'"},
		{":any", "names of jobs"},
		{"", "names of jobs"},
		{"a-name-that-is-longer-than-any-name-of-a-job-may-be-by-the-description-of-jobs",
		 "names of jobs"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		struct takt_err err = {0};

		rename_after(1, cases[i].text);
		assert_int_equal(takt_queue_resolve_names(&file, FIRST_ID, &err), -TAKT_E_USAGE);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("'%s': %s", cases[i].text, err.msg);
	}
}

static void a_name_of_two_is_refused(void **state)
{
	struct takt_err err = {0};

	takt_strcpy(file.jobs[1].name, sizeof(file.jobs[1].name), "prep");
	rename_after(2, "prep");
	rename_after(1, "prep");
	assert_int_equal(takt_queue_resolve_names(&file, FIRST_ID, &err), -TAKT_E_USAGE);
	assert_non_null(
		strstr(err.msg, "jobs[2]: comes after 'prep', but several jobs are called so"));
}

static void arrays_count_by_their_jobs(void **state)
{
	struct takt_err err = {0};

	file.jobs[0].array_last = TAKT_SPEC_MAX_AFTER;
	assert_int_equal(takt_queue_resolve_names(&file, FIRST_ID, &err), -TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "jobs[1]: comes after more than 1000 jobs"));
}

static void a_job_by_itself_has_no_names_to_name(void **state)
{
	struct takt_err err = {0};

	assert_int_equal(takt_queue_refuse_names(&file.jobs[0], &err), 0);
	assert_int_equal(takt_queue_refuse_names(&file.jobs[1], &err), -TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "'after'"));
}

static void any_allocation_may_fail(void **state)
{
	unsigned long nth = 1;
	int rc;

	do {
		struct takt_err err = {0};

		takt_alloc_fail_nth(nth, 0);
		rc = takt_queue_resolve_names(&file, FIRST_ID, &err);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0 && (rc != -ENOMEM || !err.msg[0]))
			fail_msg("allocation %lu: %d '%s'", nth, rc, err.msg);
		nth++;
	} while (rc < 0);
	assert_true(nth > 3);
	expect_numbers();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(names_become_numbers),
		CASE(what_is_not_a_job_before_it_is_refused),
		CASE(a_name_of_two_is_refused),
		CASE(arrays_count_by_their_jobs),
		CASE(a_job_by_itself_has_no_names_to_name),
		CASE(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
