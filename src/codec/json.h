/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text: a small writer straight into a takt_str, and a guard in front of cJSON's reader.
 *
 * The writer keeps 64-bit numbers exact and repairs text that is not UTF-8. The guard refuses what
 * cJSON would quietly let through or turn into something else: NUL escapes, raw control
 * characters, text that is not UTF-8, numbers such as "007", or such as 1e-400 that would be 0 as a
 * double, deep nesting, anything after the value.
 */
#ifndef TAKT_CODEC_JSON_H
#define TAKT_CODEC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct cJSON;

enum {
	TAKT_JSON_MAX_DEPTH = 16,
};

/* Whole numbers that every JSON reader keeps exact: below 2^53. */
#define TAKT_JSON_MAX_INT ((uint64_t)9007199254740991)

/* Sends cJSON's allocations through base/mem.h. Once, at the start of a process, before any thread.
 */
void takt_json_init(void);

/* The value in text[0..len) (need not end in NUL), owned by the caller: cJSON_Delete. Refuses over
 * `max` bytes (-TAKT_E_LIMIT) and what is not strict JSON (-TAKT_E_CORRUPT, the message has the
 * byte's number). */
int takt_json_parse(const char *text, size_t len, size_t max, struct cJSON **ret,
		    struct takt_err *err);

/* Whether the decimal number is read as what it is, as far as it may be taken for a whole one:
 * 1e-400 would be 0, 0.99999999999999999999 would be 1. */
bool takt_json_number_keeps(const char *text, size_t len);

/* Quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
int takt_json_add_text(struct takt_str *out, const char *text);
/* "name": with a comma before it unless it is the first of its object. */
int takt_json_add_name(struct takt_str *out, const char *name, bool first);

/* Length of the UTF-8 character at `text` (of `len` bytes), 0 when it is none. */
size_t takt_utf8_length(const char *text, size_t len);
bool takt_utf8_valid(const char *text);

#endif
