/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same readings as dcgm-exporter shows them: its names, types, help texts, units and labels in
 * its order, so that dashboards and alerts made for it work here. Unlike there, label values are
 * escaped. What a board does not tell is left out; there as here.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "telemetry/page.h"

#define READING(has, kind, member) \
	TAKT_PAGE_READING, (has), (kind), offsetof(struct takt_gpu_reading, member)

#define VITAL(has, kind, member) \
	TAKT_PAGE_VITALS, TAKT_VITAL_##has, (kind), offsetof(struct takt_gpu_vitals, member)

#define FACT(has, kind, member) \
	TAKT_PAGE_FACTS, TAKT_FACT_##has, (kind), offsetof(struct takt_gpu_facts, member)

/* Those of its default list first, in its order. */
static const struct takt_page_metric metrics[] = {
	{"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", false,
	 READING(TAKT_HAS_SM_CLOCK, TAKT_PAGE_U32, sm_mhz), 0},
	{"DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", false,
	 READING(TAKT_HAS_MEM_CLOCK, TAKT_PAGE_U32, mem_mhz), 0},
	{"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", false,
	 READING(TAKT_HAS_TEMP, TAKT_PAGE_I32, temp_c), 0},
	{"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", false,
	 READING(TAKT_HAS_POWER, TAKT_PAGE_U32, power_mw), -3},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).",
	 true, READING(TAKT_HAS_ENERGY, TAKT_PAGE_U64, energy_mj), 0},
	{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", true,
	 READING(TAKT_HAS_PCIE_REPLAY, TAKT_PAGE_U64, pcie_replay), 0},
	{"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", false,
	 READING(TAKT_HAS_GPU_UTIL, TAKT_PAGE_U32, gpu_util_pct), 0},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", false,
	 READING(TAKT_HAS_MEM_UTIL, TAKT_PAGE_U32, mem_util_pct), 0},
	{"DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).", false,
	 READING(TAKT_HAS_ENC_DEC, TAKT_PAGE_U32, enc_util_pct), 0},
	{"DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).", false,
	 READING(TAKT_HAS_ENC_DEC, TAKT_PAGE_U32, dec_util_pct), 0},
	{"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", false,
	 READING(TAKT_HAS_MEMORY, TAKT_PAGE_MIB, mem_free_bytes), 0},
	{"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", false,
	 READING(TAKT_HAS_MEMORY, TAKT_PAGE_MIB, mem_used_bytes), 0},
	{"DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", false,
	 READING(TAKT_HAS_RESERVED, TAKT_PAGE_MIB, mem_reserved_bytes), 0},
	{"DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", false,
	 VITAL(MEM_TEMP, TAKT_PAGE_I32, mem_temp_c), 0},
	{"DCGM_FI_DEV_POWER_VIOLATION", "Throttling duration due to power constraints (in ns).",
	 true, VITAL(HELD_POLICIES, TAKT_PAGE_U64, held_ns[TAKT_HELD_POWER]), 0},
	{"DCGM_FI_DEV_THERMAL_VIOLATION", "Throttling duration due to thermal constraints (in ns).",
	 true, VITAL(HELD_POLICIES, TAKT_PAGE_U64, held_ns[TAKT_HELD_THERMAL]), 0},
	{"DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
	 "Throttling duration due to sync-boost constraints (in ns).", true,
	 VITAL(HELD_POLICIES, TAKT_PAGE_U64, held_ns[TAKT_HELD_SYNC_BOOST]), 0},
	{"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
	 "Throttling duration due to board limit constraints (in ns).", true,
	 VITAL(HELD_POLICIES, TAKT_PAGE_U64, held_ns[TAKT_HELD_BOARD_LIMIT]), 0},
	{"DCGM_FI_DEV_LOW_UTIL_VIOLATION", "Throttling duration due to low utilization (in ns).",
	 true, VITAL(HELD_POLICIES, TAKT_PAGE_U64, held_ns[TAKT_HELD_LOW_UTIL]), 0},
	{"DCGM_FI_DEV_RELIABILITY_VIOLATION",
	 "Throttling duration due to reliability constraints (in ns).", true,
	 VITAL(HELD_POLICIES, TAKT_PAGE_U64, held_ns[TAKT_HELD_RELIABILITY]), 0},
	{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Total number of single-bit volatile ECC errors.", true,
	 VITAL(ECC, TAKT_PAGE_U64, ecc_corrected), 0},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Total number of double-bit volatile ECC errors.", true,
	 VITAL(ECC, TAKT_PAGE_U64, ecc_uncorrected), 0},
	{"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "Total number of single-bit persistent ECC errors.", true,
	 VITAL(ECC_EVER, TAKT_PAGE_U64, ecc_ever_corrected), 0},
	{"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "Total number of double-bit persistent ECC errors.", true,
	 VITAL(ECC_EVER, TAKT_PAGE_U64, ecc_ever_uncorrected), 0},
	{"DCGM_FI_DEV_RETIRED_SBE", "Total number of retired pages due to single-bit errors.", true,
	 VITAL(PAGES, TAKT_PAGE_U32, pages_single), 0},
	{"DCGM_FI_DEV_RETIRED_DBE", "Total number of retired pages due to double-bit errors.", true,
	 VITAL(PAGES, TAKT_PAGE_U32, pages_double), 0},
	{"DCGM_FI_DEV_RETIRED_PENDING", "Total number of pages pending retirement.", true,
	 VITAL(PAGES, TAKT_PAGE_BOOL, page_pending), 0},
	{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
	 "Number of remapped rows for uncorrectable errors", true,
	 VITAL(ROWS, TAKT_PAGE_U32, rows_uncorrected), 0},
	{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for correctable errors",
	 true, VITAL(ROWS, TAKT_PAGE_U32, rows_corrected), 0},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed", false,
	 VITAL(ROWS, TAKT_PAGE_BOOL, row_failed), 0},
	{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
	 "Total number of NVLink flow-control CRC errors.", true,
	 VITAL(NVLINK_CRC, TAKT_PAGE_U64, nvlink_crc_flits), 0},
	{"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "Total number of NVLink data CRC errors.",
	 true, VITAL(NVLINK_CRC, TAKT_PAGE_U64, nvlink_crc_data), 0},
	{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "Total number of NVLink retries.", true,
	 VITAL(NVLINK_ERRORS, TAKT_PAGE_U64, nvlink_replays), 0},
	{"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "Total number of NVLink recovery errors.",
	 true, VITAL(NVLINK_ERRORS, TAKT_PAGE_U64, nvlink_recoveries), 0},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", false,
	 VITAL(ACTIVE << TAKT_ACTIVE_GRAPHICS, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_GRAPHICS]),
	 -6},
	{"DCGM_FI_PROF_SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned.", false,
	 VITAL(ACTIVE << TAKT_ACTIVE_SM, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_SM]), -6},
	{"DCGM_FI_PROF_SM_OCCUPANCY", "The ratio of number of warps resident on an SM.", false,
	 VITAL(ACTIVE << TAKT_ACTIVE_OCCUPANCY, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_OCCUPANCY]),
	 -6},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.",
	 false, VITAL(ACTIVE << TAKT_ACTIVE_TENSOR, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_TENSOR]),
	 -6},
	{"DCGM_FI_PROF_DRAM_ACTIVE",
	 "Ratio of cycles the device memory interface is active sending or receiving data.", false,
	 VITAL(ACTIVE << TAKT_ACTIVE_DRAM, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_DRAM]), -6},
	{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Ratio of cycles the fp64 pipes are active.", false,
	 VITAL(ACTIVE << TAKT_ACTIVE_FP64, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_FP64]), -6},
	{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Ratio of cycles the fp32 pipes are active.", false,
	 VITAL(ACTIVE << TAKT_ACTIVE_FP32, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_FP32]), -6},
	{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Ratio of cycles the fp16 pipes are active.", false,
	 VITAL(ACTIVE << TAKT_ACTIVE_FP16, TAKT_PAGE_U32, active_ppm[TAKT_ACTIVE_FP16]), -6},
	{"DCGM_FI_PROF_PCIE_TX_BYTES",
	 "The rate of data transmitted over the PCIe bus - including both protocol headers and "
	 "data payloads - in bytes per second.",
	 false, VITAL(PCIE_RATES, TAKT_PAGE_U64, pcie_sent_bytes_per_s), 0},
	{"DCGM_FI_PROF_PCIE_RX_BYTES",
	 "The rate of data received over the PCIe bus - including both protocol headers and data "
	 "payloads - in bytes per second.",
	 false, VITAL(PCIE_RATES, TAKT_PAGE_U64, pcie_received_bytes_per_s), 0},
	{"DCGM_FI_DEV_MAX_SM_CLOCK", "Maximum supported SM clock (in MHz).", false,
	 FACT(SM_MAX, TAKT_PAGE_U32, sm_max_mhz), 0},
	{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "Current clock throttle reasons (bitmask).", false,
	 READING(TAKT_HAS_THROTTLE, TAKT_PAGE_U64, throttle), 0},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "Current clock event reasons (bitmask).", false,
	 READING(TAKT_HAS_THROTTLE, TAKT_PAGE_U64, throttle), 0},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS",
	 "Throttling duration due to software thermal slowdown (in ns).", true,
	 VITAL(HELD_REASONS, TAKT_PAGE_U64, held_ns[TAKT_HELD_SW_THERMAL]), 0},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
	 "Throttling duration due to hardware thermal slowdown (in ns).", true,
	 VITAL(HELD_REASONS, TAKT_PAGE_U64, held_ns[TAKT_HELD_HW_THERMAL]), 0},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
	 "Throttling duration due to an external power brake (in ns).", true,
	 VITAL(HELD_REASONS, TAKT_PAGE_U64, held_ns[TAKT_HELD_POWER_BRAKE]), 0},
	{"DCGM_FI_DEV_PSTATE", "Performance state, 0-15, 0 is the highest.", false,
	 READING(TAKT_HAS_PSTATE, TAKT_PAGE_U32, pstate), 0},
	{"DCGM_FI_DEV_PERSISTENCE_MODE", "Whether persistence mode is on.", false,
	 READING(TAKT_HAS_PERSISTENCE, TAKT_PAGE_BOOL, persistence), 0},
	{"DCGM_FI_DEV_MIG_MODE", "Whether MIG mode is on.", false,
	 FACT(MIG, TAKT_PAGE_BOOL, mig_enabled), 0},
	{"DCGM_FI_DEV_FAN_SPEED", "Fan speed (in %).", false,
	 READING(TAKT_HAS_FAN, TAKT_PAGE_U32, fan_pct), 0},
	{"DCGM_FI_DEV_SLOWDOWN_TEMP", "Slowdown temperature (in C).", false,
	 FACT(THROTTLE_TEMP, TAKT_PAGE_I32, slowdown_temp_c), 0},
	{"DCGM_FI_DEV_GPU_MAX_OP_TEMP", "Maximum operating temperature (in C).", false,
	 FACT(TEMP_MAX, TAKT_PAGE_I32, temp_max_c), 0},
	{"DCGM_FI_DEV_MEM_MAX_OP_TEMP", "Maximum operating temperature of the memory (in C).",
	 false, FACT(MEM_TEMP_MAX, TAKT_PAGE_I32, mem_temp_max_c), 0},
	{"DCGM_FI_DEV_GPU_TEMP_LIMIT", "Distance to the nearest slowdown threshold (in C).", false,
	 VITAL(MARGIN, TAKT_PAGE_I32, margin_c), 0},
	{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "Current power limit (in W).", false,
	 READING(TAKT_HAS_POWER_LIMIT, TAKT_PAGE_U32, power_limit_mw), -3},
	{"DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", "Minimum power limit (in W).", false,
	 FACT(POWER_LIMITS, TAKT_PAGE_U32, power_min_mw), -3},
	{"DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", "Maximum power limit (in W).", false,
	 FACT(POWER_LIMITS, TAKT_PAGE_U32, power_max_mw), -3},
	{"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "Default power limit (in W).", false,
	 FACT(POWER_LIMITS, TAKT_PAGE_U32, power_default_mw), -3},
	{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
	 "Effective power limit after all limiters are taken into account (in W).", false,
	 READING(TAKT_HAS_POWER_ENFORCED, TAKT_PAGE_U32, power_enforced_mw), -3},
	{"DCGM_FI_DEV_FB_TOTAL", "Total framebuffer memory (in MiB).", false,
	 FACT(MEMORY, TAKT_PAGE_MIB, memory_total_bytes), 0},
	{"DCGM_FI_DEV_PCIE_LINK_GEN", "Current PCIe link generation.", false,
	 READING(TAKT_HAS_PCIE, TAKT_PAGE_U32, pcie_gen), 0},
	{"DCGM_FI_DEV_PCIE_LINK_WIDTH", "Current PCIe link width (in lanes).", false,
	 READING(TAKT_HAS_PCIE, TAKT_PAGE_U32, pcie_width), 0},
	{"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "Maximum PCIe link generation.", false,
	 FACT(PCIE_MAX, TAKT_PAGE_U32, pcie_gen_max), 0},
	{"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "Maximum PCIe link width (in lanes).", false,
	 FACT(PCIE_MAX, TAKT_PAGE_U32, pcie_width_max), 0},
	{"DCGM_FI_DEV_ROW_REMAP_PENDING", "Whether remapping of rows is pending.", false,
	 VITAL(ROWS, TAKT_PAGE_BOOL, row_pending), 0},
	{"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "Recovery action that the driver recommends.",
	 false, VITAL(RECOVERY, TAKT_PAGE_U32, recovery), 0},
};

static void prepare_labels(const struct takt_page_input *input, struct takt_page_gpu *gpu)
{
	const struct takt_gpu_facts *facts = gpu->facts;
	struct takt_str *labels = &gpu->dcgm_labels;

	labels->max = TAKT_PAGE_LABELS;
	takt_str_reset(labels);
	takt_str_addf(labels, "gpu=\"%" PRIu32 "\"", gpu->index);
	if (facts->has & TAKT_FACT_UUID)
		takt_page_add_label("UUID", facts->uuid, labels);
	if (facts->has & TAKT_FACT_PCI)
		takt_page_add_label("pci_bus_id", facts->pci_bus_id, labels);
	if (facts->has & TAKT_FACT_MINOR)
		takt_str_addf(labels, ",device=\"nvidia%" PRIu32 "\"", facts->minor);
	if (facts->has & TAKT_FACT_NAME)
		takt_page_add_label("modelName", facts->name, labels);
	if (input->hostname_label)
		takt_page_add_label(input->hostname_label, input->hostname, labels);
	if (input->info->driver_version[0] != '\0')
		takt_page_add_label("DCGM_FI_DRIVER_VERSION", input->info->driver_version, labels);
	if (input->simulated)
		takt_page_add_label("simulated", "true", labels);
}

/* One more row of a GPU, with labels behind the others, which begin with a comma; NULL = none. The
 * value is shown times 10^exponent. */
static void add_scaled_row(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
			   const char *name, const char *labels, uint64_t value, int exponent,
			   struct takt_str *ret)
{
	uint32_t count = takt_page_dcgm_series(input, gpu);

	for (uint32_t i = 0; i < count; i++) {
		takt_str_addf(ret, "%s{%s%s", name, takt_str_text(&gpu->dcgm_labels),
			      labels ? labels : "");
		takt_page_end_dcgm(input, gpu, i, ret);
		takt_page_add_scaled(false, value, exponent, ret);
		takt_str_add(ret, "\n");
	}
}

static void add_row(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
		    const char *name, const char *labels, uint64_t value, struct takt_str *ret)
{
	add_scaled_row(input, gpu, name, labels, value, 0, ret);
}

/* Of what is not reserved: used / (total - reserved), as a ratio in spite of its name. */
static bool used_ppm(const struct takt_page_gpu *gpu, uint64_t *ret)
{
	const struct takt_gpu_reading *reading = gpu->reading;
	uint64_t room;

	if (!takt_page_is_fresh(gpu) || !(reading->has & TAKT_HAS_MEMORY))
		return false;
	room = reading->mem_used_bytes + reading->mem_free_bytes;
	if (room >> 20 == 0)
		return false;
	*ret = (reading->mem_used_bytes >> 20) * 1000000 / (room >> 20);
	return true;
}

static void add_used_share(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "DCGM_FI_DEV_FB_USED_PERCENT";
	bool head = true;
	uint64_t ppm;

	for (uint32_t g = 0; g < input->gpu_count; g++) {
		if (!used_ppm(&input->gpus[g], &ppm))
			continue;
		if (head)
			takt_page_add_head(input, name,
					   "Used share of framebuffer memory, of total less "
					   "reserved, 0.0-1.0.",
					   false, ret);
		head = false;
		add_scaled_row(input, &input->gpus[g], name, NULL, ppm, -6, ret);
	}
}

static void add_last_xid(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "DCGM_FI_DEV_XID_ERRORS";
	char labels[32];

	takt_page_add_head(input, name, "Value of the last XID error encountered.", false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		uint32_t xid = input->gpus[g].tally->last_xid;

		snprintf(labels, sizeof(labels), ",err_code=\"%" PRIu32 "\"", xid);
		if (xid != 0)
			add_row(input, &input->gpus[g], name, labels, xid, ret);
	}
}

#define WINDOW ",window_size_in_ms=\"300000\""
static_assert(TAKT_TALLY_SLOT_S * TAKT_TALLY_SLOTS == 300, "as WINDOW says");

/* Like there: what came in the window, by XID; one 0 without a label where nothing came. */
static void add_recent_xids(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
			    const char *name, struct takt_str *ret)
{
	char labels[64];
	bool any = false;

	for (uint32_t i = 0; i < gpu->tally->xid_count; i++) {
		const struct takt_tally_xid *xid = &gpu->tally->xids[i];
		uint64_t recent = takt_tally_recent(xid, input->now);

		snprintf(labels, sizeof(labels), WINDOW ",xid=\"%" PRIu32 "\"", xid->xid);
		if (recent > 0)
			add_row(input, gpu, name, labels, recent, ret);
		any = any || recent > 0;
	}
	if (!any && gpu->label->set && gpu->label->hears_xids)
		add_row(input, gpu, name, WINDOW, 0, ret);
}

static void add_xid_counts(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "DCGM_EXP_XID_ERRORS_COUNT";

	takt_page_add_head(input, name,
			   "Count of XID Errors within user-specified time window "
			   "(see xid-count-window-size param).",
			   false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++)
		add_recent_xids(input, &input->gpus[g], name, ret);
}

/* Called a counter there; it is a rate, in thousands of KiB a second. */
static void add_nvlink_rate(const struct takt_page_input *input, struct takt_str *ret)
{
	static const char name[] = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL";
	bool head = true;

	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_gpu *gpu = &input->gpus[g];

		if (!gpu->tally->has_nvlink_rate || !takt_page_is_fresh(gpu))
			continue;
		if (head)
			takt_page_add_head(
				input, name,
				"Total number of NVLink bandwidth counters for all lanes.", true,
				ret);
		head = false;
		add_row(input, gpu, name, NULL,
			(gpu->tally->nvlink_sent_bytes_per_s +
			 gpu->tally->nvlink_received_bytes_per_s) /
				1024000,
			ret);
	}
}

void takt_page_add_dcgm(const struct takt_page_input *input, struct takt_str *ret)
{
	for (uint32_t g = 0; g < input->gpu_count; g++)
		prepare_labels(input, &input->gpus[g]);
	takt_page_add_metrics(input, metrics, TAKT_ARRAY_LEN(metrics), true, ret);
	add_used_share(input, ret);
	add_last_xid(input, ret);
	add_xid_counts(input, ret);
	add_nvlink_rate(input, ret);
}
