/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of a takt: in the file `tokens` of its state directory, by their hashes, for its own
 * eyes only. A token is 256 random bits; its hash needs no salt and its name (`id`) no secrecy, but
 * nobody is told of another's.
 */
#ifndef TAKT_SERVER_TOKEN_STORE_H
#define TAKT_SERVER_TOKEN_STORE_H

#include "base/sys.h"
#include "codec/tokens.h"

enum {
	TAKT_TOKENS_A_USER = 32,
	TAKT_TOKEN_MISSES = 10, /* a minute, of one token; then it is not looked at */
};

struct takt_token_store;

/* Refuses (-TAKT_E_CORRUPT, -EPERM) a file that is damaged, another's or open to others. `sys` is
 * borrowed. */
int takt_token_store_open(const struct takt_sys *sys, const char *dir,
			  struct takt_token_store **ret, struct takt_err *err);
/* NULL is fine. */
void takt_token_store_free(struct takt_token_store *store);

/* All of them, hashes included; borrowed until the next change. */
const struct takt_tokens_view *takt_token_store_all(const struct takt_token_store *store);

/* On disk when this returns 0; the only time that the token itself is known. */
int takt_token_store_add(struct takt_token_store *store, uint32_t uid,
			 const struct takt_token_request *request, char ret_text[TAKT_TOKEN_TEXT],
			 struct takt_token *ret, struct takt_err *err);
/* -TAKT_E_NOT_FOUND. */
int takt_token_store_revoke(struct takt_token_store *store, const char *id, struct takt_err *err);

enum takt_token_verdict {
	TAKT_TOKEN_GOOD,
	TAKT_TOKEN_UNKNOWN, /* or no token's form, or the wrong secret: nobody is told which */
	TAKT_TOKEN_EXPIRED,
	TAKT_TOKEN_TOO_OFTEN,
};
/* *ret only when it is good. */
enum takt_token_verdict takt_token_store_check(struct takt_token_store *store, const char *text,
					       struct takt_token *ret);
/* Whether the token is still there and has not expired. */
bool takt_token_store_has(const struct takt_token_store *store, const char *id);

#endif
