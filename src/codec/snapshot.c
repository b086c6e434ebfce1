/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as JSON lines. All events share one flat record, described by one shape; a bit for each
 * field says which are there, and a table which an event must and may have.
 */
#include "codec/snapshot.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/json.h"
#include "codec/shape.h"

enum has {
	HAS_NODE = 1u << 0,
	HAS_GPU = 1u << 1,
	HAS_STATE = 1u << 2,
	HAS_OUTSIDE = 1u << 3,
	HAS_JOB = 1u << 4,
	HAS_SEQ = 1u << 5,
	HAS_PRIORITY = 1u << 6,
	HAS_GPUS = 1u << 7,
	HAS_USE_OUTSIDE = 1u << 8,
	HAS_HELD = 1u << 9,
	HAS_GPU_MASK = 1u << 10,
	HAS_PAIR_SCORE = 1u << 11,

	HAS_SPEC = HAS_JOB | HAS_SEQ | HAS_PRIORITY | HAS_GPUS,
	HAS_FLAGS = HAS_USE_OUTSIDE | HAS_HELD, /* may be left out: false */
};

struct record {
	uint32_t has;
	enum takt_sched_event_kind event;
	uint32_t node_id;
	uint32_t gpu;
	enum takt_gpu_state state;
	bool outside;
	uint64_t job_id;
	uint64_t submit_seq;
	int32_t priority;
	uint32_t gpus;
	bool use_outside;
	bool held;
	uint64_t gpu_mask;
	uint32_t gpu_count;
	/* Last: a record is cleared up to here only. Row i starts at i * MAX_NODE_GPUS. */
	int32_t pair_score[TAKT_SCHED_MAX_NODE_GPUS * TAKT_SCHED_MAX_NODE_GPUS];
};

#define AT(member, k, bit) TAKT_FIELD_AT(struct record, member, k), .has_bit = (bit)
#define WHOLE(most)	   .size = sizeof(uint64_t), .min = 0, .max = (most)

static const struct takt_field record_fields[] = {
	{TAKT_FIELD_AT(struct record, event, TAKT_FIELD_ENUM), .required = true,
	 .names = takt_sched_event_names},
	{AT(node_id, TAKT_FIELD_U32, HAS_NODE), WHOLE(UINT32_MAX)},
	{AT(gpu, TAKT_FIELD_U32, HAS_GPU), WHOLE(TAKT_SCHED_MAX_NODE_GPUS - 1)},
	{AT(state, TAKT_FIELD_ENUM, HAS_STATE), .names = takt_gpu_state_names},
	{AT(outside, TAKT_FIELD_BOOL, HAS_OUTSIDE)},
	{AT(job_id, TAKT_FIELD_U64, HAS_JOB), WHOLE(INT64_MAX)},
	{AT(submit_seq, TAKT_FIELD_U64, HAS_SEQ), WHOLE(INT64_MAX)},
	{AT(priority, TAKT_FIELD_I32, HAS_PRIORITY), .min = INT32_MIN, .max = INT32_MAX},
	{AT(gpus, TAKT_FIELD_U32, HAS_GPUS), WHOLE(UINT32_MAX)},
	{AT(use_outside, TAKT_FIELD_BOOL, HAS_USE_OUTSIDE)},
	{AT(held, TAKT_FIELD_BOOL, HAS_HELD)},
	{AT(gpu_mask, TAKT_FIELD_MASK, HAS_GPU_MASK)},
	{AT(pair_score, TAKT_FIELD_I32, HAS_PAIR_SCORE), .many = TAKT_MANY_MATRIX, .counts = true,
	 .count_offset = offsetof(struct record, gpu_count), .room = TAKT_SCHED_MAX_NODE_GPUS,
	 .size = sizeof(int32_t), .min = INT32_MIN, .max = INT32_MAX},
};
static const struct takt_shape record_shape = {
	.what = "an event",
	.fields = record_fields,
	.count = TAKT_ARRAY_LEN(record_fields),
	.size = sizeof(struct record),
	.has_offset = offsetof(struct record, has),
};

static const uint32_t fields_of[TAKT_SCHED_EVENT_COUNT] = {
	[TAKT_SCHED_NODE_ADD] = HAS_NODE | HAS_PAIR_SCORE,
	[TAKT_SCHED_NODE_REMOVE] = HAS_NODE,
	[TAKT_SCHED_GPU_HEALTH] = HAS_NODE | HAS_GPU | HAS_STATE,
	[TAKT_SCHED_GPU_OUTSIDE] = HAS_NODE | HAS_GPU | HAS_OUTSIDE,
	[TAKT_SCHED_GPU_DRAINING] = HAS_NODE | HAS_GPU | HAS_JOB,
	[TAKT_SCHED_GPU_DRAINED] = HAS_NODE | HAS_GPU,
	[TAKT_SCHED_JOB_ADD] = HAS_SPEC,
	[TAKT_SCHED_JOB_CHANGE] = HAS_SPEC,
	[TAKT_SCHED_JOB_PLACED] = HAS_JOB | HAS_NODE | HAS_GPU_MASK,
	[TAKT_SCHED_JOB_RUNNING] = HAS_JOB,
	[TAKT_SCHED_JOB_DRAINING] = HAS_JOB,
	[TAKT_SCHED_JOB_REQUEUED] = HAS_JOB,
	[TAKT_SCHED_JOB_ENDED] = HAS_JOB,
};

struct header {
	char format[16];
	uint32_t version;
};
static const struct takt_field header_fields[] = {
	{TAKT_FIELD_AT(struct header, format, TAKT_FIELD_TEXT), .required = true, .size = 16},
	{TAKT_FIELD_AT(struct header, version, TAKT_FIELD_U32), .required = true, .min = 1,
	 .max = 1},
};
static const struct takt_shape header_shape =
	TAKT_SHAPE(struct header, "the first line of an event log", header_fields);
static const char format_name[] = "takt-events";

static void clear_record(struct record *record)
{
	memset(record, 0, offsetof(struct record, pair_score));
}

static void copy_matrix(int32_t *to, size_t to_row, const int32_t *from, size_t from_row,
			uint32_t n)
{
	for (uint32_t row = 0; row < n; row++)
		memmove(to + row * to_row, from + row * from_row, n * sizeof(*to));
}

static bool has_spec(enum takt_sched_event_kind kind)
{
	return kind == TAKT_SCHED_JOB_ADD || kind == TAKT_SCHED_JOB_CHANGE;
}

static void to_record(const struct takt_sched_event *event, struct record *record)
{
	const struct takt_sched_job *job = &event->job;
	bool is_node = event->kind == TAKT_SCHED_NODE_ADD;

	clear_record(record);
	record->event = event->kind;
	record->has = fields_of[event->kind];
	record->node_id = is_node ? event->node.id : event->node_id;
	record->gpu = event->gpu;
	record->state = event->state;
	record->outside = event->outside;
	record->job_id = event->job_id;
	record->gpu_mask = event->gpu_mask;
	if (is_node) {
		record->gpu_count = event->node.gpu_count;
		copy_matrix(record->pair_score, TAKT_SCHED_MAX_NODE_GPUS, event->node.pair_score,
			    record->gpu_count, record->gpu_count);
	}
	if (has_spec(event->kind)) {
		record->job_id = job->id;
		record->submit_seq = job->submit_seq;
		record->priority = job->priority;
		record->gpus = job->gpus;
		record->use_outside = job->flags & TAKT_JOB_USE_OUTSIDE;
		record->held = job->flags & TAKT_JOB_HELD;
		record->has |=
			(record->use_outside ? HAS_USE_OUTSIDE : 0) | (record->held ? HAS_HELD : 0);
	}
}

/* The event borrows the record's matrix, which is packed in place. */
static struct takt_sched_event from_record(struct record *record)
{
	struct takt_sched_event event = {
		.kind = record->event,
		.node_id = record->node_id,
		.gpu = record->gpu,
		.state = record->state,
		.outside = record->outside,
		.job_id = record->job_id,
		.gpu_mask = record->gpu_mask,
	};

	if (record->event == TAKT_SCHED_NODE_ADD) {
		copy_matrix(record->pair_score, record->gpu_count, record->pair_score,
			    TAKT_SCHED_MAX_NODE_GPUS, record->gpu_count);
		event.node = (struct takt_sched_node){record->node_id, record->gpu_count,
						      record->pair_score};
	}
	if (has_spec(record->event))
		event.job = (struct takt_sched_job){
			.id = record->job_id,
			.submit_seq = record->submit_seq,
			.priority = record->priority,
			.gpus = record->gpus,
			.flags = (record->use_outside ? TAKT_JOB_USE_OUTSIDE : 0) |
				 (record->held ? TAKT_JOB_HELD : 0),
		};
	return event;
}

int takt_events_begin(struct takt_str *out)
{
	struct header header = {.version = 1};

	memcpy(header.format, format_name, sizeof(format_name));
	takt_shape_encode(&header_shape, &header, out);
	return takt_str_add(out, "\n");
}

/* The shape would leave such a number out, and the event would be another one. */
static int check_exact(uint64_t number, const char *name, struct takt_err *err)
{
	if (number <= TAKT_JSON_MAX_INT)
		return 0;
	return takt_err_set(err, -ERANGE, "%s %llu is over 2^53, which JSON does not keep exact",
			    name, (unsigned long long)number);
}

int takt_event_to_json(const struct takt_sched_event *event, struct takt_str *out,
		       struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct record *record = NULL;
	int rc;

	if ((size_t)event->kind >= TAKT_SCHED_EVENT_COUNT ||
	    event->node.gpu_count > TAKT_SCHED_MAX_NODE_GPUS)
		return takt_err_set(err, -EINVAL, "not an event");
	record = takt_alloc(sizeof(*record));
	if (!record)
		return takt_err_set(err, -ENOMEM, "no memory to write an event");
	to_record(event, record);
	rc = check_exact(record->job_id, "job_id", err);
	if (rc == 0)
		rc = check_exact(record->submit_seq, "submit_seq", err);
	if (rc < 0)
		return rc;
	takt_shape_encode(&record_shape, record, out);
	rc = takt_str_add(out, "\n");
	return rc < 0 ? takt_err_set(err, rc, "writing an event") : 0;
}

/* The name of the lowest of these fields. */
static const char *field_name(uint32_t has)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(record_fields); i++)
		if (record_fields[i].has_bit & has)
			return record_fields[i].name;
	return "?";
}

static int check_fields(const struct record *record, struct takt_err *err)
{
	uint32_t must = fields_of[record->event];
	uint32_t may = must | (has_spec(record->event) ? HAS_FLAGS : 0);
	const char *name = takt_sched_event_name(record->event);

	if (must & ~record->has)
		return takt_err_set(err, -TAKT_E_CORRUPT, "field '%s' of %s is missing",
				    field_name(must & ~record->has), name);
	if (record->has & ~may)
		return takt_err_set(err, -TAKT_E_CORRUPT, "field '%s' is not one of %s",
				    field_name(record->has & ~may), name);
	return 0;
}

static int read_header(const char *line, size_t len, struct takt_err *err)
{
	struct header header = {0};
	int rc = takt_shape_decode(&header_shape, line, len, TAKT_SNAPSHOT_MAX_LINE,
				   TAKT_SHAPE_STRICT, &header, err);

	if (rc == 0 && strcmp(header.format, format_name) != 0)
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "field 'format' must be '%s', not '%s'",
				  format_name, header.format);
	return rc;
}

static int read_event(const char *line, size_t len, struct record *record, struct takt_err *err)
{
	int rc;

	clear_record(record);
	rc = takt_shape_decode(&record_shape, line, len, TAKT_SNAPSHOT_MAX_LINE, TAKT_SHAPE_STRICT,
			       record, err);
	return rc < 0 ? rc : check_fields(record, err);
}

int takt_events_from_json(const char *text, size_t len,
			  int (*take)(void *ctx, const struct takt_sched_event *event,
				      struct takt_err *err),
			  void *ctx, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct record *record = takt_zalloc(sizeof(*record));
	size_t number = 0;
	size_t at = 0;
	int rc = 0;

	if (!record)
		return takt_err_set(err, -ENOMEM, "no memory to read events");
	if (len > TAKT_SNAPSHOT_MAX_BYTES)
		return takt_err_set(err, -TAKT_E_LIMIT, "event log of %zu bytes, the limit is %d",
				    len, TAKT_SNAPSHOT_MAX_BYTES);
	if (len == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "event log is empty");
	while (rc >= 0 && at < len) {
		const char *line = text + at;
		const char *end = memchr(line, '\n', len - at);
		size_t line_len = end ? (size_t)(end - line) : len - at;

		at += line_len + 1;
		if (++number == 1) {
			rc = read_header(line, line_len, err);
			continue;
		}
		rc = read_event(line, line_len, record, err);
		if (rc >= 0) {
			struct takt_sched_event event = from_record(record);

			rc = take(ctx, &event, err);
		}
	}
	return rc < 0 ? takt_err_wrap(err, rc, "line %zu", number) : 0;
}

struct sink {
	struct takt_str *out;
	struct takt_err *err;
};

static int write_event(void *ctx, const struct takt_sched_event *event)
{
	struct sink *sink = ctx;

	return takt_event_to_json(event, sink->out, sink->err);
}

int takt_snapshot_to_json(const struct takt_sched *sched, struct takt_str *out,
			  struct takt_err *err)
{
	struct sink sink = {out, err};
	int rc = takt_events_begin(out);

	if (rc < 0)
		return takt_err_set(err, rc, "writing a snapshot");
	return takt_sched_snapshot(sched, write_event, &sink);
}

static int feed(void *ctx, const struct takt_sched_event *event, struct takt_err *err)
{
	return takt_sched_update(ctx, event, err);
}

int takt_snapshot_load(const char *text, size_t len, const struct takt_sched_config *config,
		       struct takt_sched **ret, struct takt_err *err)
{
	struct takt_sched *sched;
	int rc = takt_sched_new(config, &sched, err);

	if (rc < 0)
		return rc;
	rc = takt_events_from_json(text, len, feed, sched, err);
	if (rc < 0) {
		takt_sched_free(sched);
		return rc;
	}
	*ret = sched;
	return 0;
}
