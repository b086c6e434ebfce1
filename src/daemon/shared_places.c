/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_places.h. */
#include "daemon/shared_places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/user_name.h"

enum {
	LOCKS_MAX = 4 << 20 /* of /proc/locks */
};

int takt_own_dir_check(const char *setting, const char *path, struct takt_err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return takt_err_set(err, -errno, "%s '%s'", setting, path);
	if (st.st_uid != getuid() && st.st_uid != 0)
		return takt_err_set(err, -EPERM, "%s '%s' belongs to another user (uid %u)",
				    setting, path, st.st_uid);
	if (st.st_mode & 0022)
		return takt_err_set(err, -EPERM, "%s '%s' may be written by others; chmod go-w it",
				    setting, path);
	return 0;
}

/* Whether only root can have put it where it is, whoever it is for. */
static bool root_has_placed(const char *path)
{
	char above[TAKT_CONFIG_PATH + 8];
	struct stat st;

	snprintf(above, sizeof(above), "%s/..", path);
	return stat(above, &st) == 0 && st.st_uid == 0 && !(st.st_mode & 0022);
}

int takt_service_dir_check(const char *setting, const char *path, struct takt_err *err)
{
	struct stat st;

	if (getuid() == 0 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & 0022) &&
	    root_has_placed(path))
		return 0;
	return takt_own_dir_check(setting, path, err);
}

/* "3: FLOCK  ADVISORY  WRITE 812 08:01:4711 0 EOF" */
static bool find_holder(const struct stat *st, int *ret_pid)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	unsigned int major, minor;
	unsigned long long inode;
	char *save = NULL;
	size_t len;

	if (takt_file_read(takt_sys_real(), AT_FDCWD, "/proc/locks", LOCKS_MAX, &text, &len, NULL) <
	    0)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%llu", ret_pid, &major, &minor,
			   &inode) == 4 &&
		    *ret_pid > 0 && inode == st->st_ino && makedev(major, minor) == st->st_dev)
			return true;
	return false;
}

void takt_lock_owner(int fd, char *ret, size_t size)
{
	TAKT_CLEANUP(freep) char *comm = NULL;
	struct stat st;
	char path[40], user[33];
	size_t len;
	int pid;

	takt_strcpy(ret, size, "another process");
	if (fstat(fd, &st) < 0 || !find_holder(&st, &pid))
		return;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (takt_file_read(takt_sys_real(), AT_FDCWD, path, 64, &comm, &len, NULL) < 0)
		return;
	comm[strcspn(comm, "\n")] = '\0';
	snprintf(ret, size, "%s (pid %d, user %s)", comm, pid,
		 takt_user_text(st.st_uid, user, sizeof(user)));
}

bool takt_lock_is_held(const char *path, char *ret_owner, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool held;

	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	if (held && size > 0)
		takt_lock_owner(fd, ret_owner, size);
	close(fd);
	return held;
}

static bool is_locked_in(const char *dir, const char *uuid, char *ret_owner, size_t size)
{
	char path[TAKT_CONFIG_PATH + 128];

	snprintf(path, sizeof(path), "%s/takt-%s.lock", dir, uuid);
	return takt_lock_is_held(path, ret_owner, size);
}

bool takt_gpu_is_roots(const struct takt_config *config, const char *uuid, char *ret_owner,
		       size_t size)
{
	return getuid() != 0 && is_locked_in(config->root_lock_dir, uuid, ret_owner, size);
}

bool takt_gpu_is_locked(const struct takt_config *config, const char *uuid, char *ret_owner,
			size_t size)
{
	return takt_gpu_is_roots(config, uuid, ret_owner, size) ||
	       is_locked_in(config->lock_dir, uuid, ret_owner, size);
}
