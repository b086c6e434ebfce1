/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of fake_sys: files and directories with what is seen, what is on the disk, and the list
 * of changes that lie between the two. Knows nothing of descriptors, locks or failures.
 */
#ifndef TAKT_TESTS_FAKE_DISK_H
#define TAKT_TESTS_FAKE_DISK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fake_bytes {
	unsigned char *at; /* owned; always a NUL behind the last byte once not NULL */
	size_t len;
};

/* `bytes` were written at `at` (maybe none), after which the file was `size` long. */
struct fake_change {
	size_t at;
	struct fake_bytes bytes;
	size_t size;
};

struct fake_name {
	char name[NAME_MAX + 1];
	struct fake_inode *inode;
};

/* The name `gone` (maybe "") went away and `came` (maybe "") now means inode, as one step. */
struct fake_name_change {
	char gone[NAME_MAX + 1];
	struct fake_name came;
};

struct fake_names {
	struct fake_name *at; /* owned */
	size_t len;
};

struct fake_inode {
	bool is_dir;
	mode_t mode;
	ino_t number;
	struct fake_inode *parent; /* of a directory; the root is its own */

	struct fake_bytes seen, stored; /* of a file */
	struct fake_change *changes;
	size_t nr_changes;

	struct fake_names names_seen, names_stored; /* of a directory */
	struct fake_name_change *name_changes;
	size_t nr_name_changes;
};

struct fake_disk {
	struct fake_inode **inodes; /* owned; none is freed before the disk, reachable or not */
	size_t nr_inodes;
	size_t space; /* bytes that files may take together */
};

void fake_disk_init(struct fake_disk *disk);
void fake_disk_fini(struct fake_disk *disk);

/* Inode of a path from directory `from`: -ENOENT, -ENOTDIR. */
int fake_disk_find(struct fake_disk *disk, struct fake_inode *from, const char *path,
		   struct fake_inode **ret);

/* Directory and last name of a path; the name need not exist. -EINVAL for "", "." and "..". */
int fake_disk_find_parent(struct fake_disk *disk, struct fake_inode *from, const char *path,
			  struct fake_inode **ret_dir, char ret_name[NAME_MAX + 1]);
struct fake_inode *fake_disk_child(const struct fake_inode *dir, const char *name);

struct fake_inode *fake_disk_root(const struct fake_disk *disk);
struct fake_inode *fake_disk_create(struct fake_disk *disk, struct fake_inode *dir,
				    const char *name, bool is_dir, mode_t mode);
void fake_disk_remove(struct fake_inode *dir, const char *name);
void fake_disk_rename(struct fake_inode *dir, const char *from, const char *to);

/* Bytes written: fewer than n when space runs out, -ENOSPC when none is left. */
ssize_t fake_disk_write(struct fake_disk *disk, struct fake_inode *file, const void *bytes,
			size_t n, size_t at);
int fake_disk_resize(struct fake_disk *disk, struct fake_inode *file, size_t size);

void fake_disk_sync(struct fake_inode *inode);	    /* data of a file, names of a directory */
void fake_disk_lose_sync(struct fake_inode *inode); /* what a failed sync does to a file */
void fake_disk_power_loss(struct fake_disk *disk, uint64_t seed);

/* realloc(p, n * size) that aborts when out of memory: a test has no use for going on. */
void *fake_disk_grow(void *p, size_t n, size_t size);

#endif
