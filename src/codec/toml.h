/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML 1.0 as a JSON value, so that whatever reads JSON reads TOML. Tables become objects, arrays
 * lists, dates and times text as written. What JSON has no word for (inf, nan, whole numbers from
 * 2^53 on, NUL in text) is refused. Debian has no TOML library for C; see docs/dependencies.md.
 */
#ifndef TAKT_CODEC_TOML_H
#define TAKT_CODEC_TOML_H

#include "base/err.h"

struct cJSON;

/* The value is an object, owned by the caller: cJSON_Delete. -TAKT_E_CORRUPT, the message begins
 * with the line ("line 3: ..."); -ENOMEM. *ret untouched on failure. */
int takt_toml_parse(const char *text, struct cJSON **ret, struct takt_err *err);

/* The line on which a table of such a value begins; 0 for anything else. */
unsigned takt_toml_line(const struct cJSON *table);

#endif
