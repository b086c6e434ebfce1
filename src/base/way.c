/* SPDX-License-Identifier: Apache-2.0 */
/* Part by part, each looked at by a descriptor, see the header. */
#include "base/way.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"

enum {
	MOST_LINKS = 40, /* as the kernel's */
	GO_ON = 1,
};

#define PROC_MAGIC 0x9fa0 /* of linux/magic.h */

struct walk {
	const char *path; /* as it was named */
	char rest[PATH_MAX];
	unsigned links;
	bool follow;
	struct takt_way *way;
};

bool takt_way_is_trusted(const struct stat *st)
{
	struct stat top;

	return st->st_uid == 0 || st->st_uid == geteuid() ||
	       (stat("/", &top) == 0 && st->st_uid == top.st_uid);
}

bool takt_way_is_open(const struct stat *folder, bool sticky_too)
{
	if (!takt_way_is_trusted(folder))
		return true;
	return (folder->st_mode & (S_IWGRP | S_IWOTH)) &&
	       (sticky_too || !(folder->st_mode & S_ISVTX));
}

/* EPERM is for links of others. */
static int failed(void)
{
	return errno == EPERM ? -EACCES : -errno;
}

static int enter(struct walk *walk, int fd)
{
	struct stat st;

	if (fd < 0)
		return failed();
	if (walk->way->dirfd >= 0)
		close(walk->way->dirfd);
	walk->way->dirfd = fd;
	if (fstat(fd, &st) < 0)
		return failed();
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	walk->way->ours = walk->way->ours && !takt_way_is_open(&st, false);
	return GO_ON;
}

static int refuse_link(const struct walk *walk, const struct stat *st, struct takt_err *err)
{
	return takt_err_set(err, -EPERM,
			    "'%.80s' leads over user %u's link '%.40s', in a folder that others "
			    "may write: name the file itself, or remove the link",
			    walk->path, (unsigned)st->st_uid, walk->way->name);
}

/* What the link says comes before what is left of the path. */
static int take_link(struct walk *walk, int link_fd, struct takt_err *err)
{
	char target[PATH_MAX], left[PATH_MAX];
	struct stat st, dir;
	ssize_t n;

	if (fstat(link_fd, &st) < 0 || fstat(walk->way->dirfd, &dir) < 0)
		return failed();
	if (!takt_way_is_trusted(&st) && takt_way_is_open(&dir, true))
		return refuse_link(walk, &st, err);
	if (++walk->links > MOST_LINKS)
		return -ELOOP;
	n = readlinkat(link_fd, "", target, sizeof(target) - 1);
	if (n < 0)
		return failed();
	target[n] = '\0';
	takt_strcpy(left, sizeof(left), walk->rest);
	if (snprintf(walk->rest, PATH_MAX, "%s%s", target, left) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (target[0] != '/')
		return GO_ON;
	return enter(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static bool is_of_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_MAGIC;
}

/* The next part becomes the name; what is left begins with a slash, or is nothing. */
static int cut_part(struct walk *walk)
{
	const char *part = walk->rest + strspn(walk->rest, "/");
	size_t len = strcspn(part, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(walk->way->name, len ? part : ".", len ? len : 1);
	walk->way->name[len ? len : 1] = '\0';
	memmove(walk->rest, part + len, strlen(part + len) + 1);
	return 0;
}

static int take_part(struct walk *walk, struct takt_err *err)
{
	int rc = cut_part(walk), fd;
	const char *name = walk->way->name;
	bool last = !walk->rest[0];
	struct stat st;

	if (rc < 0 || (last && (!walk->follow || strcmp(name, ".") == 0)))
		return rc;
	fd = openat(walk->way->dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return last && errno == ENOENT ? 0 : failed();
	if (fstat(fd, &st) < 0)
		rc = failed();
	else if (S_ISLNK(st.st_mode) && !is_of_proc(fd))
		rc = take_link(walk, fd, err);
	else if (!last && S_ISLNK(st.st_mode))
		rc = enter(walk, openat(walk->way->dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC));
	else if (!last)
		return enter(walk, fd);
	close(fd);
	return rc;
}

/* Whether the folder that we are in is nobody else's, nor any above it. */
static bool is_here_ours(void)
{
	struct stat st, above = {0};
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool ours = fd >= 0, top = false;

	while (ours && !top) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		ours = up >= 0 && fstat(fd, &st) == 0 && fstat(up, &above) == 0 &&
		       !takt_way_is_open(&st, false);
		top = ours && st.st_dev == above.st_dev && st.st_ino == above.st_ino;
		close(fd);
		fd = up;
	}
	if (fd >= 0)
		close(fd);
	return ours;
}

int takt_way_open(const char *path, bool follow, struct takt_way *ret, struct takt_err *err)
{
	struct walk walk = {.path = path, .follow = follow, .way = ret};
	struct stat folder;
	int rc;

	*ret = (struct takt_way){.dirfd = -1, .ours = path[0] == '/' || is_here_ours()};
	if (!path[0])
		return -ENOENT;
	if (!takt_strcpy(walk.rest, PATH_MAX, path))
		return -ENAMETOOLONG;
	rc = enter(&walk, open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	while (rc == GO_ON)
		rc = take_part(&walk, err);
	if (rc == 0 && fstat(ret->dirfd, &folder) < 0)
		rc = failed();
	if (rc == 0)
		ret->ours = ret->ours && !takt_way_is_open(&folder, true);
	else
		takt_way_close(ret);
	return rc;
}

void takt_way_close(struct takt_way *way)
{
	if (way->dirfd >= 0)
		close(way->dirfd);
	way->dirfd = -1;
}
