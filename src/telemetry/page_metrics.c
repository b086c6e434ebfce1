/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own metrics of GPUs, one row each. Names carry base units (hertz, watts, celsius, bytes,
 * joules, ratio, seconds) as Prometheus asks.
 */
#include <inttypes.h>

#include "base/compiler.h"
#include "telemetry/page.h"

#define READING(member) offsetof(struct takt_gpu_reading, member)
#define FACT(member)	offsetof(struct takt_gpu_facts, member)

static const struct takt_page_metric metrics[] = {
	{"takt_gpu_sm_clock_hertz", "SM clock", false, TAKT_PAGE_READING, TAKT_HAS_SM_CLOCK,
	 TAKT_PAGE_U32, READING(sm_mhz), 6},
	{"takt_gpu_sm_clock_max_hertz", "Highest SM clock of the board", false, TAKT_PAGE_FACTS,
	 TAKT_FACT_SM_MAX, TAKT_PAGE_U32, FACT(sm_max_mhz), 6},
	{"takt_gpu_memory_clock_hertz", "Memory clock", false, TAKT_PAGE_READING,
	 TAKT_HAS_MEM_CLOCK, TAKT_PAGE_U32, READING(mem_mhz), 6},
	{"takt_gpu_power_watts", "Power draw as the board reports it", false, TAKT_PAGE_READING,
	 TAKT_HAS_POWER, TAKT_PAGE_U32, READING(power_mw), -3},
	{"takt_gpu_power_limit_watts", "Power limit that was asked for", false, TAKT_PAGE_READING,
	 TAKT_HAS_POWER_LIMIT, TAKT_PAGE_U32, READING(power_limit_mw), -3},
	{"takt_gpu_power_enforced_limit_watts", "Power limit in force", false, TAKT_PAGE_READING,
	 TAKT_HAS_POWER_ENFORCED, TAKT_PAGE_U32, READING(power_enforced_mw), -3},
	{"takt_gpu_power_default_limit_watts", "Power limit of the board as delivered", false,
	 TAKT_PAGE_FACTS, TAKT_FACT_POWER_LIMITS, TAKT_PAGE_U32, FACT(power_default_mw), -3},
	{"takt_gpu_energy_joules_total", "Energy since the driver was loaded", true,
	 TAKT_PAGE_READING, TAKT_HAS_ENERGY, TAKT_PAGE_U64, READING(energy_mj), -3},
	{"takt_gpu_temperature_celsius", "Temperature of the GPU", false, TAKT_PAGE_READING,
	 TAKT_HAS_TEMP, TAKT_PAGE_I32, READING(temp_c), 0},
	{"takt_gpu_slowdown_temperature_celsius", "Temperature at which the board slows down",
	 false, TAKT_PAGE_FACTS, TAKT_FACT_THROTTLE_TEMP, TAKT_PAGE_I32, FACT(slowdown_temp_c), 0},
	{"takt_gpu_utilization_ratio", "Share of time in which a kernel was resident", false,
	 TAKT_PAGE_READING, TAKT_HAS_GPU_UTIL, TAKT_PAGE_U32, READING(gpu_util_pct), -2},
	{"takt_gpu_memory_utilization_ratio", "Share of time in which memory was accessed", false,
	 TAKT_PAGE_READING, TAKT_HAS_MEM_UTIL, TAKT_PAGE_U32, READING(mem_util_pct), -2},
	{"takt_gpu_encoder_utilization_ratio", "Share of time of the video encoder", false,
	 TAKT_PAGE_READING, TAKT_HAS_ENC_DEC, TAKT_PAGE_U32, READING(enc_util_pct), -2},
	{"takt_gpu_decoder_utilization_ratio", "Share of time of the video decoder", false,
	 TAKT_PAGE_READING, TAKT_HAS_ENC_DEC, TAKT_PAGE_U32, READING(dec_util_pct), -2},
	{"takt_gpu_memory_bytes", "Memory of the board", false, TAKT_PAGE_FACTS, TAKT_FACT_MEMORY,
	 TAKT_PAGE_U64, FACT(memory_total_bytes), 0},
	{"takt_gpu_memory_used_bytes", "Memory in use", false, TAKT_PAGE_READING, TAKT_HAS_MEMORY,
	 TAKT_PAGE_U64, READING(mem_used_bytes), 0},
	{"takt_gpu_memory_free_bytes", "Memory that is free", false, TAKT_PAGE_READING,
	 TAKT_HAS_MEMORY, TAKT_PAGE_U64, READING(mem_free_bytes), 0},
	{"takt_gpu_memory_reserved_bytes", "Memory that the driver keeps", false, TAKT_PAGE_READING,
	 TAKT_HAS_RESERVED, TAKT_PAGE_U64, READING(mem_reserved_bytes), 0},
	{"takt_gpu_fan_ratio", "Fan speed as a share of its highest", false, TAKT_PAGE_READING,
	 TAKT_HAS_FAN, TAKT_PAGE_U32, READING(fan_pct), -2},
	{"takt_gpu_performance_state", "Performance state, 0 is the fastest", false,
	 TAKT_PAGE_READING, TAKT_HAS_PSTATE, TAKT_PAGE_U32, READING(pstate), 0},
	{"takt_gpu_pcie_link_generation", "PCIe generation of the link now", false,
	 TAKT_PAGE_READING, TAKT_HAS_PCIE, TAKT_PAGE_U32, READING(pcie_gen), 0},
	{"takt_gpu_pcie_link_width", "PCIe lanes of the link now", false, TAKT_PAGE_READING,
	 TAKT_HAS_PCIE, TAKT_PAGE_U32, READING(pcie_width), 0},
	{"takt_gpu_pcie_replays_total", "PCIe packets sent again", true, TAKT_PAGE_READING,
	 TAKT_HAS_PCIE_REPLAY, TAKT_PAGE_U64, READING(pcie_replay), 0},
	{"takt_gpu_processes", "Processes on the GPU", false, TAKT_PAGE_READING, TAKT_HAS_PROCS,
	 TAKT_PAGE_U32, READING(proc_count), 0},
};

static bool is_asleep(const struct takt_page_gpu *gpu)
{
	return gpu->reading && gpu->reading->asleep;
}

/* Of the last reading before it fell asleep, where it has. */
static void add_age(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
		    struct takt_str *ret)
{
	struct takt_mono at = !gpu->reading    ? (struct takt_mono){0}
			      : is_asleep(gpu) ? gpu->reading->awake_at
					       : gpu->reading->at;

	if (at.ns == 0)
		return;
	takt_page_add_series(gpu, "takt_gpu_reading_age_seconds", NULL, NULL, ret);
	takt_page_add_scaled(false, takt_mono_elapsed_ns(input->now, at) / TAKT_NS_PER_MS, -3, ret);
	takt_str_add(ret, "\n");
}

static void add_state(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_page_add_head(input, "takt_gpu_up",
			   "1 if the GPU answers in time; not there while it is asleep", false,
			   ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		if (is_asleep(&input->gpus[g]))
			continue;
		takt_page_add_series(&input->gpus[g], "takt_gpu_up", NULL, NULL, ret);
		takt_str_addf(ret, "%d\n", takt_page_is_fresh(&input->gpus[g]));
	}
	takt_page_add_head(input, "takt_gpu_lost", "1 if the GPU fell off the bus or needs a reset",
			   false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		takt_page_add_series(&input->gpus[g], "takt_gpu_lost", NULL, NULL, ret);
		takt_str_addf(ret, "%d\n", input->gpus[g].reading && input->gpus[g].reading->lost);
	}
	takt_page_add_head(input, "takt_gpu_asleep",
			   "1 if the GPU is suspended to save power, and left so", false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		takt_page_add_series(&input->gpus[g], "takt_gpu_asleep", NULL, NULL, ret);
		takt_str_addf(ret, "%d\n", is_asleep(&input->gpus[g]));
	}
	takt_page_add_head(input, "takt_gpu_readings_total",
			   "Times that the GPU was looked at since takt started", true, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		takt_page_add_series(&input->gpus[g], "takt_gpu_readings_total", NULL, NULL, ret);
		takt_str_addf(ret, "%" PRIu64 "\n",
			      input->gpus[g].reading ? input->gpus[g].reading->seq : 0);
	}
	takt_page_add_head(input, "takt_gpu_reading_age_seconds", "Age of the newest reading",
			   false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++)
		add_age(input, &input->gpus[g], ret);
}

static void add_throttle(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_page_add_head(input, "takt_gpu_throttle",
			   "1 for each reason that holds the clock back now", false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!takt_page_is_fresh(gpu) || !(gpu->reading->has & TAKT_HAS_THROTTLE))
			continue;
		for (uint64_t bit = 1; takt_throttle_name(bit); bit <<= 1) {
			takt_page_add_series(gpu, "takt_gpu_throttle", "reason",
					     takt_throttle_name(bit), ret);
			takt_str_addf(ret, "%d\n", (gpu->reading->throttle & bit) != 0);
		}
	}
}

/* One series a GPU whose label holds the word; GPUs without one have none. */
static void add_word(const struct takt_page_input *input, const char *name, const char *help,
		     const char *label, size_t at, struct takt_str *ret)
{
	takt_page_add_head(input, name, help, false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];
		const char *word = (const char *)gpu->label + at;

		if (!gpu->label->set || word[0] == '\0')
			continue;
		takt_page_add_series(gpu, name, label, word, ret);
		takt_str_add(ret, "1\n");
	}
}

static void add_set(const struct takt_page_input *input, const char *name, const char *help,
		    size_t at, int scale, struct takt_str *ret)
{
	takt_page_add_head(input, name, help, false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];
		uint32_t value = *(const uint32_t *)(const void *)((const char *)gpu->label + at);

		if (!gpu->label->set || value == 0)
			continue;
		takt_page_add_series(gpu, name, NULL, NULL, ret);
		takt_page_add_scaled(false, value, scale, ret);
		takt_str_add(ret, "\n");
	}
}

void takt_page_add_gpus(const struct takt_page_input *input, struct takt_str *ret)
{
	if (input->gpu_count == 0)
		return;
	add_state(input, ret);
	takt_page_add_metrics(input, metrics, TAKT_ARRAY_LEN(metrics), false, ret);
	add_throttle(input, ret);
	takt_page_add_vitals(input, ret);
	add_word(input, "takt_gpu_state", "1 for what the GPU is to the scheduler", "state",
		 offsetof(struct takt_page_label, state), ret);
	add_word(input, "takt_gpu_health", "1 for what the rules of health hold the GPU to be",
		 "state", offsetof(struct takt_page_label, health), ret);
	add_word(input, "takt_gpu_clock_state", "1 for what takt has done to the GPU's clocks",
		 "state", offsetof(struct takt_page_label, actuate), ret);
	takt_page_add_jobs(input, ret);
	add_set(input, "takt_gpu_lease_min_hertz", "Lower end of the clock range that takt set",
		offsetof(struct takt_page_label, lease_min_mhz), 6, ret);
	add_set(input, "takt_gpu_lease_max_hertz", "Upper end of the clock range that takt set",
		offsetof(struct takt_page_label, lease_max_mhz), 6, ret);
	add_set(input, "takt_gpu_power_cap_watts", "Facility's cap on the power limit",
		offsetof(struct takt_page_label, power_cap_mw), -3, ret);
}
