/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a job, one rule a test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/local/jobenv.h"

static const struct takt_jobenv_gpu gpus[] = {{0, "GPU-aaaa"}, {3, "GPU-dddd"}};

static struct takt_jobenv plain(char *const *user_env)
{
	return (struct takt_jobenv){.user_env = user_env,
				    .gpus = gpus,
				    .gpu_count = 2,
				    .cpu_count = 16,
				    .job_id = 12,
				    .attempt_id = "12.1.ab"};
}

/* The value of a name that is there exactly once; NULL when absent. */
static const char *value(char *const *env, const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;

	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') {
			assert_null(found);
			found = *env + len + 1;
		}
	return found;
}

static char **build(const struct takt_jobenv *in)
{
	char **env = NULL;

	assert_int_equal(takt_jobenv_build(in, &env, NULL), 0);
	return env;
}

static void test_gpus_by_index_in_pci_order(void **state)
{
	char *user[] = {(char[]){"CUDA_VISIBLE_DEVICES=7"},
			(char[]){"CUDA_DEVICE_ORDER=FASTEST_FIRST"}, (char[]){"TAKT_GPUS=x"}, NULL};
	struct takt_jobenv in = plain(user);
	char **env = build(&in);

	assert_string_equal(value(env, "CUDA_VISIBLE_DEVICES"), "0,3");
	assert_string_equal(value(env, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
	assert_string_equal(value(env, "TAKT_GPUS"), "0,3");
	assert_string_equal(value(env, "TAKT_JOB_ID"), "12");
	assert_string_equal(value(env, "TAKT_ATTEMPT"), "12.1.ab");
	takt_jobenv_free(env);
}

static void test_gpus_by_uuid_on_request(void **state)
{
	struct takt_jobenv in = plain(NULL);
	char **env;

	in.by_uuid = true;
	env = build(&in);
	assert_string_equal(value(env, "CUDA_VISIBLE_DEVICES"), "GPU-aaaa,GPU-dddd");
	assert_string_equal(value(env, "TAKT_GPUS"), "0,3");
	takt_jobenv_free(env);
}

static void test_gpu_without_uuid_is_named(void **state)
{
	const struct takt_jobenv_gpu nameless = {.index = 5};
	struct takt_jobenv in = plain(NULL);
	struct takt_err err;
	char **env = NULL;

	in.by_uuid = true;
	in.gpus = &nameless;
	in.gpu_count = 1;
	assert_int_equal(takt_jobenv_build(&in, &env, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "GPU 5"));
	assert_null(env);
}

/* Empty, not unset: unset would show it every GPU. */
static void test_job_without_gpus_sees_none(void **state)
{
	char *user[] = {(char[]){"CUDA_VISIBLE_DEVICES=0,1,2,3"}, NULL};
	struct takt_jobenv in = plain(user);
	char **env;

	in.gpu_count = 0;
	env = build(&in);
	assert_string_equal(value(env, "CUDA_VISIBLE_DEVICES"), "");
	assert_string_equal(value(env, "TAKT_GPUS"), "");
	assert_string_equal(value(env, "OMP_NUM_THREADS"), "16");
	takt_jobenv_free(env);
}

static void test_threads_are_shared_out_unless_the_user_says(void **state)
{
	static const struct {
		uint32_t cpus;
		size_t gpus;
		const char *user, *want;
	} rows[] = {
		{16, 2, NULL, "8"},
		{3, 2, NULL, "1"},
		{1, 2, NULL, "1"},
		{0, 2, NULL, NULL},
		/* not known */ {16, 2, "4", "4"},
		{16, 2, "", ""}, /* set to nothing: his */
	};
	char text[64];
	char *user[] = {text, NULL};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_jobenv in = plain(rows[i].user ? user : NULL);
		const char *got;
		char **env;

		snprintf(text, sizeof(text), "OMP_NUM_THREADS=%s",
			 rows[i].user ? rows[i].user : "");
		in.cpu_count = rows[i].cpus;
		in.gpu_count = rows[i].gpus;
		env = build(&in);
		got = value(env, "OMP_NUM_THREADS");
		if (rows[i].want)
			assert_string_equal(got, rows[i].want);
		else
			assert_null(got);
		takt_jobenv_free(env);
	}
}

static void test_users_variables_stay_in_order(void **state)
{
	char *user[] = {(char[]){"B=2"},
			(char[]){"A=1=1"},
			(char[]){"nonsense"},
			(char[]){"=x"},
			(char[]){"B=3"},
			(char[]){"EMPTY="},
			NULL};
	struct takt_jobenv in = plain(user);
	char **env = build(&in);

	assert_string_equal(env[0], "B=3"); /* the last one given */
	assert_string_equal(env[1], "A=1=1");
	assert_string_equal(env[2], "EMPTY=");
	assert_string_equal(env[3], "CUDA_DEVICE_ORDER=PCI_BUS_ID");
	takt_jobenv_free(env);
}

static void test_a_share_is_told_and_where_mps_runs_limited(void **state)
{
	struct takt_jobenv in = plain(NULL);
	char **env;

	in.gpu_milli = 1000;
	env = build(&in);
	assert_null(value(env, "TAKT_GPU_MILLI"));
	takt_jobenv_free(env);
	in.gpu_milli = 250;
	in.gpu_mem_mib = 4096;
	env = build(&in);
	assert_string_equal(value(env, "TAKT_GPU_MILLI"), "250");
	assert_string_equal(value(env, "TAKT_GPU_MEM_MIB"), "4096");
	assert_null(value(env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"));
	takt_jobenv_free(env);
	in.mps = true;
	env = build(&in);
	assert_string_equal(value(env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "0=4096M,1=4096M");
	takt_jobenv_free(env);
}

static void test_every_allocation_failing(void **state)
{
	char *user[] = {(char[]){"A=1"}, (char[]){"TAKT_JOB_ID=9"}, NULL};
	struct takt_jobenv in = plain(user);
	char **env = NULL;
	int rc = -ENOMEM;

	for (unsigned long nth = 1; rc < 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_jobenv_build(&in, &env, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || (rc == -ENOMEM && !env));
	}
	assert_string_equal(value(env, "TAKT_JOB_ID"), "12");
	takt_jobenv_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpus_by_index_in_pci_order),
		cmocka_unit_test(test_gpus_by_uuid_on_request),
		cmocka_unit_test(test_gpu_without_uuid_is_named),
		cmocka_unit_test(test_job_without_gpus_sees_none),
		cmocka_unit_test(test_threads_are_shared_out_unless_the_user_says),
		cmocka_unit_test(test_users_variables_stay_in_order),
		cmocka_unit_test(test_a_share_is_told_and_where_mps_runs_limited),
		cmocka_unit_test(test_every_allocation_failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
