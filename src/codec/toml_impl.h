/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of tables (toml.c) and the reader of single values (toml_value.c) share. */
#ifndef TAKT_CODEC_TOML_IMPL_H
#define TAKT_CODEC_TOML_IMPL_H

#include "base/str.h"
#include "codec/toml.h"

enum {
	TOML_MAX_TEXT = 1024 * 1024, /* bytes of one text */
};

struct toml {
	const char *at; /* the rest of the text */
	unsigned line;
	unsigned depth; /* of arrays and inline tables */
	struct takt_err *err;
};

/* -TAKT_E_CORRUPT with the line before the message. */
int takt_toml_fail(const struct toml *toml, const char *message);
int takt_toml_starved(const struct toml *toml);

/* At a quote: one of the four kinds of text. A key may not have the kinds of several lines. */
int takt_toml_text(struct toml *toml, bool is_key, struct takt_str *ret);
/* A number, date, time, true or false. */
int takt_toml_word(struct toml *toml, struct cJSON **ret);

#endif
