/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a Unix socket, as the kernel knows it. */
#ifndef TAKT_NET_PEER_H
#define TAKT_NET_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* User, group and process at the time of his connect(). */
int takt_net_peer(int fd, uid_t *ret_uid, gid_t *ret_gid, pid_t *ret_pid, struct takt_err *err);

/* Whether the peer has the group, as his main or as a further one. False when it cannot be known.
 */
bool takt_net_peer_in_group(int fd, gid_t group);

#endif
