/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of findings; docs/doctor.md has their reasons, tests/rules/faults.tsv sources. */
#include "rules/finding.h"
#include "base/compiler.h"

#define RULE(kind, name, level, action, raise_s, clear_s) \
	[TAKT_FINDING_##kind] = {name, TAKT_LEVEL_##level, TAKT_REMEDY_##action, raise_s, clear_s}

/* What a counter over ten minutes decides needs no time of its own to be found. */
static const struct takt_finding_rule rules[TAKT_FINDING_KINDS] = {
	RULE(GPU_LOST, "gpu-lost", CRITICAL, REBOOT, 0, 5),
	RULE(DRIVER_GONE, "driver-gone", CRITICAL, NONE, 0, 0),
	RULE(OFF_THE_BUS, "off-the-bus", CRITICAL, REBOOT, 0, 0),
	RULE(XID, "xid", INFO, NONE, 0, 0),
	RULE(RECOVERY_REBOOT, "recovery-reboot", CRITICAL, REBOOT, 0, 60),
	RULE(RECOVERY_DRAIN, "recovery-drain", CRITICAL, DRAIN_RESET, 0, 60),
	RULE(RECOVERY_RESET, "recovery-reset", CRITICAL, RESET_GPU, 0, 60),
	RULE(DRIVER_HUNG, "driver-hung", CRITICAL, RESET_GPU, 0, 5),
	RULE(ROW_FAILED, "row-failed", CRITICAL, REPLACE, 0, 60),
	RULE(SRAM_THRESHOLD, "sram-threshold", CRITICAL, REPLACE, 0, 60),
	RULE(PAGES_FULL, "pages-full", CRITICAL, REPLACE, 0, 60),
	RULE(ECC_UNCORRECTED, "ecc-uncorrected", CRITICAL, RESET_GPU, 0, 60),
	RULE(NVLINK_INACTIVE, "nvlink-inactive", CRITICAL, CHECK_NVLINK, 5, 60),
	RULE(HW_THERMAL, "hw-thermal", CRITICAL, CHECK_COOLING, 0, 60),
	RULE(TEMP_OVER, "temp-over", CRITICAL, CHECK_COOLING, 10, 300),
	RULE(MEMORY_TEMP_OVER, "memory-temp-over", CRITICAL, CHECK_COOLING, 10, 300),
	RULE(RECOVERY_P2P, "recovery-p2p", WARNING, DRAIN_P2P, 0, 60),
	RULE(POWER_BRAKE, "power-brake", WARNING, CHECK_POWER, 0, 60),
	RULE(SW_THERMAL, "sw-thermal", WARNING, CHECK_COOLING, 0, 60),
	RULE(TEMP_MARGIN, "temp-margin", WARNING, CHECK_COOLING, 60, 300),
	RULE(PCIE_WIDTH, "pcie-width", WARNING, CHECK_PCIE, 10, 60),
	RULE(PCIE_GEN, "pcie-gen", WARNING, CHECK_PCIE, 10, 60),
	RULE(PCIE_REPLAY, "pcie-replay", WARNING, CHECK_PCIE, 0, 600),
	RULE(NVLINK_ERRORS, "nvlink-errors", WARNING, CHECK_NVLINK, 0, 600),
	RULE(NVLINK_CRC, "nvlink-crc", WARNING, CHECK_NVLINK, 10, 600),
	RULE(XID_REPEATED, "xid-repeated", WARNING, CONTACT_SUPPORT, 0, 0),
	RULE(ROW_PENDING, "row-pending", WARNING, RESET_GPU, 0, 60),
	RULE(PAGE_PENDING, "page-pending", WARNING, REBOOT, 0, 60),
	RULE(PAGES_MANY, "pages-many", WARNING, CONTACT_SUPPORT, 0, 60),
	RULE(ECC_CORRECTED_RATE, "ecc-corrected-rate", WARNING, CONTACT_SUPPORT, 0, 600),
	RULE(DRIVER_SLOW, "driver-slow", WARNING, NONE, 0, 5),
	RULE(CLOCK_LOW, "clock-low", WARNING, CONTACT_SUPPORT, 60, 60),
	RULE(POWER_CAP, "power-cap", INFO, NONE, 0, 60),
	RULE(CLOCK_LIMIT, "clock-limit", INFO, NONE, 0, 60),
	RULE(CLOCK_LOCKED, "clock-locked", INFO, NONE, 60, 60),
	RULE(SYNC_BOOST, "sync-boost", INFO, NONE, 0, 60),
	RULE(PCIE_NARROW, "pcie-narrow", INFO, NONE, 60, 60),
};

static const char *const levels[] = {"none", "info", "warning", "critical"};

static const char *const actions[TAKT_REMEDY_COUNT] = {
	[TAKT_REMEDY_NONE] = "none",
	[TAKT_REMEDY_RESTART_APP] = "restart-app",
	[TAKT_REMEDY_RESTART_FABRIC_MANAGER] = "restart-fabric-manager",
	[TAKT_REMEDY_DRAIN_P2P] = "drain-p2p",
	[TAKT_REMEDY_DRAIN_RESET] = "drain-reset",
	[TAKT_REMEDY_RESET_GPU] = "reset-gpu",
	[TAKT_REMEDY_REBOOT] = "reboot",
	[TAKT_REMEDY_CHECK_COOLING] = "check-cooling",
	[TAKT_REMEDY_CHECK_POWER] = "check-power",
	[TAKT_REMEDY_CHECK_PCIE] = "check-pcie",
	[TAKT_REMEDY_CHECK_NVLINK] = "check-nvlink",
	[TAKT_REMEDY_UPDATE_SOFTWARE] = "update-software",
	[TAKT_REMEDY_CONTACT_SUPPORT] = "contact-support",
	[TAKT_REMEDY_REPLACE] = "replace",
};

#define EFFECT(cause, effect)                               \
	{                                                   \
		TAKT_FINDING_##cause, TAKT_FINDING_##effect \
	}

static const struct {
	enum takt_finding_kind cause, effect;
} effects[] = {
	EFFECT(DRIVER_HUNG, DRIVER_SLOW),    EFFECT(HW_THERMAL, SW_THERMAL),
	EFFECT(HW_THERMAL, TEMP_MARGIN),     EFFECT(HW_THERMAL, TEMP_OVER),
	EFFECT(TEMP_OVER, SW_THERMAL),	     EFFECT(TEMP_OVER, TEMP_MARGIN),
	EFFECT(HW_THERMAL, CLOCK_LOW),	     EFFECT(TEMP_OVER, CLOCK_LOW),
	EFFECT(SW_THERMAL, CLOCK_LOW),	     EFFECT(POWER_BRAKE, CLOCK_LOW),
	EFFECT(PCIE_WIDTH, PCIE_REPLAY),     EFFECT(PCIE_WIDTH, PCIE_GEN),
	EFFECT(PCIE_GEN, PCIE_REPLAY),	     EFFECT(ROW_FAILED, ROW_PENDING),
	EFFECT(PAGES_FULL, PAGES_MANY),	     EFFECT(NVLINK_INACTIVE, NVLINK_ERRORS),
	EFFECT(NVLINK_INACTIVE, NVLINK_CRC), EFFECT(ECC_UNCORRECTED, ROW_PENDING),
};

/* Up to `last`, for codes that come in rows. */
static const struct {
	uint32_t first, last;
	enum takt_finding_kind effect;
} xid_effects[] = {
	{48, 48, TAKT_FINDING_ECC_UNCORRECTED},	  {95, 95, TAKT_FINDING_ECC_UNCORRECTED},
	{140, 140, TAKT_FINDING_ECC_UNCORRECTED}, {171, 172, TAKT_FINDING_ECC_UNCORRECTED},
	{48, 48, TAKT_FINDING_ROW_PENDING},	  {95, 95, TAKT_FINDING_ROW_PENDING},
	{64, 64, TAKT_FINDING_ROW_FAILED},	  {92, 92, TAKT_FINDING_ECC_CORRECTED_RATE},
	{74, 74, TAKT_FINDING_NVLINK_INACTIVE},	  {74, 74, TAKT_FINDING_NVLINK_ERRORS},
	{74, 74, TAKT_FINDING_NVLINK_CRC},	  {144, 150, TAKT_FINDING_NVLINK_INACTIVE},
	{144, 150, TAKT_FINDING_NVLINK_ERRORS},	  {144, 150, TAKT_FINDING_NVLINK_CRC},
	{62, 62, TAKT_FINDING_DRIVER_HUNG},	  {109, 109, TAKT_FINDING_DRIVER_HUNG},
	{119, 120, TAKT_FINDING_DRIVER_HUNG},	  {62, 62, TAKT_FINDING_DRIVER_SLOW},
	{109, 109, TAKT_FINDING_DRIVER_SLOW},	  {119, 120, TAKT_FINDING_DRIVER_SLOW},
};

const struct takt_finding_rule *takt_finding_rule(enum takt_finding_kind kind)
{
	return &rules[kind];
}

const char *takt_finding_name(enum takt_finding_kind kind)
{
	return rules[kind].name;
}

const char *takt_level_name(enum takt_level level)
{
	return levels[level];
}

const char *takt_remedy_name(enum takt_remedy action)
{
	return actions[action];
}

bool takt_finding_explains(enum takt_finding_kind cause, enum takt_finding_kind effect)
{
	if (cause == TAKT_FINDING_GPU_LOST || cause == TAKT_FINDING_DRIVER_GONE)
		return effect > cause;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(effects); i++)
		if (effects[i].cause == cause && effects[i].effect == effect)
			return true;
	return false;
}

bool takt_xid_explains(uint32_t xid, enum takt_finding_kind effect)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(xid_effects); i++)
		if (xid >= xid_effects[i].first && xid <= xid_effects[i].last &&
		    xid_effects[i].effect == effect)
			return true;
	return false;
}
