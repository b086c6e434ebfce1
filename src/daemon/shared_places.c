/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_places.h. */
#include "daemon/shared_places.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

int takt_runtime_dir_check(const char *path, struct takt_err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return takt_err_set(err, -errno, "runtime_dir '%s'", path);
	if (st.st_uid != getuid() && st.st_uid != 0)
		return takt_err_set(err, -EPERM,
				    "runtime_dir '%s' belongs to another user (uid %u)", path,
				    st.st_uid);
	if (st.st_mode & 0022)
		return takt_err_set(err, -EPERM,
				    "runtime_dir '%s' may be written by others; chmod go-w it",
				    path);
	return 0;
}

void takt_lock_owner(int fd, char *ret, size_t size)
{
	ssize_t n = pread(fd, ret, size - 1, 0);

	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (!ret[0])
		takt_strcpy(ret, size, "another takt");
}

bool takt_lock_is_held(const char *path, char *ret_owner, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool held;

	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	if (held)
		takt_lock_owner(fd, ret_owner, size);
	close(fd);
	return held;
}
