/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is left of an attempt, on a machine that does not always say: its GPUs go to others once
 * nobody is found, so that "I could not look" must never read as "nobody".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/attempt.h"

enum {
	MAX_FOUND = 8,
	LOOKS = 300
};

static unsigned calls, fails_at; /* 0 = none does */

static bool fails(void)
{
	return ++calls == fails_at;
}

/* The linker puts these in between: tests/launch/meson.build. */
int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __real_openat64(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);
ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	if (!fails())
		return __real_openat(dirfd, path, flags);
	errno = EIO;
	return -1;
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	if (!fails())
		return __real_openat64(dirfd, path, flags);
	errno = EIO;
	return -1;
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	if (!fails())
		return __real_read(fd, buf, n);
	errno = EIO;
	return -1;
}

static bool unidentified; /* though it is there, as in the middle of an execve */
int __real_takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err);
int __wrap_takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err);

int __wrap_takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err)
{
	return unidentified ? -ESRCH : __real_takt_proc_identify(pid, ret, err);
}

/* Another run of this program beside it must not be found, so the ids have its number. */
static pid_t begin(const char *id, const char *program, const char *const argv[])
{
	char env[64];
	const char *envp[] = {env, NULL};
	pid_t pid;

	snprintf(env, sizeof(env), "TAKT_ATTEMPT=%s", id);
	pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	execve(program, (char *const *)argv, (char *const *)envp);
	_exit(127);
}

static int look(const char *id, unsigned nth)
{
	struct takt_proc_id found[MAX_FOUND];
	int n;

	calls = 0;
	fails_at = nth;
	n = takt_attempt_survivors(id, getuid(), "", found, MAX_FOUND, NULL);
	fails_at = 0;
	return n;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void whoever_could_not_be_looked_at_may_be_one(void **state)
{
	const char *argv[] = {"sleep", "600", NULL};
	char id[32];
	pid_t pid;

	snprintf(id, sizeof(id), "7.1.survives%d", (int)getpid());
	pid = begin(id, "/bin/sleep", argv);
	while (look(id, 0) == 0)
		continue; /* until it is what it shall be */
	for (unsigned nth = 1;; nth++) {
		int n = look(id, nth);

		assert_true(n < 0 || n == 1);
		if (calls < nth)
			break;
	}
	end(pid);
	assert_int_equal(look(id, 0), 0);
}

static void one_that_cannot_be_identified_is_not_none(void **state)
{
	const char *argv[] = {"sleep", "600", NULL};
	char id[32];
	pid_t pid;

	snprintf(id, sizeof(id), "7.1.unknown%d", (int)getpid());
	pid = begin(id, "/bin/sleep", argv);
	while (look(id, 0) == 0)
		continue;
	unidentified = true;
	assert_int_equal(look(id, 0), -EAGAIN);
	unidentified = false;
	assert_int_equal(look(id, 0), 1);
	end(pid);
}

/* Between its old memory and its new one a process shows no environment. */
static void one_that_executes_all_the_time_is_found(void **state)
{
	static const char again[] = "exec sh -c \"$0\" \"$0\"";
	const char *argv[] = {"sh", "-c", again, again, NULL};
	int missed = 0;
	char id[32];
	pid_t pid;

	snprintf(id, sizeof(id), "7.1.executes%d", (int)getpid());
	pid = begin(id, "/bin/sh", argv);
	while (look(id, 0) == 0)
		continue;
	for (int i = 0; i < 1000; i++)
		missed += look(id, 0) != 1;
	end(pid);
	assert_int_equal(missed, 0);
}

static char self[PATH_MAX]; /* once its first thread has ended, /proc/self/exe tells no more */

static void *execute_again(void *arg)
{
	const char *argv[] = {"survivor", arg, NULL};

	execv(self, (char *const *)argv);
	_exit(127);
}

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* What this program does when it is started as "survivor": its first thread ends, and another goes
 * on, or executes this anew. */
static void be_a_survivor(char *how)
{
	pthread_t thread;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
	    pthread_create(&thread, NULL, strcmp(how, "stay") == 0 ? stay : execute_again, how) !=
		    0)
		_exit(127);
	pthread_exit(NULL);
}

/* At some points of an execve by another thread /proc does not list the process at all: one look in
 * a thousand, of a program that does nothing else. */
static void find(const char *how, int of_which_missed)
{
	const char *argv[] = {"survivor", how, NULL};
	int missed = 0;
	char id[32];
	pid_t pid;

	snprintf(id, sizeof(id), "7.1.%s%d", how, (int)getpid());
	pid = begin(id, "/proc/self/exe", argv);
	while (look(id, 0) == 0)
		continue;
	for (int i = 0; i < LOOKS; i++)
		missed += look(id, 0) != 1;
	end(pid);
	assert_in_range(missed, 0, of_which_missed);
}

static void one_whose_first_thread_has_ended_is_found(void **state)
{
	find("stay", 0);
}

static void one_that_another_thread_executes_is_found(void **state)
{
	find("execute", LOOKS / 20);
}

/* It has given the memory of its environment back, as some do that load programs themselves: nobody
 * can tell what it was, and nobody waits for it for ever. */
static void one_without_its_environments_memory_keeps_no_other_from_being_found(void **state)
{
	const char *argv[] = {"sleep", "600", NULL};
	pid_t without, other;
	char id[32];

	without = fork();
	assert_true(without >= 0);
	if (without == 0) {
		uintptr_t page = (uintptr_t)environ[0] & ~(uintptr_t)4095;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)munmap((void *)page, 4096);
		for (;;)
			pause();
	}
	snprintf(id, sizeof(id), "7.1.beside%d", (int)getpid());
	other = begin(id, "/bin/sleep", argv);
	while (look(id, 0) == 0)
		continue;
	assert_int_equal(look(id, 0), 1);
	end(other);
	assert_int_equal(look(id, 0), 0);
	end(without);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_whose_first_thread_has_ended_is_found),
		cmocka_unit_test(one_that_another_thread_executes_is_found),
		cmocka_unit_test(
			one_without_its_environments_memory_keeps_no_other_from_being_found),
		cmocka_unit_test(one_that_cannot_be_identified_is_not_none),
		cmocka_unit_test(one_that_executes_all_the_time_is_found),
		cmocka_unit_test(whoever_could_not_be_looked_at_may_be_one),
	};

	if (argc == 2 && strcmp(argv[0], "survivor") == 0)
		be_a_survivor(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
