/* SPDX-License-Identifier: Apache-2.0 */
/* Short spellings for the tables of views; included by their .c files only. */
#ifndef TAKT_CODEC_VIEW_TABLES_H
#define TAKT_CODEC_VIEW_TABLES_H

#include <stdint.h>

#include "codec/json.h"
#include "codec/shape.h"

#define BOOL(type, member)                                   \
	{                                                    \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_BOOL) \
	}
#define MUST_BOOL(type, member)                                                \
	{                                                                      \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_BOOL), .required = true \
	}
#define TEXT(type, member)                                                                        \
	{                                                                                         \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_TEXT), .size = sizeof(((type *)0)->member) \
	}
#define U32(type, member, ...)                                                              \
	{                                                                                   \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_U32), .max = UINT32_MAX, __VA_ARGS__ \
	}
#define U64(type, member, ...)                                                             \
	{                                                                                  \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_U64), .max = INT64_MAX, __VA_ARGS__ \
	}
#define I32(type, member, ...)                                                                   \
	{                                                                                        \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_I32), .min = INT32_MIN, .max = INT32_MAX, \
							     __VA_ARGS__                         \
	}
#define I64(type, member, ...)                                                                   \
	{                                                                                        \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_I64), .min = -(int64_t)TAKT_JSON_MAX_INT, \
							     .max = INT64_MAX, __VA_ARGS__       \
	}

#define MUST		    .required = true
#define HAS(bit)	    .has_bit = (bit)
#define NONE(value)	    .optional = true, .absent = (value)
#define COUNT(type, member) .count_offset = offsetof(type, member)

#endif
