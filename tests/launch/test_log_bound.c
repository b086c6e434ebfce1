/* SPDX-License-Identifier: Apache-2.0 */
/* What of a log is kept, on a disk in memory; and when a shim looks at it, with real files and a
 * clock that obeys. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_sys.h"
#include "launch/log_bound.h"
#include "launch/shim_job.h"
#include "takt/progress.h"

_Static_assert(TAKT_PROGRESS_MAX_RANKS * sizeof(struct takt_progress_file) == TAKT_PROGRESS_BYTES,
	       "no rank that may tell has its place cut off");

enum {
	MIB = 1 << 20,
	BLOCK = 4096,
};

struct scene {
	struct fake_sys *world;
	const struct takt_sys *sys;
	int log;
	off_t size;
};

static struct scene open_scene(void)
{
	struct scene scene = {.world = fake_sys_new()};

	scene.sys = fake_sys_table(scene.world);
	scene.log = scene.sys->openat(scene.sys, AT_FDCWD, "/log", O_RDWR | O_CREAT, 0600);
	assert_true(scene.log >= 0);
	return scene;
}

/* Every block of a log says which it is; none is zeros. */
static void write_more(struct scene *scene, off_t size)
{
	unsigned block[BLOCK / sizeof(unsigned)];

	for (; scene->size < size; scene->size += BLOCK) {
		for (size_t i = 0; i < BLOCK / sizeof(unsigned); i++)
			block[i] = (unsigned)(scene->size / BLOCK) + 1;
		assert_int_equal(
			scene->sys->pwrite(scene->sys, scene->log, block, BLOCK, scene->size),
			BLOCK);
	}
}

/* The number that the block there has, less 1; -1 = it was given back. */
static long block_at(const struct scene *scene, off_t at)
{
	unsigned number;

	assert_int_equal(scene->sys->pread(scene->sys, scene->log, &number, sizeof(number), at),
			 sizeof(number));
	return (long)number - 1;
}

static off_t size_of(const struct scene *scene)
{
	struct stat st;

	assert_int_equal(scene->sys->fstat(scene->sys, scene->log, &st), 0);
	return st.st_size;
}

static void expect_kept(const struct scene *scene, const struct takt_output_cut *cut)
{
	for (off_t at = 0; at < scene->size; at += BLOCK)
		assert_int_equal(block_at(scene, at),
				 at >= (off_t)cut->from && at < (off_t)cut->to ? -1 : at / BLOCK);
}

static void a_log_within_its_limit_is_left_alone(void **state)
{
	struct scene scene = open_scene();
	struct takt_output_cut cut = {0};

	write_more(&scene, MIB);
	assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 0);
	assert_int_equal(cut.limit, 0);
	expect_kept(&scene, &cut);
	fake_sys_free(scene.world);
}

/* At whatever size it is looked at: never more is kept than the limit, and of that little is lost
 * to whole blocks. */
static void its_beginning_and_its_newest_part_stay(void **state)
{
	struct scene scene = open_scene();
	struct takt_output_cut cut = {0};

	for (off_t size = MIB + BLOCK; size < 4 * MIB; size += 53 * BLOCK) {
		write_more(&scene, size);
		assert_true(takt_log_bound(scene.sys, scene.log, MIB, &cut) >= 0);
		assert_int_equal(size_of(&scene), scene.size);
		assert_int_equal(cut.limit, MIB);
		assert_int_equal(cut.from, MIB / 4);
		assert_true(scene.size - (off_t)(cut.to - cut.from) <= MIB);
		assert_true(scene.size - (off_t)(cut.to - cut.from) > MIB - 2 * 64 * 1024);
		expect_kept(&scene, &cut);
	}
	fake_sys_free(scene.world);
}

/* The least that a job is given. */
static void of_a_small_limit_most_is_kept(void **state)
{
	struct scene scene = open_scene();
	struct takt_output_cut cut = {0};

	for (off_t size = 64 * 1024 + BLOCK; size < MIB; size += 7 * BLOCK) {
		write_more(&scene, size);
		assert_true(takt_log_bound(scene.sys, scene.log, 64 * 1024, &cut) >= 0);
		assert_int_equal(cut.from, 16 * 1024);
		assert_int_equal(scene.size - (off_t)(cut.to - cut.from), 64 * 1024);
		expect_kept(&scene, &cut);
	}
	fake_sys_free(scene.world);
}

static void what_has_not_grown_is_not_cut_again(void **state)
{
	struct scene scene = open_scene();
	struct takt_output_cut cut = {0};

	write_more(&scene, 2 * MIB);
	assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 1);
	assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 0);
	assert_int_equal(fake_sys_calls(scene.world, FAKE_SYS_PUNCH), 1);
	fake_sys_free(scene.world);
}

static void a_log_that_its_job_truncates_is_bound_anew(void **state)
{
	struct scene scene = open_scene();
	struct takt_output_cut cut = {0};

	write_more(&scene, 8 * MIB);
	assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 1);
	assert_int_equal(scene.sys->ftruncate(scene.sys, scene.log, 0), 0);
	scene.size = 0;
	write_more(&scene, MIB);
	assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 0);
	write_more(&scene, 2 * MIB);
	assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 1);
	expect_kept(&scene, &cut);
	fake_sys_free(scene.world);
}

static void where_files_have_no_holes_it_is_cut_off(void **state)
{
	struct scene scene = open_scene();
	struct takt_output_cut cut = {0};

	fake_sys_fail_nth(scene.world, FAKE_SYS_PUNCH, 1, EOPNOTSUPP, true);
	for (int i = 0; i < 3; i++) {
		write_more(&scene, 2 * MIB);
		assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 1);
		assert_int_equal(cut.limit, MIB);
		assert_int_equal(cut.from, MIB / 4);
		assert_int_equal(cut.to, 0);
		assert_int_equal(size_of(&scene), MIB / 4);
		scene.size = MIB / 4;
		expect_kept(&scene, &(struct takt_output_cut){0});
	}
	fake_sys_free(scene.world);
}

static void what_fails_changes_nothing_and_is_tried_again(void **state)
{
	static const enum fake_sys_op ops[] = {FAKE_SYS_FSTAT, FAKE_SYS_PUNCH};
	struct scene scene = open_scene();
	struct takt_output_cut cut = {0};

	write_more(&scene, 2 * MIB);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(ops); i++) {
		fake_sys_fail_nth(scene.world, ops[i], 1, EIO, false);
		assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), -EIO);
		assert_int_equal(cut.limit, 0);
		expect_kept(&scene, &cut);
	}
	assert_int_equal(takt_log_bound(scene.sys, scene.log, MIB, &cut), 1);
	expect_kept(&scene, &cut);
	fake_sys_free(scene.world);
}

/* A shim's part, in a directory of its own. */
struct place {
	char dir[64];
	uint64_t now_ns;
	struct takt_sys sys;
	struct takt_job_user user;
	struct takt_shim shim;
};

static struct place place;

static uint64_t place_now(const struct takt_sys *self)
{
	return place.now_ns;
}

static int no_holes(const struct takt_sys *self, int fd, off_t from, off_t size)
{
	return -EOPNOTSUPP;
}

static int place_up(void **state)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	place = (struct place){.dir = "/tmp/takt-bound-XXXXXX", .now_ns = TAKT_NS_PER_S};
	assert_non_null(mkdtemp(place.dir));
	place.sys = *takt_sys_real();
	place.sys.boot_ns = place_now;
	place.user = (struct takt_job_user){0};
	place.shim = (struct takt_shim){.sys = &place.sys,
					.user = &place.user,
					.progressfd = -1,
					.spec = {.output_limit = MIB}};
	place.shim.logdirfd = open(place.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place.shim.logdirfd >= 0);
	place.shim.logfd =
		openat(place.shim.logdirfd, "log", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(place.shim.logfd >= 0);
	return 0;
}

static int place_down(void **state)
{
	char command[96];

	close(place.shim.logfd);
	close(place.shim.logdirfd);
	snprintf(command, sizeof(command), "rm -r %s", place.dir);
	return system(command);
}

static void print_mib(int count)
{
	static char text[MIB];

	memset(text, 'x', sizeof(text));
	while (count-- > 0)
		assert_int_equal(write(place.shim.logfd, text, sizeof(text)), sizeof(text));
}

static bool told(void)
{
	static const struct timespec at_once;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	return sigtimedwait(&set, NULL, &at_once) == SIGIO;
}

static off_t log_size(void)
{
	struct stat st;

	assert_int_equal(fstat(place.shim.logfd, &st), 0);
	return st.st_size;
}

/* Nothing is due until the kernel says that it is written to, and then once a second at most. */
static void a_shim_looks_only_at_a_log_that_is_written_to(void **state)
{
	struct takt_boot at;

	takt_shim_bound_begin(&place.shim);
	assert_int_equal(takt_shim_bound_due(&place.shim, (struct takt_boot){0}).ns, place.now_ns);
	takt_shim_bound_look(&place.shim);
	assert_int_equal(takt_shim_bound_due(&place.shim, (struct takt_boot){0}).ns, 0);
	assert_int_equal(takt_shim_bound_due(&place.shim, (struct takt_boot){7}).ns, 7);
	assert_false(told());
	print_mib(1);
	assert_true(told());
	print_mib(3);
	assert_false(told());
	takt_shim_bound_told(&place.shim);
	at = takt_shim_bound_due(&place.shim, (struct takt_boot){0});
	assert_true(at.ns > place.now_ns && at.ns <= 2 * TAKT_NS_PER_S);
	takt_shim_bound_look(&place.shim); /* not yet */
	assert_int_equal(place.shim.cut.limit, 0);
	place.now_ns = at.ns;
	takt_shim_bound_look(&place.shim);
	assert_int_equal(place.shim.cut.from, MIB / 4);
	assert_int_equal(place.shim.cut.to, 4 * MIB - 3 * MIB / 4);
	assert_int_equal(log_size(), 4 * MIB);
}

/* Our own record is a write in that directory, too: it is looked at once more, and then no more. */
static void a_shim_that_has_cut_comes_to_rest(void **state)
{
	print_mib(4);
	takt_shim_bound_begin(&place.shim);
	for (int looks = 0; looks < 2; looks++) {
		takt_shim_bound_look(&place.shim);
		assert_int_equal(place.shim.cut.limit, MIB);
		if (told())
			takt_shim_bound_told(&place.shim);
		place.now_ns += TAKT_NS_PER_S;
	}
	assert_false(told());
	assert_int_equal(takt_shim_bound_due(&place.shim, (struct takt_boot){0}).ns, 0);
}

/* The pause until the next look, which is then made. */
static uint64_t look_again(void)
{
	struct takt_boot at = takt_shim_bound_due(&place.shim, (struct takt_boot){0});
	uint64_t pause_ns = at.ns - place.now_ns;

	assert_true(at.ns > place.now_ns);
	place.now_ns = at.ns;
	takt_shim_bound_look(&place.shim);
	return pause_ns;
}

/* Some kernels have no such notice. While there is too much each time it is soon looked again, then
 * ever later, up to a second. */
static void a_shim_that_is_not_told_looks_at_a_pace(void **state)
{
	int dirfd = place.shim.logdirfd;

	place.shim.logdirfd = openat(dirfd, ".", O_PATH | O_CLOEXEC);
	takt_shim_bound_begin(&place.shim);
	takt_shim_bound_look(&place.shim);
	for (int looks = 0; looks < 5; looks++)
		(void)look_again();
	assert_int_equal(look_again(), TAKT_NS_PER_S);
	print_mib(2);
	assert_int_equal(look_again(), TAKT_NS_PER_S);
	assert_int_equal(place.shim.cut.limit, MIB);
	print_mib(1);
	assert_int_equal(look_again(), TAKT_NS_PER_S / 10);
	print_mib(1);
	assert_int_equal(look_again(), TAKT_NS_PER_S / 10);
	assert_int_equal(place.shim.cut.to, 4 * MIB - 3 * MIB / 4);
	close(place.shim.logdirfd);
	place.shim.logdirfd = dirfd;
}

static void without_holes_the_log_says_what_happened(void **state)
{
	char text[256] = "";

	place.sys.punch = no_holes;
	print_mib(2);
	takt_shim_bound_apply(&place.shim);
	assert_true(pread(place.shim.logfd, text, sizeof(text) - 1, MIB / 4) > 0);
	assert_non_null(strstr(text, "takt-shim: output was dropped here"));
	assert_non_null(strstr(text, "output_limit"));
	assert_int_equal(log_size(), MIB / 4 + (off_t)strlen(text));
}

/* On a full disk there is room for the record only afterwards: it is written at the next look. */
static void a_record_that_fails_is_written_later(void **state)
{
	int dirfd = place.shim.logdirfd;

	place.shim.logdirfd = -1;
	print_mib(2);
	takt_shim_bound_apply(&place.shim);
	place.shim.logdirfd = dirfd;
	assert_int_equal(faccessat(dirfd, "cut", F_OK, 0), -1);
	takt_shim_bound_apply(&place.shim);
	assert_int_equal(faccessat(dirfd, "cut", F_OK, 0), 0);
}

static off_t on_disk(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks * 512;
}

static void look_after_a_pause(void)
{
	place.now_ns += TAKT_NS_PER_S;
	takt_shim_bound_told(&place.shim);
	takt_shim_bound_apply(&place.shim);
}

static void room_behind_the_end_goes_back(void **state)
{
	print_mib(1);
	assert_int_equal(
		fallocate(place.shim.logfd, FALLOC_FL_KEEP_SIZE, 2 * (off_t)MIB, 64 * (off_t)MIB),
		0);
	assert_true(on_disk(place.shim.logfd) > 64 * (off_t)MIB);
	look_after_a_pause();
	assert_true(on_disk(place.shim.logfd) <= 2 * MIB);
	assert_int_equal(log_size(), MIB);
	assert_int_equal(place.shim.cut.limit, 0);
}

/* Its size is the same at each look. */
static void what_is_written_into_the_hole_goes_back(void **state)
{
	static char text[MIB];
	int fd = openat(place.shim.logdirfd, "log", O_WRONLY | O_CLOEXEC);

	memset(text, 'x', sizeof(text));
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)MIB << 12), 0);
	for (off_t at = 0; at < 64 * (off_t)MIB; at += MIB) {
		assert_int_equal(pwrite(fd, text, sizeof(text), at), sizeof(text));
		if (at % (16 * MIB) == 0)
			look_after_a_pause();
	}
	assert_true(on_disk(fd) > 8 * (off_t)MIB);
	look_after_a_pause();
	assert_true(on_disk(fd) <= MIB);
	assert_int_equal(log_size(), (off_t)MIB << 12);
	assert_int_equal(place.shim.cut.from, MIB / 4);
	assert_int_equal(place.shim.bound_kept, 0);
	look_after_a_pause();
	assert_int_equal(place.shim.bound_kept, 1);
	close(fd);
}

/* What is written to a mapping is told by nobody. */
static void another_users_log_with_a_hole_is_looked_at_without_a_word(void **state)
{
	place.user.other = true;
	takt_shim_bound_begin(&place.shim);
	takt_shim_bound_look(&place.shim);
	assert_int_equal(takt_shim_bound_due(&place.shim, (struct takt_boot){0}).ns, 0);
	print_mib(2);
	takt_shim_bound_told(&place.shim);
	place.now_ns += TAKT_NS_PER_S;
	takt_shim_bound_look(&place.shim);
	assert_int_equal(place.shim.cut.limit, MIB);
	for (int looks = 0; looks < 20; looks++)
		assert_true(look_again() <= TAKT_NS_PER_S);
}

/* With or without a limit for the log. */
static void a_progress_file_is_what_it_may_be(void **state)
{
	static const char text[64 * 1024] = {1};
	int fd = openat(place.shim.logdirfd, "progress", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char first;

	assert_true(fd >= 0);
	place.shim.spec.output_limit = 0;
	place.shim.progressfd = fd;
	assert_int_equal(pwrite(fd, text, 64, 0), 64);
	takt_shim_bound_begin(&place.shim);
	takt_shim_bound_look(&place.shim);
	assert_int_equal(lseek(fd, 0, SEEK_END), 64);
	for (off_t at = 0; at < 4 * MIB; at += (off_t)sizeof(text))
		assert_int_equal(pwrite(fd, text, sizeof(text), at), sizeof(text));
	look_after_a_pause();
	assert_int_equal(lseek(fd, 0, SEEK_END), 4096);
	assert_true(pread(fd, &first, 1, 0) == 1 && first == 1);
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, MIB, 4 * (off_t)MIB), 0);
	look_after_a_pause();
	assert_true(on_disk(fd) <= 64 * 1024);
	close(fd);
}

static void what_is_no_file_is_left_alone(void **state)
{
	struct takt_output_cut cut = {0};
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(takt_log_bound(takt_sys_real(), ends[1], MIB, &cut), 0);
	close(ends[0]);
	close(ends[1]);
}

static void no_limit_looks_at_nothing(void **state)
{
	place.shim.spec.output_limit = 0;
	print_mib(2);
	takt_shim_bound_begin(&place.shim);
	takt_shim_bound_told(&place.shim);
	takt_shim_bound_apply(&place.shim);
	assert_int_equal(takt_shim_bound_due(&place.shim, (struct takt_boot){0}).ns, 0);
	assert_int_equal(place.shim.cut.limit, 0);
	assert_false(told());
}

#define IN_PLACE(name) cmocka_unit_test_setup_teardown(name, place_up, place_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_within_its_limit_is_left_alone),
		cmocka_unit_test(its_beginning_and_its_newest_part_stay),
		cmocka_unit_test(of_a_small_limit_most_is_kept),
		cmocka_unit_test(what_has_not_grown_is_not_cut_again),
		cmocka_unit_test(a_log_that_its_job_truncates_is_bound_anew),
		cmocka_unit_test(where_files_have_no_holes_it_is_cut_off),
		cmocka_unit_test(what_fails_changes_nothing_and_is_tried_again),
		cmocka_unit_test(what_is_no_file_is_left_alone),
		IN_PLACE(a_shim_looks_only_at_a_log_that_is_written_to),
		IN_PLACE(a_shim_that_has_cut_comes_to_rest),
		IN_PLACE(a_shim_that_is_not_told_looks_at_a_pace),
		IN_PLACE(without_holes_the_log_says_what_happened),
		IN_PLACE(a_record_that_fails_is_written_later),
		IN_PLACE(no_limit_looks_at_nothing),
		IN_PLACE(room_behind_the_end_goes_back),
		IN_PLACE(what_is_written_into_the_hole_goes_back),
		IN_PLACE(another_users_log_with_a_hole_is_looked_at_without_a_word),
		IN_PLACE(a_progress_file_is_what_it_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
