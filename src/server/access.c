/* SPDX-License-Identifier: Apache-2.0 */
/* Who may come in: the peer of a Unix socket by the kernel's word, a browser by its Host header. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/user_name.h"
#include "net/peer.h"
#include "server/server_impl.h"

enum {
	MAX_GROUPS = 512
};

static const uint64_t fresh_ns = 10 * TAKT_NS_PER_S;

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

static bool has_group(const char *name, gid_t main, gid_t wanted)
{
	gid_t groups[MAX_GROUPS];
	int n = MAX_GROUPS;

	if (getgrouplist(name, main, groups, &n) < 0)
		n = MAX_GROUPS;
	for (int i = 0; i < n; i++)
		if (groups[i] == wanted)
			return true;
	return false;
}

static void look_up(const struct takt_server *server, uid_t uid, struct takt_account *ret)
{
	struct passwd pw, *found = NULL;
	char text[4096];

	*ret = (struct takt_account){.uid = uid};
	if (getpwuid_r(uid, &pw, text, sizeof(text), &found) != 0 || !found) {
		snprintf(ret->name, sizeof(ret->name), "%u", (unsigned)uid);
		return;
	}
	ret->found = true;
	ret->gid = pw.pw_gid;
	takt_strcpy(ret->name, sizeof(ret->name), pw.pw_name);
	ret->in_admin_group =
		server->has_admin_gid && has_group(pw.pw_name, pw.pw_gid, server->admin_gid);
}

/* Each answer of the C library reads a file or asks a server of the network. */
static const struct takt_account *account(struct takt_server *server, uid_t uid)
{
	struct takt_account *at = &server->accounts[uid % TAKT_ACCOUNTS];
	uint64_t now_ns = takt_mono_now(takt_sys_real()).ns;

	if (at->uid != uid || at->until_ns <= now_ns) {
		look_up(server, uid, at);
		at->until_ns = now_ns + fresh_ns;
	}
	return at;
}

const char *takt_server_user_name(struct takt_server *server, uid_t uid)
{
	return account(server, uid)->name;
}

int takt_server_identify_uid(struct takt_server *server, uid_t uid, struct takt_peer *ret,
			     struct takt_err *err)
{
	const struct takt_account *who = account(server, uid);
	bool owner = server->config.single_user && uid == server->config.owner_uid;

	if (uid == 0)
		return takt_err_set(err, -EPERM, "a token is never root's");
	if (!who->found)
		return takt_err_set(err, -EPERM, "the token's account %u is no more",
				    (unsigned)uid);
	if (check_single(server, uid, err) < 0)
		return -EPERM;
	*ret = (struct takt_peer){
		.uid = uid, .gid = who->gid, .admin = owner || who->in_admin_group};
	return 0;
}

int takt_server_find_user(const char *user, uid_t *ret, struct takt_err *err)
{
	return takt_user_find(user, ret)
		       ? 0
		       : takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no user '%.40s'", user);
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
