/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of the data files of boards, machines and workloads: the part of TOML that they need.
 * Comments, [section], key = value; a value is a string, an integer (decimal or 0x, underscores
 * allowed), true or false, or an array of values, over several lines if need be. What else TOML has
 * (dates, floats, inline tables, dotted keys) is refused with the line it stands on.
 *
 * The same reader serves the files built into takt-twin and those a user writes, so both are
 * checked by the same rules.
 */
#ifndef TAKT_TWIN_TWIN_TOML_H
#define TAKT_TWIN_TWIN_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TWIN_TOML_MAX_BYTES = 65536,
	TWIN_TOML_MAX_VALUES = 8192, /* room for links between each two of 64 GPUs */
	TWIN_TOML_MAX_KEYS = 128,
};

enum twin_toml_kind {
	TWIN_TOML_INTEGER,
	TWIN_TOML_BOOLEAN,
	TWIN_TOML_STRING,
	TWIN_TOML_ARRAY
};

struct twin_toml_value {
	enum twin_toml_kind kind;
	unsigned line;
	int64_t number;			     /* an integer, or 0 and 1 */
	const char *text;		     /* a string */
	const struct twin_toml_value *first; /* of an array, NULL if it is empty */
	const struct twin_toml_value *next;  /* in the array that this stands in */
	uint32_t count;			     /* of an array */
};

struct twin_toml_key {
	const char *section; /* "" before the first one */
	const char *name;
	const struct twin_toml_value *value;
	bool known; /* somebody asked for it */
};

struct twin_toml;

/* Reads `text`; `file` names it in errors. Both are copied. */
int twin_toml_parse(const char *file, const char *text, struct twin_toml **ret,
		    struct takt_err *err);
/* The same from the file at `path`. */
int twin_toml_read(const char *path, struct twin_toml **ret, struct takt_err *err);
void twin_toml_free(struct twin_toml *toml); /* takes NULL */

const char *twin_toml_file(const struct twin_toml *toml);

/* The value of a key, NULL if it is not there. Until free. Marks the key as known. */
const struct twin_toml_value *twin_toml_find(struct twin_toml *toml, const char *section,
					     const char *key);

/* The first key that nobody asked for, NULL if there is none: a misspelt one, most likely. */
const struct twin_toml_key *twin_toml_unknown(const struct twin_toml *toml);

/* The index-th key in the order of the file, NULL after the last. */
const struct twin_toml_key *twin_toml_key_at(const struct twin_toml *toml, unsigned index);

/* Error about a value: "FILE:LINE: section.key " and the rest, which says what is accepted. */
int twin_toml_error(const struct twin_toml *toml, unsigned line, const char *section,
		    const char *key, struct takt_err *err, const char *fmt, ...) TAKT_PRINTF(6, 7);

static inline void takt_cleanup_twin_tomlp(struct twin_toml **toml)
{
	twin_toml_free(*toml);
}

#endif
