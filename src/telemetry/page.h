/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics page: text in the Prometheus exposition format 0.0.4, or OpenMetrics 1.0, from a
 * snapshot of everything it shows. Internal to telemetry. The rows are one a metric: our own in
 * page_metrics.c, those that dashboards made for dcgm-exporter ask for in page_dcgm.c.
 */
#ifndef TAKT_TELEMETRY_PAGE_H
#define TAKT_TELEMETRY_PAGE_H

#include "base/str.h"
#include "base/vec.h"
#include "device/net_ports.h"
#include "telemetry/gpu_tally.h"
#include "telemetry/nccl_read.h"
#include "telemetry/telemetry.h"

enum {
	TAKT_PAGE_MAX_BYTES = 4 * 1024 * 1024,
	TAKT_PAGE_MAX_GAUGES = 256,
	TAKT_PAGE_TEXT = 32,
	TAKT_PAGE_LABELS = 8 * 1024, /* of one GPU */
};

struct takt_page_job {
	uint64_t id;
	const char *engine, *user, *name; /* NULL = not shown; static, or of telemetry's words */
};
/* The daemon's say about a GPU, copied. */
struct takt_page_label {
	bool set, hears_xids;
	uint32_t job_count;
	struct takt_page_job jobs[TAKT_LABEL_MAX_JOBS];
	char state[TAKT_PAGE_TEXT];
	char actuate[TAKT_PAGE_TEXT];
	char health[TAKT_PAGE_TEXT];
	uint32_t lease_min_mhz, lease_max_mhz;
	uint32_t power_cap_mw;
};

struct takt_page_gpu {
	uint32_t index;
	const struct takt_gpu_facts *facts;	/* borrowed */
	const struct takt_gpu_reading *reading; /* borrowed; NULL before the first */
	const struct takt_page_label *label;	/* borrowed */
	const struct takt_tally *tally;		/* borrowed */
	const struct takt_nccl *nccl;		/* borrowed; NULL = nothing is known of it */
	/* The labels of its series without braces, in the two ways. Filled by takt_page_render,
	 * ended by takt_page_gpu_fini. */
	struct takt_str own_labels, dcgm_labels;
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
	enum takt_page_format format;
	bool dcgm;		    /* with the names of dcgm-exporter */
	const char *hostname_label; /* of its series; NULL = they have none */
	const char *hostname;
	bool hpc_job; /* of its series: one a job, with the label */
	struct takt_mono now;
	struct takt_page_gpu *gpus; /* borrowed; their labels are written */
	uint32_t gpu_count;
	const struct takt_net_ports *net;      /* borrowed; NULL = nothing is known of it */
	const struct takt_trips *trips;	       /* borrowed; NULL = as net */
	const struct takt_page_gauges *gauges; /* borrowed */
};

/* Replaces what *ret holds; its rc says whether all of it fitted. */
void takt_page_render(const struct takt_page_input *input, struct takt_str *ret);
void takt_page_gpu_fini(struct takt_page_gpu *gpu);

/* Escapes \ " and newline; other control characters become '?', what is not UTF-8 U+FFFD. */
void takt_page_add_label_value(const char *text, struct takt_str *ret);
/* ,name="value" */
void takt_page_add_label(const char *name, const char *value, struct takt_str *ret);
/* OpenMetrics has no counter whose name does not end in _total: such a one is "unknown" there. */
void takt_page_add_head(const struct takt_page_input *input, const char *name, const char *help,
			bool counter, struct takt_str *ret);

/* Where the value of a row comes from, and which word of bits says that it is there. */
enum takt_page_source {
	TAKT_PAGE_READING,
	TAKT_PAGE_VITALS,
	TAKT_PAGE_FACTS,
};
enum takt_page_kind {
	TAKT_PAGE_U32,
	TAKT_PAGE_I32,
	TAKT_PAGE_U64,
	TAKT_PAGE_MIB,	/* bytes of 64 bits, shown in MiB */
	TAKT_PAGE_BOOL, /* 0 or 1 */
};
struct takt_page_metric {
	const char *name; /* rows of the same name stand together: one head is made for them */
	const char *help;
	bool counter;
	enum takt_page_source source;
	uint32_t has;
	enum takt_page_kind kind;
	size_t at;
	int exponent; /* of ten, from the field's unit to the metric's: -9, -6, -3, -2, 0 or 6 */
	const char *label, *value; /* one more label; NULL = none */
};
/* Every series of the rows; a metric that no GPU has does not appear at all. */
void takt_page_add_metrics(const struct takt_page_input *input,
			   const struct takt_page_metric *metrics, size_t count, bool dcgm,
			   struct takt_str *ret);

/* Everything of the GPUs, from page_metrics.c. */
void takt_page_add_gpus(const struct takt_page_input *input, struct takt_str *ret);
/* Vitals and what takt counts itself, from page_vitals.c. */
void takt_page_add_vitals(const struct takt_page_input *input, struct takt_str *ret);
/* The same readings by the names of dcgm-exporter, from page_dcgm.c. */
void takt_page_add_dcgm(const struct takt_page_input *input, struct takt_str *ret);

/* The network's ports, from page_net.c. */
void takt_page_add_net(const struct takt_page_input *input, struct takt_str *ret);
/* takt_gpu_job, from page_jobs.c. */
void takt_page_add_jobs(const struct takt_page_input *input, struct takt_str *ret);
/* How many series a GPU has of each metric of dcgm-exporter: one, or one a job. */
uint32_t takt_page_dcgm_series(const struct takt_page_input *input,
			       const struct takt_page_gpu *gpu);
/* The last label of one of them, if it has one, and "} ". */
void takt_page_end_dcgm(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
			uint32_t series, struct takt_str *ret);
/* What jobs' NCCL says of its operations, from page_nccl.c. */
void takt_page_add_nccl(const struct takt_page_input *input, struct takt_str *ret);
/* Round trips to other machines, from page_trips.c. */
void takt_page_add_trips(const struct takt_page_input *input, struct takt_str *ret);

/* name{labels of the GPU,extra="value"} and a space; extra may be NULL. */
void takt_page_add_series(const struct takt_page_gpu *gpu, const char *name, const char *extra,
			  const char *value, struct takt_str *ret);
/* value * 10^exponent, digit by digit. */
void takt_page_add_scaled(bool negative, uint64_t value, int exponent, struct takt_str *ret);
/* It answers, and in time. */
bool takt_page_is_fresh(const struct takt_page_gpu *gpu);

/* The reference-counted page that scrapes get. NULL when out of memory. */
const struct takt_page *takt_page_new(const char *text, size_t len);
void takt_page_ref(const struct takt_page *page);

#endif
