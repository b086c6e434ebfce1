/* SPDX-License-Identifier: Apache-2.0 */
/* A file beside the place, and a rename, see the header. */
#include "cli/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int takt_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Another file in its place would leave whoever has this one open with the old one. */
static bool is_open_here(const struct stat *st)
{
	struct stat open_st;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &open_st) == 0 && open_st.st_dev == st->st_dev &&
		    open_st.st_ino == st->st_ino)
			return true;
	return false;
}

static bool is_a_stream(const char *path)
{
	return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/dev/std", 8) == 0 ||
	       strncmp(path, "/proc/", 6) == 0;
}

/* The folder and the name, by no link of others. A stream has none: the kernel follows it. */
static int find(const char *path, struct takt_whole_file *ret, struct takt_err *err)
{
	*ret = (struct takt_whole_file){.path = path, .fd = -1, .way.dirfd = -1};
	return is_a_stream(path) ? 0 : takt_way_open(path, true, &ret->way, err);
}

/* Whether another file may take its place; *ret_st is of the one that is there, st_mode 0 = none
 * is. */
static bool may_replace(const struct takt_whole_file *file, struct stat *ret_st)
{
	const struct takt_way *way = &file->way;

	ret_st->st_mode = 0;
	if (way->dirfd < 0)
		return false;
	if (fstatat(way->dirfd, way->name, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return S_ISREG(ret_st->st_mode) && ret_st->st_nlink == 1 && ret_st->st_uid == geteuid() &&
	       faccessat(way->dirfd, way->name, W_OK, 0) == 0 && !is_open_here(ret_st);
}

static int open_part(struct takt_whole_file *file, const struct stat *before)
{
	if (snprintf(file->part, sizeof(file->part), "%s.%d.part", file->way.name, (int)getpid()) >=
	    (int)sizeof(file->part)) {
		file->part[0] = '\0';
		return -ENAMETOOLONG;
	}
	(void)unlinkat(file->way.dirfd, file->part, 0);
	file->fd =
		openat(file->way.dirfd, file->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (file->fd < 0)
		return -errno;
	if (before->st_mode) {
		(void)!fchown(file->fd, (uid_t)-1, before->st_gid);
		(void)fchmod(file->fd, before->st_mode & 07777);
	}
	return 0;
}

/*
 * What others may have put where they may: a file or pipe of theirs in a folder for all, of which
 * the kernel's protected_regular and protected_fifos say the same, and one more name of a file of
 * the caller's.
 */
static int refuse_planted(const struct takt_whole_file *file, const struct stat *st,
			  struct takt_err *err)
{
	struct stat dir;

	if ((!S_ISREG(st->st_mode) && !S_ISFIFO(st->st_mode)) || fstat(file->way.dirfd, &dir) < 0 ||
	    !takt_way_is_open(&dir, true))
		return 0;
	if (!takt_way_is_trusted(st) && (dir.st_mode & S_ISVTX) && dir.st_uid != st->st_uid)
		return takt_err_set(err, -EPERM,
				    "'%.90s' is user %u's, in a folder that all may write: remove "
				    "it, or write elsewhere",
				    file->path, (unsigned)st->st_uid);
	if (st->st_nlink > 1 && takt_way_is_trusted(st))
		return takt_err_set(err, -EPERM,
				    "'%.90s' is one of %lu names of a file, in a folder that other "
				    "users may write: remove it, or write elsewhere",
				    file->path, (unsigned long)st->st_nlink);
	return 0;
}

/* What is opened is looked at before anything of it is gone. */
static int open_named(struct takt_whole_file *file, struct takt_err *err)
{
	const struct takt_way *way = &file->way;
	struct stat st = {0};
	int rc = 0;

	if (fstatat(way->dirfd, way->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		rc = refuse_planted(file, &st, err);
	if (rc < 0)
		return rc;
	file->fd = openat(way->dirfd, way->name,
			  O_WRONLY | O_CREAT | O_CLOEXEC | (S_ISLNK(st.st_mode) ? 0 : O_NOFOLLOW),
			  0666);
	if (file->fd < 0 || fstat(file->fd, &st) < 0)
		return -errno;
	rc = refuse_planted(file, &st, err);
	if (rc == 0 && S_ISREG(st.st_mode) && ftruncate(file->fd, 0) < 0)
		rc = -errno;
	if (rc < 0)
		close(file->fd);
	return rc;
}

static int open_there(struct takt_whole_file *file, struct takt_err *err)
{
	file->part[0] = '\0';
	if (file->way.dirfd >= 0)
		return open_named(file, err);
	file->fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return file->fd < 0 ? -errno : 0;
}

/* What is refused has said why. */
static int failed(struct takt_whole_file *file, int rc, struct takt_err *err)
{
	takt_way_close(&file->way);
	return rc == -EPERM && err && err->rc == rc
		       ? rc
		       : takt_err_set(err, rc, "write '%s'", file->path);
}

int takt_whole_file_open(const char *path, struct takt_whole_file *ret, struct takt_err *err)
{
	struct stat before;
	int rc = find(path, ret, err);

	if (rc == 0) {
		rc = may_replace(ret, &before) ? open_part(ret, &before) : -EACCES;
		/* Also a file that can be written in a folder that cannot, or with the longest of
		 * names. */
		if (rc == -EACCES || rc == -ENAMETOOLONG)
			rc = open_there(ret, err);
	}
	return rc < 0 ? failed(ret, rc, err) : 0;
}

/* A pipe is not opened: its reader would take the end of this look for its end. */
static int may_be_written(const struct takt_whole_file *file, struct takt_err *err)
{
	int dirfd = file->way.dirfd < 0 ? AT_FDCWD : file->way.dirfd;
	const char *name = file->way.dirfd < 0 ? file->path : file->way.name;
	struct stat st;

	if (fstatat(dirfd, name, &st, 0) < 0)
		return errno == ENOENT ? -EACCES : -errno; /* nor can it be made */
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (faccessat(dirfd, name, W_OK, 0) < 0)
		return -errno;
	return file->way.dirfd < 0 ? 0 : refuse_planted(file, &st, err);
}

int takt_whole_file_check(const char *path, struct takt_err *err)
{
	struct takt_whole_file file;
	struct stat before;
	int rc = find(path, &file, err);

	if (rc == 0) {
		rc = may_replace(&file, &before) ? open_part(&file, &before) : -EACCES;
		if (rc == 0) {
			(void)close(file.fd);
			(void)unlinkat(file.way.dirfd, file.part, 0);
		} else if (rc == -EACCES) {
			rc = may_be_written(&file, err);
		} else if (rc == -ENAMETOOLONG) {
			rc = 0; /* of the file beside it; its own is seen when it is written */
		}
	}
	if (rc < 0)
		return failed(&file, rc, err);
	takt_way_close(&file.way);
	return 0;
}

int takt_whole_file_close(struct takt_whole_file *file, int rc, struct takt_err *err)
{
	int end = 0;

	if (rc == 0 && file->part[0] && fsync(file->fd) < 0)
		end = -errno;
	if (close(file->fd) < 0 && end == 0)
		end = -errno;
	if (rc == 0 && end == 0 && file->part[0] &&
	    renameat(file->way.dirfd, file->part, file->way.dirfd, file->way.name) < 0)
		end = -errno;
	if ((rc < 0 || end < 0) && file->part[0])
		(void)unlinkat(file->way.dirfd, file->part, 0);
	takt_way_close(&file->way);
	if (rc < 0)
		return rc;
	return end < 0 ? takt_err_set(err, end, "write '%s'", file->path) : 0;
}

int takt_whole_file_write(const char *path, const struct takt_str *text, struct takt_err *err)
{
	struct takt_whole_file file;
	int rc = takt_whole_file_open(path, &file, err);

	if (rc < 0)
		return rc;
	rc = takt_write_all(file.fd, takt_str_text(text), text->len);
	if (rc < 0)
		takt_err_set(err, rc, "write '%s'", path);
	return takt_whole_file_close(&file, rc, err);
}
