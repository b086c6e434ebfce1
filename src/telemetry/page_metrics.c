/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of GPUs, one row each. Names carry base units (hertz, watts, celsius, bytes, joules,
 * ratio, seconds) as Prometheus asks; the integers of a reading become them by a power of ten, in
 * text, so that no digit is lost. What a GPU does not tell, and everything of a GPU whose reading
 * is stale, is left out: an old value shown as a present one would be made up.
 */
#include <inttypes.h>

#include "base/compiler.h"
#include "telemetry/page.h"

enum source {
	FROM_READING,
	FROM_FACTS,
};

enum kind {
	KIND_U32,
	KIND_I32,
	KIND_U64,
};

struct metric {
	const char *name;
	const char *help;
	bool counter;
	enum source source;
	uint32_t has; /* enum takt_gpu_has or takt_gpu_fact */
	enum kind kind;
	size_t at;
	int exponent; /* of ten, from the field's unit to the metric's: -3, -2, 0 or 6 */
};

#define READING(member) offsetof(struct takt_gpu_reading, member)
#define FACT(member)	offsetof(struct takt_gpu_facts, member)

static const struct metric metrics[] = {
	{"takt_gpu_sm_clock_hertz", "SM clock", false, FROM_READING, TAKT_HAS_SM_CLOCK, KIND_U32,
	 READING(sm_mhz), 6},
	{"takt_gpu_sm_clock_max_hertz", "Highest SM clock of the board", false, FROM_FACTS,
	 TAKT_FACT_SM_MAX, KIND_U32, FACT(sm_max_mhz), 6},
	{"takt_gpu_memory_clock_hertz", "Memory clock", false, FROM_READING, TAKT_HAS_MEM_CLOCK,
	 KIND_U32, READING(mem_mhz), 6},
	{"takt_gpu_power_watts", "Power draw as the board reports it", false, FROM_READING,
	 TAKT_HAS_POWER, KIND_U32, READING(power_mw), -3},
	{"takt_gpu_power_limit_watts", "Power limit that was asked for", false, FROM_READING,
	 TAKT_HAS_POWER_LIMIT, KIND_U32, READING(power_limit_mw), -3},
	{"takt_gpu_power_enforced_limit_watts", "Power limit in force", false, FROM_READING,
	 TAKT_HAS_POWER_ENFORCED, KIND_U32, READING(power_enforced_mw), -3},
	{"takt_gpu_power_default_limit_watts", "Power limit of the board as delivered", false,
	 FROM_FACTS, TAKT_FACT_POWER_LIMITS, KIND_U32, FACT(power_default_mw), -3},
	{"takt_gpu_energy_joules_total", "Energy since the driver was loaded", true, FROM_READING,
	 TAKT_HAS_ENERGY, KIND_U64, READING(energy_mj), -3},
	{"takt_gpu_temperature_celsius", "Temperature of the GPU", false, FROM_READING,
	 TAKT_HAS_TEMP, KIND_I32, READING(temp_c), 0},
	{"takt_gpu_slowdown_temperature_celsius", "Temperature at which the board slows down",
	 false, FROM_FACTS, TAKT_FACT_THROTTLE_TEMP, KIND_I32, FACT(slowdown_temp_c), 0},
	{"takt_gpu_utilization_ratio", "Share of time in which a kernel was resident", false,
	 FROM_READING, TAKT_HAS_GPU_UTIL, KIND_U32, READING(gpu_util_pct), -2},
	{"takt_gpu_memory_utilization_ratio", "Share of time in which memory was accessed", false,
	 FROM_READING, TAKT_HAS_MEM_UTIL, KIND_U32, READING(mem_util_pct), -2},
	{"takt_gpu_encoder_utilization_ratio", "Share of time of the video encoder", false,
	 FROM_READING, TAKT_HAS_ENC_DEC, KIND_U32, READING(enc_util_pct), -2},
	{"takt_gpu_decoder_utilization_ratio", "Share of time of the video decoder", false,
	 FROM_READING, TAKT_HAS_ENC_DEC, KIND_U32, READING(dec_util_pct), -2},
	{"takt_gpu_memory_bytes", "Memory of the board", false, FROM_FACTS, TAKT_FACT_MEMORY,
	 KIND_U64, FACT(memory_total_bytes), 0},
	{"takt_gpu_memory_used_bytes", "Memory in use", false, FROM_READING, TAKT_HAS_MEMORY,
	 KIND_U64, READING(mem_used_bytes), 0},
	{"takt_gpu_memory_free_bytes", "Memory that is free", false, FROM_READING, TAKT_HAS_MEMORY,
	 KIND_U64, READING(mem_free_bytes), 0},
	{"takt_gpu_memory_reserved_bytes", "Memory that the driver keeps", false, FROM_READING,
	 TAKT_HAS_RESERVED, KIND_U64, READING(mem_reserved_bytes), 0},
	{"takt_gpu_fan_ratio", "Fan speed as a share of its highest", false, FROM_READING,
	 TAKT_HAS_FAN, KIND_U32, READING(fan_pct), -2},
	{"takt_gpu_performance_state", "Performance state, 0 is the fastest", false, FROM_READING,
	 TAKT_HAS_PSTATE, KIND_U32, READING(pstate), 0},
	{"takt_gpu_pcie_link_generation", "PCIe generation of the link now", false, FROM_READING,
	 TAKT_HAS_PCIE, KIND_U32, READING(pcie_gen), 0},
	{"takt_gpu_pcie_link_width", "PCIe lanes of the link now", false, FROM_READING,
	 TAKT_HAS_PCIE, KIND_U32, READING(pcie_width), 0},
	{"takt_gpu_pcie_replays_total", "PCIe packets sent again", true, FROM_READING,
	 TAKT_HAS_PCIE_REPLAY, KIND_U64, READING(pcie_replay), 0},
	{"takt_gpu_processes", "Processes on the GPU", false, FROM_READING, TAKT_HAS_PROCS,
	 KIND_U32, READING(proc_count), 0},
};

static bool is_fresh(const struct takt_page_gpu *gpu)
{
	return gpu->reading && !gpu->reading->stale && !gpu->reading->lost;
}

static void add_label(const char *name, const char *value, struct takt_str *ret)
{
	takt_str_addf(ret, ",%s=\"", name);
	takt_page_add_label_value(value, ret);
	takt_str_add(ret, "\"");
}

/* "gpu="0",uuid="..."" and so on, without braces. */
static void add_gpu_labels(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
			   struct takt_str *ret)
{
	const struct takt_gpu_facts *facts = gpu->facts;

	takt_str_addf(ret, "gpu=\"%" PRIu32 "\"", gpu->index);
	if (facts->has & TAKT_FACT_UUID)
		add_label("uuid", facts->uuid, ret);
	if (facts->has & TAKT_FACT_NAME)
		add_label("model", facts->name, ret);
	if (input->simulated)
		add_label("simulated", "true", ret);
}

/* "takt_x{gpu="0",...,extra="value"} " */
static void add_series(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
		       const char *name, const char *extra, const char *value, struct takt_str *ret)
{
	takt_str_addf(ret, "%s{", name);
	add_gpu_labels(input, gpu, ret);
	if (extra)
		add_label(extra, value, ret);
	takt_str_add(ret, "} ");
}

/* value * 10^exponent, digit by digit. */
static void add_scaled(bool negative, uint64_t value, int exponent, struct takt_str *ret)
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

static void add_value(const struct metric *metric, const void *object, struct takt_str *ret)
{
	const void *at = (const char *)object + metric->at;
	int64_t number;

	switch (metric->kind) {
	case KIND_U32:
		add_scaled(false, *(const uint32_t *)at, metric->exponent, ret);
		break;
	case KIND_I32:
		number = *(const int32_t *)at;
		add_scaled(number < 0, (uint64_t)(number < 0 ? -number : number), metric->exponent,
			   ret);
		break;
	case KIND_U64:
		add_scaled(false, *(const uint64_t *)at, metric->exponent, ret);
		break;
	}
	takt_str_add(ret, "\n");
}

static bool has_value(const struct metric *metric, const struct takt_page_gpu *gpu)
{
	if (metric->source == FROM_FACTS)
		return gpu->facts->has & metric->has;
	return is_fresh(gpu) && (gpu->reading->has & metric->has);
}

/* A metric that no GPU has does not appear at all. */
static bool anyone_has(const struct metric *metric, const struct takt_page_input *input)
{
	for (uint32_t g = 0; g < input->gpu_count; g++)
		if (has_value(metric, &input->gpus[g]))
			return true;
	return false;
}

static void add_metric(const struct metric *metric, const struct takt_page_input *input,
		       struct takt_str *ret)
{
	if (!anyone_has(metric, input))
		return;
	takt_page_add_head(metric->name, metric->help, metric->counter ? "counter" : "gauge", ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!has_value(metric, gpu))
			continue;
		add_series(input, gpu, metric->name, NULL, NULL, ret);
		add_value(metric,
			  metric->source == FROM_FACTS ? (const void *)gpu->facts
						       : (const void *)gpu->reading,
			  ret);
	}
}

static void add_state(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_page_add_head("takt_gpu_up", "1 if the GPU answers in time", "gauge", ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		add_series(input, &input->gpus[g], "takt_gpu_up", NULL, NULL, ret);
		takt_str_addf(ret, "%d\n", is_fresh(&input->gpus[g]));
	}
	takt_page_add_head("takt_gpu_lost", "1 if the GPU fell off the bus or needs a reset",
			   "gauge", ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		add_series(input, &input->gpus[g], "takt_gpu_lost", NULL, NULL, ret);
		takt_str_addf(ret, "%d\n", input->gpus[g].reading && input->gpus[g].reading->lost);
	}
	takt_page_add_head("takt_gpu_reading_age_seconds", "Age of the newest reading", "gauge",
			   ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!gpu->reading)
			continue;
		add_series(input, gpu, "takt_gpu_reading_age_seconds", NULL, NULL, ret);
		add_scaled(false,
			   takt_mono_elapsed_ns(input->now, gpu->reading->at) / TAKT_NS_PER_MS, -3,
			   ret);
		takt_str_add(ret, "\n");
	}
}

static void add_throttle(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_page_add_head("takt_gpu_throttle", "1 for each reason that holds the clock back now",
			   "gauge", ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!is_fresh(gpu) || !(gpu->reading->has & TAKT_HAS_THROTTLE))
			continue;
		for (uint64_t bit = 1; takt_throttle_name(bit); bit <<= 1) {
			add_series(input, gpu, "takt_gpu_throttle", "reason",
				   takt_throttle_name(bit), ret);
			takt_str_addf(ret, "%d\n", (gpu->reading->throttle & bit) != 0);
		}
	}
}

/* One series a GPU whose label holds the word; GPUs without one have none. */
static void add_word(const struct takt_page_input *input, const char *name, const char *help,
		     const char *label, size_t at, struct takt_str *ret)
{
	takt_page_add_head(name, help, "gauge", ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];
		const char *word = (const char *)gpu->label + at;

		if (!gpu->label->set || word[0] == '\0')
			continue;
		add_series(input, gpu, name, label, word, ret);
		takt_str_add(ret, "1\n");
	}
}

static void add_jobs(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_page_add_head("takt_gpu_job", "1 for the job that holds the GPU", "gauge", ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!gpu->label->set || gpu->label->job_id == 0)
			continue;
		takt_str_add(ret, "takt_gpu_job{");
		add_gpu_labels(input, gpu, ret);
		takt_str_addf(ret, ",job=\"%" PRIu64 "\"} 1\n", gpu->label->job_id);
	}
}

static void add_lease(const struct takt_page_input *input, const char *name, const char *help,
		      size_t at, struct takt_str *ret)
{
	takt_page_add_head(name, help, "gauge", ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];
		uint32_t mhz = *(const uint32_t *)(const void *)((const char *)gpu->label + at);

		if (!gpu->label->set || mhz == 0)
			continue;
		add_series(input, gpu, name, NULL, NULL, ret);
		add_scaled(false, mhz, 6, ret);
		takt_str_add(ret, "\n");
	}
}

void takt_page_add_gpus(const struct takt_page_input *input, struct takt_str *ret)
{
	if (input->gpu_count == 0)
		return;
	add_state(input, ret);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(metrics); i++)
		add_metric(&metrics[i], input, ret);
	add_throttle(input, ret);
	add_word(input, "takt_gpu_state", "1 for what the GPU is to the scheduler", "state",
		 offsetof(struct takt_page_label, state), ret);
	add_word(input, "takt_gpu_clock_state", "1 for what takt has done to the GPU's clocks",
		 "state", offsetof(struct takt_page_label, actuate), ret);
	add_jobs(input, ret);
	add_lease(input, "takt_gpu_lease_min_hertz", "Lower end of the clock range that takt set",
		  offsetof(struct takt_page_label, lease_min_mhz), ret);
	add_lease(input, "takt_gpu_lease_max_hertz", "Upper end of the clock range that takt set",
		  offsetof(struct takt_page_label, lease_max_mhz), ret);
}
