/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a GPU were busy with, by GPM, which boards have since Hopper: the driver copies
 * its counters into a sample, and a metric is what happened between two of them. So there is
 * nothing at the first, nothing of a board without, and nothing of one that MIG has cut.
 */
#include "device/nvml_api.h"

enum {
	MIB = 1024 * 1024,
	PPM_PER_PERCENT = 10000,
};

static const struct {
	uint32_t metric;
	const char *name;
} parts[TAKT_ACTIVE_COUNT] = {
	[TAKT_ACTIVE_GRAPHICS] = {NVML_GPM_METRIC_GRAPHICS_UTIL, "graphics"},
	[TAKT_ACTIVE_SM] = {NVML_GPM_METRIC_SM_UTIL, "sm"},
	[TAKT_ACTIVE_OCCUPANCY] = {NVML_GPM_METRIC_SM_OCCUPANCY, "occupancy"},
	[TAKT_ACTIVE_TENSOR] = {NVML_GPM_METRIC_ANY_TENSOR_UTIL, "tensor"},
	[TAKT_ACTIVE_DRAM] = {NVML_GPM_METRIC_DRAM_UTIL, "dram"},
	[TAKT_ACTIVE_FP64] = {NVML_GPM_METRIC_FP64_UTIL, "fp64"},
	[TAKT_ACTIVE_FP32] = {NVML_GPM_METRIC_FP32_UTIL, "fp32"},
	[TAKT_ACTIVE_FP16] = {NVML_GPM_METRIC_FP16_UTIL, "fp16"},
};

/* The driver looks at as many metrics as it is told of. */
enum {
	PCIE_SENT = TAKT_ACTIVE_COUNT,
	PCIE_RECEIVED,
	METRICS,
};
struct question {
	struct nvml_gpm_metrics_get head;
	struct nvml_gpm_metric metrics[METRICS];
};

const char *takt_active_name(enum takt_active part)
{
	return parts[part].name;
}

static bool can_ask(const struct takt_nvml_api *api)
{
	return api->gpm_support && api->gpm_alloc && api->gpm_free && api->gpm_sample &&
	       api->gpm_metrics;
}

static bool is_told(const struct takt_nvml_api *api, const struct takt_nvml_gpu *gpu)
{
	struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};

	return can_ask(api) && api->gpm_support(gpu->device, &support) == NVML_SUCCESS &&
	       support.supported;
}

/* Room for two samples, made once. */
static bool prepare(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu)
{
	if (gpu->gpm == TAKT_GPM_UNKNOWN) {
		bool made = is_told(api, gpu) && api->gpm_alloc(&gpu->gpm_now) == NVML_SUCCESS &&
			    api->gpm_alloc(&gpu->gpm_before) == NVML_SUCCESS;

		gpu->gpm = made ? TAKT_GPM_EMPTY : TAKT_GPM_NONE;
	}
	return gpu->gpm != TAKT_GPM_NONE;
}

static bool is_share(double percent)
{
	return percent >= 0 && percent <= 100.5;
}

static void keep(const struct question *answer, struct takt_gpu_vitals *vitals)
{
	const struct nvml_gpm_metric *sent = &answer->metrics[PCIE_SENT];
	const struct nvml_gpm_metric *received = &answer->metrics[PCIE_RECEIVED];

	for (uint32_t part = 0; part < TAKT_ACTIVE_COUNT; part++) {
		const struct nvml_gpm_metric *metric = &answer->metrics[part];

		if (metric->ret != NVML_SUCCESS || !is_share(metric->value))
			continue;
		vitals->active_ppm[part] = (uint32_t)(metric->value * PPM_PER_PERCENT + 0.5);
		vitals->has |= TAKT_VITAL_ACTIVE << part;
	}
	if (sent->ret != NVML_SUCCESS || received->ret != NVML_SUCCESS || !(sent->value >= 0) ||
	    !(received->value >= 0))
		return;
	vitals->pcie_sent_bytes_per_s = (uint64_t)(sent->value * MIB);
	vitals->pcie_received_bytes_per_s = (uint64_t)(received->value * MIB);
	vitals->has |= TAKT_VITAL_PCIE_RATES;
}

static void compare(const struct takt_nvml_api *api, const struct takt_nvml_gpu *gpu,
		    struct takt_gpu_vitals *vitals)
{
	struct question question = {.head = {.version = NVML_GPM_VERSION,
					     .count = METRICS,
					     .sample1 = gpu->gpm_before,
					     .sample2 = gpu->gpm_now}};

	for (uint32_t part = 0; part < TAKT_ACTIVE_COUNT; part++)
		question.metrics[part].id = parts[part].metric;
	question.metrics[PCIE_SENT].id = NVML_GPM_METRIC_PCIE_SENT;
	question.metrics[PCIE_RECEIVED].id = NVML_GPM_METRIC_PCIE_RECEIVED;
	if (api->gpm_metrics(&question.head) == NVML_SUCCESS)
		keep(&question, vitals);
}

void takt_nvml_read_activity(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			     struct takt_gpu_vitals *vitals)
{
	struct nvml_gpm_sample *old;

	if (!prepare(api, gpu))
		return;
	old = gpu->gpm_before;
	gpu->gpm_before = gpu->gpm_now;
	gpu->gpm_now = old;
	if (api->gpm_sample(gpu->device, gpu->gpm_now) != NVML_SUCCESS) {
		gpu->gpm = TAKT_GPM_EMPTY;
		return;
	}
	if (gpu->gpm == TAKT_GPM_FULL)
		compare(api, gpu, vitals);
	gpu->gpm = TAKT_GPM_FULL;
}

void takt_nvml_end_activity(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu)
{
	if (gpu->gpm_now)
		(void)api->gpm_free(gpu->gpm_now);
	if (gpu->gpm_before)
		(void)api->gpm_free(gpu->gpm_before);
}
