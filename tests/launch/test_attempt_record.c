/* SPDX-License-Identifier: Apache-2.0 */
/* Records as text: what is written comes back, and nothing else is believed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "launch/attempt_record.h"
#include "launch/attempt_spec.h"
#include "launch/attempt_status.h"

static char *sample_argv[] = {(char[]){"./a b.sh"}, (char[]){""}, (char[]){"100%\n\xff"}, NULL};
static char *sample_env[] = {(char[]){"PATH=/bin"}, (char[]){"TAKT_ATTEMPT=3.2.n"}, NULL};
static char sample_cwd[] = "/home/a user";

static struct takt_attempt_spec sample_spec(void)
{
	return (struct takt_attempt_spec){.job_id = 3,
					  .attempt = 2,
					  .id = "3.2.n",
					  .argv = sample_argv,
					  .env = sample_env,
					  .cwd = sample_cwd,
					  .grace_ms = 30000,
					  .cpu_count = 2,
					  .cpus = {3, [15] = 1ull << 63},
					  .cgroup = "/sys/fs/cgroup/x y"};
}

static void test_spec_comes_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	struct takt_attempt_spec spec = sample_spec(), got;

	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	assert_ptr_equal(strchr(text.s, '\n'), text.s + text.len - 1); /* one line */
	assert_int_equal(takt_attempt_spec_parse(text.s, text.len, &got), 0);
	assert_int_equal(got.job_id, 3);
	assert_int_equal(got.attempt, 2);
	assert_string_equal(got.id, "3.2.n");
	assert_string_equal(got.argv[0], "./a b.sh");
	assert_string_equal(got.argv[1], "");
	assert_string_equal(got.argv[2], "100%\n\xff");
	assert_null(got.argv[3]);
	assert_string_equal(got.env[1], "TAKT_ATTEMPT=3.2.n");
	assert_null(got.env[2]);
	assert_string_equal(got.cwd, "/home/a user");
	assert_string_equal(got.cgroup, "/sys/fs/cgroup/x y");
	assert_int_equal(got.grace_ms, 30000);
	assert_memory_equal(got.cpus, spec.cpus, sizeof(spec.cpus));
	takt_attempt_spec_fini(&got);
}

static void test_spec_of_ranks_and_a_container_comes_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	struct takt_attempt_spec spec = sample_spec(), got;

	spec.ranks = 4;
	spec.rank_prefix = true;
	spec.master_port = 29600;
	spec.cleanup = sample_argv;
	spec.progress = true;
	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	assert_int_equal(takt_attempt_spec_parse(text.s, text.len, &got), 0);
	assert_int_equal(got.ranks, 4);
	assert_true(got.rank_prefix);
	assert_int_equal(got.master_port, 29600);
	assert_string_equal(got.cleanup[0], "./a b.sh");
	assert_null(got.cleanup[3]);
	assert_true(got.progress);
	assert_false(got.pty);
	takt_attempt_spec_fini(&got);
}

static void test_spec_refuses_what_cannot_be_started(void **state)
{
	struct takt_attempt_spec spec = sample_spec();

	spec.ranks = 2; /* without a port */
	assert_int_equal(takt_attempt_spec_check(&spec, NULL), -EINVAL);
	spec.master_port = 70000;
	assert_int_equal(takt_attempt_spec_check(&spec, NULL), -EINVAL);
	spec.master_port = 29600;
	assert_int_equal(takt_attempt_spec_check(&spec, NULL), 0);
	spec.pty = true;
	assert_int_equal(takt_attempt_spec_check(&spec, NULL), -EINVAL);
	spec.ranks = 1;
	assert_int_equal(takt_attempt_spec_check(&spec, NULL), 0);
}

static void test_spec_of_a_staged_attempt_comes_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	struct takt_attempt_spec spec = sample_spec(), got;

	spec.stage_lease_ms = 300000;
	spec.prefetch_limit_ms = 5;
	spec.prefetch = sample_argv;
	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	assert_int_equal(takt_attempt_spec_parse(text.s, text.len, &got), 0);
	assert_int_equal(got.stage_lease_ms, 300000);
	assert_int_equal(got.prefetch_limit_ms, 5);
	assert_string_equal(got.prefetch[0], "./a b.sh");
	takt_attempt_spec_fini(&got);
	spec.prefetch = NULL;
	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	assert_int_equal(takt_attempt_spec_parse(text.s, text.len, &got), 0);
	assert_int_equal(got.stage_lease_ms, 300000);
	assert_null(got.prefetch);
	takt_attempt_spec_fini(&got);
}

static void test_spec_of_a_hook_comes_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	struct takt_attempt_spec spec = sample_spec(), got;

	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	assert_null(strstr(text.s, "hook"));
	takt_strcpy(spec.hook_event, sizeof(spec.hook_event), "ended");
	spec.hook_limit_ms = 60000;
	spec.hook_log = 3;
	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	assert_int_equal(takt_attempt_spec_parse(text.s, text.len, &got), 0);
	assert_string_equal(got.hook_event, "ended");
	assert_int_equal(got.hook_limit_ms, 60000);
	assert_int_equal(got.hook_log, 3);
	takt_attempt_spec_fini(&got);
}

static void test_what_is_kept_of_the_output_comes_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	struct takt_attempt_spec spec = sample_spec(), got;
	struct takt_output_cut cut = {.limit = 1 << 20, .from = 1 << 18, .to = 1 << 30}, again;

	spec.output_limit = 1 << 20;
	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	assert_int_equal(takt_attempt_spec_parse(text.s, text.len, &got), 0);
	assert_int_equal(got.output_limit, 1 << 20);
	takt_attempt_spec_fini(&got);
	assert_int_equal(takt_attempt_cut_format(&cut, &text), 0);
	assert_int_equal(takt_attempt_cut_parse(text.s, text.len, &again), 0);
	assert_memory_equal(&again, &cut, sizeof(cut));
	cut.to = UINT64_C(1) << 53; /* more than a view can hold */
	assert_int_equal(takt_attempt_cut_format(&cut, &text), 0);
	assert_int_equal(takt_attempt_cut_parse(text.s, text.len, &again), -TAKT_E_CORRUPT);
	cut.to = cut.from; /* nothing went: no such record is written */
	assert_int_equal(takt_attempt_cut_format(&cut, &text), 0);
	assert_int_equal(takt_attempt_cut_parse(text.s, text.len, &again), -TAKT_E_CORRUPT);
}

static void test_every_torn_spec_is_refused(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	struct takt_attempt_spec spec = sample_spec(), got;

	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	for (size_t len = 0; len < text.len; len++)
		assert_int_equal(takt_attempt_spec_parse(text.s, len, &got), -TAKT_E_CORRUPT);
	for (size_t i = 0; i < text.len; i++) {
		text.s[i] ^= 1;
		assert_true(takt_attempt_spec_parse(text.s, text.len, &got) < 0);
		text.s[i] ^= 1;
	}
}

static void test_every_allocation_of_reading_a_spec_fails(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	struct takt_attempt_spec spec = sample_spec(), got;
	int rc = -ENOMEM;

	spec.cleanup = sample_argv;
	assert_int_equal(takt_attempt_spec_format(&spec, &text), 0);
	for (unsigned long nth = 1; rc < 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_attempt_spec_parse(text.s, text.len, &got);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	takt_attempt_spec_fini(&got);
}

/* The text is a contract with the shims of an older build that still run. */
static void test_records_read_as_documented(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
	struct takt_attempt_status end = {.exit_kind = TAKT_EXIT_EXEC_FAILED,
					  .exit_code = ENOENT,
					  .ended_at = {1700000000000000001},
					  .run_ns = 5000,
					  .message = "exec './x y': No such file"};
	struct takt_attempt_status got = {0};
	char *crc;

	assert_int_equal(takt_attempt_exit_format(&end, &text), 0);
	crc = strstr(text.s, " crc=");
	assert_non_null(crc);
	assert_int_equal(strlen(crc), 14);
	assert_int_equal(takt_attempt_exit_parse(text.s, text.len, &got), 0);
	assert_int_equal(got.exit_kind, TAKT_EXIT_EXEC_FAILED);
	assert_int_equal(got.exit_code, ENOENT);
	assert_int_equal(got.ended_at.ns, 1700000000000000001);
	assert_int_equal(got.run_ns, 5000);
	assert_string_equal(got.message, end.message);
	*crc = '\0';
	assert_string_equal(text.s,
			    "takt-exit 1 kind=exec_failed code=2 wall_ns=1700000000000000001"
			    " run_ns=5000 message=exec%20'./x%20y':%20No%20such%20file");
}

static void seal(struct takt_str *text, const char *body)
{
	takt_str_reset(text);
	assert_int_equal(takt_str_add(text, body), 0);
	assert_int_equal(takt_record_end(text), 0);
}

/* A sound checksum over the wrong thing is refused too. */
static void test_strict_in_order_and_range(void **state)
{
	static const struct {
		const char *body;
		int rc;
	} rows[] = {
		{"takt-shim 1 pid=5 start_ticks=9 boot=b", 0},
		{"takt-shim 2 pid=5 start_ticks=9 boot=b", -TAKT_E_VERSION},
		{"takt-shim 12 pid=5 start_ticks=9 boot=b", -TAKT_E_VERSION},
		{"takt-exit 1 pid=5 start_ticks=9 boot=b", -TAKT_E_CORRUPT}, /* another record */
		{"takt-shim 1 start_ticks=9 pid=5 boot=b", -TAKT_E_CORRUPT}, /* order */
		{"takt-shim 1 pid=5 start_ticks=9", -TAKT_E_CORRUPT},	     /* too few */
		{"takt-shim 1 pid=5 start_ticks=9 boot=b x=1", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=0 start_ticks=9 boot=b", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=2147483648 start_ticks=9 boot=b", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=5x start_ticks=9 boot=b", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid= start_ticks=9 boot=b", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=00000000000000000000000000005 start_ticks=9 boot=b",
		 -TAKT_E_CORRUPT},
		{"takt-shim 1  pid=5 start_ticks=9 boot=b", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=5 start_ticks=9 boot=%4", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=5 start_ticks=9 boot=%00", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=5 start_ticks=9 boot=%zz", -TAKT_E_CORRUPT},
		{"takt-shim 1 pid=5 start_ticks=9 "
		 "boot=0123456789012345678901234567890123456789",
		 -TAKT_E_CORRUPT}, /* longer than a boot id may be */
		{"takt-shim 1", -TAKT_E_CORRUPT},
		{"", -TAKT_E_CORRUPT},
	};
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
	struct takt_attempt_status got;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		got = (struct takt_attempt_status){0};
		seal(&text, rows[i].body);
		if (takt_attempt_shim_parse(text.s, text.len, &got) != rows[i].rc)
			fail_msg("row %zu: '%s'", i, rows[i].body);
		assert_int_equal(got.shim.pid, rows[i].rc == 0 ? 5 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spec_comes_back),
		cmocka_unit_test(test_spec_of_ranks_and_a_container_comes_back),
		cmocka_unit_test(test_spec_refuses_what_cannot_be_started),
		cmocka_unit_test(test_spec_of_a_staged_attempt_comes_back),
		cmocka_unit_test(test_spec_of_a_hook_comes_back),
		cmocka_unit_test(test_what_is_kept_of_the_output_comes_back),
		cmocka_unit_test(test_every_torn_spec_is_refused),
		cmocka_unit_test(test_every_allocation_of_reading_a_spec_fails),
		cmocka_unit_test(test_records_read_as_documented),
		cmocka_unit_test(test_strict_in_order_and_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
