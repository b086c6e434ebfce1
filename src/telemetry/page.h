/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics page: text in the Prometheus exposition format 0.0.4 from a snapshot of everything it
 * shows. Internal to telemetry. The rows are in page_metrics.c: one a metric.
 */
#ifndef TAKT_TELEMETRY_PAGE_H
#define TAKT_TELEMETRY_PAGE_H

#include "base/str.h"
#include "base/vec.h"
#include "telemetry/telemetry.h"

enum {
	TAKT_PAGE_MAX_BYTES = 4 * 1024 * 1024,
	TAKT_PAGE_MAX_GAUGES = 256,
	TAKT_PAGE_TEXT = 32,
};

/* The daemon's say about a GPU, copied. */
struct takt_page_label {
	bool set;
	uint64_t job_id;
	char state[TAKT_PAGE_TEXT];
	char actuate[TAKT_PAGE_TEXT];
	uint32_t lease_min_mhz, lease_max_mhz;
};

struct takt_page_gpu {
	uint32_t index;
	const struct takt_gpu_facts *facts;	/* borrowed */
	const struct takt_gpu_reading *reading; /* borrowed; NULL before the first */
	const struct takt_page_label *label;	/* borrowed */
};

struct takt_page_gauge {
	const char *name; /* static, borrowed for ever */
	const char *help;
	bool counter;
	double value;
};
struct takt_page_gauges {
	TAKT_VEC(struct takt_page_gauge) list;
};

struct takt_page_input {
	const struct takt_machine_info *info; /* borrowed */
	bool simulated;
	struct takt_mono now;
	const struct takt_page_gpu *gpus; /* borrowed */
	uint32_t gpu_count;
	const struct takt_page_gauges *gauges; /* borrowed */
};

/* Replaces what *ret holds; its rc says whether all of it fitted. */
void takt_page_render(const struct takt_page_input *input, struct takt_str *ret);

/* Escapes \ " and newline; other control characters become '?'. */
void takt_page_add_label_value(const char *text, struct takt_str *ret);

/* Everything of the GPUs, from page_metrics.c. */
void takt_page_add_gpus(const struct takt_page_input *input, struct takt_str *ret);
void takt_page_add_head(const char *name, const char *help, const char *type, struct takt_str *ret);

/* The reference-counted page that scrapes get. NULL when out of memory. */
const struct takt_page *takt_page_new(const char *text, size_t len);
void takt_page_ref(const struct takt_page *page);

#endif
