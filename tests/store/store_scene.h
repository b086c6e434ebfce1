/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a world of the test's making: fake disk, SQLite on it, and the ledger that judges. */
#ifndef TAKT_TESTS_STORE_SCENE_H
#define TAKT_TESTS_STORE_SCENE_H

#include "fake_sys.h"
#include "store_ledger.h"
#include "sys_vfs.h"

struct store_scene {
	struct fake_sys *world;
	struct sys_vfs *vfs;
	struct ledger ledger;
	struct takt_rng rng;
	bool no_sync;
	bool was_off; /* the power went in the last life */
};

void store_scene_init(struct store_scene *scene, uint64_t seed);
void store_scene_fini(struct store_scene *scene);

/* takt_store_open of "/state/takt.db" in that world; checkpoints are frequent. */
int store_scene_open(struct store_scene *scene, struct takt_store **ret, struct takt_err *err);
bool store_scene_is_off(const struct store_scene *scene);

/* Posts, sometimes waits, until the steps are done or the power is gone; then takes all. */
void store_scene_work(struct store_scene *scene, struct takt_store *store, unsigned steps);

/* The ledger's verdict on what can be read. With the power off nothing can, which is no fault. */
bool store_scene_judge(struct store_scene *scene, struct takt_store *store);

/* Notes what went wrong as the scene's verdict; false. */
bool store_scene_fail(struct store_scene *scene, const char *what, const struct takt_err *err);

#endif
