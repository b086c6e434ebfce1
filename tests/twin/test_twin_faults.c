/* SPDX-License-Identifier: Apache-2.0 */
/* What clients notice when a simulated GPU breaks: readings, events, and a driver that goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "twin_fixture.h"

enum {
	WAIT_TRIES = 12000 /* of 10 ms: far more than anything here takes */
};

static struct nvml_device *gpu(uint32_t index)
{
	return twin_gpu_handle(index);
}

static void init(void)
{
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
}

static struct nvml_event_set *listen_to(uint32_t index, uint64_t types)
{
	struct nvml_event_set *set = NULL;

	assert_int_equal(NVML(nvmlEventSetCreate)(&set), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(index), types, set), NVML_SUCCESS);
	return set;
}

static void an_xid_reaches_those_who_wait(void **state)
{
	struct nvml_event_data data;
	struct nvml_event_set *set;

	init();
	assert_int_equal(twin_run("fault 3 xid=31"), 0); /* before anybody listened */
	set = listen_to(3, NVML_EVENT_XID_CRITICAL);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 20), NVML_ERROR_TIMEOUT);
	assert_int_equal(twin_run("fault 2 xid=13"), 0); /* a GPU that is not registered */
	assert_int_equal(twin_run("fault 3 xid=43"), 0);
	assert_int_equal(twin_run("fault 3 ecc-corrected"), 0); /* of another type */
	assert_int_equal(twin_run("fault 3 lost"), 0);
	memset(&data, 0xAA, sizeof(data));
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 1000), NVML_SUCCESS);
	assert_ptr_equal(data.device, gpu(3));
	assert_int_equal(data.event_type, NVML_EVENT_XID_CRITICAL);
	assert_int_equal(data.event_data, 43);
	assert_int_equal(data.gpu_instance_id, NVML_NO_VALUE_U32);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 1000), NVML_SUCCESS);
	assert_int_equal(data.event_data, 79);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(NVML(nvmlEventSetFree)(set), NVML_SUCCESS);
}

/* Old clients have room for 24 bytes. */
static void the_old_event_is_shorter(void **state)
{
	struct {
		struct nvml_event_data_v1 data;
		unsigned char behind[16];
	} room;
	struct nvml_event_set *set;

	init();
	set = listen_to(0, NVML_EVENT_XID_CRITICAL);
	assert_int_equal(twin_run("fault 0 xid=48"), 0);
	memset(&room, 0xAA, sizeof(room));
	assert_int_equal(NVML(nvmlEventSetWait)(set, &room.data, 1000), NVML_SUCCESS);
	assert_int_equal(room.data.event_data, 48);
	for (unsigned i = 0; i < sizeof(room.behind); i++)
		assert_int_equal(room.behind[i], 0xAA);
	NVML(nvmlEventSetFree)(set);
}

/* One set for several GPUs tells what happened in the order in which it did; one that is lost ends
 * the waiting for all of them, and cannot be registered any more. */
static void a_set_listens_to_several_gpus(void **state)
{
	struct nvml_event_set *set, *other;
	struct nvml_event_data data;
	uint64_t before;

	init();
	set = listen_to(1, NVML_EVENT_XID_CRITICAL);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(2), NVML_EVENT_XID_CRITICAL, set),
			 NVML_SUCCESS);
	assert_int_equal(twin_run("fault 2 xid=31"), 0);
	assert_int_equal(twin_run("fault 1 xid=43"), 0);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 1000), NVML_SUCCESS);
	assert_ptr_equal(data.device, gpu(2));
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 1000), NVML_SUCCESS);
	assert_ptr_equal(data.device, gpu(1));
	before = twin_now_ns();
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 50), NVML_ERROR_TIMEOUT);
	assert_true(twin_now_ns() - before >= 50000000ull);
	assert_int_equal(twin_run("fault 2 lost"), 0);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 1000), NVML_SUCCESS);
	assert_int_equal(data.event_data, 79);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 60000), NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(NVML(nvmlEventSetCreate)(&other), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(2), NVML_EVENT_XID_CRITICAL, other),
			 NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(3), NVML_EVENT_XID_CRITICAL, other),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(other, &data, 0), NVML_ERROR_TIMEOUT);
	NVML(nvmlEventSetFree)(other);
	NVML(nvmlEventSetFree)(set);
}

static void types_that_no_gpu_has_are_refused(void **state)
{
	struct nvml_event_set *set;
	uint64_t types;

	init();
	assert_int_equal(NVML(nvmlEventSetCreate)(&set), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetSupportedEventTypes)(gpu(0), &types), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(0), types, set), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(0), types | 1ull << 40, set),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(0), types, NULL),
			 NVML_ERROR_INVALID_ARGUMENT);
	NVML(nvmlEventSetFree)(set);
}

static void an_event_ends_a_wait_at_once(void **state)
{
	struct nvml_event_data data;
	struct nvml_event_set *set;
	uint64_t before;
	pid_t pid;

	init();
	set = listen_to(1, NVML_EVENT_XID_CRITICAL | NVML_EVENT_DOUBLE_BIT_ECC);
	before = twin_now_ns();
	pid = fork();
	if (pid == 0)
		_exit(twin_run("fault 1 ecc --at 100ms"));
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 120000), NVML_SUCCESS);
	assert_true(twin_now_ns() - before < 60000000000ull); /* and not at the end of the wait */
	assert_true(twin_now_ns() - before >= 100000000ull);
	assert_int_equal(data.event_type, NVML_EVENT_DOUBLE_BIT_ECC);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 120000), NVML_SUCCESS);
	assert_int_equal(data.event_data, 48);
	waitpid(pid, NULL, 0);
	NVML(nvmlEventSetFree)(set);
}

static uint64_t errors(uint32_t counter)
{
	uint64_t count = 99;

	assert_int_equal(NVML(nvmlDeviceGetTotalEccErrors)(gpu(0), NVML_ECC_ERROR_UNCORRECTED,
							   counter, &count),
			 NVML_SUCCESS);
	return count;
}

static void a_bad_row_waits_for_a_reload(void **state)
{
	uint32_t cor, unc, pending, failure;
	struct nvml_field_value field = {.field_id = NVML_FI_REMAPPED_PENDING};

	init();
	assert_int_equal(twin_run("fault 0 ecc"), 0);
	assert_int_equal(errors(NVML_ECC_COUNTER_VOLATILE), 1);
	assert_int_equal(NVML(nvmlDeviceGetRemappedRows)(gpu(0), &cor, &unc, &pending, &failure),
			 NVML_SUCCESS);
	assert_int_equal(unc, 0);
	assert_int_equal(pending, 1);
	assert_int_equal(NVML(nvmlDeviceGetFieldValues)(gpu(0), 1, &field), NVML_SUCCESS);
	assert_int_equal(field.value.u32, 1);
	assert_int_equal(twin_run("fault all driver-reload"), 0);
	NVML(nvmlShutdown)();
	init();
	assert_int_equal(NVML(nvmlDeviceGetRemappedRows)(gpu(0), &cor, &unc, &pending, &failure),
			 NVML_SUCCESS);
	assert_int_equal(unc, 1);
	assert_int_equal(pending, 0);
	assert_int_equal(errors(NVML_ECC_COUNTER_VOLATILE), 0);
	assert_int_equal(errors(NVML_ECC_COUNTER_AGGREGATE), 1);
}

static void old_boards_retire_pages(void **state)
{
	uint64_t addresses[2] = {0};
	uint32_t pending, count = 2;

	init();
	assert_int_equal(twin_run("fault 0 ecc"), 0);
	assert_int_equal(NVML(nvmlDeviceGetRetiredPagesPendingStatus)(gpu(0), &pending),
			 NVML_SUCCESS);
	assert_int_equal(pending, 1);
	assert_int_equal(twin_run("fault all driver-reload"), 0);
	NVML(nvmlShutdown)();
	init();
	assert_int_equal(NVML(nvmlDeviceGetRetiredPages)(gpu(0), 1, &count, addresses),
			 NVML_SUCCESS);
	assert_int_equal(count, 1);
	assert_true(addresses[0] != 0);
	assert_int_equal(twin_run("fault 0 remap-failed"), 64);
}

static void a_power_brake_halves_the_clock(void **state)
{
	pid_t pid = twin_start_load("--gpus 0", 0);
	uint64_t reasons;
	uint32_t mhz;

	init();
	assert_int_equal(twin_run("fault 0 power-brake"), 0);
	NVML(nvmlDeviceGetClockInfo)(gpu(0), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 990);
	NVML(nvmlDeviceGetCurrentClocksEventReasons)(gpu(0), &reasons);
	assert_true(reasons & NVML_REASON_HW_POWER_BRAKE);
	assert_int_equal(twin_run("fault 0 none"), 0);
	NVML(nvmlDeviceGetClockInfo)(gpu(0), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 1980);
	twin_end(pid);
}

static void a_bus_falls_back(void **state)
{
	uint32_t width, gen, max;

	init();
	assert_int_equal(twin_run("fault 0 pcie-width=4"), 0);
	assert_int_equal(twin_run("fault 0 pcie-gen=3"), 0);
	NVML(nvmlDeviceGetCurrPcieLinkWidth)(gpu(0), &width);
	NVML(nvmlDeviceGetCurrPcieLinkGeneration)(gpu(0), &gen);
	NVML(nvmlDeviceGetMaxPcieLinkWidth)(gpu(0), &max);
	assert_int_equal(width, 4);
	assert_int_equal(gen, 3);
	assert_int_equal(max, 16);
	assert_int_equal(twin_run("fault 0 pcie-width=3"), 64);
	assert_int_equal(twin_run("fault 0 pcie-gen=5"), 64);
}

static void a_link_goes_down_alone(void **state)
{
	uint32_t active;

	init();
	assert_int_equal(twin_run("fault 0 link-down=5"), 0);
	NVML(nvmlDeviceGetNvLinkState)(gpu(0), 5, &active);
	assert_int_equal(active, 0);
	NVML(nvmlDeviceGetNvLinkState)(gpu(0), 4, &active);
	assert_int_equal(active, 1);
	assert_int_equal(twin_run("fault 0 link-down=18"), 64);
}

static uint32_t p2p(uint32_t a, uint32_t b, uint32_t cap)
{
	uint32_t status = 99;

	assert_int_equal(NVML(nvmlDeviceGetP2PStatus)(gpu(a), gpu(b), cap, &status), NVML_SUCCESS);
	return status;
}

/* Of a DGX-1's first GPU, links 2 and 3 lead to its fourth, 4 and 5 to the fifth, which is under
 * the other socket. */
static void peers_lose_each_other_with_their_last_link(void **state)
{
	uint32_t active = 9;

	init();
	assert_int_equal(twin_run("fault 0 link-down=2"), 0);
	assert_int_equal(p2p(0, 3, NVML_P2P_CAP_NVLINK), NVML_P2P_STATUS_OK);
	assert_int_equal(twin_run("fault 0 link-down=3"), 0);
	assert_int_equal(p2p(0, 3, NVML_P2P_CAP_NVLINK), NVML_P2P_STATUS_NOT_SUPPORTED);
	assert_int_equal(p2p(3, 0, NVML_P2P_CAP_NVLINK), NVML_P2P_STATUS_NOT_SUPPORTED);
	/* the bus is there still, but not between sockets */
	assert_int_equal(p2p(0, 3, NVML_P2P_CAP_READ), NVML_P2P_STATUS_OK);
	assert_int_equal(p2p(0, 4, NVML_P2P_CAP_READ), NVML_P2P_STATUS_OK);
	assert_int_equal(twin_run("fault 4 link-down=0"), 0);
	assert_int_equal(twin_run("fault 4 link-down=1"), 0);
	assert_int_equal(p2p(0, 4, NVML_P2P_CAP_READ), NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
	/* the far end of the link is down, too */
	assert_int_equal(NVML(nvmlDeviceGetNvLinkState)(gpu(0), 4, &active), NVML_SUCCESS);
	assert_int_equal(active, NVML_FEATURE_DISABLED);
	assert_int_equal(p2p(0, 1, NVML_P2P_CAP_NVLINK), NVML_P2P_STATUS_OK);
	assert_int_equal(twin_run("fault all none"), 0);
	assert_int_equal(p2p(0, 4, NVML_P2P_CAP_NVLINK), NVML_P2P_STATUS_OK);
}

/* Its calls take their time and are right; the GPU beside it is as quick as ever. */
static void a_slow_gpu_answers_late(void **state)
{
	uint64_t before;
	uint32_t value;

	init();
	assert_int_equal(twin_run("fault 0 slow=300"), 0);
	before = twin_now_ns();
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(gpu(0), &value), NVML_SUCCESS);
	assert_true(twin_now_ns() - before >= 300000000);
	assert_in_range(value, 60000, 80000);
	assert_int_equal(twin_run("fault 0 none"), 0);
	/* as quick as never again: with the fault, 400 calls would take 120 s */
	before = twin_now_ns();
	for (unsigned i = 0; i < 400; i++)
		NVML(nvmlDeviceGetPowerUsage)(gpu(0), &value);
	assert_true(twin_now_ns() - before < 60000000000ull);
}

/* Planned, by a process that has ended long before. */
static void a_reload_can_be_planned(void **state)
{
	int tries = WAIT_TRIES;
	uint32_t mhz;

	init();
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(gpu(1), 990, 990), NVML_SUCCESS);
	assert_int_equal(twin_run("fault all driver-reload --at 200ms"), 0);
	while (NVML(nvmlDeviceGetClockInfo)(gpu(1), NVML_CLOCK_SM, &mhz) != NVML_ERROR_UNKNOWN &&
	       --tries)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_true(tries > 0);
	NVML(nvmlShutdown)();
	init();
	NVML(nvmlDeviceGetClockInfo)(gpu(1), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 345);
}

static void a_reload_forgets_what_was_set(void **state)
{
	pid_t pid = twin_start_load("--gpus 0", 0);
	uint32_t mhz, current, pending, count = 9;
	struct nvml_device *device;
	uint64_t before, after;
	int tries = WAIT_TRIES;

	init();
	device = gpu(0);
	assert_int_equal(NVML(nvmlDeviceSetMigMode)(gpu(1), 1, &(int){0}), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(device, 990, 990), NVML_SUCCESS);
	/* more than it can use again until the count is read below */
	do {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		NVML(nvmlDeviceGetTotalEnergyConsumption)(device, &before);
	} while (before < 1000000 && --tries);
	assert_true(tries > 0);
	assert_int_equal(twin_run("fault all driver-reload"), 0);
	assert_int_equal(NVML(nvmlDeviceGetClockInfo)(device, NVML_CLOCK_SM, &mhz),
			 NVML_ERROR_UNKNOWN);
	NVML(nvmlShutdown)();
	init();
	NVML(nvmlDeviceGetTotalEnergyConsumption)(gpu(0), &after);
	assert_true(after < before);
	NVML(nvmlDeviceGetClockInfo)(gpu(0), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 345);
	assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(gpu(0), &count, NULL),
			 NVML_SUCCESS);
	assert_int_equal(count, 0);
	/* Hopper does not keep its mode */
	NVML(nvmlDeviceGetMigMode)(gpu(1), &current, &pending);
	assert_int_equal(current + pending, 0);
	twin_end(pid);
}

static void a_driver_may_be_away_for_a_while(void **state)
{
	int tries = WAIT_TRIES;

	assert_int_equal(twin_run("fault 0 driver-reload"), 64);
	assert_int_equal(twin_run("fault all driver-reload=5"), 0);
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED);
	while (NVML(nvmlInit_v2)() != NVML_SUCCESS && --tries)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_true(tries > 0);
}

#define ON_H100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_h100, twin_fixture_end)
#define ON_V100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_v100, twin_fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_H100(an_xid_reaches_those_who_wait),
		ON_H100(the_old_event_is_shorter),
		ON_H100(a_set_listens_to_several_gpus),
		ON_H100(types_that_no_gpu_has_are_refused),
		ON_H100(an_event_ends_a_wait_at_once),
		ON_H100(a_bad_row_waits_for_a_reload),
		ON_V100(old_boards_retire_pages),
		ON_H100(a_power_brake_halves_the_clock),
		ON_H100(a_bus_falls_back),
		ON_H100(a_link_goes_down_alone),
		ON_V100(peers_lose_each_other_with_their_last_link),
		ON_H100(a_reload_forgets_what_was_set),
		ON_H100(a_reload_can_be_planned),
		ON_H100(a_slow_gpu_answers_late),
		ON_H100(a_driver_may_be_away_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
