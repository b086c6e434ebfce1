/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest lists of live jobs, as text. A lab polls: two hundred terminals that watch a queue of
 * twenty thousand ask for the same text many times before it changes. It is told again while the
 * backend says that no job has changed, and for a moment only, since running jobs' figures change
 * all the time.
 */
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "server/server_impl.h"

static const uint64_t fresh_ns = TAKT_NS_PER_S / 5;

struct takt_live_list {
	struct takt_live_key key;
	uint64_t version, made_ns;
	unsigned users; /* the cache's place, and each answer on its way */
	struct takt_str text;
};

static void drop(void *ctx)
{
	struct takt_live_list *list = ctx;

	if (!list || --list->users > 0)
		return;
	takt_str_fini(&list->text);
	takt_free(list);
}

static bool same(const struct takt_live_key *a, const struct takt_live_key *b)
{
	return a->uid == b->uid && a->admin == b->admin && a->limit == b->limit;
}

static void answer(struct takt_call *call, struct takt_live_list *list)
{
	list->users++;
	takt_http_answer(call->http, 200, "application/json", takt_str_text(&list->text),
			 list->text.len, drop, list);
}

bool takt_live_lists_answer(struct takt_call *call, const struct takt_live_key *key)
{
	struct takt_server *server = call->server;
	uint64_t now_ns = takt_mono_now(takt_sys_real()).ns;

	if (!server->backend.live_version)
		return false;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(server->live_lists); i++) {
		struct takt_live_list *list = server->live_lists[i];

		if (!list || !same(&list->key, key) || now_ns - list->made_ns > fresh_ns ||
		    list->version != server->backend.live_version(server->ctx))
			continue;
		answer(call, list);
		return true;
	}
	return false;
}

/* The place of the same key, else the one that has not been made anew for longest. */
static struct takt_live_list **place_for(struct takt_server *server,
					 const struct takt_live_key *key)
{
	struct takt_live_list **oldest = &server->live_lists[0];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(server->live_lists); i++) {
		struct takt_live_list **place = &server->live_lists[i];

		if (!*place || same(&(*place)->key, key))
			return place;
		if ((*place)->made_ns < (*oldest)->made_ns)
			oldest = place;
	}
	return oldest;
}

void takt_live_lists_keep(struct takt_call *call, const struct takt_live_key *key,
			  struct takt_str *json)
{
	struct takt_server *server = call->server;
	struct takt_live_list *list = NULL, **place;

	if (server->backend.live_version && takt_str_add(json, "\n") == 0)
		list = takt_zalloc(sizeof(*list));
	if (!list) {
		takt_server_answer_text(call->http, 200, json);
		return;
	}
	list->key = *key;
	list->version = server->backend.live_version(server->ctx);
	list->made_ns = takt_mono_now(takt_sys_real()).ns;
	list->users = 1;
	list->text = *json;
	*json = TAKT_STR(0);
	place = place_for(server, key);
	drop(*place);
	*place = list;
	answer(call, list);
}

void takt_live_lists_fini(struct takt_server *server)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(server->live_lists); i++)
		drop(server->live_lists[i]);
}
