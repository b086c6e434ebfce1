/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a client. */
#ifndef TAKT_CLIENT_CLIENT_IMPL_H
#define TAKT_CLIENT_CLIENT_IMPL_H

#include "client/client.h"
#include "client/http_answer.h"

struct takt_client {
	char socket[108];
	int fd; /* a connection that waits for the next question; -1 = none */
	struct takt_str body;
	struct takt_answer answer; /* the last one */
	int wake_fd;
	int (*woken)(void *ctx);
	void *wake_ctx;
	void (*meanwhile)(void); /* NULL = nothing */
};

/* discover.c */
int takt_client_discover(char ret[108], struct takt_err *err);

/* One exchange: the body is in client->body. Waits at most wait_ms longer than an answer should
 * take. */
int takt_client_exchange(struct takt_client *client, const char *path, const char *body,
			 uint32_t wait_ms, struct takt_err *err);

#endif
