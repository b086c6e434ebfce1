/* SPDX-License-Identifier: Apache-2.0 */
/* takt-shim with jobs that print without end: the disk is spared, the job is not disturbed, and a
 * shim whose job prints nothing sleeps. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "launch_fixture.h"

enum {
	MIB = 1 << 20,
	PRINTED = 16 * MIB,
	SPARED = 2 * MIB, /* the limit, and what a file system takes on top */
	WAIT_MS = 120000,
	LOOKS = 4,
};

/* 16 MiB of lines. */
#define PRINT "yes 'the same warning of a library' | head -c 16777216; "
static const char line[] = "the same warning of a library\n";

static void create(const struct fixture *fixture, struct takt_attempt_spec spec)
{
	spec.output_limit = MIB;
	assert_int_equal(takt_attempt_create(fixture->sys, fixture->jobs_dirfd, &spec, NULL), 0);
	takt_attempt_spec_fini(&spec);
}

static pid_t start(const struct fixture *fixture, uint64_t job_id, const char *script)
{
	create(fixture, spec_sh(fixture, job_id, 1, script));
	return shim_start(fixture, job_id, 1, NULL);
}

static struct stat stat_of(const struct fixture *fixture, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(fixture->jobs_dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static off_t bytes_on_disk(const struct fixture *fixture, const char *name)
{
	return stat_of(fixture, name).st_blocks * 512;
}

/* All of it was printed, and the disk has little of it. */
static void wait_spared(const struct fixture *fixture, const char *name)
{
	for (int ms = 0; ms < WAIT_MS; ms += 10) {
		if (stat_of(fixture, name).st_size >= PRINTED &&
		    bytes_on_disk(fixture, name) <= SPARED)
			return;
		sleep_ms(10);
	}
	fail_msg("%s: %lld of %lld bytes are on the disk", name,
		 (long long)bytes_on_disk(fixture, name),
		 (long long)stat_of(fixture, name).st_size);
}

static void expect_text_at(const struct fixture *fixture, const char *name, off_t at,
			   const char *want)
{
	int fd = openat(fixture->jobs_dirfd, name, O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	assert_true(fd >= 0 && strlen(want) < sizeof(text));
	assert_int_equal(pread(fd, text, strlen(want), at < 0 ? lseek(fd, 0, SEEK_END) + at : at),
			 strlen(want));
	assert_string_equal(text, want);
	close(fd);
}

/* Of what was printed between "first" and "last". */
static void expect_byte(const struct fixture *fixture, off_t at)
{
	const char want[] = {line[(at - (off_t)strlen("first\n")) % (off_t)strlen(line)], '\0'};

	expect_text_at(fixture, "1.1/log", at, want);
}

static struct takt_output_cut cut_of(const struct fixture *fixture, uint64_t job_id)
{
	struct takt_output_cut cut;

	assert_int_equal(takt_attempt_cut(fixture->sys, fixture->jobs_dirfd, job_id, 1, &cut), 0);
	return cut;
}

static void its_log_keeps_both_ends(void **state)
{
	struct fixture *fixture = *state;
	struct takt_output_cut cut;

	assert_int_equal(wait_pid(start(fixture, 1, "echo first; " PRINT "echo last")), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 0);
	assert_int_equal(stat_of(fixture, "1.1/log").st_size, PRINTED + strlen("first\nlast\n"));
	assert_true(bytes_on_disk(fixture, "1.1/log") <= SPARED);
	expect_text_at(fixture, "1.1/log", 0, "first\nthe same");
	expect_text_at(fixture, "1.1/log", -5, "last\n");
	cut = cut_of(fixture, 1);
	assert_int_equal(cut.limit, MIB);
	assert_int_equal(cut.from, MIB / 4);
	assert_true(cut.to > PRINTED - MIB && cut.to < PRINTED);
	for (off_t at = 0; at < 1000; at++) { /* whole to the last byte at both ends */
		expect_byte(fixture, (off_t)cut.from - 1 - at);
		expect_byte(fixture, (off_t)cut.to + at);
	}
}

/* It is asked for while it runs: what is on the disk then is what counts. */
static void the_disk_is_spared_while_it_runs(void **state)
{
	struct fixture *fixture = *state;
	pid_t shim = start(fixture, 1,
			   PRINT "echo over > printed; while ! test -e over; do sleep 0.01; done");

	wait_file(fixture, "printed");
	wait_spared(fixture, "1.1/log");
	assert_int_equal(status_of(fixture, 1, 1).state, TAKT_ATTEMPT_ALIVE);
	put_file(fixture, "over");
	assert_int_equal(wait_pid(shim), 0);
	assert_int_equal(status_of(fixture, 1, 1).exit_code, 0);
}

static void what_fits_is_left_whole(void **state)
{
	struct fixture *fixture = *state;
	struct takt_output_cut cut;
	char *log;

	assert_int_equal(wait_pid(start(fixture, 1, "yes | head -c 1000000")), 0);
	assert_int_equal(takt_attempt_cut(fixture->sys, fixture->jobs_dirfd, 1, 1, &cut), -ENOENT);
	log = slurp_log(fixture, 1, 1);
	assert_int_equal(strlen(log), 1000000);
	takt_free(log);
}

/* The directory is the user's. The shim goes by what the job writes to, never by the name. */
static void a_log_that_is_replaced_harms_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct stat before;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/victim", fixture->jobs);
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < PRINTED / 8; i++)
		assert_true(fputs("precious", file) >= 0);
	assert_int_equal(fclose(file), 0);
	before = stat_of(fixture, "victim");
	assert_int_equal(wait_pid(start(fixture, 1,
					"cd jobs/1.1; mv log aside; ln -s ../victim log; " PRINT)),
			 0);
	assert_int_equal(stat_of(fixture, "victim").st_blocks, before.st_blocks);
	assert_int_equal(stat_of(fixture, "victim").st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_true(bytes_on_disk(fixture, "1.1/aside") <= SPARED);
	assert_int_equal(
		wait_pid(start(fixture, 2, "cd jobs/2.1; mv log aside; mkfifo log; " PRINT)), 0);
	assert_true(bytes_on_disk(fixture, "2.1/aside") <= SPARED);
	assert_int_equal(status_of(fixture, 2, 1).exit_code, 0);
}

static void what_passes_through_the_shim_is_bound(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 1, PRINT);

	spec.ranks = 2;
	spec.rank_prefix = true;
	spec.master_port = 29600;
	create(fixture, spec);
	assert_int_equal(wait_pid(shim_start(fixture, 1, 1, NULL)), 0);
	assert_true(stat_of(fixture, "1.1/log").st_size > 2 * PRINTED);
	assert_true(bytes_on_disk(fixture, "1.1/log") <= SPARED);
}

static void a_hook_adds_no_more_than_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 2, PRINT);

	assert_int_equal(wait_pid(start(fixture, 1, "echo first")), 0);
	takt_strcpy(spec.hook_event, sizeof(spec.hook_event), "ended");
	spec.hook_limit_ms = WAIT_MS;
	spec.hook_log = 1;
	create(fixture, spec);
	assert_int_equal(wait_pid(shim_start(fixture, 1, 2, NULL)), 0);
	assert_true(stat_of(fixture, "1.1/log").st_size > PRINTED);
	assert_true(bytes_on_disk(fixture, "1.1/log") <= SPARED);
	assert_int_equal(cut_of(fixture, 1).limit, MIB);
}

static void a_prefetch_prints_no_more_than_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct takt_attempt_spec spec = spec_sh(fixture, 1, 1, "true");
	pid_t shim;

	spec.stage_lease_ms = 10 * WAIT_MS;
	spec.prefetch_limit_ms = 10 * WAIT_MS;
	spec.prefetch = takt_calloc(4, sizeof(*spec.prefetch));
	spec.prefetch[0] = takt_strdup("sh");
	spec.prefetch[1] = takt_strdup("-c");
	spec.prefetch[2] = takt_strdup(PRINT "exec sleep 600");
	create(fixture, spec);
	shim = shim_start(fixture, 1, 1, NULL);
	wait_file(fixture, "jobs/1.1/staged");
	wait_spared(fixture, "1.1/log");
	assert_int_equal(kill(shim, SIGTERM), 0);
	assert_int_equal(wait_pid(shim), 0);
}

/* How often it has gone to sleep. */
static unsigned long sleeps(pid_t pid)
{
	char path[64], text[256];
	unsigned long n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(text, sizeof(text), file))
		(void)sscanf(text, "voluntary_ctxt_switches: %lu", &n);
	fclose(file);
	return n;
}

static void wait_sleeps(pid_t pid, unsigned long more)
{
	unsigned long before = sleeps(pid);

	for (int ms = 0; ms < WAIT_MS && sleeps(pid) < before + more; ms += 10)
		sleep_ms(10);
	assert_true(sleeps(pid) >= before + more);
}

/* While the one shim looks, again and again, the other does not wake. */
static void a_shim_whose_job_is_quiet_does_not_wake(void **state)
{
	struct fixture *fixture = *state;
	unsigned long before, after;
	pid_t busy, quiet = start(fixture, 1, "echo one > begun; exec sleep 600");

	busy = start(fixture, 2, "while ! test -e over; do echo line; sleep 0.01; done");
	wait_file(fixture, "begun");
	wait_sleeps(busy, LOOKS);
	before = sleeps(quiet);
	wait_sleeps(busy, LOOKS);
	after = sleeps(quiet);
	put_file(fixture, "over");
	kill(quiet, SIGTERM);
	assert_int_equal(wait_pid(busy), 0);
	assert_int_equal(wait_pid(quiet), 0);
	assert_int_equal(after, before);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_up, fixture_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(its_log_keeps_both_ends),
		CASE(the_disk_is_spared_while_it_runs),
		CASE(what_fits_is_left_whole),
		CASE(a_log_that_is_replaced_harms_nothing),
		CASE(what_passes_through_the_shim_is_bound),
		CASE(a_hook_adds_no_more_than_is_kept),
		CASE(a_prefetch_prints_no_more_than_is_kept),
		CASE(a_shim_whose_job_is_quiet_does_not_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
