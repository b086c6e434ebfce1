/* SPDX-License-Identifier: Apache-2.0 */
/* What a sample says: values as the driver gave them, absence where it gave none, process lists of
 * every age of driver. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_machine.h"

enum {
	ALL_HAS = ((1 << 18) - 1) | TAKT_HAS_PERSISTENCE,
	COMPUTING = 1001, /* pids of the fake with two processes: 999 graphics, 1000, 1001 */
};

static void every_reading_is_what_the_driver_says(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_gpu_reading r = sample_of(machine, 3);

	assert_int_equal(r.has, ALL_HAS);
	assert_int_equal(r.last_rc, 0);
	assert_false(r.stale || r.lost);
	assert_int_equal(r.sm_mhz, FAKE_SM_MHZ + 3);
	assert_int_equal(r.mem_mhz, FAKE_MEM_MHZ);
	assert_int_equal(r.power_mw, FAKE_POWER_MW + 3);
	assert_int_equal(r.power_limit_mw, FAKE_LIMIT_MW);
	assert_int_equal(r.power_enforced_mw, FAKE_ENFORCED_MW);
	assert_int_equal(r.temp_c, FAKE_TEMP_C + 3);
	assert_int_equal(r.gpu_util_pct, FAKE_GPU_UTIL);
	assert_int_equal(r.mem_util_pct, FAKE_MEM_UTIL);
	assert_true(r.mem_used_bytes == FAKE_USED_BYTES);
	assert_true(r.mem_reserved_bytes == FAKE_RESERVED_BYTES);
	assert_true(r.mem_free_bytes == FAKE_TOTAL_BYTES - FAKE_USED_BYTES - FAKE_RESERVED_BYTES);
	assert_true(r.energy_mj == FAKE_ENERGY_MJ + 3);
	assert_int_equal(r.throttle, TAKT_THROTTLE_SW_POWER);
	assert_int_equal(r.fan_pct, FAKE_FAN);
	assert_int_equal(r.pstate, FAKE_PSTATE);
	assert_int_equal(r.pcie_gen, 5);
	assert_int_equal(r.pcie_width, 16);
	assert_int_equal(r.pcie_replay, FAKE_REPLAYS);
	assert_int_equal(r.enc_util_pct, 3);
	assert_int_equal(r.dec_util_pct, 4);
	assert_int_equal(r.proc_count, 0);
	assert_true(r.at.ns != 0 && r.slow_at.ns != 0 && r.slow_at.ns <= r.at.ns);
	takt_machine_close(machine);
}

/* What sampling costs is counted against bench/bare_loop.c, which makes these calls and no others.
 */
static void a_tick_makes_no_more_driver_calls_than_the_bare_loop(void **state)
{
	enum {
		FAST = 7,
		SLOW = 14
	};
	struct takt_machine *machine = open_fake();
	unsigned before = fake_calls();

	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		(void)sample_of(machine, g);
	assert_in_range(fake_calls() - before, 1, FAKE_GPUS * (FAST + SLOW));
	before = fake_calls();
	takt_machine_tick(machine, UINT32_MAX);
	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		assert_int_equal(takt_machine_wait(machine, g, 1, in_ms(120000)), 0);
	assert_int_equal(fake_calls() - before, FAKE_GPUS * FAST);
	takt_machine_close(machine);
}

/* What is lost when a function is hidden or says "not supported"; 0: another stands in. */
static const struct {
	const char *function;
	uint32_t lost;
} sources[] = {
	{"nvmlDeviceGetClockInfo", TAKT_HAS_SM_CLOCK | TAKT_HAS_MEM_CLOCK},
	{"nvmlDeviceGetPowerUsage", 0},
	{"nvmlDeviceGetPowerManagementLimit", TAKT_HAS_POWER_LIMIT},
	{"nvmlDeviceGetEnforcedPowerLimit", TAKT_HAS_POWER_ENFORCED},
	{"nvmlDeviceGetTemperature", TAKT_HAS_TEMP},
	{"nvmlDeviceGetUtilizationRates", TAKT_HAS_GPU_UTIL | TAKT_HAS_MEM_UTIL},
	{"nvmlDeviceGetMemoryInfo_v2", TAKT_HAS_RESERVED},
	{"nvmlDeviceGetMemoryInfo", 0},
	{"nvmlDeviceGetTotalEnergyConsumption", 0},
	{"nvmlDeviceGetFieldValues", 0},
	{"nvmlDeviceGetCurrentClocksEventReasons", TAKT_HAS_THROTTLE},
	{"nvmlDeviceGetFanSpeed", TAKT_HAS_FAN},
	{"nvmlDeviceGetPerformanceState", TAKT_HAS_PSTATE},
	{"nvmlDeviceGetCurrPcieLinkGeneration", TAKT_HAS_PCIE},
	{"nvmlDeviceGetCurrPcieLinkWidth", TAKT_HAS_PCIE},
	{"nvmlDeviceGetPcieReplayCounter", TAKT_HAS_PCIE_REPLAY},
	{"nvmlDeviceGetEncoderUtilization", TAKT_HAS_ENC_DEC},
	{"nvmlDeviceGetPersistenceMode", TAKT_HAS_PERSISTENCE},
	{"nvmlDeviceGetDecoderUtilization", TAKT_HAS_ENC_DEC},
	{"nvmlDeviceGetGraphicsRunningProcesses_v3", 0},
};

static void absence_costs_its_own_bit_and_is_no_error(void **state)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(sources); i++) {
		for (int hide = 0; hide < 2; hide++) {
			struct takt_machine *machine;
			struct takt_gpu_reading r;

			fake_reset();
			if (hide)
				fake_hide(sources[i].function);
			else
				fake_answer(sources[i].function, NVML_ERROR_NOT_SUPPORTED);
			machine = open_fake();
			r = sample_of(machine, 0);
			if (r.has != (ALL_HAS & ~sources[i].lost) || r.last_rc != 0)
				fail_msg("%s: has %x rc %d", sources[i].function, r.has, r.last_rc);
			assert_int_equal(r.power_mw, FAKE_POWER_MW + 1);
			assert_true(r.energy_mj == FAKE_ENERGY_MJ + 1);
			takt_machine_close(machine);
		}
	}
}

static void a_field_value_has_a_code_of_its_own(void **state)
{
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	fake_answer("nvmlDeviceGetTotalEnergyConsumption", NVML_ERROR_NOT_SUPPORTED);
	fake_field_answer(NVML_ERROR_NOT_SUPPORTED);
	machine = open_fake();
	r = sample_of(machine, 0);
	assert_int_equal(r.has, ALL_HAS & ~TAKT_HAS_ENERGY);
	takt_machine_close(machine);
}

static void memory_of_a_driver_that_refuses_the_newer_struct(void **state)
{
	static const int codes[] = {NVML_ERROR_FUNCTION_NOT_FOUND,
				    NVML_ERROR_ARGUMENT_VERSION_MISMATCH};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(codes); i++) {
		struct takt_machine *machine;
		struct takt_gpu_reading r;

		fake_reset();
		fake_memory_v2_answer(codes[i]);
		machine = open_fake();
		r = sample_of(machine, 0);
		assert_int_equal(r.has, ALL_HAS & ~TAKT_HAS_RESERVED);
		assert_true(r.mem_used_bytes == FAKE_USED_BYTES + FAKE_RESERVED_BYTES);
		takt_machine_close(machine);
	}
}

static void check_processes(const struct takt_gpu_reading *r)
{
	assert_int_equal(r->proc_count, 3);
	assert_int_equal(r->procs_dropped, 0);
	assert_int_equal(r->procs[0].pid, FAKE_FIRST_PID - 1);
	assert_true(r->procs[0].graphics);
	assert_int_equal(r->procs[1].pid, FAKE_FIRST_PID);
	assert_false(r->procs[1].graphics);
	assert_true(r->procs[1].memory_known);
	assert_int_equal(r->procs[1].memory_bytes, 1001);
	assert_int_equal(r->procs[2].pid, COMPUTING);
	assert_false(r->procs[2].memory_known);
}

static void processes_of_every_age_of_driver(void **state)
{
	static const struct {
		const char *hide[2];
		uint32_t entry_bytes;
	} ages[] = {
		{{NULL}, 24},
		{{NULL}, 32}, /* 535.54.03 and its like */
		{{"nvmlDeviceGetComputeRunningProcesses_v3"}, 24},
		{{"nvmlDeviceGetComputeRunningProcesses_v3",
		  "nvmlDeviceGetComputeRunningProcesses_v2"},
		 24},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(ages); i++) {
		struct takt_machine *machine;
		struct takt_gpu_reading r;

		fake_reset();
		for (int h = 0; h < 2 && ages[i].hide[h]; h++)
			fake_hide(ages[i].hide[h]);
		fake_entry_bytes(ages[i].entry_bytes);
		fake_procs(1, 2);
		machine = open_fake();
		r = sample_of(machine, 0);
		check_processes(&r);
		takt_machine_close(machine);
	}
}

static void many_processes_are_read_and_the_rest_counted(void **state)
{
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	fake_procs(1, FAKE_MAX_PROCS);
	machine = open_fake();
	r = sample_of(machine, 0);
	assert_int_equal(r.proc_count, TAKT_DEVICE_MAX_PROCS);
	/* The graphics list adds one that is not among the computing ones. */
	assert_int_equal(r.proc_count + r.procs_dropped, FAKE_MAX_PROCS + 1);
	for (uint32_t i = 1; i < r.proc_count; i++)
		assert_true(r.procs[i - 1].pid < r.procs[i].pid);
	takt_machine_close(machine);
}

/* Of a process the newest sample counts, and of one that has none nothing is known. */
static void the_use_of_each_process_is_what_the_driver_says(void **state)
{
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	fake_procs(1, 2);
	fake_use(1, FAKE_FIRST_PID, 10, 1, 5000000);
	fake_use(1, FAKE_FIRST_PID, 62, 31, 9000000);
	fake_use(1, FAKE_FIRST_PID, 11, 2, 6000000);
	fake_use(1, COMPUTING, 700, 3, 9000000);	/* no share at all */
	fake_use(1, FAKE_FIRST_PID - 1, 5, 5, 1000000); /* long ago */
	machine = open_fake();
	r = sample_of(machine, 0);
	assert_int_equal(r.proc_count, 3);
	assert_true(r.procs[1].util_known);
	assert_int_equal(r.procs[1].sm_util_pct, 62);
	assert_int_equal(r.procs[1].mem_util_pct, 31);
	assert_false(r.procs[0].util_known || r.procs[2].util_known);
	/* Without news what was heard holds for a while. */
	r = sample_of(machine, 0);
	assert_int_equal(r.procs[1].sm_util_pct, 62);
	fake_use(1, FAKE_FIRST_PID, 0, 0, 10000000);
	r = sample_of(machine, 0);
	assert_true(r.procs[1].util_known);
	assert_int_equal(r.procs[1].sm_util_pct, 0);
	takt_machine_close(machine);
}

static void many_uses_are_read(void **state)
{
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	fake_procs(1, 2);
	for (uint32_t i = 0; i < FAKE_MAX_USES; i++)
		fake_use(1, FAKE_FIRST_PID, i % 100, 1, 1000 + i);
	machine = open_fake();
	r = sample_of(machine, 0);
	assert_int_equal(r.procs[1].sm_util_pct, (FAKE_MAX_USES - 1) % 100);
	takt_machine_close(machine);
}

static void a_driver_that_tells_no_use_is_no_trouble(void **state)
{
	static const int codes[] = {NVML_ERROR_NOT_FOUND, NVML_ERROR_NOT_SUPPORTED,
				    NVML_ERROR_NO_PERMISSION, 0};
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(codes); i++) {
		fake_reset();
		fake_procs(1, 2);
		fake_use(1, FAKE_FIRST_PID, 10, 1, 5000000);
		if (codes[i])
			fake_answer("nvmlDeviceGetProcessUtilization", codes[i]);
		else
			fake_hide("nvmlDeviceGetProcessUtilization");
		machine = open_fake();
		r = sample_of(machine, 0);
		assert_int_equal(r.has, ALL_HAS);
		assert_int_equal(r.last_rc, 0);
		assert_int_equal(r.proc_count, 3);
		assert_false(r.procs[1].util_known);
		takt_machine_close(machine);
	}
}

static void without_the_compute_list_the_processes_are_unknown(void **state)
{
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	fake_procs(1, 2);
	fake_answer("nvmlDeviceGetComputeRunningProcesses_v3", NVML_ERROR_NO_PERMISSION);
	machine = open_fake();
	r = sample_of(machine, 0);
	assert_false(r.has & TAKT_HAS_PROCS);
	assert_int_equal(r.proc_count, 0);
	assert_int_equal(r.last_rc, -EPERM);
	takt_machine_close(machine);
}

static void the_actuator_reads_no_processes(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	config.no_processes = true;
	machine = open_with(config);
	r = sample_of(machine, 0);
	assert_int_equal(r.has, ALL_HAS & ~TAKT_HAS_PROCS);
	takt_machine_close(machine);
}

static void the_actuator_counts_memory_errors(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;
	struct takt_gpu_reading r;

	config.counts_errors = true;
	machine = open_with(config);
	r = sample_of(machine, 1);
	assert_int_equal(r.has, ALL_HAS | TAKT_HAS_ECC);
	assert_int_equal(r.ecc_corrected, FAKE_CORRECTED);
	assert_int_equal(r.ecc_uncorrected, FAKE_UNCORRECTED);
	takt_machine_close(machine);
}

/* Waits for the sample that a tick asks for. */
static struct takt_gpu_reading tick(struct takt_machine *machine, uint32_t gpu)
{
	struct takt_gpu_reading r;

	assert_int_equal(takt_machine_reading(machine, gpu, &r), 0);
	do {
		takt_machine_tick(machine, gpu);
	} while (takt_machine_wait(machine, gpu, r.seq, in_ms(100)) < 0);
	assert_int_equal(takt_machine_reading(machine, gpu, &r), 0);
	return r;
}

static void a_tick_keeps_the_slow_part_and_a_sample_reads_it_again(void **state)
{
	static const char list[] = "nvmlDeviceGetComputeRunningProcesses_v3";
	struct takt_machine *machine;
	struct takt_gpu_reading first, r;
	struct takt_mono asked;

	fake_procs(1, 2);
	machine = open_fake();
	first = sample_of(machine, 0);
	(void)fake_calls_of(list);
	r = tick(machine, 0);
	assert_int_equal(fake_calls_of(list), 0);
	assert_int_equal(r.has, ALL_HAS);
	assert_true(r.slow_at.ns == first.slow_at.ns && r.at.ns > first.at.ns);
	check_processes(&r);

	asked = takt_mono_now(takt_sys_real());
	r = sample_of(machine, 0);
	assert_int_equal(fake_calls_of(list), 1);
	assert_true(r.slow_at.ns >= asked.ns);
	takt_machine_close(machine);
}

static void an_energy_counter_that_takes_long_is_read_less_often(void **state)
{
	enum {
		TICKS = 40,
		TAKES_US = 2000
	};
	static const char counter[] = "nvmlDeviceGetTotalEnergyConsumption";
	struct takt_machine *machine = open_fake();
	struct takt_gpu_reading first, r;

	first = sample_of(machine, 0);
	fake_slow(counter, TAKES_US);
	takt_machine_energy_every(machine, 0, 3600 * TAKT_NS_PER_S);
	for (int i = 0; i < TICKS; i++)
		first = tick(machine, 0);
	(void)fake_calls_of(counter);
	r = tick(machine, 0);
	assert_int_equal(fake_calls_of(counter), 0);
	assert_true(r.has & TAKT_HAS_ENERGY); /* as it was, and as old as it is */
	assert_true(r.energy_mj == FAKE_ENERGY_MJ + 1);
	assert_true(r.energy_at.ns == first.energy_at.ns && r.energy_at.ns < first.at.ns);

	r = sample_of(machine, 0);
	assert_int_equal(fake_calls_of(counter), 1);
	assert_true(r.energy_at.ns == r.at.ns);
	takt_machine_energy_every(machine, 0, 0);
	(void)tick(machine, 0);
	assert_int_equal(fake_calls_of(counter), 2);

	fake_slow(NULL, 0); /* believed at once */
	takt_machine_energy_every(machine, 0, 3600 * TAKT_NS_PER_S);
	(void)sample_of(machine, 0);
	(void)tick(machine, 0);
	assert_int_equal(fake_calls_of(counter), 4);
	takt_machine_close(machine);
}

static void ticks_read_the_slow_part_every_second(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_gpu_reading r = sample_of(machine, 0);
	struct takt_mono first = r.slow_at;

	while (takt_mono_elapsed_ns(r.at, first) < TAKT_NS_PER_S) {
		usleep(20000);
		r = tick(machine, 0);
	}
	assert_true(r.slow_at.ns > first.ns);
	takt_machine_close(machine);
}

static void asking_again_while_a_sample_is_under_way_gives_one_that_began_later(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_gpu_reading r = sample_of(machine, 0);
	uint64_t seq = r.seq;
	struct takt_mono asked;

	fake_hang("nvmlDeviceGetPowerUsage", 1);
	takt_machine_sample(machine, 0);
	assert_int_equal(takt_machine_wait(machine, 0, seq, in_ms(50)), -ETIMEDOUT);
	asked = takt_mono_now(takt_sys_real());
	takt_machine_sample(machine, 0);
	takt_machine_sample(machine, 0);
	takt_machine_tick(machine, 0);
	fake_wake();
	assert_int_equal(takt_machine_wait(machine, 0, seq + 1, in_ms(120000)), 0);
	assert_int_equal(takt_machine_reading(machine, 0, &r), 0);
	assert_true(r.slow_at.ns >= asked.ns);
	/* The three requests became one. */
	assert_int_equal(takt_machine_wait(machine, 0, seq + 2, in_ms(100)), -ETIMEDOUT);
	takt_machine_close(machine);
}

static void ticks_do_not_pile_up_behind_a_slow_driver(void **state)
{
	struct takt_machine *machine = open_fake();
	uint64_t seq = sample_of(machine, 0).seq;

	fake_hang("nvmlDeviceGetPowerUsage", 1);
	takt_machine_tick(machine, 0);
	usleep(50000);
	takt_machine_tick(machine, 0);
	fake_wake();
	assert_int_equal(takt_machine_wait(machine, 0, seq, in_ms(120000)), 0);
	assert_int_equal(takt_machine_wait(machine, 0, seq + 1, in_ms(200)), -ETIMEDOUT);
	takt_machine_close(machine);
}

static void the_caller_is_woken_when_samples_have_finished(void **state)
{
	struct takt_machine *machine = open_fake();
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t events = 0;

	takt_machine_notify(machine, fd);
	takt_machine_sample(machine, UINT32_MAX);
	assert_int_equal(read(fd, &events, sizeof(events)), sizeof(events));
	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		assert_int_equal(takt_machine_wait(machine, g, 0, in_ms(120000)), 0);
	takt_machine_close(machine);
	close(fd);
}

static void hushed_samples_wake_nobody_and_are_there(void **state)
{
	struct takt_machine *machine = open_fake();
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct takt_gpu_reading r;
	uint64_t events = 0;

	takt_machine_notify(machine, fd);
	takt_machine_hush(machine, true);
	takt_machine_sample(machine, UINT32_MAX);
	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		assert_int_equal(takt_machine_wait(machine, g, 0, in_ms(120000)), 0);
	assert_int_equal(takt_machine_reading(machine, 0, &r), 0);
	takt_machine_hush(machine, false);
	assert_int_equal(read(fd, &events, sizeof(events)), -1);
	takt_machine_sample(machine, 0);
	assert_int_equal(takt_machine_wait(machine, 0, r.seq, in_ms(120000)), 0);
	takt_machine_close(machine);
	assert_int_equal(read(fd, &events, sizeof(events)), sizeof(events));
	close(fd);
}

static void before_the_first_sample_there_is_no_reading(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_gpu_reading r;

	assert_int_equal(takt_machine_reading(machine, 0, &r), -EAGAIN);
	assert_int_equal(takt_machine_reading(machine, FAKE_GPUS, &r), -EINVAL);
	takt_machine_close(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_reading_is_what_the_driver_says, reset_fake),
		cmocka_unit_test_setup(a_tick_makes_no_more_driver_calls_than_the_bare_loop,
				       reset_fake),
		cmocka_unit_test_setup(absence_costs_its_own_bit_and_is_no_error, reset_fake),
		cmocka_unit_test_setup(a_field_value_has_a_code_of_its_own, reset_fake),
		cmocka_unit_test_setup(memory_of_a_driver_that_refuses_the_newer_struct,
				       reset_fake),
		cmocka_unit_test_setup(processes_of_every_age_of_driver, reset_fake),
		cmocka_unit_test_setup(many_processes_are_read_and_the_rest_counted, reset_fake),
		cmocka_unit_test_setup(the_use_of_each_process_is_what_the_driver_says, reset_fake),
		cmocka_unit_test_setup(many_uses_are_read, reset_fake),
		cmocka_unit_test_setup(a_driver_that_tells_no_use_is_no_trouble, reset_fake),
		cmocka_unit_test_setup(without_the_compute_list_the_processes_are_unknown,
				       reset_fake),
		cmocka_unit_test_setup(the_actuator_reads_no_processes, reset_fake),
		cmocka_unit_test_setup(the_actuator_counts_memory_errors, reset_fake),
		cmocka_unit_test_setup(a_tick_keeps_the_slow_part_and_a_sample_reads_it_again,
				       reset_fake),
		cmocka_unit_test_setup(an_energy_counter_that_takes_long_is_read_less_often,
				       reset_fake),
		cmocka_unit_test_setup(ticks_read_the_slow_part_every_second, reset_fake),
		cmocka_unit_test_setup(
			asking_again_while_a_sample_is_under_way_gives_one_that_began_later,
			reset_fake),
		cmocka_unit_test_setup(ticks_do_not_pile_up_behind_a_slow_driver, reset_fake),
		cmocka_unit_test_setup(the_caller_is_woken_when_samples_have_finished, reset_fake),
		cmocka_unit_test_setup(hushed_samples_wake_nobody_and_are_there, reset_fake),
		cmocka_unit_test_setup(before_the_first_sample_there_is_no_reading, reset_fake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
