/* SPDX-License-Identifier: Apache-2.0 */
/* The health view. */
#include "codec/health.h"

#include <string.h>

#include "codec/view_tables.h"

#define FINDING struct takt_health_finding
static const struct takt_field finding_fields[] = {
	TEXT(FINDING, finding), TEXT(FINDING, level),	TEXT(FINDING, action),
	TEXT(FINDING, text),	I64(FINDING, since_ms), I32(FINDING, cause, NONE(-1)),
};
static const struct takt_shape finding_shape = TAKT_SHAPE(FINDING, "a finding", finding_fields);

#define CHANGE struct takt_health_change
static const struct takt_field change_fields[] = {
	I64(CHANGE, at_ms),
	TEXT(CHANGE, from),
	TEXT(CHANGE, to),
	TEXT(CHANGE, why),
};
static const struct takt_shape change_shape = TAKT_SHAPE(CHANGE, "a change", change_fields);

#define CHANGES(type, list, count)                                                            \
	{                                                                                     \
		.name = "changes", .kind = TAKT_FIELD_OBJECT, .offset = offsetof(type, list), \
		.many = TAKT_MANY_ARRAY, .counts = true, .size = sizeof(CHANGE),              \
		COUNT(type, count), .room = TAKT_HEALTH_MAX_CHANGES, .shape = &change_shape   \
	}
#define PAST struct takt_health_past
static const struct takt_field past_fields[] = {CHANGES(PAST, changes, change_count)};
static const struct takt_shape past_shape = TAKT_SHAPE(PAST, "what happened", past_fields);

#define XID struct takt_health_xid
static const struct takt_field xid_fields[] = {
	U32(XID, xid, MUST),
	U64(XID, count, MUST),
	I64(XID, last_ms),
	TEXT(XID, text),
};
static const struct takt_shape xid_shape = TAKT_SHAPE(XID, "an XID", xid_fields);

#define GPU struct takt_health_gpu
#define LIST(member, of, most)                                                               \
	{                                                                                    \
		TAKT_FIELD_AT(GPU, member##s, TAKT_FIELD_OBJECT),                            \
			.many = TAKT_MANY_ARRAY, .counts = true, .size = sizeof(of),         \
			COUNT(GPU, member##_count), .room = (most), .shape = &member##_shape \
	}
static const struct takt_field gpu_fields[] = {
	U32(GPU, index, MUST),
	TEXT(GPU, uuid),
	TEXT(GPU, state),
	TEXT(GPU, severity),
	I64(GPU, since_ms, NONE(0)),
	TEXT(GPU, note),
	LIST(finding, FINDING, TAKT_HEALTH_MAX_FINDINGS),
	{TAKT_FIELD_AT(GPU, actions, TAKT_FIELD_TEXT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(((GPU *)0)->actions[0]), COUNT(GPU, action_count),
	 .room = TAKT_HEALTH_MAX_ACTIONS},
	CHANGES(GPU, past.changes, past.change_count),
	LIST(xid, XID, TAKT_HEALTH_MAX_XIDS),
};
static const struct takt_shape gpu_shape = TAKT_SHAPE(GPU, "a GPU", gpu_fields);

#define SXID struct takt_health_sxid
static const struct takt_field sxid_fields[] = {
	TEXT(SXID, pci),    U32(SXID, sxid, MUST), U64(SXID, count, MUST),
	I64(SXID, last_ms), BOOL(SXID, fatal),	   I32(SXID, link, NONE(-1)),
};
static const struct takt_shape sxid_shape = TAKT_SHAPE(SXID, "an SXid", sxid_fields);

#define HEALTH struct takt_health_view
static const struct takt_field health_fields[] = {
	MUST_BOOL(HEALTH, simulated),
	TEXT(HEALTH, events_why),
	TEXT(HEALTH, kernel_log_why),
	{TAKT_FIELD_AT(HEALTH, gpus, TAKT_FIELD_OBJECT), .many = TAKT_MANY_OWNED, .required = true,
	 .counts = true, .size = sizeof(GPU), COUNT(HEALTH, gpu_count), .room = TAKT_VIEW_MAX_GPUS,
	 .shape = &gpu_shape},
	{TAKT_FIELD_AT(HEALTH, sxids, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(SXID), COUNT(HEALTH, sxid_count), .room = TAKT_HEALTH_MAX_SXIDS,
	 .shape = &sxid_shape},
};
static const struct takt_shape health_shape =
	TAKT_SHAPE(HEALTH, "the health of GPUs", health_fields);

void takt_health_view_fini(struct takt_health_view *view)
{
	takt_shape_release(&health_shape, view);
	view->gpu_count = 0;
}

int takt_health_view_to_json(const struct takt_health_view *view, struct takt_str *out)
{
	return takt_shape_encode(&health_shape, view, out);
}

int takt_health_view_from_json(const char *text, size_t len, struct takt_health_view *ret,
			       struct takt_err *err)
{
	struct takt_health_view view;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = takt_shape_decode(&health_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
			       &view, err);
	if (rc < 0)
		takt_health_view_fini(&view);
	else
		*ret = view;
	return rc;
}

int takt_health_past_to_json(const struct takt_health_past *past, struct takt_str *out)
{
	return takt_shape_encode(&past_shape, past, out);
}

int takt_health_past_from_json(const char *text, size_t len, struct takt_health_past *ret,
			       struct takt_err *err)
{
	struct takt_health_past past;
	int rc;

	memset(&past, 0, sizeof(past));
	rc = takt_shape_decode(&past_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
			       &past, err);
	if (rc == 0)
		*ret = past;
	return rc;
}
