/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rows to series. The integers of a reading become a metric's unit by a power of ten, in text,
 * so that no digit is lost. What a GPU does not tell, and everything of a GPU whose reading is
 * stale, is left out: an old value shown as a present one would be made up.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry/page.h"

bool takt_page_is_fresh(const struct takt_page_gpu *gpu)
{
	return gpu->reading && !gpu->reading->stale && !gpu->reading->lost && !gpu->reading->asleep;
}

static void begin_series(const char *name, const struct takt_str *labels, struct takt_str *ret)
{
	takt_str_add(ret, name);
	takt_str_add(ret, "{");
	takt_str_addn(ret, takt_str_text(labels), labels->len);
}

void takt_page_add_series(const struct takt_page_gpu *gpu, const char *name, const char *extra,
			  const char *value, struct takt_str *ret)
{
	begin_series(name, &gpu->own_labels, ret);
	if (extra)
		takt_page_add_label(extra, value, ret);
	takt_str_add(ret, "} ");
}

void takt_page_add_scaled(bool negative, uint64_t value, int exponent, struct takt_str *ret)
{
	uint64_t unit = 1;

	if (negative)
		takt_str_add(ret, "-");
	if (exponent >= 0) {
		takt_str_addf(ret, "%" PRIu64, value);
		for (int i = 0; i < exponent && value != 0; i++)
			takt_str_add(ret, "0");
		return;
	}
	for (int i = 0; i > exponent; i--)
		unit *= 10;
	takt_str_addf(ret, "%" PRIu64 ".%0*" PRIu64, value / unit, -exponent, value % unit);
}

static const void *object_of(const struct takt_page_metric *metric, const struct takt_page_gpu *gpu)
{
	switch (metric->source) {
	case TAKT_PAGE_FACTS:
		return gpu->facts;
	case TAKT_PAGE_VITALS:
		return &gpu->reading->vitals;
	default:
		return gpu->reading;
	}
}

static void add_value(const struct takt_page_metric *metric, const struct takt_page_gpu *gpu,
		      struct takt_str *ret)
{
	const void *at = (const char *)object_of(metric, gpu) + metric->at;
	uint64_t value = 0;
	bool negative = false;

	switch (metric->kind) {
	case TAKT_PAGE_U32:
		value = *(const uint32_t *)at;
		break;
	case TAKT_PAGE_I32:
		negative = *(const int32_t *)at < 0;
		value = (uint64_t)llabs(*(const int32_t *)at);
		break;
	case TAKT_PAGE_U64:
		value = *(const uint64_t *)at;
		break;
	case TAKT_PAGE_MIB:
		value = *(const uint64_t *)at >> 20;
		break;
	case TAKT_PAGE_BOOL:
		value = *(const bool *)at;
		break;
	}
	takt_page_add_scaled(negative, value, metric->exponent, ret);
	takt_str_add(ret, "\n");
}

static bool has_value(const struct takt_page_metric *metric, const struct takt_page_gpu *gpu)
{
	if (metric->source == TAKT_PAGE_FACTS)
		return gpu->facts->has & metric->has;
	if (!takt_page_is_fresh(gpu))
		return false;
	return metric->has &
	       (metric->source == TAKT_PAGE_VITALS ? gpu->reading->vitals.has : gpu->reading->has);
}

static void add_series(const struct takt_page_input *input, const struct takt_page_metric *metric,
		       const struct takt_page_gpu *gpu, bool dcgm, struct takt_str *ret)
{
	uint32_t count = dcgm ? takt_page_dcgm_series(input, gpu) : 1;

	for (uint32_t i = 0; i < count; i++) {
		begin_series(metric->name, dcgm ? &gpu->dcgm_labels : &gpu->own_labels, ret);
		if (metric->label)
			takt_page_add_label(metric->label, metric->value, ret);
		if (dcgm)
			takt_page_end_dcgm(input, gpu, i, ret);
		else
			takt_str_add(ret, "} ");
		add_value(metric, gpu, ret);
	}
}

/* head: none of this name stands on the page yet. Returns whether one does now. */
static bool add_metric(const struct takt_page_input *input, const struct takt_page_metric *metric,
		       bool head, bool dcgm, struct takt_str *ret)
{
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!has_value(metric, gpu))
			continue;
		if (head)
			takt_page_add_head(input, metric->name, metric->help, metric->counter, ret);
		head = false;
		add_series(input, metric, gpu, dcgm, ret);
	}
	return !head;
}

void takt_page_add_metrics(const struct takt_page_input *input,
			   const struct takt_page_metric *metrics, size_t count, bool dcgm,
			   struct takt_str *ret)
{
	bool has_head = false;

	for (size_t i = 0; i < count; i++) {
		if (i > 0 && strcmp(metrics[i].name, metrics[i - 1].name) != 0)
			has_head = false;
		has_head = add_metric(input, &metrics[i], !has_head, dcgm, ret);
	}
}
