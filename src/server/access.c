/* SPDX-License-Identifier: Apache-2.0 */
/* Who may come in: the peer of a Unix socket by the kernel's word, a browser by its Host header. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "net/peer.h"
#include "server/server_impl.h"

static bool is_admin(const struct takt_server *server, int fd, uid_t uid)
{
	if (uid == 0 || (server->config.single_user && uid == server->config.owner_uid))
		return true;
	return server->has_admin_gid && takt_net_peer_in_group(fd, server->admin_gid);
}

bool takt_server_fd_is_admin(void *ctx, int fd)
{
	struct takt_peer peer;

	return takt_server_identify(ctx, fd, &peer, NULL) == 0 && peer.admin;
}

int takt_server_identify(struct takt_server *server, int fd, struct takt_peer *ret,
			 struct takt_err *err)
{
	struct takt_peer peer = {.admin = false};
	int rc = takt_net_peer(fd, &peer.uid, &peer.gid, &peer.pid, err);

	if (rc < 0)
		return rc;
	if (server->config.single_user && peer.uid != 0 && peer.uid != server->config.owner_uid)
		return takt_err_set(err, -EPERM,
				    "this takt belongs to user %u alone; your user id is %u",
				    (unsigned)server->config.owner_uid, (unsigned)peer.uid);
	peer.admin = is_admin(server, fd, peer.uid);
	*ret = peer;
	return 0;
}

/* Length of the host's part of "host:port" and "[v6]:port". */
static size_t host_length(const char *host)
{
	const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;

	return bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");
}

static bool same_host(const char *host, size_t len, const char *name)
{
	return strlen(name) == len && strncasecmp(host, name, len) == 0;
}

/*
 * A page in a browser can make the name of its own site point at 127.0.0.1 and read what it finds
 * there; the Host header still has the site's name. Names that nobody else can own pass.
 */
bool takt_server_host_allowed(const struct takt_server *server, const char *host)
{
	static const char *const always[] = {"localhost", "127.0.0.1", "[::1]", NULL};
	size_t len;

	if (!host)
		return true; /* no browser leaves it out */
	len = host_length(host);
	for (size_t i = 0; always[i]; i++)
		if (same_host(host, len, always[i]))
			return true;
	for (size_t i = 0; server->config.hosts && server->config.hosts[i]; i++)
		if (same_host(host, len, server->config.hosts[i]))
			return true;
	return server->hostname[0] && same_host(host, len, server->hostname);
}
