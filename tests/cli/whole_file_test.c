/* SPDX-License-Identifier: Apache-2.0 */
/* Files for users: whole or not at all, and where they were asked for. */
#include "cli/whole_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	THEM = 54321, /* a user, by number */
};

static char folder[] = "/tmp/takt-whole-XXXXXX";

static int enter(void **state)
{
	(void)signal(SIGXFSZ, SIG_IGN);
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void write_text(const char *path, const char *text, int expected)
{
	TAKT_CLEANUP(strp) struct takt_str str = TAKT_STR(1 << 16);
	struct takt_err err = {0};

	takt_str_add(&str, text);
	assert_int_equal(takt_whole_file_write(path, &str, &err), expected);
	assert_int_equal(err.rc, expected);
}

static void expect_text(const char *path, const char *text)
{
	char got[256] = "";
	int fd = open(path, O_RDONLY | O_NONBLOCK);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, text);
}

/* The disk takes so many bytes of a file, and no more. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void expect_files(size_t count)
{
	DIR *dir = opendir(".");
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			count--;
	closedir(dir);
	assert_int_equal(count, 0);
}

static void a_new_one_is_as_the_umask_says(void **state)
{
	mode_t was = umask(027);
	struct stat st;

	write_text("new", "text", 0);
	umask(was);
	expect_text("new", "text");
	assert_int_equal(stat("new", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	expect_files(1);
	unlink("new");
}

static void a_full_disk_leaves_what_was_there(void **state)
{
	struct stat st;

	write_text("old", "text", 0);
	assert_int_equal(chmod("old", 0604), 0);
	limit_files(4);
	write_text("old", "longer text", -EFBIG);
	write_text("new", "longer text", -EFBIG);
	limit_files(RLIM_INFINITY);
	expect_text("old", "text");
	expect_files(1);
	write_text("old", "longer text", 0);
	expect_text("old", "longer text");
	assert_int_equal(stat("old", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	unlink("old");
}

static void links_stay_links(void **state)
{
	struct stat st;

	assert_int_equal(symlink("target", "symbolic"), 0);
	write_text("symbolic", "made", 0);
	write_text("symbolic", "again", 0);
	assert_int_equal(lstat("symbolic", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect_text("target", "again");
	assert_int_equal(link("target", "other"), 0);
	write_text("target", "both", 0);
	expect_text("other", "both");
	expect_files(3);
	unlink("symbolic");
	unlink("target");
	unlink("other");
}

static void a_pipe_is_written_to(void **state)
{
	char got[16] = "";
	struct stat st;
	int fd;

	assert_int_equal(mkfifo("pipe", 0600), 0);
	fd = open("pipe", O_RDWR | O_NONBLOCK);
	assert_true(fd >= 0);
	write_text("pipe", "through", 0);
	assert_int_equal(read(fd, got, sizeof(got)), 7);
	assert_string_equal(got, "through");
	assert_int_equal(stat("pipe", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	close(fd);
	unlink("pipe");
	write_text("/dev/full", "text", -ENOSPC);
}

/* As /dev/stdout with the output in a file: who has it open sees what is written. */
static void what_is_open_is_written_where_it_is(void **state)
{
	char path[32], got[16] = "";
	int fd = open("open", O_RDWR | O_CREAT, 0600), kept = dup(STDIN_FILENO);

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	write_text(path, "text", 0);
	assert_int_equal(pread(fd, got, sizeof(got), 0), 4);
	assert_true(kept >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
	write_text("open", "again", 0);
	assert_int_equal(pread(fd, got, sizeof(got), 0), 5);
	assert_true(dup2(kept, STDIN_FILENO) == STDIN_FILENO);
	close(kept);
	close(fd);
	expect_files(1);
	unlink("open");
}

static void a_place_that_is_none_is_told(void **state)
{
	write_text("no/such/folder", "text", -ENOENT);
	write_text(".", "text", -EISDIR);
	expect_files(0);
}

/* Nothing is made, emptied or left behind by a look, and a pipe's reader sees no end. */
static void a_look_changes_nothing(void **state)
{
	struct takt_err err = {0};
	char byte;
	int reader;

	(void)state;
	assert_int_equal(takt_whole_file_check("new", &err), 0);
	assert_int_equal(access("new", F_OK), -1);
	write_text("old", "text", 0);
	assert_int_equal(takt_whole_file_check("old", &err), 0);
	expect_text("old", "text");
	assert_int_equal(unlink("old"), 0);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	reader = open("pipe", O_RDWR | O_NONBLOCK);
	assert_int_equal(takt_whole_file_check("pipe", &err), 0);
	assert_int_equal(read(reader, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	close(reader);
	assert_int_equal(unlink("pipe"), 0);
	assert_int_equal(takt_whole_file_check("nowhere/file", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "write 'nowhere/file'"));
	assert_int_equal(takt_whole_file_check(folder, &err), -EISDIR);
}

/* A folder of another user's, or one for all; the victim is a file of ours elsewhere. */
static void enter_folder(uid_t owner, mode_t mode)
{
	write_text("victim", "ours", 0);
	assert_int_equal(mkdir("trap", 0700), 0);
	assert_int_equal(chmod("trap", mode), 0);
	assert_int_equal(chown("trap", owner, owner), 0);
}

static void leave_folder(void)
{
	expect_text("victim", "ours");
	assert_int_equal(unlink("victim"), 0);
	assert_int_equal(rmdir("trap"), 0);
}

static void refuse(const char *path, const char *says)
{
	TAKT_CLEANUP(strp) struct takt_str str = TAKT_STR(1 << 16);
	struct takt_err err = {0};

	takt_str_add(&str, "theirs");
	assert_int_equal(takt_whole_file_check(path, &err), -EPERM);
	assert_non_null(strstr(err.msg, says));
	err = (struct takt_err){0};
	assert_int_equal(takt_whole_file_write(path, &str, &err), -EPERM);
	assert_non_null(strstr(err.msg, says));
	expect_text("victim", "ours");
}

static void plant_link(const char *to, const char *at, uid_t owner)
{
	assert_int_equal(symlink(to, at), 0);
	assert_int_equal(lchown(at, owner, owner), 0);
}

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("SKIPPED: only root can give files to others\n");
	skip();
}

/* Also of one that leads to it by way of our own, and of a folder. */
static void links_of_others_are_refused(void **state)
{
	static const struct {
		uid_t owner;
		mode_t mode;
	} folders[] = {{THEM, 0755}, {0, 01777}, {0, 0775}, {THEM, 01777}};

	skip_unless_root();
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		enter_folder(folders[i].owner, folders[i].mode);
		plant_link("../victim", "trap/out", THEM);
		plant_link("..", "trap/folder", THEM);
		plant_link("../new", "trap/dangling", THEM);
		plant_link("trap/out", "own", 0);
		refuse("trap/out", "user 54321's link 'out'");
		refuse("trap/folder/victim", "user 54321's link 'folder'");
		refuse("trap/dangling", "user 54321's link 'dangling'");
		refuse("own", "user 54321's link 'out'");
		assert_int_equal(access("new", F_OK), -1);
		unlink("own");
		unlink("trap/out");
		unlink("trap/folder");
		unlink("trap/dangling");
		leave_folder();
	}
	expect_files(0);
}

static void our_own_are_followed_there(void **state)
{
	skip_unless_root();
	enter_folder(0, 01777);
	plant_link("../target", "trap/out", 0);
	write_text("trap/out", "text", 0);
	expect_text("target", "text");
	write_text("trap/out", "again", 0);
	expect_text("target", "again");
	unlink("trap/out");
	leave_folder();
	assert_int_equal(mkdir("closed", 0755), 0);
	plant_link("../target", "closed/out", THEM);
	write_text("closed/out", "of an archive", 0); /* none but we can have put it there */
	expect_text("target", "of an archive");
	unlink("closed/out");
	unlink("target");
	assert_int_equal(rmdir("closed"), 0);
	expect_files(0);
}

static void what_others_planted_is_not_written_to(void **state)
{
	struct stat st;
	int fd;

	skip_unless_root();
	enter_folder(0, 01777);
	assert_int_equal(link("victim", "trap/name"), 0);
	refuse("trap/name", "one of 2 names");
	unlink("trap/name");
	assert_int_equal(mkfifo("trap/pipe", 0666), 0);
	assert_int_equal(chown("trap/pipe", THEM, THEM), 0);
	refuse("trap/pipe", "is user 54321's");
	unlink("trap/pipe");
	fd = open("trap/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	assert_int_equal(write(fd, "old", 3), 3);
	assert_int_equal(fchown(fd, THEM, THEM), 0);
	refuse("trap/file", "is user 54321's");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 3);
	close(fd);
	unlink("trap/file");
	leave_folder();
	expect_files(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_one_is_as_the_umask_says),
		cmocka_unit_test(a_full_disk_leaves_what_was_there),
		cmocka_unit_test(links_stay_links),
		cmocka_unit_test(a_pipe_is_written_to),
		cmocka_unit_test(what_is_open_is_written_where_it_is),
		cmocka_unit_test(a_place_that_is_none_is_told),
		cmocka_unit_test(a_look_changes_nothing),
		cmocka_unit_test(links_of_others_are_refused),
		cmocka_unit_test(our_own_are_followed_there),
		cmocka_unit_test(what_others_planted_is_not_written_to),
	};

	return cmocka_run_group_tests_name("whole_file", tests, enter, leave);
}
