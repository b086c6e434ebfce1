/* SPDX-License-Identifier: Apache-2.0 */
/* Governors that an administrator adds: found by name beside takt's own, and only from files that
 * nobody else could have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "objects/governor_objects.h"
#include "objects/trusted_file.h"

static char folder[] = "/tmp/takt-objects-XXXXXX";
static char own[256], again[256], linked[256], other[256];

static void copy_example(const char *name, const char *to)
{
	char command[1024];

	snprintf(command, sizeof(command), "cp '%s/%s.so' '%s' && chmod 755 '%s'",
		 getenv("TAKT_EXAMPLES"), name, to, to);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(own, sizeof(own), "%s/own.so", folder);
	snprintf(again, sizeof(again), "%s/again.so", folder);
	snprintf(linked, sizeof(linked), "%s/linked.so", folder);
	snprintf(other, sizeof(other), "%s/other.so", folder);
	copy_example("half_way", own);
	copy_example("half_way", again);
	copy_example("worst_fit", other);
	return symlink(own, linked);
}

static int tear_down(void **state)
{
	const char *const files[] = {own, again, linked, other};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(files); i++)
		unlink(files[i]);
	return rmdir(folder);
}

static void expect_refused(const char *paths, int rc, const char *says)
{
	struct takt_governor_objects *objects = NULL;
	struct takt_err err = {0};

	assert_int_equal(takt_governor_objects_open(paths, &objects, &err), rc);
	assert_null(objects);
	if (!strstr(err.msg, says))
		fail_msg("'%s' does not say '%s'", err.msg, says);
}

static void they_stand_beside_takts_own(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str names = TAKT_STR(1024);
	const struct takt_governors *all;
	struct takt_governor_objects *objects;

	assert_int_equal(takt_governor_objects_open("", &objects, NULL), 0);
	assert_null(takt_governors_find(takt_governor_objects_all(objects), "half-way"));
	takt_governor_objects_close(objects);
	assert_int_equal(takt_governor_objects_open(linked, &objects, NULL), 0);
	all = takt_governor_objects_all(objects);
	assert_non_null(takt_governors_find(all, "half-way"));
	assert_ptr_equal(takt_governors_find(all, "ladder"), &takt_governor_ladder);
	takt_governors_names(all, &names);
	assert_non_null(strstr(takt_str_text(&names), "half-way, observe, "));
	takt_governor_objects_close(objects);
}

static void one_that_is_none_leaves_none_open(void **state)
{
	char paths[1024];

	snprintf(paths, sizeof(paths), "%s, %s", own, other);
	expect_refused(paths, -TAKT_E_UNSUPPORTED, "takt_governor_entry");
	snprintf(paths, sizeof(paths), " %s ,\t%s ", own, again);
	expect_refused(paths, -TAKT_E_UNSUPPORTED, "a governor named 'half-way', too");
	expect_refused("own.so", -TAKT_E_USAGE, "'own.so' is not an absolute path");
	expect_refused("/nowhere/own.so", -TAKT_E_NOT_FOUND, "/nowhere/own.so");
	expect_refused(folder, -EPERM, "is not a file");
}

static void what_others_could_have_written_is_refused(void **state)
{
	struct takt_governor_objects *objects;

	chmod(own, 0775);
	expect_refused(own, -EPERM, "may be written by others");
	expect_refused(linked, -EPERM, "own.so' may be written by others");
	chmod(own, 0757);
	expect_refused(own, -EPERM, "may be written by others");
	chmod(own, 0755);
	chmod(folder, 0777);
	expect_refused(own, -EPERM, "folder '/tmp/takt-objects-");
	chmod(folder, 01777); /* nobody may put another in its place */
	assert_int_equal(takt_governor_objects_open(own, &objects, NULL), 0);
	takt_governor_objects_close(objects);
	chmod(folder, 0700);
}

static void what_belongs_to_another_user_is_refused(void **state)
{
	if (geteuid() != 0)
		skip(); /* only root can give a file away */
	assert_int_equal(chown(own, 12345, 0), 0);
	expect_refused(own, -EPERM, "belongs to another user (uid 12345)");
	assert_int_equal(chown(own, 0, 0), 0);
	assert_int_equal(chown(folder, 12345, 0), 0);
	expect_refused(own, -EPERM, "belongs to another user (uid 12345)");
	assert_int_equal(chown(folder, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_stand_beside_takts_own),
		cmocka_unit_test(one_that_is_none_leaves_none_open),
		cmocka_unit_test(what_others_could_have_written_is_refused),
		cmocka_unit_test(what_belongs_to_another_user_is_refused),
	};

	return cmocka_run_group_tests_name("governor objects", tests, set_up, tear_down);
}
