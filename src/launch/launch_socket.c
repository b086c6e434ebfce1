/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's address, and listening at it. */
#include "launch/launch_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "launch/launch.h"

int takt_launch_address(const char *path, struct sockaddr_un *ret, struct takt_err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (!path[0] || !takt_strcpy(addr.sun_path, sizeof(addr.sun_path), path))
		return takt_err_set(err, -EINVAL, "socket path '%s': 1 to %zu bytes are accepted",
				    path, sizeof(addr.sun_path) - 1);
	*ret = addr;
	return 0;
}

/* Whether nobody answers at an address that is taken. */
static int is_dead(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int dead;

	if (fd < 0)
		return 0;
	dead = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 &&
	       errno == ECONNREFUSED;
	close(fd);
	return dead;
}

static int bind_and_listen(int fd, const struct sockaddr_un *addr)
{
	const struct sockaddr *any = (const struct sockaddr *)addr;
	mode_t mask = umask(0177);
	int rc = bind(fd, any, sizeof(*addr)) < 0 ? -errno : 0;

	if (rc == -EADDRINUSE && is_dead(addr)) {
		(void)unlink(addr->sun_path);
		rc = bind(fd, any, sizeof(*addr)) < 0 ? -errno : 0;
	}
	umask(mask);
	if (rc == 0 && listen(fd, 4) < 0)
		rc = -errno;
	return rc;
}

int takt_launch_listen(const char *path, struct takt_err *err)
{
	struct sockaddr_un addr;
	int fd, rc;

	rc = takt_launch_address(path, &addr, err);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return takt_err_set(err, -errno, "make a socket");
	rc = bind_and_listen(fd, &addr);
	if (rc == 0)
		return fd;
	close(fd);
	if (rc == -EADDRINUSE)
		return takt_err_set(err, -TAKT_E_BUSY, "somebody listens at '%s'", path);
	return takt_err_set(err, rc, "listen at '%s'", path);
}
