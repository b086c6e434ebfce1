/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake world keeps its promises: what is synced survives, what is not may be lost in each way
 * that it names, and failures come where they are asked for.
 */
#include "seeded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>

#include "fake_sys.h"

enum {
	SEEDS = 200,
	SIZE = 4096,
};

struct scene {
	struct fake_sys *world;
	const struct takt_sys *sys;
	int dir;
};

static int open_scene(void **state)
{
	static struct scene scene;

	scene.world = fake_sys_new();
	scene.sys = fake_sys_table(scene.world);
	fake_sys_add_dir(scene.world, "/d");
	scene.dir = scene.sys->openat(scene.sys, AT_FDCWD, "/d", O_RDONLY | O_DIRECTORY, 0);
	*state = &scene;
	return scene.dir < 0;
}

static int close_scene(void **state)
{
	fake_sys_free(((struct scene *)*state)->world);
	return 0;
}

/* A file of `n` times `byte`, written but not synced. */
static int write_file(const struct scene *scene, const char *name, char byte, size_t n)
{
	char bytes[SIZE];
	int fd = scene->sys->openat(scene->sys, scene->dir, name, O_RDWR | O_CREAT, 0600);

	memset(bytes, byte, n);
	assert_true(fd >= 0);
	assert_int_equal(scene->sys->pwrite(scene->sys, fd, bytes, n, 0), n);
	return fd;
}

static void sync_fd(const struct scene *scene, int fd)
{
	assert_int_equal(scene->sys->fsync(scene->sys, fd), 0);
}

static void synced_file_and_name_survive(void **state)
{
	struct scene *scene = *state;
	size_t len;

	sync_fd(scene, write_file(scene, "f", 'a', SIZE));
	sync_fd(scene, scene->dir);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		fake_sys_power_loss(scene->world, seed);
		CHECK_SEED(seed, fake_sys_read_file(scene->world, "/d/f", &len)[SIZE - 1] == 'a');
		CHECK_SEED(seed, len == SIZE);
	}
}

/* Which fates of an unsynced name over all seeds: bit 0 lost, bit 1 kept. */
static unsigned fates_of_name(bool sync_data)
{
	unsigned fates = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		void *state;
		struct scene *scene;
		int fd;

		open_scene(&state);
		scene = state;
		fd = write_file(scene, "f", 'a', SIZE);
		if (sync_data)
			sync_fd(scene, fd);
		fake_sys_power_loss(scene->world, seed);
		fates |= fake_sys_exists(scene->world, "/d/f") ? 2 : 1;
		close_scene(&state);
	}
	return fates;
}

static void unsynced_name_may_go_either_way(void **state)
{
	assert_int_equal(fates_of_name(false), 3);
	assert_int_equal(fates_of_name(true), 3);
}

static void what_is_lost_stays_lost(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		void *fresh;
		struct scene *scene;
		size_t len[2] = {0};
		bool there;

		open_scene(&fresh);
		scene = fresh;
		fake_sys_add_file(scene->world, "/d/g", "", 0);
		write_file(scene, "f", 'a', SIZE);
		write_file(scene, "g", 'a', SIZE);
		fake_sys_power_loss(scene->world, seed);
		there = fake_sys_exists(scene->world, "/d/f");
		fake_sys_read_file(scene->world, "/d/g", &len[0]);
		fake_sys_power_loss(scene->world, seed + 1);
		CHECK_SEED(seed, fake_sys_exists(scene->world, "/d/f") == there);
		fake_sys_read_file(scene->world, "/d/g", &len[1]);
		CHECK_SEED(seed, len[0] == len[1]);
		close_scene(&fresh);
	}
}

enum data_fate {
	DATA_OLD = 1,
	DATA_NEW = 2,
	DATA_TORN = 4,	    /* old and new sectors, never within one */
	DATA_REORDERED = 8, /* a later sector arrived, an earlier did not */
	DATA_SHORT = 16,    /* the size did not arrive */
	DATA_ZEROS = 32,    /* the size arrived, data did not */
};

static unsigned fate_of_data(const char *text, size_t len)
{
	unsigned fate = 0, seen;
	bool missing = false;

	for (size_t at = 0; at < len; at += 512) {
		for (size_t i = at; i < at + 512; i++)
			if (text[i] != text[at])
				return 0;
		if (text[at] == 'b' && missing)
			fate |= DATA_REORDERED;
		missing = missing || text[at] != 'b';
		seen = text[at] == 'a' ? DATA_OLD : text[at] == 'b' ? DATA_NEW : DATA_ZEROS;
		if (seen == DATA_ZEROS && text[at] != 0)
			return 0;
		fate |= seen;
	}
	if ((fate & DATA_OLD) && (fate & DATA_NEW))
		fate |= DATA_TORN;
	return fate | (len < SIZE ? DATA_SHORT : 0);
}

/* A file of half SIZE in 'a', synced, is overwritten with SIZE of 'b', unsynced. */
static void unsynced_data_is_lost_in_every_way(void **state)
{
	unsigned fates = 0, fate;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		char half[SIZE / 2];
		void *fresh;
		struct scene *scene;
		const char *text;
		size_t len;

		open_scene(&fresh);
		scene = fresh;
		memset(half, 'a', sizeof(half));
		fake_sys_add_file(scene->world, "/d/f", half, sizeof(half));
		write_file(scene, "f", 'b', SIZE);
		fake_sys_power_loss(scene->world, seed);
		text = fake_sys_read_file(scene->world, "/d/f", &len);
		fate = fate_of_data(text, len);
		CHECK_SEED(seed, fate != 0);
		fates |= fate;
		close_scene(&fresh);
	}
	assert_int_equal(fates, 63);
}

static void a_rename_is_atomic(void **state)
{
	unsigned fates = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		void *fresh;
		struct scene *scene;
		const char *text;

		open_scene(&fresh);
		scene = fresh;
		fake_sys_add_file(scene->world, "/d/f", "old", 3);
		fake_sys_add_file(scene->world, "/d/g", "new", 3);
		assert_int_equal(scene->sys->renameat(scene->sys, scene->dir, "g", "f"), 0);
		assert_false(fake_sys_exists(scene->world, "/d/g"));
		fake_sys_power_loss(scene->world, seed);
		text = fake_sys_read_file(scene->world, "/d/f", NULL);
		CHECK_SEED(seed, text && fake_sys_exists(scene->world, "/d/g") == (text[0] == 'o'));
		fates |= text[0] == 'o' ? 1 : 2;
		close_scene(&fresh);
	}
	assert_int_equal(fates, 3);
}

static void the_same_seed_is_the_same_loss(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		char first[SIZE];
		size_t len[2];

		for (int round = 0; round < 2; round++) {
			void *fresh;
			struct scene *scene;
			const char *text;

			open_scene(&fresh);
			scene = fresh;
			sync_fd(scene, write_file(scene, "f", 'a', SIZE));
			sync_fd(scene, scene->dir);
			write_file(scene, "f", 'b', SIZE);
			fake_sys_power_loss(scene->world, seed);
			text = fake_sys_read_file(scene->world, "/d/f", &len[round]);
			if (round == 0)
				memcpy(first, text, len[0]);
			else
				CHECK_SEED(seed, memcmp(first, text, len[0]) == 0);
			close_scene(&fresh);
		}
		CHECK_SEED(seed, len[0] == len[1]);
	}
}

static void a_failed_sync_loses_data_for_good(void **state)
{
	struct scene *scene = *state;
	size_t len = 9;
	int fd = write_file(scene, "f", 'a', SIZE);

	sync_fd(scene, scene->dir);
	fake_sys_fail_nth(scene->world, FAKE_SYS_FSYNC, 1, EIO, false);
	assert_int_equal(scene->sys->fsync(scene->sys, fd), -EIO);
	sync_fd(scene, fd);
	fake_sys_power_loss(scene->world, 1);
	assert_non_null(fake_sys_read_file(scene->world, "/d/f", &len));
	assert_int_equal(len, 0);
}

static void lies_sync_nothing(void **state)
{
	bool lost_name = false, lost_data = false;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		void *fresh;
		struct scene *scene;
		size_t len = 0;

		open_scene(&fresh);
		scene = fresh;
		fake_sys_add_file(scene->world, "/d/g", "", 0);
		fake_sys_lie(scene->world, FAKE_SYS_NO_DIR_SYNC | FAKE_SYS_NO_FILE_SYNC);
		sync_fd(scene, write_file(scene, "f", 'a', 1));
		sync_fd(scene, write_file(scene, "g", 'a', 1));
		sync_fd(scene, scene->dir);
		fake_sys_power_loss(scene->world, seed);
		lost_name |= !fake_sys_exists(scene->world, "/d/f");
		fake_sys_read_file(scene->world, "/d/g", &len);
		lost_data |= len == 0;
		close_scene(&fresh);
	}
	assert_true(lost_name && lost_data);
}

static void the_nth_call_fails_without_effect(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;

	fake_sys_fail_nth(scene->world, FAKE_SYS_MKDIRAT, 2, ENOSPC, false);
	assert_int_equal(sys->mkdirat(sys, scene->dir, "a", 0700), 0);
	assert_int_equal(sys->mkdirat(sys, scene->dir, "b", 0700), -ENOSPC);
	assert_int_equal(sys->mkdirat(sys, scene->dir, "c", 0700), 0);
	assert_string_equal(fake_sys_list(scene->world, "/d"), "a c");
	fake_sys_fail_nth(scene->world, FAKE_SYS_ANY, 2, EROFS, true);
	assert_int_equal(sys->mkdirat(sys, scene->dir, "e", 0700), 0);
	assert_int_equal(sys->mkdirat(sys, scene->dir, "f", 0700), -EROFS);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "a", AT_REMOVEDIR), -EROFS);
	fake_sys_fail_nth(scene->world, FAKE_SYS_ANY, 0, 0, false);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "a", AT_REMOVEDIR), 0);
	assert_string_equal(fake_sys_list(scene->world, "/d"), "c e");
}

static void power_off_stops_everything(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	unsigned long calls = fake_sys_calls(scene->world, FAKE_SYS_ANY);

	fake_sys_cut_power_at(scene->world, 2);
	assert_int_equal(sys->mkdirat(sys, scene->dir, "a", 0700), 0);
	assert_false(fake_sys_is_off(scene->world));
	assert_int_equal(sys->mkdirat(sys, scene->dir, "b", 0700), -EIO);
	assert_true(fake_sys_is_off(scene->world));
	assert_int_equal(sys->fsync(sys, scene->dir), -EIO);
	assert_int_equal(fake_sys_calls(scene->world, FAKE_SYS_ANY), calls + 3);
	fake_sys_power_loss(scene->world, 1);
	assert_false(fake_sys_is_off(scene->world));
	assert_int_equal(sys->fsync(sys, scene->dir), -EBADF);
	assert_false(fake_sys_exists(scene->world, "/d/b"));
}

static void a_killed_process_loses_only_locks_and_descriptors(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	int fd = write_file(scene, "f", 'a', 10);

	assert_int_equal(sys->flock(sys, fd, LOCK_EX | LOCK_NB), 0);
	fake_sys_process_death(scene->world);
	assert_int_equal(sys->flock(sys, fd, LOCK_EX), -EBADF);
	assert_int_equal(fake_sys_open_count(scene->world), 0);
	assert_string_equal(fake_sys_read_file(scene->world, "/d/f", NULL), "aaaaaaaaaa");
	fd = sys->openat(sys, AT_FDCWD, "/d/f", O_RDONLY, 0);
	assert_int_equal(sys->flock(sys, fd, LOCK_EX | LOCK_NB), 0);
}

static void locks_belong_to_open_files(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	int a = write_file(scene, "f", 'a', 1), b = write_file(scene, "f", 'a', 1);

	assert_int_equal(sys->flock(sys, a, LOCK_SH), 0);
	assert_int_equal(sys->flock(sys, b, LOCK_SH), 0);
	assert_int_equal(sys->flock(sys, b, LOCK_EX | LOCK_NB), -EWOULDBLOCK);
	assert_int_equal(sys->flock(sys, b, LOCK_EX), -EDEADLK);
	assert_int_equal(sys->flock(sys, a, LOCK_UN), 0);
	assert_int_equal(sys->flock(sys, b, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(sys->flock(sys, a, LOCK_SH | LOCK_NB), -EWOULDBLOCK);
	assert_int_equal(sys->close(sys, b), 0);
	assert_int_equal(sys->flock(sys, a, LOCK_EX | LOCK_NB), 0);
}

static void a_full_disk_cuts_then_refuses(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	char bytes[100] = {0};
	int fd = write_file(scene, "f", 'a', 10);

	fake_sys_set_space(scene->world, 64);
	assert_int_equal(sys->pwrite(sys, fd, bytes, 100, 10), 54);
	assert_int_equal(sys->pwrite(sys, fd, bytes, 1, 64), -ENOSPC);
	assert_int_equal(sys->fallocate(sys, fd, 65), -ENOSPC);
	assert_int_equal(sys->pwrite(sys, fd, bytes, 64, 0), 64);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "f", 0), 0);
	write_file(scene, "g", 'a', 64);
}

static void a_hole_reads_as_zeros_as_far_as_the_file_goes(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	int fd = write_file(scene, "f", 'a', 10);
	char back[10];
	struct stat st;

	assert_int_equal(sys->punch(sys, fd, 2, 3), 0);
	assert_int_equal(sys->punch(sys, fd, 8, 100), 0);
	assert_int_equal(sys->pread(sys, fd, back, 10, 0), 10);
	assert_memory_equal(back, "aa\0\0\0aaa\0\0", 10);
	assert_int_equal(sys->fstat(sys, fd, &st), 0);
	assert_int_equal(st.st_size, 10);
	assert_int_equal(sys->punch(sys, fd, -1, 3), -EINVAL);
	fake_sys_fail_nth(scene->world, FAKE_SYS_PUNCH, 1, EOPNOTSUPP, true);
	assert_int_equal(sys->punch(sys, fd, 0, 3), -EOPNOTSUPP);
}

static void short_io_ends_all_the_same(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	char bytes[100], back[100];
	size_t done = 0;
	int fd = write_file(scene, "f", 'a', 1), calls = 0;

	memset(bytes, 'x', sizeof(bytes));
	fake_sys_short_io(scene->world, 5);
	for (; done < sizeof(bytes); calls++)
		done += (size_t)sys->pwrite(sys, fd, bytes + done, sizeof(bytes) - done,
					    (off_t)done);
	assert_true(calls > 1);
	for (done = 0; done < sizeof(back);)
		done += (size_t)sys->pread(sys, fd, back + done, sizeof(back) - done, (off_t)done);
	assert_memory_equal(bytes, back, sizeof(back));
	assert_int_equal(sys->pread(sys, fd, back, 1, sizeof(back)), 0);
}

static void clocks_obey(void **state)
{
	struct scene *scene = *state;
	struct takt_mono mono = takt_mono_now(scene->sys);
	struct takt_boot boot = takt_boot_now(scene->sys);
	struct takt_wall wall = takt_wall_now(scene->sys);

	fake_sys_advance(scene->world, 5);
	fake_sys_suspend(scene->world, 7);
	fake_sys_jump_wall(scene->world, -100);
	assert_int_equal(takt_mono_now(scene->sys).ns - mono.ns, 5);
	assert_int_equal(takt_boot_now(scene->sys).ns - boot.ns, 12);
	assert_int_equal(takt_wall_now(scene->sys).ns - wall.ns, -88);
	fake_sys_power_loss(scene->world, 1);
	assert_true(takt_boot_now(scene->sys).ns == boot.ns);
	assert_int_equal(takt_wall_now(scene->sys).ns - wall.ns, -88);
}

struct refusal {
	const char *path;
	int flags, rc;
};

static void opens_as_linux_does(void **state)
{
	static const struct refusal rows[] = {
		{"/d/none", O_RDONLY, -ENOENT},
		{"/none/f", O_RDWR | O_CREAT, -ENOENT},
		{"/d/f", O_RDWR | O_CREAT | O_EXCL, -EEXIST},
		{"/d/f", O_RDONLY | O_DIRECTORY, -ENOTDIR},
		{"/d/f/g", O_RDONLY, -ENOTDIR},
		{"/d/f/g", O_RDWR | O_CREAT, -ENOTDIR},
		{"/d", O_RDWR, -EISDIR},
		{"", O_RDONLY, -ENOENT},
		{"/d/f", O_WRONLY | O_APPEND, -EINVAL},
	};
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;
	char byte = 'x';
	int fd = write_file(scene, "f", 'a', 3);

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		assert_int_equal(sys->openat(sys, AT_FDCWD, rows[i].path, rows[i].flags, 0600),
				 rows[i].rc);
	assert_int_equal(sys->close(sys, fd), 0);
	assert_int_equal(sys->close(sys, fd), -EBADF);
	fd = sys->openat(sys, AT_FDCWD, "d/../d/./f", O_RDONLY, 0);
	assert_int_equal(sys->pread(sys, fd, &byte, 1, 2), 1);
	assert_int_equal(byte, 'a');
	assert_int_equal(sys->pwrite(sys, fd, &byte, 1, 0), -EBADF);
	assert_int_equal(sys->openat(sys, AT_FDCWD, "/d/f", O_RDWR | O_TRUNC, 0) < 0, 0);
	assert_int_equal(sys->pread(sys, fd, &byte, 1, 0), 0);
}

static void directories_refuse_as_linux_does(void **state)
{
	struct scene *scene = *state;
	const struct takt_sys *sys = scene->sys;

	write_file(scene, "f", 'a', 3);
	assert_int_equal(sys->mkdirat(sys, scene->dir, "f", 0700), -EEXIST);
	assert_int_equal(sys->mkdirat(sys, AT_FDCWD, "/d/e", 0700), 0);
	assert_int_equal(sys->mkdirat(sys, AT_FDCWD, "/d/e/", 0700), -EEXIST);
	assert_int_equal(sys->mkdirat(sys, AT_FDCWD, "/", 0700), -EEXIST);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "e", 0), -EISDIR);
	assert_int_equal(sys->unlinkat(sys, scene->dir, "f", AT_REMOVEDIR), -ENOTDIR);
	assert_int_equal(sys->unlinkat(sys, AT_FDCWD, "/d", AT_REMOVEDIR), -ENOTEMPTY);
	assert_int_equal(sys->renameat(sys, scene->dir, "f", "e"), -EISDIR);
	assert_int_equal(sys->renameat(sys, scene->dir, "e", "f"), -ENOTDIR);
	assert_int_equal(sys->renameat(sys, scene->dir, "f", "e/f"), -EXDEV);
	assert_int_equal(sys->renameat(sys, scene->dir, "x", "y"), -ENOENT);
	assert_int_equal(sys->renameat(sys, scene->dir, "f", "f"), 0);
	assert_string_equal(fake_sys_list(scene->world, "/d"), "f e");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(synced_file_and_name_survive),
		cmocka_unit_test(unsynced_name_may_go_either_way),
		cmocka_unit_test(what_is_lost_stays_lost),
		cmocka_unit_test(unsynced_data_is_lost_in_every_way),
		cmocka_unit_test(a_rename_is_atomic),
		cmocka_unit_test(the_same_seed_is_the_same_loss),
		TEST(a_failed_sync_loses_data_for_good),
		cmocka_unit_test(lies_sync_nothing),
		TEST(the_nth_call_fails_without_effect),
		TEST(power_off_stops_everything),
		TEST(a_killed_process_loses_only_locks_and_descriptors),
		TEST(locks_belong_to_open_files),
		TEST(a_full_disk_cuts_then_refuses),
		TEST(a_hole_reads_as_zeros_as_far_as_the_file_goes),
		TEST(short_io_ends_all_the_same),
		TEST(clocks_obey),
		TEST(opens_as_linux_does),
		TEST(directories_refuse_as_linux_does),
	};

	return cmocka_run_group_tests_name("fake_sys", tests, NULL, NULL);
}
