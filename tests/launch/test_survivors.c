/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is left of an attempt, on a machine that does not always say: its GPUs go to others once
 * nobody is found, so that "I could not look" must never read as "nobody".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
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
	LOOKS = 500,
	STAT_MAX = 4096,
	STAT_STATE = 3 /* the first field behind the command */
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

/*
 * Moments of an execve that last some instructions of the kernel: too short to be met often. So the
 * test plays them. The last three are of one by another thread than the first, which has ended.
 */
enum moment {
	NONE,
	FORGOTTEN,    /* the old memory is gone, the new one has nothing yet */
	EXCHANGED,    /* from the first look at the thread: its number is the dead one's */
	MISLED,	      /* the thread's name leads to the first one */
	LISTED_TWICE, /* the first one; the thread is not */
};

static struct {
	enum moment moment;
	bool has_come;
	int pid, thread;
} played;

static int open_real(int pid, int thread, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, thread, name);
	return __real_openat(AT_FDCWD, path, flags);
}

static int copy_of(const char *text)
{
	int copy = memfd_create("played", MFD_CLOEXEC);

	assert_true(copy >= 0 && dprintf(copy, "%s", text) == (int)strlen(text));
	assert_true(lseek(copy, 0, SEEK_SET) == 0);
	return copy;
}

static void read_and_close(int fd, char *text, size_t size)
{
	ssize_t len = __real_read(fd, text, size - 1);

	assert_true(len > 0);
	text[len] = '\0';
	close(fd);
}

/* "NUMBER (COMMAND) STATE ..." with another number. */
static int renumbered(int fd, int number)
{
	char text[STAT_MAX], copy[STAT_MAX + 16];

	read_and_close(fd, text, sizeof(text));
	snprintf(copy, sizeof(copy), "%d%s", number, strchr(text, ' '));
	return copy_of(copy);
}

/* The same without where its code and its environment are: fields 26, 50 and 51. */
static int without_memory(int fd)
{
	char text[STAT_MAX], copy[STAT_MAX], *rest, *word;
	size_t len;

	read_and_close(fd, text, sizeof(text));
	rest = strrchr(text, ')') + 2;
	len = (size_t)(rest - text);
	memcpy(copy, text, len);
	for (int field = STAT_STATE; (word = strsep(&rest, " ")); field++)
		len += (size_t)snprintf(copy + len, sizeof(copy) - len, "%s ",
					field == 26 || field == 50 || field == 51 ? "0" : word);
	return copy_of(copy);
}

static int open_forgotten(const char *name, int flags)
{
	int fd = strcmp(name, "environ") == 0 ? copy_of("")
					      : open_real(played.pid, played.pid, name, flags);

	return strcmp(name, "stat") == 0 ? without_memory(fd) : fd;
}

static int open_exchanged(int number, const char *name, int flags)
{
	int fd = open_real(played.pid, number == played.pid ? played.thread : played.pid, name,
			   flags);

	return fd >= 0 && strcmp(name, "stat") == 0 ? renumbered(fd, number) : fd;
}

/* Whether it is a file of the played process; its name and the number of the thread. */
static bool is_played(const char *path, int *ret_number, char ret_name[16])
{
	int pid;

	if (sscanf(path, "/proc/%d/task/%d/%15s", &pid, ret_number, ret_name) == 3)
		return pid == played.pid;
	if (sscanf(path, "/proc/%d/%15s", ret_number, ret_name) == 2)
		return *ret_number == played.pid;
	return false;
}

static int open_as_played(int dirfd, const char *path, int flags)
{
	int number;
	char name[16];

	if (fails()) {
		errno = EIO;
		return -1;
	}
	if (!is_played(path, &number, name))
		return __real_openat(dirfd, path, flags);
	played.has_come |= number == played.thread;
	if (played.moment == FORGOTTEN)
		return open_forgotten(name, flags);
	if (played.moment == EXCHANGED && played.has_come)
		return open_exchanged(number, name, flags);
	return open_real(played.pid, played.moment == MISLED ? played.pid : number, name, flags);
}

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	return open_as_played(dirfd, path, flags);
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	return open_as_played(dirfd, path, flags);
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	if (!fails())
		return __real_read(fd, buf, n);
	errno = EIO;
	return -1;
}

static pid_t begun[2]; /* 0 = none */

/* What a look costs must not depend on what else the machine does, so the cases that look hundreds
 * of times see only a few of its processes: two of others, this one, and those that it began. */
static bool sees_few;

static bool is_left_out(DIR *dir, const char *name)
{
	int pid = atoi(name);

	return sees_few && pid > 2 && pid != getpid() && pid != begun[0] && pid != begun[1] &&
	       faccessat(dirfd(dir), "self", F_OK, AT_SYMLINK_NOFOLLOW) == 0; /* it is /proc */
}

struct dirent64 *__real_readdir64(DIR *dir);
struct dirent64 *__wrap_readdir64(DIR *dir);

struct dirent64 *__wrap_readdir64(DIR *dir)
{
	struct dirent64 *entry = __real_readdir64(dir);

	while (entry && is_left_out(dir, entry->d_name))
		entry = __real_readdir64(dir);
	if (entry && played.moment == LISTED_TWICE && atoi(entry->d_name) == played.thread)
		snprintf(entry->d_name, sizeof(entry->d_name), "%d", played.pid);
	return entry;
}

static bool unidentified; /* though it is there, as in the middle of an execve */
int __real_takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err);
int __wrap_takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err);

int __wrap_takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err)
{
	return unidentified ? -ESRCH : __real_takt_proc_identify(pid, ret, err);
}

/* Begins the program with the id in its environment, and waits until it is executed. Another run of
 * this test beside it must not be found, so the ids have its number. */
static pid_t begin(const char *id, const char *program, const char *const argv[])
{
	char env[64], nothing;
	const char *envp[] = {env, NULL};
	int executed[2];
	pid_t pid;

	snprintf(env, sizeof(env), "TAKT_ATTEMPT=%s", id);
	assert_int_equal(pipe2(executed, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve(program, (char *const *)argv, (char *const *)envp);
		_exit(127);
	}
	begun[begun[0] ? 1 : 0] = pid;
	close(executed[1]);
	assert_int_equal(__real_read(executed[0], &nothing, 1), 0);
	close(executed[0]);
	return pid;
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
	for (size_t i = 0; i < TAKT_ARRAY_LEN(begun); i++)
		if (begun[i] == pid)
			begun[i] = 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int clean_up(void **state)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(begun); i++)
		if (begun[i])
			end(begun[i]);
	memset(&played, 0, sizeof(played));
	sees_few = unidentified = false;
	return 0;
}

/* Under load one look may meet the middle of one execve, of any process, from its begin to its end:
 * no answer. Whoever asks asks again, as takt's engine does. */
static int look_until_told(const char *id)
{
	int n = -EAGAIN;

	for (int looks = 0; n == -EAGAIN && looks < LOOKS; looks++)
		n = look(id, 0);
	return n;
}

static void find_again_and_again(const char *id)
{
	sees_few = true;
	for (int i = 0; i < LOOKS; i++)
		assert_int_equal(look_until_told(id), 1);
	sees_few = false;
}

static void whoever_could_not_be_looked_at_may_be_one(void **state)
{
	const char *argv[] = {"sleep", "600", NULL};
	char id[32];
	pid_t pid;

	snprintf(id, sizeof(id), "7.1.survives%d", (int)getpid());
	pid = begin(id, "/bin/sleep", argv);
	sees_few = true;
	for (unsigned nth = 1;; nth++) {
		int n = look(id, nth);

		assert_true(n < 0 || n == 1);
		if (calls < nth)
			break;
	}
	sees_few = false;
	end(pid);
	assert_int_equal(look_until_told(id), 0);
}

static void one_that_cannot_be_identified_is_not_none(void **state)
{
	const char *argv[] = {"sleep", "600", NULL};
	char id[32];

	snprintf(id, sizeof(id), "7.1.unknown%d", (int)getpid());
	begin(id, "/bin/sleep", argv);
	unidentified = true;
	assert_int_equal(look(id, 0), -EAGAIN);
	unidentified = false;
	assert_int_equal(look_until_told(id), 1);
}

/* Between its old memory and its new one a process shows no environment. */
static void one_that_executes_all_the_time_is_found(void **state)
{
	static const char again[] = "exec sh -c \"$0\" \"$0\"";
	const char *argv[] = {"sh", "-c", again, again, NULL};
	char id[32];

	snprintf(id, sizeof(id), "7.1.executes%d", (int)getpid());
	begin(id, "/bin/sh", argv);
	find_again_and_again(id);
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

static bool first_thread_has_ended(pid_t pid)
{
	char text[STAT_MAX];

	read_and_close(open_real(pid, pid, "stat", O_RDONLY | O_CLOEXEC), text, sizeof(text));
	return strstr(text, ") Z ");
}

static pid_t begin_survivor(const char *how, char id[32])
{
	const char *argv[] = {"survivor", how, NULL};

	snprintf(id, 32, "7.1.%s%d", how, (int)getpid());
	return begin(id, "/proc/self/exe", argv);
}

static pid_t begin_one_without_its_first_thread(char id[32])
{
	pid_t pid = begin_survivor("stay", id);

	while (!first_thread_has_ended(pid))
		continue;
	return pid;
}

static void one_whose_first_thread_has_ended_is_found(void **state)
{
	char id[32];

	begin_one_without_its_first_thread(id);
	assert_int_equal(look_until_told(id), 1);
}

static void one_that_another_thread_executes_is_found(void **state)
{
	char id[32];

	begin_survivor("execute", id);
	find_again_and_again(id);
}

/* The number of its thread that is not the first. */
static int other_thread(pid_t pid)
{
	struct dirent *entry;
	int number = 0;
	char path[32];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		if (atoi(entry->d_name) != 0 && atoi(entry->d_name) != pid)
			number = atoi(entry->d_name);
	closedir(tasks);
	assert_true(number > 0);
	return number;
}

static int look_at(enum moment moment, pid_t pid, int thread, const char *id)
{
	played.moment = moment;
	played.pid = pid;
	played.thread = thread;
	return look(id, 0);
}

static void one_that_shows_no_environment_yet_is_no_answer(void **state)
{
	const char *argv[] = {"sleep", "600", NULL};
	char id[32];
	pid_t pid;

	snprintf(id, sizeof(id), "7.1.forgotten%d", (int)getpid());
	pid = begin(id, "/bin/sleep", argv);
	assert_int_equal(look_at(FORGOTTEN, pid, 0, id), -EAGAIN);
}

static void a_thread_that_takes_the_first_ones_number_has_not_ended(void **state)
{
	char id[32];
	pid_t pid = begin_one_without_its_first_thread(id);

	assert_int_equal(look_at(EXCHANGED, pid, other_thread(pid), id), 1);
	assert_true(played.has_come);
}

static void what_another_threads_name_shows_is_no_answer(void **state)
{
	char id[32];
	pid_t pid = begin_one_without_its_first_thread(id);

	assert_int_equal(look_at(MISLED, pid, other_thread(pid), id), -EAGAIN);
	assert_true(played.has_come);
}

static void the_first_thread_listed_twice_is_no_answer(void **state)
{
	char id[32];
	pid_t pid = begin_one_without_its_first_thread(id);

	assert_int_equal(look_at(LISTED_TWICE, pid, other_thread(pid), id), -EAGAIN);
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
	begun[0] = without;
	snprintf(id, sizeof(id), "7.1.beside%d", (int)getpid());
	other = begin(id, "/bin/sleep", argv);
	assert_int_equal(look_until_told(id), 1);
	end(other);
	assert_int_equal(look_until_told(id), 0);
}

#define CASE(name) cmocka_unit_test_teardown(name, clean_up)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(one_whose_first_thread_has_ended_is_found),
		CASE(one_that_another_thread_executes_is_found),
		CASE(one_that_shows_no_environment_yet_is_no_answer),
		CASE(a_thread_that_takes_the_first_ones_number_has_not_ended),
		CASE(what_another_threads_name_shows_is_no_answer),
		CASE(the_first_thread_listed_twice_is_no_answer),
		CASE(one_without_its_environments_memory_keeps_no_other_from_being_found),
		CASE(one_that_cannot_be_identified_is_not_none),
		CASE(one_that_executes_all_the_time_is_found),
		CASE(whoever_could_not_be_looked_at_may_be_one),
	};

	if (argc == 2 && strcmp(argv[0], "survivor") == 0)
		be_a_survivor(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
