/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the fake world. Each entry takes the lock, counts the call, perhaps fails it, does
 * its work on the fake disk, and leaves.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "fake_world.h"

struct fake_sys *fake_world_lock(const struct takt_sys *self)
{
	struct fake_sys *world = (struct fake_sys *)self;

	pthread_mutex_lock(&world->lock);
	return world;
}

int fake_world_leave(struct fake_sys *world, int rc)
{
	pthread_mutex_unlock(&world->lock);
	return rc;
}

static int failure_of(const struct fake_sys *world, enum fake_sys_op op)
{
	const struct fake_failure *failure = &world->failures[op];
	unsigned long call = world->calls[op];

	if (failure->at == 0 || call < failure->at || (call > failure->at && !failure->and_after))
		return 0;
	return -failure->error;
}

bool fake_world_is_off(const struct fake_sys *world)
{
	return world->off_at && world->calls[FAKE_SYS_ANY] >= world->off_at;
}

/* Counts the call; the error it has to fail with, or 0. */
static int enter(struct fake_sys *world, enum fake_sys_op op)
{
	int rc;

	world->calls[FAKE_SYS_ANY]++;
	world->calls[op]++;
	if (fake_world_is_off(world))
		return -EIO;
	rc = failure_of(world, op);
	return rc ? rc : failure_of(world, FAKE_SYS_ANY);
}

static struct fake_fd *get_fd(struct fake_sys *world, int fd)
{
	if (fd < FD_FIRST || fd >= FD_FIRST + FD_LIMIT || !world->fds[fd - FD_FIRST].inode)
		return NULL;
	return &world->fds[fd - FD_FIRST];
}

static bool may(const struct fake_fd *file, int access)
{
	int mode = file->flags & O_ACCMODE;

	return !(file->flags & O_PATH) && (mode == O_RDWR || mode == access);
}

static int dir_of(struct fake_sys *world, int dirfd, struct fake_inode **ret)
{
	struct fake_fd *fd = get_fd(world, dirfd);

	if (dirfd != AT_FDCWD && !fd)
		return -EBADF;
	*ret = dirfd == AT_FDCWD ? fake_disk_root(&world->disk) : fd->inode;
	return 0;
}

static int find(struct fake_sys *world, int dirfd, const char *path, struct fake_inode **ret)
{
	struct fake_inode *dir;
	int rc = dir_of(world, dirfd, &dir);

	return rc < 0 ? rc : fake_disk_find(&world->disk, dir, path, ret);
}

static int find_parent(struct fake_sys *world, int dirfd, const char *path,
		       struct fake_inode **ret_dir, char name[NAME_MAX + 1])
{
	struct fake_inode *dir;
	int rc = dir_of(world, dirfd, &dir);

	return rc < 0 ? rc : fake_disk_find_parent(&world->disk, dir, path, ret_dir, name);
}

static int new_fd(struct fake_sys *world, struct fake_inode *inode, int flags)
{
	for (int i = 0; i < FD_LIMIT; i++)
		if (!world->fds[i].inode) {
			world->fds[i] = (struct fake_fd){inode, flags, LOCK_UN};
			return FD_FIRST + i;
		}
	return -EMFILE;
}

static int create_file(struct fake_sys *world, int dirfd, const char *path, mode_t mode,
		       struct fake_inode **ret)
{
	char name[NAME_MAX + 1];
	struct fake_inode *dir;
	int rc = find_parent(world, dirfd, path, &dir, name);

	if (rc == 0)
		*ret = fake_disk_create(&world->disk, dir, name, false, mode);
	return rc;
}

static int open_existing(struct fake_sys *world, struct fake_inode *inode, int flags)
{
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if ((flags & O_DIRECTORY) && !inode->is_dir)
		return -ENOTDIR;
	if (inode->is_dir && (flags & O_ACCMODE) != O_RDONLY)
		return -EISDIR;
	return (flags & O_TRUNC) ? fake_disk_resize(&world->disk, inode, 0) : 0;
}

static int do_openat(struct fake_sys *world, int dirfd, const char *path, int flags, mode_t mode)
{
	struct fake_inode *inode;
	int rc = find(world, dirfd, path, &inode);

	if (flags & O_APPEND)
		return -EINVAL;
	if (rc == 0)
		rc = open_existing(world, inode, flags);
	else if (rc == -ENOENT && (flags & O_CREAT))
		rc = create_file(world, dirfd, path, mode, &inode);
	return rc < 0 ? rc : new_fd(world, inode, flags);
}

static int fake_openat(const struct takt_sys *self, int dirfd, const char *path, int flags,
		       mode_t mode)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_OPENAT);

	return fake_world_leave(world, rc < 0 ? rc : do_openat(world, dirfd, path, flags, mode));
}

static int fake_close(const struct takt_sys *self, int fd)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_CLOSE);
	struct fake_fd *file = get_fd(world, fd);

	if (!file)
		return fake_world_leave(world, rc < 0 ? rc : -EBADF);
	*file = (struct fake_fd){0};
	return fake_world_leave(world, rc);
}

/* How much of n is done this time. */
static size_t portion(struct fake_sys *world, size_t n)
{
	if (!world->short_io || n < 2)
		return n;
	return takt_rng_range(&world->short_rng, 1, n);
}

static int do_pread(struct fake_sys *world, int fd, void *buf, size_t n, size_t at)
{
	struct fake_fd *file = get_fd(world, fd);
	const struct fake_bytes *seen;

	if (!file || !may(file, O_RDONLY))
		return -EBADF;
	if (file->inode->is_dir)
		return -EISDIR;
	seen = &file->inode->seen;
	if (at >= seen->len)
		return 0;
	if (n > seen->len - at)
		n = seen->len - at;
	n = portion(world, n);
	if (n)
		memcpy(buf, seen->at + at, n);
	return (int)n;
}

static ssize_t fake_pread(const struct takt_sys *self, int fd, void *buf, size_t n, off_t at)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_PREAD);

	if (rc == 0)
		rc = at < 0 || n > INT_MAX ? -EINVAL : do_pread(world, fd, buf, n, (size_t)at);
	return fake_world_leave(world, rc);
}

/* What a sync of this inode comes to, given the lies in force. */
static void sync_inode(struct fake_sys *world, struct fake_inode *inode)
{
	unsigned lie = inode->is_dir ? FAKE_SYS_NO_DIR_SYNC : FAKE_SYS_NO_FILE_SYNC;

	if (!(world->lies & lie))
		fake_disk_sync(inode);
}

static int do_pwrite(struct fake_sys *world, int fd, const void *buf, size_t n, size_t at)
{
	struct fake_fd *file = get_fd(world, fd);
	ssize_t done;

	if (!file || !may(file, O_WRONLY))
		return -EBADF;
	done = fake_disk_write(&world->disk, file->inode, buf, portion(world, n), at);
	if (done > 0 && (file->flags & O_DSYNC))
		sync_inode(world, file->inode);
	return (int)done;
}

static ssize_t fake_pwrite(const struct takt_sys *self, int fd, const void *buf, size_t n, off_t at)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_PWRITE);

	if (rc == 0)
		rc = at < 0 || n > INT_MAX ? -EINVAL : do_pwrite(world, fd, buf, n, (size_t)at);
	return fake_world_leave(world, rc);
}

static int resize(struct fake_sys *world, int fd, off_t size, bool may_shrink)
{
	struct fake_fd *file = get_fd(world, fd);

	if (!file || !may(file, O_WRONLY))
		return -EBADF;
	if (size < 0)
		return -EINVAL;
	if (!may_shrink && (size_t)size <= file->inode->seen.len)
		return size ? 0 : -EINVAL;
	return fake_disk_resize(&world->disk, file->inode, (size_t)size);
}

static int fake_ftruncate(const struct takt_sys *self, int fd, off_t size)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_FTRUNCATE);

	return fake_world_leave(world, rc < 0 ? rc : resize(world, fd, size, true));
}

static int fake_fallocate(const struct takt_sys *self, int fd, off_t size)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_FALLOCATE);

	return fake_world_leave(world, rc < 0 ? rc : resize(world, fd, size, false));
}

/* As if zeros were written there, as far as the file goes. */
static int do_punch(struct fake_sys *world, int fd, off_t from, off_t size)
{
	static const char zeros[4096];
	struct fake_fd *file = get_fd(world, fd);
	size_t at, end, n;

	if (!file || !may(file, O_WRONLY))
		return -EBADF;
	if (from < 0 || size <= 0)
		return -EINVAL;
	at = (size_t)from;
	end = at + (size_t)size < file->inode->seen.len ? at + (size_t)size : file->inode->seen.len;
	for (; at < end; at += n) {
		n = end - at < sizeof(zeros) ? end - at : sizeof(zeros);
		(void)fake_disk_write(&world->disk, file->inode, zeros, n, at);
	}
	return 0;
}

static int fake_punch(const struct takt_sys *self, int fd, off_t from, off_t size)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_PUNCH);

	return fake_world_leave(world, rc < 0 ? rc : do_punch(world, fd, from, size));
}

/* `data_only` brings no names: fdatasync of a directory is no sync of it. */
static int sync_fd(struct fake_sys *world, int fd, int injected, bool data_only)
{
	struct fake_fd *file = get_fd(world, fd);

	if (injected < 0) {
		if (file && !fake_world_is_off(world))
			fake_disk_lose_sync(file->inode);
		return injected;
	}
	if (!file || (file->flags & O_PATH))
		return -EBADF;
	if (!file->inode->is_dir || !data_only)
		sync_inode(world, file->inode);
	return 0;
}

static int fake_fsync(const struct takt_sys *self, int fd)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_FSYNC);

	return fake_world_leave(world, sync_fd(world, fd, rc, false));
}

static int fake_fdatasync(const struct takt_sys *self, int fd)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_FDATASYNC);

	return fake_world_leave(world, sync_fd(world, fd, rc, true));
}

/* As on a disk: a block of zeros is a hole. */
static blkcnt_t blocks_of(const struct fake_inode *inode)
{
	static const char hole[4096];
	blkcnt_t blocks = 0;

	for (size_t at = 0, n; at < inode->seen.len; at += n) {
		n = inode->seen.len - at < sizeof(hole) ? inode->seen.len - at : sizeof(hole);
		if (memcmp(inode->seen.at + at, hole, n) != 0)
			blocks += (blkcnt_t)((n + 511) / 512);
	}
	return blocks;
}

static void fill_stat(const struct fake_inode *inode, struct stat *ret)
{
	*ret = (struct stat){
		.st_dev = 1,
		.st_ino = inode->number,
		.st_mode = inode->mode,
		.st_nlink = 1,
		.st_size = (off_t)inode->seen.len,
		.st_blocks = blocks_of(inode),
		.st_blksize = 4096,
	};
}

static int fake_fstat(const struct takt_sys *self, int fd, struct stat *ret)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_FSTAT);
	struct fake_fd *file = get_fd(world, fd);

	if (rc == 0 && !file)
		rc = -EBADF;
	if (rc == 0)
		fill_stat(file->inode, ret);
	return fake_world_leave(world, rc);
}

static int fake_fstatat(const struct takt_sys *self, int dirfd, const char *path, struct stat *ret)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_FSTATAT);
	struct fake_inode *inode;

	if (rc == 0)
		rc = find(world, dirfd, path, &inode);
	if (rc == 0)
		fill_stat(inode, ret);
	return fake_world_leave(world, rc);
}

static int do_mkdirat(struct fake_sys *world, int dirfd, const char *path, mode_t mode)
{
	char name[NAME_MAX + 1];
	struct fake_inode *dir;
	int rc;

	rc = find(world, dirfd, path, &dir);
	if (rc != -ENOENT)
		return rc < 0 ? rc : -EEXIST;
	rc = find_parent(world, dirfd, path, &dir, name);
	if (rc == 0)
		fake_disk_create(&world->disk, dir, name, true, mode);
	return rc;
}

static int fake_mkdirat(const struct takt_sys *self, int dirfd, const char *path, mode_t mode)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_MKDIRAT);

	return fake_world_leave(world, rc < 0 ? rc : do_mkdirat(world, dirfd, path, mode));
}

static int may_replace(const struct fake_inode *from, const struct fake_inode *to)
{
	if (!to || to == from)
		return 0;
	if (from->is_dir)
		return !to->is_dir ? -ENOTDIR : to->names_seen.len ? -ENOTEMPTY : 0;
	return to->is_dir ? -EISDIR : 0;
}

static int do_renameat(struct fake_sys *world, int dirfd, const char *from, const char *to)
{
	struct fake_inode *from_dir, *to_dir, *inode;
	char from_name[NAME_MAX + 1], to_name[NAME_MAX + 1];
	int rc = find_parent(world, dirfd, from, &from_dir, from_name);

	if (rc == 0)
		rc = find_parent(world, dirfd, to, &to_dir, to_name);
	if (rc < 0)
		return rc;
	inode = fake_disk_child(from_dir, from_name);
	if (!inode)
		return -ENOENT;
	if (from_dir != to_dir)
		return -EXDEV;
	rc = may_replace(inode, fake_disk_child(to_dir, to_name));
	if (rc == 0)
		fake_disk_rename(to_dir, from_name, to_name);
	return rc;
}

static int fake_renameat(const struct takt_sys *self, int dirfd, const char *from, const char *to)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_RENAMEAT);

	return fake_world_leave(world, rc < 0 ? rc : do_renameat(world, dirfd, from, to));
}

static int do_unlinkat(struct fake_sys *world, int dirfd, const char *path, int flags)
{
	bool want_dir = (flags & AT_REMOVEDIR) != 0;
	char name[NAME_MAX + 1];
	struct fake_inode *dir, *inode;
	int rc = find_parent(world, dirfd, path, &dir, name);

	if (rc < 0)
		return rc;
	inode = fake_disk_child(dir, name);
	if (!inode)
		return -ENOENT;
	if (inode->is_dir != want_dir)
		return want_dir ? -ENOTDIR : -EISDIR;
	if (inode->names_seen.len)
		return -ENOTEMPTY;
	fake_disk_remove(dir, name);
	return 0;
}

static int fake_unlinkat(const struct takt_sys *self, int dirfd, const char *path, int flags)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_UNLINKAT);

	return fake_world_leave(world, rc < 0 ? rc : do_unlinkat(world, dirfd, path, flags));
}

static bool lock_conflicts(const struct fake_sys *world, const struct fake_fd *mine, int want)
{
	for (int i = 0; i < FD_LIMIT; i++) {
		const struct fake_fd *other = &world->fds[i];

		if (other == mine || other->inode != mine->inode || other->lock == LOCK_UN)
			continue;
		if (want == LOCK_EX || other->lock == LOCK_EX)
			return true;
	}
	return false;
}

static int do_flock(struct fake_sys *world, int fd, int operation)
{
	struct fake_fd *file = get_fd(world, fd);
	int want = operation & ~LOCK_NB;

	if (!file || (file->flags & O_PATH))
		return -EBADF;
	if (want != LOCK_SH && want != LOCK_EX && want != LOCK_UN)
		return -EINVAL;
	if (want != LOCK_UN && lock_conflicts(world, file, want))
		return (operation & LOCK_NB) ? -EWOULDBLOCK : -EDEADLK;
	file->lock = want;
	return 0;
}

static int fake_flock(const struct takt_sys *self, int fd, int operation)
{
	struct fake_sys *world = fake_world_lock(self);
	int rc = enter(world, FAKE_SYS_FLOCK);

	return fake_world_leave(world, rc < 0 ? rc : do_flock(world, fd, operation));
}

static uint64_t fake_mono_ns(const struct takt_sys *self)
{
	struct fake_sys *world = fake_world_lock(self);
	uint64_t now = world->mono_ns;

	fake_world_leave(world, 0);
	return now;
}

static uint64_t fake_boot_ns(const struct takt_sys *self)
{
	struct fake_sys *world = fake_world_lock(self);
	uint64_t now = world->boot_ns;

	fake_world_leave(world, 0);
	return now;
}

static int64_t fake_wall_ns(const struct takt_sys *self)
{
	struct fake_sys *world = fake_world_lock(self);
	int64_t now = world->wall_ns;

	fake_world_leave(world, 0);
	return now;
}

const struct takt_sys fake_world_table = {
	.openat = fake_openat,
	.close = fake_close,
	.pread = fake_pread,
	.pwrite = fake_pwrite,
	.ftruncate = fake_ftruncate,
	.fallocate = fake_fallocate,
	.punch = fake_punch,
	.fsync = fake_fsync,
	.fdatasync = fake_fdatasync,
	.fstat = fake_fstat,
	.fstatat = fake_fstatat,
	.mkdirat = fake_mkdirat,
	.renameat = fake_renameat,
	.unlinkat = fake_unlinkat,
	.flock = fake_flock,
	.mono_ns = fake_mono_ns,
	.boot_ns = fake_boot_ns,
	.wall_ns = fake_wall_ns,
};
