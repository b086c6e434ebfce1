/* SPDX-License-Identifier: Apache-2.0 */
/* The server object: two listening sockets, one descriptor, one pump. */
#include "server/server.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "server/pending_impl.h"
#include "server/server_impl.h"

enum {
	DEFAULT_CONNECTIONS = 256,
	METRICS_CONNECTIONS = 32,
	ADMIN_RESERVE = 16,
	PART_OF_A_USER = 4, /* a quarter */
	IDLE_S = 30,
	FIRST_S = 10, /* over TCP, for the first request */
	MAX_METRICS_BODY = 1024,
};

static void on_gone(void *ctx, struct takt_http_request *http)
{
	struct takt_held *held = http->user;

	if (held->kind == TAKT_HELD_PENDING)
		takt_server_pending_gone((struct takt_pending *)held);
	else if (held->kind == TAKT_HELD_LISTENER)
		takt_server_listener_gone((struct listener *)held);
	else if (held->kind == TAKT_HELD_TURN)
		takt_server_turn_gone((struct takt_waiting_turn *)held);
	else
		takt_server_follower_gone((struct follower *)held);
}

static int watch(struct takt_server *server, struct takt_http *http, struct takt_err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, takt_http_fd(http), &event) < 0)
		return takt_err_set(err, -errno, "watch the server's sockets");
	return 0;
}

static unsigned part(unsigned max_connections)
{
	unsigned quarter = max_connections / PART_OF_A_USER;

	return quarter > 0 ? quarter : 1;
}

static unsigned reserve(unsigned max_connections)
{
	unsigned quarter = max_connections / PART_OF_A_USER;

	return quarter < ADMIN_RESERVE ? quarter : ADMIN_RESERVE;
}

/* Half of an address's share: users who come from one address do not shut each other out. */
static unsigned claims(unsigned max_connections)
{
	unsigned half = part(max_connections) / 2;

	return half > 0 ? half : 1;
}

static int open_unix(struct takt_server *server, struct takt_err *err)
{
	unsigned most = server->config.max_connections;
	const struct takt_http_config http = {
		.listen_fd = server->config.unix_fd,
		.max_connections = most,
		.user_share = part(most),
		.admin_reserve = reserve(most),
		.is_admin = takt_server_fd_is_admin,
		.idle_s = IDLE_S,
		.max_body = TAKT_SPEC_MAX_BYTES,
		.request = takt_server_on_unix,
		.gone = on_gone,
		.ctx = server,
	};
	int rc = takt_http_new(&http, &server->unix_http, err);

	return rc < 0 ? rc : watch(server, server->unix_http, err);
}

static int open_tcp(struct takt_server *server, struct takt_err *err)
{
	const struct takt_http_config http = {
		.listen_fd = server->config.tcp_fd,
		.max_connections = METRICS_CONNECTIONS,
		.user_share = part(METRICS_CONNECTIONS),
		.oldest_goes = true,
		.idle_s = IDLE_S,
		.first_s = FIRST_S,
		.max_body = MAX_METRICS_BODY,
		.tls = server->config.tcp_tls,
		.request = takt_server_on_tcp,
		.gone = on_gone,
		.ctx = server,
	};
	int rc = server->config.tcp_fd < 0 ? 0 : takt_http_new(&http, &server->tcp_http, err);

	if (rc < 0 || !server->tcp_http)
		return rc;
	return watch(server, server->tcp_http, err);
}

static int open_web(struct takt_server *server, struct takt_err *err)
{
	const struct takt_http_config http = {
		.listen_fd = server->config.web_fd,
		.max_connections = server->config.max_connections,
		.user_share = part(server->config.max_connections),
		.claim_share = claims(server->config.max_connections),
		.claim_spare = reserve(server->config.max_connections),
		.oldest_goes = true,
		.idle_s = IDLE_S,
		.first_s = FIRST_S,
		.max_body = TAKT_SPEC_MAX_BYTES,
		.tls = server->config.web_tls,
		.refuses = takt_server_web_refuses,
		.request = takt_server_on_web,
		.gone = on_gone,
		.ctx = server,
	};
	int rc = server->config.web_fd < 0 ? 0 : takt_http_new(&http, &server->web_http, err);

	if (rc < 0 || !server->web_http)
		return rc;
	return watch(server, server->web_http, err);
}

static int open_tokens(struct takt_server *server, struct takt_err *err)
{
	const char *dir = server->config.tokens_dir;

	return dir ? takt_token_store_open(takt_sys_real(), dir, &server->tokens, err) : 0;
}

static void look_up_names(struct takt_server *server)
{
	const char *name = server->config.admin_group ? server->config.admin_group : "takt-admin";
	const struct group *group = getgrnam(name);

	server->has_admin_gid = group != NULL;
	server->admin_gid = group ? group->gr_gid : 0;
	if (gethostname(server->hostname, sizeof(server->hostname) - 1) < 0)
		server->hostname[0] = '\0';
}

int takt_server_new(const struct takt_server_config *config,
		    const struct takt_server_backend *backend, void *ctx, struct takt_server **ret,
		    struct takt_err *err)
{
	struct takt_server *server = takt_zalloc(sizeof(*server));
	int rc = 0;

	if (!server)
		return takt_err_set(err, -ENOMEM, "no memory for the server");
	server->config = *config;
	if (server->config.max_connections == 0)
		server->config.max_connections = DEFAULT_CONNECTIONS;
	server->backend = *backend;
	server->ctx = ctx;
	look_up_names(server);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll_fd < 0)
		rc = takt_err_set(err, -errno, "make an epoll");
	if (rc == 0)
		rc = open_tokens(server, err);
	if (rc == 0)
		rc = open_unix(server, err);
	if (rc == 0)
		rc = open_tcp(server, err);
	if (rc == 0)
		rc = open_web(server, err);
	if (rc < 0) {
		takt_server_free(server);
		return rc;
	}
	*ret = server;
	return 0;
}

int takt_server_move(struct takt_server *server, int unix_fd, struct takt_err *err)
{
	return takt_http_move(server->unix_http, unix_fd, err);
}

int takt_server_fd(const struct takt_server *server)
{
	return server->epoll_fd;
}

static int sooner(int a_ms, int b_ms)
{
	if (a_ms < 0 || b_ms < 0)
		return a_ms < 0 ? b_ms : a_ms;
	return a_ms < b_ms ? a_ms : b_ms;
}

int takt_server_pump(struct takt_server *server, int *ret_timeout_ms, struct takt_err *err)
{
	uint64_t now_ns = takt_mono_now(takt_sys_real()).ns;
	int unix_ms = -1, tcp_ms = -1, web_ms = -1, rc;

	takt_server_next_turn(server);
	takt_server_followers_look(server, now_ns);
	takt_server_listeners_look(server, now_ns);
	rc = takt_http_pump(server->unix_http, &unix_ms, err);
	if (rc == 0 && server->tcp_http)
		rc = takt_http_pump(server->tcp_http, &tcp_ms, err);
	if (rc == 0 && server->web_http)
		rc = takt_http_pump(server->web_http, &web_ms, err);
	if (rc < 0)
		return rc;
	if (takt_server_turns_wait(server))
		unix_ms = 0;
	*ret_timeout_ms = sooner(sooner(sooner(unix_ms, tcp_ms), web_ms),
				 sooner(takt_server_followers_timeout_ms(server, now_ns),
					takt_server_listeners_timeout_ms(server, now_ns)));
	return 0;
}

void takt_server_poke(struct takt_server *server)
{
	server->poked = true;
}

static void turn_away(struct takt_server *server)
{
	static const struct takt_err stopping = {.rc = -TAKT_E_UNAVAILABLE,
						 .msg = "takt is stopping; ask again"};

	while (server->pendings)
		takt_pending_error(server->pendings, &stopping);
	takt_server_turns_fini(server);
	takt_server_followers_fini(server);
	takt_server_listeners_fini(server);
}

void takt_server_free(struct takt_server *server)
{
	if (!server)
		return;
	turn_away(server);
	takt_http_free(server->unix_http);
	takt_http_free(server->tcp_http);
	takt_http_free(server->web_http);
	takt_token_store_free(server->tokens);
	takt_live_lists_fini(server);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	takt_free(server);
}
