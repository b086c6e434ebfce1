/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the server share: the object, a request as routes see it, how to answer. */
#ifndef TAKT_SERVER_SERVER_IMPL_H
#define TAKT_SERVER_SERVER_IMPL_H

#include "codec/json.h"
#include "net/http.h"
#include "server/server.h"
#include "server/token_store.h"

enum {
	TAKT_API_VERSION = 1,
	TAKT_SERVER_MAX_JSON = TAKT_VIEW_MAX_BYTES,
	TAKT_LIVE_LISTS = 4,
};

struct follower;
struct listener;
struct takt_live_list;
struct takt_waiting_turn;

/* See turns.c. */
struct takt_turns {
	struct takt_waiting_turn *first, *last; /* owned list, in the order they came */
	bool taken;				/* in this turn of the loop */
	uid_t last_uid;				/* whose it was */
};

struct takt_server {
	struct takt_server_config config;
	struct takt_server_backend backend;
	void *ctx;
	struct takt_http *unix_http;
	struct takt_http *tcp_http;	 /* NULL = none */
	struct takt_http *web_http;	 /* NULL = none */
	int epoll_fd;			 /* holds them */
	struct takt_token_store *tokens; /* NULL = none are kept */
	gid_t admin_gid;
	bool has_admin_gid;
	char hostname[256];
	struct takt_pending *pendings; /* owned list */
	struct follower *followers;    /* owned list */
	struct listener *listeners;    /* owned list */
	struct takt_turns turns;
	uint64_t tell_ns;				    /* when listeners are told next */
	struct takt_live_list *live_lists[TAKT_LIVE_LISTS]; /* owned; NULL = none */
	bool poked;
	uint64_t look_ns; /* when followers are looked after next */
};

/* One request on its way through a route. */
struct takt_call {
	struct takt_server *server;
	struct takt_http_request *http;
	struct takt_peer peer;
	bool may_write;		      /* by its token */
	char token_id[TAKT_TOKEN_ID]; /* "" = on the Unix socket */
	uint64_t job_id;	      /* of routes that name one */
};

/* Appends what a GET route answers with. */
typedef int takt_teller(struct takt_call *call, struct takt_str *json, struct takt_err *err);

/* Answers. All copy or take what they are given; a want of memory becomes a 500. */
void takt_server_answer_text(struct takt_http_request *http, int status, struct takt_str *json);
void takt_server_answer_error(struct takt_http_request *http, int status,
			      const struct takt_err *error);
/* With the HTTP status that belongs to error->rc. */
void takt_server_answer_failure(struct takt_http_request *http, const struct takt_err *error);

/* With a status and a message of one line. */
void takt_server_refuse(struct takt_http_request *http, int status, int rc, const char *message);

/* routes.c: the Unix socket and the metrics page's end here. */
void takt_server_on_unix(void *ctx, struct takt_http_request *http);
void takt_server_on_tcp(void *ctx, struct takt_http_request *http);
/* Whether its body could not be taken: then it is answered. */
bool takt_server_refuse_unread(struct takt_http_request *http);
/* To its route, once it is known who asks. */
void takt_server_serve(struct takt_call *call);
/* web.c: that of the page ends here; what may not come in, before its body is read. */
bool takt_server_web_refuses(void *ctx, struct takt_http_request *http);
void takt_server_on_web(void *ctx, struct takt_http_request *http);

/* access.c */
int takt_server_identify(struct takt_server *server, int fd, struct takt_peer *ret,
			 struct takt_err *err);
/* `ctx` is the server: whether the connection may have one of those kept for administrators. */
bool takt_server_fd_is_admin(void *ctx, int fd);
/* Who a token stands for, as he would be on the Unix socket. */
int takt_server_identify_uid(struct takt_server *server, uid_t uid, struct takt_peer *ret,
			     struct takt_err *err);
/* By name or number. */
int takt_server_find_user(const char *user, uid_t *ret, struct takt_err *err);
/* His name, or his number where none is known by now. */
void takt_server_user_name(uid_t uid, char *ret, size_t size);
bool takt_server_host_allowed(const struct takt_server *server, const char *host);
/* "http://127.0.0.1:9832/", with a name that Host may have; "" = there is no page. */
void takt_server_page_address(const struct takt_server *server, char *ret, size_t size);

/* live_lists.c: who asks, and for what. */
struct takt_live_key {
	uid_t uid;
	bool admin;
	uint32_t limit;
};
/* Answers from a list that is still true; false when there is none. */
bool takt_live_lists_answer(struct takt_call *call, const struct takt_live_key *key);
/* Answers with this list, and keeps it; takes the text. */
void takt_live_lists_keep(struct takt_call *call, const struct takt_live_key *key,
			  struct takt_str *json);
void takt_live_lists_fini(struct takt_server *server);

/* A pending for a call that will be finished later; NULL when out of memory. Dropped again, without
 * an answer, when the backend refused it. */
struct takt_pending *takt_server_pending_new(const struct takt_call *call, int http_status);
void takt_server_pending_drop(struct takt_pending *pending);

/* The routes, each in the file of its noun. They answer the call, all of them exactly once. */
void takt_route_version(struct takt_call *call);
void takt_route_account(struct takt_call *call);
void takt_route_tokens(struct takt_call *call);
void takt_route_tokens_add(struct takt_call *call);
void takt_route_tokens_revoke(struct takt_call *call);
void takt_route_stream(struct takt_call *call);
void takt_route_status(struct takt_call *call);
void takt_route_health(struct takt_call *call);
void takt_route_net(struct takt_call *call);
void takt_route_topology(struct takt_call *call);
void takt_route_reload(struct takt_call *call);
void takt_route_metrics(struct takt_call *call);
/* By the value of an Accept header, which may be NULL. */
bool takt_server_wants_openmetrics(const char *accept);
void takt_route_clocks(struct takt_call *call);
void takt_route_clocks_set(struct takt_call *call);
void takt_route_clocks_reset(struct takt_call *call);
void takt_route_clocks_cap(struct takt_call *call);
void takt_route_clocks_apply(struct takt_call *call);
void takt_route_clocks_restore(struct takt_call *call);
void takt_route_clocks_cpu(struct takt_call *call);
void takt_route_gpus(struct takt_call *call);
void takt_route_history(struct takt_call *call);
void takt_route_gpus_drain(struct takt_call *call);
void takt_route_gpus_resume(struct takt_call *call);
void takt_route_gpus_reserve(struct takt_call *call);
void takt_route_gpus_release(struct takt_call *call);
void takt_route_gpus_approve(struct takt_call *call);
void takt_route_gpus_refuse(struct takt_call *call);
void takt_route_gpus_mig(struct takt_call *call);
void takt_route_jobs(struct takt_call *call);
void takt_route_submit(struct takt_call *call);
void takt_route_job(struct takt_call *call);
void takt_route_explain(struct takt_call *call);
void takt_route_course(struct takt_call *call);
void takt_route_submit_many(struct takt_call *call);
void takt_route_again(struct takt_call *call);
void takt_route_try(struct takt_call *call);
void takt_route_try_many(struct takt_call *call);
void takt_route_cancel(struct takt_call *call);
void takt_route_change(struct takt_call *call);
void takt_route_signal(struct takt_call *call);
void takt_route_wait(struct takt_call *call);
void takt_route_log(struct takt_call *call);

takt_teller takt_tell_status, takt_tell_health, takt_tell_clocks, takt_tell_gpus, takt_tell_jobs;
/* Answers with what it tells, or its failure. */
void takt_server_answer_told(struct takt_call *call, takt_teller *tell);

/* A number in the query, or its default. Negative: already answered. */
int takt_server_query_u64(struct takt_call *call, const char *name, uint64_t min, uint64_t max,
			  uint64_t absent, uint64_t *ret);

/* route_log.c: held followers. look: answers those for whom there is news or whose time is up. */
void takt_server_followers_look(struct takt_server *server, uint64_t now_ns);
int takt_server_followers_timeout_ms(const struct takt_server *server, uint64_t now_ns);
void takt_server_follower_gone(struct follower *follower);
void takt_server_followers_fini(struct takt_server *server);

/* turns.c: answers that cost much, one in a turn of the loop. take_turn: serves the call now or in
 * a turn to come; what it borrows from its request must be there until then. next_turn: at the
 * begin of each. */
void takt_server_take_turn(struct takt_call *call, void (*serve)(struct takt_call *call));
void takt_server_next_turn(struct takt_server *server);
bool takt_server_turns_wait(const struct takt_server *server);
void takt_server_turn_gone(struct takt_waiting_turn *waiting);
void takt_server_turns_fini(struct takt_server *server);

/* route_stream.c: told what has changed, once a second. */
void takt_server_listeners_look(struct takt_server *server, uint64_t now_ns);
int takt_server_listeners_timeout_ms(const struct takt_server *server, uint64_t now_ns);
void takt_server_listener_gone(struct listener *listener);
void takt_server_listeners_fini(struct takt_server *server);

/* What http->user points at. */
enum takt_held_kind {
	TAKT_HELD_PENDING,
	TAKT_HELD_FOLLOWER,
	TAKT_HELD_LISTENER,
	TAKT_HELD_TURN,
};
struct takt_held {
	enum takt_held_kind kind;
};

#endif
