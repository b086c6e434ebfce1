/* SPDX-License-Identifier: Apache-2.0 */
/* See the header, and fake_sys.h for the rules that power loss follows. */
#include "fake_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "base/str.h"

enum {
	SECTOR = 512
};

void *fake_disk_grow(void *p, size_t n, size_t size)
{
	void *grown = realloc(p, n * size + 1);

	if (!grown)
		abort();
	return grown;
}

/* Cuts or fills with zeros. */
static void set_length(struct fake_bytes *bytes, size_t len)
{
	bytes->at = fake_disk_grow(bytes->at, len, 1);
	if (len > bytes->len)
		memset(bytes->at + bytes->len, 0, len - bytes->len);
	bytes->at[len] = '\0';
	bytes->len = len;
}

static void put_bytes(struct fake_bytes *bytes, const void *from, size_t n, size_t at)
{
	if (n == 0)
		return;
	if (at + n > bytes->len)
		set_length(bytes, at + n);
	memcpy(bytes->at + at, from, n);
}

static struct fake_inode *new_inode(struct fake_disk *disk, bool is_dir, mode_t mode)
{
	struct fake_inode *inode = fake_disk_grow(NULL, 1, sizeof(*inode));

	*inode = (struct fake_inode){
		.is_dir = is_dir,
		.mode = (is_dir ? S_IFDIR : S_IFREG) | (mode & 07777),
		.number = disk->nr_inodes + 2,
		.parent = inode,
	};
	disk->inodes =
		fake_disk_grow(disk->inodes, disk->nr_inodes + 1, sizeof(struct fake_inode *));
	disk->inodes[disk->nr_inodes++] = inode;
	return inode;
}

void fake_disk_init(struct fake_disk *disk)
{
	*disk = (struct fake_disk){.space = SIZE_MAX};
	new_inode(disk, true, 0755);
}

static void drop_changes(struct fake_inode *inode)
{
	for (size_t i = 0; i < inode->nr_changes; i++)
		free(inode->changes[i].bytes.at);
	inode->nr_changes = 0;
	inode->nr_name_changes = 0;
}

void fake_disk_fini(struct fake_disk *disk)
{
	for (size_t i = 0; i < disk->nr_inodes; i++) {
		struct fake_inode *inode = disk->inodes[i];

		drop_changes(inode);
		free(inode->changes);
		free(inode->name_changes);
		free(inode->seen.at);
		free(inode->stored.at);
		free(inode->names_seen.at);
		free(inode->names_stored.at);
		free(inode);
	}
	free(disk->inodes);
}

struct fake_inode *fake_disk_root(const struct fake_disk *disk)
{
	return disk->inodes[0];
}

static size_t place_of(const struct fake_names *names, const char *name)
{
	size_t i = 0;

	while (i < names->len && strcmp(names->at[i].name, name) != 0)
		i++;
	return i;
}

struct fake_inode *fake_disk_child(const struct fake_inode *dir, const char *name)
{
	size_t i = place_of(&dir->names_seen, name);

	return i < dir->names_seen.len ? dir->names_seen.at[i].inode : NULL;
}

/* Cuts the next component off *path: its length, 0 at the end, -ENAMETOOLONG. */
static int cut_component(const char **path, char name[NAME_MAX + 1])
{
	const char *start = *path + strspn(*path, "/");
	size_t len = strcspn(start, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, start, len);
	name[len] = '\0';
	*path = start + len;
	return (int)len;
}

static int step(struct fake_inode **inode, const char *name)
{
	struct fake_inode *next;

	if (!(*inode)->is_dir)
		return -ENOTDIR;
	if (strcmp(name, ".") == 0)
		return 0;
	next = strcmp(name, "..") == 0 ? (*inode)->parent : fake_disk_child(*inode, name);
	if (!next)
		return -ENOENT;
	*inode = next;
	return 0;
}

int fake_disk_find(struct fake_disk *disk, struct fake_inode *from, const char *path,
		   struct fake_inode **ret)
{
	struct fake_inode *at = path[0] == '/' ? fake_disk_root(disk) : from;
	char name[NAME_MAX + 1];
	int rc = path[0] ? 0 : -ENOENT, len;

	while (rc == 0 && (len = cut_component(&path, name)) != 0)
		rc = len < 0 ? len : step(&at, name);
	if (rc == 0)
		*ret = at;
	return rc;
}

int fake_disk_find_parent(struct fake_disk *disk, struct fake_inode *from, const char *path,
			  struct fake_inode **ret_dir, char ret_name[NAME_MAX + 1])
{
	struct fake_inode *at = path[0] == '/' ? fake_disk_root(disk) : from;
	char name[NAME_MAX + 1] = "", next[NAME_MAX + 1];
	int rc = 0, len;

	len = cut_component(&path, name);
	if (len <= 0)
		return len < 0 ? len : -EINVAL;
	while (rc == 0 && (len = cut_component(&path, next)) != 0) {
		rc = len < 0 ? len : step(&at, name);
		memcpy(name, next, sizeof(name));
	}
	if (rc < 0)
		return rc;
	if (!at->is_dir)
		return -ENOTDIR;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	*ret_dir = at;
	memcpy(ret_name, name, sizeof(name));
	return 0;
}

static void forget_name(struct fake_names *names, const char *name)
{
	size_t i = place_of(names, name);

	if (i == names->len)
		return;
	names->len--;
	memmove(&names->at[i], &names->at[i + 1], (names->len - i) * sizeof(names->at[0]));
}

static void apply_name_change(struct fake_names *names, const struct fake_name_change *change)
{
	forget_name(names, change->gone);
	if (!change->came.name[0])
		return;
	forget_name(names, change->came.name);
	names->at = fake_disk_grow(names->at, names->len + 1, sizeof(names->at[0]));
	names->at[names->len++] = change->came;
}

static void change_names(struct fake_inode *dir, const char *gone, const char *came,
			 struct fake_inode *inode)
{
	struct fake_name_change change = {.came.inode = inode};

	takt_strcpy(change.gone, sizeof(change.gone), gone);
	takt_strcpy(change.came.name, sizeof(change.came.name), came);
	apply_name_change(&dir->names_seen, &change);
	dir->name_changes =
		fake_disk_grow(dir->name_changes, dir->nr_name_changes + 1, sizeof(change));
	dir->name_changes[dir->nr_name_changes++] = change;
}

struct fake_inode *fake_disk_create(struct fake_disk *disk, struct fake_inode *dir,
				    const char *name, bool is_dir, mode_t mode)
{
	struct fake_inode *inode = new_inode(disk, is_dir, mode);

	inode->parent = dir;
	change_names(dir, "", name, inode);
	return inode;
}

void fake_disk_remove(struct fake_inode *dir, const char *name)
{
	change_names(dir, name, "", NULL);
}

void fake_disk_rename(struct fake_inode *dir, const char *from, const char *to)
{
	if (strcmp(from, to) != 0)
		change_names(dir, from, to, fake_disk_child(dir, from));
}

static void note_change(struct fake_inode *file, size_t at, const void *bytes, size_t n)
{
	struct fake_change change = {.at = at, .size = file->seen.len};

	put_bytes(&change.bytes, bytes, n, 0);
	file->changes = fake_disk_grow(file->changes, file->nr_changes + 1, sizeof(change));
	file->changes[file->nr_changes++] = change;
}

static bool has_name(const struct fake_disk *disk, const struct fake_inode *file)
{
	for (size_t i = 0; i < disk->nr_inodes; i++)
		for (size_t k = 0; k < disk->inodes[i]->names_seen.len; k++)
			if (disk->inodes[i]->names_seen.at[k].inode == file)
				return true;
	return false;
}

/* What can still be added. A file without a name takes no space, even while it is open. */
static size_t space_left(const struct fake_disk *disk)
{
	size_t taken = 0;

	if (disk->space == SIZE_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i < disk->nr_inodes; i++)
		if (disk->inodes[i]->seen.len && has_name(disk, disk->inodes[i]))
			taken += disk->inodes[i]->seen.len;
	return taken < disk->space ? disk->space - taken : 0;
}

ssize_t fake_disk_write(struct fake_disk *disk, struct fake_inode *file, const void *bytes,
			size_t n, size_t at)
{
	size_t len = file->seen.len;
	size_t grows = at + n > len ? at + n - len : 0;
	size_t left = grows ? space_left(disk) : 0;

	if (grows > left) {
		if (at >= len + left)
			return -ENOSPC;
		n = len + left - at;
	}
	put_bytes(&file->seen, bytes, n, at);
	note_change(file, at, bytes, n);
	return (ssize_t)n;
}

/* Shrinking writes zeros over what goes away: grown again later, it may read as either. */
int fake_disk_resize(struct fake_disk *disk, struct fake_inode *file, size_t size)
{
	size_t len = file->seen.len, lost = len > size ? len - size : 0;
	unsigned char *zeros;

	if (size > len && size - len > space_left(disk))
		return -ENOSPC;
	zeros = fake_disk_grow(NULL, lost, 1);
	memset(zeros, 0, lost);
	set_length(&file->seen, size);
	note_change(file, size, zeros, lost);
	free(zeros);
	return 0;
}

void fake_disk_sync(struct fake_inode *inode)
{
	for (size_t i = 0; i < inode->nr_changes; i++) {
		struct fake_change *change = &inode->changes[i];

		put_bytes(&inode->stored, change->bytes.at, change->bytes.len, change->at);
		set_length(&inode->stored, change->size);
	}
	for (size_t i = 0; i < inode->nr_name_changes; i++)
		apply_name_change(&inode->names_stored, &inode->name_changes[i]);
	drop_changes(inode);
}

void fake_disk_lose_sync(struct fake_inode *inode)
{
	if (!inode->is_dir)
		drop_changes(inode);
}

/* Each sector arrives with the chance of `permille`. */
static void store_some_sectors(struct fake_inode *file, const struct fake_change *change,
			       unsigned permille, struct takt_rng *rng)
{
	size_t done = 0, at, n;

	while (done < change->bytes.len) {
		at = change->at + done;
		n = SECTOR - at % SECTOR;
		if (n > change->bytes.len - done)
			n = change->bytes.len - done;
		if (takt_rng_below(rng, 1000) < permille)
			put_bytes(&file->stored, change->bytes.at + done, n, at);
		done += n;
	}
}

/* The old size, the last, or any. */
static size_t pick_size(const struct fake_inode *file, struct takt_rng *rng)
{
	uint64_t last = file->nr_changes, pick;

	switch (takt_rng_below(rng, 3)) {
	case 0:
		pick = 0;
		break;
	case 1:
		pick = last;
		break;
	default:
		pick = takt_rng_range(rng, 0, last);
	}
	return pick == 0 ? file->stored.len : file->changes[pick - 1].size;
}

static void crash_file(struct fake_inode *file, struct takt_rng *rng)
{
	static const unsigned chances[] = {0, 300, 700, 1000};
	unsigned permille = chances[takt_rng_below(rng, 4)];
	size_t size = pick_size(file, rng);

	for (size_t i = 0; i < file->nr_changes; i++)
		store_some_sectors(file, &file->changes[i], permille, rng);
	set_length(&file->stored, size);
	drop_changes(file);
	file->seen.len = 0;
	set_length(&file->seen, 0);
	put_bytes(&file->seen, file->stored.at, file->stored.len, 0);
}

/* The first `prefix` changes, of which each arrives with the chance of `permille`. */
static void crash_dir(struct fake_inode *dir, struct takt_rng *rng)
{
	uint64_t prefix = takt_rng_range(rng, 0, dir->nr_name_changes);
	unsigned permille = 1000;
	size_t bytes;

	if (takt_rng_below(rng, 2) == 0) {
		prefix = dir->nr_name_changes;
		permille = 500;
	}
	for (size_t i = 0; i < prefix; i++)
		if (takt_rng_below(rng, 1000) < permille)
			apply_name_change(&dir->names_stored, &dir->name_changes[i]);
	drop_changes(dir);
	bytes = dir->names_stored.len * sizeof(dir->names_stored.at[0]);
	dir->names_seen.at = fake_disk_grow(dir->names_seen.at, bytes, 1);
	if (bytes)
		memcpy(dir->names_seen.at, dir->names_stored.at, bytes);
	dir->names_seen.len = dir->names_stored.len;
}

void fake_disk_power_loss(struct fake_disk *disk, uint64_t seed)
{
	struct takt_rng rng;

	takt_rng_init(&rng, seed);
	for (size_t i = 0; i < disk->nr_inodes; i++) {
		if (disk->inodes[i]->is_dir)
			crash_dir(disk->inodes[i], &rng);
		else
			crash_file(disk->inodes[i], &rng);
	}
}
