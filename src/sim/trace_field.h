/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of a trace as a table: what a cell means, where its value goes, and how it is refused.
 *
 * A record is a struct; a table of struct takt_trace_field says for each of its members under which
 * names a file may hold it, in which unit, and what is accepted. The readers of CSV and of JSON,
 * the messages and the documentation all come from that table.
 */
#ifndef TAKT_SIM_TRACE_FIELD_H
#define TAKT_SIM_TRACE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum takt_trace_kind {
	TAKT_TRACE_TEXT,    /* const char * */
	TAKT_TRACE_I64,	    /* int64_t within min..max */
	TAKT_TRACE_SECONDS, /* int64_t nanoseconds, from decimal seconds ("2240194.5") */
	/* int64_t nanoseconds, from decimal seconds, or since 1970 UTC from "2017-09-04 10:30:41"
	 */
	TAKT_TRACE_TIME,
	TAKT_TRACE_NUMBER, /* double, finite */
};

struct takt_trace_field {
	const char *names; /* "submit_s|timestamp": the first is ours, the others are accepted */
	enum takt_trace_kind kind;
	size_t offset; /* of the member */
	int64_t min, max;
	const char *about; /* unit and meaning, for people */
};

enum {
	TAKT_TRACE_MAX_FIELDS = 32, /* of a record: presence is a bit in uint32_t */
};

/* Index of the field that has `name` among its names; `count` when there is none. */
size_t takt_trace_field_find(const struct takt_trace_field *fields, size_t count, const char *name);

/* Which of the names of a field it is: 0 = ours; SIZE_MAX = none of them. */
size_t takt_trace_name_rank(const char *names, const char *name);

/*
 * Text into the member of `record`. A text member borrows `text`. The message of a refusal begins
 * with "column 'x': " and says what would be accepted.
 */
int takt_trace_field_set(const struct takt_trace_field *field, const char *text, void *record,
			 struct takt_err *err);

/* "12.5" to 12500000000. -EINVAL when it is no decimal number, -ERANGE beyond 292 years. Digits
 * beyond the ninth after the point are dropped. */
int takt_trace_seconds(const char *text, int64_t *ret_ns);

#endif
