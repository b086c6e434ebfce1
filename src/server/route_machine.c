/* SPDX-License-Identifier: Apache-2.0 */
/* Routes about the machine: version, status, topology, clocks, metrics. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/json.h"
#include "codec/shape.h"
#include "server/server_impl.h"
#include "takt_build.h"

void takt_route_version(struct takt_call *call)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(1024);

	takt_str_addf(&json, "{\"takt_version\":\"%s\",\"api\":%d,\"simulated\":%s}", TAKT_VERSION,
		      TAKT_API_VERSION, call->server->config.simulated ? "true" : "false");
	takt_server_answer_text(call->http, 200, &json);
}

void takt_route_status(struct takt_call *call)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_status_view view;
	struct takt_err err;

	memset(&view, 0, sizeof(view));
	if (server->backend.status(server->ctx, &call->peer, &view, &err) < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_status_view_to_json(&view, &json);
	takt_status_view_fini(&view);
	takt_server_answer_text(call->http, 200, &json);
}

void takt_route_topology(struct takt_call *call)
{
	TAKT_CLEANUP(freep) struct takt_topo_view *view = takt_zalloc(sizeof(*view));
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_err err;
	int rc = view ? server->backend.topology(server->ctx, view, &err)
		      : takt_err_set(&err, -ENOMEM, "no memory for a topology");

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_topo_view_to_json(view, &json);
	takt_server_answer_text(call->http, 200, &json);
}

void takt_route_metrics(struct takt_call *call)
{
	struct takt_server *server = call->server;
	void (*release)(void *page) = NULL;
	const char *text = "";
	void *page = NULL;
	size_t len = 0;

	if (server->backend.metrics(server->ctx, &text, &len, &page, &release) < 0) {
		struct takt_err err;

		takt_err_set(&err, -TAKT_E_UNAVAILABLE, "there is no metrics page yet");
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_http_answer(call->http, 200, "text/plain; version=0.0.4; charset=utf-8", text, len,
			 release, page);
}

void takt_route_clocks(struct takt_call *call)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_zalloc(sizeof(*view));
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_err err;
	int rc = view ? server->backend.clocks(server->ctx, view, &err)
		      : takt_err_set(&err, -ENOMEM, "no memory for the clocks");

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_clock_view_to_json(view, &json);
	takt_server_answer_text(call->http, 200, &json);
}

/* Bodies of clocks/set and clocks/reset. */
struct clock_request {
	uint64_t gpu_mask;
	uint32_t max_mhz;
	bool lock;
};
#define GPUS                                                                         \
	{                                                                            \
		.name = "gpus", .kind = TAKT_FIELD_MASK,                             \
		.offset = offsetof(struct clock_request, gpu_mask), .required = true \
	}
static const struct takt_field set_fields[] = {
	GPUS,
	{TAKT_FIELD_AT(struct clock_request, max_mhz, TAKT_FIELD_U32), .required = true, .min = 1,
	 .max = 10000},
	{TAKT_FIELD_AT(struct clock_request, lock, TAKT_FIELD_BOOL)},
};
static const struct takt_field reset_fields[] = {GPUS};
static const struct takt_shape set_shape = TAKT_SHAPE(struct clock_request, "the body", set_fields);
static const struct takt_shape reset_shape =
	TAKT_SHAPE(struct clock_request, "the body", reset_fields);

static int read_clock_request(struct takt_call *call, const struct takt_shape *shape,
			      struct clock_request *ret, struct takt_err *err)
{
	int rc = takt_shape_decode(shape, call->http->body, call->http->body_len, 64 * 1024,
				   TAKT_SHAPE_STRICT, ret, err);

	if (rc == -TAKT_E_CORRUPT)
		rc = err->rc = -TAKT_E_USAGE;
	if (rc == 0 && ret->gpu_mask == 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "field 'gpus' must name at least one GPU");
	return rc;
}

static void change_clocks(struct takt_call *call, const struct clock_request *request, bool reset)
{
	struct takt_server *server = call->server;
	const struct takt_server_backend *backend = &server->backend;
	struct takt_pending *pending = takt_server_pending_new(call, 200);
	struct takt_err err;
	int rc;

	if (!pending) {
		takt_err_set(&err, -ENOMEM, "no memory for the request");
		takt_server_answer_failure(call->http, &err);
		return;
	}
	rc = reset ? backend->clock_reset(server->ctx, &call->peer, request->gpu_mask, pending,
					  &err)
		   : backend->clock_set(server->ctx, &call->peer, request->gpu_mask,
					request->max_mhz, request->lock, pending, &err);
	if (rc < 0) {
		takt_server_pending_drop(pending);
		takt_server_answer_failure(call->http, &err);
	}
}

static void serve_clock_change(struct takt_call *call, const struct takt_shape *shape, bool reset)
{
	struct clock_request request = {.gpu_mask = 0};
	struct takt_err err;

	if (read_clock_request(call, shape, &request, &err) < 0)
		takt_server_answer_failure(call->http, &err);
	else
		change_clocks(call, &request, reset);
}

void takt_route_clocks_set(struct takt_call *call)
{
	serve_clock_change(call, &set_shape, false);
}

void takt_route_clocks_reset(struct takt_call *call)
{
	serve_clock_change(call, &reset_shape, true);
}
