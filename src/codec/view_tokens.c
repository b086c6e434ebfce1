/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "codec/tokens.h"
#include "codec/view_tables.h"

enum {
	MAX_DAYS = 3650
};

#define TOKEN struct takt_token
static const struct takt_field token_fields[] = {
	TEXT(TOKEN, id),    TEXT(TOKEN, sha256),       U32(TOKEN, uid, MUST),  TEXT(TOKEN, user),
	BOOL(TOKEN, write), I64(TOKEN, made_ms, MUST), I64(TOKEN, expires_ms), TEXT(TOKEN, note),
};
static const struct takt_shape token_shape = TAKT_SHAPE(TOKEN, "a token", token_fields);

#define TOKENS struct takt_tokens_view
static const struct takt_field fields[] = {
	TEXT(TOKENS, token),
	TEXT(TOKENS, page),
	{TAKT_FIELD_AT(TOKENS, tokens, TAKT_FIELD_OBJECT), .many = TAKT_MANY_OWNED,
	 .required = true, .counts = true, .size = sizeof(TOKEN), COUNT(TOKENS, count),
	 .room = TAKT_MAX_TOKENS, .shape = &token_shape},
};
static const struct takt_shape shape = TAKT_SHAPE(TOKENS, "a list of tokens", fields);

int takt_tokens_view_to_json(const struct takt_tokens_view *view, struct takt_str *out)
{
	return takt_shape_encode(&shape, view, out);
}

static bool is_hex(const char *text, size_t digits)
{
	return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static int check(const struct takt_tokens_view *view, struct takt_err *err)
{
	for (uint32_t i = 0; i < view->count; i++) {
		const struct takt_token *token = &view->tokens[i];

		if (!is_hex(token->id, TAKT_TOKEN_ID - 1))
			return takt_err_set(err, -TAKT_E_CORRUPT, "'%.20s' is no token's id",
					    token->id);
		if (token->sha256[0] && !is_hex(token->sha256, TAKT_TOKEN_SECRET - 1))
			return takt_err_set(err, -TAKT_E_CORRUPT, "token %s has no hash",
					    token->id);
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(view->tokens[k].id, token->id) == 0)
				return takt_err_set(err, -TAKT_E_CORRUPT, "token %s stands twice",
						    token->id);
	}
	return 0;
}

int takt_tokens_view_from_json(const char *text, size_t len, struct takt_tokens_view *ret,
			       struct takt_err *err)
{
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = takt_shape_decode(&shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT, ret,
			       err);
	if (rc == 0)
		rc = check(ret, err);
	if (rc < 0)
		takt_tokens_view_fini(ret);
	return rc;
}

void takt_tokens_view_fini(struct takt_tokens_view *view)
{
	takt_shape_release(&shape, view);
	explicit_bzero(view->token, sizeof(view->token));
}

#define REQUEST struct takt_token_request
static const struct takt_field request_fields[] = {
	TEXT(REQUEST, user), BOOL(REQUEST, write), U32(REQUEST, days, NONE(0)),
	TEXT(REQUEST, note), TEXT(REQUEST, id),
};
static const struct takt_shape request_shape = TAKT_SHAPE(REQUEST, "the body", request_fields);

int takt_token_request_to_json(const struct takt_token_request *request, struct takt_str *out)
{
	return takt_shape_encode(&request_shape, request, out);
}

int takt_token_request_from_json(const char *text, size_t len, struct takt_token_request *ret,
				 struct takt_err *err)
{
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = takt_shape_decode(&request_shape, text, len, 4096, TAKT_SHAPE_STRICT, ret, err);
	if (rc == -TAKT_E_CORRUPT)
		rc = -TAKT_E_USAGE;
	if (rc < 0 && err)
		err->rc = rc;
	if (rc == 0 && ret->days > MAX_DAYS)
		rc = takt_err_set(err, -TAKT_E_USAGE, "field 'days' must be at most %d", MAX_DAYS);
	return rc;
}
