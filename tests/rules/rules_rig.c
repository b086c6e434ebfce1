/* SPDX-License-Identifier: Apache-2.0 */
/* The healthy board, and the faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules_rig.h"

#define S TAKT_NS_PER_S

enum {
	LOST_AT = 1140,
	HUNG_AT = 1130,
	SLOW_AT = 1185,
	EVENT_AT = 1170,
};

static const struct takt_rules_board usual_board = {
	.has = TAKT_BOARD_TEMP_MAX | TAKT_BOARD_MEMORY_TEMP_MAX | TAKT_BOARD_SM_MAX |
	       TAKT_BOARD_PCIE | TAKT_BOARD_POWER_DEFAULT,
	.temp_max_c = 90,
	.memory_temp_max_c = 95,
	.sm_max_mhz = 1980,
	.pcie_gen_max = 5,
	.pcie_width_max = 16,
	.power_default_mw = 700000,
};

static const struct takt_rules_sample usual = {
	.has = 0xffffffff & ~(uint32_t)(TAKT_SEEN_MARGIN | TAKT_SEEN_CEILING),
	.temp_c = 70,
	.memory_temp_c = 75,
	.util_pct = 98,
	.sm_mhz = 1900,
	.power_limit_mw = 700000,
	.pcie_gen = 5,
	.pcie_width = 16,
	.nvlinks_up = 18,
};

static bool is_late(const struct rig *rig)
{
	return rig->second >= RIG_MIDDLE;
}

static struct takt_mono now(const struct rig *rig)
{
	return (struct takt_mono){(rig->second + 1000) * S};
}

void rig_line(struct rig *rig, const char *line)
{
	struct takt_rules_event event = {
		.at = now(rig), .kind = TAKT_RULES_XID, .source = TAKT_INCIDENT_KERNEL_LOG};
	struct takt_log_reader reader = {0};

	assert_true(takt_log_read(&reader, line, strlen(line), &event.log));
	takt_rules_event(&rig->gpu, &event);
}

void rig_nvml(struct rig *rig, uint32_t xid)
{
	struct takt_rules_event event = {.at = now(rig),
					 .kind = TAKT_RULES_XID,
					 .source = TAKT_INCIDENT_NVML,
					 .log = {.code = xid, .link = -1}};

	takt_rules_event(&rig->gpu, &event);
}

/* In each second from the middle on the GPU is slow for so much of it. */
static void slow_for(struct rig *rig, enum takt_rules_slow slow, uint64_t ms, uint64_t reasons)
{
	if (!is_late(rig))
		return;
	rig->sample.slow_ns[slow] += ms * TAKT_NS_PER_MS;
	rig->sample.reasons |= reasons;
}

static void at_rest(struct rig *rig)
{
	rig->sample.util_pct = 0;
	rig->sample.pstate = 8;
	rig->sample.sm_mhz = 210;
	rig->sample.reasons |= 1;
}

static void low_clock(struct rig *rig, uint64_t reasons)
{
	rig->sample.sm_mhz = 900;
	rig->sample.reasons |= reasons;
}

#define ACT(name) static void act_##name(struct rig *rig)
#define WHEN(when) \
	if (when)  \
	rig->sample

ACT(nothing)
{
}
ACT(idle)
{
	at_rest(rig);
}
ACT(lost)
{
	rig->sample.lost = rig->second >= LOST_AT;
}
ACT(off_the_bus_line)
{
	if (rig->second == EVENT_AT)
		rig_line(rig, "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.");
}
ACT(xid_79_answers)
{
	if (rig->second == RIG_MIDDLE)
		rig_nvml(rig, 79);
}
ACT(slow_driver)
{
	rig->silent |= rig->second >= SLOW_AT;
}
ACT(hung_driver)
{
	rig->silent |= rig->second >= HUNG_AT;
}
ACT(driver_gone)
{
	rig->silent |= is_late(rig);
	takt_rules_driver(&rig->gpu, now(rig), is_late(rig));
}
ACT(hw_thermal)
{
	if (rig->second % 10 == 0)
		slow_for(rig, TAKT_SLOW_HW_THERMAL, 200, 0x48);
}
ACT(hw_thermal_bits)
{
	rig->sample.has &= ~(0x1fu * TAKT_SEEN_SLOW);
	if (is_late(rig) && rig->second % 20 == 0)
		rig->sample.reasons |= 0x48;
}
ACT(hw_thermal_blip)
{
	if (rig->second == EVENT_AT)
		slow_for(rig, TAKT_SLOW_HW_THERMAL, 900, 0x48);
}
ACT(sw_thermal)
{
	slow_for(rig, TAKT_SLOW_SW_THERMAL, 500, 0x20);
}
ACT(power_brake)
{
	slow_for(rig, TAKT_SLOW_POWER_BRAKE, 100, 0x88);
}
ACT(power_cap)
{
	slow_for(rig, TAKT_SLOW_POWER_CAP, 1000, 0x4);
}
ACT(sync_boost)
{
	slow_for(rig, TAKT_SLOW_SYNC_BOOST, 500, 0x10);
}
ACT(temp_margin)
{
	WHEN(is_late(rig)).temp_c = 86;
}
ACT(temp_over)
{
	WHEN(is_late(rig)).temp_c = 91;
}
ACT(temp_88)
{
	WHEN(is_late(rig)).temp_c = 88;
}
ACT(temp_85)
{
	WHEN(is_late(rig)).temp_c = 85;
}
ACT(memory_temp_over)
{
	WHEN(is_late(rig)).memory_temp_c = 96;
}
ACT(pcie_width_drop)
{
	WHEN(is_late(rig)).pcie_width = 8;
}
ACT(pcie_width_slot)
{
	rig->sample.pcie_width = 8;
}
ACT(pcie_gen_load)
{
	WHEN(is_late(rig)).pcie_gen = 1;
}
ACT(pcie_gen_idle)
{
	at_rest(rig);
	rig->sample.pcie_gen = 1;
}
ACT(pcie_replay)
{
	rig->sample.pcie_replays += is_late(rig) && rig->second % 3 == 0;
}
ACT(pcie_replay_slow)
{
	rig->sample.pcie_replays += rig->second % 10 == 0;
}
ACT(ecc_uncorrected)
{
	WHEN(is_late(rig)).ecc_uncorrected = 1;
}
ACT(ecc_corrected)
{
	rig->sample.ecc_corrected += rig->second % 60 == 0;
}
ACT(ecc_corrected_rate)
{
	rig->sample.ecc_corrected += is_late(rig);
}
ACT(row_pending)
{
	WHEN(is_late(rig)).row_pending = true;
}
ACT(row_failed)
{
	WHEN(is_late(rig)).row_failed = true;
}
ACT(pages_many)
{
	WHEN(is_late(rig)).pages_retired = 15;
}
ACT(pages_full)
{
	WHEN(is_late(rig)).pages_retired = 63;
}
ACT(page_pending)
{
	WHEN(is_late(rig)).page_pending = true;
}
ACT(sram_threshold)
{
	WHEN(is_late(rig)).sram_threshold = true;
}
ACT(nvlink_down)
{
	WHEN(is_late(rig)).nvlinks_up = 17;
}
ACT(nvlink_unbridged)
{
	rig->sample.nvlinks_up = 4;
}
ACT(nvlink_too_few)
{
	rig->sample.nvlinks_up = 16;
}
ACT(nvlink_replays)
{
	rig->sample.nvlink_errors += rig->second == 1100;
}
ACT(nvlink_crc)
{
	rig->sample.nvlink_crc += is_late(rig) ? 200 : 0;
}
ACT(nvlink_crc_few)
{
	rig->sample.nvlink_crc += 10;
}
ACT(clock_low)
{
	if (is_late(rig))
		low_clock(rig, 0);
}
ACT(clock_ours)
{
	rig->sample.has |= TAKT_SEEN_CEILING;
	rig->sample.ceiling_mhz = 900;
	low_clock(rig, 0x2);
}
ACT(clock_locked)
{
	if (is_late(rig))
		low_clock(rig, 0x2);
}
ACT(clock_limit)
{
	rig->sample.power_limit_mw = 400000;
	slow_for(rig, TAKT_SLOW_POWER_CAP, 1000, 0x4);
}
ACT(recovery_reset)
{
	WHEN(is_late(rig)).recovery = 1;
}
ACT(recovery_reboot)
{
	WHEN(is_late(rig)).recovery = 2;
}
ACT(recovery_p2p)
{
	WHEN(is_late(rig)).recovery = 3;
}
ACT(recovery_drain)
{
	WHEN(is_late(rig)).recovery = 4;
}
ACT(xid_154_reset)
{
	rig->sample.has &= ~(uint32_t)TAKT_SEEN_RECOVERY;
	if (rig->second == EVENT_AT)
		rig_line(rig, "NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from "
			      "0x0 (None) to 0x1 (GPU Reset Required)");
}
ACT(xid_13_two_apps)
{
	if (rig->second == EVENT_AT)
		rig_line(rig,
			 "NVRM: Xid (PCI:0000:18:00): 13, pid=7, name=train, Graphics Exception");
	if (rig->second == EVENT_AT + 10)
		rig_line(rig,
			 "NVRM: Xid (PCI:0000:18:00): 13, pid=9, name=serve, Graphics Exception");
}
ACT(xid_145_fatal)
{
	if (rig->second == EVENT_AT)
		rig_line(rig, "NVRM: Xid (PCI:0000:18:00): 145, RLW_REMAP Fatal XC0 i0 Link 00 "
			      "(0x00000004 0x00000040 0x0 0x0)");
}
ACT(xid_145_nonfatal)
{
	if (rig->second == EVENT_AT)
		rig_line(rig, "NVRM: Xid (PCI:0000:18:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
			      "(0x0409a0c2 0x00000008 0x00000001 0x00000000)");
}
ACT(xid_149_down)
{
	if (rig->second == EVENT_AT)
		rig_line(rig,
			 "NVRM: Xid (PCI:0000:18:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 "
			 "(0x025001c6 0x00000000 0x00000000 0x00000000)");
}

static void target_88(struct takt_rules_board *board)
{
	board->has |= TAKT_BOARD_TEMP_TARGET;
	board->temp_target_c = 88;
}

static void max_95(struct takt_rules_board *board)
{
	board->temp_max_c = 95;
}

static void wants_18_links(struct takt_rules_board *board)
{
	board->has |= TAKT_BOARD_NVLINKS;
	board->nvlinks = 18;
}

#define IDLE_READS (RIG_LOAD | RIG_WIDTH | RIG_GEN | RIG_CLOCK)
#define COUNTED	   (RIG_CAP | RIG_SYNC | RIG_SW_THERMAL | RIG_HW_THERMAL | RIG_BRAKE)

static const struct rig_fault faults[] = {
	{"healthy", 0, NULL, act_nothing},
	{"idle", IDLE_READS, NULL, act_idle},
	{"lost", RIG_ANSWER, NULL, act_lost},
	{"off-the-bus-line", 0, NULL, act_off_the_bus_line},
	{"xid-79-answers", RIG_DRIVER, NULL, act_xid_79_answers},
	{"slow-driver", RIG_ANSWER, NULL, act_slow_driver},
	{"hung-driver", RIG_ANSWER, NULL, act_hung_driver},
	{"driver-gone", RIG_ANSWER | RIG_DRIVER, NULL, act_driver_gone},
	{"hw-thermal", RIG_HW_THERMAL, NULL, act_hw_thermal},
	{"hw-thermal-bits", COUNTED, NULL, act_hw_thermal_bits},
	{"hw-thermal-blip", RIG_HW_THERMAL, NULL, act_hw_thermal_blip},
	{"sw-thermal", RIG_SW_THERMAL, NULL, act_sw_thermal},
	{"power-brake", RIG_BRAKE, NULL, act_power_brake},
	{"power-cap", RIG_CAP | RIG_CLOCK, NULL, act_power_cap},
	{"sync-boost", RIG_SYNC | RIG_CLOCK, NULL, act_sync_boost},
	{"temp-margin", RIG_HEAT, NULL, act_temp_margin},
	{"temp-over", RIG_HEAT, NULL, act_temp_over},
	{"temp-at-target", RIG_HEAT, target_88, act_temp_88},
	{"temp-88-of-90", RIG_HEAT, NULL, act_temp_88},
	{"temp-85-of-95", RIG_HEAT, max_95, act_temp_85},
	{"memory-temp-over", RIG_MEMORY_HEAT, NULL, act_memory_temp_over},
	{"pcie-width-drop", RIG_WIDTH, NULL, act_pcie_width_drop},
	{"pcie-width-slot", RIG_WIDTH, NULL, act_pcie_width_slot},
	{"pcie-gen-load", RIG_GEN, NULL, act_pcie_gen_load},
	{"pcie-gen-idle", IDLE_READS, NULL, act_pcie_gen_idle},
	{"pcie-replay", RIG_REPLAYS, NULL, act_pcie_replay},
	{"pcie-replay-slow", RIG_REPLAYS, NULL, act_pcie_replay_slow},
	{"ecc-uncorrected", RIG_UNCORRECTED, NULL, act_ecc_uncorrected},
	{"ecc-corrected", RIG_CORRECTED, NULL, act_ecc_corrected},
	{"ecc-corrected-rate", RIG_CORRECTED, NULL, act_ecc_corrected_rate},
	{"row-pending", RIG_ROW_PENDING, NULL, act_row_pending},
	{"row-failed", RIG_ROW_FAILED, NULL, act_row_failed},
	{"pages-many", RIG_PAGES, NULL, act_pages_many},
	{"pages-full", RIG_PAGES, NULL, act_pages_full},
	{"page-pending", RIG_PAGE_PENDING, NULL, act_page_pending},
	{"sram-threshold", RIG_SRAM, NULL, act_sram_threshold},
	{"nvlink-down", RIG_LINKS, NULL, act_nvlink_down},
	{"nvlink-unbridged", RIG_LINKS, NULL, act_nvlink_unbridged},
	{"nvlink-too-few", RIG_LINKS, wants_18_links, act_nvlink_too_few},
	{"nvlink-replays", RIG_LINK_ERRORS, NULL, act_nvlink_replays},
	{"nvlink-crc", RIG_CRC, NULL, act_nvlink_crc},
	{"nvlink-crc-few", RIG_CRC, NULL, act_nvlink_crc_few},
	{"clock-low", RIG_CLOCK, NULL, act_clock_low},
	{"clock-ours", RIG_CLOCK, NULL, act_clock_ours},
	{"clock-locked", RIG_CLOCK, NULL, act_clock_locked},
	{"clock-limit", RIG_CLOCK | RIG_CAP, NULL, act_clock_limit},
	{"recovery-reset", RIG_RECOVERY, NULL, act_recovery_reset},
	{"recovery-reboot", RIG_RECOVERY, NULL, act_recovery_reboot},
	{"recovery-p2p", RIG_RECOVERY, NULL, act_recovery_p2p},
	{"recovery-drain", RIG_RECOVERY, NULL, act_recovery_drain},
	{"xid-154-reset", RIG_RECOVERY, NULL, act_xid_154_reset},
	{"xid-13-two-apps", RIG_APPS, NULL, act_xid_13_two_apps},
	{"xid-145-fatal", RIG_APPS, NULL, act_xid_145_fatal},
	{"xid-145-nonfatal", RIG_APPS, NULL, act_xid_145_nonfatal},
	{"xid-149-down", 0, NULL, act_xid_149_down},
};

size_t rig_fault_count(void)
{
	return sizeof(faults) / sizeof(faults[0]);
}

struct rig_fault rig_fault_named(const char *name)
{
	unsigned code;
	char end;

	for (size_t i = 0; i < rig_fault_count(); i++)
		if (strcmp(faults[i].name, name) == 0)
			return faults[i];
	if (sscanf(name, "xid-%u%c", &code, &end) != 1)
		fail_msg("nothing does '%s'", name);
	return (struct rig_fault){.name = name};
}

void rig_begin(struct rig *rig)
{
	*rig = (struct rig){.board = usual_board, .sample = usual};
	takt_rules_init(&rig->gpu, &rig->board);
}

void rig_step(struct rig *rig)
{
	rig->sample.at = now(rig);
	if (!rig->silent)
		takt_rules_sample(&rig->gpu, &rig->sample);
	takt_rules_tick(&rig->gpu, now(rig), true);
	rig->second++;
}

void rig_steps(struct rig *rig, uint32_t count)
{
	while (count-- > 0)
		rig_step(rig);
}

void rig_sleep(struct rig *rig, uint32_t seconds)
{
	for (; seconds > 0; seconds--, rig->second++)
		takt_rules_tick(&rig->gpu, now(rig), false);
}

static void act(struct rig *rig, const struct rig_fault *fault)
{
	if (!fault)
		return;
	if (fault->act)
		fault->act(rig);
	else if (rig->second == EVENT_AT)
		rig_nvml(rig, (uint32_t)atoi(fault->name + strlen("xid-")));
}

/* All but the counters is as usual again, before the faults act. */
static void refresh(struct rig *rig)
{
	struct takt_rules_sample sample = usual;

	memcpy(sample.slow_ns, rig->sample.slow_ns, sizeof(sample.slow_ns));
	sample.pcie_replays = rig->sample.pcie_replays;
	sample.nvlink_errors = rig->sample.nvlink_errors;
	sample.nvlink_crc = rig->sample.nvlink_crc;
	sample.ecc_corrected = rig->sample.ecc_corrected;
	rig->sample = sample;
	rig->silent = false;
}

void rig_run(struct rig *rig, const struct rig_fault *first, const struct rig_fault *second)
{
	rig_begin(rig);
	if (first && first->board)
		first->board(&rig->board);
	if (second && second->board)
		second->board(&rig->board);
	takt_rules_init(&rig->gpu, &rig->board);
	while (rig->second < RIG_SECONDS) {
		refresh(rig);
		act(rig, first);
		act(rig, second);
		rig_step(rig);
	}
}
