/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose answer the backend gives later. */
#include <string.h>

#include "base/mem.h"
#include "server/pending_impl.h"

struct takt_pending *takt_server_pending_new(const struct takt_call *call, int http_status)
{
	struct takt_pending *pending = takt_zalloc(sizeof(*pending));

	if (!pending)
		return NULL;
	pending->held.kind = TAKT_HELD_PENDING;
	pending->server = call->server;
	pending->http = call->http;
	pending->http_status = http_status;
	pending->http->user = &pending->held;
	pending->next = call->server->pendings;
	if (pending->next)
		pending->next->prev = pending;
	call->server->pendings = pending;
	return pending;
}

void takt_server_pending_drop(struct takt_pending *pending)
{
	if (pending->prev)
		pending->prev->next = pending->next;
	else
		pending->server->pendings = pending->next;
	if (pending->next)
		pending->next->prev = pending->prev;
	takt_free(pending);
}

void takt_pending_json(struct takt_pending *pending, int http_status, const char *json, size_t len)
{
	TAKT_CLEANUP(strp) struct takt_str copy = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_http_request *http = pending->http;

	if (http_status == 200)
		http_status = pending->http_status;
	takt_server_pending_drop(pending);
	takt_str_addn(&copy, json, len);
	takt_server_answer_text(http, http_status, &copy);
}

void takt_pending_error(struct takt_pending *pending, const struct takt_err *error)
{
	struct takt_http_request *http = pending->http;

	takt_server_pending_drop(pending);
	takt_server_answer_failure(http, error);
}

void takt_pending_set_cancel(struct takt_pending *pending, void (*cancelled)(void *ctx), void *ctx)
{
	pending->cancelled = cancelled;
	pending->cancel_ctx = ctx;
}

void takt_server_pending_gone(struct takt_pending *pending)
{
	void (*cancelled)(void *ctx) = pending->cancelled;
	void *ctx = pending->cancel_ctx;

	takt_server_pending_drop(pending);
	if (cancelled)
		cancelled(ctx);
}
