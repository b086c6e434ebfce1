/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls and allocations that fail. Whatever fails, each ticket is answered, what was reported as
 * failed is not in effect (not even after a kill), what was reported durable is, and the store goes
 * on as soon as the world does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sanitized.h"
#include "seeded.h"

#include "base/mem.h"
#include "store_fixture.h"
#include "store_scene.h"

enum {
	STEPS = 8,
	EVERY = SANITIZED ? 5 : 1, /* call or allocation fails */
};

/* The process is killed: what was written stays, what was only in it goes. */
static void kill_store(struct store_scene *scene, struct takt_store *store)
{
	fake_sys_process_death(scene->world);
	takt_store_close(store);
}

static bool reopens_and_agrees(struct store_scene *scene)
{
	struct takt_store *store = NULL;
	struct takt_err err = {0};
	bool held;

	if (store_scene_open(scene, &store, &err) < 0)
		return store_scene_fail(scene, "reopen", &err);
	held = store_scene_judge(scene, store);
	takt_store_close(store);
	return held;
}

/* A post must now work; so must the next one. */
static bool usable(struct store_scene *scene, struct takt_store *store)
{
	unsigned failed = scene->ledger.nr_failed;

	for (int i = 0; i < 2; i++) {
		if (!ledger_insert(&scene->ledger, store))
			return false;
		ledger_take(&scene->ledger, store, true);
	}
	return scene->ledger.nr_failed == failed;
}

/* Opens with the trouble that was armed, works in it, disarms it, works on, is killed. Returns
 * whether all was well; an open that fails must say something. */
static bool work_in_trouble(struct store_scene *scene, enum fake_sys_op op)
{
	struct takt_store *store = NULL;
	struct takt_err err = {0};
	bool held;

	if (store_scene_open(scene, &store, &err) < 0) {
		if (!err.msg[0] || fake_sys_open_count(scene->world) != 0)
			return store_scene_fail(scene, "open left something", &err);
		fake_sys_fail_nth(scene->world, op, 0, 0, false);
		return reopens_and_agrees(scene);
	}
	store_scene_work(scene, store, STEPS);
	fake_sys_fail_nth(scene->world, op, 0, 0, false);
	held = store_scene_judge(scene, store) && usable(scene, store) &&
	       store_scene_judge(scene, store);
	kill_store(scene, store);
	return held && reopens_and_agrees(scene);
}

static void fail_each(enum fake_sys_op op, int error, bool and_after)
{
	struct store_scene scene;
	unsigned long nth = 1, made;

	do {
		store_scene_init(&scene, nth);
		fake_sys_fail_nth(scene.world, op, nth, error, and_after);
		if (!work_in_trouble(&scene, op))
			fail_msg("call %lu of kind %d: %s", nth, (int)op, scene.ledger.why);
		made = fake_sys_calls(scene.world, op);
		store_scene_fini(&scene);
		nth += EVERY;
	} while (nth <= made);
}

static void any_call_may_fail_once(void **state)
{
	fail_each(FAKE_SYS_ANY, EIO, false);
}

static void writes_may_fail_for_a_while(void **state)
{
	fail_each(FAKE_SYS_PWRITE, EIO, true);
}

static void the_disk_may_be_full_for_a_while(void **state)
{
	fail_each(FAKE_SYS_PWRITE, ENOSPC, true);
}

static void syncs_may_fail_for_a_while(void **state)
{
	fail_each(FAKE_SYS_FDATASYNC, EIO, true);
}

static void descriptors_may_run_out(void **state)
{
	fail_each(FAKE_SYS_OPENAT, EMFILE, true);
}

/* A failed sync leaves a whole transaction in the log. Killed right after the report, the next
 * process must not find it there. */
static void a_failed_commit_does_not_rise_again(void **state)
{
	struct takt_job job = store_job(1), got;
	struct takt_store_completion done;
	struct store_scene scene;
	struct takt_store *store;

	store_scene_init(&scene, 1);
	assert_int_equal(store_scene_open(&scene, &store, NULL), 0);
	fake_sys_fail_nth(scene.world, FAKE_SYS_FDATASYNC, 1, EIO, false);
	done = store_wait(store, takt_store_insert(store, &job, 0, NULL));
	assert_int_equal(done.rc, -EIO);
	assert_non_null(strstr(done.message, "write database '/state/takt.db'"));
	kill_store(&scene, store);
	assert_int_equal(store_scene_open(&scene, &store, NULL), 0);
	assert_int_equal(takt_store_get(store, 1, &got, NULL), -TAKT_E_NOT_FOUND);
	takt_store_close(store);
	store_scene_fini(&scene);
}

static void a_full_disk_is_named_and_passes(void **state)
{
	struct takt_store_completion done;
	struct store_scene scene;
	struct takt_store *store;
	struct takt_job job;
	uint64_t id = 0;

	store_scene_init(&scene, 1);
	assert_int_equal(store_scene_open(&scene, &store, NULL), 0);
	fake_sys_set_space(scene.world, 200000);
	do {
		job = store_job(++id);
		done = store_wait(store, takt_store_insert(store, &job, 0, NULL));
	} while (done.rc == 0);
	assert_int_equal(done.rc, -ENOSPC);
	assert_true(id > 5);
	fake_sys_set_space(scene.world, SIZE_MAX);
	assert_int_equal(store_wait(store, takt_store_insert(store, &job, 0, NULL)).rc, 0);
	takt_store_close(store);
	store_scene_fini(&scene);
}

static void short_reads_and_writes_do_no_harm(void **state)
{
	struct store_scene scene;
	struct takt_store *store;

	store_scene_init(&scene, 5);
	fake_sys_short_io(scene.world, 5);
	assert_int_equal(store_scene_open(&scene, &store, NULL), 0);
	store_scene_work(&scene, store, 40);
	takt_store_close(store);
	assert_true(reopens_and_agrees(&scene));
	assert_int_equal(scene.ledger.nr_failed, 0);
	store_scene_fini(&scene);
}

/* Everything that allocates: open, post, commit, read; then the same without trouble. */
static bool memory_may_fail(struct store_scene *scene, unsigned long nth, unsigned long *ret_made)
{
	unsigned long before = takt_alloc_count();
	struct takt_store *store = NULL;
	struct takt_err err = {0};
	struct takt_job got;
	uint64_t id, seq;
	bool held = true;
	int rc;

	takt_alloc_fail_nth(nth, 0);
	rc = store_scene_open(scene, &store, &err);
	if (rc == 0) {
		store_scene_work(scene, store, 3);
		(void)takt_store_next_ids(store, &id, &seq, &err);
		if (takt_store_get(store, 1, &got, &err) == 0)
			takt_job_fini(&got);
	}
	takt_alloc_fail_nth(0, 0);
	*ret_made = takt_alloc_count() - before;
	if (rc < 0)
		return rc == -ENOMEM && err.msg[0] && reopens_and_agrees(scene);
	held = store_scene_judge(scene, store) && usable(scene, store);
	kill_store(scene, store);
	return held && reopens_and_agrees(scene);
}

/* Until the work is done with fewer allocations than the one to fail. Opening alone makes
 * thousands, so that all of them are tried in the long form only. */
static void any_allocation_may_fail(void **state)
{
	const unsigned long step = getenv("TAKT_TEST_LONG") ? 1 : 13ul * EVERY;
	struct store_scene scene;
	unsigned long made = 1, tried = 0;

	for (unsigned long nth = 1; made >= tried; nth += step) {
		store_scene_init(&scene, nth);
		if (!memory_may_fail(&scene, nth, &made))
			fail_msg("allocation %lu: %s", nth, scene.ledger.why);
		store_scene_fini(&scene);
		tried = nth;
	}
	assert_true(made > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_call_may_fail_once),
		cmocka_unit_test(writes_may_fail_for_a_while),
		cmocka_unit_test(the_disk_may_be_full_for_a_while),
		cmocka_unit_test(syncs_may_fail_for_a_while),
		cmocka_unit_test(descriptors_may_run_out),
		cmocka_unit_test(a_failed_commit_does_not_rise_again),
		cmocka_unit_test(a_full_disk_is_named_and_passes),
		cmocka_unit_test(short_reads_and_writes_do_no_harm),
		cmocka_unit_test(any_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("store faults", tests, NULL, NULL);
}
