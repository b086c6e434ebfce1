/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading traces: clusters (a record a node) and workloads (a record a job), one record at a time.
 *
 * A file is CSV with a header line, or JSON Lines (an object a line, told by its first character),
 * either also gzipped. The order of columns does not matter, unknown columns are ignored, and a
 * member has the names of each of the published traces beside ours: so openb's node and pod lists,
 * Philly's job table and our own format (docs/simulate.md) go through one reader. An empty cell is
 * an absent value. Memory is bounded by the longest line, however long the file.
 *
 * Errors name the file, the line and the column, and what would be accepted.
 */
#ifndef TAKT_SIM_TRACE_H
#define TAKT_SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sim/text_lines.h"
#include "sim/trace_field.h"

/* One row of a cluster. Texts are borrowed until the next record; "" when absent. */
struct takt_trace_node {
	const char *name;
	const char *model;  /* of its accelerators */
	const char *domain; /* where it stands, from the outside in: "zone/rack/leaf" */
	int64_t cpu_milli;
	int64_t memory_mib;
	int64_t gpus;
	int64_t gpu_memory_mib; /* of each */
	int64_t count;		/* so many such nodes; 1 when absent */
	uint32_t has;		/* bits by enum takt_trace_node_field */
};

enum takt_trace_node_field {
	TAKT_TRACE_NODE_NAME,
	TAKT_TRACE_NODE_MODEL,
	TAKT_TRACE_NODE_DOMAIN,
	TAKT_TRACE_NODE_CPU,
	TAKT_TRACE_NODE_MEMORY,
	TAKT_TRACE_NODE_GPUS,
	TAKT_TRACE_NODE_GPU_MEMORY,
	TAKT_TRACE_NODE_COUNT,
	TAKT_TRACE_NODE_FIELDS
};

/* One row of a workload: a pod or a job. */
struct takt_trace_job {
	const char *name;
	const char *models; /* "V100M16|V100M32": any of these; "" = any */
	const char *user;
	const char *tenant;
	int64_t submit_ns; /* since the trace's own zero, or since 1970 */
	int64_t duration_ns;
	int64_t start_ns; /* on the clock of submit_ns, as the next */
	int64_t end_ns;
	int64_t cpu_milli;
	int64_t memory_mib;
	int64_t gpus;		/* in all */
	int64_t gpu_milli;	/* of each GPU, 1000 = whole; above 1000 is read as 1000 */
	int64_t gpu_memory_mib; /* of each GPU; instead of gpu_milli, or beside it */
	int64_t tasks;		/* a gang of so many, each asking for the above; 1 when absent */
	int64_t priority;
	int64_t estimate_ns; /* the run time that its owner expects */
	int64_t deadline_ns; /* on the clock of submit_ns */
	uint32_t has;	     /* bits by enum takt_trace_job_field */
};

enum takt_trace_job_field {
	TAKT_TRACE_JOB_NAME,
	TAKT_TRACE_JOB_MODELS,
	TAKT_TRACE_JOB_USER,
	TAKT_TRACE_JOB_TENANT,
	TAKT_TRACE_JOB_SUBMIT,
	TAKT_TRACE_JOB_DURATION,
	TAKT_TRACE_JOB_START,
	TAKT_TRACE_JOB_END,
	TAKT_TRACE_JOB_CPU,
	TAKT_TRACE_JOB_MEMORY,
	TAKT_TRACE_JOB_GPUS,
	TAKT_TRACE_JOB_GPU_MILLI,
	TAKT_TRACE_JOB_GPU_MEMORY,
	TAKT_TRACE_JOB_TASKS,
	TAKT_TRACE_JOB_PRIORITY,
	TAKT_TRACE_JOB_ESTIMATE,
	TAKT_TRACE_JOB_DEADLINE,
	TAKT_TRACE_JOB_FIELDS
};

/* One row of a series: something that was measured at a time. */
struct takt_trace_sample {
	int64_t at_ns; /* since the series' own zero, or since 1970 */
	double value;
	uint32_t has; /* bits by enum takt_trace_sample_field */
};

enum takt_trace_sample_field {
	TAKT_TRACE_SAMPLE_TIME,
	TAKT_TRACE_SAMPLE_VALUE,
	TAKT_TRACE_SAMPLE_FIELDS
};

/* By the enums above; for documentation and help. */
extern const struct takt_trace_field takt_trace_node_fields[TAKT_TRACE_NODE_FIELDS];
extern const struct takt_trace_field takt_trace_job_fields[TAKT_TRACE_JOB_FIELDS];
extern const struct takt_trace_field takt_trace_sample_fields[TAKT_TRACE_SAMPLE_FIELDS];

struct takt_trace;

enum takt_trace_what {
	TAKT_TRACE_OF_NODES,
	TAKT_TRACE_OF_JOBS,
	TAKT_TRACE_OF_SAMPLES,
};

/* Takes `lines` over, also on failure. `required` has the bits of the columns that every record
 * must fill (a text may be empty). An empty file is refused. */
int takt_trace_new(struct takt_lines *lines, enum takt_trace_what what, uint32_t required,
		   struct takt_trace **ret, struct takt_err *err);
int takt_trace_open(const char *path, enum takt_trace_what what, uint32_t required,
		    struct takt_trace **ret, struct takt_err *err);
void takt_trace_free(struct takt_trace *trace); /* NULL is fine */

/* 1 and the next record, 0 at the end, or a negative code. For a trace of that kind only. */
int takt_trace_next_node(struct takt_trace *trace, struct takt_trace_node *ret,
			 struct takt_err *err);
int takt_trace_next_job(struct takt_trace *trace, struct takt_trace_job *ret, struct takt_err *err);
int takt_trace_next_sample(struct takt_trace *trace, struct takt_trace_sample *ret,
			   struct takt_err *err);

/* Line of the last record, and the text's SHA-256 once the end was reached. */
uint64_t takt_trace_line(const struct takt_trace *trace);
const char *takt_trace_hash(struct takt_trace *trace);

#endif
