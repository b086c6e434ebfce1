/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong with a GPU, how grave it is, what to do, and what follows from what: tables. */
#ifndef TAKT_RULES_FINDING_H
#define TAKT_RULES_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum takt_level {
	TAKT_LEVEL_NONE,
	TAKT_LEVEL_INFO,     /* to know; nobody need do anything */
	TAKT_LEVEL_WARNING,  /* the GPU works; somebody should look */
	TAKT_LEVEL_CRITICAL, /* not to be given to jobs */
};

enum takt_remedy {
	TAKT_REMEDY_NONE,
	TAKT_REMEDY_RESTART_APP,
	TAKT_REMEDY_RESTART_FABRIC_MANAGER,
	TAKT_REMEDY_DRAIN_P2P,
	TAKT_REMEDY_DRAIN_RESET,
	TAKT_REMEDY_RESET_GPU, /* once no job is on it */
	TAKT_REMEDY_REBOOT,
	TAKT_REMEDY_CHECK_COOLING,
	TAKT_REMEDY_CHECK_POWER,
	TAKT_REMEDY_CHECK_PCIE,
	TAKT_REMEDY_CHECK_NVLINK,
	TAKT_REMEDY_UPDATE_SOFTWARE,
	TAKT_REMEDY_CONTACT_SUPPORT,
	TAKT_REMEDY_REPLACE,
	TAKT_REMEDY_COUNT,
};

/* In the order in which causes of equal level are named. */
enum takt_finding_kind {
	TAKT_FINDING_GPU_LOST,
	TAKT_FINDING_DRIVER_GONE,
	TAKT_FINDING_OFF_THE_BUS,
	TAKT_FINDING_XID,
	TAKT_FINDING_RECOVERY_REBOOT,
	TAKT_FINDING_RECOVERY_DRAIN,
	TAKT_FINDING_RECOVERY_RESET,
	TAKT_FINDING_DRIVER_HUNG,
	TAKT_FINDING_ROW_FAILED,
	TAKT_FINDING_SRAM_THRESHOLD,
	TAKT_FINDING_PAGES_FULL,
	TAKT_FINDING_ECC_UNCORRECTED,
	TAKT_FINDING_NVLINK_INACTIVE,
	TAKT_FINDING_HW_THERMAL,
	TAKT_FINDING_TEMP_OVER,
	TAKT_FINDING_MEMORY_TEMP_OVER,
	TAKT_FINDING_RECOVERY_P2P,
	TAKT_FINDING_POWER_BRAKE,
	TAKT_FINDING_SW_THERMAL,
	TAKT_FINDING_TEMP_MARGIN,
	TAKT_FINDING_PCIE_WIDTH,
	TAKT_FINDING_PCIE_GEN,
	TAKT_FINDING_PCIE_REPLAY,
	TAKT_FINDING_NVLINK_ERRORS,
	TAKT_FINDING_NVLINK_CRC,
	TAKT_FINDING_XID_REPEATED,
	TAKT_FINDING_ROW_PENDING,
	TAKT_FINDING_PAGE_PENDING,
	TAKT_FINDING_PAGES_MANY,
	TAKT_FINDING_ECC_CORRECTED_RATE,
	TAKT_FINDING_DRIVER_SLOW,
	TAKT_FINDING_CLOCK_LOW,
	TAKT_FINDING_POWER_CAP,
	TAKT_FINDING_CLOCK_LIMIT,
	TAKT_FINDING_CLOCK_LOCKED,
	TAKT_FINDING_SYNC_BOOST,
	TAKT_FINDING_PCIE_NARROW,
	TAKT_FINDING_KINDS,
};

/* "gpu-lost", "warning", "reset-gpu". */
const char *takt_finding_name(enum takt_finding_kind kind);
const char *takt_level_name(enum takt_level level);
const char *takt_remedy_name(enum takt_remedy action);

/* What a finding of this kind is; an XID's level and action are its own. */
struct takt_finding_rule {
	const char *name;
	enum takt_level level;
	enum takt_remedy action;
	uint32_t raise_s; /* how long it must look bad before it is found */
	uint32_t clear_s; /* how long it must look good before it is over */
};
const struct takt_finding_rule *takt_finding_rule(enum takt_finding_kind kind);

/* Whether `effect` is what one expects beside `cause`; of XIDs see takt_xid_explains. */
bool takt_finding_explains(enum takt_finding_kind cause, enum takt_finding_kind effect);
bool takt_xid_explains(uint32_t xid, enum takt_finding_kind effect);

#endif
