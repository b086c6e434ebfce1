/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actuator and guard as whole functions in a world where each system call fails once, and memory
 * is short: the actuator starts or says why not and lets go of everything, the guard restores all
 * the same.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "actuate/actuate.h"
#include "actuate/journal.h"
#include "base/mem.h"
#include "base/str.h"
#include "fake_boards.h"
#include "fake_sys.h"

static struct fake_sys *world;
static struct takt_machine machine;
static struct takt_journal journal;
static atomic_bool time_flies;
static atomic_int driver_comes_after_ms; /* 0: it is there, or never comes */
static pthread_t clock_thread;

static const struct takt_clock_range left_at = {210, 900};

/* A hundred times as fast as the real clock: pauses between tries cost the test nothing. */
static void *let_time_fly(void *unused)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	while (time_flies) {
		nanosleep(&ms, NULL);
		fake_sys_advance(world, 100 * TAKT_NS_PER_MS);
		if (driver_comes_after_ms > 0 && --driver_comes_after_ms == 0)
			fake_boards_installed = &machine;
	}
	return NULL;
}

/* Board 1 of two was left at a range, and the journal says so. */
static void begin(void)
{
	struct takt_journal_record record = {.state = TAKT_JOURNAL_CHANGED,
					     .setting = {.sm = left_at}};
	const struct takt_sys *sys;

	world = fake_sys_new();
	sys = fake_sys_table(world);
	fake_sys_add_dir(world, "/state");
	fake_boards_init(&machine, 2);
	fake_boards_installed = &machine;
	machine.boards[1].locked = true;
	machine.boards[1].range = left_at;
	takt_strcpy(record.uuid, sizeof(record.uuid), machine.boards[1].facts.uuid);
	takt_boot_id(record.boot_id);
	takt_driver_load(sys, &machine.info, record.driver_load);
	assert_int_equal(takt_journal_open(sys, "/state/journal", &journal, NULL), 0);
	assert_int_equal(takt_journal_record(&journal, &record, NULL), 0);
	takt_journal_close(&journal);
	time_flies = true;
	assert_int_equal(pthread_create(&clock_thread, NULL, let_time_fly, NULL), 0);
}

static void finish(void)
{
	time_flies = false;
	pthread_join(clock_thread, NULL);
	fake_sys_free(world);
}

static struct takt_actuate_config config_with(int stop_fd)
{
	return (struct takt_actuate_config){
		.sys = fake_sys_table(world),
		.listen_fd = -1,
		.stop_fd = stop_fd,
		.journal_path = "/state/journal",
		.lock_path = "/state/lock",
		.baseline_path = "",
	};
}

/* A guard whose actuator is gone already. */
static int run_guard(struct takt_err *err)
{
	struct takt_actuate_config config = config_with(-1);
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	close(ends[0]);
	return takt_guard_run(&config, ends[1], err);
}

/* An actuator that is asked to stop as soon as it has started. */
static int run_actuator(struct takt_err *err)
{
	int stop = eventfd(1, EFD_CLOEXEC);
	struct takt_actuate_config config = config_with(stop);
	int rc = takt_actuate_serve(&config, err);

	close(stop);
	return rc;
}

static void the_guard_restores_whatever_call_fails(void **state)
{
	bool reached = true;

	for (unsigned long nth = 1; reached; nth++) {
		unsigned long before;
		int rc;

		begin();
		before = fake_sys_calls(world, FAKE_SYS_ANY);
		fake_sys_fail_nth(world, FAKE_SYS_ANY, nth, EIO, false);
		rc = run_guard(NULL);
		reached = fake_sys_calls(world, FAKE_SYS_ANY) - before >= nth;
		if (rc == 0)
			assert_false(machine.boards[1].locked);
		assert_int_equal(machine.boards[0].resets, 0);
		assert_int_equal(fake_sys_open_count(world), 0);
		finish();
	}
}

static void the_guard_waits_for_a_driver_that_is_away(void **state)
{
	begin();
	driver_comes_after_ms = 120;
	fake_boards_installed = NULL;
	assert_int_equal(run_guard(NULL), 0);
	assert_false(machine.boards[1].locked);
	finish();
}

static void the_actuator_starts_or_lets_go_whatever_call_fails(void **state)
{
	bool reached = true;
	struct takt_err err;

	for (unsigned long nth = 1; reached; nth++) {
		unsigned long before;
		int rc;

		begin();
		before = fake_sys_calls(world, FAKE_SYS_ANY);
		fake_sys_fail_nth(world, FAKE_SYS_ANY, nth, EIO, false);
		rc = run_actuator(&err);
		reached = fake_sys_calls(world, FAKE_SYS_ANY) - before >= nth;
		if (rc == 0)
			assert_false(machine.boards[1].locked);
		else
			assert_true(err.rc == rc && err.msg[0] != '\0');
		assert_int_equal(fake_sys_open_count(world), 0);
		if (rc < 0) /* and the next one is not in its way */
			assert_int_equal(run_actuator(&err), 0);
		assert_false(machine.boards[1].locked);
		finish();
	}
}

static void without_memory_or_driver_both_say_so(void **state)
{
	struct takt_err err;

	begin();
	takt_alloc_fail_nth(1, 0);
	assert_int_equal(run_actuator(&err), -ENOMEM);
	takt_alloc_fail_nth(1, 0);
	assert_int_equal(run_guard(&err), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	fake_boards_installed = NULL;
	assert_int_equal(run_actuator(&err), -TAKT_E_UNAVAILABLE);
	assert_int_equal(fake_sys_open_count(world), 0);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_guard_restores_whatever_call_fails),
		cmocka_unit_test(the_guard_waits_for_a_driver_that_is_away),
		cmocka_unit_test(the_actuator_starts_or_lets_go_whatever_call_fails),
		cmocka_unit_test(without_memory_or_driver_both_say_so),
	};

	return cmocka_run_group_tests_name("trouble", tests, NULL, NULL);
}
