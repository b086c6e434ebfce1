/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of a process that works on a store, at each named crash point and at random moments; the
 * next process must find all that was reported durable. The ledger lies in a mapped file, which
 * outlives the killed. (What a kill cannot show, unsynced writes, is the power-loss campaign's.)
 *
 * The program starts itself again as the process to be killed: "test_store_crash life DIR SEED".
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "store_fixture.h"
#include "store_ledger.h"

enum {
	STEPS = 60,
	RANDOM_KILLS = 40,
};

static struct store_place place;

static int setup(void **state)
{
	store_place_init(&place);
	return 0;
}

static int teardown(void **state)
{
	store_place_fini(&place);
	return 0;
}

static const char *ledger_path(void)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/ledger", place.dir);
	return path;
}

/* The child: judges what it finds, works, closes. Status 0 all was well, 1 see the ledger. */
static int live(const char *dir, uint64_t seed)
{
	struct takt_store_config config = {.path = place.path, .checkpoint_frames = 12};
	struct takt_store *store = NULL;
	struct takt_err err = {0};
	struct ledger *ledger;
	struct takt_rng rng;

	takt_strcpy(place.dir, sizeof(place.dir), dir);
	snprintf(place.path, sizeof(place.path), "%s/takt.db", dir);
	ledger = ledger_map(ledger_path());
	takt_rng_init(&rng, seed);
	if (takt_store_open(&config, &store, &err) < 0 || ledger_check(ledger, store, &err) < 0)
		takt_strcpy(ledger->why, sizeof(ledger->why), err.msg);
	for (int i = 0; i < STEPS && !ledger->why[0]; i++) {
		if (!ledger_post(ledger, store, &rng))
			takt_strcpy(ledger->why, sizeof(ledger->why), "could not post");
		ledger_take(ledger, store, takt_rng_below(&rng, 4) == 0);
	}
	if (!ledger->why[0])
		ledger_take(ledger, store, true);
	takt_store_close(store);
	return ledger->why[0] != '\0';
}

static pid_t start(const char *crash_at, uint64_t seed)
{
	char text[24];
	pid_t pid;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
	pid = fork();
	if (pid == 0) {
		if (crash_at)
			setenv("TAKT_CRASH_AT", crash_at, 1);
		execl("/proc/self/exe", "test_store_crash", "life", place.dir, text, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

/* True if it was killed, false if it ended well; fails the test otherwise. */
static bool finish(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	if (status != 0)
		fail_msg("status %x: %s", status, ledger_map(ledger_path())->why);
	return false;
}

/* Killed at the first, second, ... pass of the point, each time in the life after the last. */
static void killed_at(const char *point, unsigned passes)
{
	char at[80];

	for (unsigned nth = 1; nth <= passes; nth++) {
		snprintf(at, sizeof(at), "%s:%u", point, nth);
		if (!finish(start(at, nth)))
			fail_msg("%s was not reached", at);
		assert_false(finish(start(NULL, nth + 100)));
	}
}

static void killed_while_migrating(void **state)
{
	killed_at("store.before_migrate", 1);
}

static void killed_before_commit(void **state)
{
	killed_at("store.before_commit", 5);
}

static void killed_after_commit(void **state)
{
	killed_at("store.after_commit", 5);
}

static void killed_before_report(void **state)
{
	killed_at("store.before_report", 5);
}

static void killed_after_report(void **state)
{
	killed_at("store.after_report", 5);
}

static void killed_before_checkpoint(void **state)
{
	killed_at("store.before_checkpoint", 2);
}

static void killed_after_checkpoint(void **state)
{
	killed_at("store.after_checkpoint", 2);
}

static void killed_at_random_moments(void **state)
{
	struct takt_rng rng;
	unsigned killed = 0;

	takt_rng_init(&rng, 7);
	for (unsigned i = 0; i < RANDOM_KILLS; i++) {
		struct timespec wait = {.tv_nsec = (long)takt_rng_below(&rng, 30000000)};
		pid_t pid = start(NULL, i);

		nanosleep(&wait, NULL);
		kill(pid, SIGKILL);
		killed += finish(pid);
	}
	assert_false(finish(start(NULL, 1000)));
	assert_true(killed > 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(killed_while_migrating),  CASE(killed_before_commit),
		CASE(killed_after_commit),     CASE(killed_before_report),
		CASE(killed_after_report),     CASE(killed_before_checkpoint),
		CASE(killed_after_checkpoint), CASE(killed_at_random_moments),
	};

	if (argc == 4 && strcmp(argv[1], "life") == 0)
		return live(argv[2], strtoull(argv[3], NULL, 10));
	return cmocka_run_group_tests_name("store crash", tests, NULL, NULL);
}
