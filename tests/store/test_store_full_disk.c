/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real full disk: a tmpfs of 2 MiB, mounted in a namespace of this program's own. Needs the
 * right to mount, as root or through a user namespace; skipped with the reason otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_fixture.h"

enum {
	RESERVE = 256 * 1024,
	JOBS = 8
};

static struct store_place place;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	close(fd);
}

/* A mount namespace, as whoever we are. */
static int own_namespace(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWNS) == 0)
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
	return 0;
}

static int mount_tmpfs(void)
{
	int rc = own_namespace();

	if (rc == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		rc = -errno;
	if (rc == 0 && mount("tmpfs", place.dir, "tmpfs", 0, "size=2m,mode=0700") < 0)
		rc = -errno;
	return rc;
}

static const char *filler(void)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/filler", place.dir);
	return path;
}

static void fill_disk(void)
{
	int fd = open(filler(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (int size = 2048; size > 0; size -= 4)
		if (posix_fallocate(fd, 0, size * 1024) == 0)
			break;
	close(fd);
}

static void empty_disk(void)
{
	assert_int_equal(unlink(filler()), 0);
}

static void a_full_disk_loses_nothing_and_passes(void **state)
{
	struct takt_store_completion done;
	struct takt_store *store;
	struct takt_job job, got;
	uint64_t id = 0;
	int fd;

	fd = open(filler(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(posix_fallocate(fd, 0, 256 * 1024), 0);
	close(fd);
	store = store_open_ok(place.path);
	do {
		job = store_job(++id);
		done = store_wait(store, takt_store_insert(store, &job, 0, NULL));
	} while (done.rc == 0 && id < 100000);
	assert_int_equal(done.rc, -ENOSPC);
	assert_non_null(strstr(done.message, place.path));
	assert_true(id > 1);
	assert_int_equal(takt_store_get(store, id, &got, NULL), -TAKT_E_NOT_FOUND);
	empty_disk();
	assert_int_equal(store_wait(store, takt_store_insert(store, &job, 0, NULL)).rc, 0);
	takt_store_close(store);
	store = store_open_ok(place.path);
	for (uint64_t i = 1; i <= id; i++) {
		assert_int_equal(takt_store_get(store, i, &got, NULL), 0);
		takt_job_fini(&got);
	}
	takt_store_close(store);
}

static void a_disk_full_from_the_start_is_named(void **state)
{
	struct takt_store_config config = {.path = place.path};
	struct takt_store *store = NULL;
	struct takt_err err;

	store_place_fini(&place); /* empties the tmpfs; it is busy, so it stays */
	fill_disk();
	assert_int_equal(takt_store_open(&config, &store, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, place.path));
	empty_disk();
	takt_store_close(store_open_ok(place.path));
}

/* The daemon's restart on a full disk: refused in clear words, nothing lost. */
static void a_known_database_on_a_full_disk_is_named(void **state)
{
	struct takt_store_config config = {.path = place.path};
	struct takt_store *store = store_open_ok(place.path);
	struct takt_job job = store_job(1), got;
	struct takt_err err;

	assert_int_equal(store_wait(store, takt_store_insert(store, &job, 0, NULL)).rc, 0);
	takt_store_close(store);
	fill_disk();
	assert_int_equal(takt_store_open(&config, &store, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, place.path));
	empty_disk();
	store = store_open_ok(place.path);
	assert_int_equal(takt_store_get(store, 1, &got, NULL), 0);
	takt_job_fini(&got);
	takt_store_close(store);
}

static struct takt_store *open_with_reserve(void)
{
	struct takt_store_config config = {.path = place.path, .reserve_bytes = RESERVE};
	struct takt_store *store = NULL;
	struct takt_err err;

	if (takt_store_open(&config, &store, &err) < 0)
		fail_msg("%s", err.msg);
	return store;
}

static long reserved(void)
{
	char path[300];
	struct stat st;

	snprintf(path, sizeof(path), "%s.reserve", place.path);
	return stat(path, &st) == 0 ? (long)st.st_blocks * 512 : -1;
}

/* What was asked of the writer is done when a change that was posted behind it is. */
static void ask(struct takt_store *store, enum takt_store_errand errand)
{
	struct takt_job job = store_job(1);

	takt_store_ask(store, errand);
	assert_int_equal(store_wait(store, takt_store_update(store, &job, 0, NULL)).rc, 0);
}

static void insert_all(struct takt_store *store)
{
	for (uint64_t id = 1; id <= JOBS; id++) {
		struct takt_job job = store_job(id);

		assert_int_equal(store_wait(store, takt_store_insert(store, &job, 0, NULL)).rc, 0);
	}
}

static void end_all(struct takt_store *store)
{
	for (uint64_t id = 1; id <= JOBS; id++) {
		struct takt_job job = store_job(id);

		job.state = TAKT_JOB_CANCELLED;
		assert_int_equal(store_wait(store, takt_store_update(store, &job, 0, NULL)).rc, 0);
	}
}

static void ends_are_written_on_a_full_disk_and_new_jobs_are_not(void **state)
{
	struct takt_store_completion done;
	struct takt_store *store;
	struct takt_job job = store_job(JOBS + 1), got;

	store_place_fini(&place);
	store = open_with_reserve();
	assert_int_equal(reserved(), RESERVE);
	insert_all(store);
	fill_disk();
	for (done.rc = 0; done.rc == 0; job = store_job(job.id + 1))
		done = store_wait(store, takt_store_insert(store, &job, 0, NULL));
	assert_int_equal(done.rc, -ENOSPC);
	assert_non_null(strstr(done.message, place.path));
	assert_true(takt_store_is_short(store));
	assert_true(reserved() < RESERVE);
	end_all(store);
	assert_int_equal(store_wait(store, takt_store_insert(store, &job, 0, NULL)).rc, -ENOSPC);
	ask(store, TAKT_STORE_MAKE_WHOLE);
	assert_true(takt_store_is_short(store));
	empty_disk();
	assert_int_equal(store_wait(store, takt_store_insert(store, &job, 0, NULL)).rc, 0);
	assert_false(takt_store_is_short(store));
	assert_int_equal(reserved(), RESERVE);
	takt_store_close(store);
	store = open_with_reserve();
	assert_int_equal(takt_store_get(store, JOBS, &got, NULL), 0);
	assert_int_equal(got.state, TAKT_JOB_CANCELLED);
	takt_job_fini(&got);
	takt_store_close(store);
}

/* Until nothing is left; and made whole as soon as there is room. */
static void others_may_have_a_part_of_it(void **state)
{
	struct takt_store *store;

	store_place_fini(&place);
	store = open_with_reserve();
	insert_all(store);
	fill_disk(); /* where there is room, the writer makes it whole again at its next turn */
	for (long left = RESERVE; left > 0; left -= RESERVE / 4) {
		assert_int_equal(reserved(), left);
		ask(store, TAKT_STORE_GIVE_ROOM);
		assert_true(takt_store_is_short(store));
	}
	assert_int_equal(reserved(), 0);
	ask(store, TAKT_STORE_GIVE_ROOM);
	empty_disk();
	ask(store, TAKT_STORE_MAKE_WHOLE);
	assert_false(takt_store_is_short(store));
	assert_int_equal(reserved(), RESERVE);
	takt_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_loses_nothing_and_passes),
		cmocka_unit_test(a_disk_full_from_the_start_is_named),
		cmocka_unit_test(a_known_database_on_a_full_disk_is_named),
		cmocka_unit_test(ends_are_written_on_a_full_disk_and_new_jobs_are_not),
		cmocka_unit_test(others_may_have_a_part_of_it),
	};

	int rc, failed = 0;

	store_place_init(&place);
	rc = mount_tmpfs();
	if (rc < 0)
		printf("1..0 # SKIP cannot mount a tmpfs: %s\n", strerror(-rc));
	else
		failed = cmocka_run_group_tests_name("store full disk", tests, NULL, NULL);
	(void)umount(place.dir);
	store_place_fini(&place);
	return failed;
}
