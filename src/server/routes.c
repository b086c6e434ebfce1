/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of routes, and what is checked of every request before a route sees it: who asks,
 * the path, the method, the type of the body, the names in the query.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/server_impl.h"

struct route {
	const char *method;
	const char *path; /* "ID" stands for a job's number */
	void (*serve)(struct takt_call *call);
	const char *query[9]; /* names that may be in it */
	bool local;	      /* on the Unix socket only, whatever token one has */
};

static const struct route routes[] = {
	{"GET", "/v1/version", takt_route_version, {NULL}},
	{"GET", "/v1/status", takt_route_status, {NULL}},
	{"GET", "/v1/account", takt_route_account, {NULL}},
	{"GET", "/v1/stream", takt_route_stream, {"of"}},
	{"GET", "/v1/tokens", takt_route_tokens, {NULL}, true},
	{"POST", "/v1/tokens", takt_route_tokens_add, {NULL}, true},
	{"POST", "/v1/tokens/revoke", takt_route_tokens_revoke, {NULL}, true},
	{"GET", "/v1/topology", takt_route_topology, {NULL}},
	{"GET",
	 "/v1/jobs",
	 takt_route_jobs,
	 {"history", "limit", "before", "since_ms", "until_ms", "uid", "gpu", "state"}},
	{"POST", "/v1/jobs", takt_route_submit, {NULL}},
	{"POST", "/v1/jobs/batch", takt_route_submit_many, {NULL}},
	{"POST", "/v1/jobs/batch/try", takt_route_try_many, {NULL}},
	{"POST", "/v1/jobs/try", takt_route_try, {NULL}},
	{"GET", "/v1/jobs/ID", takt_route_job, {NULL}},
	{"GET", "/v1/jobs/ID/explain", takt_route_explain, {NULL}},
	{"GET", "/v1/jobs/ID/course", takt_route_course, {NULL}},
	{"GET",
	 "/v1/jobs/ID/log",
	 takt_route_log,
	 {"offset", "attempt", "follow", "timeout_ms", "tail"}},
	{"GET", "/v1/jobs/ID/wait", takt_route_wait, {"timeout_ms"}},
	{"POST", "/v1/jobs/ID/again", takt_route_again, {NULL}},
	{"POST", "/v1/jobs/ID/cancel", takt_route_cancel, {NULL}},
	{"POST", "/v1/jobs/ID/change", takt_route_change, {NULL}},
	{"POST", "/v1/jobs/ID/signal", takt_route_signal, {NULL}},
	{"GET", "/v1/clocks", takt_route_clocks, {NULL}},
	{"POST", "/v1/clocks/set", takt_route_clocks_set, {NULL}},
	{"POST", "/v1/clocks/reset", takt_route_clocks_reset, {NULL}},
	{"POST", "/v1/clocks/cap", takt_route_clocks_cap, {NULL}},
	{"POST", "/v1/clocks/apply", takt_route_clocks_apply, {NULL}},
	{"POST", "/v1/clocks/restore", takt_route_clocks_restore, {NULL}},
	{"POST", "/v1/clocks/cpu", takt_route_clocks_cpu, {NULL}},
	{"GET", "/v1/health", takt_route_health, {NULL}},
	{"GET", "/v1/net", takt_route_net, {NULL}},
	{"GET", "/v1/gpus", takt_route_gpus, {NULL}},
	{"POST", "/v1/gpus/drain", takt_route_gpus_drain, {NULL}},
	{"POST", "/v1/gpus/resume", takt_route_gpus_resume, {NULL}},
	{"POST", "/v1/gpus/reserve", takt_route_gpus_reserve, {NULL}},
	{"POST", "/v1/gpus/mig", takt_route_gpus_mig, {NULL}},
	{"POST", "/v1/gpus/release", takt_route_gpus_release, {NULL}},
	{"POST", "/v1/gpus/approve", takt_route_gpus_approve, {NULL}},
	{"POST", "/v1/gpus/refuse", takt_route_gpus_refuse, {NULL}},
	{"GET",
	 "/v1/history",
	 takt_route_history,
	 {"gpu", "metric", "since_ms", "until_ms", "step"}},
	{"POST", "/v1/config/reload", takt_route_reload, {NULL}},
	{"GET", "/metrics", takt_route_metrics, {NULL}},
};

/* A job's number: no sign, no leading zero. */
static size_t match_id(const char *text, uint64_t *ret)
{
	char digits[24];
	unsigned long long value;
	size_t len = strcspn(text, "/");

	if (len >= sizeof(digits) || text[0] == '0')
		return 0;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (takt_parse_u64(digits, 1, INT64_MAX, &value) < 0)
		return 0;
	*ret = value;
	return len;
}

static bool match(const char *pattern, const char *path, uint64_t *ret_id)
{
	while (*pattern) {
		size_t taken = 1;

		if (strncmp(pattern, "ID", 2) == 0) {
			taken = match_id(path, ret_id);
			if (taken == 0)
				return false;
			pattern += 2;
		} else if (*pattern++ != *path) {
			return false;
		}
		path += taken;
	}
	return !*path;
}

static bool method_fits(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* The route, or NULL with the methods that the path has ("" = no such path). */
static const struct route *find_route(struct takt_call *call, char *ret_allow, size_t size)
{
	ret_allow[0] = '\0';
	for (size_t i = 0; i < TAKT_ARRAY_LEN(routes); i++) {
		if (!match(routes[i].path, call->http->path, &call->job_id))
			continue;
		if (method_fits(&routes[i], call->http->method))
			return &routes[i];
		snprintf(ret_allow + strlen(ret_allow), size - strlen(ret_allow), "%s%s",
			 ret_allow[0] ? ", " : "",
			 routes[i].method[0] == 'G' ? "GET, HEAD" : routes[i].method);
	}
	return NULL;
}

static void no_route(struct takt_call *call, const char *allow)
{
	struct takt_err error;

	if (!allow[0]) {
		takt_err_set(&error, -TAKT_E_NOT_FOUND,
			     "no such path '%.80s'; docs/api.md lists what there is",
			     call->http->path);
		takt_server_answer_error(call->http, 404, &error);
		return;
	}
	takt_http_answer_header(call->http, "Allow", allow);
	takt_err_set(&error, -TAKT_E_USAGE, "'%.80s' takes %s, not %.20s", call->http->path, allow,
		     call->http->method);
	takt_server_answer_error(call->http, 405, &error);
}

static bool is_json(const char *type)
{
	static const char json[] = "application/json";
	size_t len = strlen(json);

	return type && strncasecmp(type, json, len) == 0 &&
	       (type[len] == '\0' || type[len] == ';' || type[len] == ' ');
}

static int check_form(struct takt_call *call, const struct route *route, int *ret_status,
		      struct takt_err *err)
{
	const struct takt_http_request *http = call->http;
	const char *unknown = takt_http_unknown_query(http, route->query);
	bool post = strcmp(route->method, "POST") == 0;

	*ret_status = 400;
	if (unknown)
		return takt_err_set(err, -TAKT_E_USAGE, "'%.60s' is not known in the query of %s",
				    unknown, route->path);
	if (!post && http->body_len > 0)
		return takt_err_set(err, -TAKT_E_USAGE, "%s takes no body", route->path);
	*ret_status = 415;
	if (post && http->body_len > 0 && !is_json(takt_http_header(http, "Content-Type")))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "the body must be sent as Content-Type: application/json");
	return 0;
}

bool takt_server_refuse_unread(struct takt_http_request *http)
{
	struct takt_err error;

	if (http->refused == 413) {
		takt_err_set(&error, -TAKT_E_LIMIT, "the body is over %d bytes",
			     TAKT_SPEC_MAX_BYTES);
		takt_server_answer_error(http, 413, &error);
	} else if (http->refused) {
		takt_server_refuse(http, 503, -TAKT_E_UNAVAILABLE,
				   "no memory for the request; ask again later");
	}
	return http->refused != 0;
}

/* What a token may not, whoever it stands for. */
static int check_right(const struct takt_call *call, const struct route *route,
		       struct takt_err *err)
{
	if (!call->token_id[0])
		return 0;
	if (route->local)
		return takt_err_set(err, -EPERM, "%s is served on the Unix socket only",
				    route->path);
	if (!call->may_write && strcmp(route->method, "POST") == 0)
		return takt_err_set(err, -EPERM,
				    "this token reads only; takt token add --write makes one that "
				    "may change things");
	return 0;
}

void takt_server_serve(struct takt_call *call)
{
	const struct route *route;
	struct takt_err err;
	char allow[64];
	int status;

	route = find_route(call, allow, sizeof(allow));
	if (!route)
		no_route(call, allow);
	else if (check_right(call, route, &err) < 0)
		takt_server_answer_failure(call->http, &err);
	else if (check_form(call, route, &status, &err) < 0)
		takt_server_answer_error(call->http, status, &err);
	else
		route->serve(call);
}

void takt_server_on_unix(void *ctx, struct takt_http_request *http)
{
	struct takt_call call = {.server = ctx, .http = http, .may_write = true};
	struct takt_err err;

	if (takt_server_refuse_unread(http))
		return;
	if (takt_server_identify(call.server, http->fd, &call.peer, &err) < 0) {
		takt_server_answer_failure(http, &err);
		return;
	}
	takt_server_serve(&call);
}

static void point_to_metrics(struct takt_http_request *http)
{
	static const char text[] =
		"takt: the metrics page is at /metrics; everything else is served "
		"on the Unix socket only (try: takt status)\n";

	takt_http_answer(http, 200, "text/plain; charset=utf-8", text, strlen(text), NULL, NULL);
}

/* Over TCP nobody knows who asks, so there is nothing but what everybody may know. */
void takt_server_on_tcp(void *ctx, struct takt_http_request *http)
{
	struct takt_call call = {.server = ctx, .http = http};
	bool read = strcmp(http->method, "GET") == 0 || strcmp(http->method, "HEAD") == 0;

	if (takt_server_refuse_unread(http))
		return;
	if (!takt_server_host_allowed(call.server, takt_http_header(http, "Host")))
		takt_server_refuse(http, 403, -EPERM,
				   "the Host header names another machine; add its name to "
				   "metrics_hosts if it "
				   "is this one's");
	else if (strncmp(http->path, "/v1/", 4) == 0)
		takt_server_refuse(http, 403, -EPERM, "the API is served on the Unix socket only");
	else if (!read)
		takt_server_refuse(http, 405, -TAKT_E_USAGE, "only GET and HEAD here");
	else if (strcmp(http->path, "/metrics") == 0)
		takt_route_metrics(&call);
	else if (strcmp(http->path, "/") == 0)
		point_to_metrics(http);
	else
		takt_server_refuse(http, 404, -TAKT_E_NOT_FOUND, "no such path; there is /metrics");
}

int takt_server_query_u64(struct takt_call *call, const char *name, uint64_t min, uint64_t max,
			  uint64_t absent, uint64_t *ret)
{
	const char *text = takt_http_query(call->http, name);
	unsigned long long value = absent;
	struct takt_err error;

	if (text && takt_parse_u64(text, min, max, &value) < 0) {
		takt_err_set(&error, -TAKT_E_USAGE,
			     "'%s' in the query must be a number from %llu to %llu, not '%.40s'",
			     name, (unsigned long long)min, (unsigned long long)max, text);
		takt_server_answer_failure(call->http, &error);
		return -TAKT_E_USAGE;
	}
	*ret = value;
	return 0;
}
