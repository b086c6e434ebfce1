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
/* A number that is left out where it is what it nearly always is. */
#define OPT(type, member, k, most, usual)                                                          \
	{                                                                                          \
		TAKT_FIELD_AT(type, member, k), .optional = true, .max = (most), .absent = (usual) \
	}
#define MASK(type, member)                                                     \
	{                                                                      \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_MASK), .required = true \
	}
#define ENUM(type, member, of)                                                                \
	{                                                                                     \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_ENUM), .required = true, .names = (of) \
	}
#define BOOL(type, member)                                                     \
	{                                                                      \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_BOOL), .required = true \
	}

static const struct takt_field placement_fields[] = {
	U64(struct takt_plan_placement, job_id),
	U32(struct takt_plan_placement, node_id),
	{TAKT_FIELD_AT(struct takt_plan_placement, gpu_mask, TAKT_FIELD_MASK), .required = true},
	I64(struct takt_plan_placement, pair_score_sum),
	OPT(struct takt_plan_placement, task, TAKT_FIELD_U32, UINT32_MAX, 0),
	OPT(struct takt_plan_placement, tasks, TAKT_FIELD_U32, UINT32_MAX, 1),
	OPT(struct takt_plan_placement, milli, TAKT_FIELD_U32, 1000, 1000),
	OPT(struct takt_plan_placement, mig_start, TAKT_FIELD_U32, UINT8_MAX, 0),
};
static const struct takt_shape placement_shape =
	TAKT_SHAPE(struct takt_plan_placement, "a placement", placement_fields);

/* A wait with its reasons as a list. */
struct wait_entry {
	struct takt_plan_wait wait;
	uint32_t also_count;
	enum takt_why also[TAKT_WHY_COUNT];
};

#define OF_WAIT(member, k, least, most)                                                           \
	{                                                                                         \
		.name = #member, .kind = (k), .offset = offsetof(struct wait_entry, wait.member), \
		.required = true, .min = (least), .max = (most)                                   \
	}
#define WAIT_U32(member) OF_WAIT(member, TAKT_FIELD_U32, 0, UINT32_MAX)
#define WAIT_U64(member) OF_WAIT(member, TAKT_FIELD_U64, 0, INT64_MAX)
#define WAIT_OPT(member_, k, most, usual)                                              \
	{                                                                              \
		.name = #member_, .kind = (k),                                         \
		.offset = offsetof(struct wait_entry, wait.member_), .optional = true, \
		.max = (most), .absent = (usual)                                       \
	}
#define WAIT_ENUM(member, of)                                                         \
	{                                                                             \
		.name = #member, .kind = TAKT_FIELD_ENUM,                             \
		.offset = offsetof(struct wait_entry, wait.member), .required = true, \
		.names = (of)                                                         \
	}

static const struct takt_field wait_fields[] = {
	WAIT_U64(job_id),
	WAIT_ENUM(why, takt_why_names),
	WAIT_U32(need),
	WAIT_U32(total),
	WAIT_U32(unhealthy),
	WAIT_U32(outside),
	WAIT_U32(running),
	WAIT_U32(draining),
	WAIT_U32(promised),
	WAIT_U32(free),
	WAIT_U64(behind_job),
	WAIT_U32(must_end),
	WAIT_OPT(tasks, TAKT_FIELD_U32, UINT32_MAX, 1),
	WAIT_OPT(ahead, TAKT_FIELD_U32, UINT32_MAX, 0),
	{TAKT_FIELD_AT(struct wait_entry, also, TAKT_FIELD_ENUM), .many = TAKT_MANY_ARRAY,
	 .required = true, .counts = true, .count_offset = offsetof(struct wait_entry, also_count),
	 .room = TAKT_WHY_COUNT, .size = sizeof(enum takt_why), .names = takt_why_names},
	WAIT_ENUM(unblock, takt_unblock_names),
	WAIT_ENUM(how, takt_start_how_names),
	WAIT_OPT(start_ns, TAKT_FIELD_U64, INT64_MAX, 0),
	WAIT_OPT(fit, TAKT_FIELD_U32, UINT32_MAX, 0),
	WAIT_OPT(kept, TAKT_FIELD_U32, UINT32_MAX, 0),
};
static const struct takt_shape wait_shape = TAKT_SHAPE(struct wait_entry, "a wait", wait_fields);

static const struct takt_field eviction_fields[] = {
	U64(struct takt_plan_eviction, job_id),
	ENUM(struct takt_plan_eviction, why, takt_evict_why_names),
	BOOL(struct takt_plan_eviction, stop),
	U64(struct takt_plan_eviction, for_job),
	U64(struct takt_plan_eviction, lost_gpu_ms),
};
static const struct takt_shape eviction_shape =
	TAKT_SHAPE(struct takt_plan_eviction, "an eviction", eviction_fields);

/* Numbers of a slot as shapes know them. */
struct slot_entry {
	uint32_t node_id;
	uint64_t gpu_mask;
	uint32_t milli, mig_start;
};
static const struct takt_field slot_fields[] = {
	U32(struct slot_entry, node_id),
	MASK(struct slot_entry, gpu_mask),
	OPT(struct slot_entry, milli, TAKT_FIELD_U32, 1000, 0),
	OPT(struct slot_entry, mig_start, TAKT_FIELD_U32, UINT8_MAX, 0),
};
static const struct takt_shape slot_shape = TAKT_SHAPE(struct slot_entry, "a slot", slot_fields);

struct migration_entry {
	uint64_t job_id;
	uint32_t task;
	struct slot_entry from, to;
};
static const struct takt_field migration_fields[] = {
	U64(struct migration_entry, job_id),
	U32(struct migration_entry, task),
	{TAKT_FIELD_AT(struct migration_entry, from, TAKT_FIELD_OBJECT), .required = true,
	 .shape = &slot_shape},
	{TAKT_FIELD_AT(struct migration_entry, to, TAKT_FIELD_OBJECT), .required = true,
	 .shape = &slot_shape},
};
static const struct takt_shape migration_shape =
	TAKT_SHAPE(struct migration_entry, "a migration", migration_fields);

static const struct takt_field reservation_fields[] = {
	U64(struct takt_plan_reservation, job_id),
	OPT(struct takt_plan_reservation, task, TAKT_FIELD_U32, UINT32_MAX, 0),
	OPT(struct takt_plan_reservation, tasks, TAKT_FIELD_U32, UINT32_MAX, 1),
	U32(struct takt_plan_reservation, node_id),
	MASK(struct takt_plan_reservation, gpu_mask),
	OPT(struct takt_plan_reservation, milli, TAKT_FIELD_U32, 1000, 1000),
	OPT(struct takt_plan_reservation, mig_start, TAKT_FIELD_U32, UINT8_MAX, 0),
	OPT(struct takt_plan_reservation, start_ns, TAKT_FIELD_U64, INT64_MAX, 0),
	ENUM(struct takt_plan_reservation, how, takt_start_how_names),
	{TAKT_FIELD_AT(struct takt_plan_reservation, foreseen, TAKT_FIELD_BOOL), /* or left out */
	 .flag_offset = offsetof(struct takt_plan_reservation, foreseen)},
};
static const struct takt_shape reservation_shape =
	TAKT_SHAPE(struct takt_plan_reservation, "a reservation", reservation_fields);

static const struct takt_field layout_fields[] = {
	U32(struct takt_plan_layout, node_id), U32(struct takt_plan_layout, gpu),
	U32(struct takt_plan_layout, profile), U32(struct takt_plan_layout, start),
	BOOL(struct takt_plan_layout, first),  U64(struct takt_plan_layout, for_job),
};
static const struct takt_shape layout_shape =
	TAKT_SHAPE(struct takt_plan_layout, "a layout", layout_fields);

/* What nodes lack, only where some do. */
struct cause {
	enum takt_why why;
	uint32_t first, any;
};
static const struct takt_field cause_fields[] = {
	ENUM(struct cause, why, takt_why_names),
	U32(struct cause, first),
	U32(struct cause, any),
};
static const struct takt_shape cause_shape = TAKT_SHAPE(struct cause, "a cause", cause_fields);

struct fit_entry {
	uint32_t nodes, fit, room;
	uint32_t cause_count;
	struct cause causes[TAKT_WHY_COUNT];
};
static const struct takt_field fit_fields[] = {
	U32(struct fit_entry, nodes),
	U32(struct fit_entry, fit),
	U32(struct fit_entry, room),
	{TAKT_FIELD_AT(struct fit_entry, causes, TAKT_FIELD_OBJECT), .required = true,
	 .many = TAKT_MANY_ARRAY, .counts = true,
	 .count_offset = offsetof(struct fit_entry, cause_count), .room = TAKT_WHY_COUNT,
	 .size = sizeof(struct cause), .shape = &cause_shape},
};
static const struct takt_shape fit_shape = TAKT_SHAPE(struct fit_entry, "a fit", fit_fields);

/* A plan with the 32-bit counts that shapes know. */
struct document {
	uint64_t version;
	uint64_t next_wakeup_ns;
	uint32_t placement_count, wait_count, eviction_count, migration_count;
	uint32_t reservation_count, layout_count, fit_count;
	struct takt_plan_placement *placements;
	struct wait_entry *waits;
	struct takt_plan_eviction *evictions;
	struct migration_entry *migrations;
	struct takt_plan_reservation *reservations;
	struct takt_plan_layout *layouts;
	struct fit_entry *fits;
};

#define ENTRIES(member, counter, of, must)                                              \
	{                                                                               \
		TAKT_FIELD_AT(struct document, member, TAKT_FIELD_OBJECT),              \
			.required = (must), .many = TAKT_MANY_OWNED, .counts = true,    \
			.count_offset = offsetof(struct document, counter),             \
			.room = TAKT_PLAN_MAX_ENTRIES,                                  \
			.size = sizeof(*((struct document *)0)->member), .shape = &(of) \
	}

static const struct takt_field document_fields[] = {
	U64(struct document, version),
	U64(struct document, next_wakeup_ns),
	ENTRIES(placements, placement_count, placement_shape, true),
	ENTRIES(waits, wait_count, wait_shape, true),
	ENTRIES(evictions, eviction_count, eviction_shape, false),
	ENTRIES(migrations, migration_count, migration_shape, false),
	ENTRIES(reservations, reservation_count, reservation_shape, false),
	ENTRIES(layouts, layout_count, layout_shape, false),
	ENTRIES(fits, fit_count, fit_shape, false),
};
static const struct takt_shape document_shape =
	TAKT_SHAPE(struct document, "a plan", document_fields);

/* From entries of a plan to those that a shape describes, one at a time, and back. */

static void wait_to(const void *from, void *to)
{
	struct wait_entry *entry = to;

	*entry = (struct wait_entry){.wait = *(const struct takt_plan_wait *)from};
	for (int why = 0; why < TAKT_WHY_COUNT; why++)
		if (entry->wait.also >> why & 1)
			entry->also[entry->also_count++] = (enum takt_why)why;
}

static void wait_back(const void *from, void *to)
{
	const struct wait_entry *entry = from;
	struct takt_plan_wait *wait = to;

	*wait = entry->wait;
	for (uint32_t i = 0; i < entry->also_count; i++)
		wait->also |= UINT64_C(1) << entry->also[i];
}

static struct slot_entry slot_to(const struct takt_sched_slot *slot)
{
	return (struct slot_entry){slot->node_id, slot->gpu_mask, slot->milli, slot->mig_start};
}

static struct takt_sched_slot slot_back(const struct slot_entry *entry)
{
	return (struct takt_sched_slot){entry->node_id, (uint16_t)entry->milli,
					(uint8_t)entry->mig_start, entry->gpu_mask};
}

static void migration_to(const void *from, void *to)
{
	const struct takt_plan_migration *migration = from;

	*(struct migration_entry *)to =
		(struct migration_entry){migration->job_id, migration->task,
					 slot_to(&migration->from), slot_to(&migration->to)};
}

static void migration_back(const void *from, void *to)
{
	const struct migration_entry *entry = from;

	*(struct takt_plan_migration *)to = (struct takt_plan_migration){
		entry->job_id, entry->task, slot_back(&entry->from), slot_back(&entry->to)};
}

static void fit_to(const void *from, void *to)
{
	const struct takt_plan_fit *fit = from;
	struct fit_entry *entry = to;

	*entry = (struct fit_entry){.nodes = fit->nodes, .fit = fit->fit, .room = fit->room};
	for (int why = 0; why < TAKT_WHY_COUNT; why++)
		if (fit->any[why] > 0)
			entry->causes[entry->cause_count++] =
				(struct cause){(enum takt_why)why, fit->first[why], fit->any[why]};
}

static void fit_back(const void *from, void *to)
{
	const struct fit_entry *entry = from;
	struct takt_plan_fit *fit = to;

	*fit = (struct takt_plan_fit){
		.nodes = entry->nodes, .fit = entry->fit, .room = entry->room};
	for (uint32_t i = 0; i < entry->cause_count; i++) {
		fit->first[entry->causes[i].why] = entry->causes[i].first;
		fit->any[entry->causes[i].why] = entry->causes[i].any;
	}
}

/* A list of a plan: `convert` is NULL where the entries are their own. */
struct list {
	const char *name;
	const struct takt_shape *shape;
	const void *entries;
	size_t count, size; /* of one in the plan */
	void (*convert)(const void *from, void *to);
	bool always; /* also when it is empty */
};

union any_entry {
	struct wait_entry wait;
	struct migration_entry migration;
	struct fit_entry fit;
};

static void add_list(const struct list *list, struct takt_str *out)
{
	union any_entry entry;

	if (list->count == 0 && !list->always)
		return;
	takt_str_addf(out, ",\n\"%s\":[", list->name);
	for (size_t i = 0; i < list->count; i++) {
		const void *at = (const char *)list->entries + i * list->size;

		if (list->convert)
			list->convert(at, &entry);
		takt_str_add(out, i ? ",\n" : "\n");
		takt_shape_encode(list->shape, list->convert ? &entry : at, out);
	}
	takt_str_add(out, list->count ? "\n]" : "]");
}

#define LIST_OF(member, counter, shape_, convert_, always_)                             \
	{                                                                               \
#member, &(shape_), plan->member, plan->counter, sizeof(*plan->member), \
			(convert_), (always_)                                           \
	}

int takt_plan_to_json(const struct takt_plan *plan, struct takt_str *out, struct takt_err *err)
{
	const struct list lists[] = {
		LIST_OF(placements, placement_count, placement_shape, NULL, true),
		LIST_OF(waits, wait_count, wait_shape, wait_to, true),
		LIST_OF(evictions, eviction_count, eviction_shape, NULL, false),
		LIST_OF(migrations, migration_count, migration_shape, migration_to, false),
		LIST_OF(reservations, reservation_count, reservation_shape, NULL, false),
		LIST_OF(layouts, layout_count, layout_shape, NULL, false),
		LIST_OF(fits, fit_count, fit_shape, fit_to, false),
	};

	if (plan->version > TAKT_JSON_MAX_INT || plan->next_wakeup_ns > TAKT_JSON_MAX_INT)
		return takt_err_set(err, -ERANGE, "version or next_wakeup_ns is over 2^53");
	takt_str_addf(out, "{\"version\":%" PRIu64 ",\"next_wakeup_ns\":%" PRIu64, plan->version,
		      plan->next_wakeup_ns);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(lists); i++)
		add_list(&lists[i], out);
	takt_str_add(out, "}\n");
	return out->rc < 0 ? takt_err_set(err, out->rc, "writing a plan") : 0;
}

/* Converted entries, owned; NULL = no memory. */
static void *convert_back(const void *entries, size_t n, size_t from_size, size_t to_size,
			  void (*back)(const void *from, void *to))
{
	char *converted = takt_calloc(n, to_size);

	for (size_t i = 0; converted && i < n; i++)
		back((const char *)entries + i * from_size, converted + i * to_size);
	return converted;
}

static int to_plan(struct document *document, struct takt_plan *ret, struct takt_err *err)
{
	struct takt_plan plan = {
		.version = document->version,
		.next_wakeup_ns = document->next_wakeup_ns,
		.placement_count = document->placement_count,
		.wait_count = document->wait_count,
		.eviction_count = document->eviction_count,
		.migration_count = document->migration_count,
		.reservation_count = document->reservation_count,
		.layout_count = document->layout_count,
		.fit_count = document->fit_count,
	};

	plan.waits = convert_back(document->waits, plan.wait_count, sizeof(*document->waits),
				  sizeof(*plan.waits), wait_back);
	plan.migrations = convert_back(document->migrations, plan.migration_count,
				       sizeof(*document->migrations), sizeof(*plan.migrations),
				       migration_back);
	plan.fits = convert_back(document->fits, plan.fit_count, sizeof(*document->fits),
				 sizeof(*plan.fits), fit_back);
	if (!plan.waits || !plan.migrations || !plan.fits) {
		takt_plan_fini(&plan);
		return takt_err_set(err, -ENOMEM, "no memory to read a plan");
	}
	plan.placements = document->placements;
	plan.evictions = document->evictions;
	plan.reservations = document->reservations;
	plan.layouts = document->layouts;
	document->placements = NULL;
	document->evictions = NULL;
	document->reservations = NULL;
	document->layouts = NULL;
	*ret = plan;
	return 0;
}

int takt_plan_from_json(const char *text, size_t len, struct takt_plan *ret, struct takt_err *err)
{
	struct document document = {0};
	int rc = takt_shape_decode(&document_shape, text, len, TAKT_PLAN_MAX_BYTES,
				   TAKT_SHAPE_STRICT, &document, err);

	if (rc == 0)
		rc = to_plan(&document, ret, err);
	takt_shape_release(&document_shape, &document);
	return rc;
}
