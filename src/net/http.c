/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP over libmicrohttpd in its external epoll mode.
 *
 * A request whose answer comes later is suspended there; libmicrohttpd then takes its socket out of
 * its own epoll set and would not notice a hang-up, so the socket waits in ours, where a hang-up is
 * always reported.
 *
 * Connections are accepted here, not there: libmicrohttpd cannot tell who is at the other end of a
 * Unix socket, and a user must not be able to hold all connections.
 */
#include "net/http.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "net/door.h"
#include "net/http_head.h"
#include "net/seats.h"

enum {
	MAX_HEADERS = 16,
	MAX_HEADER_VALUE = 64,
	POOL_BYTES = 16 * 1024, /* a connection: request line and headers have to fit */
	EVENTS = 16,
	LATE = 16,    /* connections that are over, but not yet for libmicrohttpd */
	ACCEPTS = 64, /* a round; the others keep the socket readable */
	FLUSH_ROUNDS = 50,
	STREAM_BLOCK = 4096,
	LEAST_RATE = 16 * 1024,
};

enum stage {
	READING,
	ASKING,	   /* inside config.request */
	HELD,	   /* suspended */
	ANSWERED,  /* the answer is there, maybe not yet handed to libmicrohttpd */
	STREAMING, /* libmicrohttpd asks for more of it */
	GONE,
};

struct answer_header {
	const char *name;
	const char *kept; /* NULL = the copy */
	char value[MAX_HEADER_VALUE];
};

/* An answer without an end: the part that is being sent. */
struct stream {
	bool on, over;
	char *text; /* owned; NULL = all was taken */
	size_t len, taken;
};

struct exchange {
	struct takt_http_request request; /* first: the caller's view of it */
	struct MHD_Connection *connection;
	enum stage stage;
	struct takt_str body;
	char *path; /* owned */
	struct answer_header headers[MAX_HEADERS];
	unsigned header_count;
	int status;
	size_t answer_len;
	struct stream stream;
	struct MHD_Response *response; /* owned; NULL = could not be made */
	struct takt_seat *seat;	       /* borrowed; NULL = it has none */
	struct exchange *prev, *next;  /* of the held ones */
};

struct takt_http {
	struct takt_http_config config;
	struct MHD_Daemon *daemon;
	int epoll_fd; /* holds libmicrohttpd's own epoll, wake_fd, the listening socket and the
		       * sockets of held requests */
	int wake_fd;  /* readable while a resumed request is to be looked at */
	bool woken;
	struct takt_door door;
	struct takt_seats seats;
	struct takt_seat *arriving; /* of the connection that libmicrohttpd is being handed */
	struct exchange *held;
	bool closing; /* takes no more requests */
};

static void link_held(struct exchange *ex)
{
	struct takt_http *http = ex->request.http;

	ex->next = http->held;
	ex->prev = NULL;
	if (ex->next)
		ex->next->prev = ex;
	http->held = ex;
}

static void unlink_held(struct exchange *ex)
{
	if (ex->prev)
		ex->prev->next = ex->next;
	else
		ex->request.http->held = ex->next;
	if (ex->next)
		ex->next->prev = ex->prev;
}

/* Of a TCP peer that closes nothing but the end of what he sends is seen. */
static uint32_t hang_up_events(int fd)
{
	socklen_t size = sizeof(int);
	int domain = AF_UNIX;

	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
	return domain == AF_UNIX ? 0 : EPOLLRDHUP;
}

/* Hang-ups and errors are reported without being asked for. */
static void hold(struct exchange *ex)
{
	struct epoll_event event = {.events = hang_up_events(ex->request.fd), .data.ptr = ex};

	ex->stage = HELD;
	link_held(ex);
	MHD_suspend_connection(ex->connection);
	(void)epoll_ctl(ex->request.http->epoll_fd, EPOLL_CTL_ADD, ex->request.fd, &event);
}

/* libmicrohttpd sends nothing before its next run, and its own epoll says nothing of that. */
static void unhold(struct exchange *ex, enum stage stage)
{
	struct takt_http *http = ex->request.http;

	ex->stage = stage;
	unlink_held(ex);
	(void)epoll_ctl(http->epoll_fd, EPOLL_CTL_DEL, ex->request.fd, NULL);
	MHD_resume_connection(ex->connection);
	http->woken = eventfd_write(http->wake_fd, 1) == 0;
}

static void take_wake(struct takt_http *http)
{
	eventfd_t count;

	if (http->woken)
		(void)eventfd_read(http->wake_fd, &count);
	http->woken = false;
}

static int connection_fd(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

static void is_at(struct takt_http *http, struct takt_seat *seat, enum takt_seat_stage stage,
		  unsigned within_s)
{
	takt_seat_is_at(&http->seats, seat, stage, takt_mono_now(takt_sys_real()).ns,
			within_s * TAKT_NS_PER_S);
}

/* From now on the client is waited for. */
static void is_sent(struct exchange *ex, size_t len)
{
	struct takt_http *http = ex->request.http;
	unsigned rate = http->config.least_rate ? http->config.least_rate : LEAST_RATE;

	is_at(http, ex->seat, TAKT_SEAT_SENT, http->config.idle_s + (unsigned)(len / rate));
}

static struct takt_seat *seat_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* libmicrohttpd's, before it looks at the text. */
static void *on_target(void *ctx, const char *uri, struct MHD_Connection *connection)
{
	struct takt_seat *seat = seat_of(connection);

	(void)ctx;
	if (seat)
		seat->target = takt_http_target_of(uri);
	return NULL;
}

static struct exchange *begin(struct takt_http *http, struct MHD_Connection *connection,
			      const char *url, const char *method)
{
	struct exchange *ex = takt_zalloc(sizeof(*ex));

	if (!ex)
		return NULL;
	ex->path = takt_strdup(url);
	if (!ex->path) {
		takt_free(ex);
		return NULL;
	}
	ex->connection = connection;
	ex->body = TAKT_STR(http->config.max_body);
	ex->request = (struct takt_http_request){
		.http = http,
		.method = method,
		.path = ex->path,
		.body = "",
		.fd = connection_fd(connection),
	};
	ex->seat = seat_of(connection);
	return ex;
}

/* A body that says it is too large need not be sent. */
static bool announces_too_much(const struct exchange *ex)
{
	const char *text = takt_http_header(&ex->request, "Content-Length");
	unsigned long long len;

	return text && takt_parse_u64(text, 0, ULLONG_MAX, &len) == 0 &&
	       len > ex->request.http->config.max_body;
}

static void take_body(struct exchange *ex, const char *data, size_t len)
{
	if (ex->request.refused)
		return;
	if (takt_str_addn(&ex->body, data, len) < 0)
		ex->request.refused = ex->body.rc == -TAKT_E_LIMIT ? 413 : 503;
}

static enum MHD_Result send_answer(struct exchange *ex)
{
	enum MHD_Result done;

	if (!ex->response)
		return MHD_NO;
	if (ex->request.refused)
		(void)MHD_add_response_header(ex->response, "Connection", "close");
	if (ex->stream.on)
		ex->stage = STREAMING;
	else
		is_sent(ex, ex->answer_len);
	done = MHD_queue_response(ex->connection, (unsigned)ex->status, ex->response);
	MHD_destroy_response(ex->response);
	ex->response = NULL;
	return done;
}

static enum MHD_Result ask(struct exchange *ex)
{
	struct takt_http *http = ex->request.http;

	/* One that came while answers were flushed and was then held would stop libmicrohttpd from
	 * stopping: it aborts the program. */
	if (http->closing)
		return MHD_NO;
	is_at(http, ex->seat, TAKT_SEAT_ANSWER, 0);
	ex->stage = ASKING;
	ex->request.body = takt_str_text(&ex->body);
	ex->request.body_len = ex->body.len;
	http->config.request(http->config.ctx, &ex->request);
	if (ex->stage == ANSWERED)
		return send_answer(ex);
	hold(ex);
	return MHD_YES;
}

/* What is wrong is answered without the routes: it may mean two requests. */
static enum MHD_Result refuse_head(struct exchange *ex, const char *wrong)
{
	struct takt_str text = TAKT_STR(256);
	char *json;

	takt_str_addf(&text, "{\"error\":{\"name\":\"USAGE\",\"message\":\"%s\"}}\n", wrong);
	json = takt_str_take(&text);
	if (!json)
		return MHD_NO;
	ex->stage = ASKING;
	ex->request.refused = 400;
	takt_http_answer(&ex->request, 400, "application/json", json, strlen(json), takt_free,
			 json);
	return send_answer(ex);
}

/* What comes before the body. */
static enum MHD_Result on_head(struct exchange *ex, const char *method, const char *version)
{
	struct takt_http *http = ex->request.http;
	const struct takt_http_target unknown = {NULL, NULL};
	const char *wrong = takt_http_head_wrong(ex->connection, method,
						 ex->seat ? &ex->seat->target : &unknown, version);

	is_at(http, ex->seat, TAKT_SEAT_BODY, 2 * http->config.idle_s);
	if (wrong && !http->closing)
		return refuse_head(ex, wrong);
	if (announces_too_much(ex)) {
		ex->request.refused = 413;
		return ask(ex);
	}
	if (http->closing || !http->config.refuses)
		return MHD_YES;
	ex->stage = ASKING;
	if (http->config.refuses(http->config.ctx, &ex->request))
		return send_answer(ex);
	ex->stage = READING;
	return MHD_YES;
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *url,
				 const char *method, const char *version, const char *data,
				 size_t *len, void **state)
{
	struct exchange *ex = *state;

	if (!ex) {
		ex = *state = begin(ctx, connection, url, method);
		if (!ex)
			return MHD_NO;
		return on_head(ex, method, version);
	}
	if (ex->stage == GONE)
		return MHD_NO;
	if (ex->stage == ANSWERED)
		return send_answer(ex);
	if (*len == 0)
		return ask(ex);
	take_body(ex, data, *len);
	*len = 0;
	return MHD_YES;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	struct takt_http *http = ctx;
	struct exchange *ex = *state;

	if (!ex)
		return;
	is_at(http, ex->seat, TAKT_SEAT_HEAD, http->config.idle_s);
	if (ex->response)
		MHD_destroy_response(ex->response);
	if (ex->stream.on && !ex->stream.over && !http->closing)
		http->config.gone(http->config.ctx, &ex->request);
	takt_free(ex->stream.text);
	takt_str_fini(&ex->body);
	takt_free(ex->path);
	takt_free(ex);
	*state = NULL;
}

/* Its own, in place of what libmicrohttpd was started with: that may have been renewed. */
static void begin_tls(struct takt_http *http, struct MHD_Connection *connection,
		      struct takt_seat *seat)
{
	const union MHD_ConnectionInfo *info =
		http->config.tls
			? MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
			: NULL;

	if (info && info->tls_session)
		seat->pair = takt_tls_hold(http->config.tls, info->tls_session);
}

static void end_connection(struct takt_seat *seat)
{
	if (seat)
		takt_tls_leave(seat->pair);
	takt_seats_leave(seat);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct takt_http *http = ctx;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*state = http->arriving;
		is_at(http, http->arriving, TAKT_SEAT_HEAD,
		      http->config.first_s ? http->config.first_s : http->config.idle_s);
		if (http->arriving)
			begin_tls(http, connection, http->arriving);
		http->arriving = NULL;
	} else {
		end_connection(*state);
		*state = NULL;
	}
}

/* Events of these descriptors belong to no request. */
static int watch(struct takt_http *http, int fd, struct takt_err *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

	if (epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return takt_err_set(err, -errno, "watch libmicrohttpd");
	return 0;
}

static int open_epoll(struct takt_http *http, struct takt_err *err)
{
	http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	http->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (http->epoll_fd < 0 || http->wake_fd < 0)
		return takt_err_set(err, -errno, "make an epoll");
	return watch(http, http->wake_fd, err);
}

/* TLS 1.2 and 1.3; a list without an entry is plain HTTP. */
static void tls_options(const struct takt_tls *tls, struct MHD_OptionItem ret[4])
{
	static const char versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
	const struct MHD_OptionItem items[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)takt_tls_certificate(tls)},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)takt_tls_key(tls)},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)versions},
		{MHD_OPTION_END, 0, NULL},
	};

	memcpy(ret, items, sizeof(items));
}

static int start(struct takt_http *http, struct takt_err *err)
{
	const struct takt_http_config *config = &http->config;
	struct MHD_OptionItem more[4] = {{MHD_OPTION_END, 0, NULL}};
	const union MHD_DaemonInfo *info;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;

	if (config->tls) {
		flags |= MHD_USE_TLS;
		tls_options(config->tls, more);
	}
	http->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, on_access, http, MHD_OPTION_CONNECTION_LIMIT,
		config->max_connections + LATE, MHD_OPTION_CONNECTION_TIMEOUT, config->idle_s,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
		MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)4096, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL, MHD_OPTION_ARRAY, more,
		MHD_OPTION_END);
	if (!http->daemon)
		return takt_err_set(err, -EIO, "start libmicrohttpd");
	info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	return info ? watch(http, info->epoll_fd, err)
		    : takt_err_set(err, -EIO, "watch libmicrohttpd");
}

static bool is_tcp(int fd)
{
	socklen_t size = sizeof(int);
	int domain = AF_UNIX;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX;
}

static int sit_down(struct takt_http *http, struct takt_err *err)
{
	const struct takt_seats_limits limits = {
		.total = http->config.max_connections,
		.share = http->config.user_share,
		.reserve = http->config.admin_reserve,
		.user_share = http->config.claim_share,
		.spare = http->config.claim_spare,
		.by_address = is_tcp(http->config.listen_fd),
	};

	return takt_seats_init(&http->seats, &limits, err);
}

int takt_http_new(const struct takt_http_config *config, struct takt_http **ret,
		  struct takt_err *err)
{
	struct takt_http *http = takt_zalloc(sizeof(*http));
	int rc;

	if (!http)
		return takt_err_set(err, -ENOMEM, "no memory for an HTTP server");
	http->config = *config;
	http->epoll_fd = http->wake_fd = -1;
	http->door.reserve_fd = -1;
	rc = open_epoll(http, err);
	if (rc == 0)
		rc = sit_down(http, err);
	if (rc == 0)
		rc = start(http, err);
	if (rc == 0)
		rc = takt_door_init(&http->door, config->listen_fd, http->epoll_fd, &http->door,
				    err);
	if (rc < 0) {
		http->config.listen_fd = -1; /* stays the caller's */
		takt_http_free(http);
		return rc;
	}
	*ret = http;
	return 0;
}

int takt_http_fd(const struct takt_http *http)
{
	return http->epoll_fd;
}

static void drop(struct exchange *ex)
{
	struct takt_http *http = ex->request.http;

	unhold(ex, GONE);
	if (!ex->stream.on) /* else at its end */
		http->config.gone(http->config.ctx, &ex->request);
}

static bool is_admin(const struct takt_http *http, const struct takt_guest *guest)
{
	return http->config.is_admin && http->config.is_admin(http->config.ctx, guest->fd);
}

/* libmicrohttpd owns the socket from here on, whatever comes of it. */
static void hand_over(struct takt_http *http, const struct takt_guest *guest,
		      struct takt_seat *seat)
{
	http->arriving = seat;
	if (MHD_add_connection(http->daemon, guest->fd, (const struct sockaddr *)&guest->address,
			       guest->address_len) != MHD_YES)
		takt_seats_leave(seat);
	http->arriving = NULL;
}

static void welcome(struct takt_http *http, const struct takt_guest *guest, uint64_t now_ns)
{
	const char *why = "takt has no file descriptor left; ask again later";
	const struct takt_newcomer who = {.uid = guest->uid,
					  .admin = is_admin(http, guest),
					  .address = &guest->address,
					  .fd = guest->fd};
	struct takt_seat *seat = NULL;

	if (who.admin || !guest->scarce)
		seat = takt_seats_take(&http->seats, &who, &why);
	if (!seat && http->config.oldest_goes && takt_seats_make_room(&http->seats, &who))
		seat = takt_seats_take(&http->seats, &who, &why);
	if (seat)
		hand_over(http, guest, seat);
	else
		takt_door_turn_away(&http->door, guest, why, now_ns);
}

/* Who would have to be turned away only because others are just leaving waits at the door. */
static bool may_welcome(const struct takt_http *http)
{
	return !http->config.oldest_goes || takt_seats_may_make_room(&http->seats);
}

static void accept_some(struct takt_http *http, uint64_t now_ns)
{
	struct takt_guest guest;

	for (int i = 0; i < ACCEPTS && may_welcome(http); i++) {
		if (!takt_door_accept(&http->door, now_ns, &guest))
			return;
		welcome(http, &guest, now_ns);
	}
}

int takt_http_move(struct takt_http *http, int listen_fd, struct takt_err *err)
{
	int old = http->config.listen_fd, rc;

	accept_some(http, takt_mono_now(takt_sys_real()).ns);
	rc = takt_door_move(&http->door, listen_fd, err);
	if (rc < 0)
		return rc;
	http->config.listen_fd = listen_fd;
	close(old);
	return 0;
}

/* -1 = never. */
static int sooner(int a_ms, int b_ms)
{
	if (a_ms < 0 || b_ms < 0)
		return a_ms < 0 ? b_ms : a_ms;
	return a_ms < b_ms ? a_ms : b_ms;
}

static int timeout_ms(const struct takt_http *http, uint64_t now_ns)
{
	int door_ms = takt_door_timeout_ms(&http->door, now_ns), ms = -1;
	uint64_t due_ns = http->seats.next_ns;
	MHD_UNSIGNED_LONG_LONG timeout;

	if (MHD_get_timeout(http->daemon, &timeout) == MHD_YES)
		ms = timeout > INT_MAX ? INT_MAX : (int)timeout;
	if (due_ns)
		ms = sooner(ms,
			    due_ns > now_ns ? (int)((due_ns - now_ns) / TAKT_NS_PER_MS) + 1 : 0);
	return sooner(ms, door_ms);
}

int takt_http_pump(struct takt_http *http, int *ret_timeout_ms, struct takt_err *err)
{
	uint64_t now_ns = takt_mono_now(takt_sys_real()).ns;
	struct epoll_event events[EVENTS];
	bool knocked = false;
	int n;

	takt_door_look(&http->door, now_ns);
	takt_seats_look(&http->seats, now_ns);
	n = epoll_wait(http->epoll_fd, events, EVENTS, 0);
	take_wake(http);
	for (int i = 0; i < n; i++) {
		struct exchange *ex = events[i].data.ptr;

		if (events[i].data.ptr == &http->door)
			knocked = true;
		else if (ex && ex->stage == HELD) /* another may have had it answered */
			drop(ex);
	}
	if (knocked)
		accept_some(http, now_ns);
	if (MHD_run(http->daemon) != MHD_YES)
		return takt_err_set(err, -EIO, "libmicrohttpd cannot go on");
	*ret_timeout_ms = timeout_ms(http, now_ns);
	return 0;
}

static void flush(struct takt_http *http)
{
	MHD_UNSIGNED_LONG_LONG timeout = 0;

	for (int i = 0; i < FLUSH_ROUNDS && timeout == 0; i++)
		if (MHD_run(http->daemon) != MHD_YES ||
		    MHD_get_timeout(http->daemon, &timeout) != MHD_YES)
			break;
}

void takt_http_free(struct takt_http *http)
{
	if (!http)
		return;
	http->closing = true;
	while (http->held)
		unhold(http->held, GONE);
	if (http->daemon) {
		flush(http);
		MHD_stop_daemon(http->daemon);
	}
	takt_seats_fini(&http->seats);
	takt_door_fini(&http->door);
	if (http->config.listen_fd >= 0)
		close(http->config.listen_fd);
	if (http->epoll_fd >= 0)
		close(http->epoll_fd);
	if (http->wake_fd >= 0)
		close(http->wake_fd);
	takt_free(http);
}

bool takt_http_claim(struct takt_http_request *request, uid_t uid)
{
	const struct exchange *ex = (const struct exchange *)request;

	return takt_seats_claim(&request->http->seats, ex->seat, uid);
}

const char *takt_http_header(const struct takt_http_request *request, const char *name)
{
	const struct exchange *ex = (const struct exchange *)request;

	return MHD_lookup_connection_value(ex->connection, MHD_HEADER_KIND, name);
}

const char *takt_http_query(const struct takt_http_request *request, const char *name)
{
	const struct exchange *ex = (const struct exchange *)request;
	const char *value = NULL;
	size_t len;

	if (MHD_lookup_connection_value_n(ex->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name),
					  &value, &len) != MHD_YES)
		return NULL;
	return value ? value : "";
}

struct unknown_search {
	const char *const *known;
	const char *found;
};

static enum MHD_Result look_at_query(void *ctx, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	struct unknown_search *search = ctx;

	for (size_t i = 0; search->known && search->known[i]; i++)
		if (strcmp(search->known[i], name) == 0)
			return MHD_YES;
	search->found = name;
	return MHD_NO;
}

const char *takt_http_unknown_query(const struct takt_http_request *request,
				    const char *const *known)
{
	const struct exchange *ex = (const struct exchange *)request;
	struct unknown_search search = {.known = known};

	(void)MHD_get_connection_values(ex->connection, MHD_GET_ARGUMENT_KIND, look_at_query,
					&search);
	return search.found;
}

/* Of that name, or a free one; NULL when all are taken. */
static struct answer_header *header_place(struct exchange *ex, const char *name)
{
	unsigned i = 0;

	while (i < ex->header_count && strcmp(ex->headers[i].name, name) != 0)
		i++;
	if (i == MAX_HEADERS)
		return NULL;
	if (i == ex->header_count)
		ex->header_count++;
	ex->headers[i] = (struct answer_header){.name = name};
	return &ex->headers[i];
}

void takt_http_answer_header(struct takt_http_request *request, const char *name, const char *value)
{
	struct answer_header *header = header_place((struct exchange *)request, name);

	if (header)
		(void)takt_strcpy(header->value, MAX_HEADER_VALUE, value);
}

void takt_http_answer_header_kept(struct takt_http_request *request, const char *name,
				  const char *value)
{
	struct answer_header *header = header_place((struct exchange *)request, name);

	if (header)
		header->kept = value;
}

static struct MHD_Response *make_response(const char *text, size_t len, void (*release)(void *ctx),
					  void *release_ctx)
{
	void *bytes = (void *)(uintptr_t)text;
	struct MHD_Response *response;

	if (!release)
		return MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_PERSISTENT);
	response = MHD_create_response_from_buffer_with_free_callback_cls(len, bytes, release,
									  release_ctx);
	if (!response)
		release(release_ctx);
	return response;
}

static void respond(struct exchange *ex, int status, const char *type)
{
	ex->status = status;
	if (ex->response)
		(void)MHD_add_response_header(ex->response, "Content-Type", type);
	for (unsigned i = 0; ex->response && i < ex->header_count; i++) {
		const struct answer_header *header = &ex->headers[i];

		(void)MHD_add_response_header(ex->response, header->name,
					      header->kept ? header->kept : header->value);
	}
	if (ex->stage == HELD)
		unhold(ex, ANSWERED);
	else
		ex->stage = ANSWERED;
}

void takt_http_answer(struct takt_http_request *request, int status, const char *type,
		      const char *text, size_t len, void (*release)(void *ctx), void *release_ctx)
{
	struct exchange *ex = (struct exchange *)request;

	ex->answer_len = len;
	ex->response = make_response(text, len, release, release_ctx);
	respond(ex, status, type);
}

/* Suspends when there is nothing to take: libmicrohttpd would ask again at once. */
static ssize_t give_part(void *ctx, uint64_t at, char *buf, size_t max)
{
	struct exchange *ex = ctx;
	struct stream *stream = &ex->stream;
	size_t n = stream->len - stream->taken;

	if (ex->stage == GONE)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (!stream->text && stream->over)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!stream->text) {
		is_at(ex->request.http, ex->seat, TAKT_SEAT_ANSWER, 0);
		hold(ex);
		return 0;
	}
	n = n < max ? n : max;
	memcpy(buf, stream->text + stream->taken, n);
	stream->taken += n;
	if (stream->taken == stream->len) {
		takt_free(stream->text);
		stream->text = NULL;
	}
	return (ssize_t)n;
}

void takt_http_stream(struct takt_http_request *request, const char *type)
{
	struct exchange *ex = (struct exchange *)request;

	ex->stream.on = true;
	ex->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, give_part,
							 ex, NULL);
	respond(ex, 200, type);
}

bool takt_http_stream_ready(const struct takt_http_request *request)
{
	return ((const struct exchange *)request)->stream.text == NULL;
}

static void go_on(struct exchange *ex)
{
	if (ex->stage == HELD)
		unhold(ex, STREAMING);
}

void takt_http_stream_send(struct takt_http_request *request, char *text, size_t len)
{
	struct exchange *ex = (struct exchange *)request;

	ex->stream.text = text;
	ex->stream.len = len;
	ex->stream.taken = 0;
	is_sent(ex, len);
	go_on(ex);
}

void takt_http_stream_end(struct takt_http_request *request)
{
	struct exchange *ex = (struct exchange *)request;

	ex->stream.over = true;
	go_on(ex);
}
