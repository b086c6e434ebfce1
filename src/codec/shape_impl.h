/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoder and the decoder of shapes have in common: how to look at a field. */
#ifndef TAKT_CODEC_SHAPE_IMPL_H
#define TAKT_CODEC_SHAPE_IMPL_H

#include <errno.h>

#include "codec/shape.h"

static inline bool takt_field_is_number(const struct takt_field *field)
{
	return field->kind >= TAKT_FIELD_U32 && field->kind <= TAKT_FIELD_I64;
}

static inline int64_t takt_field_number(const struct takt_field *field, const void *at)
{
	switch (field->kind) {
	case TAKT_FIELD_U32:
		return *(const uint32_t *)at;
	case TAKT_FIELD_I32:
		return *(const int32_t *)at;
	default:
		return *(const int64_t *)at;
	}
}

static inline uint32_t *takt_field_has(const struct takt_shape *shape, const void *base)
{
	return (uint32_t *)((char *)(uintptr_t)base + shape->has_offset);
}

static inline bool takt_field_is_valid(const struct takt_shape *shape,
				       const struct takt_field *field, const void *base)
{
	if (field->flag_offset && !*((const bool *)base + field->flag_offset))
		return false;
	return !field->has_bit || (*takt_field_has(shape, base) & field->has_bit);
}

/* Entries in use of a list. */
static inline uint32_t takt_field_count(const struct takt_field *field, const void *base)
{
	uint32_t n;

	if (field->many == TAKT_MANY_FIXED)
		return field->room;
	n = *(const uint32_t *)((const char *)base + field->count_offset);
	return n < field->room ? n : field->room;
}

#endif
