/* SPDX-License-Identifier: Apache-2.0 */
/* From a struct to JSON by its table. */
#include <inttypes.h>
#include <string.h>

#include "codec/json.h"
#include "codec/shape_impl.h"

static int add_mask(uint64_t mask, struct takt_str *out)
{
	const char *comma = "";

	takt_str_add(out, "[");
	for (unsigned i = 0; i < 64; i++) {
		if (!(mask >> i & 1))
			continue;
		takt_str_addf(out, "%s%u", comma, i);
		comma = ",";
	}
	return takt_str_add(out, "]");
}

static int add_texts(char *const *texts, struct takt_str *out)
{
	takt_str_add(out, "[");
	for (size_t i = 0; texts && texts[i]; i++) {
		takt_str_add(out, i ? "," : "");
		takt_json_add_text(out, texts[i]);
	}
	return takt_str_add(out, "]");
}

static bool fits_json(const struct takt_field *field, const void *at)
{
	int64_t i;

	if (field->kind == TAKT_FIELD_U64)
		return *(const uint64_t *)at <= TAKT_JSON_MAX_INT;
	if (field->kind != TAKT_FIELD_I64)
		return true;
	i = *(const int64_t *)at;
	return i <= (int64_t)TAKT_JSON_MAX_INT && i >= -(int64_t)TAKT_JSON_MAX_INT;
}

/* Equal to what stands for "none" or "not known". */
static bool is_absent(const struct takt_field *field, const void *at)
{
	if (!takt_field_is_number(field) || !field->optional)
		return false;
	return takt_field_number(field, at) == field->absent;
}

static int add_number(const struct takt_field *field, const void *at, struct takt_str *out)
{
	if (!fits_json(field, at)) {
		out->rc = out->rc ? out->rc : -ERANGE;
		return out->rc;
	}
	return takt_str_addf(out, "%" PRId64, takt_field_number(field, at));
}

static int add_one(const struct takt_field *field, const void *at, struct takt_str *out)
{
	switch (field->kind) {
	case TAKT_FIELD_BOOL:
		return takt_str_add(out, *(const bool *)at ? "true" : "false");
	case TAKT_FIELD_TEXT:
		return takt_json_add_text(out, at);
	case TAKT_FIELD_OWNED_TEXT:
		return takt_json_add_text(out, *(char *const *)at);
	case TAKT_FIELD_TEXTS:
		return add_texts(*(char **const *)at, out);
	case TAKT_FIELD_MASK:
		return add_mask(*(const uint64_t *)at, out);
	case TAKT_FIELD_ENUM:
		return takt_json_add_text(out, field->names[*(const unsigned *)at]);
	case TAKT_FIELD_OBJECT:
		return takt_shape_encode(field->shape, at, out);
	default:
		return is_absent(field, at) ? takt_str_add(out, "null")
					    : add_number(field, at, out);
	}
}

static int add_row(const struct takt_field *field, const char *at, uint32_t n, struct takt_str *out)
{
	const char *comma = "";

	takt_str_add(out, "[");
	for (uint32_t i = 0; i < n; i++, at += field->size) {
		if (field->many == TAKT_MANY_FIXED && !*at)
			continue;
		takt_str_add(out, comma);
		add_one(field, at, out);
		comma = ",";
	}
	return takt_str_add(out, "]");
}

static int add_many(const struct takt_field *field, const void *base, struct takt_str *out)
{
	const char *at = (const char *)base + field->offset;
	uint32_t n = takt_field_count(field, base);

	if (field->many == TAKT_MANY_OWNED)
		at = *(const char *const *)at;
	if (field->many != TAKT_MANY_MATRIX)
		return add_row(field, at, n, out);
	takt_str_add(out, "[");
	for (uint32_t row = 0; row < n; row++) {
		takt_str_add(out, row ? "," : "");
		add_row(field, at + (size_t)row * field->room * field->size, n, out);
	}
	return takt_str_add(out, "]");
}

static bool is_left_out(const struct takt_shape *shape, const struct takt_field *field,
			const void *base)
{
	const void *at = (const char *)base + field->offset;
	bool valid_bit = field->has_bit || field->flag_offset;

	if (!takt_field_is_valid(shape, field, base))
		return true;
	if (field->many != TAKT_MANY_ONE)
		return false;
	if (field->kind == TAKT_FIELD_TEXT)
		return !*(const char *)at;
	if (field->kind == TAKT_FIELD_OWNED_TEXT || field->kind == TAKT_FIELD_TEXTS)
		return !*(void *const *)at;
	if (field->kind == TAKT_FIELD_MASK && field->optional)
		return *(const uint64_t *)at == 0;
	return is_absent(field, at) || (valid_bit && !fits_json(field, at));
}

int takt_shape_encode(const struct takt_shape *shape, const void *from, struct takt_str *out)
{
	bool first = true;

	takt_str_add(out, "{");
	for (size_t i = 0; i < shape->count; i++) {
		const struct takt_field *field = &shape->fields[i];

		if (is_left_out(shape, field, from))
			continue;
		takt_json_add_name(out, field->name, first);
		first = false;
		if (field->many == TAKT_MANY_ONE)
			add_one(field, (const char *)from + field->offset, out);
		else
			add_many(field, from, out);
	}
	return takt_str_add(out, "}");
}
