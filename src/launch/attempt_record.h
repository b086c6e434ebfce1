/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of an attempt as a line of text (the format is described in attempt.h).
 *
 * Writing goes into a struct takt_str, whose sticky rc says at the end whether it all fitted.
 * Reading takes the fields in the order they were written; the first one that is missing, has
 * another key or a value out of range makes the reader fail for good: read everything, then ask
 * takt_record_done() once. A failed read leaves its output zero or empty.
 */
#ifndef TAKT_LAUNCH_ATTEMPT_RECORD_H
#define TAKT_LAUNCH_ATTEMPT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
	TAKT_RECORD_VERSION = 1
};

void takt_record_begin(struct takt_str *out, const char *name); /* name without blanks */
void takt_record_put_u64(struct takt_str *out, const char *key, uint64_t value);
void takt_record_put_i64(struct takt_str *out, const char *key, int64_t value);
void takt_record_put_text(struct takt_str *out, const char *key, const char *text);
int takt_record_end(struct takt_str *out); /* checksum and newline; returns out->rc */

/*
 * Whose record it is: a last field, " of=MARK", under a checksum of the whole. put: into a finished
 * record; "" leaves it as it is. take: out of one that was read, which is then what it was before.
 * -TAKT_E_CORRUPT: the checksum is wrong. -TAKT_E_CONFLICT: it is of another than `mark`, of which
 * only the beginning need be known; or of nobody, where `all` of the mark is known.
 */
int takt_record_mark_put(struct takt_str *out, const char *mark);
int takt_record_mark_take(char *text, size_t *len, const char *mark, bool all);

struct takt_record {
	const char *at;	 /* borrowed text that is left to read: begins with a blank, or is end */
	const char *end; /* where the checksum starts */
	int rc;		 /* sticky: 0, -TAKT_E_CORRUPT, -ENOMEM */
};

/* Checks name, version and checksum of the `len` bytes at text, which stay borrowed until done.
 * -TAKT_E_CORRUPT, or -TAKT_E_VERSION for a sound record of another version. */
int takt_record_open(const char *text, size_t len, const char *name, struct takt_record *ret);

/* Whether the next field has this key: for fields that are written only where they say something.
 */
bool takt_record_next_is(const struct takt_record *record, const char *key);
uint64_t takt_record_u64(struct takt_record *record, const char *key, uint64_t min, uint64_t max);
int64_t takt_record_i64(struct takt_record *record, const char *key, int64_t min, int64_t max);
/* Into buf of `size` bytes, NUL-terminated; longer text is damage. */
void takt_record_text(struct takt_record *record, const char *key, char *buf, size_t size);
/* The same on the heap (takt_free); NULL on failure. */
char *takt_record_dup(struct takt_record *record, const char *key);

/* The sticky rc, -TAKT_E_CORRUPT also when fields are left over. */
int takt_record_done(const struct takt_record *record);

#endif
