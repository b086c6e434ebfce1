/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a client. */
#ifndef TAKT_CLIENT_CLIENT_IMPL_H
#define TAKT_CLIENT_CLIENT_IMPL_H

#include <curl/curl.h>

#include "client/client.h"

struct takt_client {
	char socket[108];
	CURL *easy;   /* owned */
	CURLM *multi; /* owned */
	struct takt_str body;
	struct takt_log_place log_place; /* from the headers of the last answer */
	bool log_live;
	int wake_fd;
	int (*woken)(void *ctx);
	void *wake_ctx;
};

/* discover.c */
int takt_client_discover(char ret[108], struct takt_err *err);

/* One exchange: the body is in client->body. Waits at most wait_ms longer than an answer should
 * take. */
int takt_client_exchange(struct takt_client *client, const char *path, const char *body,
			 uint32_t wait_ms, struct takt_err *err);

#endif
