/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for what administrators say of clocks and power limits for good: caps, what is declared.
 */
#include <errno.h>

#include "codec/clock_policy.h"
#include "server/server_impl.h"

/* Hands `what` to one of the two; NULL of the other. */
static int order(struct takt_call *call, const struct takt_clock_cap *cap,
		 const struct takt_declaration *declaration, struct takt_pending *pending,
		 struct takt_err *err)
{
	struct takt_server *server = call->server;

	if (cap)
		return server->backend.clock_cap(server->ctx, &call->peer, cap, pending, err);
	return server->backend.clock_declare(server->ctx, &call->peer, declaration, pending, err);
}

static void serve(struct takt_call *call, const struct takt_clock_cap *cap,
		  const struct takt_declaration *declaration)
{
	struct takt_pending *pending = takt_server_pending_new(call, 200);
	struct takt_err err;
	int rc = pending ? order(call, cap, declaration, pending, &err)
			 : takt_err_set(&err, -ENOMEM, "no memory for the request");

	if (rc == 0)
		return;
	if (pending)
		takt_server_pending_drop(pending);
	takt_server_answer_failure(call->http, &err);
}

void takt_route_clocks_cap(struct takt_call *call)
{
	struct takt_clock_cap cap;
	struct takt_err err;

	if (takt_clock_cap_from_json(call->http->body, call->http->body_len, &cap, &err) < 0)
		takt_server_answer_failure(call->http, &err);
	else
		serve(call, &cap, NULL);
}

void takt_route_clocks_apply(struct takt_call *call)
{
	struct takt_declaration declaration;
	struct takt_err err;

	if (takt_declaration_from_json(call->http->body, call->http->body_len, &declaration, &err) <
	    0)
		takt_server_answer_failure(call->http, &err);
	else
		serve(call, NULL, &declaration);
}

void takt_route_clocks_restore(struct takt_call *call)
{
	serve(call, NULL, NULL);
}
