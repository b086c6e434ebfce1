/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Methods of the VFS, of a file, of the locks, and of the shared index. */
#include "sys_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PATH_LEN = 256,
	MAX_REGIONS = 64,
};

/* What the open files of one path share. */
struct node {
	struct node *next;
	char path[PATH_LEN];
	int files;
	int shared; /* holders of SHARED or more */
	struct vfs_file *reserved, *exclusive;
	void *regions[MAX_REGIONS];
	int shm_users;
	int shm_shared[SQLITE_SHM_NLOCK];
	struct vfs_file *shm_exclusive[SQLITE_SHM_NLOCK];
};

struct sys_vfs {
	sqlite3_vfs base;
	const struct takt_sys *sys;
	sqlite3_vfs *real; /* for time and randomness */
	pthread_mutex_t lock;
	struct node *nodes;
	int open_files;
	int last_errno;
};

struct vfs_file {
	sqlite3_file base;
	struct sys_vfs *vfs;
	struct node *node;
	int fd;
	bool sync_dir; /* created, and its name not synced yet */
	bool delete_on_close;
	int level; /* SQLITE_LOCK_... */
	unsigned shm_shared, shm_exclusive;
	bool shm_mapped;
};

static struct vfs_file *file_of(sqlite3_file *file)
{
	return (struct vfs_file *)file;
}

static struct sys_vfs *vfs_of(sqlite3_vfs *vfs)
{
	return (struct sys_vfs *)vfs;
}

static int failed(struct sys_vfs *vfs, int rc, int sqlite_rc)
{
	vfs->last_errno = -rc;
	return rc == -ENOSPC ? SQLITE_FULL : sqlite_rc;
}

static struct node *get_node(struct sys_vfs *vfs, const char *path)
{
	struct node *node = vfs->nodes;

	while (node && strcmp(node->path, path) != 0)
		node = node->next;
	if (node)
		return node;
	node = calloc(1, sizeof(*node));
	if (!node)
		abort();
	snprintf(node->path, sizeof(node->path), "%s", path);
	node->next = vfs->nodes;
	vfs->nodes = node;
	return node;
}

static void drop_regions(struct node *node)
{
	for (int i = 0; i < MAX_REGIONS; i++) {
		free(node->regions[i]);
		node->regions[i] = NULL;
	}
}

static int sync_dir_of(struct sys_vfs *vfs, const char *path)
{
	const struct takt_sys *sys = vfs->sys;
	char dir[PATH_LEN];
	char *slash;
	int fd, rc;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	fd = sys->openat(sys, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	rc = sys->fsync(sys, fd);
	(void)sys->close(sys, fd);
	return rc;
}

/* A file. */

static int vfs_close(sqlite3_file *base)
{
	struct vfs_file *file = file_of(base);
	struct sys_vfs *vfs = file->vfs;

	(void)vfs->sys->close(vfs->sys, file->fd);
	if (file->delete_on_close)
		(void)vfs->sys->unlinkat(vfs->sys, AT_FDCWD, file->node->path, 0);
	pthread_mutex_lock(&vfs->lock);
	file->node->files--;
	vfs->open_files--;
	pthread_mutex_unlock(&vfs->lock);
	return SQLITE_OK;
}

static int vfs_read(sqlite3_file *base, void *buf, int n, sqlite3_int64 at)
{
	struct vfs_file *file = file_of(base);
	const struct takt_sys *sys = file->vfs->sys;
	int done = 0;
	ssize_t got;

	while (done < n) {
		got = sys->pread(sys, file->fd, (char *)buf + done, (size_t)(n - done), at + done);
		if (got < 0)
			return failed(file->vfs, (int)got, SQLITE_IOERR_READ);
		if (got == 0) {
			memset((char *)buf + done, 0, (size_t)(n - done));
			return SQLITE_IOERR_SHORT_READ;
		}
		done += (int)got;
	}
	return SQLITE_OK;
}

static int vfs_write(sqlite3_file *base, const void *buf, int n, sqlite3_int64 at)
{
	struct vfs_file *file = file_of(base);
	const struct takt_sys *sys = file->vfs->sys;
	int done = 0;
	ssize_t put;

	while (done < n) {
		put = sys->pwrite(sys, file->fd, (const char *)buf + done, (size_t)(n - done),
				  at + done);
		if (put <= 0)
			return failed(file->vfs, (int)put, SQLITE_IOERR_WRITE);
		done += (int)put;
	}
	return SQLITE_OK;
}

static int vfs_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct vfs_file *file = file_of(base);
	int rc = file->vfs->sys->ftruncate(file->vfs->sys, file->fd, size);

	return rc < 0 ? failed(file->vfs, rc, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
}

static int vfs_sync(sqlite3_file *base, int flags)
{
	struct vfs_file *file = file_of(base);
	int rc = file->vfs->sys->fdatasync(file->vfs->sys, file->fd);

	if (rc < 0)
		return failed(file->vfs, rc, SQLITE_IOERR_FSYNC);
	if (!file->sync_dir)
		return SQLITE_OK;
	rc = sync_dir_of(file->vfs, file->node->path);
	if (rc < 0)
		return failed(file->vfs, rc, SQLITE_IOERR_DIR_FSYNC);
	file->sync_dir = false;
	return SQLITE_OK;
}

static int vfs_size(sqlite3_file *base, sqlite3_int64 *ret)
{
	struct vfs_file *file = file_of(base);
	struct stat st;
	int rc = file->vfs->sys->fstat(file->vfs->sys, file->fd, &st);

	if (rc < 0)
		return failed(file->vfs, rc, SQLITE_IOERR_FSTAT);
	*ret = st.st_size;
	return SQLITE_OK;
}

static int vfs_control(sqlite3_file *base, int op, void *arg)
{
	return SQLITE_NOTFOUND;
}

static int vfs_sector_size(sqlite3_file *base)
{
	return 4096;
}

/* As SQLite's Unix VFS on an ordinary file system: writing part of a sector leaves the rest. */
static int vfs_characteristics(sqlite3_file *base)
{
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* Locks. */

static int raise_lock(struct vfs_file *file, int level)
{
	struct node *node = file->node;

	if (file->level == SQLITE_LOCK_NONE) {
		if (node->exclusive)
			return SQLITE_BUSY;
		node->shared++;
		file->level = SQLITE_LOCK_SHARED;
	}
	if (level >= SQLITE_LOCK_RESERVED) {
		if (node->reserved && node->reserved != file)
			return SQLITE_BUSY;
		node->reserved = file;
		file->level = SQLITE_LOCK_RESERVED;
	}
	if (level == SQLITE_LOCK_EXCLUSIVE) {
		node->exclusive = file; /* already while it waits: no new readers */
		file->level = SQLITE_LOCK_PENDING;
		if (node->shared > 1)
			return SQLITE_BUSY;
		file->level = SQLITE_LOCK_EXCLUSIVE;
	}
	return SQLITE_OK;
}

static int vfs_lock(sqlite3_file *base, int level)
{
	struct vfs_file *file = file_of(base);
	int rc;

	if (file->level >= level)
		return SQLITE_OK;
	pthread_mutex_lock(&file->vfs->lock);
	rc = raise_lock(file, level);
	pthread_mutex_unlock(&file->vfs->lock);
	return rc;
}

static int vfs_unlock(sqlite3_file *base, int level)
{
	struct vfs_file *file = file_of(base);
	struct node *node = file->node;

	if (file->level <= level)
		return SQLITE_OK;
	pthread_mutex_lock(&file->vfs->lock);
	if (node->reserved == file)
		node->reserved = NULL;
	if (node->exclusive == file)
		node->exclusive = NULL;
	if (level == SQLITE_LOCK_NONE)
		node->shared--;
	file->level = level;
	pthread_mutex_unlock(&file->vfs->lock);
	return SQLITE_OK;
}

static int vfs_check_reserved(sqlite3_file *base, int *ret)
{
	struct vfs_file *file = file_of(base);

	pthread_mutex_lock(&file->vfs->lock);
	*ret = file->node->reserved != NULL;
	pthread_mutex_unlock(&file->vfs->lock);
	return SQLITE_OK;
}

/* The shared index. */

static int vfs_shm_map(sqlite3_file *base, int region, int size, int extend, void volatile **ret)
{
	struct vfs_file *file = file_of(base);
	struct node *node = file->node;

	*ret = NULL;
	if (region >= MAX_REGIONS)
		return SQLITE_IOERR_SHMMAP;
	pthread_mutex_lock(&file->vfs->lock);
	if (!file->shm_mapped)
		node->shm_users++;
	file->shm_mapped = true;
	if (!node->regions[region] && extend) {
		node->regions[region] = calloc(1, (size_t)size);
		if (!node->regions[region])
			abort();
	}
	*ret = node->regions[region];
	pthread_mutex_unlock(&file->vfs->lock);
	return SQLITE_OK;
}

static bool shm_is_free(const struct vfs_file *file, int i, bool exclusive)
{
	const struct node *node = file->node;
	int others = node->shm_shared[i] - !!(file->shm_shared & (1u << i));

	if (node->shm_exclusive[i] && node->shm_exclusive[i] != file)
		return false;
	return !exclusive || others == 0;
}

static void shm_take(struct vfs_file *file, int i, bool exclusive)
{
	if (exclusive) {
		file->node->shm_exclusive[i] = file;
		file->shm_exclusive |= 1u << i;
	} else if (!(file->shm_shared & (1u << i))) {
		file->node->shm_shared[i]++;
		file->shm_shared |= 1u << i;
	}
}

static void shm_release(struct vfs_file *file, int i)
{
	if (file->shm_exclusive & (1u << i))
		file->node->shm_exclusive[i] = NULL;
	if (file->shm_shared & (1u << i))
		file->node->shm_shared[i]--;
	file->shm_exclusive &= ~(1u << i);
	file->shm_shared &= ~(1u << i);
}

static int vfs_shm_lock(sqlite3_file *base, int first, int n, int flags)
{
	struct vfs_file *file = file_of(base);
	bool exclusive = flags & SQLITE_SHM_EXCLUSIVE;
	int rc = SQLITE_OK;

	pthread_mutex_lock(&file->vfs->lock);
	for (int i = first; i < first + n; i++)
		if ((flags & SQLITE_SHM_LOCK) && !shm_is_free(file, i, exclusive))
			rc = SQLITE_BUSY;
	for (int i = first; i < first + n && rc == SQLITE_OK; i++) {
		if (flags & SQLITE_SHM_LOCK)
			shm_take(file, i, exclusive);
		else
			shm_release(file, i);
	}
	pthread_mutex_unlock(&file->vfs->lock);
	return rc;
}

static void vfs_shm_barrier(sqlite3_file *base)
{
	__sync_synchronize();
}

static int vfs_shm_unmap(sqlite3_file *base, int delete_it)
{
	struct vfs_file *file = file_of(base);

	pthread_mutex_lock(&file->vfs->lock);
	for (int i = 0; i < SQLITE_SHM_NLOCK; i++)
		shm_release(file, i);
	if (file->shm_mapped && --file->node->shm_users == 0)
		drop_regions(file->node);
	file->shm_mapped = false;
	pthread_mutex_unlock(&file->vfs->lock);
	return SQLITE_OK;
}

static const sqlite3_io_methods file_methods = {
	.iVersion = 2,
	.xClose = vfs_close,
	.xRead = vfs_read,
	.xWrite = vfs_write,
	.xTruncate = vfs_truncate,
	.xSync = vfs_sync,
	.xFileSize = vfs_size,
	.xLock = vfs_lock,
	.xUnlock = vfs_unlock,
	.xCheckReservedLock = vfs_check_reserved,
	.xFileControl = vfs_control,
	.xSectorSize = vfs_sector_size,
	.xDeviceCharacteristics = vfs_characteristics,
	.xShmMap = vfs_shm_map,
	.xShmLock = vfs_shm_lock,
	.xShmBarrier = vfs_shm_barrier,
	.xShmUnmap = vfs_shm_unmap,
};

/* The VFS. */

static int open_flags(int flags)
{
	int posix = (flags & SQLITE_OPEN_READWRITE) ? O_RDWR : O_RDONLY;

	if (flags & SQLITE_OPEN_CREATE)
		posix |= O_CREAT;
	if (flags & SQLITE_OPEN_EXCLUSIVE)
		posix |= O_EXCL;
	return posix | O_CLOEXEC;
}

static int vfs_open(sqlite3_vfs *base, const char *path, sqlite3_file *ret, int flags,
		    int *ret_flags)
{
	const int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
	struct sys_vfs *vfs = vfs_of(base);
	struct vfs_file *file = file_of(ret);
	int fd;

	memset(file, 0, sizeof(*file));
	if (!path)
		return SQLITE_CANTOPEN; /* temporary files are kept in memory */
	fd = vfs->sys->openat(vfs->sys, AT_FDCWD, path, open_flags(flags), 0600);
	if (fd < 0)
		return failed(vfs, fd, SQLITE_CANTOPEN);
	file->base.pMethods = &file_methods;
	file->vfs = vfs;
	file->fd = fd;
	file->sync_dir = (flags & SQLITE_OPEN_CREATE) && (flags & journals);
	file->delete_on_close = flags & SQLITE_OPEN_DELETEONCLOSE;
	pthread_mutex_lock(&vfs->lock);
	file->node = get_node(vfs, path);
	file->node->files++;
	vfs->open_files++;
	pthread_mutex_unlock(&vfs->lock);
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *base, const char *path, int sync_dir)
{
	struct sys_vfs *vfs = vfs_of(base);
	int rc = vfs->sys->unlinkat(vfs->sys, AT_FDCWD, path, 0);

	if (rc == -ENOENT)
		return SQLITE_IOERR_DELETE_NOENT;
	if (rc < 0)
		return failed(vfs, rc, SQLITE_IOERR_DELETE);
	rc = sync_dir ? sync_dir_of(vfs, path) : 0;
	return rc < 0 ? failed(vfs, rc, SQLITE_IOERR_DIR_FSYNC) : SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *base, const char *path, int flags, int *ret)
{
	struct sys_vfs *vfs = vfs_of(base);
	struct stat st;
	int rc = vfs->sys->fstatat(vfs->sys, AT_FDCWD, path, &st);

	if (rc < 0 && rc != -ENOENT)
		return failed(vfs, rc, SQLITE_IOERR_ACCESS);
	*ret = rc == 0 && (flags != SQLITE_ACCESS_EXISTS || st.st_size > 0);
	return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *base, const char *path, int n, char *ret)
{
	return snprintf(ret, (size_t)n, "%s", path) < n ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_randomness(sqlite3_vfs *base, int n, char *ret)
{
	sqlite3_vfs *real = vfs_of(base)->real;

	return real->xRandomness(real, n, ret);
}

static int vfs_sleep(sqlite3_vfs *base, int us)
{
	sqlite3_vfs *real = vfs_of(base)->real;

	return real->xSleep(real, us);
}

static int vfs_time(sqlite3_vfs *base, double *ret)
{
	sqlite3_vfs *real = vfs_of(base)->real;

	return real->xCurrentTime(real, ret);
}

static int vfs_last_error(sqlite3_vfs *base, int n, char *ret)
{
	return vfs_of(base)->last_errno;
}

struct sys_vfs *sys_vfs_new(const char *name, const struct takt_sys *sys)
{
	struct sys_vfs *vfs = calloc(1, sizeof(*vfs));

	if (!vfs)
		abort();
	vfs->sys = sys;
	vfs->real = sqlite3_vfs_find(NULL);
	pthread_mutex_init(&vfs->lock, NULL);
	vfs->base = (sqlite3_vfs){
		.iVersion = 1,
		.szOsFile = sizeof(struct vfs_file),
		.mxPathname = PATH_LEN - 1,
		.zName = name,
		.xOpen = vfs_open,
		.xDelete = vfs_delete,
		.xAccess = vfs_access,
		.xFullPathname = vfs_full_path,
		.xRandomness = vfs_randomness,
		.xSleep = vfs_sleep,
		.xCurrentTime = vfs_time,
		.xGetLastError = vfs_last_error,
	};
	if (sqlite3_vfs_register(&vfs->base, 0) != SQLITE_OK)
		abort();
	return vfs;
}

int sys_vfs_open_count(struct sys_vfs *vfs)
{
	return vfs->open_files;
}

void sys_vfs_free(struct sys_vfs *vfs)
{
	struct node *node, *next;

	sqlite3_vfs_unregister(&vfs->base);
	for (node = vfs->nodes; node; node = next) {
		next = node->next;
		drop_regions(node);
		free(node);
	}
	pthread_mutex_destroy(&vfs->lock);
	free(vfs);
}
