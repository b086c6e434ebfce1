/* SPDX-License-Identifier: Apache-2.0 */
/* The test's side of the fake world: setting the scene, pulling the strings, looking behind it. */
#include "fake_sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_world.h"

static void start_clocks(struct fake_sys *world)
{
	world->mono_ns = 1234567891;
	world->boot_ns = 1345678912;
}

struct fake_sys *fake_sys_new(void)
{
	struct fake_sys *world = fake_disk_grow(NULL, 1, sizeof(*world));

	memset(world, 0, sizeof(*world));
	world->table = fake_world_table;
	pthread_mutex_init(&world->lock, NULL);
	fake_disk_init(&world->disk);
	start_clocks(world);
	world->wall_ns = 1700000000123456789;
	return world;
}

void fake_sys_free(struct fake_sys *world)
{
	if (!world)
		return;
	fake_disk_fini(&world->disk);
	free(world->text.at);
	pthread_mutex_destroy(&world->lock);
	free(world);
}

const struct takt_sys *fake_sys_table(struct fake_sys *world)
{
	return &world->table;
}

unsigned long fake_sys_calls(struct fake_sys *world, enum fake_sys_op op)
{
	unsigned long calls;

	fake_world_lock(&world->table);
	calls = world->calls[op];
	fake_world_leave(world, 0);
	return calls;
}

void fake_sys_fail_nth(struct fake_sys *world, enum fake_sys_op op, unsigned long nth, int error,
		       bool and_after)
{
	fake_world_lock(&world->table);
	world->failures[op] = (struct fake_failure){
		.at = nth ? world->calls[op] + nth : 0,
		.error = error,
		.and_after = and_after,
	};
	fake_world_leave(world, 0);
}

void fake_sys_cut_power_at(struct fake_sys *world, unsigned long nth)
{
	fake_world_lock(&world->table);
	world->off_at = nth ? world->calls[FAKE_SYS_ANY] + nth : 0;
	fake_world_leave(world, 0);
}

bool fake_sys_is_off(struct fake_sys *world)
{
	bool off;

	fake_world_lock(&world->table);
	off = fake_world_is_off(world);
	fake_world_leave(world, 0);
	return off;
}

static void end_process(struct fake_sys *world)
{
	memset(world->fds, 0, sizeof(world->fds));
	memset(world->failures, 0, sizeof(world->failures));
	world->off_at = 0;
	world->short_io = false;
}

void fake_sys_power_loss(struct fake_sys *world, uint64_t seed)
{
	fake_world_lock(&world->table);
	end_process(world);
	fake_disk_power_loss(&world->disk, seed);
	start_clocks(world);
	fake_world_leave(world, 0);
}

void fake_sys_process_death(struct fake_sys *world)
{
	fake_world_lock(&world->table);
	end_process(world);
	fake_world_leave(world, 0);
}

void fake_sys_lie(struct fake_sys *world, unsigned lies)
{
	fake_world_lock(&world->table);
	world->lies = lies;
	fake_world_leave(world, 0);
}

void fake_sys_set_space(struct fake_sys *world, size_t bytes)
{
	fake_world_lock(&world->table);
	world->disk.space = bytes;
	fake_world_leave(world, 0);
}

void fake_sys_short_io(struct fake_sys *world, uint64_t seed)
{
	fake_world_lock(&world->table);
	world->short_io = seed != 0;
	takt_rng_init(&world->short_rng, seed);
	fake_world_leave(world, 0);
}

void fake_sys_advance(struct fake_sys *world, uint64_t ns)
{
	fake_world_lock(&world->table);
	world->mono_ns += ns;
	world->boot_ns += ns;
	world->wall_ns += (int64_t)ns;
	fake_world_leave(world, 0);
}

void fake_sys_suspend(struct fake_sys *world, uint64_t ns)
{
	fake_world_lock(&world->table);
	world->boot_ns += ns;
	world->wall_ns += (int64_t)ns;
	fake_world_leave(world, 0);
}

void fake_sys_jump_wall(struct fake_sys *world, int64_t ns)
{
	fake_world_lock(&world->table);
	world->wall_ns += ns;
	fake_world_leave(world, 0);
}

static int find(struct fake_sys *world, const char *path, struct fake_inode **ret)
{
	return fake_disk_find(&world->disk, fake_disk_root(&world->disk), path, ret);
}

/* A scene that cannot be set is a mistake in the test. */
static struct fake_inode *must_create(struct fake_sys *world, const char *path, bool is_dir)
{
	char name[NAME_MAX + 1];
	struct fake_inode *dir, *inode;

	if (fake_disk_find_parent(&world->disk, fake_disk_root(&world->disk), path, &dir, name) < 0)
		abort();
	inode = fake_disk_create(&world->disk, dir, name, is_dir, is_dir ? 0755 : 0644);
	fake_disk_sync(dir);
	return inode;
}

void fake_sys_add_dir(struct fake_sys *world, const char *path)
{
	fake_world_lock(&world->table);
	must_create(world, path, true);
	fake_world_leave(world, 0);
}

void fake_sys_add_file(struct fake_sys *world, const char *path, const void *bytes, size_t n)
{
	struct fake_inode *file;

	fake_world_lock(&world->table);
	file = must_create(world, path, false);
	if (n && fake_disk_write(&world->disk, file, bytes, n, 0) != (ssize_t)n)
		abort();
	fake_disk_sync(file);
	fake_world_leave(world, 0);
}

void fake_sys_sync_all(struct fake_sys *world)
{
	fake_world_lock(&world->table);
	for (size_t i = 0; i < world->disk.nr_inodes; i++)
		fake_disk_sync(world->disk.inodes[i]);
	fake_world_leave(world, 0);
}

bool fake_sys_exists(struct fake_sys *world, const char *path)
{
	struct fake_inode *inode;
	int rc;

	fake_world_lock(&world->table);
	rc = find(world, path, &inode);
	fake_world_leave(world, 0);
	return rc == 0;
}

const char *fake_sys_read_file(struct fake_sys *world, const char *path, size_t *ret_len)
{
	struct fake_inode *inode;
	const char *text = NULL;

	fake_world_lock(&world->table);
	if (find(world, path, &inode) == 0 && !inode->is_dir) {
		text = inode->seen.at ? (const char *)inode->seen.at : "";
		if (ret_len)
			*ret_len = inode->seen.len;
	}
	fake_world_leave(world, 0);
	return text;
}

static void list_names(struct fake_bytes *text, const struct fake_names *names)
{
	size_t need = 1, len = 0;

	for (size_t i = 0; i < names->len; i++)
		need += strlen(names->at[i].name) + 1;
	text->at = fake_disk_grow(text->at, need, 1);
	text->at[0] = '\0';
	for (size_t i = 0; i < names->len; i++)
		len += (size_t)snprintf((char *)text->at + len, need - len, "%s%s", i ? " " : "",
					names->at[i].name);
}

const char *fake_sys_list(struct fake_sys *world, const char *path)
{
	struct fake_inode *dir;
	const char *text = NULL;

	fake_world_lock(&world->table);
	if (find(world, path, &dir) == 0 && dir->is_dir) {
		list_names(&world->text, &dir->names_seen);
		text = (const char *)world->text.at;
	}
	fake_world_leave(world, 0);
	return text;
}

unsigned fake_sys_open_count(struct fake_sys *world)
{
	unsigned open = 0;

	fake_world_lock(&world->table);
	for (int i = 0; i < FD_LIMIT; i++)
		open += world->fds[i].inode != NULL;
	fake_world_leave(world, 0);
	return open;
}
