/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events: the answers of some GET routes again whenever they have changed, once a
 * second at most. Listeners of one user stand together, so that what they want is made once a round
 * and let go before the next user's. Who reads slowly gets fewer rounds; whose token is no more
 * gets none.
 */
#include <errno.h>
#include <string.h>

#include "base/checksum.h"
#include "base/mem.h"
#include "base/sys.h"
#include "server/server_impl.h"

enum {
	TOPICS = 5,
	ROUND_MS = 1000,
	BEAT_MS = 15000, /* by which a dead connection is noticed */
	MAX_PART = 2 * TAKT_SERVER_MAX_JSON,
};

static const struct {
	const char *name;
	takt_teller *tell;
} topics[TOPICS] = {
	{"status", takt_tell_status}, {"jobs", takt_tell_jobs}, {"clocks", takt_tell_clocks},
	{"health", takt_tell_health}, {"gpus", takt_tell_gpus},
};

struct listener {
	struct takt_held held; /* first: http->user points here */
	struct takt_call call;
	bool wants[TOPICS];
	uint32_t sent[TOPICS]; /* checksum of what was told last */
	uint64_t beat_ns;
	struct listener *prev, *next;
};

/* What was made in this round for one reader. */
struct round {
	uint64_t now_ns;
	uid_t uid;
	bool admin;
	struct made {
		bool is; /* else it was not asked for yet, or cannot be told */
		uint32_t checksum;
		struct takt_str json;
	} made[TOPICS];
};

static void unlink_listener(struct listener *listener)
{
	if (listener->prev)
		listener->prev->next = listener->next;
	else
		listener->call.server->listeners = listener->next;
	if (listener->next)
		listener->next->prev = listener->prev;
	takt_free(listener);
}

void takt_server_listener_gone(struct listener *listener)
{
	unlink_listener(listener);
}

static void end(struct listener *listener)
{
	struct takt_http_request *http = listener->call.http;

	unlink_listener(listener);
	takt_http_stream_end(http);
}

static void let_go(struct round *round)
{
	for (size_t i = 0; i < TOPICS; i++)
		if (round->made[i].is)
			takt_str_fini(&round->made[i].json);
	memset(round->made, 0, sizeof(round->made));
}

/* What was made for somebody else is not for this one. */
static void turn_to(struct round *round, const struct takt_peer *peer)
{
	if (round->uid == peer->uid && round->admin == peer->admin)
		return;
	let_go(round);
	round->uid = peer->uid;
	round->admin = peer->admin;
}

/* NULL when it cannot be told now. */
static const struct made *make(struct round *round, struct listener *listener, size_t topic)
{
	struct made *made = &round->made[topic];

	if (made->is)
		return made;
	made->json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	if (topics[topic].tell(&listener->call, &made->json, NULL) < 0 || made->json.rc < 0) {
		takt_str_fini(&made->json);
		return NULL;
	}
	made->checksum = takt_crc32c(made->json.s, made->json.len);
	made->is = true;
	return made;
}

static void add_topic(struct round *round, struct listener *listener, size_t topic,
		      struct takt_str *part)
{
	const struct made *made = make(round, listener, topic);

	if (!made || made->checksum == listener->sent[topic])
		return;
	listener->sent[topic] = made->checksum;
	takt_str_addf(part, "event: %s\ndata: ", topics[topic].name);
	takt_str_addn(part, made->json.s, made->json.len);
	takt_str_add(part, "\n\n");
}

static void tell(struct round *round, struct listener *listener)
{
	TAKT_CLEANUP(strp) struct takt_str part = TAKT_STR(MAX_PART);
	size_t len;
	char *text;

	if (!takt_http_stream_ready(listener->call.http))
		return;
	turn_to(round, &listener->call.peer);
	for (size_t i = 0; i < TOPICS; i++)
		if (listener->wants[i])
			add_topic(round, listener, i, &part);
	if (part.len == 0 && round->now_ns >= listener->beat_ns)
		takt_str_add(&part, ":\n\n");
	if (part.len == 0 || part.rc < 0)
		return;
	len = part.len;
	text = takt_str_take(&part);
	if (!text)
		return;
	listener->beat_ns = round->now_ns + BEAT_MS * TAKT_NS_PER_MS;
	takt_http_stream_send(listener->call.http, text, len);
}

/* What a token's account may see can change, and the token can be revoked. */
static bool may_go_on(struct listener *listener)
{
	struct takt_call *call = &listener->call;
	int rc;

	if (!call->token_id[0])
		return true;
	if (!takt_token_store_has(call->server->tokens, call->token_id))
		return false;
	rc = takt_server_identify_uid(call->server, call->peer.uid, &call->peer, NULL);
	return rc == 0 || rc == -TAKT_E_UNAVAILABLE; /* as it was, until there is word */
}

void takt_server_listeners_look(struct takt_server *server, uint64_t now_ns)
{
	struct round round = {.now_ns = now_ns};
	struct listener *next;

	if (!server->listeners || now_ns < server->tell_ns)
		return;
	server->tell_ns = now_ns + ROUND_MS * TAKT_NS_PER_MS;
	for (struct listener *listener = server->listeners; listener; listener = next) {
		next = listener->next;
		if (may_go_on(listener))
			tell(&round, listener);
		else
			end(listener);
	}
	let_go(&round);
}

int takt_server_listeners_timeout_ms(const struct takt_server *server, uint64_t now_ns)
{
	if (!server->listeners)
		return -1;
	return now_ns >= server->tell_ns ? 0
					 : (int)((server->tell_ns - now_ns) / TAKT_NS_PER_MS) + 1;
}

void takt_server_listeners_fini(struct takt_server *server)
{
	while (server->listeners)
		end(server->listeners);
}

/* "status,jobs": all must be known. */
static int read_topics(const char *text, bool ret[TOPICS], struct takt_err *err)
{
	while (*text) {
		size_t len = strcspn(text, ","), i = 0;

		while (i < TOPICS &&
		       (strlen(topics[i].name) != len || strncmp(topics[i].name, text, len) != 0))
			i++;
		if (i == TOPICS)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'of' in the query takes status, jobs, clocks, health "
					    "and gpus, with commas between, not '%.*s'",
					    (int)(len < 40 ? len : 40), text);
		ret[i] = true;
		text += len + (text[len] == ',');
	}
	return 0;
}

/* Before the first of the same user, else at the front. */
static void link_listener(struct takt_server *server, struct listener *listener)
{
	struct listener *prev = NULL, *next = server->listeners;

	while (next && next->call.peer.uid != listener->call.peer.uid) {
		prev = next;
		next = next->next;
	}
	if (!next) {
		prev = NULL;
		next = server->listeners;
	}
	listener->prev = prev;
	listener->next = next;
	*(prev ? &prev->next : &server->listeners) = listener;
	if (next)
		next->prev = listener;
}

static struct listener *new_listener(const struct takt_call *call, const bool wants[TOPICS])
{
	struct takt_server *server = call->server;
	struct listener *listener = takt_zalloc(sizeof(*listener));

	if (!listener)
		return NULL;
	listener->held.kind = TAKT_HELD_LISTENER;
	listener->call = *call;
	memcpy(listener->wants, wants, sizeof(listener->wants));
	if (!server->listeners)
		server->tell_ns = 0;
	link_listener(server, listener);
	call->http->user = &listener->held;
	return listener;
}

void takt_route_stream(struct takt_call *call)
{
	struct round round = {.now_ns = takt_mono_now(takt_sys_real()).ns};
	const char *of = takt_http_query(call->http, "of");
	bool wants[TOPICS] = {false};
	struct listener *listener;
	struct takt_err err;
	int rc = read_topics(of ? of : "status,jobs", wants, &err);

	listener = rc == 0 ? new_listener(call, wants) : NULL;
	if (rc == 0 && !listener)
		rc = takt_err_set(&err, -ENOMEM, "no memory for the request");
	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_http_answer_header(call->http, "Cache-Control", "no-store");
	takt_http_stream(call->http, "text/event-stream");
	tell(&round, listener);
	let_go(&round);
}
