/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that cost much more than others are made one in a turn of the loop, so that no user's
 * many requests come before everybody else's. Users take turns, and the requests of each are
 * answered in the order in which they came.
 */
#include <string.h>

#include "base/mem.h"
#include "server/server_impl.h"

struct takt_waiting_turn {
	struct takt_held held; /* first: http->user points here */
	struct takt_call call;
	void (*serve)(struct takt_call *call);
	struct takt_waiting_turn *prev, *next;
};

static void remove_waiting(struct takt_waiting_turn *waiting)
{
	struct takt_turns *turns = &waiting->call.server->turns;

	*(waiting->prev ? &waiting->prev->next : &turns->first) = waiting->next;
	*(waiting->next ? &waiting->next->prev : &turns->last) = waiting->prev;
	takt_free(waiting);
}

static void add_waiting(struct takt_waiting_turn *waiting)
{
	struct takt_turns *turns = &waiting->call.server->turns;

	waiting->prev = turns->last;
	*(turns->last ? &turns->last->next : &turns->first) = waiting;
	turns->last = waiting;
}

/* The first request of the user with the next higher number, else of the one with the lowest. */
static struct takt_waiting_turn *whose_turn(const struct takt_turns *turns)
{
	struct takt_waiting_turn *next = NULL, *lowest = NULL;

	for (struct takt_waiting_turn *at = turns->first; at; at = at->next) {
		uid_t uid = at->call.peer.uid;

		if (uid > turns->last_uid && (!next || uid < next->call.peer.uid))
			next = at;
		if (!lowest || uid < lowest->call.peer.uid)
			lowest = at;
	}
	return next ? next : lowest;
}

static void serve(struct takt_turns *turns, struct takt_call *call,
		  void (*fn)(struct takt_call *call))
{
	turns->taken = true;
	turns->last_uid = call->peer.uid;
	fn(call);
}

void takt_server_take_turn(struct takt_call *call, void (*serve_fn)(struct takt_call *call))
{
	struct takt_turns *turns = &call->server->turns;
	struct takt_waiting_turn *waiting;

	if (!turns->taken && !turns->first) {
		serve(turns, call, serve_fn);
		return;
	}
	waiting = takt_zalloc(sizeof(*waiting));
	if (!waiting) {
		takt_server_refuse(call->http, 503, -TAKT_E_UNAVAILABLE,
				   "no memory for the request; ask again later");
		return;
	}
	waiting->held.kind = TAKT_HELD_TURN;
	waiting->call = *call;
	waiting->serve = serve_fn;
	call->http->user = &waiting->held;
	add_waiting(waiting);
}

void takt_server_next_turn(struct takt_server *server)
{
	struct takt_waiting_turn *next = whose_turn(&server->turns);
	struct takt_waiting_turn served;

	server->turns.taken = false;
	if (!next)
		return;
	served = *next;
	served.call.http->user = NULL;
	remove_waiting(next);
	serve(&server->turns, &served.call, served.serve);
}

bool takt_server_turns_wait(const struct takt_server *server)
{
	return server->turns.first != NULL;
}

void takt_server_turn_gone(struct takt_waiting_turn *waiting)
{
	remove_waiting(waiting);
}

void takt_server_turns_fini(struct takt_server *server)
{
	while (server->turns.first) {
		struct takt_http_request *http = server->turns.first->call.http;

		remove_waiting(server->turns.first);
		takt_server_refuse(http, 503, -TAKT_E_UNAVAILABLE, "takt is stopping; ask again");
	}
}
