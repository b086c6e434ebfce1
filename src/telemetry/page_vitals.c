/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of vitals (device/vitals.h), one row each, and of what takt counts itself. */
#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "telemetry/page.h"

#define VITAL(member) offsetof(struct takt_gpu_vitals, member)

static const struct takt_page_metric metrics[] = {
	{"takt_gpu_memory_temperature_celsius", "Temperature of the memory", false,
	 TAKT_PAGE_VITALS, TAKT_VITAL_MEM_TEMP, TAKT_PAGE_I32, VITAL(mem_temp_c), 0},
	{"takt_gpu_temperature_margin_celsius",
	 "How much hotter the GPU may become before it is held back", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_MARGIN, TAKT_PAGE_I32, VITAL(margin_c), 0},
	{"takt_gpu_power_average_watts", "Power draw, averaged by the board", false,
	 TAKT_PAGE_VITALS, TAKT_VITAL_POWER_AVERAGE, TAKT_PAGE_U32, VITAL(power_average_mw), -3},
	{"takt_gpu_memory_errors_total", "Memory errors since the driver was loaded", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_ECC, TAKT_PAGE_U64, VITAL(ecc_corrected), 0, "kind",
	 "corrected"},
	{"takt_gpu_memory_errors_total", "Memory errors since the driver was loaded", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_ECC, TAKT_PAGE_U64, VITAL(ecc_uncorrected), 0, "kind",
	 "uncorrected"},
	{"takt_gpu_memory_errors_ever_total", "Memory errors in the life of the board", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_ECC_EVER, TAKT_PAGE_U64, VITAL(ecc_ever_corrected), 0, "kind",
	 "corrected"},
	{"takt_gpu_memory_errors_ever_total", "Memory errors in the life of the board", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_ECC_EVER, TAKT_PAGE_U64, VITAL(ecc_ever_uncorrected), 0,
	 "kind", "uncorrected"},
	{"takt_gpu_remapped_rows_total",
	 "Rows of memory replaced after such errors, in the life of the board", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_ROWS, TAKT_PAGE_U32, VITAL(rows_corrected), 0, "kind",
	 "corrected"},
	{"takt_gpu_remapped_rows_total",
	 "Rows of memory replaced after such errors, in the life of the board", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_ROWS, TAKT_PAGE_U32, VITAL(rows_uncorrected), 0, "kind",
	 "uncorrected"},
	{"takt_gpu_row_remap_pending", "1 if a row of memory waits for a reset to be replaced",
	 false, TAKT_PAGE_VITALS, TAKT_VITAL_ROWS, TAKT_PAGE_BOOL, VITAL(row_pending), 0},
	{"takt_gpu_row_remap_failed", "1 if a row of memory could not be replaced", false,
	 TAKT_PAGE_VITALS, TAKT_VITAL_ROWS, TAKT_PAGE_BOOL, VITAL(row_failed), 0},
	{"takt_gpu_retired_pages_total",
	 "Pages of memory retired after such errors, in the life of the board", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_PAGES, TAKT_PAGE_U32, VITAL(pages_single), 0, "kind",
	 "single_bit"},
	{"takt_gpu_retired_pages_total",
	 "Pages of memory retired after such errors, in the life of the board", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_PAGES, TAKT_PAGE_U32, VITAL(pages_double), 0, "kind",
	 "double_bit"},
	{"takt_gpu_page_retirement_pending",
	 "1 if a page of memory waits for a reset to be retired", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_PAGES, TAKT_PAGE_BOOL, VITAL(page_pending), 0},
	{"takt_gpu_sram_threshold_exceeded", "1 if the board counts too many errors in its SRAM",
	 false, TAKT_PAGE_VITALS, TAKT_VITAL_SRAM, TAKT_PAGE_BOOL, VITAL(sram_threshold), 0},
	{"takt_gpu_recovery_action",
	 "What the driver recommends: 0 nothing, 1 reset, 2 reboot, 3 drain peers, 4 drain and "
	 "reset",
	 false, TAKT_PAGE_VITALS, TAKT_VITAL_RECOVERY, TAKT_PAGE_U32, VITAL(recovery), 0},
	{"takt_gpu_nvlinks", "NVLinks of the GPU", false, TAKT_PAGE_VITALS, TAKT_VITAL_NVLINKS,
	 TAKT_PAGE_U32, VITAL(nvlinks), 0},
	{"takt_gpu_nvlinks_active", "NVLinks that are up", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_NVLINKS, TAKT_PAGE_U32, VITAL(nvlinks_up), 0},
	{"takt_gpu_nvlink_errors_total", "Errors on the NVLinks of the GPU, all links together",
	 true, TAKT_PAGE_VITALS, TAKT_VITAL_NVLINK_CRC, TAKT_PAGE_U64, VITAL(nvlink_crc_flits), 0,
	 "kind", "crc_flit"},
	{"takt_gpu_nvlink_errors_total", "Errors on the NVLinks of the GPU, all links together",
	 true, TAKT_PAGE_VITALS, TAKT_VITAL_NVLINK_CRC, TAKT_PAGE_U64, VITAL(nvlink_crc_data), 0,
	 "kind", "crc_data"},
	{"takt_gpu_nvlink_errors_total", "Errors on the NVLinks of the GPU, all links together",
	 true, TAKT_PAGE_VITALS, TAKT_VITAL_NVLINK_ERRORS, TAKT_PAGE_U64, VITAL(nvlink_replays), 0,
	 "kind", "replay"},
	{"takt_gpu_nvlink_errors_total", "Errors on the NVLinks of the GPU, all links together",
	 true, TAKT_PAGE_VITALS, TAKT_VITAL_NVLINK_ERRORS, TAKT_PAGE_U64, VITAL(nvlink_recoveries),
	 0, "kind", "recovery"},
	{"takt_gpu_nvlink_sent_bytes_total", "Data sent over all NVLinks of the GPU", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_NVLINK_BYTES, TAKT_PAGE_U64, VITAL(nvlink_sent_bytes), 0},
	{"takt_gpu_nvlink_received_bytes_total", "Data received over all NVLinks of the GPU", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_NVLINK_BYTES, TAKT_PAGE_U64, VITAL(nvlink_received_bytes), 0},
	{"takt_gpu_held_seconds_total",
	 "Time in which the policy held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_POLICIES, TAKT_PAGE_U64, VITAL(held_ns[TAKT_HELD_POWER]),
	 -9, "policy", "power"},
	{"takt_gpu_held_seconds_total",
	 "Time in which the policy held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_POLICIES, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_THERMAL]), -9, "policy", "thermal"},
	{"takt_gpu_held_seconds_total",
	 "Time in which the policy held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_POLICIES, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_SYNC_BOOST]), -9, "policy", "sync_boost"},
	{"takt_gpu_held_seconds_total",
	 "Time in which the policy held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_POLICIES, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_BOARD_LIMIT]), -9, "policy", "board_limit"},
	{"takt_gpu_held_seconds_total",
	 "Time in which the policy held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_POLICIES, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_LOW_UTIL]), -9, "policy", "low_utilization"},
	{"takt_gpu_held_seconds_total",
	 "Time in which the policy held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_POLICIES, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_RELIABILITY]), -9, "policy", "reliability"},
	{"takt_gpu_held_reason_seconds_total",
	 "Time in which the reason held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_REASONS, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_SW_THERMAL]), -9, "reason", "sw_thermal_slowdown"},
	{"takt_gpu_held_reason_seconds_total",
	 "Time in which the reason held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_REASONS, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_HW_THERMAL]), -9, "reason", "hw_thermal_slowdown"},
	{"takt_gpu_held_reason_seconds_total",
	 "Time in which the reason held the clock back, as the driver counts it", true,
	 TAKT_PAGE_VITALS, TAKT_VITAL_HELD_REASONS, TAKT_PAGE_U64,
	 VITAL(held_ns[TAKT_HELD_POWER_BRAKE]), -9, "reason", "hw_power_brake_slowdown"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_GRAPHICS, TAKT_PAGE_U32,
	 VITAL(active_ppm[TAKT_ACTIVE_GRAPHICS]), -6, "part", "graphics"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_SM, TAKT_PAGE_U32, VITAL(active_ppm[TAKT_ACTIVE_SM]), -6,
	 "part", "sm"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_OCCUPANCY, TAKT_PAGE_U32,
	 VITAL(active_ppm[TAKT_ACTIVE_OCCUPANCY]), -6, "part", "occupancy"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_TENSOR, TAKT_PAGE_U32,
	 VITAL(active_ppm[TAKT_ACTIVE_TENSOR]), -6, "part", "tensor"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_DRAM, TAKT_PAGE_U32, VITAL(active_ppm[TAKT_ACTIVE_DRAM]),
	 -6, "part", "dram"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_FP64, TAKT_PAGE_U32, VITAL(active_ppm[TAKT_ACTIVE_FP64]),
	 -6, "part", "fp64"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_FP32, TAKT_PAGE_U32, VITAL(active_ppm[TAKT_ACTIVE_FP32]),
	 -6, "part", "fp32"},
	{"takt_gpu_activity_ratio",
	 "Share of what is possible that parts of the GPU were busy with", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_ACTIVE << TAKT_ACTIVE_FP16, TAKT_PAGE_U32, VITAL(active_ppm[TAKT_ACTIVE_FP16]),
	 -6, "part", "fp16"},
	{"takt_gpu_pcie_sent_bytes_per_second", "Traffic to the host", false, TAKT_PAGE_VITALS,
	 TAKT_VITAL_PCIE_RATES, TAKT_PAGE_U64, VITAL(pcie_sent_bytes_per_s), 0},
	{"takt_gpu_pcie_received_bytes_per_second", "Traffic from the host", false,
	 TAKT_PAGE_VITALS, TAKT_VITAL_PCIE_RATES, TAKT_PAGE_U64, VITAL(pcie_received_bytes_per_s),
	 0},
	{"takt_gpu_temperature_max_celsius", "Highest temperature that the GPU is to work at",
	 false, TAKT_PAGE_FACTS, TAKT_FACT_TEMP_MAX, TAKT_PAGE_I32,
	 offsetof(struct takt_gpu_facts, temp_max_c), 0},
	{"takt_gpu_memory_temperature_max_celsius",
	 "Highest temperature that the memory is to work at", false, TAKT_PAGE_FACTS,
	 TAKT_FACT_MEM_TEMP_MAX, TAKT_PAGE_I32, offsetof(struct takt_gpu_facts, mem_temp_max_c), 0},
	{"takt_gpu_pcie_link_generation_max", "Highest PCIe generation of board and slot", false,
	 TAKT_PAGE_FACTS, TAKT_FACT_PCIE_MAX, TAKT_PAGE_U32,
	 offsetof(struct takt_gpu_facts, pcie_gen_max), 0},
	{"takt_gpu_pcie_link_width_max", "Most PCIe lanes of board and slot", false,
	 TAKT_PAGE_FACTS, TAKT_FACT_PCIE_MAX, TAKT_PAGE_U32,
	 offsetof(struct takt_gpu_facts, pcie_width_max), 0},
};

static void add_throttled(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "takt_gpu_throttle_seconds_total";

	takt_page_add_head(
		input, name,
		"Time in which the reason was seen to hold the clock back, since takt started",
		true, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		for (int i = 0; i < TAKT_TALLY_REASONS && gpu->tally->throttle_seen; i++) {
			takt_page_add_series(gpu, name, "reason", takt_throttle_name(1ull << i),
					     ret);
			takt_page_add_scaled(false, gpu->tally->throttled_ns[i], -9, ret);
			takt_str_add(ret, "\n");
		}
	}
}

static void add_xid(const struct takt_page_gpu *gpu, const char *name,
		    const struct takt_tally_xid *xid, bool last, struct takt_str *ret)
{
	char number[16] = "other";

	if (xid->times == 0)
		return;
	if (xid->xid != 0)
		snprintf(number, sizeof(number), "%" PRIu32, xid->xid);
	takt_page_add_series(gpu, name, "xid", number, ret);
	if (last)
		takt_page_add_scaled(false, (uint64_t)xid->last.ns / TAKT_NS_PER_MS, -3, ret);
	else
		takt_str_addf(ret, "%" PRIu64, xid->times);
	takt_str_add(ret, "\n");
}

static void add_xids(const struct takt_page_input *input, const char *name, const char *help,
		     bool last, struct takt_str *ret)
{
	takt_page_add_head(input, name, help, !last, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		for (uint32_t i = 0; i < gpu->tally->xid_count; i++)
			add_xid(gpu, name, &gpu->tally->xids[i], last, ret);
		add_xid(gpu, name, &gpu->tally->others, last, ret);
	}
}

void takt_page_add_vitals(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_page_add_metrics(input, metrics, TAKT_ARRAY_LEN(metrics), false, ret);
	add_throttled(input, ret);
	add_xids(input, "takt_gpu_xid_errors_total", "XIDs that the driver told since takt started",
		 false, ret);
	add_xids(input, "takt_gpu_xid_last_seen_timestamp_seconds",
		 "When such an XID was told last", true, ret);
}
