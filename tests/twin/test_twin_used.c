/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was used of a GPU, told in several ways that must agree: accounting, GPM, traffic of
 * NVLinks, samples of the last cells. And modes that are set and read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "twin_fixture.h"
#include "twin_physics.h"

static void nap_ms(unsigned ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

	nanosleep(&ts, NULL);
}

static struct nvml_device *gpu(uint32_t index)
{
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	return twin_gpu_handle(index);
}

static void accounting_is_off_until_it_is_asked_for(void **state)
{
	struct nvml_device *device = gpu(0);
	struct nvml_accounting_stats stats;
	uint32_t mode, count = 4, pids[4];

	assert_int_equal(NVML(nvmlDeviceGetAccountingMode)(device, &mode), NVML_SUCCESS);
	assert_int_equal(mode, NVML_FEATURE_DISABLED);
	assert_int_equal(NVML(nvmlDeviceGetAccountingPids)(device, &count, pids),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetAccountingStats)(device, 1, &stats),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceSetAccountingMode)(device, 2), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(NVML(nvmlDeviceSetAccountingMode)(device, 1), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetAccountingMode)(device, &mode), NVML_SUCCESS);
	assert_int_equal(mode, NVML_FEATURE_ENABLED);
	assert_int_equal(NVML(nvmlDeviceGetAccountingPids)(device, &count, pids), NVML_SUCCESS);
	assert_int_equal(count, 0);
	assert_int_equal(NVML(nvmlDeviceGetAccountingStats)(device, 1, &stats),
			 NVML_ERROR_NOT_FOUND);
}

static struct nvml_accounting_stats stats_of(struct nvml_device *device, pid_t pid)
{
	struct nvml_accounting_stats stats;

	assert_int_equal(NVML(nvmlDeviceGetAccountingStats)(device, (uint32_t)pid, &stats),
			 NVML_SUCCESS);
	return stats;
}

/* A process is in the books while it lives and after it; its time stands when it has ended. */
static void accounting_remembers_who_has_ended(void **state)
{
	struct nvml_device *device = gpu(0);
	pid_t before = twin_start_load("--mem 500 --gpus 0", 0), pid;
	struct nvml_accounting_stats alive, ended;
	uint64_t now_us = (uint64_t)time(NULL) * 1000000;
	uint32_t count = 0, pids[4];

	assert_int_equal(NVML(nvmlDeviceSetAccountingMode)(device, 1), NVML_SUCCESS);
	pid = twin_start_load("--mem 1000 --gpus 0", 0);
	nap_ms(200);
	alive = stats_of(device, pid);
	assert_int_equal(alive.running, 1);
	assert_int_equal(alive.time_ms, 0);
	assert_int_equal(alive.max_memory, 1000ull << 20);
	assert_in_range(alive.start_us, now_us - 5000000, now_us + 60000000);
	/* two that want all of it share it */
	assert_in_range(alive.gpu, 30, 60);
	twin_end(pid);
	for (int i = 0; i < 1000 && stats_of(device, pid).running; i++)
		nap_ms(5);
	nap_ms(200); /* its memory is back, its place in the list of loads is free */
	ended = stats_of(device, pid);
	assert_int_equal(ended.running, 0);
	assert_in_range(ended.time_ms, 190, 60000);
	assert_int_equal(ended.max_memory, alive.max_memory);
	assert_int_equal(stats_of(device, pid).time_ms, ended.time_ms);
	assert_int_equal(NVML(nvmlDeviceGetAccountingPids)(device, &count, NULL),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 1); /* who began before accounting is not in it */
	assert_int_equal(NVML(nvmlDeviceGetAccountingPids)(device, &count, pids), NVML_SUCCESS);
	assert_int_equal(pids[0], pid);
	assert_int_equal(NVML(nvmlDeviceClearAccountingPids)(device), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetAccountingPids)(device, &count, pids), NVML_SUCCESS);
	assert_int_equal(count, 0);
	twin_end(before);
}

/* A caller's request for metrics, with bytes behind it that nobody may touch. */
struct request {
	struct nvml_gpm_metrics_get head;
	struct nvml_gpm_metric metrics[6];
	unsigned char canary[64];
};

static struct request request_for(struct nvml_gpm_sample *from, struct nvml_gpm_sample *to,
				  const uint32_t *ids, uint32_t count)
{
	struct request request;

	memset(&request, 0xAA, sizeof(request));
	request.head = (struct nvml_gpm_metrics_get){NVML_GPM_VERSION, count, from, to};
	for (uint32_t i = 0; i < count; i++)
		request.metrics[i].id = ids[i];
	return request;
}

static struct nvml_gpm_sample *sample_now(struct nvml_device *device, bool mig, uint32_t instance)
{
	struct nvml_gpm_sample *sample = NULL;

	assert_int_equal(NVML(nvmlGpmSampleAlloc)(&sample), NVML_SUCCESS);
	if (mig)
		assert_int_equal(NVML(nvmlGpmMigSampleGet)(device, instance, sample), NVML_SUCCESS);
	else
		assert_int_equal(NVML(nvmlGpmSampleGet)(device, sample), NVML_SUCCESS);
	return sample;
}

static void gpm_says_what_the_other_readings_say(void **state)
{
	static const uint32_t ids[] = {NVML_GPM_METRIC_SM_UTIL,	      NVML_GPM_METRIC_DRAM_UTIL,
				       NVML_GPM_METRIC_PCIE_SENT,     NVML_GPM_METRIC_DECODER_0 + 6,
				       NVML_GPM_METRIC_DECODER_0 + 7, NVML_GPM_METRIC_FP16_UTIL};
	struct nvml_device *device = gpu(1);
	struct nvml_gpm_sample *from, *to;
	struct nvml_utilization utilization;
	struct request request;
	pid_t pid = twin_start_load("--profile stream --gpus 1", 1);
	uint32_t pcie;

	nap_ms(1200);
	from = sample_now(device, false, 0);
	nap_ms(300);
	to = sample_now(device, false, 0);
	NVML(nvmlDeviceGetUtilizationRates)(device, &utilization);
	NVML(nvmlDeviceGetPcieThroughput)(device, NVML_PCIE_UTIL_TX_BYTES, &pcie);
	request = request_for(from, to, ids, 6);
	assert_int_equal(NVML(nvmlGpmMetricsGet)(&request.head), NVML_SUCCESS);
	assert_int_equal(request.metrics[0].ret, NVML_SUCCESS);
	assert_in_range((int)request.metrics[0].value + 2, utilization.gpu, utilization.gpu + 4);
	assert_in_range((int)request.metrics[1].value + 2, utilization.memory,
			utilization.memory + 4);
	assert_in_range((int)(request.metrics[2].value * 1024) + 300, pcie, pcie + 600);
	assert_non_null(request.metrics[2].info.unit);
	assert_int_equal(request.metrics[3].ret, NVML_SUCCESS);
	assert_int_equal((int)request.metrics[3].value, 0);
	assert_int_equal(request.metrics[4].ret, NVML_ERROR_NOT_SUPPORTED); /* has seven */
	assert_int_equal(request.metrics[5].ret, NVML_ERROR_NOT_SUPPORTED);
	for (size_t i = 0; i < sizeof(request.canary); i++)
		assert_int_equal(request.canary[i], 0xAA);
	NVML(nvmlGpmSampleFree)(from);
	NVML(nvmlGpmSampleFree)(to);
	twin_end(pid);
}

static void gpm_wants_two_samples_of_one_gpu_in_order(void **state)
{
	static const uint32_t ids[] = {NVML_GPM_METRIC_SM_UTIL};
	struct nvml_gpm_sample *a = sample_now(gpu(0), false, 0), *b, *other, *empty;
	struct request request;

	nap_ms(2);
	b = sample_now(twin_gpu_handle(0), false, 0);
	other = sample_now(twin_gpu_handle(1), false, 0);
	assert_int_equal(NVML(nvmlGpmSampleAlloc)(&empty), NVML_SUCCESS);
	request = request_for(b, a, ids, 1);
	assert_int_equal(NVML(nvmlGpmMetricsGet)(&request.head), NVML_ERROR_INVALID_ARGUMENT);
	request = request_for(a, other, ids, 1);
	assert_int_equal(NVML(nvmlGpmMetricsGet)(&request.head), NVML_ERROR_INVALID_ARGUMENT);
	request = request_for(a, empty, ids, 1);
	assert_int_equal(NVML(nvmlGpmMetricsGet)(&request.head), NVML_ERROR_INVALID_ARGUMENT);
	request = request_for(a, b, ids, 1);
	request.head.version = 2;
	assert_int_equal(NVML(nvmlGpmMetricsGet)(&request.head),
			 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	request.head.version = 1;
	assert_int_equal(NVML(nvmlGpmMetricsGet)(&request.head), NVML_SUCCESS);
	assert_int_equal(request.metrics[0].ret, NVML_SUCCESS);
	NVML(nvmlGpmSampleFree)(a);
	NVML(nvmlGpmSampleFree)(b);
	NVML(nvmlGpmSampleFree)(other);
	NVML(nvmlGpmSampleFree)(empty);
}

static void gpm_begins_with_hopper(void **state)
{
	struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
	struct nvml_gpm_sample *sample;
	uint32_t streaming;

	assert_int_equal(NVML(nvmlGpmQueryDeviceSupport)(gpu(0), &support), NVML_SUCCESS);
	assert_int_equal(support.supported, 0);
	assert_int_equal(NVML(nvmlGpmSampleAlloc)(&sample), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpmSampleGet)(gpu(0), sample), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlGpmQueryIfStreamingEnabled)(gpu(0), &streaming),
			 NVML_ERROR_NOT_SUPPORTED);
	NVML(nvmlGpmSampleFree)(sample);
}

/* A GPU instance of one slice that is busy all the time is so to 100 percent of itself. */
static void gpm_knows_instances(void **state)
{
	static const uint32_t ids[] = {NVML_GPM_METRIC_SM_UTIL, NVML_GPM_METRIC_NVLINK_SENT};
	struct nvml_device *device = gpu(0);
	struct nvml_gpu_instance_info info;
	struct nvml_gpu_instance *instance;
	struct nvml_compute_instance *compute;
	struct nvml_gpm_sample *from, *to;
	struct request request;
	int activation;
	pid_t pid;

	assert_int_equal(NVML(nvmlDeviceSetMigMode)(device, 1, &activation), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceCreateGpuInstance)(device, 19, &instance), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, 0, &compute),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceGetInfo)(instance, &info), NVML_SUCCESS);
	pid = twin_start_load("--profile gemm --gpus 0", 0);
	nap_ms(50);
	from = sample_now(device, true, info.id);
	nap_ms(100);
	to = sample_now(device, true, info.id);
	request = request_for(from, to, ids, 2);
	assert_int_equal(NVML(nvmlGpmMetricsGet)(&request.head), NVML_SUCCESS);
	assert_in_range((int)request.metrics[0].value, 95, 100);
	assert_int_equal(request.metrics[1].ret, NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlGpmMigSampleGet)(device, 99, from), NVML_ERROR_INVALID_ARGUMENT);
	NVML(nvmlGpmSampleFree)(from);
	NVML(nvmlGpmSampleFree)(to);
	twin_end(pid);
}

static uint64_t field_u64(struct nvml_device *device, uint32_t id, uint32_t scope)
{
	struct nvml_field_value value = {.field_id = id, .scope_id = scope};

	assert_int_equal(NVML(nvmlDeviceGetFieldValues)(device, 1, &value), NVML_SUCCESS);
	assert_int_equal(value.ret, NVML_SUCCESS);
	return value.value.u64;
}

/* A job on two GPUs talks over their links; one on a single GPU does not. */
static void links_carry_what_jobs_say(void **state)
{
	struct nvml_device *device = gpu(0);
	uint64_t all, one, received, sent, later;
	pid_t pid = twin_start_load("--profile gpt-train --step-time-ms 20 --gpus 0,1", 0);
	uint32_t alone = 2;

	for (int i = 0; i < 500 && field_u64(device, NVML_FI_NVLINK_DATA_TX, 0) == 0; i++)
		nap_ms(10);
	twin_end(pid);
	/* whoever looks first finds it dead; what it did until then is still being booked */
	nap_ms(50);
	field_u64(device, NVML_FI_NVLINK_DATA_TX, 0);
	nap_ms(250);
	all = field_u64(device, NVML_FI_NVLINK_DATA_TX, UINT32_MAX);
	one = field_u64(device, NVML_FI_NVLINK_DATA_TX, 0);
	assert_true(one > 0);
	assert_int_equal(all, one * 6);
	assert_int_equal(field_u64(device, NVML_FI_NVLINK_BANDWIDTH_C0_TOTAL, 0), all * 2);
	assert_int_equal(field_u64(twin_gpu_handle(alone), NVML_FI_NVLINK_DATA_TX, UINT32_MAX), 0);
	assert_int_equal(
		NVML(nvmlDeviceGetNvLinkUtilizationCounter)(device, 5, 1, &received, &sent),
		NVML_SUCCESS);
	assert_int_equal(sent / 1024, one);
	assert_int_equal(NVML(nvmlDeviceResetNvLinkUtilizationCounter)(device, 5, 1), NVML_SUCCESS);
	NVML(nvmlDeviceGetNvLinkUtilizationCounter)(device, 5, 1, &received, &later);
	assert_int_equal(later, 0);
	NVML(nvmlDeviceGetNvLinkUtilizationCounter)(device, 5, 0, &received, &later);
	assert_int_equal(later, sent); /* the other counter of the link goes on */
	assert_int_equal(
		NVML(nvmlDeviceGetNvLinkUtilizationCounter)(device, 6, 0, &received, &sent),
		NVML_ERROR_INVALID_ARGUMENT);
}

/* A frozen counter stands, and goes on from where it stood. */
static void link_counters_freeze(void **state)
{
	struct nvml_device *device = gpu(0);
	pid_t pid = twin_start_load("--profile gpt-train --step-time-ms 20 --gpus 0,1", 0);
	uint64_t received, before, after;

	for (int i = 0; i < 500 && field_u64(device, NVML_FI_NVLINK_DATA_TX, 0) == 0; i++)
		nap_ms(10);
	assert_int_equal(NVML(nvmlDeviceFreezeNvLinkUtilizationCounter)(device, 0, 0, 1),
			 NVML_SUCCESS);
	NVML(nvmlDeviceGetNvLinkUtilizationCounter)(device, 0, 0, &received, &before);
	nap_ms(100);
	NVML(nvmlDeviceGetNvLinkUtilizationCounter)(device, 0, 0, &received, &after);
	assert_int_equal(after, before);
	assert_int_equal(NVML(nvmlDeviceFreezeNvLinkUtilizationCounter)(device, 0, 0, 0),
			 NVML_SUCCESS);
	for (int i = 0; i < 500 && after == before; i++) {
		nap_ms(10);
		NVML(nvmlDeviceGetNvLinkUtilizationCounter)(device, 0, 0, &received, &after);
	}
	assert_true(after > before);
	assert_int_equal(NVML(nvmlDeviceFreezeNvLinkUtilizationCounter)(device, 0, 2, 1),
			 NVML_ERROR_INVALID_ARGUMENT);
	twin_end(pid);
}

static void later_boards_have_no_link_counters(void **state)
{
	uint64_t received, sent;

	assert_int_equal(
		NVML(nvmlDeviceGetNvLinkUtilizationCounter)(gpu(0), 0, 0, &received, &sent),
		NVML_ERROR_NOT_SUPPORTED);
}

/* Clocks of the last cells, before and after a lock. */
static void clocks_have_samples(void **state)
{
	struct nvml_sample samples[10];
	uint32_t type, count = 10;

	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(gpu(2), 990, 990), NVML_SUCCESS);
	nap_ms(300);
	assert_int_equal(NVML(nvmlDeviceGetSamples)(gpu(2), NVML_SAMPLES_PROCESSOR_CLOCK, 0, &type,
						    &count, samples),
			 NVML_SUCCESS);
	assert_int_equal(type, NVML_VALUE_TYPE_UNSIGNED_INT);
	assert_int_equal(count, 10);
	assert_int_equal(samples[9].value.u32, 990);
	count = 10;
	assert_int_equal(NVML(nvmlDeviceGetSamples)(gpu(2), NVML_SAMPLES_MEMORY_CLOCK, 0, &type,
						    &count, samples),
			 NVML_SUCCESS);
	assert_int_equal(samples[0].value.u32, 2619);
	count = 10;
	assert_int_equal(NVML(nvmlDeviceGetSamples)(gpu(2), NVML_SAMPLES_MODULE_POWER, 0, &type,
						    &count, samples),
			 NVML_ERROR_NOT_SUPPORTED);
}

static void samples_of_no_room_are_none(void **state)
{
	struct nvml_sample samples[3];
	uint32_t type, count = 2;

	memset(samples, 0xAA, sizeof(samples));
	assert_int_equal(NVML(nvmlDeviceGetSamples)(gpu(2), NVML_SAMPLES_TOTAL_POWER, 0, &type,
						    &count, samples),
			 NVML_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(samples[2].timestamp_us, 0xAAAAAAAAAAAAAAAA);
	assert_int_equal(NVML(nvmlDeviceGetSamples)(gpu(2), NVML_SAMPLES_TOTAL_POWER,
						    samples[1].timestamp_us + 60000000, &type,
						    &count, samples),
			 NVML_ERROR_NOT_FOUND);
}

/* ECC waits for a reset, and without it there are no counts. */
static void ecc_goes_off_at_the_next_reload(void **state)
{
	uint32_t current, pending;
	uint64_t count;

	assert_int_equal(NVML(nvmlDeviceSetEccMode)(gpu(0), 0), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetEccMode)(gpu(0), &current, &pending), NVML_SUCCESS);
	assert_int_equal(current, 1);
	assert_int_equal(pending, 0);
	assert_int_equal(NVML(nvmlDeviceGetTotalEccErrors)(gpu(0), NVML_ECC_ERROR_CORRECTED,
							   NVML_ECC_COUNTER_VOLATILE, &count),
			 NVML_SUCCESS);
	assert_int_equal(twin_run("fault all driver-reload"), 0);
	for (int i = 0; i < 8; i++)
		NVML(nvmlShutdown)();
	assert_int_equal(NVML(nvmlDeviceGetEccMode)(gpu(0), &current, &pending), NVML_SUCCESS);
	assert_int_equal(current, 0);
	assert_int_equal(NVML(nvmlDeviceGetTotalEccErrors)(gpu(0), NVML_ECC_ERROR_CORRECTED,
							   NVML_ECC_COUNTER_VOLATILE, &count),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetEccMode)(gpu(1), &current, &pending), NVML_SUCCESS);
	assert_int_equal(current, 1);
}

static void application_clocks_can_be_opened(void **state)
{
	uint32_t restricted;

	assert_int_equal(NVML(nvmlDeviceGetAPIRestriction)(
				 gpu(0), NVML_RESTRICTED_API_APPLICATION_CLOCKS, &restricted),
			 NVML_SUCCESS);
	assert_int_equal(restricted, 1);
	assert_int_equal(NVML(nvmlDeviceSetAPIRestriction)(
				 gpu(0), NVML_RESTRICTED_API_APPLICATION_CLOCKS, 0),
			 NVML_SUCCESS);
	NVML(nvmlDeviceGetAPIRestriction)
	(gpu(0), NVML_RESTRICTED_API_APPLICATION_CLOCKS, &restricted);
	assert_int_equal(restricted, 0);
	/* from here on nobody has permission, but what is open is open to all */
	assert_int_equal(twin_run("fault all permission"), 0);
	assert_int_equal(NVML(nvmlDeviceSetApplicationsClocks)(gpu(0), 2619, 1980), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceSetApplicationsClocks)(gpu(1), 2619, 1980),
			 NVML_ERROR_NO_PERMISSION);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(gpu(0), 990, 990),
			 NVML_ERROR_NO_PERMISSION);
	assert_int_equal(NVML(nvmlDeviceGetAPIRestriction)(
				 gpu(0), NVML_RESTRICTED_API_AUTO_BOOSTED_CLOCKS, &restricted),
			 NVML_ERROR_NOT_SUPPORTED);
}

static void states_fill_the_array_that_is_given(void **state)
{
	uint32_t pstates[4] = {1, 1, 1, 1}, min, max;

	assert_int_equal(NVML(nvmlDeviceGetSupportedPerformanceStates)(gpu(0), pstates, 2),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(NVML(nvmlDeviceGetSupportedPerformanceStates)(gpu(0), pstates,
								       3 * sizeof(uint32_t)),
			 NVML_SUCCESS);
	assert_int_equal(pstates[0], 0);
	assert_int_equal(pstates[1], NVML_PSTATE_UNKNOWN);
	assert_int_equal(pstates[2], NVML_PSTATE_UNKNOWN);
	assert_int_equal(pstates[3], 1);
	assert_int_equal(
		NVML(nvmlDeviceGetMinMaxClockOfPState)(gpu(0), NVML_CLOCK_SM, 0, &min, &max),
		NVML_SUCCESS);
	assert_int_equal(min, 345);
	assert_int_equal(max, 1980);
	assert_int_equal(
		NVML(nvmlDeviceGetMinMaxClockOfPState)(gpu(0), NVML_CLOCK_SM, 5, &min, &max),
		NVML_ERROR_INVALID_ARGUMENT);
}

/* Temperature that the GPU would have if nobody did anything for ten minutes. */
static int64_t later_uc(uint32_t index)
{
	struct twin_gpu state;

	twin_read(twin_fixture_map(), index, &state);
	twin_physics_advance(&state, twin_map_board(twin_fixture_map()),
			     state.at_ns + 600000000000ull);
	return state.temp_uc;
}

/* Fans that are set cool as fast as they turn; let go, they follow the temperature again. */
static void fans_can_be_set_and_let_go(void **state)
{
	struct nvml_device *device = gpu(0);
	uint32_t min, max, percent, policy;
	int64_t by_itself = later_uc(0);

	assert_int_equal(NVML(nvmlDeviceGetMinMaxFanSpeed)(device, &min, &max), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceSetFanSpeed_v2)(device, 1, 100), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetFanSpeed_v2)(device, 0, &percent), NVML_SUCCESS);
	assert_int_equal(percent, 100);
	assert_int_equal(NVML(nvmlDeviceGetFanControlPolicy_v2)(device, 0, &policy), NVML_SUCCESS);
	assert_int_equal(policy, 1);
	assert_true(later_uc(0) < by_itself - 1000000);
	assert_int_equal(NVML(nvmlDeviceSetFanSpeed_v2)(device, 0, min - 1),
			 NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(NVML(nvmlDeviceSetFanSpeed_v2)(device, 9, 100),
			 NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(twin_run("fault 0 fan-stuck"), 0);
	NVML(nvmlDeviceGetFanSpeed)(device, &percent);
	assert_int_equal(percent, 0);
	NVML(nvmlDeviceGetTargetFanSpeed)(device, 0, &percent);
	assert_int_equal(percent, 100);
	assert_int_equal(twin_run("fault 0 none"), 0);
	assert_int_equal(NVML(nvmlDeviceSetDefaultFanSpeed_v2)(device, 0), NVML_SUCCESS);
	NVML(nvmlDeviceGetFanSpeed)(device, &percent);
	assert_int_equal(percent, min);
	assert_true(later_uc(0) >= by_itself - 100000);
}

static void fans_of_the_machine_are_not_the_boards(void **state)
{
	assert_int_equal(NVML(nvmlDeviceSetFanSpeed_v2)(gpu(0), 0, 100), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceSetDefaultFanSpeed_v2)(gpu(0), 0),
			 NVML_ERROR_NOT_SUPPORTED);
}

#define ON_4090(test) cmocka_unit_test_setup_teardown(test, twin_fixture_4090, twin_fixture_end)
#define ON_H100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_h100, twin_fixture_end)
#define ON_V100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_v100, twin_fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_H100(accounting_is_off_until_it_is_asked_for),
		ON_H100(accounting_remembers_who_has_ended),
		ON_H100(gpm_says_what_the_other_readings_say),
		ON_H100(gpm_wants_two_samples_of_one_gpu_in_order),
		ON_V100(gpm_begins_with_hopper),
		ON_H100(gpm_knows_instances),
		ON_V100(links_carry_what_jobs_say),
		ON_V100(link_counters_freeze),
		ON_H100(later_boards_have_no_link_counters),
		ON_H100(clocks_have_samples),
		ON_H100(samples_of_no_room_are_none),
		ON_H100(ecc_goes_off_at_the_next_reload),
		ON_H100(application_clocks_can_be_opened),
		ON_H100(states_fill_the_array_that_is_given),
		ON_4090(fans_can_be_set_and_let_go),
		ON_H100(fans_of_the_machine_are_not_the_boards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
