/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a trace, see the header: a CSV header is a map from columns to fields, a JSON object
 * is its own. */
#include "sim/trace.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "codec/json.h"
#include "sim/csv_cells.h"

#define NODE(member)   offsetof(struct takt_trace_node, member)
#define JOB(member)    offsetof(struct takt_trace_job, member)
#define SAMPLE(member) offsetof(struct takt_trace_sample, member)

const struct takt_trace_field takt_trace_node_fields[TAKT_TRACE_NODE_FIELDS] = {
	{"name|sn|node", TAKT_TRACE_TEXT, NODE(name), 0, 0, "name of the node"},
	{"model|gpu_model", TAKT_TRACE_TEXT, NODE(model), 0, 0, "model of its accelerators"},
	{"domain", TAKT_TRACE_TEXT, NODE(domain), 0, 0,
	 "where it stands, from the outside in: zone/rack/leaf"},
	{"cpu_milli", TAKT_TRACE_I64, NODE(cpu_milli), 0, INT32_MAX, "CPU, 1000 = one core"},
	{"memory_mib", TAKT_TRACE_I64, NODE(memory_mib), 0, INT32_MAX, "memory, MiB"},
	{"gpus|gpu|num_gpu", TAKT_TRACE_I64, NODE(gpus), 0, 64, "accelerators"},
	{"gpu_memory_mib", TAKT_TRACE_I64, NODE(gpu_memory_mib), 0, INT32_MAX,
	 "memory of each accelerator, MiB"},
	{"count", TAKT_TRACE_I64, NODE(count), 1, 1000000, "so many such nodes; 1 when absent"},
};

const struct takt_trace_field takt_trace_job_fields[TAKT_TRACE_JOB_FIELDS] = {
	{"name|job|job_id|jobid|job_name", TAKT_TRACE_TEXT, JOB(name), 0, 0, "name of the job"},
	{"models|gpu_spec", TAKT_TRACE_TEXT, JOB(models), 0, 0,
	 "accelerator models that will do, separated by |; empty = any"},
	{"user", TAKT_TRACE_TEXT, JOB(user), 0, 0, "who submitted it"},
	{"tenant|cluster|vc|qos", TAKT_TRACE_TEXT, JOB(tenant), 0, 0,
	 "group, virtual cluster or class"},
	{"submit_s|creation_time|timestamp|submit_time", TAKT_TRACE_TIME, JOB(submit_ns), 0,
	 INT64_MAX, "when it was submitted: seconds, or 2017-09-04 10:30:41 (UTC)"},
	{"duration_s|duration", TAKT_TRACE_SECONDS, JOB(duration_ns), 0, INT64_MAX,
	 "run time on the accelerators asked for, seconds"},
	{"start_s|scheduled_time", TAKT_TRACE_TIME, JOB(start_ns), 0, INT64_MAX,
	 "when it started, on the clock of submit_s"},
	{"end_s|deletion_time", TAKT_TRACE_TIME, JOB(end_ns), 0, INT64_MAX,
	 "when it ended, on the clock of submit_s"},
	{"cpu_milli", TAKT_TRACE_I64, JOB(cpu_milli), 0, INT32_MAX, "CPU, 1000 = one core"},
	{"memory_mib", TAKT_TRACE_I64, JOB(memory_mib), 0, INT32_MAX, "memory, MiB"},
	{"gpus|num_gpu|num_gpus|gpu_num|gpu_request", TAKT_TRACE_I64, JOB(gpus), 0, 100000,
	 "accelerators"},
	{"gpu_milli", TAKT_TRACE_I64, JOB(gpu_milli), 0, INT32_MAX,
	 "of each accelerator, 1000 = whole"},
	{"gpu_memory_mib", TAKT_TRACE_I64, JOB(gpu_memory_mib), 0, INT32_MAX,
	 "memory of each accelerator, MiB"},
	{"tasks|num_tasks|task_num|num_inst|inst_num|num_instances|instance_num|num_workers|"
	 "worker_num|num_replicas|replicas",
	 TAKT_TRACE_I64, JOB(tasks), 1, 100000,
	 "a gang of so many, each asking for the above; 1 when absent"},
	{"priority", TAKT_TRACE_I64, JOB(priority), INT32_MIN, INT32_MAX, "larger goes first"},
	{"estimate_s", TAKT_TRACE_SECONDS, JOB(estimate_ns), 0, INT64_MAX,
	 "run time that its owner expects, seconds"},
	{"deadline_s", TAKT_TRACE_TIME, JOB(deadline_ns), 0, INT64_MAX,
	 "when it should be done, on the clock of submit_s"},
};

const struct takt_trace_field takt_trace_sample_fields[TAKT_TRACE_SAMPLE_FIELDS] = {
	{"time|time_s|timestamp", TAKT_TRACE_TIME, SAMPLE(at_ns), 0, INT64_MAX,
	 "when it was taken: seconds, or 2017-09-04 10:30:41 (UTC)"},
	{"value", TAKT_TRACE_NUMBER, SAMPLE(value), 0, 0, "what was measured; empty = missing"},
};

static const struct {
	const struct takt_trace_field *fields;
	size_t count;
} tables[] = {
	[TAKT_TRACE_OF_NODES] = {takt_trace_node_fields, TAKT_TRACE_NODE_FIELDS},
	[TAKT_TRACE_OF_JOBS] = {takt_trace_job_fields, TAKT_TRACE_JOB_FIELDS},
	[TAKT_TRACE_OF_SAMPLES] = {takt_trace_sample_fields, TAKT_TRACE_SAMPLE_FIELDS},
};

enum {
	NO_FIELD = TAKT_TRACE_MAX_FIELDS,
	NUMBER_TEXT = 48,
};

struct takt_trace {
	struct takt_lines *lines; /* owned */
	const struct takt_trace_field *fields;
	size_t field_count;
	uint32_t required;
	bool json;
	char *pending; /* the first line of JSON, read while looking; NULL once used */
	uint8_t field_of[TAKT_CSV_MAX_CELLS]; /* of each column, or NO_FIELD */
	size_t columns;
	cJSON *object; /* owned: of the last record, its texts are borrowed */
	char numbers[TAKT_TRACE_MAX_FIELDS][NUMBER_TEXT];
};

/* "FILE:LINE: " before what is said already. */
static int at_line(const struct takt_trace *trace, int rc, struct takt_err *err)
{
	return takt_err_wrap(err, rc, "%s:%llu", takt_lines_name(trace->lines),
			     (unsigned long long)takt_lines_number(trace->lines));
}

static int wrong(const struct takt_trace *trace, struct takt_err *err, const char *what)
{
	takt_err_set(err, -TAKT_E_CORRUPT, "%s", what);
	return at_line(trace, -TAKT_E_CORRUPT, err);
}

static int missing_column(const struct takt_trace *trace, size_t field, struct takt_err *err)
{
	const char *names = trace->fields[field].names;
	size_t first = strcspn(names, "|");

	takt_err_set(err, -TAKT_E_CORRUPT, "there is no column '%.*s'%s%s%s", (int)first, names,
		     names[first] ? " (or " : "", names[first] ? names + first + 1 : "",
		     names[first] ? ")" : "");
	return at_line(trace, -TAKT_E_CORRUPT, err);
}

/* Of two columns for one field the name that the table lists first counts. */
static int take_column(struct takt_trace *trace, char *const *cells, size_t i, struct takt_err *err)
{
	size_t field = takt_trace_field_find(trace->fields, trace->field_count, cells[i]);
	const char *names;

	trace->field_of[i] = NO_FIELD;
	if (field == trace->field_count)
		return 0;
	names = trace->fields[field].names;
	for (size_t j = 0; j < i; j++) {
		if (trace->field_of[j] != field)
			continue;
		if (strcmp(cells[i], cells[j]) == 0) {
			takt_err_set(err, -TAKT_E_CORRUPT, "column '%.40s' is there twice",
				     cells[i]);
			return at_line(trace, -TAKT_E_CORRUPT, err);
		}
		if (takt_trace_name_rank(names, cells[j]) < takt_trace_name_rank(names, cells[i]))
			return 0;
		trace->field_of[j] = NO_FIELD;
	}
	trace->field_of[i] = (uint8_t)field;
	return 0;
}

static int take_header(struct takt_trace *trace, char *line, struct takt_err *err)
{
	char *cells[TAKT_CSV_MAX_CELLS];
	uint32_t seen = 0;
	int count = takt_csv_split(line, cells, err), rc = 0;

	if (count < 0)
		return at_line(trace, count, err);
	trace->columns = (size_t)count;
	for (size_t i = 0; i < trace->columns && rc == 0; i++) {
		rc = take_column(trace, cells, i, err);
		if (trace->field_of[i] != NO_FIELD)
			seen |= 1u << trace->field_of[i];
	}
	for (size_t i = 0; i < trace->field_count && rc == 0; i++)
		if (trace->required & ~seen & 1u << i)
			rc = missing_column(trace, i, err);
	return rc;
}

static int begin(struct takt_trace *trace, struct takt_err *err)
{
	char *line;
	int rc = takt_lines_next(trace->lines, &line, err);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' is empty: a header line is needed",
				    takt_lines_name(trace->lines));
	if (strncmp(line, "\xef\xbb\xbf", 3) == 0)
		line += 3;
	if (line[strspn(line, " \t")] == '[')
		return wrong(trace, err, "a JSON list; JSON Lines are read: an object a line");
	if (line[strspn(line, " \t")] != '{')
		return take_header(trace, line, err);
	trace->json = true;
	trace->pending = line;
	return 0;
}

int takt_trace_new(struct takt_lines *lines, enum takt_trace_what what, uint32_t required,
		   struct takt_trace **ret, struct takt_err *err)
{
	struct takt_trace *trace = takt_zalloc(sizeof(*trace));
	int rc;

	if (!trace) {
		takt_lines_free(lines);
		return takt_err_set(err, -ENOMEM, "no memory for a trace");
	}
	trace->lines = lines;
	trace->fields = tables[what].fields;
	trace->field_count = tables[what].count;
	trace->required = required;
	rc = begin(trace, err);
	if (rc < 0) {
		takt_trace_free(trace);
		return rc;
	}
	*ret = trace;
	return 0;
}

int takt_trace_open(const char *path, enum takt_trace_what what, uint32_t required,
		    struct takt_trace **ret, struct takt_err *err)
{
	struct takt_lines *lines;
	int rc = takt_lines_open(path, &lines, err);

	return rc < 0 ? rc : takt_trace_new(lines, what, required, ret, err);
}

void takt_trace_free(struct takt_trace *trace)
{
	if (!trace)
		return;
	cJSON_Delete(trace->object);
	takt_lines_free(trace->lines);
	takt_free(trace);
}

/* One value; an empty one is absent, but for texts, where it is the empty text. */
static int take_value(const struct takt_trace *trace, size_t field, const char *text, void *record,
		      uint32_t *has, struct takt_err *err)
{
	int rc;

	if (!text[0] && trace->fields[field].kind != TAKT_TRACE_TEXT)
		return 0;
	rc = takt_trace_field_set(&trace->fields[field], text, record, err);
	if (rc < 0)
		return at_line(trace, rc, err);
	*has |= 1u << field;
	return 0;
}

static int take_row(struct takt_trace *trace, char *line, void *record, uint32_t *has,
		    struct takt_err *err)
{
	char *cells[TAKT_CSV_MAX_CELLS];
	int count = takt_csv_split(line, cells, err), rc = 0;

	if (count < 0)
		return at_line(trace, count, err);
	if ((size_t)count != trace->columns) {
		takt_err_set(err, -TAKT_E_CORRUPT, "%d cells, the header has %zu", count,
			     trace->columns);
		return at_line(trace, -TAKT_E_CORRUPT, err);
	}
	for (size_t i = 0; i < trace->columns && rc == 0; i++)
		if (trace->field_of[i] != NO_FIELD)
			rc = take_value(trace, trace->field_of[i], cells[i], record, has, err);
	return rc;
}

/* The value as the text that a cell would hold, NULL for null; lists and objects are refused. */
static int json_text(struct takt_trace *trace, const cJSON *value, size_t field, const char **ret,
		     struct takt_err *err)
{
	char *number = trace->numbers[field];

	*ret = NULL;
	if (cJSON_IsNull(value))
		return 0;
	if (cJSON_IsString(value)) {
		*ret = value->valuestring;
		return 0;
	}
	if (!cJSON_IsNumber(value)) {
		takt_err_set(err, -TAKT_E_CORRUPT, "column '%.40s': a number or a text is needed",
			     value->string);
		return at_line(trace, -TAKT_E_CORRUPT, err);
	}
	if (value->valuedouble > 1e15 || value->valuedouble < -1e15)
		snprintf(number, NUMBER_TEXT, "%g", value->valuedouble);
	else
		snprintf(number, NUMBER_TEXT, "%.9f", value->valuedouble);
	*ret = number;
	return 0;
}

static int take_object(struct takt_trace *trace, const char *line, void *record, uint32_t *has,
		       struct takt_err *err)
{
	const cJSON *value;
	const char *text;
	int rc;

	cJSON_Delete(trace->object);
	trace->object = NULL;
	rc = takt_json_parse(line, strlen(line), TAKT_LINES_MAX, &trace->object, err);
	if (rc < 0)
		return at_line(trace, rc, err);
	if (!cJSON_IsObject(trace->object))
		return wrong(trace, err, "not a JSON object");
	cJSON_ArrayForEach (value, trace->object) {
		size_t field =
			takt_trace_field_find(trace->fields, trace->field_count, value->string);

		if (field == trace->field_count)
			continue;
		if (*has & 1u << field)
			return wrong(trace, err, "a member is there twice");
		rc = json_text(trace, value, field, &text, err);
		if (rc == 0 && text)
			rc = take_value(trace, field, text, record, has, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The next line that is not blank; 0 at the end. */
static int next_line(struct takt_trace *trace, char **ret, struct takt_err *err)
{
	int rc = 1;

	if (trace->pending) {
		*ret = trace->pending;
		trace->pending = NULL;
		return 1;
	}
	do
		rc = takt_lines_next(trace->lines, ret, err);
	while (rc == 1 && (*ret)[strspn(*ret, " \t")] == '\0');
	return rc;
}

/* Texts that are absent are "", so that nobody need look for NULL. */
static int next_record(struct takt_trace *trace, void *record, uint32_t *has, struct takt_err *err)
{
	char *line;
	int rc = next_line(trace, &line, err);

	if (rc <= 0)
		return rc;
	for (size_t i = 0; i < trace->field_count; i++)
		if (trace->fields[i].kind == TAKT_TRACE_TEXT)
			takt_trace_field_set(&trace->fields[i], "", record, NULL);
	rc = trace->json ? take_object(trace, line, record, has, err)
			 : take_row(trace, line, record, has, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < trace->field_count; i++) {
		if (!(trace->required & ~*has & 1u << i))
			continue;
		takt_err_set(err, -TAKT_E_CORRUPT, "column '%.*s' is empty",
			     (int)strcspn(trace->fields[i].names, "|"), trace->fields[i].names);
		return at_line(trace, -TAKT_E_CORRUPT, err);
	}
	return 1;
}

int takt_trace_next_node(struct takt_trace *trace, struct takt_trace_node *ret,
			 struct takt_err *err)
{
	struct takt_trace_node node = {.count = 1};
	int rc = next_record(trace, &node, &node.has, err);

	if (rc == 1)
		*ret = node;
	return rc;
}

int takt_trace_next_job(struct takt_trace *trace, struct takt_trace_job *ret, struct takt_err *err)
{
	struct takt_trace_job job = {.tasks = 1};
	int rc = next_record(trace, &job, &job.has, err);

	if (rc != 1)
		return rc;
	if (job.gpu_milli > 1000)
		job.gpu_milli = 1000;
	if (!(job.has & 1u << TAKT_TRACE_JOB_GPU_MILLI) &&
	    !(job.has & 1u << TAKT_TRACE_JOB_GPU_MEMORY))
		job.gpu_milli = job.gpus ? 1000 : 0;
	*ret = job;
	return 1;
}

int takt_trace_next_sample(struct takt_trace *trace, struct takt_trace_sample *ret,
			   struct takt_err *err)
{
	struct takt_trace_sample sample = {.at_ns = 0};
	int rc = next_record(trace, &sample, &sample.has, err);

	if (rc == 1)
		*ret = sample;
	return rc;
}

uint64_t takt_trace_line(const struct takt_trace *trace)
{
	return takt_lines_number(trace->lines);
}

const char *takt_trace_hash(struct takt_trace *trace)
{
	return takt_lines_hash(trace->lines);
}
