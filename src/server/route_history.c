/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU did. Nothing in it says whose job it was: it is what the metrics page shows to all. */
#include <errno.h>

#include "server/server_impl.h"

/* Milliseconds since 1970 in the query. */
static int read_time(struct takt_call *call, const char *name, int64_t *ret)
{
	uint64_t value;
	int rc = takt_server_query_u64(call, name, 0, TAKT_JSON_MAX_INT, 0, &value);

	*ret = rc < 0 ? 0 : (int64_t)value;
	return rc;
}

static int read_ask(struct takt_call *call, struct takt_gpu_history_ask *ret)
{
	uint64_t gpu;

	*ret = (struct takt_gpu_history_ask){
		.metric = takt_http_query(call->http, "metric"),
		.step = takt_http_query(call->http, "step"),
	};
	if (takt_server_query_u64(call, "gpu", 0, TAKT_VIEW_MAX_GPUS - 1, 0, &gpu) < 0 ||
	    read_time(call, "since_ms", &ret->since_ms) < 0 ||
	    read_time(call, "until_ms", &ret->until_ms) < 0)
		return -TAKT_E_USAGE; /* answered */
	ret->gpu = (uint32_t)gpu;
	return 0;
}

void takt_route_history(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct takt_gpu_history_ask ask;
	struct takt_pending *pending;
	struct takt_err err;
	int rc;

	if (read_ask(call, &ask) < 0)
		return;
	pending = takt_server_pending_new(call, 200);
	if (pending)
		rc = server->backend.history(server->ctx, &ask, pending, &err);
	else
		rc = takt_err_set(&err, -ENOMEM, "no memory for the request");
	if (rc == 0)
		return;
	if (pending)
		takt_server_pending_drop(pending);
	takt_server_answer_failure(call->http, &err);
}
