/* SPDX-License-Identifier: Apache-2.0 */
/* A process is told from another with the same number, and the dead from the living. */
#include "seeded.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc_stat.h"
#include "base/sys.h"

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static bool has_ended(int pidfd, int timeout_ms)
{
	struct pollfd waiting = {.fd = pidfd, .events = POLLIN};

	return poll(&waiting, 1, timeout_ms) == 1;
}

static void a_living_process_can_be_held(void **state)
{
	pid_t pid = start_sleeper();
	struct takt_proc_id id;
	int fd;

	assert_int_equal(takt_proc_identify(pid, &id, NULL), 0);
	assert_int_equal(id.pid, pid);
	fd = takt_proc_open(&id);
	assert_true(fd >= 0);
	assert_false(has_ended(fd, 0));
	kill(pid, SIGKILL);
	assert_true(has_ended(fd, 10000));
	assert_int_equal(takt_proc_identify(pid, &id, NULL), 0); /* a zombie is still itself */
	assert_true(takt_proc_lives(&id));
	waitpid(pid, NULL, 0);
	assert_int_equal(takt_proc_open(&id), -ESRCH);
	close(fd);
}

static void the_number_alone_is_not_enough(void **state)
{
	struct takt_proc_id self, id;
	int fd;

	assert_int_equal(takt_proc_identify(getpid(), &self, NULL), 0);
	fd = takt_proc_open(&self);
	assert_true(fd >= 0);
	close(fd);
	id = self;
	id.start_ticks++;
	assert_int_equal(takt_proc_open(&id), -ESRCH);
	assert_false(takt_proc_lives(&id));
	id = self;
	id.boot_id[0] ^= 1;
	assert_int_equal(takt_proc_open(&id), -ESRCH);
	id = (struct takt_proc_id){0};
	assert_int_equal(takt_proc_open(&id), -ESRCH);
}

static void nobody_is_not_found(void **state)
{
	struct takt_proc_id id = {.pid = 77};
	struct takt_err err = {0};
	pid_t pid = start_sleeper();

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(takt_proc_identify(pid, &id, &err), -ESRCH);
	assert_int_equal(err.rc, -ESRCH);
	assert_int_equal(takt_proc_identify(0, &id, NULL), -ESRCH);
	assert_int_equal(takt_proc_identify(-1, &id, NULL), -ESRCH);
	assert_int_equal(id.pid, 77);
}

static void the_boot_has_an_id(void **state)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	char id[40], kernel[40] = "";
	struct takt_proc_id self;

	takt_boot_id(id);
	assert_int_equal(strlen(id), 36);
	if (file && fscanf(file, "%36s", kernel) == 1)
		assert_string_equal(id, kernel);
	if (file)
		fclose(file);
	assert_int_equal(takt_proc_identify(getpid(), &self, NULL), 0);
	assert_string_equal(self.boot_id, id);
}

#define TAIL "S 12 34 56 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200\n"

static void names_may_hold_anything(void **state)
{
	static const char *const lines[] = {
		"1 (sh) " TAIL, "1 () " TAIL, "1 (a b) c) " TAIL, "1 (a\n2 (b) R 1 1 1) " TAIL,
		") " TAIL,
	};
	struct takt_proc_stat stat;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(lines); i++) {
		stat = (struct takt_proc_stat){0};
		assert_int_equal(takt_proc_stat_parse(lines[i], &stat), 0);
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.ppid, 12);
		assert_int_equal(stat.pgrp, 34);
		assert_int_equal(stat.session, 56);
		assert_int_equal(stat.flags, 4194304);
		assert_int_equal(stat.cpu_ticks, 5 + 6);
		assert_int_equal(stat.threads, 1);
		assert_int_equal(stat.start_ticks, 98765);
	}
}

static void memory_is_told_where_the_line_goes_that_far(void **state)
{
	static const char line[] =
		"1 (sh) S 12 34 56 0 -1 64 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200 1 4096"
		" 1 1 1 1 1 1 1 1 0 0 0 17 1 0 0 0 0 0 1 2 3 4 5 6 140722 0\n";
	struct takt_proc_stat stat;

	assert_int_equal(takt_proc_stat_parse(line, &stat), 0);
	assert_int_equal(stat.code_start, 4096);
	assert_int_equal(stat.env_start, 6);
	assert_int_equal(stat.env_end, 140722);
	assert_int_equal(takt_proc_stat_parse("1 (sh) " TAIL, &stat), 0);
	assert_int_equal(stat.env_end, 0);
}

static void other_text_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"1",
		"1 (sh)",
		"1 (sh) S",
		"1 (sh) S 12 34 56 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0",
		"1 (sh) SS 12 34 56 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765",
		"1 (sh) S x 34 56 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765",
		"1 (sh) S 12 34 56 0 -1 -1 1 2 3 4 5 6 7 8 20 0 1 0 98765",
		"1 (sh) S 12 34 56 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 -5",
		"1 (sh) S 12 34 56 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99999999999999999999999",
	};
	struct takt_proc_stat stat = {.ppid = 77};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(lines); i++)
		assert_int_equal(takt_proc_stat_parse(lines[i], &stat), -EINVAL);
	assert_int_equal(stat.ppid, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_living_process_can_be_held),
		cmocka_unit_test(the_number_alone_is_not_enough),
		cmocka_unit_test(nobody_is_not_found),
		cmocka_unit_test(the_boot_has_an_id),
		cmocka_unit_test(names_may_hold_anything),
		cmocka_unit_test(memory_is_told_where_the_line_goes_that_far),
		cmocka_unit_test(other_text_is_refused),
	};

	return cmocka_run_group_tests_name("proc_id", tests, NULL, NULL);
}
