/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor's checks on written-down facts: each is quiet on a machine that is well, and says its
 * verdict where something is not. What boards answer at rest and under load is from captures of an
 * RTX 4080 Super (driver 595) and an H100 (590).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "health/doctor.h"

static struct takt_doctor_facts facts;
static struct takt_doctor_report report;

static struct takt_gpu_reading working(void)
{
	return (struct takt_gpu_reading){
		.has = TAKT_HAS_SM_CLOCK | TAKT_HAS_POWER_LIMIT | TAKT_HAS_TEMP |
		       TAKT_HAS_GPU_UTIL | TAKT_HAS_MEMORY | TAKT_HAS_RESERVED | TAKT_HAS_THROTTLE |
		       TAKT_HAS_PSTATE | TAKT_HAS_PCIE | TAKT_HAS_PROCS | TAKT_HAS_PERSISTENCE |
		       TAKT_HAS_ECC,
		.sm_mhz = 1980,
		.power_limit_mw = 700000,
		.temp_c = 40,
		.gpu_util_pct = 100,
		.mem_used_bytes = 20ull << 30,
		.throttle = 0,
		.pcie_gen = 5,
		.pcie_width = 16,
		.persistence = true,
		.proc_count = 1,
		.procs = {{.pid = 100}},
	};
}

static struct takt_gpu_reading resting(void)
{
	struct takt_gpu_reading r = working();

	r.gpu_util_pct = 0;
	r.throttle = TAKT_THROTTLE_IDLE;
	r.sm_mhz = 345;
	r.mem_used_bytes = 0;
	r.proc_count = 0;
	return r;
}

static void see(uint32_t gpu, struct takt_gpu_reading r, int times)
{
	struct takt_doctor_gpu *g = &facts.gpu[gpu];

	g->samples = g->busy = g->full = g->loaded = g->no_procs = g->throttled_known = 0;
	g->throttle_any = g->throttle_all = g->least_held_bytes = 0;
	g->sm_max_seen_mhz = g->gen_seen = g->width_seen = g->pstate_best = 0;
	for (int i = 0; i < times; i++)
		takt_doctor_see(g, &r);
}

static void make_gpu(uint32_t i)
{
	struct takt_doctor_gpu *g = &facts.gpu[i];

	g->facts = (struct takt_gpu_facts){
		.has = TAKT_FACT_NAME | TAKT_FACT_PCI | TAKT_FACT_POWER_LIMITS | TAKT_FACT_SM_MAX |
		       TAKT_FACT_COMPUTE_CAP | TAKT_FACT_NUMA | TAKT_FACT_PCIE_MAX,
		.name = "NVIDIA H100 80GB HBM3",
		.power_default_mw = 700000,
		.sm_max_mhz = 1980,
		.compute_major = 9,
		.pcie_gen_max = 5,
		.pcie_width_max = 16,
	};
	snprintf(g->facts.pci_bus_id, sizeof(g->facts.pci_bus_id), "00000000:%02X:00.0", 0x40 + i);
	g->board_known = true;
	g->board = (struct takt_gpu_board){
		.has = TAKT_BOARD_ECC_MODE | TAKT_BOARD_MIG_MODE | TAKT_BOARD_ROWS |
		       TAKT_BOARD_PAGES_PENDING | TAKT_BOARD_NVLINK | TAKT_BOARD_FABRIC |
		       TAKT_BOARD_MARGIN | TAKT_BOARD_COMPUTE_MODE,
		.ecc_on = true,
		.ecc_pending_on = true,
		.nvlinks = 18,
		.nvlinks_up = 18,
		.fabric_state = 3,
		.margin_c = 40,
	};
	g->procs_checked = true;
	facts.pci[i] = (struct takt_doctor_pci){.driver = "nvidia", .port_max_width = 16};
	snprintf(facts.pci[i].id, sizeof(facts.pci[i].id), "0000:%02x:00.0", 0x40 + i);
	see(i, working(), 3);
}

/* Two H100 at work on a machine where all is as it should be. */
static int make_well(void **state)
{
	facts = (struct takt_doctor_facts){
		.has = TAKT_DOCTOR_KERNEL_MODULE | TAKT_DOCTOR_CUDA_LIB | TAKT_DOCTOR_BUS |
		       TAKT_DOCTOR_MODULES | TAKT_DOCTOR_PROCESSES | TAKT_DOCTOR_NUMA_NODES |
		       TAKT_DOCTOR_PORTS | TAKT_DOCTOR_DEV_CHAR,
		.kernel_version = "550.90.07",
		.cuda_lib_version = "550.90.07",
		.info = {.driver_version = "550.90.07",
			 .nvml_version = "12.550.90.07",
			 .cuda_version = 12040},
		.gpu_count = 2,
		.pci_count = 2,
		.numa_nodes = 2,
		.nvswitches = 4,
		.fabric_manager = true,
		.fabric_manager_version = "550.90.07",
		.supplies = 2,
		.fans = 8,
		.peermem = true,
		.port_count = 1,
		.port = {{"mlx5_0", 1, false, "ACTIVE", "LinkUp", 400}},
		.containers = {.docker = true,
			       .which = "docker",
			       .toolkit = true,
			       .runtime_named = true,
			       .systemd = true,
			       .char_links = true,
			       .cdi_path = "/etc/cdi/nvidia.yaml",
			       .cdi_version = "550.90.07"},
		.package_count = 1,
		.package = {{"PyTorch", "2.6.0+cu124", "12.4", "/usr/lib/torch"}},
	};
	facts.nvlinks[0][1] = facts.nvlinks[1][0] = 18;
	make_gpu(0);
	make_gpu(1);
	return 0;
}

static int release(void **state)
{
	takt_doctor_report_fini(&report);
	return 0;
}

static void judge(void)
{
	takt_doctor_report_fini(&report);
	takt_doctor_judge(&facts, &report);
	assert_int_equal(report.rc, 0);
}

/* The worst that a check says of these GPUs; -1 = it says nothing of them. */
static int verdict_of(const char *check, uint64_t gpus)
{
	int worst = -1;

	TAKT_VEC_EACH (f, &report.findings)
		if (strcmp(f->check->name, check) == 0 && f->gpus == gpus &&
		    (int)f->verdict > worst)
			worst = f->verdict;
	return worst;
}

static void expect(const char *check, uint64_t gpus, int verdict)
{
	judge();
	if (verdict_of(check, gpus) == verdict)
		return;
	TAKT_VEC_EACH (f, &report.findings)
		print_message("%s %s %llx %s\n", takt_doctor_verdicts[f->verdict], f->check->name,
			      (unsigned long long)f->gpus, f->text);
	fail_msg("%s of %llx", check, (unsigned long long)gpus);
}

static void expect_only(const char *check, uint64_t gpus, int verdict)
{
	expect(check, gpus, verdict);
	TAKT_VEC_EACH (f, &report.findings)
		if (f->verdict >= TAKT_DOCTOR_WARNING)
			assert_string_equal(f->check->name, check);
}

static void a_machine_that_is_well_passes_every_check(void **state)
{
	judge();
	TAKT_VEC_EACH (f, &report.findings)
		if (f->verdict != TAKT_DOCTOR_PASS)
			fail_msg("%s: %s", f->check->name, f->text);
	assert_int_equal(report.todo.len, 0);
	assert_int_equal(takt_doctor_exit(&report), 0);
	assert_int_equal(verdict_of("nvlink", 3), TAKT_DOCTOR_PASS);
}

static void a_driver_that_cannot_be_asked_is_said_why(void **state)
{
	facts.gpu_count = 0;
	facts.asked = TAKT_ASKED_FAILED;
	facts.open_code = TAKT_DRIVER_MISMATCH;
	expect_only("driver", 0, TAKT_DOCTOR_CRITICAL);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_RESTART);
	facts.open_code = TAKT_DRIVER_NO_PERMISSION;
	expect_only("driver", 0, TAKT_DOCTOR_UNKNOWN);
	assert_int_equal(takt_doctor_exit(&report), 3);
	facts.asked = TAKT_ASKED_HANGS;
	expect_only("driver", 0, TAKT_DOCTOR_CRITICAL);
	facts.asked = TAKT_ASKED_NO_MODULE;
	expect_only("driver", 0, TAKT_DOCTOR_CRITICAL);
	facts.asked = TAKT_ASKED_ASLEEP;
	facts.pci[0].asleep = facts.pci[1].asleep = true;
	expect_only("driver", 0, TAKT_DOCTOR_UNKNOWN);
	assert_int_equal(takt_doctor_exit(&report), 3);
	facts.asked = TAKT_ASKED_NO_LIB;
	facts.pci_count = 0;
	expect_only("driver", 0, TAKT_DOCTOR_UNKNOWN);
}

static void parts_of_two_drivers_are_found(void **state)
{
	strcpy(facts.cuda_lib_version, "535.183.06");
	expect_only("driver-versions", 0, TAKT_DOCTOR_CRITICAL);
	strcpy(facts.cuda_lib_version, "550.90.07");
	strcpy(facts.info.nvml_version, "12.535.183.06");
	expect_only("driver-versions", 0, TAKT_DOCTOR_WARNING);
}

static void gpus_that_the_driver_lacks_are_found_on_the_bus(void **state)
{
	facts.pci_count = 3;
	facts.pci[2] = (struct takt_doctor_pci){.id = "0000:99:00.0", .driver = "nvidia"};
	expect_only("gpu-presence", 0, TAKT_DOCTOR_CRITICAL);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_RESTART);
	facts.in_container = true;
	expect_only("gpu-presence", 0, TAKT_DOCTOR_UNKNOWN);
	facts.in_container = false;
	strcpy(facts.pci[2].driver, "vfio-pci");
	expect_only("gpu-presence", 0, TAKT_DOCTOR_INFO);
	strcpy(facts.pci[2].driver, "nouveau");
	expect_only("gpu-presence", 0, TAKT_DOCTOR_CRITICAL);
	facts.pci[2].driver[0] = '\0';
	expect_only("gpu-presence", 0, TAKT_DOCTOR_WARNING);
}

static void a_lost_gpu_is_one_finding_and_no_other_check_speaks_of_it(void **state)
{
	facts.gpu[1].last.lost = true;
	facts.gpu[1].board.nvlinks_up = 0;
	facts.gpu[1].board.rows_pending = true;
	expect_only("gpu-presence", 2, TAKT_DOCTOR_CRITICAL);
	assert_int_equal(report.todo.len, 1);
	facts.gpu[1].last.lost = false;
	facts.gpu[1].silent = true;
	expect_only("gpu-presence", 2, TAKT_DOCTOR_CRITICAL);
}

static void modes_and_memory_that_wait_for_a_reset_are_one_action(void **state)
{
	facts.gpu[0].board.ecc_pending_on = false;
	facts.gpu[1].board.rows_pending = true;
	judge();
	assert_int_equal(verdict_of("ecc-pending", 1), TAKT_DOCTOR_WARNING);
	assert_int_equal(verdict_of("ecc-pending", 2), TAKT_DOCTOR_PASS);
	assert_int_equal(verdict_of("row-remap", 2), TAKT_DOCTOR_WARNING);
	assert_int_equal(report.todo.len, 1);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_RESET);
	assert_int_equal(report.todo.at[0].gpus, 3);
	assert_int_equal(takt_doctor_exit(&report), 1);
}

static void what_a_restart_does_anyway_is_not_asked_for_beside_it(void **state)
{
	facts.gpu[0].board.rows_pending = true;
	facts.gpu[1].last.lost = true;
	judge();
	assert_int_equal(report.todo.len, 1);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_RESTART);
	assert_int_equal(takt_doctor_exit(&report), 2);
}

static void memory_errors_have_their_grades(void **state)
{
	facts.gpu[0].last.ecc_uncorrected = 2;
	expect_only("ecc-errors", 1, TAKT_DOCTOR_CRITICAL);
	facts.gpu[0].last.ecc_uncorrected = 0;
	facts.gpu[0].board.rows_failed = true;
	expect_only("row-remap", 1, TAKT_DOCTOR_CRITICAL);
	facts.gpu[0].board.rows_failed = false;
	facts.gpu[0].board.pages_pending = true;
	expect_only("retired-pages", 1, TAKT_DOCTOR_WARNING);
	facts.gpu[0].board.pages_pending = false;
	facts.gpu[0].board.has |= TAKT_BOARD_PAGES;
	facts.gpu[0].board.pages = 63;
	expect_only("retired-pages", 1, TAKT_DOCTOR_CRITICAL);
	facts.gpu[0].board.pages = 15;
	expect_only("retired-pages", 1, TAKT_DOCTOR_INFO);
	facts.gpu[0].board.pages = 0;
	facts.gpu[0].board.mig_pending_on = true;
	expect_only("mig-pending", 1, TAKT_DOCTOR_WARNING);
}

static void memory_that_nobody_holds_is_found(void **state)
{
	struct takt_gpu_reading r = resting();

	see(0, r, 3);
	judge();
	assert_int_equal(verdict_of("memory-held", 3), TAKT_DOCTOR_PASS);
	r.mem_used_bytes = 30ull << 30;
	see(0, r, 3);
	expect_only("memory-held", 1, TAKT_DOCTOR_WARNING);
	facts.hides_processes = true;
	expect_only("memory-held", 3, TAKT_DOCTOR_UNKNOWN);
	facts.hides_processes = false;
	r.has &= ~(uint32_t)TAKT_HAS_RESERVED;
	see(0, r, 3);
	expect_only("memory-held", 1, TAKT_DOCTOR_UNKNOWN);
	facts.gpu[1].dead_procs = 1;
	expect("dead-process", 2, TAKT_DOCTOR_WARNING);
	/* In a container that says nothing. */
	facts.other_namespace = true;
	expect("dead-process", 2, TAKT_DOCTOR_UNKNOWN);
	facts.gpu[1].dead_procs = 0;
	judge();
	assert_int_equal(verdict_of("dead-process", 3), TAKT_DOCTOR_PASS);
	facts.hides_processes = true;
	facts.gpu[1].last.proc_count = 1;
	expect("dead-process", 2, TAKT_DOCTOR_UNKNOWN);
	facts.other_namespace = facts.hides_processes = false;
	facts.gpu[1].board.compute_mode = TAKT_COMPUTE_PROHIBITED;
	expect("compute-mode", 2, TAKT_DOCTOR_WARNING);
}

static void a_slow_link_counts_under_load_alone(void **state)
{
	struct takt_gpu_reading r = resting();

	/* An RTX 4080 Super at rest. */
	r.pcie_gen = 1;
	r.pstate = 8;
	see(0, r, 3);
	expect("pcie-generation", 1, TAKT_DOCTOR_UNKNOWN);
	r = working();
	r.pstate = 2;
	see(0, r, 3);
	expect("pcie-generation", 3, TAKT_DOCTOR_PASS);
	r.pcie_gen = 3;
	see(0, r, 3);
	expect_only("pcie-generation", 1, TAKT_DOCTOR_WARNING);
	see(0, r, 1);
	expect("pcie-generation", 1, TAKT_DOCTOR_UNKNOWN);
}

static void missing_lanes_count_always_but_where_the_slot_has_none(void **state)
{
	struct takt_gpu_reading r = resting();

	r.pcie_width = 8;
	see(0, r, 3);
	expect_only("pcie-width", 1, TAKT_DOCTOR_WARNING);
	facts.pci[0].port_max_width = 8;
	expect_only("pcie-width", 1, TAKT_DOCTOR_INFO);
	facts.pci[0].port_max_width = 0;
	expect_only("pcie-width", 1, TAKT_DOCTOR_WARNING);
}

static void nvlinks_that_are_down(void **state)
{
	facts.gpu[1].board.nvlinks_up = 16;
	expect_only("nvlink", 2, TAKT_DOCTOR_CRITICAL);
	/* Boards in slots: without a bridge all are down, which is how they were bought. */
	for (int i = 0; i < 2; i++) {
		strcpy(facts.gpu[i].facts.name, "NVIDIA RTX A6000");
		facts.gpu[i].board.nvlinks = 4;
		facts.gpu[i].board.nvlinks_up = 0;
	}
	expect_only("nvlink", 3, TAKT_DOCTOR_INFO);
	facts.gpu[0].board.nvlinks_up = 4;
	expect_only("nvlink", 2, TAKT_DOCTOR_WARNING);
}

static void a_fabric_that_is_not_there(void **state)
{
	facts.gpu[0].board.fabric_state = 2;
	expect_only("fabric", 1, TAKT_DOCTOR_CRITICAL);
	for (int i = 0; i < 2; i++)
		facts.gpu[i].board.has &= ~(uint32_t)TAKT_BOARD_FABRIC;
	expect_only("fabric", 0, TAKT_DOCTOR_PASS);
	facts.fabric_manager = false;
	expect_only("fabric", 0, TAKT_DOCTOR_CRITICAL);
	facts.has &= ~(uint32_t)TAKT_DOCTOR_PROCESSES;
	expect_only("fabric", 0, TAKT_DOCTOR_UNKNOWN);
	facts.nvswitches = 0;
	expect_only("fabric", 0, -1);
}

static void peers(uint8_t status)
{
	facts.gpu[0].board.peer[1] = facts.gpu[1].board.peer[0] = status;
}

static void peer_access_and_what_stands_between(void **state)
{
	peers(TAKT_PEER_NOT_SUPPORTED);
	expect_only("peer-access", 3, TAKT_DOCTOR_WARNING);
	facts.nvlinks[0][1] = facts.nvlinks[1][0] = 0;
	expect_only("peer-access", 3, TAKT_DOCTOR_INFO);
	peers(TAKT_PEER_DISABLED);
	expect_only("peer-access", 3, TAKT_DOCTOR_WARNING);
	peers(TAKT_PEER_UNKNOWN);
	expect_only("peer-access", 3, TAKT_DOCTOR_UNKNOWN);
	peers(TAKT_PEER_OK);
	for (int i = 0; i < 2; i++)
		strcpy(facts.pci[i].switch_id, "0000:3b:00.0");
	expect_only("acs", 3, TAKT_DOCTOR_UNKNOWN);
	facts.pci[0].acs_known = facts.pci[1].acs_known = true;
	expect_only("acs", 3, TAKT_DOCTOR_PASS);
	facts.pci[0].acs_redirects = true;
	expect_only("acs", 1, TAKT_DOCTOR_WARNING);
}

static void a_lowered_power_limit(void **state)
{
	facts.gpu[0].last.power_limit_mw = 400000;
	expect_only("power-cap", 1, TAKT_DOCTOR_WARNING);
	facts.gpu[0].held_by_takt = true;
	expect_only("power-cap", 1, TAKT_DOCTOR_INFO);
}

static void throttle(uint64_t reasons, int verdict)
{
	struct takt_gpu_reading r = working();

	r.throttle = reasons;
	see(0, r, 3);
	expect_only("throttle", 1, verdict);
}

static void reasons_for_low_clocks_and_the_cause_among_them(void **state)
{
	struct takt_gpu_reading r = working();

	throttle(TAKT_THROTTLE_SW_POWER, TAKT_DOCTOR_INFO);
	throttle(TAKT_THROTTLE_SW_THERMAL, TAKT_DOCTOR_WARNING);
	throttle(TAKT_THROTTLE_HW_SLOWDOWN | TAKT_THROTTLE_HW_THERMAL, TAKT_DOCTOR_CRITICAL);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_COOLING);
	throttle(TAKT_THROTTLE_HW_SLOWDOWN | TAKT_THROTTLE_POWER_BRAKE, TAKT_DOCTOR_CRITICAL);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_POWER);
	/* One sample of three is no state. */
	r.throttle = TAKT_THROTTLE_SW_THERMAL;
	see(0, working(), 2);
	takt_doctor_see(&facts.gpu[0], &r);
	expect_only("throttle", 3, TAKT_DOCTOR_PASS);
	see(0, resting(), 3);
	expect_only("throttle", 1, TAKT_DOCTOR_UNKNOWN);
}

static void somebodys_clock_lock(void **state)
{
	struct takt_gpu_reading r = working();

	r.throttle = TAKT_THROTTLE_APP_CLOCKS;
	r.sm_mhz = 1200;
	see(0, r, 3);
	judge();
	assert_int_equal(verdict_of("clock-lock", 1), TAKT_DOCTOR_WARNING);
	assert_int_equal(verdict_of("clock-skew", 1), TAKT_DOCTOR_INFO);
	/* Locked clocks have no reason of their own: slow, and none given. */
	r.throttle = 0;
	see(0, r, 3);
	expect_only("clock-lock", 1, TAKT_DOCTOR_WARNING);
	r.throttle = TAKT_THROTTLE_SW_POWER;
	see(0, r, 3);
	expect_only("clock-lock", 3, TAKT_DOCTOR_PASS);
	r.throttle = 0;
	r.gpu_util_pct = 30; /* the driver need not hurry */
	see(0, r, 3);
	expect_only("clock-lock", 3, TAKT_DOCTOR_PASS);
	/* A V100 keeps to its own application clock, and says so. */
	r.throttle = TAKT_THROTTLE_APP_CLOCKS;
	facts.gpu[0].board.has |= TAKT_BOARD_APP_CLOCK;
	facts.gpu[0].board.app_sm_mhz = facts.gpu[0].board.app_default_sm_mhz = 1200;
	see(0, r, 3);
	expect_only("clock-lock", 3, TAKT_DOCTOR_PASS);
	facts.gpu[0].board.has &= ~(uint32_t)TAKT_BOARD_APP_CLOCK;
	see(0, r, 3);
	facts.gpu[0].held_by_takt = true;
	expect_only("clock-lock", 1, TAKT_DOCTOR_PASS);
	facts.gpu[0].held_by_takt = false;
	see(0, resting(), 3);
	expect_only("clock-lock", 1, TAKT_DOCTOR_UNKNOWN);
	facts.gpu[0].board.has |= TAKT_BOARD_APP_CLOCK;
	facts.gpu[0].board.app_sm_mhz = 900;
	facts.gpu[0].board.app_default_sm_mhz = 1980;
	expect_only("clock-lock", 1, TAKT_DOCTOR_WARNING);
}

static void heat_is_judged_by_the_boards_own_margin(void **state)
{
	/* 88 degrees with 9 left: an RTX 2080 Super's slowdown is at 97. */
	facts.gpu[0].board.margin_c = 9;
	facts.gpu[0].last.temp_c = 88;
	expect_only("temperature", 3, TAKT_DOCTOR_PASS);
	facts.gpu[0].board.margin_c = 4;
	expect_only("temperature", 1, TAKT_DOCTOR_WARNING);
	facts.gpu[0].board.has &= ~(uint32_t)TAKT_BOARD_MARGIN;
	expect_only("temperature", 1, TAKT_DOCTOR_UNKNOWN);
	facts.gpu[0].facts.has |= TAKT_FACT_THROTTLE_TEMP;
	facts.gpu[0].facts.slowdown_temp_c = 92;
	expect_only("temperature", 1, TAKT_DOCTOR_WARNING);
}

static void a_fabric_manager_of_another_version(void **state)
{
	strcpy(facts.fabric_manager_version, "550.54.15");
	expect_only("fabric-manager", 0, TAKT_DOCTOR_WARNING);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_MANAGER);
	facts.fabric_manager_version[0] = '\0';
	expect_only("fabric-manager", 0, -1);
}

static void fans_that_stand_still_or_can_no_more(void **state)
{
	struct takt_gpu_reading *r = &facts.gpu[0].last;

	r->has |= TAKT_HAS_FAN;
	r->fan_pct = 0; /* as those of cool boards */
	expect_only("cooling", 1, -1);
	facts.gpu[0].board.margin_c = 12;
	expect_only("cooling", 1, TAKT_DOCTOR_WARNING);
	r->fan_pct = 60;
	expect_only("cooling", 1, -1);
	r->fan_pct = 100;
	expect_only("cooling", 1, TAKT_DOCTOR_WARNING);
	facts.gpu[0].board.margin_c = 30;
	expect_only("cooling", 1, -1);
	expect_only("cooling", 0, TAKT_DOCTOR_PASS);
	facts.alarm_count = 1;
	facts.alarm[0] = (struct takt_doctor_alarm){false, "nct6775", "fan3_fault"};
	expect_only("cooling", 0, TAKT_DOCTOR_WARNING);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_COOLING);
}

static void warm_and_drawing(uint32_t gpu, int32_t temp_c, uint32_t power_mw)
{
	struct takt_gpu_reading r = working();

	r.has |= TAKT_HAS_POWER;
	r.temp_c = temp_c;
	r.power_mw = power_mw;
	see(gpu, r, 3);
}

static void a_board_that_is_warmer_than_its_like(void **state)
{
	make_gpu(2);
	facts.gpu_count = facts.pci_count = 3;
	for (uint32_t i = 0; i < 3; i++)
		warm_and_drawing(i, 50, 600000);
	expect("cooling", 7, TAKT_DOCTOR_PASS);
	warm_and_drawing(1, 71, 600000);
	expect("cooling", 2, TAKT_DOCTOR_WARNING);
	warm_and_drawing(1, 71, 700000); /* and does more */
	expect("cooling", 7, TAKT_DOCTOR_PASS);
	warm_and_drawing(1, 71, 600000);
	see(2, resting(), 3); /* one other at work is no measure */
	expect("cooling", 2, -1);
}

static void a_supply_that_is_out_and_a_boards_cable(void **state)
{
	struct takt_gpu_reading r = working();

	r.throttle = TAKT_THROTTLE_HW_SLOWDOWN | TAKT_THROTTLE_POWER_BRAKE;
	expect("power-supply", 0, TAKT_DOCTOR_PASS);
	see(0, r, 3);
	expect("power-supply", 1, TAKT_DOCTOR_INFO);
	see(1, r, 3);
	expect("power-supply", 3, TAKT_DOCTOR_CRITICAL);
	see(0, working(), 3);
	see(1, working(), 3);
	facts.alarm_count = 1;
	facts.alarm[0] = (struct takt_doctor_alarm){true, "pfe1100", "in1_alarm"};
	expect_only("power-supply", 0, TAKT_DOCTOR_WARNING);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_POWER);
}

/* Every allocation fails once: said, and what is there stays sound. */
static void a_report_without_memory_says_so(void **state)
{
	unsigned long n = 0;

	facts.gpu[0].board.margin_c = 2;
	facts.gpu[1].board.rows_pending = true;
	do {
		takt_doctor_report_fini(&report);
		takt_alloc_fail_nth(++n, 0);
		takt_doctor_judge(&facts, &report);
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(report.worst, TAKT_DOCTOR_WARNING);
	} while (report.rc == -ENOMEM);
	assert_int_equal(report.rc, 0);
	assert_true(n > 2);
}

static void work_in_a_saving_state(void **state)
{
	struct takt_gpu_reading r = working();

	r.pstate = 8;
	see(0, r, 3);
	expect("power-saving", 1, TAKT_DOCTOR_WARNING);
	facts.gpu[0].board.has |= TAKT_BOARD_BATTERY;
	facts.gpu[0].board.on_battery = true;
	expect("power-saving", 1, TAKT_DOCTOR_INFO);
	facts.gpu[1].last.persistence = false;
	expect("persistence", 2, TAKT_DOCTOR_INFO);
	facts.gpu[1].held_by_takt = true;
	expect("persistence", 2, TAKT_DOCTOR_WARNING);
}

static void the_machine_around_them(void **state)
{
	facts.gpu[0].facts.has &= ~(uint32_t)TAKT_FACT_NUMA;
	expect_only("numa", 1, TAKT_DOCTOR_INFO);
	facts.numa_nodes = 1;
	expect_only("numa", 1, -1);
	facts.peermem = false;
	expect_only("peermem", 0, TAKT_DOCTOR_WARNING);
	facts.open_module = true;
	expect_only("peermem", 0, TAKT_DOCTOR_INFO);
	facts.has &= ~(uint32_t)TAKT_DOCTOR_MODULES;
	expect_only("peermem", 0, TAKT_DOCTOR_UNKNOWN);
	strcpy(facts.port[0].state, "DOWN");
	expect_only("network-links", 0, TAKT_DOCTOR_INFO);
	assert_int_equal(verdict_of("peermem", 0), -1);
	strcpy(facts.port[0].state, "INIT");
	expect_only("network-links", 0, TAKT_DOCTOR_WARNING);
}

static void containers_that_get_no_gpus(void **state)
{
	facts.containers.char_links = false;
	expect_only("container-cgroups", 0, TAKT_DOCTOR_WARNING);
	facts.containers.cgroupfs = true;
	expect_only("container-cgroups", 0, TAKT_DOCTOR_PASS);
	strcpy(facts.containers.cdi_version, "535.183.06");
	expect_only("cdi", 0, TAKT_DOCTOR_WARNING);
	facts.containers.cdi_path[0] = '\0';
	facts.containers.runtime_missing = true;
	expect_only("container-runtime", 0, TAKT_DOCTOR_WARNING);
	facts.containers.runtime_missing = false;
	facts.containers.toolkit = false;
	expect_only("container-toolkit", 0, TAKT_DOCTOR_WARNING);
	facts.containers.docker = false;
	expect_only("container-toolkit", 0, -1);
}

static void package(const char *cuda, int verdict)
{
	strcpy(facts.package[0].cuda, cuda);
	expect("frameworks", 0, verdict);
}

static void what_is_installed_against_the_driver(void **state)
{
	package("11.8", TAKT_DOCTOR_PASS);
	package("12.8", TAKT_DOCTOR_INFO); /* a newer minor version of the same major */
	package("13.0", TAKT_DOCTOR_WARNING);
	assert_non_null(strstr(report.todo.at[0].fix, "580.65.06"));
	package("", TAKT_DOCTOR_INFO);
	package("?", TAKT_DOCTOR_UNKNOWN);
	strcpy(facts.info.driver_version, "520.61.05");
	strcpy(facts.info.nvml_version, "11.520.61.05");
	facts.info.cuda_version = 11080;
	package("12.0", TAKT_DOCTOR_WARNING); /* below the floor of 12 */
}

static void boards_that_a_build_has_no_code_for(void **state)
{
	facts.gpu[0].facts.compute_major = 7;
	package("12.4", TAKT_DOCTOR_PASS);
	strcpy(facts.package[0].cuda, "13.0");
	facts.info.cuda_version = 13000;
	expect("frameworks", 1, TAKT_DOCTOR_WARNING);
	facts.gpu[0].facts.compute_major = 10;
	expect("frameworks", 1, -1);
	strcpy(facts.package[0].cuda, "12.6");
	expect("frameworks", 1, TAKT_DOCTOR_WARNING);
}

static void what_takt_serve_has_found_over_time(void **state)
{
	expect("heard-over-time", 1, -1); /* it does not run */
	facts.has |= TAKT_DOCTOR_HEARD;
	facts.gpu[0].watched = facts.gpu[1].watched = true;
	expect("heard-over-time", 3, TAKT_DOCTOR_PASS);
	facts.heard_count = 1;
	facts.heard[0] = (struct takt_doctor_heard){.gpu = 1,
						    .verdict = TAKT_DOCTOR_CRITICAL,
						    .action = TAKT_DO_RESET,
						    .text = "XID 64"};
	expect_only("heard-over-time", 2, TAKT_DOCTOR_CRITICAL);
	assert_int_equal(verdict_of("heard-over-time", 1), TAKT_DOCTOR_PASS);
	assert_int_equal(report.todo.at[0].action, TAKT_DO_RESET);
	assert_int_equal(report.todo.at[0].gpus, 2);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_well, release)
	const struct CMUnitTest tests[] = {
		CASE(a_machine_that_is_well_passes_every_check),
		CASE(a_driver_that_cannot_be_asked_is_said_why),
		CASE(parts_of_two_drivers_are_found),
		CASE(gpus_that_the_driver_lacks_are_found_on_the_bus),
		CASE(a_lost_gpu_is_one_finding_and_no_other_check_speaks_of_it),
		CASE(modes_and_memory_that_wait_for_a_reset_are_one_action),
		CASE(what_a_restart_does_anyway_is_not_asked_for_beside_it),
		CASE(memory_errors_have_their_grades),
		CASE(memory_that_nobody_holds_is_found),
		CASE(a_slow_link_counts_under_load_alone),
		CASE(missing_lanes_count_always_but_where_the_slot_has_none),
		CASE(nvlinks_that_are_down),
		CASE(a_fabric_that_is_not_there),
		CASE(peer_access_and_what_stands_between),
		CASE(a_lowered_power_limit),
		CASE(reasons_for_low_clocks_and_the_cause_among_them),
		CASE(somebodys_clock_lock),
		CASE(heat_is_judged_by_the_boards_own_margin),
		CASE(a_fabric_manager_of_another_version),
		CASE(fans_that_stand_still_or_can_no_more),
		CASE(a_board_that_is_warmer_than_its_like),
		CASE(a_supply_that_is_out_and_a_boards_cable),
		CASE(a_report_without_memory_says_so),
		CASE(work_in_a_saving_state),
		CASE(the_machine_around_them),
		CASE(containers_that_get_no_gpus),
		CASE(what_is_installed_against_the_driver),
		CASE(boards_that_a_build_has_no_code_for),
		CASE(what_takt_serve_has_found_over_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
