/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a root. An image's links lead wherever its maker liked: where one stands in the way
 * of something that is to be written, it is refused. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "setup/setup_impl.h"

/* The folder of `path` without its last part; "/" for what lies at the top. */
static int split(const char *path, char dir[TAKT_SETUP_PATH], char name[256])
{
	const char *slash = strrchr(path, '/');

	if (!slash || !takt_strcpy(name, 256, slash + 1) || !name[0])
		return -EINVAL;
	if (!takt_strcpy(dir, TAKT_SETUP_PATH, path))
		return -ENAMETOOLONG;
	dir[slash == path ? 1 : slash - path] = '\0';
	return 0;
}

static int step(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc = fd < 0 ? -errno : fd;
	struct stat st;

	if (rc == -ENOTDIR && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		rc = -ELOOP;
	close(dirfd);
	return rc;
}

static int walk(const char *root, const char *dir)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	if (fd < 0)
		return -errno;
	while (fd >= 0 && dir[strspn(dir, "/")]) {
		size_t len;

		dir += strspn(dir, "/");
		len = strcspn(dir, "/");
		if (len >= sizeof(name)) {
			close(fd);
			return -ENAMETOOLONG;
		}
		memcpy(name, dir, len);
		name[len] = '\0';
		dir += len;
		fd = step(fd, name);
	}
	return fd;
}

int takt_setup_open(const char *root, const char *path, struct takt_setup_spot *ret)
{
	char dir[TAKT_SETUP_PATH];
	int rc = split(path, dir, ret->name);

	if (rc < 0)
		return rc;
	if (root[0]) {
		ret->dirfd = walk(root, dir);
		return ret->dirfd < 0 ? ret->dirfd : 0;
	}
	ret->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->dirfd < 0 ? -errno : 0;
}

int takt_setup_stat(const char *root, const char *path, struct stat *ret)
{
	struct takt_setup_spot spot;
	int rc = takt_setup_open(root, path, &spot);

	if (rc < 0)
		return rc;
	rc = fstatat(spot.dirfd, spot.name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	close(spot.dirfd);
	return rc;
}

static int read_file(int fd, struct takt_str *ret)
{
	char part[4096];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0)
		if (takt_str_addn(ret, part, (size_t)n) < 0)
			return ret->rc;
	return n < 0 ? -errno : 0;
}

static int read_link(const struct takt_setup_spot *spot, struct takt_str *ret)
{
	char target[TAKT_SETUP_PATH];
	ssize_t n = readlinkat(spot->dirfd, spot->name, target, sizeof(target));

	if (n < 0)
		return -errno;
	return n == sizeof(target) ? -ENAMETOOLONG : takt_str_addn(ret, target, (size_t)n);
}

int takt_setup_text_of(const char *root, const char *path, struct takt_str *ret)
{
	struct takt_setup_spot spot;
	struct stat st;
	int fd = -1, rc = takt_setup_open(root, path, &spot);

	if (rc < 0)
		return rc;
	if (fstatat(spot.dirfd, spot.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		rc = -errno;
	else if (root[0] && S_ISLNK(st.st_mode))
		rc = read_link(&spot, ret);
	else if ((fd = openat(spot.dirfd, spot.name, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
		rc = -errno;
	else
		rc = fstat(fd, &st) < 0	    ? -errno
		     : !S_ISREG(st.st_mode) ? -EEXIST
					    : read_file(fd, ret);
	if (fd >= 0)
		close(fd);
	close(spot.dirfd);
	return rc;
}

int takt_setup_rename(const char *root, const char *from, const char *to)
{
	struct takt_setup_spot spot;
	const char *name = strrchr(to, '/') + 1;
	int rc = takt_setup_open(root, from, &spot);

	if (rc < 0)
		return rc;
	rc = renameat(spot.dirfd, spot.name, spot.dirfd, name) < 0 ? -errno : 0;
	if (rc == 0)
		(void)fsync(spot.dirfd);
	close(spot.dirfd);
	return rc;
}

int takt_setup_unlink(const char *root, const char *path, bool folder)
{
	struct takt_setup_spot spot;
	int rc = takt_setup_open(root, path, &spot);

	if (rc < 0)
		return rc;
	rc = unlinkat(spot.dirfd, spot.name, folder ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
	close(spot.dirfd);
	return rc;
}
