/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job stands still, with real processes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"

struct family {
	pid_t shim;  /* what stands in for one, and its group: its only child is the job */
	pid_t first; /* the job's first process */
};

static void sleep_ever(void)
{
	for (;;)
		pause();
}

/* As a shell does that was told to stop at the worst moment. */
static void vfork_and_stop(void)
{
	pid_t child = vfork();

	if (child == 0) {
		(void)kill(getpid(), SIGSTOP);
		_exit(0);
	}
	sleep_ever();
}

static void start_family(struct family *family, void (*job)(void))
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	family->shim = fork();
	assert_true(family->shim >= 0);
	if (family->shim == 0) {
		pid_t first = setpgid(0, 0) == 0 ? fork() : -1;

		if (first == 0)
			job();
		if (write(ends[1], &first, sizeof(first)) == sizeof(first))
			sleep_ever();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &family->first, sizeof(family->first)),
			 sizeof(family->first));
	close(ends[0]);
	close(ends[1]);
}

static void end_family(const struct family *family)
{
	kill(-family->shim, SIGKILL);
	assert_int_equal(waitpid(family->shim, NULL, 0), family->shim);
}

static bool stands_still(const struct family *family)
{
	struct takt_daemon daemon = {.sys = takt_sys_real()};
	struct takt_queue_job job = {.pid = family->first};
	uint32_t mem_mib;

	return takt_daemon_stands_still(&daemon, &job, &mem_mib);
}

static bool comes_to_stand_still(const struct family *family)
{
	for (int i = 0; i < 6000; i++) {
		if (stands_still(family))
			return true;
		usleep(10000);
	}
	return false;
}

static void what_sleeps_may_wake(void **state)
{
	struct family family;

	(void)state;
	start_family(&family, sleep_ever);
	assert_false(stands_still(&family));
	kill(family.first, SIGSTOP);
	assert_true(comes_to_stand_still(&family));
	end_family(&family);
}

static void who_waits_for_a_stopped_child_stands_still(void **state)
{
	struct family family;

	(void)state;
	start_family(&family, vfork_and_stop);
	assert_true(comes_to_stand_still(&family));
	end_family(&family);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_sleeps_may_wake),
		cmocka_unit_test(who_waits_for_a_stopped_child_stands_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
