/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web page's socket: the page itself and the metrics for anybody, the API for who has a token.
 *
 * A browser runs the pages of strangers beside ours, and these may send requests here. They do not
 * have the token: it is in no cookie that a browser would add by itself. They are turned away all
 * the same, by the names in Host (a site may have its own name point here) and Origin.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "server/server_impl.h"
#include "server/web_page.h"

enum {
	MAX_ORIGIN = 320
};

/* No Strict-Transport-Security: it would count for other ports of this machine, too. */
static void secure(struct takt_http_request *http)
{
	takt_http_answer_header_kept(http, "Content-Security-Policy",
				     "default-src 'none'; frame-ancestors 'none'");
	takt_http_answer_header(http, "X-Content-Type-Options", "nosniff");
	takt_http_answer_header(http, "X-Frame-Options", "DENY");
	takt_http_answer_header(http, "Referrer-Policy", "no-referrer");
	takt_http_answer_header(http, "Cross-Origin-Resource-Policy", "same-origin");
	takt_http_answer_header(http, "Cross-Origin-Opener-Policy", "same-origin");
	takt_http_answer_header(http, "Cache-Control", "no-store");
}

static bool is_api(const struct takt_http_request *http)
{
	return strncmp(http->path, "/v1/", 4) == 0;
}

/* A browser says whose page asks; who leaves it out is no browser, or follows a link. */
static bool same_origin(const struct takt_server *server, const struct takt_http_request *http)
{
	const char *origin = takt_http_header(http, "Origin");
	const char *host = takt_http_header(http, "Host");
	const char *site = takt_http_header(http, "Sec-Fetch-Site");
	char own[MAX_ORIGIN];

	if (is_api(http) && site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
		return false;
	snprintf(own, sizeof(own), "%s://%s", server->config.web_tls ? "https" : "http",
		 host ? host : "");
	return !origin || strcasecmp(origin, own) == 0;
}

static void ask_for_token(struct takt_http_request *http, const char *message)
{
	takt_http_answer_header(http, "WWW-Authenticate", "Bearer realm=\"takt\"");
	takt_server_refuse(http, 401, -EPERM, message);
}

/* What stands behind "Bearer"; NULL = there is none. */
static const char *bearer(const struct takt_http_request *http)
{
	static const char scheme[] = "Bearer ";
	const char *text = takt_http_header(http, "Authorization");

	if (!text || strncasecmp(text, scheme, strlen(scheme)) != 0)
		return NULL;
	return text + strlen(scheme) + strspn(text + strlen(scheme), " ");
}

/* False: answered. */
static bool take_token(struct takt_call *call, struct takt_token *ret)
{
	struct takt_token_store *tokens = call->server->tokens;
	const char *text = bearer(call->http);

	if (!text || !tokens) {
		ask_for_token(call->http, "the API wants a token (takt token add) in the header "
					  "Authorization: Bearer TOKEN");
		return false;
	}
	switch (takt_token_store_check(tokens, text, ret)) {
	case TAKT_TOKEN_GOOD:
		return true;
	case TAKT_TOKEN_EXPIRED:
		ask_for_token(call->http, "the token has expired; takt token add makes another");
		return false;
	case TAKT_TOKEN_TOO_OFTEN:
		takt_http_answer_header(call->http, "Retry-After", "60");
		takt_server_refuse(call->http, 429, -TAKT_E_LIMIT,
				   "too many wrong tokens; try again in a minute");
		return false;
	default:
		ask_for_token(call->http, "there is no such token; it may have been revoked");
		return false;
	}
}

static bool identify(struct takt_call *call)
{
	struct takt_token token;
	struct takt_err err;

	if (!take_token(call, &token))
		return false;
	if (takt_server_identify_uid(call->server, token.uid, &call->peer, &err) < 0) {
		takt_server_answer_failure(call->http, &err);
		return false;
	}
	if (!takt_http_claim(call->http, call->peer.uid)) {
		takt_server_refuse(call->http, 503, -TAKT_E_UNAVAILABLE,
				   "too many requests of yours, or of all, are being answered; "
				   "close some, or ask again later");
		return false;
	}
	call->may_write = token.write;
	takt_strcpy(call->token_id, sizeof(call->token_id), token.id);
	return true;
}

/* Whether the request is let in, with what is known of who asks; false: answered. */
static bool admit(struct takt_call *call)
{
	struct takt_http_request *http = call->http;

	secure(http);
	if (!takt_server_host_allowed(call->server, takt_http_header(http, "Host")))
		takt_server_refuse(http, 403, -EPERM,
				   "the Host header names another machine; add its name to "
				   "metrics_hosts if it is this one's");
	else if (!same_origin(call->server, http))
		takt_server_refuse(http, 403, -EPERM, "asked for by the page of another site");
	else
		return !is_api(http) || identify(call);
	return false;
}

static bool wants_gzip(const struct takt_http_request *http)
{
	const char *accept = takt_http_header(http, "Accept-Encoding");

	return accept && strstr(accept, "gzip");
}

static void serve_page(struct takt_http_request *http)
{
	const struct takt_web_page *page = &takt_web_page;
	const char *known = takt_http_header(http, "If-None-Match");
	bool same = known && strstr(known, page->etag), gzip = wants_gzip(http);

	takt_http_answer_header_kept(http, "Content-Security-Policy", page->policy);
	takt_http_answer_header(http, "Cache-Control", "no-cache");
	takt_http_answer_header(http, "Vary", "Accept-Encoding");
	takt_http_answer_header(http, "ETag", page->etag);
	if (gzip && !same)
		takt_http_answer_header(http, "Content-Encoding", "gzip");
	takt_http_answer(http, same ? 304 : 200, "text/html; charset=utf-8",
			 gzip ? page->gzip : page->plain,
			 same	? 0
			 : gzip ? page->gzip_len
				: page->plain_len,
			 NULL, NULL);
}

static void serve_public(struct takt_call *call)
{
	struct takt_http_request *http = call->http;

	if (strcmp(http->method, "GET") != 0 && strcmp(http->method, "HEAD") != 0)
		takt_server_refuse(http, 405, -TAKT_E_USAGE, "only GET and HEAD here");
	else if (strcmp(http->path, "/metrics") == 0)
		takt_route_metrics(call);
	else if (strcmp(http->path, "/") == 0 || strcmp(http->path, "/index.html") == 0)
		serve_page(http);
	else
		takt_server_refuse(http, 404, -TAKT_E_NOT_FOUND,
				   "no such path; there are /, /metrics and, with a token, /v1/");
}

bool takt_server_web_refuses(void *ctx, struct takt_http_request *http)
{
	struct takt_call call = {.server = ctx, .http = http};

	return !admit(&call);
}

void takt_server_on_web(void *ctx, struct takt_http_request *http)
{
	struct takt_call call = {.server = ctx, .http = http};

	if (takt_server_refuse_unread(http) || !admit(&call))
		return;
	if (is_api(http))
		takt_server_serve(&call);
	else
		serve_public(&call);
}
