/* SPDX-License-Identifier: Apache-2.0 */
/* Values into structs, by table. */
#include "twin_fields.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

int twin_toml_missing(const struct twin_toml *toml, const char *section, const char *key,
		      struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_CORRUPT, "%s: %s%s%s is missing", twin_toml_file(toml),
			    section, *section ? "." : "", key);
}

int twin_toml_refuse_unknown(const struct twin_toml *toml, struct takt_err *err)
{
	const struct twin_toml_key *key = twin_toml_unknown(toml);

	if (!key)
		return 0;
	return twin_toml_error(toml, key->value->line, key->section, key->name, err,
			       "is not a key of such a file; `takt-twin board --keys` shows those "
			       "of a board, twin/README.md the others");
}

int twin_toml_number(const struct twin_toml *toml, const char *section, const char *key,
		     const struct twin_toml_value *value, int64_t min, int64_t max, int64_t *ret,
		     struct takt_err *err)
{
	if (value->kind != TWIN_TOML_INTEGER || value->number < min || value->number > max)
		return twin_toml_error(toml, value->line, section, key, err,
				       "has to be a whole number from %lld to %lld", (long long)min,
				       (long long)max);
	*ret = value->number;
	return 0;
}

int twin_toml_numbers(struct twin_toml *toml, const char *section, const char *key,
		      unsigned max_count, int64_t min, int64_t max, int64_t *ret,
		      struct takt_err *err)
{
	const struct twin_toml_value *array = twin_toml_find(toml, section, key), *item;
	unsigned n = 0;

	if (!array)
		return twin_toml_missing(toml, section, key, err);
	if (array->kind != TWIN_TOML_ARRAY || array->count == 0 || array->count > max_count)
		return twin_toml_error(toml, array->line, section, key, err,
				       "has to be [ ... ] with 1 to %u numbers", max_count);
	for (item = array->first; item; item = item->next) {
		int rc = twin_toml_number(toml, section, key, item, min, max, &ret[n++], err);
		if (rc < 0)
			return rc;
	}
	return (int)n;
}

static int put_text(const struct twin_toml *toml, const struct twin_field *field,
		    const struct twin_toml_value *value, char *target, struct takt_err *err)
{
	if (value->kind != TWIN_TOML_STRING || !*value->text ||
	    strlen(value->text) >= (size_t)field->max)
		return twin_toml_error(toml, value->line, field->section, field->key, err,
				       "has to be \"text\" of 1 to %lld characters",
				       (long long)field->max - 1);
	takt_strcpy(target, (size_t)field->max, value->text);
	return 0;
}

static int put_one(const struct twin_toml *toml, const struct twin_field *field,
		   const struct twin_toml_value *value, char *target, unsigned index,
		   struct takt_err *err)
{
	int64_t number = 0;
	int rc;

	if (field->type == TWIN_FIELD_TEXT)
		return put_text(toml, field, value, target, err);
	rc = twin_toml_number(toml, field->section, field->key, value, field->min, field->max,
			      &number, err);
	if (rc < 0)
		return rc;
	if (field->type == TWIN_FIELD_U16)
		((uint16_t *)(void *)target)[index] = (uint16_t)number;
	else if (field->type == TWIN_FIELD_I32)
		((int32_t *)(void *)target)[index] = (int32_t)number;
	else
		((uint32_t *)(void *)target)[index] = (uint32_t)number;
	return 0;
}

int twin_field_put(const struct twin_toml *toml, const struct twin_field *field,
		   const struct twin_toml_value *value, void *target, struct takt_err *err)
{
	const struct twin_toml_value *item = value->first;

	if (field->count == 0)
		return put_one(toml, field, value, target, 0, err);
	if (value->kind != TWIN_TOML_ARRAY || value->count != field->count)
		return twin_toml_error(toml, value->line, field->section, field->key, err,
				       "has to be [ ... ] with %u numbers", field->count);
	for (unsigned i = 0; item; item = item->next, i++) {
		int rc = put_one(toml, field, item, target, i, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int twin_fields_read(struct twin_toml *toml, const struct twin_field *fields, size_t count,
		     void *target, struct takt_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct twin_field *field = &fields[i];
		const struct twin_toml_value *value =
			twin_toml_find(toml, field->section, field->key);
		int rc = 0;

		if (value)
			rc = twin_field_put(toml, field, value, (char *)target + field->offset,
					    err);
		else if (!field->optional)
			rc = twin_toml_missing(toml, field->section, field->key, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
