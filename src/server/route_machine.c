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

int takt_tell_status(struct takt_call *call, struct takt_str *json, struct takt_err *err)
{
	struct takt_server *server = call->server;
	struct takt_status_view view;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = server->backend.status(server->ctx, &call->peer, &view, err);
	if (rc < 0)
		return rc;
	takt_status_view_to_json(&view, json);
	takt_status_view_fini(&view);
	return 0;
}

void takt_route_status(struct takt_call *call)
{
	takt_server_answer_told(call, takt_tell_status);
}

int takt_tell_health(struct takt_call *call, struct takt_str *json, struct takt_err *err)
{
	struct takt_server *server = call->server;
	struct takt_health_view view;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = server->backend.health(server->ctx, &call->peer, &view, err);
	if (rc < 0)
		return rc;
	takt_health_view_to_json(&view, json);
	takt_health_view_fini(&view);
	return 0;
}

void takt_route_health(struct takt_call *call)
{
	takt_server_answer_told(call, takt_tell_health);
}

void takt_route_net(struct takt_call *call)
{
	TAKT_CLEANUP(freep) struct takt_net_view *view = takt_zalloc(sizeof(*view));
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_err err;
	int rc = view ? server->backend.net(server->ctx, view, &err)
		      : takt_err_set(&err, -ENOMEM, "no memory for the answer");

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_net_view_to_json(view, &json);
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

void takt_route_reload(struct takt_call *call)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_reload_view view = {.changed = ""};
	struct takt_err err;

	if (server->backend.reload(server->ctx, &call->peer, &view, &err) < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_reload_view_to_json(&view, &json);
	takt_server_answer_text(call->http, 200, &json);
}

void takt_route_metrics(struct takt_call *call)
{
	struct takt_server *server = call->server;
	void (*release)(void *page) = NULL;
	const char *text = "";
	void *page = NULL;
	size_t len = 0;
	bool openmetrics = takt_server_wants_openmetrics(takt_http_header(call->http, "Accept"));

	if (server->backend.metrics(server->ctx, openmetrics, &text, &len, &page, &release) < 0) {
		struct takt_err err;

		takt_err_set(&err, -TAKT_E_UNAVAILABLE, "there is no metrics page yet");
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_http_answer(call->http, 200,
			 openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				     : "text/plain; version=0.0.4; charset=utf-8",
			 text, len, release, page);
}

int takt_tell_clocks(struct takt_call *call, struct takt_str *json, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_zalloc(sizeof(*view));
	struct takt_server *server = call->server;
	int rc = view ? server->backend.clocks(server->ctx, view, err)
		      : takt_err_set(err, -ENOMEM, "no memory for the clocks");

	if (rc < 0)
		return rc;
	takt_clock_view_to_json(view, json);
	return 0;
}

void takt_route_clocks(struct takt_call *call)
{
	takt_server_answer_told(call, takt_tell_clocks);
}

/* Bodies of clocks/set and clocks/reset; those of what administrators declare: route_clocks.c. */
struct clock_request {
	uint64_t gpu_mask;
	struct takt_clock_order ask;
};
#define GPUS                                                                         \
	{                                                                            \
		.name = "gpus", .kind = TAKT_FIELD_MASK,                             \
		.offset = offsetof(struct clock_request, gpu_mask), .required = true \
	}
#define ASK(member, kind_, ...)                                                   \
	{                                                                         \
		.name = #member, .kind = (kind_),                                 \
		.offset = offsetof(struct clock_request, ask.member), __VA_ARGS__ \
	}
static const struct takt_field set_fields[] = {
	GPUS,
	ASK(max_mhz, TAKT_FIELD_U32, .min = 1, .max = 10000),
	ASK(mem_mhz, TAKT_FIELD_U32, .min = 1, .max = 30000),
	ASK(lock, TAKT_FIELD_BOOL),
	ASK(power_limit_mw, TAKT_FIELD_U32, .min = 1000, .max = 10000000),
	ASK(benchmark, TAKT_FIELD_BOOL),
	ASK(assume_unlocked, TAKT_FIELD_BOOL),
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
		   : backend->clock_set(server->ctx, &call->peer, request->gpu_mask, &request->ask,
					pending, &err);
	if (rc < 0) {
		takt_server_pending_drop(pending);
		takt_server_answer_failure(call->http, &err);
	}
}

static int asks_something(const struct takt_clock_order *ask, struct takt_err *err)
{
	return ask->max_mhz || ask->mem_mhz || ask->power_limit_mw
		       ? 0
		       : takt_err_set(err, -TAKT_E_USAGE,
				      "field 'max_mhz' is missing ('mem_mhz' or 'power_limit_mw' "
				      "may stand alone)");
}

static void serve_clock_change(struct takt_call *call, const struct takt_shape *shape, bool reset)
{
	struct clock_request request = {.gpu_mask = 0};
	struct takt_err err;

	if (read_clock_request(call, shape, &request, &err) < 0 ||
	    (!reset && asks_something(&request.ask, &err) < 0))
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

struct cpu_request {
	uint32_t max_mhz;
};
static const struct takt_field cpu_fields[] = {
	{TAKT_FIELD_AT(struct cpu_request, max_mhz, TAKT_FIELD_U32), .required = true,
	 .max = 20000},
};
static const struct takt_shape cpu_shape = TAKT_SHAPE(struct cpu_request, "the body", cpu_fields);

void takt_route_clocks_cpu(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct cpu_request request = {0};
	struct takt_pending *pending;
	struct takt_err err;
	int rc = takt_shape_decode(&cpu_shape, call->http->body, call->http->body_len, 1024,
				   TAKT_SHAPE_STRICT, &request, &err);

	if (rc == -TAKT_E_CORRUPT)
		err.rc = -TAKT_E_USAGE;
	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	pending = takt_server_pending_new(call, 200);
	if (!pending)
		rc = takt_err_set(&err, -ENOMEM, "no memory for the request");
	else
		rc = server->backend.cpu_clock(server->ctx, &call->peer, request.max_mhz, pending,
					       &err);
	if (rc == 0)
		return;
	if (pending)
		takt_server_pending_drop(pending);
	takt_server_answer_failure(call->http, &err);
}
