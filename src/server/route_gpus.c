/* SPDX-License-Identifier: Apache-2.0 */
/* Routes about GPUs that are set aside: drained, reserved, in maintenance. */
#include <errno.h>

#include "base/mem.h"
#include "server/server_impl.h"

int takt_tell_gpus(struct takt_call *call, struct takt_str *json, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_orders_view *view = takt_zalloc(sizeof(*view));
	struct takt_server *server = call->server;
	int rc = view ? server->backend.orders(server->ctx, &call->peer, view, err)
		      : takt_err_set(err, -ENOMEM, "no memory for the answer");

	if (rc < 0)
		return rc;
	takt_orders_view_to_json(view, json);
	return 0;
}

void takt_route_gpus(struct takt_call *call)
{
	takt_server_answer_told(call, takt_tell_gpus);
}

static void hand_over(struct takt_call *call, const struct takt_gpu_request *request)
{
	struct takt_server *server = call->server;
	struct takt_pending *pending = takt_server_pending_new(call, 200);
	struct takt_err err;

	if (!pending) {
		takt_err_set(&err, -ENOMEM, "no memory for the request");
		takt_server_answer_failure(call->http, &err);
		return;
	}
	if (server->backend.order(server->ctx, &call->peer, request, pending, &err) < 0) {
		takt_server_pending_drop(pending);
		takt_server_answer_failure(call->http, &err);
	}
}

static void serve(struct takt_call *call, enum takt_gpu_request_kind kind)
{
	const struct takt_http_request *http = call->http;
	struct takt_gpu_request request;
	struct takt_err err;

	if (takt_gpu_request_from_json(kind, http->body, http->body_len, &request, &err) < 0)
		takt_server_answer_failure(call->http, &err);
	else
		hand_over(call, &request);
}

void takt_route_gpus_drain(struct takt_call *call)
{
	serve(call, TAKT_GPU_DRAIN);
}

void takt_route_gpus_resume(struct takt_call *call)
{
	serve(call, TAKT_GPU_RESUME);
}

void takt_route_gpus_reserve(struct takt_call *call)
{
	serve(call, TAKT_GPU_RESERVE);
}

void takt_route_gpus_mig(struct takt_call *call)
{
	serve(call, TAKT_GPU_MIG);
}

void takt_route_gpus_approve(struct takt_call *call)
{
	serve(call, TAKT_GPU_APPROVE);
}

void takt_route_gpus_refuse(struct takt_call *call)
{
	serve(call, TAKT_GPU_REFUSE);
}

void takt_route_gpus_release(struct takt_call *call)
{
	serve(call, TAKT_GPU_RELEASE);
}
