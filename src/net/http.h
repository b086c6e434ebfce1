/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 on a listening socket, on the caller's event loop: a thin layer over libmicrohttpd.
 *
 * The caller is handed complete requests and answers each one, at once or later. Nothing blocks and
 * there is no thread; a client that is slow, silent or gone costs its connection and nothing else.
 * The program must ignore SIGPIPE.
 */
#ifndef TAKT_NET_HTTP_H
#define TAKT_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "net/tls.h"

struct takt_http;

/* One request. Valid from the callback until it was answered or `gone` was called. */
struct takt_http_request {
	struct takt_http *http;
	void *user;	    /* the caller's own */
	const char *method; /* "GET"; borrowed, as all of it */
	const char *path;   /* decoded, without the query; begins with '/' for all but "*" */
	const char *body;   /* "" when there is none; NUL-terminated */
	size_t body_len;
	int fd; /* of the connection; for asking who it is */
	/* Not 0: why the body was not taken: 413 over max_body, 503 no memory. Must be answered all
	 * the same; the connection is closed afterwards. */
	int refused;
};

struct takt_http_config {
	int listen_fd; /* owned from success on */
	/* At a time. Who comes beyond it, or beyond the two below, is answered 503 with the limit
	 * before he has asked, and nobody else is disturbed. */
	unsigned max_connections;
	unsigned user_share; /* of a user who is no administrator, on TCP of an address; 0 = all */
	unsigned admin_reserve; /* of max_connections, for administrators only */
	unsigned claim_share;	/* requests of a user that takt_http_claim lets be answered at a
				 * time; 0 = all */
	unsigned claim_spare;	/* of max_connections, not for such requests of all users */
	unsigned idle_s;	/* a connection on which nothing moves for so long is closed, but
				   for those whose answer is ours to give; nor may the head
				   of a request take longer, nor its body twice as long */
	unsigned first_s;	/* the same of the first head, and of a TLS greeting; 0 = idle_s */
	unsigned least_rate;	/* bytes a second in which an answer has to be read, in
				   idle_s and the time that its length takes; 0 = 16 KiB */
	bool oldest_goes; /* whoever is beyond these: the connection goes that has been idle for
			     longest, his own or of all, and he comes in */
	size_t max_body;
	/* Borrowed until free; NULL = plain HTTP. What is read again there counts for connections
	 * from then on. */
	struct takt_tls *tls;
	/* Whether a connection is an administrator's; NULL = none is. */
	bool (*is_admin)(void *ctx, int fd);
	void (*request)(void *ctx, struct takt_http_request *request);
	/* Asked before a request's body is read; true: it was answered, and nothing of that is
	 * wanted. NULL = all are. */
	bool (*refuses)(void *ctx, struct takt_http_request *request);
	/* The client hung up before the answer: the request must not be used any more. */
	void (*gone)(void *ctx, struct takt_http_request *request);
	void *ctx;
};

int takt_http_new(const struct takt_http_config *config, struct takt_http **ret,
		  struct takt_err *err);
/* Listens on another socket from now on, which it owns from success on; connections stay, and who
 * waits at the old one is let in first. */
int takt_http_move(struct takt_http *http, int listen_fd, struct takt_err *err);
/* Readable when pump has work; borrowed. */
int takt_http_fd(const struct takt_http *http);
/* *ret_timeout_ms: call again by then; -1 = only when readable. */
int takt_http_pump(struct takt_http *http, int *ret_timeout_ms, struct takt_err *err);
/* Requests that wait for an answer are dropped (`gone` is not called); answers given are sent as
 * far as clients take them at once. NULL is fine. */
void takt_http_free(struct takt_http *http);

/* Whose request it is, where that is known by what it says. False: so many of his, or of all such
 * users', are being answered that this one must be refused. */
bool takt_http_claim(struct takt_http_request *request, uid_t uid);

/* Borrowed; NULL when the request has none. Names of headers in any case; of several the first. */
const char *takt_http_header(const struct takt_http_request *request, const char *name);
/* "" for "?name" without a value. */
const char *takt_http_query(const struct takt_http_request *request, const char *name);
/* The first name in the query that is not in the NULL-terminated list; NULL if all are. */
const char *takt_http_unknown_query(const struct takt_http_request *request,
				    const char *const *known);

/* A header of the answer, before it, in the place of one of that name; at most 16, static names.
 * The value is copied (63 bytes), or as long as it likes and there until the request is over. */
void takt_http_answer_header(struct takt_http_request *request, const char *name,
			     const char *value);
void takt_http_answer_header_kept(struct takt_http_request *request, const char *name,
				  const char *value);
/* The answer. `text` is borrowed until release(release_ctx) is called (maybe before this returns);
 * NULL for static text. Exactly once a request. */
void takt_http_answer(struct takt_http_request *request, int status, const char *type,
		      const char *text, size_t len, void (*release)(void *ctx), void *release_ctx);

/* An answer (200) that goes on until it is ended or `gone` is called. It is sent part by part; one
 * that was not taken yet is a slow client's, and the next has to wait. Who does not take one in the
 * time of an answer is hung up on. */
void takt_http_stream(struct takt_http_request *request, const char *type);
bool takt_http_stream_ready(const struct takt_http_request *request);
/* Only when ready. The text is taken (takt_free). */
void takt_http_stream_send(struct takt_http_request *request, char *text, size_t len);
/* The request must not be used any more, `gone` is not called. */
void takt_http_stream_end(struct takt_http_request *request);

#endif
