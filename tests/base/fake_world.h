/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of fake_sys share: the calls it answers and the strings a test pulls. */
#ifndef TAKT_TESTS_FAKE_WORLD_H
#define TAKT_TESTS_FAKE_WORLD_H

#include <pthread.h>

#include "base/rng.h"
#include "fake_disk.h"
#include "fake_sys.h"

enum {
	FD_FIRST = 100000, /* no real descriptor is as high: mixing the worlds shows at once */
	FD_LIMIT = 1024,
};

struct fake_fd {
	struct fake_inode *inode; /* NULL: closed */
	int flags;
	int lock; /* LOCK_UN, LOCK_SH or LOCK_EX */
};

struct fake_failure {
	unsigned long at; /* value of the counter that fails; 0 = never */
	int error;
	bool and_after;
};

struct fake_sys {
	struct takt_sys table; /* first: `self` is also the world */
	pthread_mutex_t lock;
	struct fake_disk disk;
	struct fake_fd fds[FD_LIMIT];
	unsigned long calls[FAKE_SYS_OP_COUNT];
	struct fake_failure failures[FAKE_SYS_OP_COUNT];
	unsigned long off_at; /* value of calls[FAKE_SYS_ANY] at which power goes; 0 = never */
	unsigned lies;
	bool short_io;
	struct takt_rng short_rng;
	uint64_t mono_ns, boot_ns;
	int64_t wall_ns;
	struct fake_bytes text; /* what fake_sys_list lends */
};

extern const struct takt_sys fake_world_table;

/* lock returns the world that the table belongs to; leave unlocks and returns rc. */
struct fake_sys *fake_world_lock(const struct takt_sys *self);
int fake_world_leave(struct fake_sys *world, int rc);

/* Whether the power is cut; lock held. */
bool fake_world_is_off(const struct fake_sys *world);

#endif
