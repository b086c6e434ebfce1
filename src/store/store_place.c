/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the database may lie, and whose it is.
 *
 * Network file systems are refused: there, locks may be advisory to one host only and fsync may
 * return before the server wrote. FUSE is refused with them, since what stands behind it is not
 * known. One process owns the store: it holds flock on a file beside the database. SQLite's own
 * locks would not do, they let several writers take turns.
 *
 * And whether there was a database before: a file beside it says so from the moment on in which the
 * first one was whole. Where that file is and the database is not, an empty one would be taken for
 * the one that is gone, with every job that was promised.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/store_impl.h"

#define MADE ".made"

/* Numbers of linux/magic.h and of statfs(2); spelt out because not every header has them all. */
static const struct {
	unsigned long magic;
	const char *name;
} network_fs[] = {
	{0x6969, "NFS"},	{0x517b, "SMB"},	{0xff534d42, "CIFS"},
	{0xfe534d42, "SMB2"},	{0x5346414f, "AFS"},	{0x6b414653, "AFS"},
	{0x73757245, "Coda"},	{0x564c, "NCP"},	{0x65735546, "FUSE"},
	{0x00c36400, "Ceph"},	{0x01021997, "9P"},	{0x0bd00bd0, "Lustre"},
	{0x47504653, "GPFS"},	{0x19830326, "BeeGFS"}, {0x01161970, "GFS2"},
	{0x7461636f, "OCFS2"},	{0xaad7aaea, "PanFS"},	{0x786f4256, "vboxsf"},
	{0xbacbacbc, "vmhgfs"},
};

const char *takt_store_network_fs(unsigned long magic)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(network_fs); i++)
		if (network_fs[i].magic == magic)
			return network_fs[i].name;
	return NULL;
}

static int check_fs(int dirfd, const char *path, struct takt_err *err)
{
	struct statfs fs;
	const char *name;

	if (fstatfs(dirfd, &fs) < 0)
		return takt_err_set(err, -errno, "file system of '%s'", path);
	name = takt_store_network_fs((unsigned long)fs.f_type & 0xffffffff);
	if (!name)
		return 0;
	return takt_err_set(err, -TAKT_E_UNSUPPORTED,
			    "'%s' is on %s, where locks and syncs cannot be trusted; choose a "
			    "directory on a local disk",
			    path, name);
}

static int open_dir(const struct takt_sys *sys, const char *path, struct takt_err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int fd;

	if (!slash)
		dir = takt_strdup(".");
	else
		dir = takt_strdup(path);
	if (!dir)
		return takt_err_set(err, -ENOMEM, "open '%s'", path);
	if (slash)
		dir[slash == path ? 1 : slash - path] = '\0';
	fd = sys->openat(sys, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		takt_err_set(err, fd, "open directory '%s' of the database", dir);
	takt_free(dir);
	return fd;
}

int takt_store_sync_dir(const char *path, const struct takt_sys *sys, struct takt_err *err)
{
	int dirfd = open_dir(sys, path, err);
	int rc;

	if (dirfd < 0)
		return dirfd;
	rc = sys->fsync(sys, dirfd);
	(void)sys->close(sys, dirfd);
	return rc < 0 ? takt_err_set(err, rc, "sync the directory of '%s'", path) : 0;
}

/* The pid in the lock file is for the message only; the lock itself is what counts. */
static int busy(const struct takt_sys *sys, int fd, const char *path, struct takt_err *err)
{
	char pid[24] = "";
	ssize_t n = sys->pread(sys, fd, pid, sizeof(pid) - 1, 0);

	pid[n > 0 ? n : 0] = '\0';
	pid[strspn(pid, "0123456789")] = '\0';
	return takt_err_set(err, -TAKT_E_BUSY, "database '%s' is in use by another takt%s%s", path,
			    pid[0] ? ", process " : "", pid);
}

static int take_lock(const struct takt_sys *sys, int dirfd, const char *name, const char *path,
		     struct takt_err *err)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	int fd, rc;

	fd = sys->openat(sys, dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return takt_err_set(err, fd, "open '%s.lock'", path);
	rc = sys->flock(sys, fd, LOCK_EX | LOCK_NB);
	if (rc == -EWOULDBLOCK)
		rc = busy(sys, fd, path, err);
	else if (rc < 0)
		takt_err_set(err, rc, "lock '%s.lock'", path);
	if (rc < 0) {
		(void)sys->close(sys, fd);
		return rc;
	}
	(void)sys->ftruncate(sys, fd, 0);
	(void)sys->pwrite(sys, fd, text, (size_t)n, 0);
	return fd;
}

/*
 * SQLite would create the file with the umask's permissions, and gives -wal and -shm those of the
 * database, so it is made here; an empty file is an empty database. It must be closed before SQLite
 * opens it: closing any descriptor of a file drops the process's POSIX locks on it.
 */
static int make_private(const struct takt_sys *sys, int dirfd, const char *name, const char *path,
			struct takt_err *err)
{
	struct stat st;
	int fd, rc;

	fd = sys->openat(sys, dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return takt_err_set(err, fd, "open '%s'", path);
	rc = sys->fstat(sys, fd, &st);
	if (rc == 0 && !S_ISREG(st.st_mode))
		rc = -EINVAL;
	if (rc == 0 && (st.st_mode & 077) && fchmod(fd, 0600) < 0)
		rc = -errno;
	(void)sys->close(sys, fd);
	return rc < 0 ? takt_err_set(err, rc, "make '%s' a file of its owner only", path) : 0;
}

/* Of a file beside the database. */
struct beside {
	char name[NAME_MAX + 1];
};

static int name_beside(const char *path, const char *suffix, struct beside *ret,
		       struct takt_err *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return name[0] && snprintf(ret->name, sizeof(ret->name), "%s%s", name, suffix) <
				       (int)sizeof(ret->name)
		       ? 0
		       : takt_err_set(err, -EINVAL, "'%s' does not name a file", path);
}

/* Whether there is such a file, and something in it if that is asked for; negative: not known. */
static int is_there(const struct takt_sys *sys, int dirfd, const char *name, bool filled)
{
	struct stat st;
	int rc = sys->fstatat(sys, dirfd, name, &st);

	if (rc == 0)
		return !filled || st.st_size > 0;
	return rc == -ENOENT ? 0 : rc;
}

static int refuse_lost(const struct takt_sys *sys, int dirfd, const char *name, const char *path,
		       struct takt_err *err)
{
	struct beside made;
	int was, is, rc = name_beside(path, MADE, &made, err);

	if (rc < 0)
		return rc;
	was = is_there(sys, dirfd, made.name, false);
	is = was > 0 ? is_there(sys, dirfd, name, true) : 1;
	if (was < 0 || is < 0)
		return takt_err_set(err, was < 0 ? was : is, "look at '%s'", path);
	if (is)
		return 0;
	return takt_err_set(err, -ENOENT,
			    "database '%.80s' is not there, or empty, and there was one: put it "
			    "back, or 'takt admin restore FILE' with a copy of it; to start empty "
			    "remove '%.80s" MADE "'",
			    path, path);
}

static int make_db(const struct takt_sys *sys, int dirfd, const char *path, struct takt_err *err)
{
	struct beside db;
	int rc = name_beside(path, "", &db, err);

	if (rc == 0)
		rc = refuse_lost(sys, dirfd, db.name, path, err);
	return rc < 0 ? rc : make_private(sys, dirfd, db.name, path, err);
}

static int claim_in(const struct takt_store_config *config, const struct takt_sys *sys, int dirfd,
		    bool make, struct takt_err *err)
{
	struct beside lock;
	int lock_fd, rc = name_beside(config->path, ".lock", &lock, err);

	if (rc < 0)
		return rc;
	rc = config->allow_network_fs ? 0 : check_fs(dirfd, config->path, err);
	if (rc < 0)
		return rc;
	lock_fd = take_lock(sys, dirfd, lock.name, config->path, err);
	if (lock_fd < 0 || !make)
		return lock_fd;
	rc = make_db(sys, dirfd, config->path, err);
	if (rc < 0) {
		(void)sys->close(sys, lock_fd);
		return rc;
	}
	return lock_fd;
}

int takt_store_claim(const struct takt_store_config *config, const struct takt_sys *sys, bool make,
		     int *ret_lock_fd, struct takt_err *err)
{
	int dirfd = open_dir(sys, config->path, err);
	int fd;

	if (dirfd < 0)
		return dirfd;
	fd = claim_in(config, sys, dirfd, make, err);
	(void)sys->close(sys, dirfd);
	if (fd < 0)
		return fd;
	*ret_lock_fd = fd;
	return 0;
}

int takt_store_note_made(const char *path, const struct takt_sys *sys, struct takt_err *err)
{
	struct beside made;
	int dirfd = open_dir(sys, path, err), rc, fd;

	if (dirfd < 0)
		return dirfd;
	rc = name_beside(path, MADE, &made, err);
	if (rc == 0 && is_there(sys, dirfd, made.name, false) != 1) {
		fd = sys->openat(sys, dirfd, made.name, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				 0600);
		rc = fd < 0 ? fd : sys->close(sys, fd);
		if (rc == 0)
			rc = sys->fsync(sys, dirfd);
		if (rc < 0)
			takt_err_set(err, rc, "make '%.100s" MADE "'", path);
	}
	(void)sys->close(sys, dirfd);
	return rc;
}
