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
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/attempt.h"

enum {
	MAX_FOUND = 8
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

static pid_t begin(char *env)
{
	char sleep[] = "sleep", long_s[] = "600";
	char *argv[] = {sleep, long_s, NULL}, *envp[] = {env, NULL};
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	execve("/bin/sleep", argv, envp);
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

static void whoever_could_not_be_looked_at_may_be_one(void **state)
{
	char env[] = "TAKT_ATTEMPT=7.1.survives";
	pid_t pid = begin(env);

	while (look("7.1.survives", 0) == 0)
		continue; /* until it is what it shall be */
	for (unsigned nth = 1;; nth++) {
		int n = look("7.1.survives", nth);

		assert_true(n < 0 || n == 1);
		if (calls < nth)
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(look("7.1.survives", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_could_not_be_looked_at_may_be_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
