/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Databases that lie where a user has said: SQLite opens files by their names, and makes, reads and
 * removes others beside them, whose names it takes from them. In a folder that another user may
 * write these are his to choose. So it works in a folder of the caller's alone, and what is named
 * is opened once and copied from there or to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_admin.h"
#include "store/store_impl.h"

enum {
	PART_BYTES = 64 * 1024,
};

static const char *const suffixes[] = {"", "-wal", "-journal", "-shm"};

enum {
	READ = 3, /* of these: what a database consists of */
	ALL = sizeof(suffixes) / sizeof(suffixes[0])
};

static int make_folder(const char *parent, struct takt_store_scratch *ret)
{
	struct stat st;

	if (stat(parent, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || takt_way_is_open(&st, false))
		return -EPERM;
	snprintf(ret->dir, sizeof(ret->dir), "%s/takt-XXXXXX", parent);
	if (!mkdtemp(ret->dir)) {
		ret->dir[0] = '\0';
		return -errno;
	}
	snprintf(ret->db, sizeof(ret->db), "%s/takt.db", ret->dir);
	return 0;
}

int takt_store_scratch_make(struct takt_store_scratch *ret, struct takt_err *err)
{
	int rc;

	*ret = (struct takt_store_scratch){.fd = -1};
	rc = make_folder("/var/tmp", ret);
	if (rc < 0 && make_folder("/tmp", ret) == 0)
		rc = 0;
	if (rc < 0)
		return takt_err_set(err, rc, "make a folder in /var/tmp");
	ret->fd = open(ret->db, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ret->fd >= 0)
		return 0;
	rc = takt_err_set(err, -errno, "make '%s'", ret->db);
	takt_store_scratch_drop(ret);
	return rc;
}

void takt_store_scratch_drop(struct takt_store_scratch *scratch)
{
	char path[sizeof(scratch->db) + 16];

	if (scratch->fd >= 0)
		close(scratch->fd);
	scratch->fd = -1;
	if (!scratch->dir[0])
		return;
	for (size_t i = 0; i < ALL; i++) {
		snprintf(path, sizeof(path), "%s%s", scratch->db, suffixes[i]);
		(void)unlink(path);
	}
	(void)rmdir(scratch->dir);
	scratch->dir[0] = '\0';
}

static int write_part(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

static int copy_bytes(int from, int to)
{
	char part[PART_BYTES];
	off_t at = 0;
	int rc = 0;

	while (rc == 0) {
		ssize_t n = pread(from, part, sizeof(part), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		rc = write_part(to, part, (size_t)n);
		at += n;
	}
	return rc;
}

/*
 * From a file.
 */

/* The way's name with `suffix`, opened; waits for nobody at a pipe. */
static int open_part(const struct takt_way *way, const char *suffix)
{
	char name[sizeof(way->name) + 16];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "%s%s", way->name, suffix);
	fd = openat(way->dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -TAKT_E_CORRUPT;
}

static int copy_part(const struct takt_way *way, const char *suffix, const char *to)
{
	char path[sizeof(((struct takt_store_scratch *)0)->db) + 16];
	int from = open_part(way, suffix), fd, rc;

	if (from < 0)
		return from == -ENOENT ? 0 : from;
	snprintf(path, sizeof(path), "%s%s", to, suffix);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	rc = fd < 0 ? -errno : copy_bytes(from, fd);
	if (fd >= 0)
		close(fd);
	close(from);
	return rc;
}

static bool is_changed(const struct stat *was, const struct stat *is)
{
	return was->st_size != is->st_size || was->st_mtim.tv_sec != is->st_mtim.tv_sec ||
	       was->st_mtim.tv_nsec != is->st_mtim.tv_nsec;
}

/* The log is read after the database, which must not change meanwhile. */
static int copy_in(struct takt_store_source *source, const struct takt_way *way, const char *path,
		   struct takt_err *err)
{
	struct stat was, is;
	int rc = fstat(source->fd, &was) < 0 ? -errno : copy_bytes(source->fd, source->scratch.fd);

	for (size_t i = 1; rc == 0 && i < READ; i++)
		rc = copy_part(way, suffixes[i], source->scratch.db);
	if (rc == 0 && fstat(source->fd, &is) < 0)
		rc = -errno;
	if (rc == 0 && is_changed(&was, &is))
		return takt_err_set(err, -TAKT_E_BUSY,
				    "'%s' changes while it is read: try again, or as its owner",
				    path);
	return rc < 0 ? takt_err_set(err, rc, "read '%s'", path) : 0;
}

int takt_store_source_open(const char *path, struct takt_store_source *ret, struct takt_err *err)
{
	struct takt_way way;
	int rc;

	*ret = (struct takt_store_source){.at = path, .fd = -1, .scratch.fd = -1};
	rc = takt_way_open(path, true, &way, err);
	if (rc < 0)
		return rc == -EPERM ? rc : takt_err_set(err, rc, "read '%s'", path);
	ret->fd = open_part(&way, "");
	if (ret->fd == -TAKT_E_CORRUPT) /* SQLite would take a device for an empty database */
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "'%s' is no regular file", path);
	else if (ret->fd < 0)
		rc = takt_err_set(err, ret->fd, "read '%s'", path);
	if (rc == 0 && !way.ours) {
		rc = takt_store_scratch_make(&ret->scratch, err);
		if (rc == 0)
			rc = copy_in(ret, &way, path, err);
		ret->at = ret->scratch.db;
	}
	takt_way_close(&way);
	if (rc < 0)
		takt_store_source_close(ret);
	return rc;
}

void takt_store_source_close(struct takt_store_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
	takt_store_scratch_drop(&source->scratch);
}

/*
 * To a file.
 */

int takt_store_copy_make(const char *path, struct takt_store_copy *ret, struct takt_err *err)
{
	int rc;

	*ret = (struct takt_store_copy){.path = path, .fd = -1};
	rc = takt_way_open(path, false, &ret->way, err);
	if (rc < 0)
		return rc == -EPERM ? rc : takt_err_set(err, rc, "make '%s'", path);
	ret->fd = openat(ret->way.dirfd, ret->way.name,
			 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ret->fd >= 0)
		return 0;
	rc = takt_err_set(err, -errno, "make '%s'", path);
	takt_way_close(&ret->way);
	return rc;
}

int takt_store_copy_fill(struct takt_store_copy *copy, const struct takt_store_scratch *from,
			 struct takt_err *err)
{
	int rc = copy_bytes(from->fd, copy->fd);

	if (rc == 0 && fsync(copy->fd) < 0)
		rc = -errno;
	return rc < 0 ? takt_err_set(err, rc, "write '%s'", copy->path) : 0;
}

/* What has its name by now is let be if it is another file. */
static void remove_made(const struct takt_store_copy *copy)
{
	struct stat made, there;

	if (fstat(copy->fd, &made) == 0 &&
	    fstatat(copy->way.dirfd, copy->way.name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	    made.st_dev == there.st_dev && made.st_ino == there.st_ino)
		(void)unlinkat(copy->way.dirfd, copy->way.name, 0);
}

static void sync_folder(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

int takt_store_copy_end(struct takt_store_copy *copy, int rc, struct takt_err *err)
{
	if (copy->fd < 0)
		return rc;
	if (rc < 0)
		remove_made(copy);
	else
		sync_folder(copy->way.dirfd);
	if (close(copy->fd) < 0 && rc == 0)
		rc = takt_err_set(err, -errno, "write '%s'", copy->path);
	copy->fd = -1;
	takt_way_close(&copy->way);
	return rc;
}
