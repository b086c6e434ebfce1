/* SPDX-License-Identifier: Apache-2.0 */
/* Routes about jobs, but for their logs. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/timetypes.h"
#include "codec/json.h"
#include "codec/shape.h"
#include "server/server_impl.h"

static const uint64_t max_wall_ms = INT64_MAX / TAKT_NS_PER_MS;

enum {
	DEFAULT_LIMIT = 1000,
	MAX_LIMIT = 10000,
	TOLD_LIMIT = 200,
	MAX_WAIT_MS = 60 * 60 * 1000,
};

static int add_job(void *arg, const struct takt_job_view *view)
{
	return takt_queue_json_job(arg, view);
}

/* Negative: answered. */
static int read_history(struct takt_call *call, struct takt_history_ask *ret)
{
	uint64_t since_ms, until_ms, uid, gpu;

	*ret = (struct takt_history_ask){.states = takt_http_query(call->http, "state")};
	if (takt_server_query_u64(call, "before", 0, INT64_MAX, 0, &ret->before) < 0 ||
	    takt_server_query_u64(call, "since_ms", 0, max_wall_ms, 0, &since_ms) < 0 ||
	    takt_server_query_u64(call, "until_ms", 0, max_wall_ms, 0, &until_ms) < 0 ||
	    takt_server_query_u64(call, "uid", 0, UINT32_MAX, UINT32_MAX, &uid) < 0 ||
	    takt_server_query_u64(call, "gpu", 0, TAKT_VIEW_MAX_GPUS, TAKT_VIEW_MAX_GPUS, &gpu) < 0)
		return -TAKT_E_USAGE;
	ret->since_ms = (int64_t)since_ms;
	ret->until_ms = (int64_t)until_ms;
	ret->uid = (uint32_t)uid;
	ret->gpu = (uint32_t)gpu;
	return 0;
}

/* The live ones, as many as a page shows at a time. */
int takt_tell_jobs(struct takt_call *call, struct takt_str *json, struct takt_err *err)
{
	struct takt_server *server = call->server;
	struct takt_queue_rest rest = {0};
	int rc;

	takt_queue_json_begin(json, server->config.simulated);
	rc = server->backend.queue(server->ctx, &call->peer, NULL, TOLD_LIMIT, add_job, json, &rest,
				   err);
	if (rc < 0)
		return rc;
	takt_queue_json_end(json, rest.total, 0);
	return 0;
}

struct list_ask {
	struct takt_history_ask of;
	struct takt_live_key key;
	bool everybodys; /* the live ones */
};

/* Negative: answered. */
static int read_list(struct takt_call *call, struct list_ask *ret)
{
	uint64_t history, limit;

	if (takt_server_query_u64(call, "history", 0, 1, 0, &history) < 0 ||
	    takt_server_query_u64(call, "limit", 1, MAX_LIMIT, DEFAULT_LIMIT, &limit) < 0 ||
	    read_history(call, &ret->of) < 0)
		return -TAKT_E_USAGE;
	ret->key = (struct takt_live_key){
		.uid = call->peer.uid, .admin = call->peer.admin, .limit = (uint32_t)limit};
	ret->of.live = !history;
	ret->everybodys = !history && ret->of.uid == UINT32_MAX;
	return 0;
}

static void make_list(struct takt_call *call, const struct list_ask *ask)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_queue_rest rest = {0};
	struct takt_err err = {.rc = 0};
	int rc;

	takt_queue_json_begin(&json, server->config.simulated);
	rc = server->backend.queue(server->ctx, &call->peer, ask->everybodys ? NULL : &ask->of,
				   ask->key.limit, add_job, &json, &rest, &err);
	/* A list that did not fit is told by the text itself. */
	if (rc < 0 && json.rc == 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_queue_json_end(&json, rest.total, rest.next);
	if (!ask->everybodys || json.rc < 0)
		takt_server_answer_text(call->http, 200, &json);
	else
		takt_live_lists_keep(call, &ask->key, &json);
}

/* Another may have had the same list made meanwhile. */
static void serve_list(struct takt_call *call)
{
	struct list_ask ask;

	if (read_list(call, &ask) == 0 &&
	    !(ask.everybodys && takt_live_lists_answer(call, &ask.key)))
		make_list(call, &ask);
}

void takt_route_jobs(struct takt_call *call)
{
	struct list_ask ask;

	if (read_list(call, &ask) == 0 &&
	    !(ask.everybodys && takt_live_lists_answer(call, &ask.key)))
		takt_server_take_turn(call, serve_list);
}

void takt_route_job(struct takt_call *call)
{
	TAKT_CLEANUP(freep) struct takt_job_view *view = takt_zalloc(sizeof(*view));
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_err err;
	int rc = view ? server->backend.job(server->ctx, &call->peer, call->job_id, view, &err)
		      : takt_err_set(&err, -ENOMEM, "no memory for a job");

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_job_view_to_json(view, &json);
	takt_server_answer_text(call->http, 200, &json);
}

void takt_route_explain(struct takt_call *call)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_explain_view view;
	struct takt_err err;

	memset(&view, 0, sizeof(view));
	if (server->backend.explain(server->ctx, &call->peer, call->job_id, &view, &err) < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_explain_view_to_json(&view, &json);
	takt_server_answer_text(call->http, 200, &json);
}

void takt_route_course(struct takt_call *call)
{
	TAKT_CLEANUP(freep) struct takt_course_view *view = takt_zalloc(sizeof(*view));
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_server *server = call->server;
	struct takt_err err;
	int rc = view ? server->backend.course(server->ctx, &call->peer, call->job_id, view, &err)
		      : takt_err_set(&err, -ENOMEM, "no memory for the answer");

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	takt_course_view_to_json(view, &json);
	takt_server_answer_text(call->http, 200, &json);
}

/* What the backend is to finish later; it answers itself when that fails. */
static struct takt_pending *begin_pending(struct takt_call *call, int http_status)
{
	struct takt_pending *pending = takt_server_pending_new(call, http_status);
	struct takt_err err;

	if (!pending) {
		takt_err_set(&err, -ENOMEM, "no memory for the request");
		takt_server_answer_failure(call->http, &err);
	}
	return pending;
}

static void check_taken(struct takt_call *call, struct takt_pending *pending, int rc,
			const struct takt_err *err)
{
	if (rc >= 0)
		return;
	takt_server_pending_drop(pending);
	takt_server_answer_failure(call->http, err);
}

void takt_route_submit(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct takt_pending *pending;
	struct takt_jobspec spec;
	struct takt_err err;
	int rc;

	takt_jobspec_init(&spec);
	if (takt_jobspec_from_json(call->http->body, call->http->body_len, &spec, &err) < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	pending = begin_pending(call, 201);
	if (pending) {
		rc = server->backend.submit(server->ctx, &call->peer, &spec, pending, &err);
		check_taken(call, pending, rc, &err);
	}
	takt_jobspec_fini(&spec);
}

void takt_route_submit_many(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct takt_jobspecs specs = {0};
	struct takt_pending *pending;
	struct takt_err err;
	int rc = takt_jobspecs_from_json(call->http->body, call->http->body_len, &specs, &err);

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	pending = begin_pending(call, 201);
	if (pending) {
		rc = server->backend.submit_many(server->ctx, &call->peer, &specs, pending, &err);
		check_taken(call, pending, rc, &err);
	}
	takt_jobspecs_free(&specs);
}

void takt_route_again(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct takt_pending *pending;
	struct takt_jobspec env;
	struct takt_err err;
	int rc;

	takt_jobspec_init(&env);
	rc = takt_jobspec_env_from_json(call->http->body, call->http->body_len, &env, &err);
	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	pending = begin_pending(call, 201);
	if (pending) {
		rc = server->backend.again(server->ctx, &call->peer, call->job_id, &env, pending,
					   &err);
		check_taken(call, pending, rc, &err);
	}
	takt_jobspec_fini(&env);
}

/* The answer to several: {"jobs": [...]}. */
static void answer_tries(struct takt_call *call, struct takt_jobspecs *specs, bool several)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	TAKT_CLEANUP(freep)
	struct takt_try_view *views = takt_calloc(specs->count, sizeof(*views));
	struct takt_server *server = call->server;
	struct takt_err err;
	int rc = views ? server->backend.try(server->ctx, &call->peer, specs, views, &err)
		       : takt_err_set(&err, -ENOMEM, "the request");

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	if (several)
		takt_try_views_to_json(views, specs->count, &json);
	else
		takt_try_view_to_json(views, &json);
	takt_server_answer_text(call->http, 200, &json);
}

static void serve_try(struct takt_call *call)
{
	struct takt_jobspec spec;
	struct takt_err err;

	takt_jobspec_init(&spec);
	if (takt_jobspec_from_json(call->http->body, call->http->body_len, &spec, &err) < 0)
		takt_server_answer_failure(call->http, &err);
	else
		answer_tries(call, &(struct takt_jobspecs){.count = 1, .jobs = &spec}, false);
	takt_jobspec_fini(&spec);
}

void takt_route_try(struct takt_call *call)
{
	takt_server_take_turn(call, serve_try);
}

static void serve_try_many(struct takt_call *call)
{
	struct takt_jobspecs specs = {0};
	struct takt_err err;

	if (takt_jobspecs_from_json(call->http->body, call->http->body_len, &specs, &err) < 0)
		takt_server_answer_failure(call->http, &err);
	else
		answer_tries(call, &specs, true);
	takt_jobspecs_free(&specs);
}

void takt_route_try_many(struct takt_call *call)
{
	takt_server_take_turn(call, serve_try_many);
}

void takt_route_cancel(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct takt_pending *pending = begin_pending(call, 200);
	struct takt_err err;
	int rc;

	if (!pending)
		return;
	rc = server->backend.cancel(server->ctx, &call->peer, call->job_id, pending, &err);
	check_taken(call, pending, rc, &err);
}

void takt_route_change(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct takt_job_change change;
	struct takt_pending *pending;
	struct takt_err err;
	int rc = takt_job_change_from_json(call->http->body, call->http->body_len, &change, &err);

	if (rc < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	pending = begin_pending(call, 200);
	if (!pending)
		return;
	rc = server->backend.change(server->ctx, &call->peer, call->job_id, &change, pending, &err);
	check_taken(call, pending, rc, &err);
}

void takt_route_wait(struct takt_call *call)
{
	struct takt_server *server = call->server;
	struct takt_pending *pending;
	uint64_t timeout_ms;
	struct takt_err err;
	int rc;

	if (takt_server_query_u64(call, "timeout_ms", 0, MAX_WAIT_MS, 30000, &timeout_ms) < 0)
		return;
	pending = begin_pending(call, 200);
	if (!pending)
		return;
	rc = server->backend.wait(server->ctx, &call->peer, call->job_id, (uint32_t)timeout_ms,
				  pending, &err);
	check_taken(call, pending, rc, &err);
}

struct signal_request {
	uint32_t signal;
};
static const struct takt_field signal_fields[] = {
	{TAKT_FIELD_AT(struct signal_request, signal, TAKT_FIELD_U32), .required = true, .min = 1,
	 .max = 64},
};
static const struct takt_shape signal_shape =
	TAKT_SHAPE(struct signal_request, "the body", signal_fields);

void takt_route_signal(struct takt_call *call)
{
	static const char done[] = "{}";
	struct signal_request request = {.signal = 0};
	struct takt_server *server = call->server;
	struct takt_err err;
	int rc = takt_shape_decode(&signal_shape, call->http->body, call->http->body_len, 1024,
				   TAKT_SHAPE_STRICT, &request, &err);

	if (rc == -TAKT_E_CORRUPT)
		rc = err.rc = -TAKT_E_USAGE;
	if (rc == 0)
		rc = server->backend.signal(server->ctx, &call->peer, call->job_id,
					    (int)request.signal, &err);
	if (rc < 0)
		takt_server_answer_failure(call->http, &err);
	else
		takt_http_answer(call->http, 200, "application/json", done, strlen(done), NULL,
				 NULL);
}
