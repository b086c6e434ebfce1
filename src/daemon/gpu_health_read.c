/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine says of a GPU, as the rules take it. */
#include "daemon/gpu_health_impl.h"

enum {
	/* Boards that are held at a target temperature keep this much below their highest; the
	 * driver does not tell the target. */
	TARGET_BELOW_MAX_C = 5,
};

struct same_bit {
	uint32_t from, to;
};

static uint32_t translate(uint32_t has, const struct same_bit *same, size_t count)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < count; i++)
		if (has & same[i].from)
			bits |= same[i].to;
	return bits;
}

void takt_health_board(const struct takt_gpu_facts *facts, struct takt_rules_board *ret)
{
	static const struct same_bit same[] = {
		{TAKT_FACT_SM_MAX, TAKT_BOARD_SM_MAX},
		{TAKT_FACT_POWER_LIMITS, TAKT_BOARD_POWER_DEFAULT},
		{TAKT_FACT_PCIE_MAX, TAKT_BOARD_PCIE},
		{TAKT_FACT_TEMP_MAX, TAKT_BOARD_TEMP_MAX | TAKT_BOARD_TEMP_TARGET},
		{TAKT_FACT_MEM_TEMP_MAX, TAKT_BOARD_MEMORY_TEMP_MAX},
	};

	*ret = (struct takt_rules_board){
		.has = translate(facts->has, same, TAKT_ARRAY_LEN(same)),
		.temp_max_c = facts->temp_max_c,
		.temp_target_c = facts->temp_max_c - TARGET_BELOW_MAX_C,
		.memory_temp_max_c = facts->mem_temp_max_c,
		.sm_max_mhz = facts->sm_max_mhz,
		.pcie_gen_max = facts->pcie_gen_max,
		.pcie_width_max = facts->pcie_width_max,
		.power_default_mw = facts->power_default_mw,
	};
}

static uint32_t seen(const struct takt_gpu_reading *reading)
{
	static const struct same_bit fast[] = {
		{TAKT_HAS_TEMP, TAKT_SEEN_TEMP},
		{TAKT_HAS_GPU_UTIL, TAKT_SEEN_UTIL},
		{TAKT_HAS_PSTATE, TAKT_SEEN_PSTATE},
		{TAKT_HAS_SM_CLOCK, TAKT_SEEN_SM_CLOCK},
		{TAKT_HAS_POWER_LIMIT, TAKT_SEEN_POWER_LIMIT},
		{TAKT_HAS_THROTTLE, TAKT_SEEN_REASONS},
		{TAKT_HAS_PCIE, TAKT_SEEN_PCIE},
		{TAKT_HAS_PCIE_REPLAY, TAKT_SEEN_PCIE_REPLAYS},
	};
	static const struct same_bit vital[] = {
		{TAKT_VITAL_MARGIN, TAKT_SEEN_MARGIN},
		{TAKT_VITAL_MEM_TEMP, TAKT_SEEN_MEMORY_TEMP},
		{TAKT_VITAL_ECC, TAKT_SEEN_ECC},
		{TAKT_VITAL_ROWS, TAKT_SEEN_ROWS},
		{TAKT_VITAL_PAGES, TAKT_SEEN_PAGES},
		{TAKT_VITAL_SRAM, TAKT_SEEN_SRAM},
		{TAKT_VITAL_RECOVERY, TAKT_SEEN_RECOVERY},
		{TAKT_VITAL_NVLINKS, TAKT_SEEN_NVLINKS},
		{TAKT_VITAL_NVLINK_CRC, TAKT_SEEN_NVLINK_CRC},
		{TAKT_VITAL_NVLINK_ERRORS, TAKT_SEEN_NVLINK_ERRORS},
		{TAKT_VITAL_HELD_POLICIES,
		 TAKT_SEEN_SLOW << TAKT_SLOW_POWER_CAP | TAKT_SEEN_SLOW << TAKT_SLOW_SYNC_BOOST},
		{TAKT_VITAL_HELD_REASONS, TAKT_SEEN_SLOW << TAKT_SLOW_SW_THERMAL |
						  TAKT_SEEN_SLOW << TAKT_SLOW_HW_THERMAL |
						  TAKT_SEEN_SLOW << TAKT_SLOW_POWER_BRAKE},
	};

	return translate(reading->has, fast, TAKT_ARRAY_LEN(fast)) |
	       translate(reading->vitals.has, vital, TAKT_ARRAY_LEN(vital));
}

static void add_vitals(const struct takt_gpu_vitals *vitals, struct takt_rules_sample *ret)
{
	ret->margin_c = vitals->margin_c;
	ret->memory_temp_c = vitals->mem_temp_c;
	ret->slow_ns[TAKT_SLOW_POWER_CAP] = vitals->held_ns[TAKT_HELD_POWER];
	ret->slow_ns[TAKT_SLOW_SYNC_BOOST] = vitals->held_ns[TAKT_HELD_SYNC_BOOST];
	ret->slow_ns[TAKT_SLOW_SW_THERMAL] = vitals->held_ns[TAKT_HELD_SW_THERMAL];
	ret->slow_ns[TAKT_SLOW_HW_THERMAL] = vitals->held_ns[TAKT_HELD_HW_THERMAL];
	ret->slow_ns[TAKT_SLOW_POWER_BRAKE] = vitals->held_ns[TAKT_HELD_POWER_BRAKE];
	ret->nvlinks_up = vitals->nvlinks_up;
	ret->nvlink_errors = vitals->nvlink_replays + vitals->nvlink_recoveries;
	ret->nvlink_crc = vitals->nvlink_crc_flits + vitals->nvlink_crc_data;
	ret->ecc_corrected = vitals->ecc_corrected;
	ret->ecc_uncorrected = vitals->ecc_uncorrected;
	ret->row_pending = vitals->row_pending;
	ret->row_failed = vitals->row_failed;
	ret->pages_retired = vitals->pages_single + vitals->pages_double;
	ret->page_pending = vitals->page_pending;
	ret->sram_threshold = vitals->sram_threshold;
	ret->recovery = vitals->recovery;
}

void takt_health_sample(const struct takt_gpu_reading *reading, uint32_t ceiling_mhz,
			struct takt_rules_sample *ret)
{
	*ret = (struct takt_rules_sample){
		.at = reading->at,
		.has = seen(reading),
		.lost = reading->lost,
		.temp_c = reading->temp_c,
		.util_pct = reading->gpu_util_pct,
		.pstate = reading->pstate,
		.sm_mhz = reading->sm_mhz,
		.ceiling_mhz = ceiling_mhz,
		.power_limit_mw = reading->power_limit_mw,
		.reasons = reading->throttle,
		.pcie_gen = reading->pcie_gen,
		.pcie_width = reading->pcie_width,
		.pcie_replays = reading->pcie_replay,
	};
	add_vitals(&reading->vitals, ret);
	if (ceiling_mhz)
		ret->has |= TAKT_SEEN_CEILING;
}
