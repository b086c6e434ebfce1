/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What few boards tell, or what costs the driver more to tell than clocks and power: memory errors
 * and what was done about them, NVLinks, why and for how long the clock was held back, and what the
 * parts of the GPU were busy with. Part of a reading (device/device.h), of machines that were
 * opened with `vitals`, read with its slow part.
 */
#ifndef TAKT_DEVICE_VITALS_H
#define TAKT_DEVICE_VITALS_H

#include <stdbool.h>
#include <stdint.h>

/* Parts of a GPU whose activity boards tell since Hopper, as a share of time or of what is
 * possible. Not while it is cut by MIG. */
enum takt_active {
	TAKT_ACTIVE_GRAPHICS, /* any of graphics and computing */
	TAKT_ACTIVE_SM,
	TAKT_ACTIVE_OCCUPANCY, /* warps in the SMs */
	TAKT_ACTIVE_TENSOR,
	TAKT_ACTIVE_DRAM,
	TAKT_ACTIVE_FP64,
	TAKT_ACTIVE_FP32,
	TAKT_ACTIVE_FP16,
	TAKT_ACTIVE_COUNT,
};
/* "tensor" and so on. */
const char *takt_active_name(enum takt_active part);

/* Whole policies that hold a clock back, as drivers count their time; HELD_SW_THERMAL and on are
 * single reasons, which newer drivers count, too. */
enum takt_held {
	TAKT_HELD_POWER,
	TAKT_HELD_THERMAL,
	TAKT_HELD_SYNC_BOOST,
	TAKT_HELD_BOARD_LIMIT,
	TAKT_HELD_LOW_UTIL,
	TAKT_HELD_RELIABILITY,
	TAKT_HELD_SW_THERMAL,
	TAKT_HELD_HW_THERMAL,
	TAKT_HELD_POWER_BRAKE,
	TAKT_HELD_COUNT,
};

enum takt_vital {
	TAKT_VITAL_MEM_TEMP = 1u << 0,
	TAKT_VITAL_MARGIN = 1u << 1,
	TAKT_VITAL_POWER_AVERAGE = 1u << 2,
	TAKT_VITAL_ECC = 1u << 3,
	TAKT_VITAL_ECC_EVER = 1u << 4,
	TAKT_VITAL_ROWS = 1u << 5,
	TAKT_VITAL_PAGES = 1u << 6,
	TAKT_VITAL_SRAM = 1u << 7,
	TAKT_VITAL_RECOVERY = 1u << 8,
	TAKT_VITAL_NVLINKS = 1u << 9,
	TAKT_VITAL_NVLINK_CRC = 1u << 10,
	TAKT_VITAL_NVLINK_ERRORS = 1u << 11,
	TAKT_VITAL_NVLINK_BYTES = 1u << 12,
	TAKT_VITAL_HELD_POLICIES = 1u << 13, /* held_ns up to RELIABILITY */
	TAKT_VITAL_HELD_REASONS = 1u << 14,  /* the others */
	TAKT_VITAL_PCIE_RATES = 1u << 15,
	TAKT_VITAL_ACTIVE = 1u << 16, /* shifted by enum takt_active: each part alone */
};

/* Counters are since the driver was loaded, where nothing else is said. */
struct takt_gpu_vitals {
	uint32_t has; /* enum takt_vital */
	int32_t mem_temp_c;
	int32_t margin_c; /* to the highest temperature that it is to work at */
	uint32_t power_average_mw;
	uint64_t ecc_corrected, ecc_uncorrected;
	uint64_t ecc_ever_corrected, ecc_ever_uncorrected; /* in the board's life */
	uint32_t rows_corrected, rows_uncorrected; /* remapped after such errors, in its life */
	bool row_pending;			   /* one will be at the next reset */
	bool row_failed;
	uint32_t pages_single, pages_double; /* retired after errors of so many bits, in its life */
	bool page_pending;
	bool sram_threshold; /* too many errors in its SRAM, the board says */
	uint32_t recovery;   /* what the driver recommends, as NVML numbers it; 0 = nothing */
	uint32_t nvlinks, nvlinks_up;
	uint64_t nvlink_crc_flits, nvlink_crc_data, nvlink_replays,
		nvlink_recoveries;			   /* all links */
	uint64_t nvlink_sent_bytes, nvlink_received_bytes; /* data */
	uint64_t held_ns[TAKT_HELD_COUNT];
	uint64_t pcie_sent_bytes_per_s, pcie_received_bytes_per_s;
	uint32_t active_ppm[TAKT_ACTIVE_COUNT]; /* since the last slow part */
};

#endif
