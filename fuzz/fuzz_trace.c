/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of traces: whatever is accepted is within the ranges that the tables of columns state, and
 * texts are never NULL. The same bytes are read as a cluster and as a workload. */
#include "fuzz_input.h"
#include "sim/trace.h"

static void check(const struct takt_trace_field *fields, size_t count, const void *record,
		  uint32_t has)
{
	for (size_t i = 0; i < count; i++) {
		const char *member = (const char *)record + fields[i].offset;
		const char *text;
		int64_t number;

		if (fields[i].kind == TAKT_TRACE_TEXT) {
			memcpy(&text, member, sizeof(text));
			fuzz_expect(text != NULL);
		} else if (has & 1u << i) {
			memcpy(&number, member, sizeof(number));
			fuzz_expect(number >= fields[i].min && number <= fields[i].max);
		}
	}
}

static struct takt_trace *open_trace(const uint8_t *data, size_t size, enum takt_trace_what what)
{
	struct takt_lines *lines;
	struct takt_trace *trace;

	fuzz_expect(takt_lines_open_memory("input", data, size, &lines, NULL) == 0);
	return takt_trace_new(lines, what, 0, &trace, NULL) == 0 ? trace : NULL;
}

static void read_nodes(struct takt_trace *trace)
{
	struct takt_trace_node node;

	while (trace && takt_trace_next_node(trace, &node, NULL) == 1)
		check(takt_trace_node_fields, TAKT_TRACE_NODE_FIELDS, &node, node.has);
	takt_trace_free(trace);
}

static void read_jobs(struct takt_trace *trace)
{
	struct takt_trace_job job;

	while (trace && takt_trace_next_job(trace, &job, NULL) == 1) {
		check(takt_trace_job_fields, TAKT_TRACE_JOB_FIELDS, &job, job.has);
		fuzz_expect(job.gpu_milli <= 1000 && job.tasks >= 1);
	}
	takt_trace_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_nodes(open_trace(data, size, TAKT_TRACE_OF_NODES));
	read_jobs(open_trace(data, size, TAKT_TRACE_OF_JOBS));
	return 0;
}
