/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of an attempt in a fake world: power cut and process killed at every call, every
 * call and every allocation failing. The judge knows what was executed: a job that ran must never
 * look as if it had not.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fake_sys.h"
#include "launch/attempt.h"

enum {
	SEEDS = 25,
	MANY_CALLS = 400,
	EXIT_CODE = 42,
	GARBAGE_LEN = 7,
};

struct scene {
	struct fake_sys *world;
	const struct takt_sys *sys;
	int jobs;
	struct takt_attempt_spec spec;
	bool skip_sync; /* mutation: the launcher forgets takt_attempt_sync */
	bool executed;	/* the job's program ran */
	bool recorded;	/* its end was said to be on disk */
};

static char *argv[] = {(char[]){"train.sh"}, (char[]){"a b"}, NULL};
static char home[] = "/home/me";
static char *env[] = {(char[]){"TAKT_ATTEMPT=7.1.x"}, (char[]){"EMPTY="}, NULL};

static void open_jobs(struct scene *scene)
{
	scene->jobs = scene->sys->openat(scene->sys, AT_FDCWD, "/jobs", O_RDONLY | O_DIRECTORY, 0);
	assert_true(scene->jobs >= 0);
}

static struct scene open_scene(void)
{
	struct scene scene = {.world = fake_sys_new()};

	scene.sys = fake_sys_table(scene.world);
	fake_sys_add_dir(scene.world, "/jobs");
	scene.spec = (struct takt_attempt_spec){.job_id = 7,
						.attempt = 1,
						.id = "7.1.x",
						.secret = "00112233445566778899aabbccddeeff",
						.argv = argv,
						.env = env,
						.cwd = home,
						.grace_ms = 100};
	open_jobs(&scene);
	return scene;
}

static const struct takt_proc_id self = {.pid = 10, .start_ticks = 1, .boot_id = "boot"};

static int run_job(struct scene *scene, int dir, int lock)
{
	struct takt_attempt_status end = {.exit_kind = TAKT_EXIT_EXITED, .exit_code = EXIT_CODE};
	int rc = takt_attempt_unused(scene->sys, dir, NULL);

	if (rc == 0)
		rc = takt_attempt_record_shim(scene->sys, dir, &self, NULL);
	if (rc == 0)
		rc = takt_attempt_record_started(scene->sys, dir, &self, takt_wall_now(scene->sys),
						 NULL);
	if (rc < 0)
		return rc;
	scene->executed = true;
	scene->sys->fsync(scene->sys, lock); /* the job does this and that */
	rc = takt_attempt_record_exit(scene->sys, dir, &end, NULL);
	scene->recorded = rc == 0;
	return rc;
}

/* Engine, launcher and shim in the order in which they act. */
static int act(struct scene *scene)
{
	int dir, lock, rc;

	rc = takt_attempt_create(scene->sys, scene->jobs, &scene->spec, NULL);
	if (rc == 0 && !scene->skip_sync)
		rc = takt_attempt_sync(scene->sys, scene->jobs, NULL);
	if (rc < 0)
		return rc;
	dir = takt_attempt_open(scene->sys, scene->jobs, 7, 1, NULL);
	if (dir < 0)
		return dir;
	lock = takt_attempt_lock(scene->sys, dir, NULL);
	rc = lock < 0 ? lock : run_job(scene, dir, lock);
	if (lock >= 0)
		(void)scene->sys->close(scene->sys, lock);
	(void)scene->sys->close(scene->sys, dir);
	return rc;
}

static struct takt_attempt_status status_now(struct scene *scene)
{
	struct takt_attempt_status status;

	assert_int_equal(takt_attempt_status(scene->sys, scene->jobs, 7, 1, &status, NULL), 0);
	return status;
}

/* Is what recovery would find true? */
static bool truthful(struct scene *scene)
{
	struct takt_attempt_status status = status_now(scene);

	if (status.state == TAKT_ATTEMPT_EXITED &&
	    (!scene->executed || status.exit_kind != TAKT_EXIT_EXITED ||
	     status.exit_code != EXIT_CODE))
		return false;
	if (scene->recorded)
		return status.state == TAKT_ATTEMPT_EXITED;
	if (scene->executed)
		return status.state == TAKT_ATTEMPT_ORPHANED || status.state == TAKT_ATTEMPT_EXITED;
	return status.state != TAKT_ATTEMPT_ALIVE;
}

static bool survives_cut(unsigned lies, bool skip_sync, unsigned long at, uint64_t seed,
			 bool *ret_done)
{
	struct scene scene = open_scene();
	bool held;

	scene.skip_sync = skip_sync;
	fake_sys_lie(scene.world, lies);
	fake_sys_cut_power_at(scene.world, at);
	(void)act(&scene);
	*ret_done = !fake_sys_is_off(scene.world);
	fake_sys_power_loss(scene.world, seed);
	open_jobs(&scene);
	held = truthful(&scene);
	fake_sys_free(scene.world);
	return held;
}

static bool survives_all_cuts(unsigned lies, bool skip_sync)
{
	bool done = false, held = true;

	for (unsigned long at = 1; !done && at < MANY_CALLS; at++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			held = survives_cut(lies, skip_sync, at, seed, &done) && held;
	assert_true(done);
	return held;
}

static void test_power_loss_never_hides_a_run(void **state)
{
	assert_true(survives_all_cuts(FAKE_SYS_HONEST, false));
}

static void test_without_file_sync_the_campaign_fails(void **state)
{
	assert_false(survives_all_cuts(FAKE_SYS_NO_FILE_SYNC, false));
}

static void test_without_directory_sync_the_campaign_fails(void **state)
{
	assert_false(survives_all_cuts(FAKE_SYS_NO_DIR_SYNC, false));
}

static void test_without_the_launchers_sync_the_campaign_fails(void **state)
{
	assert_false(survives_all_cuts(FAKE_SYS_HONEST, true));
}

/* After a kill at any call the state is true, and what never ran can be voided for good. */
static void test_kill_at_every_call_is_decidable(void **state)
{
	struct takt_attempt_status status;
	struct scene scene;
	bool done = false;

	for (unsigned long at = 1; !done; at++) {
		scene = open_scene();
		fake_sys_cut_power_at(scene.world, at);
		(void)act(&scene);
		done = !fake_sys_is_off(scene.world);
		fake_sys_process_death(scene.world);
		open_jobs(&scene);
		assert_true(truthful(&scene));
		status = status_now(&scene);
		assert_int_equal(takt_attempt_void(scene.sys, scene.jobs, 7, 1, NULL),
				 status.started ? -TAKT_E_CONFLICT : 0);
		if (status.state == TAKT_ATTEMPT_NOT_STARTED) {
			assert_int_equal(act(&scene), -TAKT_E_CONFLICT);
			assert_false(scene.executed);
		}
		fake_sys_free(scene.world);
	}
}

/* Any call fails, with any of these: nothing is executed that is not recorded, no descriptor stays
 * open, and an attempt that did not start says so. */
static void fail_every_call(int error)
{
	struct scene scene;
	unsigned long calls;
	bool done = false;
	int rc;

	for (unsigned long at = 1; !done; at++) {
		scene = open_scene();
		calls = fake_sys_calls(scene.world, FAKE_SYS_ANY);
		fake_sys_fail_nth(scene.world, FAKE_SYS_ANY, at, error, false);
		rc = act(&scene);
		done = fake_sys_calls(scene.world, FAKE_SYS_ANY) - calls < at;
		fake_sys_fail_nth(scene.world, FAKE_SYS_ANY, 0, 0, false);
		assert_int_equal(fake_sys_open_count(scene.world), 1);
		assert_true(truthful(&scene));
		if (rc < 0 && !scene.executed && !status_now(&scene).started)
			assert_int_equal(takt_attempt_void(scene.sys, scene.jobs, 7, 1, NULL), 0);
		fake_sys_free(scene.world);
	}
}

static void test_every_call_failing(void **state)
{
	fail_every_call(ENOSPC);
	fail_every_call(EIO);
	fail_every_call(EMFILE);
}

static void test_short_reads_and_writes(void **state)
{
	struct scene scene;

	for (uint64_t seed = 1; seed < SEEDS; seed++) {
		scene = open_scene();
		fake_sys_short_io(scene.world, seed);
		assert_int_equal(act(&scene), 0);
		assert_true(truthful(&scene));
		fake_sys_free(scene.world);
	}
}

static void test_full_disk_starts_nothing(void **state)
{
	struct scene scene = open_scene();

	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	fake_sys_set_space(scene.world, 0);
	assert_int_equal(act(&scene), -ENOSPC);
	assert_false(scene.executed);
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_NOT_STARTED);
	fake_sys_set_space(scene.world, 1u << 20);
	assert_int_equal(act(&scene), 0); /* the same attempt may start after all */
	fake_sys_free(scene.world);
}

static void test_every_allocation_failing(void **state)
{
	struct takt_attempt_status status;
	struct scene scene;
	int rc = -ENOMEM;

	for (unsigned long nth = 1; rc < 0; nth++) {
		scene = open_scene();
		takt_alloc_fail_nth(nth, 0);
		rc = act(&scene);
		if (rc == 0)
			rc = takt_attempt_status(scene.sys, scene.jobs, 7, 1, &status, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0)
			assert_int_equal(rc, -ENOMEM);
		assert_true(truthful(&scene));
		assert_int_equal(fake_sys_open_count(scene.world), 1);
		fake_sys_free(scene.world);
	}
}

static void put_garbage(struct scene *scene, const char *path)
{
	fake_sys_add_file(scene->world, path, "garbage", GARBAGE_LEN);
}

static void test_damage_never_leads_to_a_second_run(void **state)
{
	struct scene scene = open_scene();

	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	put_garbage(&scene, "/jobs/7.1/started");
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_ORPHANED);
	assert_int_equal(status_now(&scene).job.pid, 0);
	put_garbage(&scene, "/jobs/7.1/exit");
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_ORPHANED);
	put_garbage(&scene, "/jobs/7.1/shim");
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_ORPHANED);
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL),
			 -TAKT_E_CONFLICT);
	assert_int_equal(takt_attempt_void(scene.sys, scene.jobs, 7, 1, NULL), -TAKT_E_CONFLICT);
	fake_sys_free(scene.world);
}

static void test_damaged_spec_counts_as_absent(void **state)
{
	struct scene scene = open_scene();

	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	put_garbage(&scene, "/jobs/7.1/spec");
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_ABSENT);
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_NOT_STARTED);
	fake_sys_free(scene.world);
}

/* Whoever asks believes a process by the record alone: without a sound one none is the shim. The
 * directory is of user 0, as all in the fake world. */
static void test_only_what_is_on_record_is_the_shim(void **state)
{
	struct scene scene = open_scene();
	struct takt_proc_id shim = {0};
	uid_t uid = 1;

	assert_true(takt_attempt_shim(scene.sys, scene.jobs, 7, 1, &shim, &uid) < 0);
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	assert_true(takt_attempt_shim(scene.sys, scene.jobs, 7, 1, &shim, &uid) < 0);
	assert_int_equal(shim.pid, 0);
	assert_int_equal(uid, 1);
	assert_int_equal(act(&scene), 0);
	assert_int_equal(takt_attempt_shim(scene.sys, scene.jobs, 7, 1, &shim, &uid), 0);
	assert_int_equal(shim.pid, self.pid);
	assert_int_equal(shim.start_ticks, self.start_ticks);
	assert_string_equal(shim.boot_id, self.boot_id);
	assert_int_equal(uid, 0);
	assert_true(takt_attempt_shim(scene.sys, scene.jobs, 7, 2, &shim, &uid) < 0);
	put_garbage(&scene, "/jobs/7.1/shim");
	assert_true(takt_attempt_shim(scene.sys, scene.jobs, 7, 1, &shim, &uid) < 0);
	fake_sys_free(scene.world);
}

static char *text_of(const struct scene *scene, const char *path, size_t *ret_len)
{
	char *text = NULL;

	assert_int_equal(takt_file_read(scene->sys, AT_FDCWD, path, 4096, &text, ret_len, NULL), 0);
	return text;
}

/* Another world, in which an attempt has run to its end; its record, for takt_free. */
static char *end_of(uint64_t job_id, uint32_t attempt, const char *secret, size_t *ret_len)
{
	char id[32], entry[48], path[48], *text;
	char *other_env[] = {entry, NULL};
	struct scene scene = open_scene();
	int dir, lock;

	snprintf(id, sizeof(id), "%d.%d.x", (int)job_id, (int)attempt);
	snprintf(entry, sizeof(entry), "TAKT_ATTEMPT=%s", id);
	snprintf(path, sizeof(path), "/jobs/%d.%d/exit", (int)job_id, (int)attempt);
	scene.spec.job_id = job_id;
	scene.spec.attempt = attempt;
	scene.spec.env = other_env;
	snprintf(scene.spec.id, sizeof(scene.spec.id), "%s", id);
	snprintf(scene.spec.secret, sizeof(scene.spec.secret), "%s", secret);
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	dir = takt_attempt_open(scene.sys, scene.jobs, job_id, attempt, NULL);
	lock = takt_attempt_lock(scene.sys, dir, NULL);
	assert_int_equal(run_job(&scene, dir, lock), 0);
	text = text_of(&scene, path, ret_len);
	fake_sys_free(scene.world);
	return text;
}

/* It has started, and this is put there as its end. */
static struct takt_attempt_status status_with_end(const char *text, size_t len)
{
	struct scene scene = open_scene();
	struct takt_attempt_status status;
	int dir;

	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	dir = takt_attempt_open(scene.sys, scene.jobs, 7, 1, NULL);
	assert_int_equal(
		takt_attempt_record_started(scene.sys, dir, &self, takt_wall_now(scene.sys), NULL),
		0);
	fake_sys_add_file(scene.world, "/jobs/7.1/exit", text, len);
	status = status_now(&scene);
	assert_true(status.started);
	assert_int_equal(status.job.pid, self.pid);
	fake_sys_free(scene.world);
	return status;
}

/* Of another job, of an earlier attempt, of the same number in an earlier database, of nobody. */
static void test_an_end_of_another_attempt_is_none(void **state)
{
	static const struct {
		uint64_t job_id;
		uint32_t attempt;
		const char *secret;
		bool counts;
	} ends[] = {
		{7, 1, "00112233445566778899aabbccddeeff", true},
		{8, 1, "00112233445566778899aabbccddeeff", false},
		{7, 2, "00112233445566778899aabbccddeeff", false},
		{7, 1, "ff112233445566778899aabbccddeeff", false},
		{7, 1, "00112233445566778899aabbccddee", false},
		{7, 1, "", false},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct takt_attempt_status status;
		size_t len;
		char *text = end_of(ends[i].job_id, ends[i].attempt, ends[i].secret, &len);

		status = status_with_end(text, len);
		assert_int_equal(status.state,
				 ends[i].counts ? TAKT_ATTEMPT_EXITED : TAKT_ATTEMPT_ORPHANED);
		assert_int_equal(status.foreign_exit, !ends[i].counts);
		takt_free(text);
	}
}

/* An attempt of an older version: its spec has no secret, its records are nobody's. */
static void test_records_of_an_older_version_count_for_its_attempts(void **state)
{
	struct scene scene = open_scene();
	char *text;
	size_t len;

	scene.spec.secret[0] = '\0';
	assert_int_equal(act(&scene), 0);
	text = text_of(&scene, "/jobs/7.1/exit", &len);
	assert_null(strstr(text, " of="));
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_EXITED);
	takt_free(text);
	fake_sys_free(scene.world);
}

/* Its spec is gone then; the name is still looked at. */
static void test_an_end_counts_when_the_attempt_is_over(void **state)
{
	struct scene scene = open_scene();
	char *text;
	size_t len;

	assert_int_equal(act(&scene), 0);
	takt_attempt_shed(scene.sys, scene.jobs, 7, 1);
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_EXITED);
	text = end_of(8, 1, scene.spec.secret, &len);
	fake_sys_add_file(scene.world, "/jobs/7.1/exit", text, len);
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_ORPHANED);
	takt_free(text);
	fake_sys_free(scene.world);
}

static void test_bad_specs_are_refused_by_name(void **state)
{
	struct scene scene = open_scene();
	char *no_id[] = {(char[]){"TAKT_ATTEMPT=other"}, NULL};
	char *no_argv[] = {NULL};
	struct takt_err err;

	scene.spec.env = no_id;
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "TAKT_ATTEMPT"));
	scene.spec.env = env;
	scene.spec.argv = no_argv;
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "argv"));
	scene.spec.argv = argv;
	scene.spec.cwd = (char[]){"here"};
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "cwd"));
	assert_false(fake_sys_exists(scene.world, "/jobs/7.1"));
	fake_sys_free(scene.world);
}

/* Whoever looks holds the lock for a moment; that must not look like a shim to others who look. */
static void test_lookers_do_not_see_each_other(void **state)
{
	struct scene scene = open_scene();
	int dir, shared;

	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	dir = takt_attempt_open(scene.sys, scene.jobs, 7, 1, NULL);
	shared = scene.sys->openat(scene.sys, dir, "lock", O_RDONLY, 0);
	assert_int_equal(scene.sys->flock(scene.sys, shared, 1 /* LOCK_SH */), 0);
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_NOT_STARTED);
	assert_int_equal(takt_attempt_lock(scene.sys, dir, NULL), -TAKT_E_BUSY);
	assert_int_equal(takt_attempt_void(scene.sys, scene.jobs, 7, 1, NULL), -TAKT_E_CONFLICT);
	fake_sys_free(scene.world);
}

/* As if the job had done it. */
static void leave_file(const struct scene *scene, int dir, const char *name)
{
	int file = scene->sys->openat(scene->sys, dir, name, O_WRONLY | O_CREAT, 0600);

	assert_true(file >= 0);
	assert_int_equal(scene->sys->close(scene->sys, file), 0);
}

/* Gone for good with all that the job said, but never while somebody has its lock, and not what is
 * not takt's. */
static void test_removal(void **state)
{
	struct takt_output_cut cut = {.limit = 1 << 20, .from = 1 << 18, .to = 1 << 19};
	struct scene scene = open_scene();
	int dir, lock;

	open_jobs(&scene);
	assert_int_equal(takt_attempt_remove(scene.sys, scene.jobs, 7, 1, NULL), 0);
	assert_int_equal(takt_attempt_create(scene.sys, scene.jobs, &scene.spec, NULL), 0);
	dir = takt_attempt_open(scene.sys, scene.jobs, 7, 1, NULL);
	lock = takt_attempt_lock(scene.sys, dir, NULL);
	assert_true(lock >= 0);
	assert_int_equal(takt_attempt_remove(scene.sys, scene.jobs, 7, 1, NULL), -TAKT_E_CONFLICT);
	assert_int_equal(scene.sys->close(scene.sys, lock), 0);
	assert_int_equal(status_now(&scene).state, TAKT_ATTEMPT_NOT_STARTED);
	leave_file(&scene, dir, "progress");
	assert_int_equal(takt_attempt_record_cut(scene.sys, dir, &cut, NULL), 0);
	leave_file(&scene, dir, "mine");
	assert_int_equal(takt_attempt_remove(scene.sys, scene.jobs, 7, 1, NULL), -ENOTEMPTY);
	assert_int_equal(scene.sys->unlinkat(scene.sys, dir, "mine", 0), 0);
	assert_int_equal(takt_attempt_remove(scene.sys, scene.jobs, 7, 1, NULL), 0);
	assert_int_equal(takt_attempt_open(scene.sys, scene.jobs, 7, 1, NULL), -ENOENT);
	fake_sys_free(scene.world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_loss_never_hides_a_run),
		cmocka_unit_test(test_without_file_sync_the_campaign_fails),
		cmocka_unit_test(test_without_directory_sync_the_campaign_fails),
		cmocka_unit_test(test_without_the_launchers_sync_the_campaign_fails),
		cmocka_unit_test(test_kill_at_every_call_is_decidable),
		cmocka_unit_test(test_every_call_failing),
		cmocka_unit_test(test_short_reads_and_writes),
		cmocka_unit_test(test_full_disk_starts_nothing),
		cmocka_unit_test(test_every_allocation_failing),
		cmocka_unit_test(test_damage_never_leads_to_a_second_run),
		cmocka_unit_test(test_damaged_spec_counts_as_absent),
		cmocka_unit_test(test_only_what_is_on_record_is_the_shim),
		cmocka_unit_test(test_an_end_of_another_attempt_is_none),
		cmocka_unit_test(test_records_of_an_older_version_count_for_its_attempts),
		cmocka_unit_test(test_an_end_counts_when_the_attempt_is_over),
		cmocka_unit_test(test_bad_specs_are_refused_by_name),
		cmocka_unit_test(test_lookers_do_not_see_each_other),
		cmocka_unit_test(test_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
