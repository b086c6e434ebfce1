/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake world for tests: struct takt_sys over a file system in memory and clocks that obey.
 *
 *	struct fake_sys *world = fake_sys_new();
 *	const struct takt_sys *sys = fake_sys_table(world);
 *	fake_sys_add_dir(world, "/state");
 *	... code under test works on sys; paths begin at "/", which is also the working directory
 *... fake_sys_power_loss(world, seed);
 *	... open again what is left and judge it ...
 *	fake_sys_free(world);
 *
 * What it remembers twice. Each file and directory has what programs see (as if in the page cache)
 * and what is on the disk. Writes, truncations and names change only the former. fsync and
 *fdatasync of a file (or a write through O_SYNC, O_DSYNC) bring its data and size to the disk;
 *fsync of a directory brings its names; nothing else does, however long one waits. A file that is
 *synced but whose name is not may be unreachable after power loss, as POSIX allows.
 *
 * What power loss does to the rest, decided by the seed. Of unsynced data each 512-byte sector of
 * each write arrives or not, independently of the order of the writes; a sector written twice may
 * hold any of its versions. The size is the old, the new or one in between, and what it covers but
 * never arrived reads as zeros. Of unsynced names of a directory none, all, the first few or any
 * subset of the changes arrive; one rename is atomic. Whoever needs an order must sync.
 *
 * Ways to use it:
 *  - a campaign: run the scenario once to learn fake_sys_calls(), then for each call number and
 *some seeds run it anew with fake_sys_cut_power_at(), fake_sys_power_loss(), and judge. Every call
 *    behaves as after the cut: -EIO, no effect.
 *  - a mutation check: the same with fake_sys_lie(), which must make the campaign fail; else it
 *    proves nothing.
 *  - the rare path: fake_sys_fail_nth() for each call number and errno, fake_sys_set_space() for a
 *    full disk, fake_sys_short_io() for short reads and writes.
 *  - kill -9: fake_sys_process_death(); files stay as seen, descriptors and locks go.
 *
 * Differences from Linux: permissions are recorded but not checked; no links; renames stay within a
 * directory (-EXDEV); O_APPEND is refused (-EINVAL); a lock that would wait for ever returns
 * -EDEADLK. Its own memory does not come from takt_alloc, so fail-the-Nth-allocation loops do not
 * count it; it aborts when out of memory. All functions may be called from several threads.
 */
#ifndef TAKT_TESTS_FAKE_SYS_H
#define TAKT_TESTS_FAKE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"

struct fake_sys;

struct fake_sys *fake_sys_new(void); /* an empty disk, all clocks at an odd but fixed time */
void fake_sys_free(struct fake_sys *world);
const struct takt_sys *fake_sys_table(struct fake_sys *world); /* borrowed until fake_sys_free */

/* Calls that can fail, by kind; the three clocks are none of them. */
enum fake_sys_op {
	FAKE_SYS_ANY,
	FAKE_SYS_OPENAT,
	FAKE_SYS_CLOSE,
	FAKE_SYS_PREAD,
	FAKE_SYS_PWRITE,
	FAKE_SYS_FTRUNCATE,
	FAKE_SYS_FALLOCATE,
	FAKE_SYS_PUNCH,
	FAKE_SYS_FSYNC,
	FAKE_SYS_FDATASYNC,
	FAKE_SYS_FSTAT,
	FAKE_SYS_FSTATAT,
	FAKE_SYS_MKDIRAT,
	FAKE_SYS_RENAMEAT,
	FAKE_SYS_UNLINKAT,
	FAKE_SYS_FLOCK,
	FAKE_SYS_OP_COUNT,
};

/* Calls of one kind (or of any) since fake_sys_new. */
unsigned long fake_sys_calls(struct fake_sys *world, enum fake_sys_op op);

/*
 * The nth call of that kind from now (1 = the next) fails with -error and without effect, once or
 * from then on. nth 0 disarms. A close that fails has closed. A sync of a file that fails loses
 * what was unsynced for good: a later sync succeeds without it, only writing again helps (as on
 * Linux).
 */
void fake_sys_fail_nth(struct fake_sys *world, enum fake_sys_op op, unsigned long nth, int error,
		       bool and_after);

/* The nth call of any kind from now and all that follow find the machine off: -EIO, no effect,
 * until fake_sys_power_loss. nth 0 disarms. */
void fake_sys_cut_power_at(struct fake_sys *world, unsigned long nth);
bool fake_sys_is_off(struct fake_sys *world);

/* Power goes and comes back: see above. Descriptors (-EBADF from now on) and locks are gone, the
 * mono and boot clocks start anew; failures, cuts and short operations are disarmed, lies stay. */
void fake_sys_power_loss(struct fake_sys *world, uint64_t seed);

/* The process is killed: descriptors and locks are gone, everything else stays. Disarms like
 * fake_sys_power_loss. */
void fake_sys_process_death(struct fake_sys *world);

/* Syncs that report success and do nothing. */
enum fake_sys_lies {
	FAKE_SYS_HONEST = 0,
	FAKE_SYS_NO_FILE_SYNC = 1u << 0,
	FAKE_SYS_NO_DIR_SYNC = 1u << 1,
};
void fake_sys_lie(struct fake_sys *world, unsigned lies);

/* Bytes that files may take together; beyond it writes are cut short, then -ENOSPC. */
void fake_sys_set_space(struct fake_sys *world, size_t bytes);

/* Reads and writes of more than one byte often do only part of it. Seed 0 ends it. */
void fake_sys_short_io(struct fake_sys *world, uint64_t seed);

/* Clocks. advance moves all three; suspend leaves mono behind; jump moves wall only. */
void fake_sys_advance(struct fake_sys *world, uint64_t ns);
void fake_sys_suspend(struct fake_sys *world, uint64_t ns);
void fake_sys_jump_wall(struct fake_sys *world, int64_t ns);

/* Setting the scene: on the disk at once, not counted as calls. Parents exist; add_file replaces.
 */
void fake_sys_add_dir(struct fake_sys *world, const char *path);
void fake_sys_add_file(struct fake_sys *world, const char *path, const void *bytes, size_t n);
void fake_sys_sync_all(struct fake_sys *world);

/* Looking behind the scenes, not counted as calls. read_file: the bytes as programs see them,
 * NUL-terminated, borrowed until the next call of any kind; NULL if there is no such file. */
bool fake_sys_exists(struct fake_sys *world, const char *path);
const char *fake_sys_read_file(struct fake_sys *world, const char *path, size_t *ret_len);
/* Names in a directory in the order of creation: "a b c", same lifetime; NULL if there is none. */
const char *fake_sys_list(struct fake_sys *world, const char *path);
unsigned fake_sys_open_count(struct fake_sys *world); /* descriptors not closed: leaks */

#endif
