/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power-loss campaign: a random workload with several posts outstanding, power cut at a chosen
 * call of the database's file system, everything unsynced lost, torn or reordered by seed, and the
 * survivors judged by a ledger that is not the store's. And the proof that the campaign can fail:
 * with syncs turned off, or the directory's left out, it must find a loss.
 *
 * Which changes share a transaction depends on the writer thread's timing, so a seed does not
 * repeat a run exactly; each run is judged on its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sanitized.h"
#include "seeded.h"

#include "store_scene.h"

enum {
	RANDOM_SEEDS = SANITIZED ? 50 : 250,
	EVERY = SANITIZED ? 5 : 1, /* call is cut at */
	LIVES = 3,
	STEPS = 40,
	CALLS_A_LIFE = 500, /* about what STEPS take */
};

/* One life: open, judge, work, power cut at call `cut` (0 = none), close, power comes back. */
static bool live_once(struct store_scene *scene, unsigned steps, unsigned long cut, uint64_t seed)
{
	struct takt_store *store = NULL;
	struct takt_err err = {0};
	bool held = true;

	fake_sys_cut_power_at(scene->world, cut);
	if (store_scene_open(scene, &store, &err) == 0) {
		held = store_scene_judge(scene, store);
		store_scene_work(scene, store, steps);
		takt_store_close(store);
	} else if (!store_scene_is_off(scene)) {
		held = store_scene_fail(scene, "open", &err);
	}
	scene->was_off = store_scene_is_off(scene);
	if (sys_vfs_open_count(scene->vfs) != 0)
		held = store_scene_fail(scene, "files left open", &err);
	fake_sys_power_loss(scene->world, seed);
	return held && !scene->ledger.why[0];
}

/* After the last cut: opens, judges, works on, closes in peace, opens and judges again. */
static bool survives(struct store_scene *scene)
{
	return live_once(scene, 5, 0, 1) && live_once(scene, 0, 0, 1);
}

static bool random_run(uint64_t seed, unsigned lies, bool no_sync, char why[512])
{
	struct store_scene scene;
	bool held = true;

	store_scene_init(&scene, seed);
	scene.no_sync = no_sync;
	fake_sys_lie(scene.world, lies);
	for (unsigned i = 0; i < LIVES && held; i++)
		held = live_once(&scene, STEPS, takt_rng_range(&scene.rng, 1, CALLS_A_LIFE),
				 takt_rng_next(&scene.rng));
	held = held && survives(&scene);
	snprintf(why, 512, "%s", scene.ledger.why);
	store_scene_fini(&scene);
	return held;
}

static void nothing_durable_is_lost_at_random_cuts(void **state)
{
	char why[512];

	for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++)
		if (!random_run(seed, FAKE_SYS_HONEST, false, why))
			fail_msg("seed %llu: %s", (unsigned long long)seed, why);
}

/* Every call of a short life, the database's first or its second, is once the first that finds the
 * machine off. */
static void lose_at_any_cut(bool second_life)
{
	struct store_scene scene;
	bool was_off = true;

	for (unsigned long cut = 1; was_off; cut += EVERY) {
		store_scene_init(&scene, cut);
		if ((second_life && !live_once(&scene, 6, 0, cut)) ||
		    !live_once(&scene, 6, cut, cut))
			fail_msg("cut %lu: %s", cut, scene.ledger.why);
		was_off = scene.was_off;
		if (!survives(&scene))
			fail_msg("cut %lu: %s", cut, scene.ledger.why);
		store_scene_fini(&scene);
	}
}

static void nothing_durable_is_lost_while_it_is_created(void **state)
{
	lose_at_any_cut(false);
}

static void nothing_durable_is_lost_at_any_cut(void **state)
{
	lose_at_any_cut(true);
}

static bool loses(unsigned lies, bool no_sync)
{
	char why[512];

	for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++)
		if (!random_run(seed, lies, no_sync, why))
			return true;
	return false;
}

static void losses_show_when_sqlite_does_not_sync(void **state)
{
	assert_true(loses(FAKE_SYS_HONEST, true));
}

static void losses_show_when_the_disk_lies(void **state)
{
	assert_true(loses(FAKE_SYS_NO_FILE_SYNC, false));
}

static void losses_show_without_directory_syncs(void **state)
{
	assert_true(loses(FAKE_SYS_NO_DIR_SYNC, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_durable_is_lost_at_random_cuts),
		cmocka_unit_test(nothing_durable_is_lost_while_it_is_created),
		cmocka_unit_test(nothing_durable_is_lost_at_any_cut),
		cmocka_unit_test(losses_show_when_sqlite_does_not_sync),
		cmocka_unit_test(losses_show_when_the_disk_lies),
		cmocka_unit_test(losses_show_without_directory_syncs),
	};

	return cmocka_run_group_tests_name("store power loss", tests, NULL, NULL);
}
