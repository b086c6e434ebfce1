/* SPDX-License-Identifier: Apache-2.0 */
/* Findings in words, with what was measured. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rules/rules.h"
#include "rules/xid.h"

/* before VALUE unit between LIMIT after; no unit: no figures; no between: no limit. What is
 * measured in milliseconds is told in seconds. */
static const struct {
	const char *before, *unit, *between, *after;
	int64_t divide;
} words[TAKT_FINDING_KINDS] = {
	[TAKT_FINDING_GPU_LOST] = {"the driver has lost the GPU", NULL, NULL, NULL, 1},
	[TAKT_FINDING_DRIVER_GONE] = {"the driver was unloaded, or is being loaded anew", NULL,
				      NULL, NULL, 1},
	[TAKT_FINDING_OFF_THE_BUS] = {"XID 79, fallen off the bus, though it answers", NULL, NULL,
				      NULL, 1},
	[TAKT_FINDING_RECOVERY_REBOOT] = {"the driver asks for a reboot", NULL, NULL, NULL, 1},
	[TAKT_FINDING_RECOVERY_DRAIN] = {"the driver asks to drain and reset it", NULL, NULL, NULL,
					 1},
	[TAKT_FINDING_RECOVERY_RESET] = {"the driver asks for a reset", NULL, NULL, NULL, 1},
	[TAKT_FINDING_RECOVERY_P2P] = {"the driver asks to end peer-to-peer work", NULL, NULL, NULL,
				       1},
	[TAKT_FINDING_DRIVER_HUNG] = {"no reading for ", " s", ", found from ", " s on", 1000},
	[TAKT_FINDING_DRIVER_SLOW] = {"no reading for ", " s", ", found from ", " s on", 1000},
	[TAKT_FINDING_ROW_FAILED] = {"a memory row could not be replaced", NULL, NULL, NULL, 1},
	[TAKT_FINDING_ROW_PENDING] = {"a memory row is replaced at the next reset", NULL, NULL,
				      NULL, 1},
	[TAKT_FINDING_SRAM_THRESHOLD] = {"more errors in SRAM than the board's limit", NULL, NULL,
					 NULL, 1},
	[TAKT_FINDING_PAGES_FULL] = {"", " retired pages", ", limit ", "", 1},
	[TAKT_FINDING_PAGES_MANY] = {"", " retired pages", ", limit ", "", 1},
	[TAKT_FINDING_PAGE_PENDING] = {"a memory page is retired at the next reboot", NULL, NULL,
				       NULL, 1},
	[TAKT_FINDING_ECC_UNCORRECTED] = {"", " uncorrected memory errors", NULL, NULL, 1},
	[TAKT_FINDING_ECC_CORRECTED_RATE] = {"", " corrected memory errors in a minute", ", limit ",
					     "", 1},
	[TAKT_FINDING_NVLINK_INACTIVE] = {"", " NVLinks up", " of ", "", 1},
	[TAKT_FINDING_NVLINK_ERRORS] = {"", " NVLink replays and recoveries in 10 min", NULL, NULL,
					1},
	[TAKT_FINDING_NVLINK_CRC] = {"", " NVLink CRC errors in a minute", ", limit ", "", 1},
	[TAKT_FINDING_HW_THERMAL] = {"HW thermal slowdown for ", " s of 10 min", ", limit ", " s",
				     1000},
	[TAKT_FINDING_SW_THERMAL] = {"SW thermal slowdown for ", " s of 10 min", ", limit ", " s",
				     1000},
	[TAKT_FINDING_POWER_BRAKE] = {"power brake for ", " s of 10 min", ", limit ", " s", 1000},
	[TAKT_FINDING_POWER_CAP] = {"held down by its power control for ", " s of 10 min", NULL,
				    NULL, 1000},
	[TAKT_FINDING_CLOCK_LIMIT] = {"at a lowered power limit for ", " s of 10 min", NULL, NULL,
				      1000},
	[TAKT_FINDING_SYNC_BOOST] = {"slowed by its sync boost group for ", " s of 10 min", NULL,
				     NULL, 1000},
	[TAKT_FINDING_TEMP_OVER] = {"", " C above its highest working temperature", NULL, NULL, 1},
	[TAKT_FINDING_TEMP_MARGIN] = {"", " C to its highest working temperature", NULL, NULL, -1},
	[TAKT_FINDING_MEMORY_TEMP_OVER] = {"memory at ", " C", ", limit ", " C", 1},
	[TAKT_FINDING_PCIE_WIDTH] = {"PCI Express at ", " lanes", ", had ", "", 1},
	[TAKT_FINDING_PCIE_NARROW] = {"PCI Express at ", " lanes", " of ", "", 1},
	[TAKT_FINDING_PCIE_GEN] = {"PCI Express at generation ", " under load", ", could be ", "",
				   1},
	[TAKT_FINDING_PCIE_REPLAY] = {"", " PCI Express replays in a minute", ", limit ", "", 1},
	[TAKT_FINDING_XID_REPEATED] = {"the same fault in ", " programs", NULL, NULL, 1},
	[TAKT_FINDING_CLOCK_LOW] = {"busy at ", " MHz", " of ", " MHz, and the driver says not why",
				    1},
	[TAKT_FINDING_CLOCK_LOCKED] = {"busy at ", " MHz", " of ", " MHz, as somebody set it", 1},
};

static void put_xid(const struct takt_incident *incident, bool names, char *buf, size_t size)
{
	const struct takt_incident_xid *cause = takt_incident_cause(incident);
	const struct takt_xid *xid = takt_xid_find(cause->code);
	int len = snprintf(buf, size, "XID %" PRIu32 "%s%s%s%s", cause->code,
			   xid && xid->used ? ": " : "", xid && xid->used ? xid->text : "",
			   names && cause->name[0] ? ", process " : "", names ? cause->name : "");

	for (uint32_t i = 0; i < incident->xid_count && len >= 0 && (size_t)len < size; i++)
		if (&incident->xid[i] != cause)
			len += snprintf(buf + len, size - (size_t)len, ", with %" PRIu32,
					incident->xid[i].code);
}

void takt_rules_text(const struct takt_rules_finding *finding, bool names, char *buf, size_t size)
{
	const struct takt_evidence *evidence = &finding->evidence;
	int64_t divide = words[finding->kind].divide;
	int len;

	if (finding->kind == TAKT_FINDING_XID) {
		put_xid(finding->incident, names, buf, size);
		return;
	}
	len = snprintf(buf, size, "%s", words[finding->kind].before);
	if (words[finding->kind].unit && len >= 0 && (size_t)len < size)
		len += snprintf(buf + len, size - (size_t)len, "%" PRId64 "%s",
				evidence->value / divide, words[finding->kind].unit);
	if (words[finding->kind].between && len >= 0 && (size_t)len < size)
		snprintf(buf + len, size - (size_t)len, "%s%" PRId64 "%s",
			 words[finding->kind].between, evidence->limit / divide,
			 words[finding->kind].after);
}
