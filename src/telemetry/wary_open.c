/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/wary_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_whose.h"

/* A pipe or a lease of its owner's does not hold us up; a mount of his is not entered at all. */
int takt_wary_open(int dirfd, const char *path, uid_t owner, struct stat *ret_stat)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : -TAKT_E_CORRUPT;
	if (fstat(fd, ret_stat) == 0 && S_ISREG(ret_stat->st_mode) &&
	    takt_file_whose(fd, ret_stat) == owner)
		return fd;
	close(fd);
	return -TAKT_E_CORRUPT;
}
