/* SPDX-License-Identifier: Apache-2.0 */
/* Routes about tokens, for who is on the Unix socket, and what anybody may know of himself. */
#include <errno.h>
#include <string.h>

#include "base/known_users.h"
#include "base/mem.h"
#include "base/str.h"
#include "server/server_impl.h"

void takt_route_account(struct takt_call *call)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(1024);
	char user[TAKT_KNOWN_USER_NAME];

	takt_server_user_name(call->peer.uid, user, sizeof(user));
	takt_str_addf(&json, "{\"uid\":%u", (unsigned)call->peer.uid);
	takt_str_add(&json, ",\"user\":");
	takt_json_add_text(&json, user);
	takt_str_addf(&json, ",\"admin\":%s,\"write\":%s}", call->peer.admin ? "true" : "false",
		      call->may_write ? "true" : "false");
	takt_server_answer_text(call->http, 200, &json);
}

static int need_store(const struct takt_call *call, struct takt_err *err)
{
	return call->server->tokens
		       ? 0
		       : takt_err_set(err, -TAKT_E_UNAVAILABLE, "no tokens are kept here");
}

static bool may_see(const struct takt_call *call, const struct takt_token *token)
{
	return call->peer.admin || token->uid == call->peer.uid;
}

/* As others may see it. */
static void show(struct takt_token *token)
{
	token->sha256[0] = '\0';
	takt_server_user_name(token->uid, token->user, sizeof(token->user));
}

static void answer(struct takt_call *call, int status, struct takt_tokens_view *view)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);

	takt_server_page_address(call->server, view->page, sizeof(view->page));
	takt_tokens_view_to_json(view, &json);
	takt_server_answer_text(call->http, status, &json);
}

/* One's own; administrators see everybody's. */
static int list(struct takt_call *call, struct takt_err *err)
{
	const struct takt_tokens_view *all = takt_token_store_all(call->server->tokens);
	struct takt_tokens_view view = {.tokens =
						takt_calloc(all->count + 1, sizeof(*view.tokens))};

	if (!view.tokens)
		return takt_err_set(err, -ENOMEM, "no memory for the answer");
	for (uint32_t i = 0; i < all->count; i++) {
		if (!may_see(call, &all->tokens[i]))
			continue;
		view.tokens[view.count] = all->tokens[i];
		show(&view.tokens[view.count++]);
	}
	answer(call, 200, &view);
	takt_tokens_view_fini(&view);
	return 0;
}

void takt_route_tokens(struct takt_call *call)
{
	struct takt_err err;

	if (need_store(call, &err) < 0 || list(call, &err) < 0)
		takt_server_answer_failure(call->http, &err);
}

/* For oneself; administrators for others. */
static int whose(const struct takt_call *call, const struct takt_token_request *request, uid_t *ret,
		 struct takt_err *err)
{
	int rc = 0;

	*ret = call->peer.uid;
	if (request->user[0])
		rc = takt_server_find_user(request->user, ret, err);
	if (rc == 0 && *ret != call->peer.uid && !call->peer.admin)
		rc = takt_err_set(err, -EPERM, "only administrators make tokens for others");
	return rc;
}

static int add(struct takt_call *call, struct takt_tokens_view *view, struct takt_err *err)
{
	struct takt_token_request request;
	struct takt_peer peer;
	uid_t uid = 0;
	int rc =
		takt_token_request_from_json(call->http->body, call->http->body_len, &request, err);

	if (rc == 0)
		rc = whose(call, &request, &uid, err);
	if (rc == 0)
		rc = takt_server_identify_uid(call->server, uid, &peer, err);
	if (rc == 0)
		rc = takt_token_store_add(call->server->tokens, uid, &request, view->token,
					  view->tokens, err);
	return rc;
}

void takt_route_tokens_add(struct takt_call *call)
{
	struct takt_token made = {.id = ""};
	struct takt_tokens_view view = {.count = 1, .tokens = &made};
	struct takt_err err;

	if (need_store(call, &err) < 0 || add(call, &view, &err) < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	show(&made);
	answer(call, 201, &view);
	explicit_bzero(view.token, sizeof(view.token));
}

static int revoke(struct takt_call *call, struct takt_err *err)
{
	const struct takt_tokens_view *all = takt_token_store_all(call->server->tokens);
	struct takt_token_request request;
	int rc =
		takt_token_request_from_json(call->http->body, call->http->body_len, &request, err);

	if (rc < 0)
		return rc;
	/* Another's is told like one that there is not. */
	for (uint32_t i = 0; i < all->count; i++)
		if (strcmp(all->tokens[i].id, request.id) == 0 && may_see(call, &all->tokens[i]))
			return takt_token_store_revoke(call->server->tokens, request.id, err);
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no token '%.20s'", request.id);
}

void takt_route_tokens_revoke(struct takt_call *call)
{
	struct takt_err err;

	if (need_store(call, &err) < 0 || revoke(call, &err) < 0 || list(call, &err) < 0)
		takt_server_answer_failure(call->http, &err);
}
