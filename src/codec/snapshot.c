/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as JSON lines, by way of the record of snapshot_record.h.
 */
#include "codec/snapshot.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/json.h"
#include "codec/snapshot_record.h"

struct header {
	char format[16];
	uint32_t version;
	uint64_t now_ns;
	struct takt_sched_settings settings;
	uint32_t has;
};
enum {
	HAS_NOW = 1u << 0,
	HAS_SETTINGS = 1u << 1,
};
#define SETTING(member, k)                                     \
	.name = #member, .kind = (k), .has_bit = HAS_SETTINGS, \
	.offset = offsetof(struct header, settings.member),    \
	.size = sizeof(((struct header *)0)->settings.member)
static const struct takt_field header_fields[] = {
	{TAKT_FIELD_AT(struct header, format, TAKT_FIELD_TEXT), .required = true, .size = 16},
	{TAKT_FIELD_AT(struct header, version, TAKT_FIELD_U32), .required = true, .min = 1,
	 .max = 1},
	{TAKT_FIELD_AT(struct header, now_ns, TAKT_FIELD_U64), .has_bit = HAS_NOW,
	 .size = sizeof(uint64_t), .max = TAKT_JSON_MAX_INT},
	{SETTING(order, TAKT_FIELD_TEXT)},
	{SETTING(backfill, TAKT_FIELD_ENUM), .names = takt_backfill_names},
	{SETTING(preempt, TAKT_FIELD_BOOL)},
	{SETTING(guard_ns, TAKT_FIELD_U64), .max = TAKT_JSON_MAX_INT},
	{SETTING(min_runtime_ns, TAKT_FIELD_U64), .max = TAKT_JSON_MAX_INT},
	{SETTING(half_life_ns, TAKT_FIELD_U64), .max = TAKT_JSON_MAX_INT},
};
static const struct takt_shape header_shape = {
	.what = "the first line of an event log",
	.fields = header_fields,
	.count = TAKT_ARRAY_LEN(header_fields),
	.size = sizeof(struct header),
	.has_offset = offsetof(struct header, has),
};
static const char format_name[] = "takt-events";

static int begin(uint64_t now_ns, const struct takt_sched_settings *settings, struct takt_str *out)
{
	struct header header = {.version = 1, .now_ns = now_ns, .has = now_ns ? HAS_NOW : 0};

	if (settings) {
		header.settings = *settings;
		header.has |= HAS_SETTINGS;
	}
	memcpy(header.format, format_name, sizeof(format_name));
	takt_shape_encode(&header_shape, &header, out);
	return takt_str_add(out, "\n");
}

int takt_events_begin(struct takt_str *out)
{
	return begin(0, NULL, out);
}

/* The shape would leave such a number out, and the event would be another one. */
static int check_exact(uint64_t number, const char *name, struct takt_err *err)
{
	if (number <= TAKT_JSON_MAX_INT)
		return 0;
	return takt_err_set(err, -ERANGE, "%s %llu is over 2^53, which JSON does not keep exact",
			    name, (unsigned long long)number);
}

static int check_numbers(const struct takt_record *record, struct takt_err *err)
{
	int rc = check_exact(record->job_id, "job_id", err);

	if (rc == 0)
		rc = check_exact(record->submit_seq, "submit_seq", err);
	return rc == 0 ? check_exact(record->at_ns, "at_ns", err) : rc;
}

int takt_event_to_json(const struct takt_sched_event *event, struct takt_str *out,
		       struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_record_slot *slots = NULL;
	TAKT_CLEANUP(freep) struct takt_record *record = NULL;
	int rc;

	if ((size_t)event->kind >= TAKT_SCHED_EVENT_COUNT ||
	    event->node.gpu_count > TAKT_SCHED_MAX_NODE_GPUS ||
	    event->slot_count > TAKT_SCHED_MAX_TASKS)
		return takt_err_set(err, -EINVAL, "not an event");
	record = takt_zalloc(sizeof(*record));
	slots = takt_calloc(event->slot_count, sizeof(*slots));
	if (!record || !slots)
		return takt_err_set(err, -ENOMEM, "no memory to write an event");
	takt_record_from_event(event, slots, record);
	rc = check_numbers(record, err);
	if (rc < 0)
		return rc;
	takt_shape_encode(&takt_record_shape, record, out);
	rc = takt_str_add(out, "\n");
	return rc < 0 ? takt_err_set(err, rc, "writing an event") : 0;
}

/* The name of the lowest of these fields. */
static const char *field_name(uint32_t has)
{
	for (size_t i = 0; i < takt_record_shape.count; i++)
		if (takt_record_shape.fields[i].has_bit & has)
			return takt_record_shape.fields[i].name;
	return "?";
}

/* Which of two ways to tell it an event has chosen. */
static uint32_t chosen(const struct takt_record *record)
{
	if (record->event == TAKT_SCHED_NODE_ADD)
		return record->has & TAKT_HAS_GPUS ? TAKT_HAS_GPUS : TAKT_HAS_PAIR_SCORE;
	if (record->event == TAKT_SCHED_JOB_PLACED)
		return record->has & TAKT_HAS_SLOTS ? TAKT_HAS_SLOTS
						    : TAKT_HAS_NODE | TAKT_HAS_GPU_MASK;
	return 0;
}

static uint32_t not_chosen(const struct takt_record *record)
{
	uint32_t all = 0;

	if (record->event == TAKT_SCHED_NODE_ADD)
		all = TAKT_HAS_GPUS | TAKT_HAS_PAIR_SCORE;
	if (record->event == TAKT_SCHED_JOB_PLACED)
		all = TAKT_HAS_SLOTS | TAKT_HAS_NODE | TAKT_HAS_GPU_MASK;
	return all & ~chosen(record);
}

/* One for each GPU, if any. */
static int check_each(const struct takt_record *record, const char *field, uint32_t count,
		      struct takt_err *err)
{
	uint32_t gpus = record->has & TAKT_HAS_PAIR_SCORE ? record->gpu_count : record->gpus;

	if (record->event != TAKT_SCHED_NODE_ADD || count == 0 || count == gpus)
		return 0;
	return takt_err_set(err, -TAKT_E_CORRUPT,
			    "field 'machine.%s' must have %u entries, one for each GPU, not %u",
			    field, gpus, count);
}

static int check_cut(const struct takt_record *record, struct takt_err *err)
{
	uint32_t gpus = record->has & TAKT_HAS_PAIR_SCORE ? record->gpu_count : record->gpus;
	uint32_t need = record->machine.mig_cut ? gpus * TAKT_SCHED_MIG_SLICES : 0;

	if (record->event == TAKT_SCHED_GPU_LAYOUT)
		need = TAKT_SCHED_MIG_SLICES;
	else if (record->event != TAKT_SCHED_NODE_ADD)
		return 0;
	if (record->machine.mig_layout_count == need)
		return 0;
	return takt_err_set(err, -TAKT_E_CORRUPT,
			    "field 'machine.mig_layout' must have %u entries, %d for each GPU, not "
			    "%u",
			    need, TAKT_SCHED_MIG_SLICES, record->machine.mig_layout_count);
}

static int check_fields(const struct takt_record *record, struct takt_err *err)
{
	uint32_t must = takt_record_must(record->event) | chosen(record);
	uint32_t may = takt_record_may(record->event) & ~not_chosen(record);
	const char *name = takt_sched_event_name(record->event);

	if (must & ~record->has)
		return takt_err_set(err, -TAKT_E_CORRUPT, "field '%s' of %s is missing",
				    field_name(must & ~record->has), name);
	if (record->has & ~may)
		return takt_err_set(err, -TAKT_E_CORRUPT, "field '%s' is not one of %s",
				    field_name(record->has & ~may), name);
	if (check_each(record, "numa", record->machine.numa_count, err) < 0 ||
	    check_each(record, "each_mem_mib", record->machine.each_mem_count, err) < 0)
		return -TAKT_E_CORRUPT;
	return check_cut(record, err);
}

static int read_header(const char *line, size_t len, struct header *ret, struct takt_err *err)
{
	struct header header = {0};
	int rc = takt_shape_decode(&header_shape, line, len, TAKT_SNAPSHOT_MAX_LINE,
				   TAKT_SHAPE_STRICT, &header, err);

	if (rc == 0 && strcmp(header.format, format_name) != 0)
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "field 'format' must be '%s', not '%s'",
				  format_name, header.format);
	if (rc == 0)
		*ret = header;
	return rc;
}

static int read_first_line(const char *text, size_t len, struct header *ret, struct takt_err *err)
{
	const char *end = memchr(text, '\n', len);
	int rc = read_header(text, end ? (size_t)(end - text) : len, ret, err);

	return rc < 0 ? takt_err_wrap(err, rc, "line 1") : 0;
}

int takt_events_settings(const char *text, size_t len, struct takt_sched_settings *ret,
			 struct takt_err *err)
{
	struct header header = {0};
	int rc = read_first_line(text, len, &header, err);

	if (rc == 0)
		*ret = header.settings;
	return rc;
}

int takt_events_now_ns(const char *text, size_t len, uint64_t *ret_now_ns, struct takt_err *err)
{
	struct header header = {0};
	int rc = read_first_line(text, len, &header, err);

	if (rc < 0)
		return rc;
	if (!(header.has & HAS_NOW))
		return -ENOENT;
	*ret_now_ns = header.now_ns;
	return 0;
}

/* One line, handed to `take`. */
struct reader {
	struct takt_record record;
	int (*take)(void *ctx, const struct takt_sched_event *event, struct takt_err *err);
	void *ctx;
};

static int read_event(struct reader *reader, const char *line, size_t len, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_sched_slot *slots = NULL;
	struct takt_sched_event event;
	int rc;

	takt_record_clear(&reader->record);
	rc = takt_shape_decode(&takt_record_shape, line, len, TAKT_SNAPSHOT_MAX_LINE,
			       TAKT_SHAPE_STRICT, &reader->record, err);
	if (rc == 0)
		rc = check_fields(&reader->record, err);
	if (rc < 0)
		return rc;
	slots = takt_calloc(reader->record.slot_count, sizeof(*slots));
	if (!slots)
		return takt_err_set(err, -ENOMEM, "no memory to read an event");
	event = takt_record_to_event(&reader->record, slots);
	return reader->take(reader->ctx, &event, err);
}

static int read_lines(struct reader *reader, const char *text, size_t len, struct takt_err *err)
{
	struct header header = {0};
	size_t number = 0;
	size_t at = 0;
	int rc = 0;

	while (rc >= 0 && at < len) {
		const char *line = text + at;
		const char *end = memchr(line, '\n', len - at);
		size_t line_len = end ? (size_t)(end - line) : len - at;

		at += line_len + 1;
		rc = ++number == 1 ? read_header(line, line_len, &header, err)
				   : read_event(reader, line, line_len, err);
	}
	return rc < 0 ? takt_err_wrap(err, rc, "line %zu", number) : 0;
}

int takt_events_from_json(const char *text, size_t len,
			  int (*take)(void *ctx, const struct takt_sched_event *event,
				      struct takt_err *err),
			  void *ctx, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct reader *reader = takt_zalloc(sizeof(*reader));
	int rc;

	if (!reader)
		return takt_err_set(err, -ENOMEM, "no memory to read events");
	if (len > TAKT_SNAPSHOT_MAX_BYTES)
		return takt_err_set(err, -TAKT_E_LIMIT, "event log of %zu bytes, the limit is %d",
				    len, TAKT_SNAPSHOT_MAX_BYTES);
	if (len == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "event log is empty");
	reader->take = take;
	reader->ctx = ctx;
	rc = read_lines(reader, text, len, err);
	takt_record_clear(&reader->record);
	return rc;
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

int takt_decision_to_json(const struct takt_sched *sched, uint64_t now_ns,
			  const struct takt_sched_settings *settings, struct takt_str *out,
			  struct takt_err *err)
{
	struct sink sink = {out, err};
	int rc = check_exact(now_ns, "now_ns", err);

	if (rc < 0)
		return rc;
	rc = begin(now_ns, settings, out);

	if (rc < 0)
		return takt_err_set(err, rc, "writing a snapshot");
	return takt_sched_snapshot(sched, write_event, &sink);
}

int takt_snapshot_to_json(const struct takt_sched *sched, struct takt_str *out,
			  struct takt_err *err)
{
	return takt_decision_to_json(sched, 0, NULL, out, err);
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
