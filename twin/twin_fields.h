/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that say which keys a data file has and where in a struct each goes. The reader of boards,
 * of machines and of workloads are such tables plus the rules that concern more than one key.
 */
#ifndef TAKT_TWIN_TWIN_FIELDS_H
#define TAKT_TWIN_TWIN_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twin_toml.h"

enum twin_field_type {
	TWIN_FIELD_U32,	 /* number in [min, max] */
	TWIN_FIELD_I32,	 /* the same, may be below 0 */
	TWIN_FIELD_U16,	 /* the same, narrow */
	TWIN_FIELD_TEXT, /* char[max]; at least one character */
};

struct twin_field {
	const char *section, *key;
	enum twin_field_type type;
	uint32_t offset;
	int64_t min, max;
	uint32_t count; /* an array of exactly that many; 0 for one value alone */
	bool optional;	/* left as it is when missing */
	const char *doc;
};

/* Fills `target` from the file as the table says. */
int twin_fields_read(struct twin_toml *toml, const struct twin_field *fields, size_t count,
		     void *target, struct takt_err *err);

/* One value, or an array of values, to `target` itself. */
int twin_field_put(const struct twin_toml *toml, const struct twin_field *field,
		   const struct twin_toml_value *value, void *target, struct takt_err *err);

/* Whole number in [min, max] or an error that says so. */
int twin_toml_number(const struct twin_toml *toml, const char *section, const char *key,
		     const struct twin_toml_value *value, int64_t min, int64_t max, int64_t *ret,
		     struct takt_err *err);

/* Array of numbers: how many there are (at most `max_count`, at least one), in `ret`. */
int twin_toml_numbers(struct twin_toml *toml, const char *section, const char *key,
		      unsigned max_count, int64_t min, int64_t max, int64_t *ret,
		      struct takt_err *err);

/* Error for a key that has to be there. */
int twin_toml_missing(const struct twin_toml *toml, const char *section, const char *key,
		      struct takt_err *err);

/* Error for the first key that nobody asked for, 0 if there is none. */
int twin_toml_refuse_unknown(const struct twin_toml *toml, struct takt_err *err);

#endif
