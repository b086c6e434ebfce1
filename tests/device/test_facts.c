/* SPDX-License-Identifier: Apache-2.0 */
/* What takt knows of a machine before it samples anything: facts, order, links, versions. */
#include "fake_machine.h"

enum {
	ALL_FACTS = (1 << 19) - 1,
	PXB = 4,
	SYS = 1,
};

static void gpus_come_in_pci_order_with_all_facts(void **state)
{
	struct takt_machine *machine = open_fake();
	const struct takt_machine_info *info = takt_machine_info(machine);

	assert_string_equal(info->source, "nvml");
	assert_string_equal(info->driver_version, "550.54.15");
	assert_string_equal(info->nvml_version, "12.550.54.15");
	assert_int_equal(info->cuda_version, 12040);
	assert_true(info->can_set);
	assert_false(info->simulated);
	assert_int_equal(info->gpu_count, FAKE_GPUS);
	for (uint32_t g = 0; g < FAKE_GPUS; g++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(machine, g);

		assert_int_equal(facts->has, ALL_FACTS);
		assert_int_equal(facts->minor, fake_at_driver[g]);
	}
	assert_null(takt_machine_facts(machine, FAKE_GPUS));
	takt_machine_close(machine);
}

static void facts_are_what_the_driver_says(void **state)
{
	static const uint32_t clocks[] = {210, 345, 1410, 1965, 1980};
	struct takt_machine *machine = open_fake();
	const struct takt_gpu_facts *facts = takt_machine_facts(machine, 3);

	assert_string_equal(facts->name, "Fake H100");
	assert_string_equal(facts->uuid, "GPU-00000003-0000-0000-0000-000000000000");
	assert_string_equal(facts->pci_bus_id, "00000001:03:00.0");
	assert_string_equal(facts->serial, "1650000001");
	assert_string_equal(facts->vbios, "96.00.5E.00.01");
	assert_true(facts->memory_total_bytes == FAKE_TOTAL_BYTES);
	assert_int_equal(facts->numa_node, 1);
	assert_true(facts->cpus[1] == 0xffff0000u && facts->cpus[0] == 0);
	assert_int_equal(facts->power_min_mw, 200000);
	assert_int_equal(facts->power_max_mw, FAKE_LIMIT_MW);
	assert_int_equal(facts->power_default_mw, FAKE_LIMIT_MW);
	assert_int_equal(facts->sm_clock_count, 5);
	assert_memory_equal(facts->sm_clocks_mhz, clocks, sizeof(clocks));
	assert_int_equal(facts->sm_max_mhz, 1980);
	assert_int_equal(facts->compute_major, 9);
	assert_int_equal(facts->slowdown_temp_c, 87);
	assert_false(facts->mig_enabled);
	takt_machine_close(machine);
}

static void direct_nvlinks_are_counted_by_their_remote(void **state)
{
	/* By the driver's numbers; 0 and 3 are the machine's 2 and 3. */
	static const uint8_t links[FAKE_GPUS][FAKE_GPUS] = {
		{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}};
	struct takt_machine *machine;

	fake_links(links, 0);
	machine = open_fake();
	for (uint32_t a = 0; a < FAKE_GPUS; a++) {
		for (uint32_t b = 0; b < FAKE_GPUS; b++) {
			struct takt_gpu_link link = takt_machine_link(machine, a, b);
			uint32_t x = fake_at_driver[a], y = fake_at_driver[b];

			assert_int_equal(link.nvlinks, links[x][y]);
			if (a != b)
				assert_int_equal(link.pcie, x / 2 == y / 2 ? PXB : SYS);
		}
	}
	takt_machine_close(machine);
}

static void behind_a_switch_every_pair_has_all_links(void **state)
{
	static const uint8_t none[FAKE_GPUS][FAKE_GPUS];
	struct takt_machine *machine;

	fake_links(none, 18);
	machine = open_fake();
	assert_int_equal(takt_machine_link(machine, 0, 3).nvlinks, 18);
	assert_int_equal(takt_machine_link(machine, 2, 1).nvlinks, 18);
	assert_int_equal(takt_machine_link(machine, 1, 1).nvlinks, 0);
	takt_machine_close(machine);
}

static void links_are_left_out_for_those_who_need_none(void **state)
{
	static const uint8_t none[FAKE_GPUS][FAKE_GPUS];
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;

	fake_links(none, 18);
	config.no_links = true;
	machine = open_with(config);
	assert_int_equal(takt_machine_link(machine, 0, 3).nvlinks, 0);
	assert_int_equal(takt_machine_link(machine, 0, 3).pcie, 0);
	assert_true(takt_machine_facts(machine, 3)->has & TAKT_FACT_UUID);
	takt_machine_close(machine);
}

static void a_board_that_says_twin_is_simulated(void **state)
{
	struct takt_machine *machine;

	fake_call_it_a_twin();
	machine = open_fake();
	assert_true(takt_machine_info(machine)->simulated);
	takt_machine_close(machine);
}

static void a_short_bus_id_of_an_old_driver_is_completed(void **state)
{
	struct takt_machine *machine;

	fake_hide("nvmlDeviceGetPciInfo_v3");
	machine = open_fake();
	assert_string_equal(takt_machine_facts(machine, 0)->pci_bus_id, "00000000:07:00.0");
	takt_machine_close(machine);
}

static void with_a_bus_id_missing_the_drivers_order_stands(void **state)
{
	struct takt_machine *machine;

	fake_lose(1, true); /* the first on the bus */
	machine = open_fake();
	assert_int_equal(takt_machine_info(machine)->gpu_count, FAKE_GPUS);
	assert_int_equal(takt_machine_facts(machine, 0)->minor, 0);
	assert_int_equal(takt_machine_facts(machine, 1)->has, 0);
	assert_int_equal(takt_machine_facts(machine, 2)->minor, 2);
	takt_machine_close(machine);
}

/* Hiding or refusing one function costs at most the facts that it gives. */
static const struct {
	const char *function;
	uint32_t lost;
} sources_of_facts[] = {
	{"nvmlDeviceGetName", TAKT_FACT_NAME},
	{"nvmlDeviceGetUUID", TAKT_FACT_UUID},
	{"nvmlDeviceGetPciInfo_v3", 0}, /* _v2 stands in */
	{"nvmlDeviceGetSerial", TAKT_FACT_SERIAL},
	{"nvmlDeviceGetVbiosVersion", TAKT_FACT_VBIOS},
	{"nvmlDeviceGetMinorNumber", TAKT_FACT_MINOR},
	{"nvmlDeviceGetMemoryInfo", TAKT_FACT_MEMORY},
	{"nvmlDeviceGetCudaComputeCapability", TAKT_FACT_COMPUTE_CAP},
	{"nvmlDeviceGetCpuAffinity", TAKT_FACT_CPUS},
	{"nvmlDeviceGetMemoryAffinity", TAKT_FACT_NUMA},
	{"nvmlDeviceGetPowerManagementLimitConstraints", TAKT_FACT_POWER_LIMITS},
	{"nvmlDeviceGetPowerManagementDefaultLimit", TAKT_FACT_POWER_LIMITS},
	{"nvmlDeviceGetSupportedMemoryClocks", TAKT_FACT_MEM_CLOCKS | TAKT_FACT_SM_CLOCKS},
	{"nvmlDeviceGetSupportedGraphicsClocks", TAKT_FACT_SM_CLOCKS},
	{"nvmlDeviceGetMaxClockInfo", TAKT_FACT_SM_MAX},
	{"nvmlDeviceGetTemperatureThreshold",
	 TAKT_FACT_THROTTLE_TEMP | TAKT_FACT_TEMP_MAX | TAKT_FACT_MEM_TEMP_MAX},
	{"nvmlDeviceGetMaxPcieLinkGeneration", TAKT_FACT_PCIE_MAX},
	{"nvmlDeviceGetMaxPcieLinkWidth", TAKT_FACT_PCIE_MAX},
	{"nvmlDeviceGetMigMode", TAKT_FACT_MIG},
};

static void a_missing_or_refused_function_costs_its_own_fact_only(void **state)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(sources_of_facts); i++) {
		for (int hide = 0; hide < 2; hide++) {
			struct takt_machine *machine;

			fake_reset();
			if (hide)
				fake_hide(sources_of_facts[i].function);
			else
				fake_answer(sources_of_facts[i].function, NVML_ERROR_NOT_SUPPORTED);
			machine = open_fake();
			if (takt_machine_facts(machine, 1)->has !=
			    (ALL_FACTS & ~sources_of_facts[i].lost))
				fail_msg("%s: has %x", sources_of_facts[i].function,
					 takt_machine_facts(machine, 1)->has);
			takt_machine_close(machine);
		}
	}
}

static void no_library_is_none_with_a_reason_or_an_error(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};

	fake_library_missing();
	assert_int_equal(takt_machine_open(&config, &machine, &err), -TAKT_E_UNAVAILABLE);
	assert_null(machine);
	assert_non_null(strstr(err.msg, "libnvidia-ml.so.1"));

	config.source = TAKT_SOURCE_AUTO;
	machine = open_with(config);
	assert_string_equal(takt_machine_info(machine)->source, "none");
	assert_int_equal(takt_machine_info(machine)->gpu_count, 0);
	assert_false(takt_machine_info(machine)->can_set);
	assert_non_null(strstr(takt_machine_info(machine)->why_none, "libnvidia-ml.so.1"));
	takt_machine_sample(machine, UINT32_MAX);
	takt_machine_close(machine);
}

static void a_driver_that_does_not_fit_its_module_is_said_so(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};

	fake_answer("nvmlInit_v2", NVML_ERROR_LIB_RM_VERSION_MISMATCH);
	assert_true(takt_machine_open(&config, &machine, &err) < 0);
	assert_int_equal(err.vendor, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
	assert_non_null(strstr(err.msg, "different versions"));
}

static void a_library_without_the_essential_functions_is_refused(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};

	fake_hide("nvmlDeviceGetCount_v2");
	assert_int_equal(takt_machine_open(&config, &machine, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "nvmlDeviceGetCount"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(gpus_come_in_pci_order_with_all_facts, reset_fake),
		cmocka_unit_test_setup(facts_are_what_the_driver_says, reset_fake),
		cmocka_unit_test_setup(direct_nvlinks_are_counted_by_their_remote, reset_fake),
		cmocka_unit_test_setup(behind_a_switch_every_pair_has_all_links, reset_fake),
		cmocka_unit_test_setup(links_are_left_out_for_those_who_need_none, reset_fake),
		cmocka_unit_test_setup(a_board_that_says_twin_is_simulated, reset_fake),
		cmocka_unit_test_setup(a_short_bus_id_of_an_old_driver_is_completed, reset_fake),
		cmocka_unit_test_setup(with_a_bus_id_missing_the_drivers_order_stands, reset_fake),
		cmocka_unit_test_setup(a_missing_or_refused_function_costs_its_own_fact_only,
				       reset_fake),
		cmocka_unit_test_setup(no_library_is_none_with_a_reason_or_an_error, reset_fake),
		cmocka_unit_test_setup(a_driver_that_does_not_fit_its_module_is_said_so,
				       reset_fake),
		cmocka_unit_test_setup(a_library_without_the_essential_functions_is_refused,
				       reset_fake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
