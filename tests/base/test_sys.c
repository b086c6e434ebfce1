/* SPDX-License-Identifier: Apache-2.0 */
/* The real world's table on a real directory, its clocks, and dying at named points. */
#include "seeded.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

struct scene {
	const struct takt_sys *sys;
	char path[64];
	int dir;
};

static int open_scene(void **state)
{
	static struct scene scene;

	scene = (struct scene){.sys = takt_sys_real(), .path = "takt-test-XXXXXX"};
	if (!mkdtemp(scene.path))
		return -1;
	scene.dir = scene.sys->openat(scene.sys, AT_FDCWD, scene.path, O_RDONLY | O_DIRECTORY, 0);
	*state = &scene;
	return scene.dir < 0;
}

static int close_scene(void **state)
{
	struct scene *scene = *state;

	scene->sys->close(scene->sys, scene->dir);
	return scene->sys->unlinkat(scene->sys, AT_FDCWD, scene->path, AT_REMOVEDIR);
}

static void files_work(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	int fd = sys->openat(sys, scene->dir, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char back[8] = "";
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(sys->pwrite(sys, fd, "takt", 4, 2), 4);
	assert_int_equal(sys->pread(sys, fd, back, 8, 0), 6);
	assert_memory_equal(back, "\0\0takt", 6);
	assert_int_equal(sys->fallocate(sys, fd, 5000), 0);
	assert_int_equal(sys->fstat(sys, fd, &st), 0);
	assert_int_equal(st.st_size, 5000);
	assert_true(st.st_blocks * 512 >= 5000);
	assert_int_equal(sys->ftruncate(sys, fd, 1), 0);
	assert_int_equal(sys->fsync(sys, fd), 0);
	assert_int_equal(sys->fdatasync(sys, fd), 0);
	assert_int_equal(sys->fsync(sys, scene->dir), 0);
	assert_int_equal(sys->renameat(sys, scene->dir, "f", "g"), 0);
	assert_int_equal(sys->fstatat(sys, scene->dir, "g", &st), 0);
	assert_int_equal(st.st_size, 1);
	assert_int_equal(sys->close(sys, fd), 0);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "g", 0), 0);
}

static void holes_take_no_blocks_and_read_as_zeros(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	int fd = sys->openat(sys, scene->dir, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char bytes[64], zeros[64] = {0};
	struct stat before, after;

	memset(bytes, 'x', sizeof(bytes));
	for (off_t at = 0; at < 1 << 20; at += (off_t)sizeof(bytes))
		assert_int_equal(sys->pwrite(sys, fd, bytes, sizeof(bytes), at), sizeof(bytes));
	assert_int_equal(sys->fsync(sys, fd), 0);
	assert_int_equal(sys->fstat(sys, fd, &before), 0);
	assert_int_equal(sys->punch(sys, fd, 1 << 18, 1 << 19), 0);
	assert_int_equal(sys->fstat(sys, fd, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_true(after.st_blocks <= before.st_blocks - (1 << 19) / 512);
	assert_int_equal(sys->pread(sys, fd, bytes, sizeof(bytes), 1 << 18), sizeof(bytes));
	assert_memory_equal(bytes, zeros, sizeof(bytes));
	assert_int_equal(sys->close(sys, fd), 0);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "f", 0), 0);
}

static void errors_are_returned_not_left_in_errno(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	struct stat st;
	char byte;

	errno = 0;
	assert_int_equal(sys->openat(sys, scene->dir, "f", O_RDONLY, 0), -ENOENT);
	assert_int_equal(sys->close(sys, -1), -EBADF);
	assert_int_equal(sys->pread(sys, -1, &byte, 1, 0), -EBADF);
	assert_int_equal(sys->pwrite(sys, -1, &byte, 1, 0), -EBADF);
	assert_int_equal(sys->ftruncate(sys, -1, 0), -EBADF);
	assert_int_equal(sys->fallocate(sys, -1, 1), -EBADF);
	assert_int_equal(sys->punch(sys, -1, 0, 1), -EBADF);
	assert_int_equal(sys->fsync(sys, -1), -EBADF);
	assert_int_equal(sys->fdatasync(sys, -1), -EBADF);
	assert_int_equal(sys->fstat(sys, -1, &st), -EBADF);
	assert_int_equal(sys->fstatat(sys, scene->dir, "f", &st), -ENOENT);
	assert_int_equal(sys->mkdirat(sys, AT_FDCWD, scene->path, 0700), -EEXIST);
	assert_int_equal(sys->renameat(sys, scene->dir, "f", "g"), -ENOENT);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "f", 0), -ENOENT);
	assert_int_equal(sys->flock(sys, -1, LOCK_EX), -EBADF);
}

static void locks_exclude(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	int other = sys->openat(sys, AT_FDCWD, scene->path, O_RDONLY | O_DIRECTORY, 0);

	assert_int_equal(sys->flock(sys, scene->dir, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(sys->flock(sys, other, LOCK_EX | LOCK_NB), -EWOULDBLOCK);
	assert_int_equal(sys->flock(sys, scene->dir, LOCK_UN), 0);
	assert_int_equal(sys->flock(sys, other, LOCK_EX | LOCK_NB), 0);
	sys->close(sys, other);
}

static void durable_files_on_a_real_disk(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	char path[80], *text = NULL;
	size_t len;

	assert_int_equal(takt_file_write_durable(sys, scene->dir, "f", "one", 3, 0600, NULL), 0);
	assert_int_equal(takt_file_write_durable(sys, scene->dir, "f", "two!", 4, 0600, NULL), 0);
	assert_int_equal(takt_file_read(sys, scene->dir, "f", 10, &text, &len, NULL), 0);
	assert_string_equal(text, "two!");
	takt_free(text);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "f", 0), 0);
	snprintf(path, sizeof(path), "%s/a/b", scene->path);
	assert_int_equal(takt_mkdirs_durable(sys, path, 0700, NULL), 0);
	assert_int_equal(takt_mkdirs_durable(sys, path, 0700, NULL), 0);
	assert_int_equal(sys->unlinkat(sys, AT_FDCWD, path, AT_REMOVEDIR), 0);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "a", AT_REMOVEDIR), 0);
}

static void clocks_run_forward(void **state)
{
	const struct takt_sys *sys = takt_sys_real();
	struct takt_mono mono = takt_mono_now(sys);
	struct takt_boot boot = takt_boot_now(sys);
	int64_t libc_s = time(NULL), wall_s = takt_wall_now(sys).ns / (int64_t)TAKT_NS_PER_S;

	assert_true(takt_mono_now(sys).ns >= mono.ns && mono.ns > 0);
	assert_true(takt_boot_now(sys).ns >= boot.ns && boot.ns >= mono.ns);
	assert_in_range(wall_s - libc_s + 5, 0, 10);
	assert_true(takt_boot_elapsed_ns(boot, takt_boot_add(boot, 5)) == 0);
	assert_true(takt_boot_elapsed_ns(takt_boot_add(boot, 5), boot) == 5);
	assert_true(takt_mono_add(mono, UINT64_MAX).ns == UINT64_MAX);
}

#ifdef TAKT_CRASH_POINTS
static void *pass_once(void *arg)
{
	takt_crash_point("test.here");
	return NULL;
}

/* A child with that variable passes "test.here" `passes` times, each in a thread of its own. */
static bool child_is_killed(const char *spec, int passes)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (spec)
			setenv("TAKT_CRASH_AT", spec, 1);
		takt_crash_point("test.elsewhere");
		for (int i = 0; i < passes; i++) {
			pthread_t thread;

			pthread_create(&thread, NULL, pass_once, NULL);
			pthread_join(thread, NULL);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void dies_where_it_is_told(void **state)
{
	assert_true(child_is_killed("test.here", 1));
	assert_true(child_is_killed("test.here:3", 3));
	assert_true(child_is_killed("test.here:3", 4));
	assert_true(child_is_killed("test.elsewhere", 0));
}

static void lives_otherwise(void **state)
{
	assert_false(child_is_killed(NULL, 3));
	assert_false(child_is_killed("", 3));
	assert_false(child_is_killed("test.here:3", 2));
	assert_false(child_is_killed("test.her", 3));
	assert_false(child_is_killed("test.here2", 3));
	assert_false(child_is_killed("test.here:0", 3));
	assert_false(child_is_killed("test.here:x", 3));
	assert_false(child_is_killed("test.here:", 3));
	assert_false(child_is_killed(":1", 3));
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_work),
		TEST(holes_take_no_blocks_and_read_as_zeros),
		TEST(errors_are_returned_not_left_in_errno),
		TEST(locks_exclude),
		TEST(durable_files_on_a_real_disk),
		cmocka_unit_test(clocks_run_forward),
#ifdef TAKT_CRASH_POINTS
		cmocka_unit_test(dies_where_it_is_told),
		cmocka_unit_test(lives_otherwise),
#endif
	};

	return cmocka_run_group_tests_name("sys", tests, NULL, NULL);
}
