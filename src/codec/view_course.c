/* SPDX-License-Identifier: Apache-2.0 */
/* The view of how a job went. */
#include "codec/course_view.h"

#include <string.h>

#include "codec/view_tables.h"

#define SAID struct takt_course_said_view
static const struct takt_field said_fields[] = {
	I64(SAID, at_ms, MUST),
	U64(SAID, steps, HAS(TAKT_PV_STEPS)),
	U64(SAID, tokens, HAS(TAKT_PV_TOKENS)),
	U64(SAID, queries, HAS(TAKT_PV_QUERIES)),
	U64(SAID, latency_us, HAS(TAKT_PV_LATENCY)),
};
static const struct takt_shape said_shape = {
	.what = "what a job said",
	.fields = said_fields,
	.count = TAKT_ARRAY_LEN(said_fields),
	.size = sizeof(SAID),
	.has_offset = offsetof(SAID, has),
};

#define DECISION struct takt_course_decision_view
static const struct takt_field decision_fields[] = {
	I64(DECISION, at_ms, MUST),
	I64(DECISION, until_ms, MUST),
	TEXT(DECISION, reason),
	TEXT(DECISION, text),
	U32(DECISION, min_mhz, NONE(0)),
	U32(DECISION, max_mhz, NONE(0)),
	U32(DECISION, power_limit_mw, NONE(0)),
	U64(DECISION, epochs, MUST),
	U32(DECISION, sm_mhz, HAS(TAKT_COURSE_SM)),
	U32(DECISION, power_mw, HAS(TAKT_COURSE_POWER)),
	U64(DECISION, work_milli_s, HAS(TAKT_COURSE_WORK)),
};
static const struct takt_shape decision_shape = {
	.what = "a decision",
	.fields = decision_fields,
	.count = TAKT_ARRAY_LEN(decision_fields),
	.size = sizeof(DECISION),
	.has_offset = offsetof(DECISION, has),
};

#define NCCL struct takt_course_nccl_view
static const struct takt_field nccl_fields[] = {
	U32(NCCL, gpu, MUST),	       TEXT(NCCL, operation),	TEXT(NCCL, comm),
	U32(NCCL, ranks, MUST),	       U32(NCCL, nodes, MUST),	U64(NCCL, bus_bytes_s, MUST),
	U64(NCCL, operation_us, MUST), U64(NCCL, age_ms, MUST),
};
static const struct takt_shape nccl_shape = TAKT_SHAPE(NCCL, "an operation of NCCL's", nccl_fields);

#define COURSE struct takt_course_view
static const struct takt_field fields[] = {
	U64(COURSE, id, MUST),
	MUST_BOOL(COURSE, simulated),
	U32(COURSE, attempt, NONE(0)),
	TEXT(COURSE, governor),
	TEXT(COURSE, signal),
	{TAKT_FIELD_AT(COURSE, said, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(SAID), COUNT(COURSE, said_count), .room = TAKT_COURSE_VIEW_MAX_SAID,
	 .shape = &said_shape, .required = true},
	{TAKT_FIELD_AT(COURSE, decisions, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY,
	 .counts = true, .size = sizeof(DECISION), COUNT(COURSE, decision_count),
	 .room = TAKT_COURSE_VIEW_MAX_DECISIONS, .shape = &decision_shape, .required = true},
	{TAKT_FIELD_AT(COURSE, nccl, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(NCCL), COUNT(COURSE, nccl_count), .room = TAKT_COURSE_VIEW_MAX_NCCL,
	 .shape = &nccl_shape, .flag_offset = offsetof(COURSE, has_nccl)},
};
static const struct takt_shape shape = TAKT_SHAPE(COURSE, "a job's course", fields);

int takt_course_view_to_json(const struct takt_course_view *view, struct takt_str *out)
{
	return takt_shape_encode(&shape, view, out);
}

int takt_course_view_from_json(const char *text, size_t len, struct takt_course_view *ret,
			       struct takt_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return takt_shape_decode(&shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT, ret,
				 err);
}
