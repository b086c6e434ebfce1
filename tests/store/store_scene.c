/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "store_scene.h"

#include <stdio.h>
#include <stdlib.h>

void store_scene_init(struct store_scene *scene, uint64_t seed)
{
	*scene = (struct store_scene){.world = fake_sys_new()};
	fake_sys_add_dir(scene->world, "/state");
	if (takt_store_sqlite_init(NULL) < 0)
		abort();
	scene->vfs = sys_vfs_new("loss", fake_sys_table(scene->world));
	ledger_init(&scene->ledger, scene->world);
	takt_rng_init(&scene->rng, seed);
}

void store_scene_fini(struct store_scene *scene)
{
	sys_vfs_free(scene->vfs);
	fake_sys_free(scene->world);
	ledger_fini(&scene->ledger);
}

int store_scene_open(struct store_scene *scene, struct takt_store **ret, struct takt_err *err)
{
	struct takt_store_config config = {
		.path = "/state/takt.db",
		.sys = fake_sys_table(scene->world),
		.checkpoint_frames = 12,
		.vfs = "loss",
		.allow_network_fs = true,
		.unsafe_no_sync = scene->no_sync,
	};

	return takt_store_open(&config, ret, err);
}

bool store_scene_is_off(const struct store_scene *scene)
{
	return fake_sys_is_off(scene->world);
}

void store_scene_work(struct store_scene *scene, struct takt_store *store, unsigned steps)
{
	for (unsigned i = 0; i < steps && !store_scene_is_off(scene); i++) {
		ledger_post(&scene->ledger, store, &scene->rng);
		ledger_take(&scene->ledger, store, takt_rng_below(&scene->rng, 4) == 0);
	}
	ledger_take(&scene->ledger, store, true);
}

bool store_scene_fail(struct store_scene *scene, const char *what, const struct takt_err *err)
{
	snprintf(scene->ledger.why, sizeof(scene->ledger.why), "%s: %s", what, err->msg);
	return false;
}

bool store_scene_judge(struct store_scene *scene, struct takt_store *store)
{
	struct takt_err err = {0};
	int rc = ledger_check(&scene->ledger, store, &err);

	if (rc < 0 && !store_scene_is_off(scene))
		return store_scene_fail(scene, "read", &err);
	return rc != 0;
}
