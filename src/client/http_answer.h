/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an HTTP answer become a body, a status and the headers that takt's log routes send.
 */
#ifndef TAKT_CLIENT_HTTP_ANSWER_H
#define TAKT_CLIENT_HTTP_ANSWER_H

#include <http_parser.h>

#include "client/client.h"

struct takt_answer {
	http_parser parser;
	struct takt_str *body; /* borrowed; what arrives is appended */
	bool has_place, live;  /* it is of a log: where it ends is in `place`; more may come */
	struct takt_log_place place;
	bool whole; /* nothing is missing */
	/* The header being read, cut: what is longer is none that is known. */
	char name[24], value[32];
};

void takt_answer_init(struct takt_answer *answer, struct takt_str *body);
/* The next bytes; none: the connection is at its end. -EPROTO: this is no HTTP, or it ended early;
 * else what became of the body: -ENOMEM, -TAKT_E_LIMIT. */
int takt_answer_take(struct takt_answer *answer, const char *bytes, size_t len);

#endif
