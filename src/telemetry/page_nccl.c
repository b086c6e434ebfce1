/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs' NCCL says of its operations, on the page: a series a GPU, communicator and kind of
 * operation. Of what was written too long ago only its age is shown.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "telemetry/page.h"

static const uint64_t stale_ns = TAKT_NCCL_STALE_S * TAKT_NS_PER_S;

static bool says_something(const struct takt_page_gpu *gpu)
{
	return gpu->nccl && gpu->nccl->count;
}

static uint64_t age_ns(const struct takt_page_input *input, const struct takt_page_gpu *gpu)
{
	return takt_mono_elapsed_ns(input->now, gpu->nccl->at);
}

static void add_series(const char *name, const struct takt_page_gpu *gpu,
		       const struct takt_nccl_row *row, double value, struct takt_str *ret)
{
	takt_str_addf(ret, "%s{%s", name, takt_str_text(&gpu->own_labels));
	takt_page_add_label("comm", row->comm, ret);
	takt_page_add_label("operation", row->operation, ret);
	takt_str_addf(ret, ",ranks=\"%" PRIu32 "\",nodes=\"%" PRIu32 "\"} %.12g\n", row->ranks,
		      row->nodes, value);
}

static double bus_bytes_s(const struct takt_nccl_row *row)
{
	return row->bus_bytes_s;
}

static double seconds(const struct takt_nccl_row *row)
{
	return row->seconds;
}

static const struct metric {
	const char *name, *help;
	double (*value)(const struct takt_nccl_row *row);
} metrics[] = {
	{"takt_nccl_bus_bandwidth_bytes_per_second",
	 "Bus bandwidth of the operation, as the job's NCCL measured it", bus_bytes_s},
	{"takt_nccl_operation_seconds", "How long the operation takes, of its slowest message size",
	 seconds},
};

static void add_metric(const struct takt_page_input *input, const struct metric *metric,
		       struct takt_str *ret)
{
	bool has_head = false;

	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!says_something(gpu) || age_ns(input, gpu) > stale_ns)
			continue;
		if (!has_head)
			takt_page_add_head(input, metric->name, metric->help, false, ret);
		has_head = true;
		for (uint32_t i = 0; i < gpu->nccl->count; i++)
			add_series(metric->name, gpu, &gpu->nccl->row[i],
				   metric->value(&gpu->nccl->row[i]), ret);
	}
}

static void add_ages(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_nccl_age_seconds";
	bool has_head = false;

	for (uint32_t g = 0; g < input->gpu_count; g++) {
		if (!says_something(&input->gpus[g]))
			continue;
		if (!has_head)
			takt_page_add_head(input, name, "Since the job's NCCL wrote this", false,
					   ret);
		has_head = true;
		takt_page_add_series(&input->gpus[g], name, NULL, NULL, ret);
		takt_page_add_scaled(false, age_ns(input, &input->gpus[g]) / TAKT_NS_PER_MS, -3,
				     ret);
		takt_str_add(ret, "\n");
	}
}

static void add_left_out(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_nccl_rows_left_out";
	bool has_head = false;

	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!says_something(gpu) || gpu->nccl->left_out == 0)
			continue;
		if (!has_head)
			takt_page_add_head(input, name,
					   "Rows of NCCL's that are not on this page: too many",
					   false, ret);
		has_head = true;
		takt_page_add_series(gpu, name, NULL, NULL, ret);
		takt_str_addf(ret, "%" PRIu32 "\n", gpu->nccl->left_out);
	}
}

void takt_page_add_nccl(const struct takt_page_input *input, struct takt_str *ret)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(metrics); i++)
		add_metric(input, &metrics[i], ret);
	add_ages(input, ret);
	add_left_out(input, ret);
}
