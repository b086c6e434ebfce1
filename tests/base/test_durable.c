/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable files and directories under a campaign: power cut at every call with many outcomes, the
 * process killed at every call, every call failing. The campaign itself is proved by mutation: with
 * a sync removed it must fail.
 */
#include "seeded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "fake_sys.h"

enum {
	SEEDS = 40,
	OLD_SIZE = 3000,
	NEW_SIZE = 5000,
	MANY_CALLS = 100,
};

struct scene {
	struct fake_sys *world;
	const struct takt_sys *sys;
	int dir;
};

static char old_text[OLD_SIZE], new_text[NEW_SIZE];

/* /d/f holds the old text; `with_rest` leaves what a writer killed earlier may have left. */
static struct scene open_scene(bool with_rest)
{
	struct scene scene = {.world = fake_sys_new()};

	memset(old_text, 'o', sizeof(old_text));
	memset(new_text, 'n', sizeof(new_text));
	scene.sys = fake_sys_table(scene.world);
	fake_sys_add_dir(scene.world, "/d");
	fake_sys_add_file(scene.world, "/d/f", old_text, OLD_SIZE);
	if (with_rest)
		fake_sys_add_file(scene.world, "/d/f.tmp", "rest", 4);
	scene.dir = scene.sys->openat(scene.sys, AT_FDCWD, "/d", O_RDONLY | O_DIRECTORY, 0);
	return scene;
}

static int write_new(const struct scene *scene)
{
	return takt_file_write_durable(scene->sys, scene->dir, "f", new_text, NEW_SIZE, 0600, NULL);
}

enum contents {
	NEITHER,
	OLD,
	NEW,
};

static enum contents contents(const struct scene *scene)
{
	size_t len;
	const char *text = fake_sys_read_file(scene->world, "/d/f", &len);

	if (text && len == OLD_SIZE && memcmp(text, old_text, OLD_SIZE) == 0)
		return OLD;
	if (text && len == NEW_SIZE && memcmp(text, new_text, NEW_SIZE) == 0)
		return NEW;
	return NEITHER;
}

/* One power cut, one outcome: is the promise kept? *ret_done: the write came to its end before. */
static bool survives_cut(unsigned lies, unsigned long at, uint64_t seed, bool *ret_done)
{
	struct scene scene = open_scene(seed % 2);
	enum contents after;
	int rc;

	fake_sys_lie(scene.world, lies);
	fake_sys_cut_power_at(scene.world, at);
	rc = write_new(&scene);
	*ret_done = !fake_sys_is_off(scene.world);
	fake_sys_power_loss(scene.world, seed);
	after = contents(&scene);
	fake_sys_free(scene.world);
	return rc == 0 ? after == NEW : after != NEITHER;
}

/* Every call, every seed. */
static bool survives_all_cuts(unsigned lies)
{
	bool done = false, held = true;

	for (unsigned long at = 1; !done && at < MANY_CALLS; at++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			held = survives_cut(lies, at, seed, &done) && held;
	assert_true(done);
	return held;
}

static void power_loss_leaves_old_or_new(void **state)
{
	assert_true(survives_all_cuts(FAKE_SYS_HONEST));
}

static void without_file_sync_the_campaign_fails(void **state)
{
	assert_false(survives_all_cuts(FAKE_SYS_NO_FILE_SYNC));
}

static void without_directory_sync_the_campaign_fails(void **state)
{
	assert_false(survives_all_cuts(FAKE_SYS_NO_DIR_SYNC));
}

static void a_killed_writer_leaves_old_or_new(void **state)
{
	bool done = false;

	for (unsigned long at = 1; !done; at++) {
		struct scene scene = open_scene(false);

		fake_sys_cut_power_at(scene.world, at);
		write_new(&scene);
		done = !fake_sys_is_off(scene.world);
		fake_sys_process_death(scene.world);
		assert_int_not_equal(contents(&scene), NEITHER);
		scene.dir = scene.sys->openat(scene.sys, AT_FDCWD, "/d", O_RDONLY, 0);
		assert_int_equal(write_new(&scene), 0);
		assert_int_equal(contents(&scene), NEW);
		fake_sys_free(scene.world);
	}
}

static void every_failing_call_is_reported(void **state)
{
	static const int errors[] = {EIO, ENOSPC, EDQUOT};
	struct takt_err err;
	char text[300];
	bool last = false;

	for (unsigned long nth = 1; !last; nth++) {
		struct scene scene = open_scene(true);
		unsigned long before = fake_sys_calls(scene.world, FAKE_SYS_ANY);
		int error = errors[nth % 3], rc;

		fake_sys_fail_nth(scene.world, FAKE_SYS_ANY, nth, error, false);
		err = (struct takt_err){0};
		rc = takt_file_write_durable(scene.sys, scene.dir, "f", new_text, NEW_SIZE, 0600,
					     &err);
		last = fake_sys_calls(scene.world, FAKE_SYS_ANY) - before < nth;
		assert_int_equal(rc, last ? 0 : -error);
		assert_int_equal(err.rc, rc);
		if (rc < 0)
			assert_non_null(strstr(takt_err_text(&err, text, sizeof(text)), "'f'"));
		assert_int_not_equal(contents(&scene), NEITHER);
		assert_int_equal(fake_sys_open_count(scene.world), 1);
		fake_sys_free(scene.world);
	}
}

static void a_full_disk_keeps_the_old(void **state)
{
	struct scene scene = open_scene(false);

	fake_sys_set_space(scene.world, OLD_SIZE + 100);
	assert_int_equal(write_new(&scene), -ENOSPC);
	assert_int_equal(contents(&scene), OLD);
	assert_string_equal(fake_sys_list(scene.world, "/d"), "f");
	fake_sys_free(scene.world);
}

static void short_writes_are_continued(void **state)
{
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct scene scene = open_scene(false);
		char *text = NULL;
		size_t len;

		fake_sys_short_io(scene.world, seed);
		CHECK_SEED(seed, write_new(&scene) == 0);
		CHECK_SEED(seed, contents(&scene) == NEW);
		CHECK_SEED(seed, takt_file_read(scene.sys, scene.dir, "f", NEW_SIZE, &text, &len,
						NULL) == 0);
		CHECK_SEED(seed, len == NEW_SIZE && memcmp(text, new_text, len) == 0);
		takt_free(text);
		fake_sys_free(scene.world);
	}
}

static void bad_names_touch_nothing(void **state)
{
	static const char *const names[] = {"", "a/b", "/d/f"};
	struct scene scene = open_scene(false);
	char longest[300];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++)
		assert_int_equal(
			takt_file_write_durable(scene.sys, scene.dir, names[i], "x", 1, 0600, NULL),
			-EINVAL);
	assert_int_equal(takt_file_write_durable(scene.sys, AT_FDCWD, "f", "x", 1, 0600, NULL),
			 -EINVAL);
	memset(longest, 'x', 252);
	longest[252] = '\0';
	assert_int_equal(takt_file_write_durable(scene.sys, scene.dir, longest, "x", 1, 0600, NULL),
			 -ENAMETOOLONG);
	assert_string_equal(fake_sys_list(scene.world, "/d"), "f");
	fake_sys_free(scene.world);
}

static void reading_keeps_its_limit(void **state)
{
	struct scene scene = open_scene(false);
	struct takt_err err = {0};
	char *text = NULL;
	size_t len = 77;

	assert_int_equal(takt_file_read(scene.sys, scene.dir, "f", OLD_SIZE - 1, &text, &len, &err),
			 -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "2999"));
	assert_int_equal(takt_file_read(scene.sys, scene.dir, "g", 10, &text, &len, &err), -ENOENT);
	assert_null(text);
	assert_int_equal(len, 77);
	assert_int_equal(takt_file_read(scene.sys, scene.dir, "f", OLD_SIZE, &text, &len, NULL), 0);
	assert_int_equal(len, OLD_SIZE);
	assert_int_equal(text[len], '\0');
	takt_free(text);
	fake_sys_add_file(scene.world, "/d/e", "", 0);
	assert_int_equal(takt_file_read(scene.sys, scene.dir, "e", 0, &text, &len, NULL), 0);
	assert_string_equal(text, "");
	takt_free(text);
	assert_int_equal(fake_sys_open_count(scene.world), 1);
	fake_sys_free(scene.world);
}

static void reading_without_memory(void **state)
{
	struct scene scene = open_scene(false);
	char *text = NULL;
	size_t len;
	int rc = -ENOMEM;

	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_file_read(scene.sys, scene.dir, "f", OLD_SIZE, &text, &len, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || (rc == -ENOMEM && !text));
		assert_int_equal(fake_sys_open_count(scene.world), 1);
	}
	takt_free(text);
	fake_sys_free(scene.world);
}

static int make_dirs(const struct scene *scene)
{
	return takt_mkdirs_durable(scene->sys, "/d/a//b/c/", 0700, NULL);
}

/* The maker is killed at `at`; a second one reports success; then power goes. */
static bool dirs_survive(unsigned lies, unsigned long at, uint64_t seed, bool *ret_done)
{
	struct scene scene = open_scene(false);
	bool there;

	fake_sys_lie(scene.world, lies);
	fake_sys_cut_power_at(scene.world, at);
	make_dirs(&scene);
	*ret_done = !fake_sys_is_off(scene.world);
	fake_sys_process_death(scene.world);
	assert_int_equal(make_dirs(&scene), 0);
	assert_int_equal(fake_sys_open_count(scene.world), 0);
	fake_sys_power_loss(scene.world, seed);
	there = fake_sys_exists(scene.world, "/d/a/b/c");
	fake_sys_free(scene.world);
	return there;
}

static bool dirs_survive_all(unsigned lies)
{
	bool done = false, held = true;

	for (unsigned long at = 1; !done && at < MANY_CALLS; at++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			held = dirs_survive(lies, at, seed, &done) && held;
	assert_true(done);
	return held;
}

static void made_directories_survive(void **state)
{
	assert_true(dirs_survive_all(FAKE_SYS_HONEST));
	assert_false(dirs_survive_all(FAKE_SYS_NO_DIR_SYNC));
}

static void making_directories_reports_failures(void **state)
{
	bool last = false;

	for (unsigned long nth = 1; !last; nth++) {
		struct scene scene = open_scene(false);
		unsigned long before = fake_sys_calls(scene.world, FAKE_SYS_ANY);
		int rc;

		fake_sys_fail_nth(scene.world, FAKE_SYS_ANY, nth, EIO, false);
		rc = make_dirs(&scene);
		last = fake_sys_calls(scene.world, FAKE_SYS_ANY) - before < nth;
		assert_true(rc == 0 || rc == -EIO);
		assert_true(rc < 0 || fake_sys_exists(scene.world, "/d/a/b/c"));
		fake_sys_process_death(scene.world);
		fake_sys_free(scene.world);
	}
}

/* The root may be passed but not read: it cannot be synced, and nothing was made in it. */
static void an_unreadable_parent_is_passed(void **state)
{
	struct scene scene = open_scene(false);

	fake_sys_fail_nth(scene.world, FAKE_SYS_OPENAT, 1, EACCES, false);
	assert_int_equal(make_dirs(&scene), 0);
	assert_true(fake_sys_exists(scene.world, "/d/a/b/c"));
	fake_sys_fail_nth(scene.world, FAKE_SYS_OPENAT, 1, EACCES, true);
	assert_int_equal(make_dirs(&scene), -EACCES);
	fake_sys_free(scene.world);
}

static void a_file_in_the_way(void **state)
{
	struct scene scene = open_scene(false);
	struct takt_err err;

	assert_int_equal(takt_mkdirs_durable(scene.sys, "/d/f/x", 0700, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "at 'f'"));
	assert_int_equal(takt_mkdirs_durable(scene.sys, "", 0700, &err), -EINVAL);
	assert_int_equal(takt_mkdirs_durable(scene.sys, "/", 0700, &err), 0);
	assert_int_equal(takt_mkdirs_durable(scene.sys, "d/e", 0700, &err), 0);
	assert_string_equal(fake_sys_list(scene.world, "/d"), "f e");
	fake_sys_free(scene.world);
}

/* Whoever may write a directory may put there what root is then to read. */
static void only_plain_files_are_read_among_strangers(void **state)
{
	static const char *const others[] = {"link", "pipe", "second", "folder"};
	const struct takt_sys *sys = takt_sys_real();
	char path[] = "/tmp/tk-durable-XXXXXX", *text = NULL;
	int dirfd;
	size_t len;

	assert_non_null(mkdtemp(path));
	dirfd = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(dirfd >= 0);
	assert_int_equal(takt_file_write_durable(sys, dirfd, "file", "text", 4, 0600, NULL), 0);
	assert_int_equal(takt_file_read_plain(sys, dirfd, "file", 4, &text, &len, NULL), 0);
	assert_string_equal(text, "text");
	takt_free(text);
	assert_int_equal(takt_file_read_plain(sys, dirfd, "file", 3, &text, &len, NULL),
			 -TAKT_E_LIMIT);
	assert_int_equal(symlinkat("file", dirfd, "link"), 0);
	assert_int_equal(mkfifoat(dirfd, "pipe", 0600), 0);
	assert_int_equal(linkat(dirfd, "file", dirfd, "second", 0), 0);
	assert_int_equal(mkdirat(dirfd, "folder", 0700), 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(others); i++) {
		assert_true(takt_file_read_plain(sys, dirfd, others[i], 4, &text, &len, NULL) < 0);
		assert_int_equal(
			unlinkat(dirfd, others[i], strcmp(others[i], "folder") ? 0 : AT_REMOVEDIR),
			0);
	}
	assert_int_equal(unlinkat(dirfd, "file", 0), 0);
	close(dirfd);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_loss_leaves_old_or_new),
		cmocka_unit_test(without_file_sync_the_campaign_fails),
		cmocka_unit_test(without_directory_sync_the_campaign_fails),
		cmocka_unit_test(a_killed_writer_leaves_old_or_new),
		cmocka_unit_test(every_failing_call_is_reported),
		cmocka_unit_test(a_full_disk_keeps_the_old),
		cmocka_unit_test(short_writes_are_continued),
		cmocka_unit_test(bad_names_touch_nothing),
		cmocka_unit_test(reading_keeps_its_limit),
		cmocka_unit_test(reading_without_memory),
		cmocka_unit_test(only_plain_files_are_read_among_strangers),
		cmocka_unit_test(made_directories_survive),
		cmocka_unit_test(making_directories_reports_failures),
		cmocka_unit_test(an_unreadable_parent_is_passed),
		cmocka_unit_test(a_file_in_the_way),
	};

	return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
