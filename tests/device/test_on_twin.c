/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device room against the simulated driver, by its own library: what takt reads is what the
 * machine was made to be, and faults of one GPU stay with it.
 *
 * Arguments: takt-twin, its libnvidia-ml.so.1, name of a machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "device/device.h"
#include "device/device_set.h"

enum {
	GPUS = 8,
	PATH_BYTES = 512,
};

static const char *takt_twin, *library, *machine_name;
static char directory[] = "/tmp/takt-on-twin-XXXXXX";
static char state_path[PATH_BYTES];

/* NVLinks of the eight-GPU cube mesh of a DGX-1 with V100. */
static const uint8_t cube_mesh[GPUS][GPUS] = {
	{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
	{2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
	{0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
};

static uint8_t expected_links(uint32_t a, uint32_t b)
{
	if (strcmp(machine_name, "dgx1-v100") == 0)
		return cube_mesh[a][b];
	return a == b ? 0 : 18;
}

static void twin(const char *arguments)
{
	char command[4 * PATH_BYTES];

	snprintf(command, sizeof(command), "'%s' %s >/dev/null", takt_twin, arguments);
	assert_int_equal(system(command), 0);
}

static struct takt_mono in_ms(uint64_t ms)
{
	return takt_mono_add(takt_mono_now(takt_sys_real()), ms * TAKT_NS_PER_MS);
}

static struct takt_machine *open_twin_as(bool for_view)
{
	struct takt_machine_config config = {
		.source = TAKT_SOURCE_NVML,
		.nvml_path = library,
		.call_deadline_ns = 500 * TAKT_NS_PER_MS,
		.vitals = !for_view,
		.for_view = for_view,
	};
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};

	if (takt_machine_open(&config, &machine, &err) < 0)
		fail_msg("%s", err.msg);
	return machine;
}

static struct takt_machine *open_twin(void)
{
	return open_twin_as(false);
}

static struct takt_gpu_reading sample_of(struct takt_machine *machine, uint32_t gpu)
{
	struct takt_gpu_reading r = {0};
	uint64_t before = takt_machine_reading(machine, gpu, &r) == 0 ? r.seq : 0;

	takt_machine_sample(machine, gpu);
	assert_int_equal(takt_machine_wait(machine, gpu, before, in_ms(120000)), 0);
	assert_int_equal(takt_machine_reading(machine, gpu, &r), 0);
	return r;
}

static void the_machine_is_as_it_was_made_and_says_simulated(void **state)
{
	const uint32_t facts = TAKT_FACT_NAME | TAKT_FACT_UUID | TAKT_FACT_PCI | TAKT_FACT_SERIAL |
			       TAKT_FACT_VBIOS | TAKT_FACT_MEMORY | TAKT_FACT_NUMA |
			       TAKT_FACT_CPUS | TAKT_FACT_POWER_LIMITS | TAKT_FACT_SM_CLOCKS |
			       TAKT_FACT_COMPUTE_CAP | TAKT_FACT_MINOR | TAKT_FACT_SM_MAX;
	struct takt_machine *machine = open_twin();

	assert_int_equal(takt_machine_info(machine)->gpu_count, GPUS);
	assert_true(takt_machine_info(machine)->simulated);
	for (uint32_t a = 0; a < GPUS; a++) {
		const struct takt_gpu_facts *f = takt_machine_facts(machine, a);

		assert_int_equal(f->has & facts, facts);
		assert_int_equal(f->numa_node, a / 4);
		assert_int_equal(f->sm_clocks_mhz[f->sm_clock_count - 1], f->sm_max_mhz);
		for (uint32_t b = 0; b < GPUS; b++) {
			struct takt_gpu_link link = takt_machine_link(machine, a, b);

			assert_int_equal(link.nvlinks, expected_links(a, b));
			assert_true(a == b || link.pcie != 0);
		}
	}
	takt_machine_close(machine);
}

static void readings_make_sense(void **state)
{
	const uint32_t has = TAKT_HAS_SM_CLOCK | TAKT_HAS_MEM_CLOCK | TAKT_HAS_POWER |
			     TAKT_HAS_POWER_LIMIT | TAKT_HAS_POWER_ENFORCED | TAKT_HAS_TEMP |
			     TAKT_HAS_GPU_UTIL | TAKT_HAS_MEMORY | TAKT_HAS_ENERGY |
			     TAKT_HAS_THROTTLE | TAKT_HAS_PROCS;
	struct takt_machine *machine = open_twin();
	struct takt_gpu_reading r = sample_of(machine, 0);
	const struct takt_gpu_facts *f = takt_machine_facts(machine, 0);
	uint64_t energy_mj = r.energy_mj;

	assert_int_equal(r.has & has, has);
	assert_int_equal(r.last_rc, 0);
	assert_int_equal(r.power_limit_mw, f->power_default_mw);
	assert_true(r.power_mw > 0 && r.power_mw < f->power_max_mw);
	assert_true(r.mem_used_bytes + r.mem_free_bytes <= f->memory_total_bytes);
	usleep(250000);
	assert_true(sample_of(machine, 0).energy_mj > energy_mj);
	takt_machine_close(machine);
}

static struct takt_err set(struct takt_machine *machine, uint32_t gpu, struct takt_set_call call)
{
	struct takt_err result = {.rc = 1};

	assert_int_equal(takt_machine_set_post(machine, gpu, &call, NULL), 0);
	for (int i = 0; i < 120000 && !takt_machine_set_finished(machine, gpu, &result); i++)
		usleep(1000);
	return result;
}

static void a_power_limit_that_was_set_is_read(void **state)
{
	struct takt_machine *machine = open_twin();
	const struct takt_gpu_facts *f = takt_machine_facts(machine, 2);
	struct takt_set_call call = {.op = TAKT_SET_POWER_LIMIT, .limit_mw = f->power_min_mw};

	assert_int_equal(set(machine, 2, call).rc, 0);
	assert_int_equal(sample_of(machine, 2).power_limit_mw, f->power_min_mw);
	assert_int_equal(sample_of(machine, 3).power_limit_mw, f->power_default_mw);
	call.limit_mw = f->power_default_mw;
	assert_int_equal(set(machine, 2, call).rc, 0);
	takt_machine_close(machine);
}

static void a_denied_setter_says_so(void **state)
{
	struct takt_machine *machine = open_twin();
	struct takt_set_call call = {.op = TAKT_SET_LOCK_SM};
	const struct takt_gpu_facts *f = takt_machine_facts(machine, 1);

	call.min_mhz = f->sm_clocks_mhz[0];
	call.max_mhz = f->sm_clocks_mhz[f->sm_clock_count / 2];
	twin("fault 1 permission");
	assert_int_equal(set(machine, 1, call).rc, -EPERM);
	twin("fault 1 none");
	assert_int_equal(set(machine, 1, call).rc, 0);
	call.op = TAKT_SET_UNLOCK_SM;
	assert_int_equal(set(machine, 1, call).rc, 0);
	takt_machine_close(machine);
}

static void a_lost_gpu_is_one_gpu(void **state)
{
	struct takt_machine *machine = open_twin();

	(void)sample_of(machine, 4);
	twin("fault 4 lost");
	assert_true(sample_of(machine, 4).lost);
	assert_false(sample_of(machine, 5).lost);
	twin("fault 4 none");
	assert_false(sample_of(machine, 4).lost);
	takt_machine_close(machine);
}

static void a_hanging_gpu_is_stale_and_comes_back(void **state)
{
	struct takt_machine *machine = open_twin();
	struct takt_gpu_reading r = sample_of(machine, 6);
	uint64_t seq = r.seq;

	twin("fault 6 hang");
	takt_machine_sample(machine, UINT32_MAX);
	for (int i = 0; i < 200 && r.last_rc != -ETIMEDOUT; i++) {
		assert_int_equal(takt_machine_wait(machine, 6, seq, in_ms(600)), -ETIMEDOUT);
		assert_int_equal(takt_machine_reading(machine, 6, &r), 0);
	}
	assert_true(r.stale);
	assert_int_equal(r.last_rc, -ETIMEDOUT);
	assert_false(sample_of(machine, 7).stale);
	twin("fault 6 none");
	assert_int_equal(takt_machine_wait(machine, 6, seq, in_ms(120000)), 0);
	takt_machine_close(machine);
}

/* Of each board what it has, and of none what it has not: V100 retires pages and knows nothing of
 * activity, H100 remaps rows and does. */
static void vitals_are_those_of_the_board(void **state)
{
	const uint32_t both = TAKT_VITAL_ECC | TAKT_VITAL_ECC_EVER | TAKT_VITAL_NVLINKS |
			      TAKT_VITAL_NVLINK_CRC | TAKT_VITAL_NVLINK_ERRORS |
			      TAKT_VITAL_HELD_POLICIES | TAKT_VITAL_MEM_TEMP;
	const uint32_t hopper = TAKT_VITAL_ROWS | TAKT_VITAL_PCIE_RATES |
				TAKT_VITAL_ACTIVE << TAKT_ACTIVE_TENSOR |
				TAKT_VITAL_ACTIVE << TAKT_ACTIVE_DRAM;
	bool is_hopper = strcmp(machine_name, "hgx-h100") == 0;
	struct takt_machine *machine = open_twin();
	struct takt_gpu_vitals vitals;

	assert_int_equal(sample_of(machine, 0).vitals.has & TAKT_VITAL_PCIE_RATES, 0);
	usleep(50000);
	vitals = sample_of(machine, 0).vitals;
	assert_int_equal(vitals.has & both, both);
	assert_int_equal(vitals.has & hopper, is_hopper ? hopper : 0);
	assert_int_equal(!!(vitals.has & TAKT_VITAL_PAGES), !is_hopper);
	assert_int_equal(vitals.has & TAKT_VITAL_ACTIVE << TAKT_ACTIVE_FP64, 0);
	assert_int_equal(vitals.nvlinks, is_hopper ? 18 : 6);
	assert_int_equal(vitals.nvlinks_up, vitals.nvlinks);
	assert_int_equal(vitals.ecc_uncorrected, 0);
	takt_machine_close(machine);
}

static void vitals_follow_what_happens(void **state)
{
	struct takt_machine *machine = open_twin();
	struct takt_gpu_vitals before = sample_of(machine, 3).vitals, after;

	twin("fault 3 ecc");
	twin("fault 3 link-down=2");
	after = sample_of(machine, 3).vitals;
	assert_int_equal(after.ecc_uncorrected, before.ecc_uncorrected + 1);
	assert_int_equal(after.ecc_ever_uncorrected, before.ecc_ever_uncorrected + 1);
	assert_true((after.has & TAKT_VITAL_ROWS) ? after.row_pending : after.page_pending);
	assert_int_equal(after.nvlinks_up, before.nvlinks_up - 1);
	twin("fault 3 lost");
	assert_int_equal(sample_of(machine, 3).vitals.has, 0);
	twin("fault 3 none");
	assert_true(sample_of(machine, 3).vitals.has != 0);
	takt_machine_close(machine);
}

/* What no view shows is not asked for; links are counted at the first sample and the sixth. */
static void a_view_costs_fewer_calls(void **state)
{
	const uint32_t detail = TAKT_HAS_POWER_ENFORCED | TAKT_HAS_PCIE_REPLAY | TAKT_HAS_ENC_DEC |
				TAKT_HAS_PERSISTENCE;
	const uint32_t shown = TAKT_VITAL_NVLINKS | TAKT_VITAL_MEM_TEMP;
	struct takt_machine *machine = open_twin_as(true);
	struct takt_gpu_reading r = sample_of(machine, 2);

	assert_int_equal(takt_machine_facts(machine, 2)->has &
				 (TAKT_FACT_SM_MAX | TAKT_FACT_SM_CLOCKS),
			 TAKT_FACT_SM_MAX);
	assert_true(takt_machine_info(machine)->simulated);
	assert_int_equal(r.has & detail, 0);
	assert_true(r.has & TAKT_HAS_POWER_LIMIT && r.has & TAKT_HAS_PROCS);
	assert_int_equal(r.vitals.has & shown, shown);
	assert_int_equal(r.vitals.has & (TAKT_VITAL_ECC | TAKT_VITAL_HELD_POLICIES), 0);
	twin("fault 2 link-down=2");
	for (int i = 0; i < 4; i++) {
		struct takt_gpu_vitals later = sample_of(machine, 2).vitals;

		assert_int_equal(later.has & shown, shown);
		assert_int_equal(later.nvlinks_up, r.vitals.nvlinks_up);
	}
	assert_int_equal(sample_of(machine, 2).vitals.nvlinks_up, r.vitals.nvlinks_up - 1);
	twin("fault 2 none");
	takt_machine_close(machine);
}

static pid_t start_load(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)!freopen("/dev/null", "w", stdout);
		execl(takt_twin, takt_twin, "load", "--profile", "gemm", "--gpus", "1", "--seconds",
		      "600", (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static void tensor_cores_are_busy_while_they_multiply(void **state)
{
	const uint32_t tensor = TAKT_VITAL_ACTIVE << TAKT_ACTIVE_TENSOR;
	struct takt_machine *machine = open_twin();
	uint32_t ppm = 0;
	pid_t load;

	if (strcmp(machine_name, "hgx-h100") == 0) {
		(void)sample_of(machine, 1);
		usleep(20000);
		assert_int_equal(sample_of(machine, 1).vitals.active_ppm[TAKT_ACTIVE_TENSOR], 0);
		load = start_load();
		for (int i = 0; i < 6000 && ppm < 800000; i++) {
			struct takt_gpu_reading r = sample_of(machine, 1);

			ppm = r.vitals.has & tensor ? r.vitals.active_ppm[TAKT_ACTIVE_TENSOR] : 0;
			usleep(10000);
		}
		kill(load, SIGKILL);
		assert_int_equal(waitpid(load, NULL, 0), load);
		assert_true(ppm >= 800000 && ppm <= 1000000);
	}
	takt_machine_close(machine);
}

static int make_machine(void **state)
{
	char arguments[3 * PATH_BYTES];

	if (!mkdtemp(directory))
		return -1;
	snprintf(state_path, sizeof(state_path), "%s/machine.twin", directory);
	snprintf(arguments, sizeof(arguments), "create %s --seed 1 --path '%s'", machine_name,
		 state_path);
	twin(arguments);
	return setenv("TAKT_TWIN", state_path, 1);
}

static int drop_machine(void **state)
{
	return unlink(state_path) + rmdir(directory);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_machine_is_as_it_was_made_and_says_simulated),
		cmocka_unit_test(readings_make_sense),
		cmocka_unit_test(a_power_limit_that_was_set_is_read),
		cmocka_unit_test(a_denied_setter_says_so),
		cmocka_unit_test(a_lost_gpu_is_one_gpu),
		cmocka_unit_test(a_hanging_gpu_is_stale_and_comes_back),
		cmocka_unit_test(vitals_are_those_of_the_board),
		cmocka_unit_test(vitals_follow_what_happens),
		cmocka_unit_test(a_view_costs_fewer_calls),
		cmocka_unit_test(tensor_cores_are_busy_while_they_multiply),
	};

	if (argc != 4)
		return 64;
	takt_twin = argv[1];
	library = argv[2];
	machine_name = argv[3];
	return cmocka_run_group_tests_name(machine_name, tests, make_machine, drop_machine);
}
