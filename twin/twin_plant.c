/* SPDX-License-Identifier: Apache-2.0 */
/* See twin_plant.h. */
#include "twin_plant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A few small files for each of a machine's GPUs; a program that mistakes such a folder for a
 * place to store things is stopped here. */
#define MEMORY "mode=755,size=16m"

int twin_plant_begin(struct takt_err *err)
{
	if (unshare(CLONE_NEWNS) != 0)
		return takt_err_set(err, -errno,
				    "make a mount namespace for --faces, which needs root");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return takt_err_set(err, -errno, "keep the mounts of --faces from the machine");
	return 0;
}

/* A symbolic link is made anew, not mounted: what it points to may be what gets covered. */
static int copy_link(int old, const char *name, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(old, name, target, sizeof(target) - 1);

	if (n < 0)
		return -1;
	target[n] = '\0';
	return symlink(target, path);
}

static int make_place(const char *path, mode_t mode)
{
	if (S_ISDIR(mode))
		return mkdir(path, 0755);
	return mknod(path, S_IFREG | 0644, 0);
}

static int keep_entry(int old, const char *folder, const char *name)
{
	char path[PATH_MAX], from[PATH_MAX];
	struct stat st;

	if (fstatat(old, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -1; /* gone meanwhile */
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", old, name);
	if (S_ISLNK(st.st_mode))
		return copy_link(old, name, path);
	if (make_place(path, st.st_mode) != 0)
		return -1;
	if (mount(from, path, NULL, MS_BIND | MS_REC, NULL) == 0)
		return 0;
	return errno == ENOENT && remove(path) == 0 ? 0 : -1;
}

static int keep_entries(DIR *old, const char *folder, struct takt_err *err)
{
	const struct dirent *entry;

	while ((entry = readdir(old))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (keep_entry(dirfd(old), folder, entry->d_name) != 0)
			return takt_err_set(err, -errno, "keep '%s/%s' for --faces", folder,
					    entry->d_name);
	}
	return 0;
}

int twin_plant_cover(const char *folder, struct takt_err *err)
{
	DIR *old = opendir(folder);
	int rc;

	if (!old)
		return takt_err_set(err, -errno, "open '%s' for --faces", folder);
	if (mount("takt-twin", folder, "tmpfs", MS_NOSUID | MS_NOEXEC, MEMORY) == 0)
		rc = keep_entries(old, folder, err);
	else
		rc = takt_err_set(err, -errno, "cover '%s' for --faces", folder);
	closedir(old);
	return rc;
}

/* Whatever has this name in a covered folder was mounted there or made by us. */
static void make_room(const char *path)
{
	umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	remove(path);
}

static int made(int result, const char *path, struct takt_err *err)
{
	return result == 0 ? 0 : takt_err_set(err, -errno, "make '%s' for --faces", path);
}

int twin_plant_folder(const char *path, struct takt_err *err)
{
	make_room(path);
	return made(mkdir(path, 0755), path, err);
}

int twin_plant_link(const char *path, const char *target, struct takt_err *err)
{
	make_room(path);
	return made(symlink(target, path), path, err);
}

int twin_plant_node(const char *path, uint32_t major, uint32_t minor, struct takt_err *err)
{
	make_room(path);
	if (mknod(path, S_IFCHR | 0666, makedev(major, minor)) != 0)
		return made(-1, path, err);
	return made(chmod(path, 0666), path, err); /* whatever the umask */
}

int twin_plant_file(const char *path, const void *data, size_t size, struct takt_err *err)
{
	ssize_t n;
	int fd;

	make_room(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return made(-1, path, err);
	n = write(fd, data, size);
	close(fd);
	if (n >= 0 && (size_t)n != size)
		errno = ENOSPC;
	return made((size_t)n == size ? 0 : -1, path, err);
}

int twin_plant_over(const char *path, const char *from, struct takt_err *err)
{
	if (mount(from, path, NULL, MS_BIND, NULL) != 0)
		return takt_err_set(err, -errno, "cover '%s' for --faces", path);
	return made(unlink(from), from, err);
}
