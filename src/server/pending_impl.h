/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a pending, for the files that make and end it. */
#ifndef TAKT_SERVER_PENDING_IMPL_H
#define TAKT_SERVER_PENDING_IMPL_H

#include "server/server_impl.h"

struct takt_pending {
	struct takt_held held; /* first: http->user points here */
	struct takt_server *server;
	struct takt_http_request *http;
	int http_status; /* what 200 becomes: 201 for a submit */
	void (*cancelled)(void *ctx);
	void *cancel_ctx;
	struct takt_pending *prev, *next;
};

/* The client hung up: tells the backend. */
void takt_server_pending_gone(struct takt_pending *pending);

#endif
