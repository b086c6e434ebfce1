/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that sampling can cost: the driver calls of a tick, for every GPU, in a bare loop on
 * one thread, values thrown away. What `takt serve` uses beyond this is takt's own. The calls are
 * those of src/device/nvml_read.c: the fast ones each tick, the slow ones once a second.
 *
 *	bare_loop [SECONDS [HZ]]    prints one line of JSON
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "device/nvml_api.h"

static struct takt_nvml_api api;
static struct nvml_process_detail procs[1024];
static unsigned long calls;

/* A function that the library lacks is not called, as in takt. */
#define CALL(member, ...)                              \
	do {                                           \
		if (api.member) {                      \
			(void)api.member(__VA_ARGS__); \
			calls++;                       \
		}                                      \
	} while (0)

static void fast_calls(struct nvml_device *device)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_WORD};
	struct nvml_utilization utilization;
	uint32_t number;
	uint64_t large;

	CALL(clock, device, NVML_CLOCK_SM, &number);
	CALL(power, device, &number);
	CALL(energy, device, &large);
	CALL(temperature, device, NVML_TEMPERATURE_GPU, &number);
	CALL(utilization, device, &utilization);
	CALL(memory_v2, device, &memory);
	CALL(throttle, device, &large);
}

static void slow_calls(struct nvml_device *device)
{
	uint32_t number, period, count;

	CALL(clock, device, NVML_CLOCK_MEM, &number);
	CALL(power_limit, device, &number);
	CALL(power_enforced, device, &number);
	CALL(fan, device, &number);
	CALL(pstate, device, &number);
	CALL(persistence, device, &number);
	CALL(pcie_gen, device, &number);
	CALL(pcie_width, device, &number);
	CALL(pcie_replay, device, &number);
	CALL(encoder, device, &number, &period);
	CALL(decoder, device, &number, &period);
	count = TAKT_ARRAY_LEN(procs);
	CALL(compute_procs, device, &count, (void *)procs);
	count = TAKT_ARRAY_LEN(procs);
	CALL(mps_procs, device, &count, (void *)procs);
	count = TAKT_ARRAY_LEN(procs);
	CALL(graphics_procs, device, &count, (void *)procs);
}

static uint32_t find_gpus(struct nvml_device **devices)
{
	uint32_t count = 0, found = 0;

	if (api.count(&count) != NVML_SUCCESS)
		return 0;
	for (uint32_t i = 0; i < count && found < TAKT_DEVICE_MAX_GPUS; i++)
		if (api.handle_by_index(i, &devices[found]) == NVML_SUCCESS)
			found++;
	return found;
}

static bool is_simulated(struct nvml_device *device)
{
	char serial[NVML_BUFFER_SERIAL] = "";

	return api.serial && api.serial(device, serial, sizeof(serial)) == NVML_SUCCESS &&
	       strstr(serial, "TWIN");
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = {.tv_sec = (time_t)(ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(ns % TAKT_NS_PER_S)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static double cpu_seconds(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
	unsigned hz = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
	struct nvml_device *devices[TAKT_DEVICE_MAX_GPUS];
	struct takt_err err = {0};
	double begin;
	uint64_t due;
	uint32_t n;

	if (seconds == 0 || hz == 0) {
		fprintf(stderr, "usage: bare_loop [SECONDS [HZ]]\n");
		return 64;
	}
	if (takt_nvml_load(NULL, &api, &err) < 0 || api.init() != NVML_SUCCESS) {
		fprintf(stderr, "bare_loop: no driver: %s\n", err.msg);
		return 69;
	}
	n = find_gpus(devices);
	begin = cpu_seconds();
	due = takt_mono_now(takt_sys_real()).ns;
	for (unsigned tick = 0; tick < seconds * hz; tick++) {
		sleep_until(due += TAKT_NS_PER_S / hz);
		for (uint32_t g = 0; g < n; g++) {
			fast_calls(devices[g]);
			if (tick % hz == 0)
				slow_calls(devices[g]);
		}
	}
	printf("{\"gpus\": %u, \"simulated\": %s, \"seconds\": %u, \"hz\": %u, \"calls\": %lu, "
	       "\"cpu_seconds\": %.6f}\n",
	       n, n > 0 && is_simulated(devices[0]) ? "true" : "false", seconds, hz, calls,
	       cpu_seconds() - begin);
	return 0;
}
