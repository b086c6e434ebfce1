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

/* Whether another file may take the place that `target` is then; *ret_st is of the one that is
 * there, st_mode 0 = none is. */
static bool may_replace(const char *path, char target[PATH_MAX], struct stat *ret_st)
{
	ret_st->st_mode = 0;
	if (lstat(path, ret_st) < 0)
		return errno == ENOENT && snprintf(target, PATH_MAX, "%s", path) < PATH_MAX;
	if (is_a_stream(path) || !realpath(path, target) || stat(target, ret_st) < 0)
		return false;
	return S_ISREG(ret_st->st_mode) && ret_st->st_nlink == 1 && ret_st->st_uid == geteuid() &&
	       access(target, W_OK) == 0 && !is_open_here(ret_st);
}

static int open_part(struct takt_whole_file *file, const struct stat *before)
{
	if (snprintf(file->part, sizeof(file->part), "%s.%d.part", file->target, (int)getpid()) >=
	    (int)sizeof(file->part))
		return -ENAMETOOLONG;
	(void)unlink(file->part);
	file->fd = open(file->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (file->fd < 0)
		return -errno;
	if (before->st_mode) {
		(void)!fchown(file->fd, (uid_t)-1, before->st_gid);
		(void)fchmod(file->fd, before->st_mode & 07777);
	}
	return 0;
}

static int open_there(struct takt_whole_file *file)
{
	file->part[0] = '\0';
	file->fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return file->fd < 0 ? -errno : 0;
}

int takt_whole_file_open(const char *path, struct takt_whole_file *ret, struct takt_err *err)
{
	struct stat before;
	int rc = -EACCES;

	*ret = (struct takt_whole_file){.path = path};
	if (may_replace(path, ret->target, &before))
		rc = open_part(ret, &before);
	/* Also a file that can be written in a folder that cannot, or with the longest of names. */
	if (rc == -EACCES || rc == -ENAMETOOLONG)
		rc = open_there(ret);
	return rc < 0 ? takt_err_set(err, rc, "write '%s'", path) : 0;
}

/* A pipe is not opened: its reader would take the end of this look for its end. */
static int may_be_written(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, W_OK) < 0 ? -errno : 0;
}

int takt_whole_file_check(const char *path, struct takt_err *err)
{
	struct takt_whole_file file = {.path = path};
	struct stat before;
	int rc = -EACCES;

	if (may_replace(path, file.target, &before))
		rc = open_part(&file, &before);
	if (rc == 0) {
		(void)close(file.fd);
		(void)unlink(file.part);
	} else if (rc == -EACCES) {
		rc = may_be_written(path);
		rc = rc == -ENOENT ? -EACCES : rc; /* nor can it be made */
	} else if (rc == -ENAMETOOLONG) {
		rc = 0; /* of the file beside it; its own is seen when it is written */
	}
	return rc < 0 ? takt_err_set(err, rc, "write '%s'", path) : 0;
}

int takt_whole_file_close(struct takt_whole_file *file, int rc, struct takt_err *err)
{
	int end = 0;

	if (rc == 0 && file->part[0] && fsync(file->fd) < 0)
		end = -errno;
	if (close(file->fd) < 0 && end == 0)
		end = -errno;
	if (rc == 0 && end == 0 && file->part[0] && rename(file->part, file->target) < 0)
		end = -errno;
	if ((rc < 0 || end < 0) && file->part[0])
		(void)unlink(file->part);
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
