/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPM, the performance metrics of Hopper and newer boards: two samples are taken, and a metric is
 * what happened between them. A sample is a copy of the counters that go with the other readings.
 *
 * Answered are utilisation, bandwidth of memory and links, and the engines that no workload uses.
 * Tensor cores work as the workload says. What else the SMs computed with (FP64, occupancy, ...) no
 * workload of the twin says; such a metric has the code "not supported" rather than a made-up
 * value.
 */
#include "base/mem.h"
#include "nvml_entry.h"
#include "twin_counters.h"

struct nvml_gpm_sample {
	bool taken, of_instance;
	uint32_t gpu, start; /* of the instance */
	uint64_t at_ns;
	struct twin_counters counters;
	/* what the instance has of the board, or all of it */
	uint32_t part_permille, memory_permille;
	const struct twin_mig_profile *engines; /* NULL: a board without profiles */
};

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
	struct nvml_gpm_sample *made;

	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!sample)
		return NVML_ERROR_INVALID_ARGUMENT;
	made = takt_zalloc(sizeof(*made));
	if (!made)
		return NVML_ERROR_MEMORY;
	*sample = made;
	return NVML_SUCCESS;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!sample)
		return NVML_ERROR_INVALID_ARGUMENT;
	takt_free(sample);
	return NVML_SUCCESS;
}

static bool has_gpm(const struct twin_call *call)
{
	return call->board->arch >= NVML_ARCH_HOPPER;
}

/* The profile that is the whole board: it has the most of everything. */
static const struct twin_mig_profile *whole_of(const struct twin_board *board)
{
	const struct twin_mig_profile *most = NULL;

	for (uint32_t i = 0; i < board->mig_count; i++) {
		if (!most || board->mig[i].multiprocessors > most->multiprocessors)
			most = &board->mig[i];
	}
	return most;
}

int nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, sample, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!has_gpm(&call))
		return NVML_ERROR_NOT_SUPPORTED;
	*sample = (struct nvml_gpm_sample){
		.taken = true,
		.gpu = call.index,
		.at_ns = gpu.at_ns,
		.counters = gpu.counters,
		.part_permille = 1000,
		.memory_permille = 1000,
		.engines = whole_of(call.board),
	};
	return NVML_SUCCESS;
}

static bool find_start(const struct twin_call *call, const struct twin_gpu *gpu, uint32_t id,
		       uint32_t *ret)
{
	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		if (!gpu->instances[i].used ||
		    twin_mig_id(twin_mig_profile(gpu, call->board, i), i) != id)
			continue;
		*ret = i;
		return true;
	}
	return false;
}

int nvmlGpmMigSampleGet(struct nvml_device *device, uint32_t instance_id,
			struct nvml_gpm_sample *sample)
{
	const struct twin_mig_profile *profile, *whole;
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t start;
	int rc = twin_enter_read(device, sample, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	whole = whole_of(call.board);
	if (!has_gpm(&call) || !whole || !gpu.mig_mode)
		return NVML_ERROR_NOT_SUPPORTED;
	if (!find_start(&call, &gpu, instance_id, &start))
		return NVML_ERROR_INVALID_ARGUMENT;
	profile = twin_mig_profile(&gpu, call.board, start);
	*sample = (struct nvml_gpm_sample){
		.taken = true,
		.of_instance = true,
		.gpu = call.index,
		.start = start,
		.at_ns = gpu.at_ns,
		.counters = gpu.instance_counters[start],
		.part_permille = profile->slices * 1000 / whole->slices,
		.memory_permille = profile->size * 1000 / whole->size,
		.engines = profile,
	};
	return NVML_SUCCESS;
}

/* What happened between two samples. */
struct span {
	const struct twin_machine *machine;
	const struct nvml_gpm_sample *to;
	struct twin_counters spent;
	uint64_t ns;
};

static bool is_span(const struct nvml_gpm_sample *from, const struct nvml_gpm_sample *to)
{
	return from && to && from->taken && to->taken && from->gpu == to->gpu &&
	       from->of_instance == to->of_instance && from->start == to->start &&
	       from->at_ns < to->at_ns && from->counters.busy <= to->counters.busy;
}

static double percent(const struct span *span, uint64_t spent, uint32_t part_permille)
{
	double value = (double)spent / (double)span->ns / part_permille * 100;

	return value < 100 ? value : 100;
}

/* MiB a second over one link, each way. */
static double link_rate(const struct span *span)
{
	double share = (double)span->spent.link / (double)span->ns / 1000;

	return share * span->machine->board.nvlink_mbps * 1e6 / (1 << 20);
}

static double bus_rate(const struct span *span, bool sent)
{
	uint32_t busy_permille = (uint32_t)(span->spent.busy / span->ns);

	return twin_pcie_kib_per_s(sent, busy_permille) / 1024.0;
}

static int of_links(const struct span *span, uint32_t id, double *ret)
{
	uint32_t links = span->machine->gpus[span->to->gpu].link_count;
	uint32_t link = (id - NVML_GPM_METRIC_NVLINK_L0_RECEIVED) / 2;

	if (span->to->of_instance || links == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (id < NVML_GPM_METRIC_NVLINK_L0_RECEIVED)
		*ret = link_rate(span) * links;
	else if (link < links)
		*ret = link_rate(span);
	else
		return NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* An engine is there and idle, or not there. */
static int of_engine(uint32_t number, uint32_t there, double *ret)
{
	if (number >= there)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = 0;
	return NVML_SUCCESS;
}

static int of_engines(const struct span *span, uint32_t id, double *ret)
{
	const struct twin_mig_profile *engines = span->to->engines;

	if (!engines)
		return NVML_ERROR_NOT_SUPPORTED;
	if (id < NVML_GPM_METRIC_JPEG_0)
		return of_engine(id - NVML_GPM_METRIC_DECODER_0, engines->decoders, ret);
	if (id < NVML_GPM_METRIC_OFA_0)
		return of_engine(id - NVML_GPM_METRIC_JPEG_0, engines->jpegs, ret);
	return of_engine(id - NVML_GPM_METRIC_OFA_0, engines->ofas, ret);
}

static int measure(const struct span *span, uint32_t id, double *ret)
{
	if (id >= NVML_GPM_METRIC_NVLINK_RECEIVED && id <= NVML_GPM_METRIC_NVLINK_L17_SENT)
		return of_links(span, id, ret);
	if (id >= NVML_GPM_METRIC_DECODER_0 && id < NVML_GPM_METRIC_NVLINK_RECEIVED)
		return of_engines(span, id, ret);
	switch (id) {
	case NVML_GPM_METRIC_GRAPHICS_UTIL:
	case NVML_GPM_METRIC_SM_UTIL: /* a kernel of the twin fills the SMs */
		*ret = percent(span, span->spent.busy, span->to->part_permille);
		return NVML_SUCCESS;
	case NVML_GPM_METRIC_DRAM_UTIL:
		*ret = percent(span, span->spent.memory, span->to->memory_permille);
		return NVML_SUCCESS;
	case NVML_GPM_METRIC_ANY_TENSOR_UTIL:
		*ret = percent(span, span->spent.tensor, span->to->part_permille);
		return NVML_SUCCESS;
	case NVML_GPM_METRIC_PCIE_SENT:
	case NVML_GPM_METRIC_PCIE_RECEIVED:
		if (span->to->of_instance)
			return NVML_ERROR_NOT_SUPPORTED;
		*ret = bus_rate(span, id == NVML_GPM_METRIC_PCIE_SENT);
		return NVML_SUCCESS;
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

static struct nvml_gpm_metric_info info_of(uint32_t id)
{
	if (id == NVML_GPM_METRIC_PCIE_SENT || id == NVML_GPM_METRIC_PCIE_RECEIVED)
		return (struct nvml_gpm_metric_info){"pcie", "PCIe traffic", "MiB/s"};
	if (id >= NVML_GPM_METRIC_NVLINK_RECEIVED)
		return (struct nvml_gpm_metric_info){"nvlink", "NVLink traffic", "MiB/s"};
	return (struct nvml_gpm_metric_info){"util", "Utilization", "%"};
}

static void tell(const struct span *span, struct nvml_gpm_metric *metric)
{
	double value = 0;
	int rc = metric->id == 0 ? NVML_ERROR_INVALID_ARGUMENT : measure(span, metric->id, &value);

	metric->ret = (uint32_t)rc;
	if (rc != NVML_SUCCESS)
		return;
	metric->value = value;
	metric->info = info_of(metric->id);
}

/* Only `count` metrics are looked at: how long the array is depends on the caller's header. */
int nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *get)
{
	const struct twin_map *map = twin_machine_map();
	struct nvml_gpm_metric *metrics;
	struct span span;

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!get)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (get->version != NVML_GPM_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (get->count == 0 || !is_span(get->sample1, get->sample2))
		return NVML_ERROR_INVALID_ARGUMENT;
	span = (struct span){
		.machine = &twin_map_file(map)->machine,
		.to = get->sample2,
		.spent = twin_counters_since(&get->sample2->counters, &get->sample1->counters),
		.ns = get->sample2->at_ns - get->sample1->at_ns,
	};
	metrics = (struct nvml_gpm_metric *)(void *)(get + 1);
	for (uint32_t i = 0; i < get->count; i++)
		tell(&span, &metrics[i]);
	return NVML_SUCCESS;
}

int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, support, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (support->version != NVML_GPM_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	support->supported = has_gpm(&call);
	return NVML_SUCCESS;
}

int nvmlGpmQueryIfStreamingEnabled(struct nvml_device *device, uint32_t *state)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, state, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!has_gpm(&call))
		return NVML_ERROR_NOT_SUPPORTED;
	*state = gpu.streaming;
	return NVML_SUCCESS;
}

static int set_streaming(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t state = *(const uint32_t *)arg;

	if (board->arch < NVML_ARCH_HOPPER)
		return NVML_ERROR_NOT_SUPPORTED;
	if (state > NVML_FEATURE_ENABLED)
		return NVML_ERROR_INVALID_ARGUMENT;
	gpu->streaming = state;
	return NVML_SUCCESS;
}

int nvmlGpmSetStreamingEnabled(struct nvml_device *device, uint32_t state)
{
	return twin_set(device, set_streaming, &state, false);
}
