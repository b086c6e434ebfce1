/* SPDX-License-Identifier: Apache-2.0 */
/* Who may come in: the peer of a Unix socket by the kernel's word, a browser by its Host header. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/known_users.h"
#include "base/str.h"
#include "net/listen.h"
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
	struct takt_peer peer = {.admin = false};

	return takt_server_identify(ctx, fd, &peer, NULL) == 0 && peer.admin;
}

static int check_single(const struct takt_server *server, uid_t uid, struct takt_err *err)
{
	if (server->config.single_user && uid != 0 && uid != server->config.owner_uid)
		return takt_err_set(err, -EPERM,
				    "this takt belongs to user %u alone; your user id is %u; users "
				    "= all serves everybody",
				    (unsigned)server->config.owner_uid, (unsigned)uid);
	return 0;
}

int takt_server_identify(struct takt_server *server, int fd, struct takt_peer *ret,
			 struct takt_err *err)
{
	struct takt_peer peer = {.admin = false};
	int rc = takt_net_peer(fd, &peer.uid, &peer.gid, &peer.pid, err);

	if (rc == 0)
		rc = check_single(server, peer.uid, err);
	if (rc < 0)
		return rc;
	peer.admin = is_admin(server, fd, peer.uid);
	*ret = peer;
	return 0;
}

void takt_server_user_name(uid_t uid, char *ret, size_t size)
{
	struct takt_known_user account;

	if (takt_known_user_of(uid, &account) == 0 && account.found)
		takt_strcpy(ret, size, account.name);
	else
		snprintf(ret, size, "%u", (unsigned)uid);
}

static int no_word(const char *of, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_UNAVAILABLE,
			    "the system has not said yet who user '%.40s' is; ask again", of);
}

int takt_server_identify_uid(struct takt_server *server, uid_t uid, struct takt_peer *ret,
			     struct takt_err *err)
{
	bool owner = server->config.single_user && uid == server->config.owner_uid;
	gid_t group = server->has_admin_gid ? server->admin_gid : (gid_t)-1;
	struct takt_known_user who;
	char number[16];

	if (uid == 0 && !owner)
		return takt_err_set(err, -EPERM,
				    "there are no tokens for root where takt serves all users; "
				    "name an account with --user");
	snprintf(number, sizeof(number), "%u", (unsigned)uid);
	if (takt_known_user_in_group(uid, group, &who) < 0)
		return no_word(number, err);
	if (!who.found)
		return takt_err_set(err, -EPERM, "the token's account %u is no more",
				    (unsigned)uid);
	if (check_single(server, uid, err) < 0)
		return -EPERM;
	*ret = (struct takt_peer){
		.uid = uid,
		.gid = who.gid,
		.admin = owner || (server->has_admin_gid && who.in_group),
	};
	return 0;
}

int takt_server_find_user(const char *user, uid_t *ret, struct takt_err *err)
{
	int rc = takt_known_user_find(user, ret);

	if (rc == -EAGAIN)
		return no_word(user, err);
	return rc < 0 ? takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no user '%.40s'", user) : 0;
}

/* Length of the host's part of "host:port" and "[v6]:port". */
static size_t host_length(const char *host)
{
	const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;

	return bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");
}

/* Behind that there is a port or nothing; else it is no host of ours but how another's begins
 * ("127.0.0.1:80@evil.example"). */
static bool is_port(const char *rest)
{
	return !rest[0] || (rest[0] == ':' && rest[1 + strspn(rest + 1, "0123456789")] == '\0');
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
	if (!is_port(host + len))
		return false;
	for (size_t i = 0; always[i]; i++)
		if (same_host(host, len, always[i]))
			return true;
	for (size_t i = 0; server->config.hosts && server->config.hosts[i]; i++)
		if (same_host(host, len, server->config.hosts[i]))
			return true;
	return server->hostname[0] && same_host(host, len, server->hostname);
}

/* Whoever comes from elsewhere needs a name; where only this machine comes in, its number will do.
 * A certificate is for a name. */
static const char *page_host(const struct takt_server *server, bool loopback, bool v6)
{
	if (loopback)
		return server->config.web_tls ? "localhost" : v6 ? "[::1]" : "127.0.0.1";
	if (server->config.hosts && server->config.hosts[0])
		return server->config.hosts[0];
	return server->hostname[0] ? server->hostname : "localhost";
}

void takt_server_page_address(const struct takt_server *server, char *ret, size_t size)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t len = sizeof(at);
	int fd = server->config.web_fd;
	bool v6;

	ret[0] = '\0';
	if (fd < 0 || getsockname(fd, &at.any, &len) < 0)
		return;
	v6 = at.any.sa_family == AF_INET6;
	snprintf(ret, size, "%s://%s:%u/", server->config.web_tls ? "https" : "http",
		 page_host(server, takt_net_is_loopback(fd), v6),
		 (unsigned)ntohs(v6 ? at.v6.sin6_port : at.v4.sin_port));
}
