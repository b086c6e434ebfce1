/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: by which a request over TCP is one of a Unix account's. The same JSON in the file that
 * the daemon keeps them in (with `sha256`, without `token`) and in its answers (the other way
 * round, and `token` only when it is made).
 */
#ifndef TAKT_CODEC_TOKENS_H
#define TAKT_CODEC_TOKENS_H

#include "codec/views.h"

enum {
	TAKT_TOKEN_ID = 13,	/* 12 hex digits */
	TAKT_TOKEN_SECRET = 65, /* 64 hex digits; the hash's, too */
	TAKT_TOKEN_TEXT = 96,	/* takt_ID_SECRET */
	TAKT_TOKEN_PAGE = 320,	/* an address */
	TAKT_MAX_TOKENS = 1024,
};

struct takt_token {
	char id[TAKT_TOKEN_ID];
	char sha256[TAKT_TOKEN_SECRET]; /* of the secret, hex */
	uint32_t uid;
	char user[33];		     /* its name; "" = not known */
	bool write;		     /* else it reads only */
	int64_t made_ms, expires_ms; /* wall clock; expires 0 = never */
	char note[64];
};

struct takt_tokens_view {
	char token[TAKT_TOKEN_TEXT]; /* the one just made, in full */
	char page[TAKT_TOKEN_PAGE];  /* where the web page is; "" = it is off */
	uint32_t count;
	struct takt_token *tokens; /* owned */
};
int takt_tokens_view_to_json(const struct takt_tokens_view *view, struct takt_str *out);
/* -TAKT_E_CORRUPT for what is none: ids and hashes have their digits, no two ids are alike. */
int takt_tokens_view_from_json(const char *text, size_t len, struct takt_tokens_view *ret,
			       struct takt_err *err);
void takt_tokens_view_fini(struct takt_tokens_view *view);

/* What makes one, and what revokes one. */
struct takt_token_request {
	char user[33]; /* a name or a number; "" = who asks */
	bool write;
	uint32_t days; /* 0 = for ever */
	char note[64];
	char id[TAKT_TOKEN_ID]; /* to be revoked */
};
int takt_token_request_to_json(const struct takt_token_request *request, struct takt_str *out);
/* -TAKT_E_USAGE names the field. */
int takt_token_request_from_json(const char *text, size_t len, struct takt_token_request *ret,
				 struct takt_err *err);

#endif
