/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes: tables that say where the fields of a struct are and what they may hold, from which one
 * encoder and one decoder make JSON of any struct and back. A field that is in the table travels
 * both ways; there is no second list to forget it in.
 */
#ifndef TAKT_CODEC_SHAPE_H
#define TAKT_CODEC_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/str.h"

enum takt_field_kind {
	TAKT_FIELD_BOOL,
	TAKT_FIELD_U32,
	TAKT_FIELD_I32,
	TAKT_FIELD_U64,
	TAKT_FIELD_I64,
	TAKT_FIELD_TEXT,       /* char[size]; empty is left out */
	TAKT_FIELD_MASK,       /* uint64_t, as a list of the numbers of its bits */
	TAKT_FIELD_ENUM,       /* an enum of 4 bytes, as its name */
	TAKT_FIELD_OWNED_TEXT, /* char *, owned by the struct; NULL is left out */
	TAKT_FIELD_TEXTS,      /* char **, owned, NULL-terminated, as a list */
	TAKT_FIELD_OBJECT,     /* a struct inside */
};

/* How many of them there are. In lists nothing is left out. */
enum takt_field_many {
	TAKT_MANY_ONE,
	TAKT_MANY_FIXED,  /* `room` of them, TEXT only, the empty ones are left out */
	TAKT_MANY_ARRAY,  /* room for `room`, of which the uint32_t at count_offset are in use */
	TAKT_MANY_OWNED,  /* a pointer to as many as count_offset says, owned by the struct */
	TAKT_MANY_MATRIX, /* count rows of count, each row with room for `room` */
};

struct takt_shape;

struct takt_field {
	const char *name;
	uint8_t kind, many;
	bool required; /* from_json: must be there */
	bool optional; /* a number that equals `absent` is left out (in lists: null), and a left-out
			  one reads as `absent`; a mask without bits is left out */
	bool counts;   /* a list that sets the count; the others must have that length */
	uint32_t has_bit;   /* valid only with this bit in the struct's `has`; 0 = no bit */
	size_t flag_offset; /* valid only with the bool at this offset; 0 = no flag */
	size_t offset;
	size_t size; /* bytes of one element */
	size_t count_offset;
	uint32_t room;	  /* entries at most */
	int64_t min, max; /* of numbers */
	int64_t absent;
	const char *const *names;	/* ENUM: NULL-terminated */
	const struct takt_shape *shape; /* OBJECT */
};

struct takt_shape {
	const char *what; /* "a status": for messages */
	const struct takt_field *fields;
	size_t count;
	size_t size;	   /* of the struct */
	size_t has_offset; /* of its uint32_t `has`; SIZE_MAX = it has none */
};

enum takt_shape_mode {
	TAKT_SHAPE_STRICT,   /* unknown fields and overlong text are errors */
	TAKT_SHAPE_TOLERANT, /* unknown fields are ignored, overlong text is cut */
};

/* Appends the object; 0 or the sticky failure of `out`. A number over 2^53 without a valid bit is
 * -ERANGE; one with a valid bit is left out, since no reader would get it exact. */
int takt_shape_encode(const struct takt_shape *shape, const void *from, struct takt_str *out);

/*
 * Fills the zeroed struct *to. Failure (-TAKT_E_CORRUPT, its message names the field and what would
 * be accepted; -ENOMEM) may leave owned parts in it: call takt_shape_release either way.
 */
int takt_shape_decode(const struct takt_shape *shape, const char *text, size_t len, size_t max,
		      enum takt_shape_mode mode, void *to, struct takt_err *err);

/* Frees what the struct owns by its table. */
void takt_shape_release(const struct takt_shape *shape, void *of);

/* The common part of an entry. */
#define TAKT_FIELD_AT(type, member, k) \
	.name = #member, .kind = (k), .offset = offsetof(type, member)
#define TAKT_SHAPE(type, text, table)                                              \
	{                                                                          \
		.what = (text), .fields = (table), .count = TAKT_ARRAY_LEN(table), \
		.size = sizeof(type), .has_offset = SIZE_MAX                       \
	}

#endif
