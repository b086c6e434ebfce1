/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files and directories that survive power loss.
 *
 * A file is replaced whole: write aside, fsync the data, rename, fsync the directory. Without the
 * first fsync the new name may point at nothing, without the second the old name may come back.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

static int write_all(const struct takt_sys *sys, int fd, const char *bytes, size_t n)
{
	size_t done = 0;
	ssize_t put;

	while (done < n) {
		put = sys->pwrite(sys, fd, bytes + done, n - done, (off_t)done);
		if (put <= 0)
			return put < 0 ? (int)put : -EIO;
		done += (size_t)put;
	}
	return 0;
}

/* Contents written and synced under `tmp`; close reports what network file systems held back. */
static int write_aside(const struct takt_sys *sys, int dirfd, const char *tmp, const void *bytes,
		       size_t n, mode_t mode)
{
	int fd, rc, closed;

	rc = sys->unlinkat(sys, dirfd, tmp, 0);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	fd = sys->openat(sys, dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return fd;
	rc = write_all(sys, fd, bytes, n);
	if (rc == 0)
		rc = sys->fsync(sys, fd);
	closed = sys->close(sys, fd);
	return rc < 0 ? rc : closed;
}

int takt_file_write_durable(const struct takt_sys *sys, int dirfd, const char *name,
			    const void *bytes, size_t n, mode_t mode, struct takt_err *err)
{
	char tmp[NAME_MAX + 1];
	int rc;

	if (!name[0] || strchr(name, '/') || dirfd < 0)
		return takt_err_set(err, -EINVAL, "'%s' is not a plain name in an open directory",
				    name);
	if (snprintf(tmp, sizeof(tmp), "%s.tmp", name) >= (int)sizeof(tmp))
		return takt_err_set(err, -ENAMETOOLONG, "write '%.64s...'", name);
	rc = write_aside(sys, dirfd, tmp, bytes, n, mode);
	if (rc == 0)
		rc = sys->renameat(sys, dirfd, tmp, name);
	if (rc < 0) {
		(void)sys->unlinkat(sys, dirfd, tmp, 0);
		return takt_err_set(err, rc, "write '%s'", name);
	}
	rc = sys->fsync(sys, dirfd);
	return rc < 0 ? takt_err_set(err, rc, "sync the directory of '%s'", name) : 0;
}

static int read_all(const struct takt_sys *sys, int fd, struct takt_str *text)
{
	char part[4096];
	ssize_t got;

	for (;;) {
		got = sys->pread(sys, fd, part, sizeof(part), (off_t)text->len);
		if (got <= 0)
			return (int)got;
		if (takt_str_addn(text, part, (size_t)got) < 0)
			return text->rc;
	}
}

/* Closes fd. */
static int read_open(const struct takt_sys *sys, int fd, const char *name, size_t max,
		     char **ret_text, size_t *ret_len, struct takt_err *err)
{
	struct takt_str text = TAKT_STR(max);
	size_t len;
	char *taken;
	int rc = read_all(sys, fd, &text);

	(void)sys->close(sys, fd);
	len = text.len;
	taken = rc < 0 ? NULL : takt_str_take(&text);
	takt_str_fini(&text);
	if (rc == -TAKT_E_LIMIT)
		return takt_err_set(err, rc, "'%s' is longer than %zu bytes", name, max);
	if (!taken)
		return takt_err_set(err, rc < 0 ? rc : -ENOMEM, "read '%s'", name);
	*ret_text = taken;
	*ret_len = len;
	return 0;
}

int takt_file_read(const struct takt_sys *sys, int dirfd, const char *name, size_t max,
		   char **ret_text, size_t *ret_len, struct takt_err *err)
{
	int fd = sys->openat(sys, dirfd, name, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return takt_err_set(err, fd, "open '%s'", name);
	return read_open(sys, fd, name, max, ret_text, ret_len, err);
}

int takt_file_read_plain(const struct takt_sys *sys, int dirfd, const char *name, size_t max,
			 char **ret_text, size_t *ret_len, struct takt_err *err)
{
	int fd = sys->openat(sys, dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;
	int rc;

	if (fd < 0)
		return takt_err_set(err, fd, "open '%s'", name);
	rc = sys->fstat(sys, fd, &st);
	if (rc == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return read_open(sys, fd, name, max, ret_text, ret_len, err);
	(void)sys->close(sys, fd);
	return takt_err_set(err, rc < 0 ? rc : -TAKT_E_CORRUPT, "'%s' is no plain file", name);
}

/* A directory that may be passed through but not read still leads on; it cannot be synced. */
static int open_dir(const struct takt_sys *sys, int at, const char *name)
{
	int fd = sys->openat(sys, at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd == -EACCES)
		fd = sys->openat(sys, at, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return fd;
}

/*
 * One step down: `parent` gets the directory `name`, which is returned open. The parent is synced
 * even if the directory was there, since whoever made it may have been killed before his sync; only
 * then may the sync fail, the parent being perhaps not ours at all.
 */
static int step_down(const struct takt_sys *sys, int parent, const char *name, mode_t mode)
{
	int child = open_dir(sys, parent, name);
	int made = -EEXIST, synced;

	if (child == -ENOENT) {
		made = sys->mkdirat(sys, parent, name, mode);
		if (made < 0 && made != -EEXIST)
			return made;
		child = open_dir(sys, parent, name);
	}
	if (child < 0)
		return child;
	synced = sys->fsync(sys, parent);
	if (synced < 0 && made == 0) {
		(void)sys->close(sys, child);
		return synced;
	}
	return child;
}

/* Cuts the next component off *path into name: 1 found, 0 at the end, -ENAMETOOLONG. */
static int next_component(const char **path, char name[NAME_MAX + 1])
{
	const char *start = *path + strspn(*path, "/");
	size_t len = strcspn(start, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, start, len);
	name[len] = '\0';
	*path = start + len;
	return len > 0;
}

int takt_mkdirs_durable(const struct takt_sys *sys, const char *path, mode_t mode,
			struct takt_err *err)
{
	const char *rest = path;
	char name[NAME_MAX + 1];
	int dir, child, more;

	if (!path[0])
		return takt_err_set(err, -EINVAL, "make directory '': the path is empty");
	dir = open_dir(sys, AT_FDCWD, path[0] == '/' ? "/" : ".");
	if (dir < 0)
		return takt_err_set(err, dir, "make directory '%s'", path);
	while ((more = next_component(&rest, name)) > 0) {
		child = step_down(sys, dir, name, mode);
		(void)sys->close(sys, dir);
		if (child < 0)
			return takt_err_set(err, child, "make directory '%s' at '%s'", path, name);
		dir = child;
	}
	(void)sys->close(sys, dir);
	return more < 0 ? takt_err_set(err, more, "make directory '%s'", path) : 0;
}
