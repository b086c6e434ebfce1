/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as JSON. */
#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "codec/json.h"
#include "codec/shape.h"
#include "codec/snapshot.h"

#define WHOLE(type, member, k, least, most)                                                     \
	{                                                                                       \
		TAKT_FIELD_AT(type, member, k), .required = true, .min = (least), .max = (most) \
	}
#define U32(type, member) WHOLE(type, member, TAKT_FIELD_U32, 0, UINT32_MAX)
#define U64(type, member) WHOLE(type, member, TAKT_FIELD_U64, 0, INT64_MAX)
#define I64(type, member) WHOLE(type, member, TAKT_FIELD_I64, INT64_MIN, INT64_MAX)

static const struct takt_field placement_fields[] = {
	U64(struct takt_plan_placement, job_id),
	U32(struct takt_plan_placement, node_id),
	{TAKT_FIELD_AT(struct takt_plan_placement, gpu_mask, TAKT_FIELD_MASK), .required = true},
	I64(struct takt_plan_placement, pair_score_sum),
};
static const struct takt_shape placement_shape =
	TAKT_SHAPE(struct takt_plan_placement, "a placement", placement_fields);

static const struct takt_field wait_fields[] = {
	U64(struct takt_plan_wait, job_id),
	{TAKT_FIELD_AT(struct takt_plan_wait, why, TAKT_FIELD_ENUM), .required = true,
	 .names = takt_why_names},
	U32(struct takt_plan_wait, need),
	U32(struct takt_plan_wait, total),
	U32(struct takt_plan_wait, unhealthy),
	U32(struct takt_plan_wait, outside),
	U32(struct takt_plan_wait, running),
	U32(struct takt_plan_wait, draining),
	U32(struct takt_plan_wait, promised),
	U32(struct takt_plan_wait, free),
	U64(struct takt_plan_wait, behind_job),
	U32(struct takt_plan_wait, must_end),
};
static const struct takt_shape wait_shape =
	TAKT_SHAPE(struct takt_plan_wait, "a wait", wait_fields);

/* A plan with the 32-bit counts that shapes know. */
struct document {
	uint64_t version;
	uint64_t next_wakeup_ns;
	uint32_t placement_count;
	uint32_t wait_count;
	struct takt_plan_placement *placements;
	struct takt_plan_wait *waits;
};

#define ENTRIES(member, counter, of)                                                    \
	{                                                                               \
		TAKT_FIELD_AT(struct document, member, TAKT_FIELD_OBJECT),              \
			.required = true, .many = TAKT_MANY_OWNED, .counts = true,      \
			.count_offset = offsetof(struct document, counter),             \
			.room = TAKT_PLAN_MAX_ENTRIES,                                  \
			.size = sizeof(*((struct document *)0)->member), .shape = &(of) \
	}

static const struct takt_field document_fields[] = {
	U64(struct document, version),
	U64(struct document, next_wakeup_ns),
	ENTRIES(placements, placement_count, placement_shape),
	ENTRIES(waits, wait_count, wait_shape),
};
static const struct takt_shape document_shape =
	TAKT_SHAPE(struct document, "a plan", document_fields);

static void add_entries(const char *name, const struct takt_shape *shape, const void *entries,
			size_t count, struct takt_str *out)
{
	takt_str_addf(out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		takt_str_add(out, i ? ",\n" : "\n");
		takt_shape_encode(shape, (const char *)entries + i * shape->size, out);
	}
	takt_str_add(out, count ? "\n]" : "]");
}

int takt_plan_to_json(const struct takt_plan *plan, struct takt_str *out, struct takt_err *err)
{
	if (plan->version > TAKT_JSON_MAX_INT || plan->next_wakeup_ns > TAKT_JSON_MAX_INT)
		return takt_err_set(err, -ERANGE, "version or next_wakeup_ns is over 2^53");
	takt_str_addf(out, "{\"version\":%" PRIu64 ",\"next_wakeup_ns\":%" PRIu64, plan->version,
		      plan->next_wakeup_ns);
	add_entries("placements", &placement_shape, plan->placements, plan->placement_count, out);
	add_entries("waits", &wait_shape, plan->waits, plan->wait_count, out);
	takt_str_add(out, "}\n");
	return out->rc < 0 ? takt_err_set(err, out->rc, "writing a plan") : 0;
}

int takt_plan_from_json(const char *text, size_t len, struct takt_plan *ret, struct takt_err *err)
{
	struct document document = {0};
	int rc = takt_shape_decode(&document_shape, text, len, TAKT_PLAN_MAX_BYTES,
				   TAKT_SHAPE_STRICT, &document, err);

	if (rc < 0) {
		takt_shape_release(&document_shape, &document);
		return rc;
	}
	*ret = (struct takt_plan){
		.version = document.version,
		.next_wakeup_ns = document.next_wakeup_ns,
		.placements = document.placements,
		.placement_count = document.placement_count,
		.waits = document.waits,
		.wait_count = document.wait_count,
	};
	return 0;
}
