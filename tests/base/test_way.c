/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a file: where it ends, and whether others can have a hand in it. */
#include "base/way.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	THEM = 54321, /* a user, by number */
};

static char folder[] = "/tmp/takt-way-XXXXXX";

static int enter(void **state)
{
	return mkdtemp(folder) && chdir(folder) == 0 && mkdir("a", 0755) == 0 &&
			       mkdir("a/b", 0755) == 0 && symlink("b", "a/link") == 0 &&
			       symlink("nowhere", "a/dangling") == 0 && symlink("loop", "loop") == 0
		       ? 0
		       : -1;
}

static int leave(void **state)
{
	return unlink("a/link") == 0 && unlink("a/dangling") == 0 && unlink("loop") == 0 &&
			       rmdir("a/b") == 0 && rmdir("a") == 0 && chdir("/") == 0
		       ? rmdir(folder)
		       : -1;
}

/* It ends at `name` in `dir`. */
static void expect(const char *path, bool follow, const char *dir, const char *name)
{
	struct takt_way way;
	struct stat is, expected;

	assert_int_equal(takt_way_open(path, follow, &way, NULL), 0);
	assert_string_equal(way.name, name);
	assert_int_equal(fstat(way.dirfd, &is), 0);
	assert_int_equal(stat(dir, &expected), 0);
	assert_int_equal(is.st_ino, expected.st_ino);
	takt_way_close(&way);
}

static void expect_failure(const char *path, int rc)
{
	struct takt_err err = {0};
	struct takt_way way;

	assert_int_equal(takt_way_open(path, true, &way, &err), rc);
	assert_int_equal(way.dirfd, -1);
}

static void it_ends_where_the_kernel_would(void **state)
{
	char path[PATH_MAX];

	expect("new", true, ".", "new");
	expect("a//./b/../b/new", true, "a/b", "new");
	expect("a/link/new", true, "a/b", "new");
	expect("a/link", true, "a", "b");
	expect("a/link", false, "a", "link");
	expect("a/dangling", true, "a", "nowhere");
	expect("a/b/", true, "a/b", ".");
	expect("/", true, "/", ".");
	snprintf(path, sizeof(path), "%s/a/link/../new", folder);
	expect(path, true, "a", "new");
	expect("/proc/self/cwd/new", true, ".", "new");
	expect_failure("", -ENOENT);
	expect_failure("none/new", -ENOENT);
	expect_failure("loop", -ELOOP);
	expect_failure("loop/new", -ELOOP);
	expect_failure("/dev/null/new", -ENOTDIR);
	memset(path, 'n', NAME_MAX + 1);
	path[NAME_MAX + 1] = '\0';
	expect_failure(path, -ENAMETOOLONG);
}

static bool is_ours(const char *path)
{
	struct takt_way way;

	assert_int_equal(takt_way_open(path, true, &way, NULL), 0);
	takt_way_close(&way);
	return way.ours;
}

/* "a" is given away, or opened to all, and "a/b" is behind it. */
static void whose_it_is_depends_on_every_folder(void **state)
{
	assert_true(is_ours("a/b/new"));
	assert_true(is_ours("/etc/passwd"));
	assert_false(is_ours("/tmp/new")); /* others may put there what has no name yet */
	assert_int_equal(chmod("a", 0777), 0);
	assert_false(is_ours("a/new"));
	assert_false(is_ours("a/b/new"));
	assert_int_equal(chmod("a", 01777), 0);
	assert_false(is_ours("a/new"));
	assert_true(is_ours("a/b/new"));
	assert_int_equal(chmod("a", 0755), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown("a", THEM, THEM), 0);
	assert_false(is_ours("a/b/new"));
	assert_int_equal(chdir("a/b"), 0);
	assert_false(is_ours("new"));
	assert_int_equal(chdir("../.."), 0);
	assert_int_equal(chown("a", 0, 0), 0);
}

static void a_link_of_others_is_refused_where_they_may_write(void **state)
{
	if (geteuid() != 0) {
		print_message("SKIPPED: only root can give files to others\n");
		skip();
	}
	assert_int_equal(lchown("a/link", THEM, THEM), 0);
	expect("a/link/new", true, "a/b", "new");
	assert_int_equal(chown("a", THEM, THEM), 0);
	expect_failure("a/link/new", -EPERM);
	expect_failure("a/link", -EPERM);
	expect("a/link", false, "a", "link");
	assert_int_equal(chown("a", 0, 0), 0);
	assert_int_equal(chmod("a", 01777), 0);
	expect_failure("a/link/new", -EPERM);
	assert_int_equal(lchown("a/link", 0, 0), 0);
	expect("a/link/new", true, "a/b", "new");
	assert_int_equal(chmod("a", 0755), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_where_the_kernel_would),
		cmocka_unit_test(whose_it_is_depends_on_every_folder),
		cmocka_unit_test(a_link_of_others_is_refused_where_they_may_write),
	};

	return cmocka_run_group_tests_name("way", tests, enter, leave);
}
