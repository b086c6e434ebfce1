/* SPDX-License-Identifier: Apache-2.0 */
/* SO_PEERCRED and SO_PEERGROUPS. */
#include "net/peer.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/mem.h"

int takt_net_peer(int fd, uid_t *ret_uid, gid_t *ret_gid, pid_t *ret_pid, struct takt_err *err)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return takt_err_set(err, -errno, "ask who is at the other end of a socket");
	*ret_uid = cred.uid;
	*ret_gid = cred.gid;
	*ret_pid = cred.pid;
	return 0;
}

static bool in_list(int fd, gid_t group, gid_t *groups, socklen_t size)
{
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t i = 0; i < size / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

bool takt_net_peer_in_group(int fd, gid_t group)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	gid_t few[64], *many;
	bool found;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0 && cred.gid == group)
		return true;
	size = sizeof(few);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &size) == 0)
		return in_list(fd, group, few, sizeof(few));
	/* The kernel has written how much room it needs. */
	if (errno != ERANGE)
		return false;
	many = takt_alloc(size);
	found = many && in_list(fd, group, many, size);
	takt_free(many);
	return found;
}
