/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVML calls of the simulated driver, called as clients call them: what they answer before
 * initialisation, to bad arguments, into buffers that are too short or just long enough, and after
 * settings were made by another process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "twin_fixture.h"

typedef int any_fn(void *, void *, void *, void *, void *, void *);

/* What the real library answers before nvmlInit, where it is not "uninitialized". */
static bool early_exception(const char *name, int *ret)
{
	static const struct {
		const char *name;
		int code;
	} table[] = {
		{"nvmlShutdown", NVML_SUCCESS},
		{"nvmlSystemGetNVMLVersion", NVML_ERROR_INVALID_ARGUMENT},
		{"nvmlInternalGetExportTable", NVML_ERROR_INVALID_ARGUMENT},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(table); i++) {
		if (strcmp(table[i].name, name) == 0) {
			*ret = table[i].code;
			return true;
		}
	}
	return false;
}

static bool opens_or_returns_text(const char *name)
{
	return strncmp(name, "nvmlInit", 8) == 0 || strcmp(name, "nvmlErrorString") == 0;
}

/* Calls `visit` with each exported name. */
static void each_symbol(void (*visit)(const char *name))
{
	FILE *file = fopen(getenv("TAKT_TWIN_SYMBOLS"), "re");
	char name[96];
	unsigned count = 0;

	assert_non_null(file);
	while (fscanf(file, "%95s", name) == 1) {
		visit(name);
		count++;
	}
	fclose(file);
	assert_int_equal(count, 350);
}

static void early_with_nothing(const char *name)
{
	int expected = NVML_ERROR_UNINITIALIZED, rc;

	if (opens_or_returns_text(name))
		return;
	early_exception(name, &expected);
	rc = ((any_fn *)twin_symbol(name))(NULL, NULL, NULL, NULL, NULL, NULL);
	if (rc != expected)
		fail_msg("%s answers %d before init, not %d", name, rc, expected);
}

static void early_with_buffers(const char *name)
{
	static char buffer[6][65536];
	int expected = NVML_ERROR_UNINITIALIZED, rc;

	if (opens_or_returns_text(name) || early_exception(name, &expected))
		return;
	rc = ((any_fn *)twin_symbol(name))(buffer[0], buffer[1], buffer[2], buffer[3], buffer[4],
					   buffer[5]);
	if (rc != expected)
		fail_msg("%s answers %d before init, not %d", name, rc, expected);
}

static void every_call_before_init_is_uninitialized(void **state)
{
	each_symbol(early_with_nothing);
	each_symbol(early_with_buffers);
}

static void late_with_nothing(const char *name)
{
	int rc;

	if (opens_or_returns_text(name) || strcmp(name, "nvmlShutdown") == 0)
		return;
	rc = ((any_fn *)twin_symbol(name))(NULL, NULL, NULL, NULL, NULL, NULL);
	if (rc != NVML_ERROR_INVALID_ARGUMENT && rc != NVML_ERROR_NOT_SUPPORTED)
		fail_msg("%s answers %d to nothing but NULL", name, rc);
}

static void null_arguments_are_refused_everywhere(void **state)
{
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	each_symbol(late_with_nothing);
}

static void init_is_counted(void **state)
{
	uint32_t count;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlInitWithFlags)(0), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
	assert_int_equal(count, 8);
	assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
}

static void without_a_machine_there_is_no_driver(void **state)
{
	unsetenv("TAKT_TWIN");
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED);
	setenv("TAKT_TWIN", "/nonexistent/m.twin", 1);
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED);
	setenv("TAKT_TWIN", "/proc/self/exe", 1);
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED);
}

static void error_texts_are_the_drivers(void **state)
{
	assert_string_equal(NVML(nvmlErrorString)(0), "Success");
	assert_string_equal(NVML(nvmlErrorString)(24), "Invalid Frequency");
	assert_string_equal(NVML(nvmlErrorString)(28), "No supported GPUs were found");
	assert_string_equal(NVML(nvmlErrorString)(12345), "Unknown Error");
}

/* Functions (device, output): size of the output, version word that must stand in it. */
static const struct output {
	const char *name;
	size_t size;
	uint32_t version;
} outputs[] = {
	{"nvmlDeviceGetIndex", 4, 0},
	{"nvmlDeviceGetBrand", 4, 0},
	{"nvmlDeviceGetMinorNumber", 4, 0},
	{"nvmlDeviceGetPowerUsage", 4, 0},
	{"nvmlDeviceGetTotalEnergyConsumption", 8, 0},
	{"nvmlDeviceGetCurrentClocksThrottleReasons", 8, 0},
	{"nvmlDeviceGetSupportedEventTypes", 8, 0},
	{"nvmlDeviceGetPersistenceMode", 4, 0},
	{"nvmlDeviceGetUtilizationRates", sizeof(struct nvml_utilization), 0},
	{"nvmlDeviceGetMemoryInfo", sizeof(struct nvml_memory), 0},
	{"nvmlDeviceGetMemoryInfo_v2", sizeof(struct nvml_memory_v2), NVML_MEMORY_V2_WORD},
	{"nvmlDeviceGetBAR1MemoryInfo", sizeof(struct nvml_bar1_memory), 0},
	{"nvmlDeviceGetPciInfo", sizeof(struct nvml_pci_info_v2), 0},
	{"nvmlDeviceGetPciInfo_v2", sizeof(struct nvml_pci_info_v2), 0},
	{"nvmlDeviceGetPciInfo_v3", sizeof(struct nvml_pci_info), 0},
	{"nvmlDeviceGetPciInfoExt", sizeof(struct nvml_pci_info_ext), NVML_PCI_INFO_EXT_WORD},
	{"nvmlDeviceGetDynamicPstatesInfo", sizeof(struct nvml_dynamic_pstates), 0},
	{"nvmlDeviceGetPcieSpeed", 4, 0},
	{"nvmlDeviceGetPcieLinkMaxSpeed", 4, 0},
	{"nvmlDeviceGetFBCStats", sizeof(struct nvml_fbc_stats), 0},
	{"nvmlDeviceGetRowRemapperHistogram", sizeof(struct nvml_row_remapper_histogram), 0},
	{"nvmlDeviceGetGpuFabricInfo", sizeof(struct nvml_fabric_info), 0},
	{"nvmlDeviceGetGpuFabricInfoV", sizeof(struct nvml_fabric_info_v2),
	 NVML_FABRIC_INFO_V2_WORD},
	{"nvmlDeviceGetGpuFabricInfoV", sizeof(struct nvml_fabric_info_v3),
	 NVML_FABRIC_INFO_V3_WORD},
	{"nvmlDeviceGetSramEccErrorStatus", sizeof(struct nvml_ecc_sram_status),
	 NVML_ECC_SRAM_STATUS_WORD},
};

typedef int output_fn(struct nvml_device *, void *);

static void outputs_are_written_whole_and_no_further(void **state)
{
	unsigned char buffer[512];

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(outputs); i++) {
		const struct output *output = &outputs[i];
		output_fn *get = (output_fn *)twin_symbol(output->name);

		memset(buffer, 0xAA, sizeof(buffer));
		if (output->version)
			memcpy(buffer, &output->version, sizeof(output->version));
		if (get(twin_gpu_handle(0), buffer) != NVML_SUCCESS)
			fail_msg("%s does not answer", output->name);
		for (size_t at = output->size; at < sizeof(buffer); at++) {
			if (buffer[at] != 0xAA)
				fail_msg("%s writes byte %zu of %zu", output->name, at,
					 output->size);
		}
		assert_int_equal(get(twin_gpu_handle(0), NULL), NVML_ERROR_INVALID_ARGUMENT);
		assert_int_equal(get(NULL, buffer), NVML_ERROR_INVALID_ARGUMENT);
	}
}

static void texts_need_room_for_all_of_them(void **state)
{
	static const char *const names[] = {
		"nvmlDeviceGetName",
		"nvmlDeviceGetUUID",
		"nvmlDeviceGetSerial",
		"nvmlDeviceGetVbiosVersion",
		"nvmlDeviceGetBoardPartNumber",
		"nvmlDeviceGetInforomImageVersion",
	};
	char text[128], exact[128];

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		nvmlDeviceGetName_fn *get = (nvmlDeviceGetName_fn *)twin_symbol(names[i]);
		size_t size;

		assert_int_equal(get(twin_gpu_handle(1), text, sizeof(text)), NVML_SUCCESS);
		size = strlen(text) + 1;
		memset(exact, 0xAA, sizeof(exact));
		assert_int_equal(get(twin_gpu_handle(1), exact, (uint32_t)size - 1),
				 NVML_ERROR_INSUFFICIENT_SIZE);
		assert_int_equal((unsigned char)exact[0], 0xAA);
		assert_int_equal(get(twin_gpu_handle(1), exact, (uint32_t)size), NVML_SUCCESS);
		assert_string_equal(exact, text);
		assert_int_equal((unsigned char)exact[size], 0xAA);
	}
}

static void boards_say_what_they_are(void **state)
{
	char text[96];

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	NVML(nvmlDeviceGetName)(twin_gpu_handle(0), text, sizeof(text));
	assert_string_equal(text, "NVIDIA H100 80GB HBM3");
	NVML(nvmlDeviceGetSerial)(twin_gpu_handle(0), text, sizeof(text));
	assert_non_null(strstr(text, "TWIN"));
	NVML(nvmlDeviceGetVbiosVersion)(twin_gpu_handle(0), text, sizeof(text));
	assert_non_null(strstr(text, "TWIN"));
}

static void versions_are_judged_by_their_word(void **state)
{
	struct nvml_memory_v2 memory = {.version = 2}; /* what nvtop passes */
	struct nvml_fabric_info_v2 fabric = {.version = 2};

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetMemoryInfo_v2)(twin_gpu_handle(0), &memory),
			 NVML_ERROR_FUNCTION_NOT_FOUND);
	assert_int_equal(NVML(nvmlDeviceGetGpuFabricInfoV)(twin_gpu_handle(0), &fabric),
			 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void gpus_are_found_by_every_name(void **state)
{
	struct nvml_device *device;
	struct nvml_pci_info pci;
	char text[96];

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetHandleByIndex_v2)(8, &device),
			 NVML_ERROR_INVALID_ARGUMENT);
	NVML(nvmlDeviceGetUUID)(twin_gpu_handle(3), text, sizeof(text));
	assert_int_equal(NVML(nvmlDeviceGetHandleByUUID)(text, &device), NVML_SUCCESS);
	assert_ptr_equal(device, twin_gpu_handle(3));
	NVML(nvmlDeviceGetPciInfo_v3)(twin_gpu_handle(5), &pci);
	assert_string_equal(pci.bus_id, "00000000:A8:00.0");
	assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.bus_id, &device), NVML_SUCCESS);
	assert_ptr_equal(device, twin_gpu_handle(5));
	assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId_v2)("0000:a8:00.0", &device),
			 NVML_SUCCESS);
	assert_ptr_equal(device, twin_gpu_handle(5));
	assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId_v2)("0000:a9:00.0", &device),
			 NVML_ERROR_NOT_FOUND);
	assert_int_equal(NVML(nvmlDeviceGetHandleByUUID)("GPU-none", &device),
			 NVML_ERROR_NOT_FOUND);
}

static void clock_lists_go_from_high_to_low(void **state)
{
	uint32_t mhz[256], count = 0;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(
		NVML(nvmlDeviceGetSupportedGraphicsClocks)(twin_gpu_handle(0), 2619, &count, NULL),
		NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 110);
	assert_int_equal(
		NVML(nvmlDeviceGetSupportedGraphicsClocks)(twin_gpu_handle(0), 2619, &count, mhz),
		NVML_SUCCESS);
	assert_int_equal(mhz[0], 1980);
	assert_int_equal(mhz[109], 345);
	assert_int_equal(
		NVML(nvmlDeviceGetSupportedGraphicsClocks)(twin_gpu_handle(0), 1594, &count, mhz),
		NVML_ERROR_NOT_FOUND);
}

static void v100_clocks_step_by_seven_and_eight(void **state)
{
	uint32_t mhz[256], count = 256;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(
		NVML(nvmlDeviceGetSupportedGraphicsClocks)(twin_gpu_handle(0), 877, &count, mhz),
		NVML_SUCCESS);
	assert_int_equal(count, 187);
	assert_int_equal(mhz[0], 1530);
	assert_int_equal(mhz[1], 1522);
	assert_int_equal(mhz[186], 135);
}

/* NVLink counts between GPUs, as a client counts them: by the bus id of each link's other end. */
static uint32_t links_between(uint32_t a, uint32_t b)
{
	struct nvml_pci_info mine, other;
	uint32_t n = 0;

	NVML(nvmlDeviceGetPciInfo_v3)(twin_gpu_handle(b), &mine);
	for (uint32_t link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
		uint32_t active = 0;
		if (NVML(nvmlDeviceGetNvLinkState)(twin_gpu_handle(a), link, &active) !=
		    NVML_SUCCESS)
			continue;
		NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)(twin_gpu_handle(a), link, &other);
		n += active && strcmp(other.bus_id, mine.bus_id) == 0;
	}
	return n;
}

static void dgx1_has_its_cube_mesh(void **state)
{
	static const uint32_t row0[8] = {0, 1, 1, 2, 2, 0, 0, 0};
	static const uint32_t pcie0[8] = {0, 10, 30, 30, 50, 50, 50, 50};
	uint32_t level;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	for (uint32_t b = 0; b < 8; b++) {
		assert_int_equal(links_between(0, b), row0[b]);
		assert_int_equal(links_between(b, 0), row0[b]);
		assert_int_equal(NVML(nvmlDeviceGetTopologyCommonAncestor)(
					 twin_gpu_handle(0), twin_gpu_handle(b), &level),
				 NVML_SUCCESS);
		assert_int_equal(level, pcie0[b]);
	}
}

static void h100_links_end_in_switches(void **state)
{
	uint32_t type, active;
	struct nvml_pci_info pci;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	for (uint32_t link = 0; link < 18; link++) {
		assert_int_equal(NVML(nvmlDeviceGetNvLinkState)(twin_gpu_handle(2), link, &active),
				 NVML_SUCCESS);
		assert_int_equal(active, 1);
		NVML(nvmlDeviceGetNvLinkRemoteDeviceType)(twin_gpu_handle(2), link, &type);
		assert_int_equal(type, NVML_NVLINK_REMOTE_SWITCH);
	}
	assert_int_equal(NVML(nvmlDeviceGetNvLinkState)(twin_gpu_handle(2), 18, &active),
			 NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)(twin_gpu_handle(2), 18, &pci),
			 NVML_ERROR_NOT_SUPPORTED);
}

static void fields_have_codes_of_their_own(void **state)
{
	struct nvml_field_value fields[] = {
		{.field_id = NVML_FI_TOTAL_ENERGY},
		{.field_id = NVML_FI_POWER_AVERAGE},
		{.field_id = NVML_FI_POWER_MAX_LIMIT},
		{.field_id = NVML_FI_POWER_MAX_LIMIT, .scope_id = NVML_POWER_SCOPE_MODULE},
		{.field_id = 9999},
	};

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetFieldValues)(twin_gpu_handle(0), 5, fields),
			 NVML_SUCCESS);
	assert_int_equal(fields[0].ret, NVML_SUCCESS);
	assert_int_equal(fields[1].ret, NVML_SUCCESS);
	assert_int_equal(fields[2].value.u32, 700000);
	assert_int_equal(fields[3].ret, NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(fields[4].ret, NVML_ERROR_NOT_SUPPORTED);
}

static void v100_reports_no_average_power(void **state)
{
	struct nvml_field_value fields[] = {{.field_id = NVML_FI_POWER_AVERAGE},
					    {.field_id = NVML_FI_POWER_INSTANT},
					    {.field_id = NVML_FI_TLIMIT_SLOWDOWN}};

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetFieldValues)(twin_gpu_handle(0), 3, fields),
			 NVML_SUCCESS);
	assert_int_equal(fields[0].ret, NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(fields[1].ret, NVML_SUCCESS);
	assert_int_equal(fields[2].ret, NVML_ERROR_NOT_SUPPORTED);
}

/* A process of its own initialises, sets, and ends. */
static int set_in_child(int (*set)(struct nvml_device *))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(NVML(nvmlInit_v2)() == NVML_SUCCESS ? set(twin_gpu_handle(4)) : 99);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int hold_990(struct nvml_device *device)
{
	return NVML(nvmlDeviceSetGpuLockedClocks)(device, 992, 992);
}

static int release(struct nvml_device *device)
{
	return NVML(nvmlDeviceResetGpuLockedClocks)(device);
}

static int cap_at_300_w(struct nvml_device *device)
{
	return NVML(nvmlDeviceSetPowerManagementLimit)(device, 300000);
}

static void a_lock_outlives_the_process_that_set_it(void **state)
{
	uint32_t mhz;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	NVML(nvmlDeviceGetClockInfo)(twin_gpu_handle(4), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 345);
	assert_int_equal(set_in_child(hold_990), NVML_SUCCESS);
	NVML(nvmlDeviceGetClockInfo)(twin_gpu_handle(4), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 990);
	NVML(nvmlDeviceGetClockInfo)(twin_gpu_handle(5), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 345);
	assert_int_equal(set_in_child(release), NVML_SUCCESS);
	NVML(nvmlDeviceGetClockInfo)(twin_gpu_handle(4), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 345);
}

static void a_power_limit_is_read_back_by_others(void **state)
{
	uint32_t limit;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(set_in_child(cap_at_300_w), NVML_SUCCESS);
	NVML(nvmlDeviceGetPowerManagementLimit)(twin_gpu_handle(4), &limit);
	assert_int_equal(limit, 300000);
	assert_int_equal(NVML(nvmlDeviceSetPowerManagementLimit)(twin_gpu_handle(4), 199999),
			 NVML_ERROR_INVALID_ARGUMENT);
	NVML(nvmlDeviceGetEnforcedPowerLimit)(twin_gpu_handle(4), &limit);
	assert_int_equal(limit, 300000);
}

static void bad_clock_wishes_change_nothing(void **state)
{
	struct nvml_device *gpu;
	struct twin_gpu truth;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	gpu = twin_gpu_handle(0);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(gpu, 1400, 1200),
			 NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(gpu, 345, NVML_CLOCK_LIMIT_ID_TDP),
			 NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(NVML(nvmlDeviceSetApplicationsClocks)(gpu, 2619, 1001),
			 NVML_ERROR_INVALID_ARGUMENT);
	twin_read(twin_fixture_map(), 0, &truth);
	assert_int_equal(truth.lock_max_mhz, 0);
	assert_int_equal(truth.application_mhz, 0);
	assert_int_equal(truth.setter_calls, 3);
	assert_int_equal(truth.setter_refusals, 3);
}

static void v100_has_no_memory_lock(void **state)
{
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceSetMemoryLockedClocks)(twin_gpu_handle(0), 877, 877),
			 NVML_ERROR_NOT_SUPPORTED);
}

/* One process list in each of its layouts, exactly as long as needed. */
static void process_lists_fit_their_layouts(void **state)
{
	pid_t pid = twin_start_load("--mem 1000 --gpus 6", 6);
	struct nvml_process_info_v1 old[3];
	struct nvml_process_info new[3];
	uint32_t count = 0;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	memset(old, 0xAA, sizeof(old));
	memset(new, 0xAA, sizeof(new));
	assert_int_equal(
		NVML(nvmlDeviceGetComputeRunningProcesses_v3)(twin_gpu_handle(6), &count, NULL),
		NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 1);
	assert_int_equal(
		NVML(nvmlDeviceGetComputeRunningProcesses_v3)(twin_gpu_handle(6), &count, new),
		NVML_SUCCESS);
	assert_int_equal(new[0].pid, pid);
	assert_int_equal(new[0].used_memory, 1000ull << 20);
	assert_int_equal(new[0].gpu_instance_id, NVML_NO_VALUE_U32);
	assert_int_equal(new[1].pid, 0xAAAAAAAA);
	assert_int_equal(
		NVML(nvmlDeviceGetComputeRunningProcesses)(twin_gpu_handle(6), &count, old),
		NVML_SUCCESS);
	assert_int_equal(old[0].pid, pid);
	assert_int_equal(old[0].used_memory, 1000ull << 20);
	assert_int_equal(old[1].pid, 0xAAAAAAAA);
	twin_end(pid);
}

static void an_idle_gpu_lists_nobody(void **state)
{
	struct nvml_process_utilization samples[4];
	uint32_t count = 4;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(
		NVML(nvmlDeviceGetComputeRunningProcesses_v3)(twin_gpu_handle(0), &count, NULL),
		NVML_SUCCESS);
	assert_int_equal(count, 0);
	count = 4;
	assert_int_equal(
		NVML(nvmlDeviceGetProcessUtilization)(twin_gpu_handle(0), samples, &count, 0),
		NVML_ERROR_NOT_FOUND);
}

/* Samples carry the time of day, and each is handed out to those who have not seen it. */
static void a_busy_process_has_a_sample_of_now(void **state)
{
	pid_t pid = twin_start_load("--gpus 1", 1);
	struct nvml_process_utilization samples[4];
	uint64_t now_us = (uint64_t)time(NULL) * 1000000;
	uint32_t count = 4;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetProcessUtilization)(twin_gpu_handle(1), samples, &count,
							       now_us - 5000000),
			 NVML_SUCCESS);
	assert_int_equal(count, 1);
	assert_int_equal(samples[0].pid, pid);
	assert_int_equal(samples[0].sm, 100);
	assert_in_range(samples[0].timestamp_us, now_us - 5000000, now_us + 60000000);
	assert_int_equal(NVML(nvmlDeviceGetProcessUtilization)(twin_gpu_handle(1), samples, &count,
							       now_us + 86400000000),
			 NVML_ERROR_NOT_FOUND);
	twin_end(pid);
}

static uint64_t used_bytes(uint32_t gpu)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_WORD};

	assert_int_equal(NVML(nvmlDeviceGetMemoryInfo_v2)(twin_gpu_handle(gpu), &memory),
			 NVML_SUCCESS);
	assert_int_equal(memory.total, memory.reserved + memory.used + memory.free);
	return memory.used;
}

/* A killed process leaves the list at once and its memory a moment later. */
static void a_killed_process_is_noticed(void **state)
{
	pid_t pid = twin_start_load("--mem 2000 --gpus 1", 1);
	struct timespec nap = {.tv_nsec = 10000000};
	uint32_t count = 0;
	int tries = 500;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(used_bytes(1), 2000ull << 20);
	twin_end(pid);
	do {
		nanosleep(&nap, NULL);
		count = 0;
	} while (NVML(nvmlDeviceGetComputeRunningProcesses_v3)(twin_gpu_handle(1), &count, NULL) !=
			 NVML_SUCCESS &&
		 --tries);
	assert_int_equal(count, 0);
	while (used_bytes(1) && --tries > 0)
		nanosleep(&nap, NULL);
	assert_int_equal(used_bytes(1), 0);
}

/* Old to new, a cell apart; who has seen them all gets none. */
static void samples_are_handed_out_once(void **state)
{
	struct nvml_sample samples[11];
	uint32_t type, count = 0;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetSamples)(twin_gpu_handle(0), NVML_SAMPLES_TOTAL_POWER, 0,
						    &type, &count, NULL),
			 NVML_SUCCESS);
	assert_int_equal(count, 10);
	memset(samples, 0xAA, sizeof(samples));
	assert_int_equal(NVML(nvmlDeviceGetSamples)(twin_gpu_handle(0), NVML_SAMPLES_TOTAL_POWER, 0,
						    &type, &count, samples),
			 NVML_SUCCESS);
	assert_int_equal(count, 10);
	assert_int_equal(samples[10].timestamp_us, 0xAAAAAAAAAAAAAAAA);
	assert_in_range(samples[9].value.u32, 60000, 80000);
	assert_int_equal(samples[9].timestamp_us - samples[0].timestamp_us, 900000);
	assert_int_equal(NVML(nvmlDeviceGetSamples)(twin_gpu_handle(0), NVML_SAMPLES_TOTAL_POWER,
						    samples[9].timestamp_us + 60000000, &type,
						    &count, samples),
			 NVML_ERROR_NOT_FOUND);
	assert_int_equal(
		NVML(nvmlDeviceGetSamples)(twin_gpu_handle(0), 99, 0, &type, &count, samples),
		NVML_ERROR_INVALID_ARGUMENT);
}

static void a_lost_gpu_is_lost_alone(void **state)
{
	uint32_t value;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(twin_run("fault 3 lost"), 0);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(twin_gpu_handle(3), &value),
			 NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(twin_gpu_handle(3), 345, 990),
			 NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(twin_gpu_handle(2), &value), NVML_SUCCESS);
	assert_int_equal(twin_run("fault 3 none"), 0);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(twin_gpu_handle(3), &value), NVML_SUCCESS);
}

static void without_permission_only_setters_fail(void **state)
{
	uint32_t value;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(twin_run("fault all permission"), 0);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(twin_gpu_handle(0), 345, 990),
			 NVML_ERROR_NO_PERMISSION);
	assert_int_equal(NVML(nvmlDeviceSetPowerManagementLimit)(twin_gpu_handle(0), 400000),
			 NVML_ERROR_NO_PERMISSION);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(twin_gpu_handle(0), &value), NVML_SUCCESS);
}

/* Neither root nor the machine's owner: readings yes, settings no. */
static void a_stranger_may_look_and_not_touch(void **state)
{
	bool root = geteuid() == 0;
	uint32_t value;
	int status;
	pid_t pid;

	assert_int_equal(twin_let_others_in(), 0);
	pid = fork();
	if (pid == 0) {
		if (root && setuid(65534) != 0)
			_exit(90);
		if (NVML(nvmlInit_v2)() != NVML_SUCCESS ||
		    NVML(nvmlDeviceGetPowerUsage)(twin_gpu_handle(0), &value) != NVML_SUCCESS)
			_exit(91);
		_exit(NVML(nvmlDeviceSetGpuLockedClocks)(twin_gpu_handle(0), 345, 990));
	}
	waitpid(pid, &status, 0);
	/* who is not root cannot become a stranger, and is the owner */
	assert_int_equal(WEXITSTATUS(status), root ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS);
}

static void a_driver_may_refuse_to_restore(void **state)
{
	struct twin_gpu truth;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(twin_run("fault 0 driver-restore-refused"), 0);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(twin_gpu_handle(0), 345, 990),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceResetGpuLockedClocks)(twin_gpu_handle(0)),
			 NVML_ERROR_NO_PERMISSION);
	twin_read(twin_fixture_map(), 0, &truth);
	assert_int_equal(truth.lock_max_mhz, 990);
	assert_int_equal(twin_run("fault 0 none"), 0);
	assert_int_equal(NVML(nvmlDeviceResetGpuLockedClocks)(twin_gpu_handle(0)), NVML_SUCCESS);
}

static void a_hanging_gpu_answers_when_its_time_is_over(void **state)
{
	uint64_t before = twin_now_ns();
	uint32_t value;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(twin_run("fault 0 hang=1"), 0);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(twin_gpu_handle(1), &value), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(twin_gpu_handle(0), &value), NVML_SUCCESS);
	assert_true(twin_now_ns() - before >= 1000000000);
}

#define ON_H100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_h100, twin_fixture_end)
#define ON_V100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_v100, twin_fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_H100(every_call_before_init_is_uninitialized),
		ON_H100(null_arguments_are_refused_everywhere),
		ON_H100(init_is_counted),
		ON_H100(without_a_machine_there_is_no_driver),
		ON_H100(error_texts_are_the_drivers),
		ON_H100(outputs_are_written_whole_and_no_further),
		ON_H100(texts_need_room_for_all_of_them),
		ON_H100(boards_say_what_they_are),
		ON_H100(versions_are_judged_by_their_word),
		ON_H100(gpus_are_found_by_every_name),
		ON_H100(clock_lists_go_from_high_to_low),
		ON_V100(v100_clocks_step_by_seven_and_eight),
		ON_V100(dgx1_has_its_cube_mesh),
		ON_H100(h100_links_end_in_switches),
		ON_H100(fields_have_codes_of_their_own),
		ON_V100(v100_reports_no_average_power),
		ON_H100(a_lock_outlives_the_process_that_set_it),
		ON_H100(a_power_limit_is_read_back_by_others),
		ON_H100(bad_clock_wishes_change_nothing),
		ON_V100(v100_has_no_memory_lock),
		ON_H100(process_lists_fit_their_layouts),
		ON_H100(an_idle_gpu_lists_nobody),
		ON_H100(a_busy_process_has_a_sample_of_now),
		ON_H100(a_killed_process_is_noticed),
		ON_H100(samples_are_handed_out_once),
		ON_H100(a_lost_gpu_is_lost_alone),
		ON_H100(without_permission_only_setters_fail),
		ON_H100(a_stranger_may_look_and_not_touch),
		ON_H100(a_driver_may_refuse_to_restore),
		ON_H100(a_hanging_gpu_answers_when_its_time_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
