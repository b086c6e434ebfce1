/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From JSON to a struct by its table. Messages name the field as a path from the top
 * ("gpus[3].temp_c") and say what would be accepted.
 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "codec/json.h"
#include "codec/shape_impl.h"

enum {
	MAX_FIELDS = 128 /* of a shape */
};

struct decoder {
	enum takt_shape_mode mode;
	struct takt_err *err;
	char path[160];
	size_t path_len;
};

static int decode_object(struct decoder *dec, const struct takt_shape *shape, const cJSON *json,
			 void *to);

/* By hand: this is done for every field and nearly always for nothing. */
static void add_to_path(struct decoder *dec, const char *text, size_t n)
{
	size_t room = sizeof(dec->path) - 1 - dec->path_len;

	n = n < room ? n : room;
	memcpy(dec->path + dec->path_len, text, n);
	dec->path_len += n;
	dec->path[dec->path_len] = '\0';
}

static size_t push_path(struct decoder *dec, const char *name)
{
	size_t before = dec->path_len;

	if (before > 0)
		add_to_path(dec, ".", 1);
	add_to_path(dec, name, strlen(name));
	return before;
}

static size_t push_index(struct decoder *dec, size_t index)
{
	size_t before = dec->path_len, at = 24;
	char text[24];

	text[--at] = ']';
	do
		text[--at] = (char)('0' + index % 10);
	while (index /= 10);
	text[--at] = '[';
	add_to_path(dec, text + at, sizeof(text) - at);
	return before;
}

static void pop_path(struct decoder *dec, size_t before)
{
	dec->path_len = before;
	dec->path[before] = '\0';
}

static const char *found(const cJSON *json)
{
	if (cJSON_IsBool(json))
		return "true or false";
	if (cJSON_IsNumber(json))
		return "a number";
	if (cJSON_IsString(json))
		return "text";
	if (cJSON_IsArray(json))
		return "a list";
	return cJSON_IsObject(json) ? "an object" : "null";
}

static int refuse(struct decoder *dec, const cJSON *json, const char *wanted)
{
	return takt_err_set(dec->err, -TAKT_E_CORRUPT, "field '%s' must be %s, not %s", dec->path,
			    wanted, found(json));
}

static bool in_range(const cJSON *json, int64_t min, int64_t max, int64_t *ret)
{
	double value = json->valuedouble;

	if (!cJSON_IsNumber(json) || !(value >= -9007199254740991.0 && value <= 9007199254740991.0))
		return false;
	*ret = (int64_t)value;
	return (double)*ret == value && *ret >= min && *ret <= max;
}

static int decode_number(struct decoder *dec, const struct takt_field *field, const cJSON *json,
			 void *at)
{
	int64_t value = 0, max = field->max;
	char wanted[80];

	if (max > (int64_t)TAKT_JSON_MAX_INT)
		max = (int64_t)TAKT_JSON_MAX_INT;
	if (!in_range(json, field->min, max, &value)) {
		snprintf(wanted, sizeof(wanted), "a whole number from %" PRId64 " to %" PRId64,
			 field->min, max);
		if (!cJSON_IsNumber(json))
			return refuse(dec, json, wanted);
		return takt_err_set(dec->err, -TAKT_E_CORRUPT, "field '%s' must be %s, not %.15g",
				    dec->path, wanted, json->valuedouble);
	}
	if (field->kind == TAKT_FIELD_U32)
		*(uint32_t *)at = (uint32_t)value;
	else if (field->kind == TAKT_FIELD_I32)
		*(int32_t *)at = (int32_t)value;
	else
		*(int64_t *)at = value;
	return 0;
}

/* Cuts at the border of a character. */
static void copy_cut(char *to, size_t size, const char *text)
{
	size_t done = 0, len = strlen(text), n;

	while (done < len) {
		n = takt_utf8_length(text + done, len - done);
		if (n == 0 || done + n >= size)
			break;
		done += n;
	}
	memcpy(to, text, done);
	to[done] = '\0';
}

static int decode_text(struct decoder *dec, const struct takt_field *field, const cJSON *json,
		       char *to)
{
	char wanted[64];

	if (!cJSON_IsString(json)) {
		snprintf(wanted, sizeof(wanted), "text of at most %zu bytes", field->size - 1);
		return refuse(dec, json, wanted);
	}
	if (dec->mode == TAKT_SHAPE_STRICT && strlen(json->valuestring) >= field->size)
		return takt_err_set(dec->err, -TAKT_E_CORRUPT,
				    "field '%s' must be text of at most %zu bytes, not %zu",
				    dec->path, field->size - 1, strlen(json->valuestring));
	copy_cut(to, field->size, json->valuestring);
	return 0;
}

static int decode_mask(struct decoder *dec, const cJSON *json, uint64_t *to)
{
	const char *wanted = "a list of GPU indices (0 to 63), none twice";
	const cJSON *entry;
	uint64_t mask = 0;
	int64_t bit = 0;

	if (!cJSON_IsArray(json))
		return refuse(dec, json, wanted);
	cJSON_ArrayForEach (entry, json) {
		if (!in_range(entry, 0, 63, &bit) || (mask >> bit & 1))
			return takt_err_set(dec->err, -TAKT_E_CORRUPT, "field '%s' must be %s",
					    dec->path, wanted);
		mask |= UINT64_C(1) << bit;
	}
	*to = mask;
	return 0;
}

static int refuse_enum(struct decoder *dec, const struct takt_field *field, const cJSON *json)
{
	char wanted[240] = "one of";
	size_t used = strlen(wanted);

	for (unsigned i = 0; field->names[i] && used < sizeof(wanted); i++)
		used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s '%s'",
					 i ? "," : "", field->names[i]);
	if (!cJSON_IsString(json))
		return refuse(dec, json, wanted);
	return takt_err_set(dec->err, -TAKT_E_CORRUPT, "field '%s' must be %s, not '%.40s'",
			    dec->path, wanted, json->valuestring);
}

static int decode_enum(struct decoder *dec, const struct takt_field *field, const cJSON *json,
		       unsigned *to)
{
	for (unsigned i = 0; cJSON_IsString(json) && field->names[i]; i++)
		if (strcmp(field->names[i], json->valuestring) == 0) {
			*to = i;
			return 0;
		}
	return refuse_enum(dec, field, json);
}

static int decode_owned_text(struct decoder *dec, const cJSON *json, char **to)
{
	if (!cJSON_IsString(json))
		return refuse(dec, json, "text");
	*to = takt_strdup(json->valuestring);
	return *to ? 0 : takt_err_set(dec->err, -ENOMEM, "no memory for field '%s'", dec->path);
}

static int decode_texts(struct decoder *dec, const struct takt_field *field, const cJSON *json,
			char ***to)
{
	size_t n = (size_t)cJSON_GetArraySize(json), i = 0;
	const cJSON *entry;
	int rc = 0;

	if (!cJSON_IsArray(json))
		return refuse(dec, json, "a list of text");
	if (n > field->room)
		return takt_err_set(dec->err, -TAKT_E_CORRUPT,
				    "field '%s' must have at most %u entries, not %zu", dec->path,
				    field->room, n);
	*to = takt_calloc(n + 1, sizeof(**to));
	if (!*to)
		return takt_err_set(dec->err, -ENOMEM, "no memory for field '%s'", dec->path);
	cJSON_ArrayForEach (entry, json) {
		size_t before = push_index(dec, i);

		rc = decode_owned_text(dec, entry, &(*to)[i++]);
		if (rc < 0)
			return rc;
		pop_path(dec, before);
	}
	return 0;
}

static int decode_one(struct decoder *dec, const struct takt_field *field, const cJSON *json,
		      void *at)
{
	switch (field->kind) {
	case TAKT_FIELD_BOOL:
		if (!cJSON_IsBool(json))
			return refuse(dec, json, "true or false");
		*(bool *)at = cJSON_IsTrue(json);
		return 0;
	case TAKT_FIELD_TEXT:
		return decode_text(dec, field, json, at);
	case TAKT_FIELD_OWNED_TEXT:
		return decode_owned_text(dec, json, at);
	case TAKT_FIELD_TEXTS:
		return decode_texts(dec, field, json, at);
	case TAKT_FIELD_MASK:
		return decode_mask(dec, json, at);
	case TAKT_FIELD_ENUM:
		return decode_enum(dec, field, json, at);
	case TAKT_FIELD_OBJECT:
		return decode_object(dec, field->shape, json, at);
	default:
		return decode_number(dec, field, json, at);
	}
}

static void set_absent(const struct takt_field *field, void *at)
{
	if (!takt_field_is_number(field) || !field->optional)
		return;
	if (field->kind == TAKT_FIELD_U32 || field->kind == TAKT_FIELD_I32)
		*(uint32_t *)at = (uint32_t)field->absent;
	else
		*(int64_t *)at = field->absent;
}

static int decode_row(struct decoder *dec, const struct takt_field *field, const cJSON *json,
		      char *at)
{
	const cJSON *entry;
	size_t i = 0;
	int rc;

	cJSON_ArrayForEach (entry, json) {
		size_t before = push_index(dec, i++);

		if (cJSON_IsNull(entry) && field->optional) {
			set_absent(field, at);
		} else {
			rc = decode_one(dec, field, entry, at);
			if (rc < 0)
				return rc;
		}
		pop_path(dec, before);
		at += field->size;
	}
	return 0;
}

/* A list of at most (or, when `exact`, just) so many entries. */
static int check_list(struct decoder *dec, const cJSON *json, uint32_t n, bool exact)
{
	uint32_t size = (uint32_t)cJSON_GetArraySize(json);

	if (!cJSON_IsArray(json))
		return refuse(dec, json, "a list");
	if (size > n || (exact && size != n))
		return takt_err_set(dec->err, -TAKT_E_CORRUPT,
				    "field '%s' must have %s%u entries, not %u", dec->path,
				    exact ? "" : "at most ", n, size);
	return 0;
}

static int decode_matrix(struct decoder *dec, const struct takt_field *field, const cJSON *json,
			 char *at)
{
	uint32_t n = (uint32_t)cJSON_GetArraySize(json), row = 0;
	const cJSON *entry;
	int rc;

	cJSON_ArrayForEach (entry, json) {
		size_t before = push_index(dec, row);

		rc = check_list(dec, entry, n, true);
		if (rc == 0)
			rc = decode_row(dec, field, entry,
					at + (size_t)row * field->room * field->size);
		if (rc < 0)
			return rc;
		pop_path(dec, before);
		row++;
	}
	return 0;
}

static int decode_many(struct decoder *dec, const struct takt_field *field, const cJSON *json,
		       void *base)
{
	char *at = (char *)base + field->offset;
	bool free_length = field->counts || field->many == TAKT_MANY_FIXED;
	uint32_t room = free_length ? field->room : takt_field_count(field, base);
	int rc = check_list(dec, json, room, !free_length);

	if (rc < 0)
		return rc;
	if (field->many == TAKT_MANY_OWNED) {
		*(void **)at = takt_calloc((size_t)cJSON_GetArraySize(json), field->size);
		at = *(char **)at;
		if (!at)
			return takt_err_set(dec->err, -ENOMEM, "no memory for field '%s'",
					    dec->path);
	}
	if (field->counts)
		*(uint32_t *)((char *)base + field->count_offset) =
			(uint32_t)cJSON_GetArraySize(json);
	if (field->many == TAKT_MANY_MATRIX)
		return decode_matrix(dec, field, json, at);
	return decode_row(dec, field, json, at);
}

/* Its number; `count` when there is none. Looked for from `guess` on and then from the first: who
 * writes follows the same table. */
static size_t find_field(const struct takt_shape *shape, const char *name, size_t guess)
{
	for (size_t i = guess; i < shape->count; i++)
		if (strcmp(shape->fields[i].name, name) == 0)
			return i;
	for (size_t i = 0; i < guess; i++)
		if (strcmp(shape->fields[i].name, name) == 0)
			return i;
	return shape->count;
}

/* The member of each field, NULL = none. Each once, and (strict) known. cJSON's own lookup ignores
 * case; ours does not. */
static int find_members(struct decoder *dec, const struct takt_shape *shape, const cJSON *json,
			const cJSON *ret[MAX_FIELDS])
{
	const cJSON *member;
	size_t i = 0;

	assert(shape->count <= MAX_FIELDS);
	memset(ret, 0, MAX_FIELDS * sizeof(*ret));
	cJSON_ArrayForEach (member, json) {
		size_t field = find_field(shape, member->string, i);

		i = field < shape->count ? field + 1 : i;
		if (field < shape->count && !ret[field]) {
			ret[field] = member;
			continue;
		}
		if (field == shape->count && dec->mode != TAKT_SHAPE_STRICT)
			continue;
		push_path(dec, member->string);
		return takt_err_set(dec->err, -TAKT_E_CORRUPT,
				    field < shape->count ? "field '%s' stands twice"
							 : "field '%s' is not known",
				    dec->path);
	}
	return 0;
}

static int decode_field(struct decoder *dec, const struct takt_shape *shape,
			const struct takt_field *field, const cJSON *json, void *to)
{
	void *at = (char *)to + field->offset;
	int rc;

	if (!json && field->required)
		return takt_err_set(dec->err, -TAKT_E_CORRUPT, "field '%s' is missing", dec->path);
	if (!json) {
		if (field->many == TAKT_MANY_ONE)
			set_absent(field, at);
		return 0;
	}
	if (field->flag_offset) /* first: a bool may be its own, left out where it is false */
		*((bool *)to + field->flag_offset) = true;
	rc = field->many == TAKT_MANY_ONE ? decode_one(dec, field, json, at)
					  : decode_many(dec, field, json, to);
	if (rc == 0 && field->has_bit)
		*takt_field_has(shape, to) |= field->has_bit;
	return rc;
}

/* Of fields that one bit makes valid together, all must be there: a missing one would read as 0. */
static void drop_partial(const struct takt_shape *shape, const cJSON *const members[MAX_FIELDS],
			 void *to)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct takt_field *field = &shape->fields[i];

		if (field->has_bit && !members[i])
			*takt_field_has(shape, to) &= ~field->has_bit;
	}
}

static int decode_object(struct decoder *dec, const struct takt_shape *shape, const cJSON *json,
			 void *to)
{
	const cJSON *members[MAX_FIELDS];
	int rc;

	if (!cJSON_IsObject(json))
		return dec->path_len ? refuse(dec, json, "an object")
				     : takt_err_set(dec->err, -TAKT_E_CORRUPT,
						    "%s must be an object, not %s", shape->what,
						    found(json));
	rc = find_members(dec, shape, json, members);
	for (size_t i = 0; i < shape->count && rc == 0; i++) {
		const struct takt_field *field = &shape->fields[i];
		size_t before = push_path(dec, field->name);

		rc = decode_field(dec, shape, field, members[i], to);
		if (rc == 0)
			pop_path(dec, before);
	}
	if (rc == 0)
		drop_partial(shape, members, to);
	return rc;
}

int takt_shape_decode(const struct takt_shape *shape, const char *text, size_t len, size_t max,
		      enum takt_shape_mode mode, void *to, struct takt_err *err)
{
	struct decoder dec = {.mode = mode, .err = err};
	cJSON *json = NULL;
	int rc = takt_json_parse(text, len, max, &json, err);

	if (rc < 0)
		return takt_err_wrap(err, rc, "%s", shape->what);
	rc = decode_object(&dec, shape, json, to);
	cJSON_Delete(json);
	return rc;
}

static void release_texts(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		takt_free(texts[i]);
	takt_free(texts);
}

void takt_shape_release(const struct takt_shape *shape, void *of)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct takt_field *field = &shape->fields[i];
		void **at = (void **)((char *)of + field->offset);

		if (field->kind == TAKT_FIELD_TEXTS)
			release_texts(*at);
		else if (field->many == TAKT_MANY_OWNED || field->kind == TAKT_FIELD_OWNED_TEXT)
			takt_free(*at);
		else
			continue;
		*at = NULL;
	}
}
